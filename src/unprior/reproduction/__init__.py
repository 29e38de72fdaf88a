"""The paper's published values, and ours beside them from its per-example score files."""

from unprior.reproduction.comparison import ComparedCell, ReproductionResult, Verdict, judge, reproduce
from unprior.reproduction.files import PublishedScores, find_scores, recognise_model
from unprior.reproduction.paper import MODELS, PublishedCell, PublishedTable, published_tables
from unprior.reproduction.write import check_cells_file, write_cells, write_published, write_synthetic

__all__ = [
    "MODELS",
    "ComparedCell",
    "PublishedCell",
    "PublishedScores",
    "PublishedTable",
    "ReproductionResult",
    "Verdict",
    "check_cells_file",
    "find_scores",
    "judge",
    "published_tables",
    "recognise_model",
    "reproduce",
    "write_cells",
    "write_published",
    "write_synthetic",
]
