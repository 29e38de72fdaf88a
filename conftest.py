"""Before any test or example imports transformers: torchvision must be importable beside a torch for CPUs."""

from unprior.engines.transformers.torchvision import make_importable

make_importable()
