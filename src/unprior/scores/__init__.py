"""Score tables: what an engine writes and a calibrator reads."""

from unprior.scores.files import read_scores, write_scores
from unprior.scores.schema import SCHEMA, ScoreRow
from unprior.scores.table import Block, ScoreTable

__all__ = ["SCHEMA", "Block", "ScoreRow", "ScoreTable", "read_scores", "write_scores"]
