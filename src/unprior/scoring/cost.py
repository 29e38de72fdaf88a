"""What scoring a benchmark through a server takes: requests, tokens, bytes, before anything is asked.

Per example: one request for the original answer and one for every branch of its candidates. Per question and view: one
for every branch, shared by all images of the question. Whatever else is asked about its claims
(``unprior.scoring.claims``) is one for every branch, too. Candidates are tokenised once for all prompts that end alike.
Open questions are measured instead (``unprior.scoring.open_cost``).
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import add, attrgetter
from pathlib import Path

from unprior.benchmarks.schema import Benchmark, Example
from unprior.engines.openai.replies import MAX_NAMED_TOKENS
from unprior.engines.openai.sizes import ANSWER_HEAD, REQUEST_HEAD, SAME_END, CandidateTree, Sizes
from unprior.prompts import PromptLayout
from unprior.scoring.claims import asked_in_fitted_form, claim_views

_TOKENIZE, _TOKENIZED = 150, 50  # JSON around the text or the tokens
# Seen in stores of 100,000 results: a key in the table and in its index; the JSON of a result, a candidate, a text.
KEY_BYTES, _RESULT, _CANDIDATE, _TEXT = 164, 29, 21.7, 10


@dataclass(frozen=True, slots=True)
class RunCost:
    """What some examples take.

    >>> per_example = RunCost(1, requests=2.5, prompt_tokens=1500)
    >>> per_example.scaled(1_000_000).requests, (per_example + per_example).prompt_tokens
    (2500000.0, 3000)
    """

    examples: float = 0
    requests: float = 0
    """Successful ones; faults come on top."""
    prompt_tokens: float = 0
    """Tokens of all prompts, images included."""
    cached_tokens: float = 0
    """Those among them that the server has read before and keeps."""
    generated_tokens: float = 0
    sent_bytes: float = 0
    """From the client to the servers, HTTP included."""
    received_bytes: float = 0
    stored_bytes: float = 0
    """Size of the score store."""

    @property
    def computed_tokens(self) -> float:
        """Prompt tokens that pass through the model."""
        return self.prompt_tokens - self.cached_tokens

    def __add__(self, other: RunCost) -> RunCost:
        """Both together."""
        return RunCost(*map(add, _values(self), _values(other)))

    def scaled(self, examples: float) -> RunCost:
        """The same for another number of such examples."""
        return RunCost(*(value * examples / self.examples for value in _values(self)))


_values = attrgetter(*(field.name for field in fields(RunCost)))  # a million examples are added up


def predict(
    benchmark: Benchmark,
    sizes: Sizes,
    *,
    layout: PromptLayout | None = None,
    views: Sequence[str] = (),
    resized: bool = False,
    servers: int = 1,
    prior: str = "plain",
    full_benchmark: Benchmark | None = None,
) -> RunCost:
    """What scoring a benchmark takes when nothing is stored yet; images are told apart by their paths.

    ``resized``: images are brought to one size, so blank ones are the same for all. Of several ``servers`` only the one
    that has read an image has it in its cache. ``prior`` and ``full_benchmark`` are as in
    :class:`~unprior.scoring.plan.ScoringPlan`.
    """
    layout, total = layout or PromptLayout(), RunCost()
    answered = asked_in_fitted_form(full_benchmark or benchmark, prior, layout)
    image = sizes.lead_tokens + sizes.image_tokens
    seen: set[object] = set()

    def new(*what: object) -> bool:
        before = len(seen)
        seen.add(what)
        return len(seen) > before

    def with_image(text: str, candidates: tuple[str, ...], path: Path, *, answer: bool) -> RunCost:
        if not new("image" if answer else "scores", text, candidates, path):
            return RunCost()
        known = 0.0 if new(path) else sizes.cached(image) / servers
        known = max(known, sizes.cached(sizes.lead_tokens))
        scoring, tree = text + layout.scoring_suffix, sizes.tree(candidates)
        if not answer:
            return _scores(sizes, scoring, tree, sizes.image_bytes, known) + _stored(len(candidates))
        read = sizes.tokens(text, image=True) - sizes.tail_tokens
        scored = _scores(sizes, scoring, tree, sizes.image_bytes, read)
        return _original(sizes, text, known) + scored + _stored(len(candidates), _TEXT + sizes.answer_characters)

    def with_view(view: str, text: str, candidates: tuple[str, ...], path: Path) -> RunCost:
        own = path if view in {"white", "black"} and not resized else None
        if not new("view", view, text, candidates, own):
            return RunCost()
        scoring = text + layout.scoring_suffix
        shown = {"text": 0.0, "mean": sizes.image_bytes}.get(view, sizes.blank_bytes)
        known = sizes.lead_tokens if view == "text" else image
        if not new(view, text, candidates):  # the same blank image again
            known = sizes.tokens(scoring, image=True)
        return _scores(sizes, scoring, sizes.tree(candidates), shown, known) + _stored(len(candidates))

    def encoded(text: str, candidates: tuple[str, ...]) -> RunCost:
        scoring = text + layout.scoring_suffix
        fresh = new(scoring[-SAME_END:], candidates)
        return _encoding(sizes, scoring, sizes.tree(candidates)) if fresh else RunCost()

    for example in benchmark:
        text, candidates, path = example.user_text(layout), layout.continuations(example.labels), example.image
        total += encoded(text, candidates)
        total += with_image(text, candidates, path, answer=True)
        for view in ("text", *views):
            total += with_view(view, text, candidates, path)
        for claim in claim_views(example, prior, layout):
            candidates = layout.continuations(claim.labels)
            total += encoded(claim.text, candidates)
            if claim.with_image:
                total += with_image(claim.text, candidates, path, answer=(path, claim.text) in answered)
            else:
                total += with_view("text", claim.text, candidates, path)
    return replace(total, examples=len(benchmark))


def sample(examples: Iterable[Example], most: int) -> list[Example]:
    """Some examples, drawn at random but always the same ones: every n-th might be all of one kind."""
    every = list(examples)
    return random.Random(0).sample(every, min(most, len(every)))


def _original(sizes: Sizes, text: str, cached: float) -> RunCost:
    return RunCost(
        requests=1,
        prompt_tokens=sizes.tokens(text, image=True),
        cached_tokens=cached,
        generated_tokens=sizes.answer_tokens,
        sent_bytes=sizes.request_bytes + sizes.image_bytes + _quoted(text),
        received_bytes=sizes.answer_bytes,
    )


def _scores(sizes: Sizes, text: str, tree: CandidateTree, image_bytes: float, known: float) -> RunCost:
    """Every branch with the tokens that may follow, so many at a time; each finds in the cache what its parent read."""
    total, image = RunCost(), image_bytes > 0
    bare = sizes.tokens(text, image=image)
    ids = bare * sizes.text_id_bytes + image * sizes.image_tokens * (sizes.image_id_bytes - sizes.text_id_bytes)
    for depth, following in tree.branches:
        requests, prompt = math.ceil(following / MAX_NAMED_TOKENS), bare + depth
        shared = known if depth == 0 else prompt - 1
        # In the middle of a candidate a model would rather write something else, which is listed, too.
        listed = following + (depth > 0) * requests
        total += RunCost(
            requests=requests,
            prompt_tokens=requests * prompt,
            cached_tokens=sizes.cached(min(shared, prompt - 1)) + (requests - 1) * sizes.cached(prompt - 1),
            generated_tokens=requests,
            sent_bytes=requests * (sizes.request_bytes + image_bytes + _quoted(text)) + following * sizes.text_id_bytes,
            received_bytes=requests * (sizes.scored_bytes + ids) + listed * sizes.named_bytes,
        )
    return total


def _encoding(sizes: Sizes, text: str, tree: CandidateTree) -> RunCost:
    """Two of three requests send the text and receive its tokens, the third the other way round."""
    count, ids = tree.encoding_requests, sizes.tokens(text, image=False) * sizes.text_id_bytes
    sent, received = (2 * _quoted(text) + ids) / 3 + _TOKENIZE, (2 * ids + _quoted(text)) / 3 + _TOKENIZED
    return RunCost(
        requests=count,
        sent_bytes=count * (REQUEST_HEAD + sent),
        received_bytes=count * (ANSWER_HEAD + received),
    )


def _stored(candidates: int, text: float = 0.0) -> RunCost:
    return RunCost(stored_bytes=KEY_BYTES + _RESULT + candidates * _CANDIDATE + text)


def _quoted(text: str) -> int:
    return len(json.dumps(text))
