"""Replies of a server: ``HttpEngine`` in front of one that spoils them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from fuzz.case import Case, Target, require
from fuzz.mutate import changed_bytes, changed_json, dumps
from fuzz.proxy import COSTLY, TRANSPORT, Proxy, Reply, Request, spoil_transport
from replayed_vllm import MODEL, ReplayedVllm
from tiny_models import build
from unprior.engines.openai.client import RetryPolicy
from unprior.engines.openai.engine import HttpEngine
from unprior.engines.protocol import Answered, CandidateScores, Query, QueryFailure
from unprior.engines.transformers.engine import TransformersEngine

_MODES: dict[str, dict[str, Any]] = {
    "any token": {},
    "no prompt": {"tells_prompt": False},
    "top tokens": {"named": False},
    "texts": {"named": False, "tokenizes": False},
}
"""What a server can do."""
_RETRY_POLICY = RetryPolicy(max_attempts=3, first_delay=0.001, max_delay=0.01, max_wait=0.05, timeout=2.0, cooldown=0.0)
_NUMBERS = {"logprob"}
_TEXTS = {"content", "token", "version", "root", "owned_by", "model", "id"}
Result = Answered | CandidateScores | QueryFailure
Results = list[Result]


def make(folder: Path) -> Target:
    """A small model that answers as vLLM would, and its answers when nobody spoils them."""
    return _Replies(folder).run


class _Replies:
    def __init__(self, folder: Path) -> None:
        self.model = TransformersEngine(build("llava", folder / "tiny"))
        pixels = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)
        with_image = Query(
            Image.fromarray(pixels), "How many fingers does the hand have?", (" five", " six", " eleven")
        )
        self.queries: list[Query] = [
            replace(with_image, candidates=(" A", " B", " C")), with_image, replace(with_image, image=None),
        ]  # fmt: skip
        self.known: dict[tuple[str, str, bytes], Reply] = {}
        self.servers = {mode: ReplayedVllm(self.model, **options) for mode, options in _MODES.items()}
        self.mode = ""
        self.proxy = Proxy(self._origin, folder)
        self.expected: dict[str, Results] = {}
        for mode in _MODES:
            self.mode = mode
            self.expected[mode] = self._ask()

    def run(self, case: Case) -> bool:
        random = case.random
        self.mode = random.choice(list(_MODES))
        kind = random.choices(("values", "bytes", "transport", "costly", "model"), (40, 15, 30, 2, 5))[0]
        way = random.choice(TRANSPORT) if kind == "transport" else random.choice(COSTLY) if kind == "costly" else ""
        spoiler = _Spoiler(random, kind, way, random.random() < 0.5, random.randrange(30))
        case.note(f"{kind} {way}".strip())
        case.note(f"{self.mode}, {'always' if spoiler.always else f'from request {spoiler.first} on, once'}")
        self.proxy.begin(spoiler)
        try:
            results = self._ask()
        finally:
            self.proxy.begin(None)
            for note in spoiler.notes[:20]:
                case.note(note)
        accepted = [found for found in results if not isinstance(found, QueryFailure)]
        if kind == "model" and spoiler.changed and spoiler.kept:
            require(not accepted, "replies name two models in one run, and all become scores")
        if not spoiler.plausible:
            for found, wanted in zip(results, self.expected[self.mode], strict=True):
                _compare(found, wanted)
        return bool(accepted)

    def _ask(self) -> Results:
        engine = HttpEngine(MODEL, [self.proxy.url], concurrency=2, retry_policy=_RETRY_POLICY)
        try:
            return [*engine.answer_batch(self.queries[:2]), *engine.score_batch(self.queries[2:])]
        finally:
            engine.close()

    def _origin(self, request: Request) -> Reply:
        key = (self.mode, request.path, request.body)
        if key not in self.known:
            body = json.loads(request.body) if request.body else None
            status, content = self.servers[self.mode](request.path, body)
            if isinstance(content, dict) and "choices" in content:
                content["model"] = MODEL
            self.known[key] = Reply(status, {"Content-Type": "application/json"}, json.dumps(content).encode())
        return self.known[key]


class _Spoiler:
    """Spoils one reply or all of one path; remembers whether what it said could have been true."""

    def __init__(self, random: Random, kind: str, way: str, always: bool, first: int) -> None:
        self.kind, self.way, self.always, self.first = kind, way, always, first
        self.seed = random.random()
        self.path: str | None = None
        self.plausible = self.changed = self.kept = False
        self.notes: list[str] = []

    def __call__(self, request: Request, reply: Reply) -> Reply:
        if self.kind == "model":
            return self._other_model(request, reply)
        due = request.number >= self.first and (self.path is None or (self.always and request.path == self.path))
        if not due:
            return reply
        self.path = request.path
        random = Random(self.seed)  # the same change to all replies
        if self.kind in ("transport", "costly"):
            return spoil_transport(random, self.way, reply)
        if self.kind == "bytes":
            body = changed_bytes(random, reply.body)
        else:
            value, note = changed_json(random, json.loads(reply.body))
            self.notes.append(f"{request.path}: {note}")
            body = dumps(value)
        self.plausible = self.plausible or _plausible(reply.body, body)
        return replace(reply, body=body)

    def _other_model(self, request: Request, reply: Reply) -> Reply:
        if not request.path.endswith("completions") or request.number < self.first:
            self.kept = self.kept or request.path.endswith("completions")
            return reply
        self.changed = True
        return replace(reply, body=dumps(json.loads(reply.body) | {"model": "another"}))


def _compare(found: Result, wanted: Result) -> None:
    """A failure is no result; a score is the right one, or marked as a bound that is not below it."""
    if isinstance(found, QueryFailure):
        return
    assert not isinstance(wanted, QueryFailure)
    got, right = (each.scored if isinstance(each, Answered) else each for each in (found, wanted))
    bounds = got.censored or (False,) * len(got.scores)
    good = all(
        score >= true if bound else score == true
        for score, true, bound in zip(got.scores, right.scores, bounds, strict=True)
    )
    require(good, f"a spoilt reply changes scores: {got} instead of {right}")


def _plausible(before: bytes, after: bytes) -> bool:
    """Whether a changed reply could be a true one: only other numbers or words, where numbers and words belong."""
    try:
        changed = json.loads(after)
    except (ValueError, RecursionError):
        return False
    truth = json.loads(before)
    return bool(changed != truth and _form(changed) == _form(truth)) or _other_tokens(truth, changed)


def _other_tokens(truth: Any, changed: Any) -> bool:
    """Other tokens or another text of them: nobody but the server knows its tokenizer."""
    if not isinstance(changed, dict) or not isinstance(truth, dict):
        return False
    text, tokens = changed.get("prompt"), changed.get("tokens")
    if "prompt" in truth:
        return isinstance(text, str) and text != truth["prompt"]
    whole = isinstance(tokens, list) and all(type(token) is int and token >= 0 for token in tokens)
    return "tokens" in truth and whole and tokens != truth["tokens"]


def _form(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _form(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_form(inner, name) for inner in value]
    if name in _NUMBERS and isinstance(value, int | float) and not isinstance(value, bool) and -9999 < value <= 0.01:
        return "a log-probability"
    return "a text" if name in _TEXTS and isinstance(value, str) else value
