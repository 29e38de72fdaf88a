"""A rendered world of ordinary and impossible things, with the structure of CDH-Bench."""

from unprior.benchmarks.microworld.benchmark import microworld
from unprior.benchmarks.microworld.pairs import Pair, pairs
from unprior.benchmarks.microworld.render import render
from unprior.benchmarks.microworld.world import BENCHMARK_SEEDS, CONCEPTS, SELECTION_SEEDS, TRAINING_SEEDS

__all__ = [
    "BENCHMARK_SEEDS", "CONCEPTS", "SELECTION_SEEDS", "TRAINING_SEEDS", "Pair", "microworld", "pairs", "render",
]  # fmt: skip
