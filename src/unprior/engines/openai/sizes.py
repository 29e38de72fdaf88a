"""Sizes of a served model's prompts and replies, which the cost model of scoring works with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unprior.engines.candidate_tree import Beginning, branch_points
from unprior.errors import UnpriorError

SAME_END = 24
"""Characters at the end of a prompt that decide how what follows is tokenised."""
REQUEST_HEAD, ANSWER_HEAD = 250, 127
"""Bytes of HTTP around a request and around an answer of vLLM; a key adds its own length."""
CACHE_BLOCK = 16
"""Tokens that a server keeps or forgets together, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class CandidateTree:
    """The branches of some candidates.

    >>> CandidateTree.from_tokens([(7, 1), (7, 2), (9,)], encoding_requests=16)
    CandidateTree(branches=((0, 2), (1, 2)), encoding_requests=16)
    """

    branches: tuple[tuple[int, int], ...]
    """Tokens before each branch, and tokens that may follow."""
    encoding_requests: int
    """Requests that tokenise the candidates behind one prompt."""

    @classmethod
    def from_tokens(cls, candidates: Sequence[Beginning], encoding_requests: int) -> CandidateTree:
        """From the tokens of the candidates."""
        points = branch_points(candidates).items()
        return cls(tuple((len(start), len(following)) for start, following in points), encoding_requests)


@dataclass(frozen=True, slots=True)
class Sizes:
    """What must be known of a served model and its images; `HttpEngine.sizes` finds it out from a few examples."""

    image_tokens: float
    """Tokens that an image adds to a prompt."""
    text_tokens: float
    """Tokens of a prompt without text: with `tokens_per_character` the line that fits the prompts best."""
    tokens_per_character: float
    answer_tokens: float
    """Tokens of an original answer, its end included."""
    image_bytes: float
    """An image as a data URL: four thirds of its size as PNG."""
    trees: Mapping[tuple[str, ...], CandidateTree]
    """Branches of candidates."""
    blank_bytes: float = 1_000.0
    """A blank image as a data URL."""
    cache_block: int = CACHE_BLOCK
    """Tokens that a server keeps or forgets together."""
    lead_tokens: float = 4.0
    """Tokens of a prompt before the image or the text."""
    tail_tokens: float = 4.0
    """Tokens of a prompt behind the user's text."""
    answer_characters: float = 3.0
    image_id_bytes: float = 6.0
    """Digits of a token of an image, with a comma: servers repeat the prompt."""
    text_id_bytes: float = 6.0
    """The same of a text."""
    request_bytes: float = 550.0
    """A request without image, text and named tokens."""
    answer_bytes: float = 810.0
    """An original answer."""
    scored_bytes: float = 920.0
    """An answer to a request for scores, without the tokens of the prompt and the named tokens."""
    named_bytes: float = 110.0
    """What one named token adds to it."""

    def tokens(self, text: str, *, image: bool) -> float:
        """Tokens of a prompt."""
        return self.text_tokens + self.tokens_per_character * len(text) + (self.image_tokens if image else 0.0)

    def tree(self, candidates: tuple[str, ...]) -> CandidateTree:
        """The branches of some candidates; unknown ones count as the middle one of those that are known."""
        if not self.trees:
            raise UnpriorError("no candidates are known; examine at least one question")
        if candidates in self.trees:
            return self.trees[candidates]
        return sorted(self.trees.values(), key=lambda tree: len(tree.branches))[len(self.trees) // 2]

    def cached(self, shared: float) -> float:
        """Tokens found in the cache when so many were read before: whole blocks."""
        return math.floor(max(shared, 0.0) / self.cache_block) * self.cache_block
