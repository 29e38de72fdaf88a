"""Score tables: what an engine writes and a calibrator reads."""

from unprior.scores.block import Block
from unprior.scores.files import read_scores, write_scores
from unprior.scores.schema import SCHEMA, ScoreRow
from unprior.scores.table import ScoreTable

__all__ = ["SCHEMA", "Block", "ScoreRow", "ScoreTable", "read_scores", "write_scores"]
