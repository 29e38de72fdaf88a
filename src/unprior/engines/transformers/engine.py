"""The transformers engine: any image-text-to-text model with a chat template, in process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from PIL import Image

from unprior.engines.answer_search import check_count
from unprior.engines.batches import work_in_parts
from unprior.engines.local import LocalEngine
from unprior.engines.precision import explained_difference
from unprior.engines.protocol import (
    Answered,
    CandidateScores,
    Capabilities,
    Proposed,
    Query,
    QueryFailure,
    fingerprint_of,
)
from unprior.engines.transformers.source import Source
from unprior.errors import UnpriorError
from unprior.prompts import PromptLayout

if TYPE_CHECKING:
    from unprior.engines.transformers.forward import Reader
    from unprior.engines.transformers.levels import Level, Result
    from unprior.engines.transformers.tokens import PromptTokens

MAX_NEW_TOKENS = 64
_MAX_BEAMS = 100  # of a search, each a row of the cache
_LARGE_MODEL = 20_000_000  # parameters; smaller ones are tested in a moment

Item = TypeVar("Item")


def require_torch() -> None:
    """Say how to get torch and transformers when they are not installed."""
    try:
        import torch  # noqa: F401

        from unprior.engines.transformers.torchvision import make_importable

        make_importable()
        import transformers  # noqa: F401
    except ImportError as error:
        raise UnpriorError(
            f"this needs torch and transformers ({error.name} is not installed): pip install 'unprior[hf]'"
        ) from None


class TransformersEngine(LocalEngine):
    """Original answers and exact candidate scores from a transformers model.

    The image is encoded once per example: both prompts share their beginning, which is read once; the original answer
    and the candidate scores branch off from its cache. A self-test at load compares this with plain full passes; a
    model that does not agree is run with full passes, and ``shares_prefix`` says so.

    Parameters
    ----------
    model
        Local folder or hub id.
    revision
        Branch, tag or commit on the hub.
    dtype
        ``auto`` (as stored), ``float32``, ``bfloat16`` or ``float16``. Nothing is ever quantised silently.
    device
        ``cpu``, ``cuda``, ``cuda:1``, …; by default the first accelerator there is.
    device_map
        Spread one model over several devices (needs accelerate), e.g. ``auto``; excludes ``device``.
    attention
        Attention implementation, e.g. ``sdpa`` or ``eager``; by default the model's own choice.
    layout
        The wording around questions.
    self_test
        Compare all ways of scoring with the model's own ``generate`` at load, and take the fastest that agrees. What
        was found out about a large model is remembered for the next start; ``"again"`` finds it out again.
    name
        What score tables call the model; by default its folder or hub id.
    max_new_tokens
        Longest original answer, in tokens; a thinking model needs more than the paper's 64.
    trust_remote_code
        Run Python code that lies beside the weights; a hub model then needs a full commit as revision.
    template_arguments
        What the chat template is told beside the conversation, e.g. ``{"enable_thinking": False}``.
    image_backend
        What prepares images: ``pil``, ``torchvision``, or ``auto``: torchvision where it is installed.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        device: str | None = None,
        device_map: str | None = None,
        attention: str | None = None,
        layout: PromptLayout | None = None,
        self_test: bool | Literal["again"] = True,
        name: str | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        trust_remote_code: bool = False,
        template_arguments: Mapping[str, Any] | None = None,
        image_backend: str = "auto",
    ) -> None:
        """Load model and processor."""
        require_torch()
        from unprior.engines.transformers.forward import Reader
        from unprior.engines.transformers.levels import LEVELS, Scorer
        from unprior.engines.transformers.load_errors import explaining
        from unprior.engines.transformers.loading import load_model, quiet
        from unprior.engines.transformers.self_test import SelfTest
        from unprior.engines.transformers.tokens import PromptEncoder

        source = Source(str(model), revision, trust_remote_code)
        loaded = load_model(source, dtype, device, device_map, attention, image_backend)
        self.model: Any = loaded.model
        """The model itself, for methods that look inside."""
        self.unused_weights = loaded.unused
        """Stored tensors that the model has no place for."""
        if self.model.config.is_encoder_decoder:
            raise UnpriorError(
                f"model {model} is an encoder–decoder ({self.model_type}); only models whose answer continues their "
                f"prompt can be scored: choose a decoder-only model"
            )
        self._name = name or str(model)
        self._layout = layout or PromptLayout()
        with explaining(str(model), "its tokenizer or processor does not fit the model; check the folder's files"):
            self.encoder = PromptEncoder(loaded.processor, self._layout, template_arguments)
            """Turns questions into tokens."""
            self._identity = {**loaded.identity, **self.encoder.prompt_digests()}
            self.reader: Reader = Reader(self.model)
            """Feeds tokens to the model."""
            stop = _stop_tokens(self.model, self.encoder.tokenizer)
            self.stop_tokens = set(stop)
            """Tokens that end an answer."""
            self.encoder.choose_end([token for token in stop if self.reader.knows(token)])
        self.scorer = Scorer(self.reader, self.encoder)
        """Answers and scores, at any level."""
        self.max_new_tokens = max_new_tokens
        """Longest original answer."""
        self.self_test = SelfTest(self.reader, self.encoder, self.scorer, self.tolerance)
        """What was found out about the model at load."""
        self.level: Level = LEVELS[0]
        """How it answers and scores: the fastest way that agrees with the model's own ``generate``."""
        with (
            quiet(),
            explaining(
                str(model), "it cannot read a question about an image; check its processor's files, and the memory"
            ),
        ):
            self.self_test.learn()
            if self_test:
                key = self._tested_as() if self.parameter_count >= _LARGE_MODEL else None
                self.level = self.self_test.choose(key, again=self_test == "again")
        untested = self.self_test.large_limits if self_test else frozenset()
        self._untested = {True: untested, False: untested}  # with and without an image
        self._shared_at_load = self.level.shares

    @property
    def shares_prefix(self) -> bool:
        """Whether both prompts of an example share their beginning, so that its image is encoded once."""
        return self.level.shares

    @property
    def model_type(self) -> str | None:
        """The architecture, as the model's configuration calls it."""
        return getattr(self.model.config, "model_type", None)

    @property
    def capabilities(self) -> Capabilities:
        """Everything: the model runs in this process."""
        return Capabilities(exact_scores=True, hidden_states=True, attention_edits=True, proposes=True)

    @property
    def fingerprint(self) -> str:
        """Changes with weights, precision, attention, preprocessing, prompts and library versions."""
        return fingerprint_of(self._identity, self._layout, self.max_new_tokens, shares_prefix=self._shared_at_load)

    @property
    def encoded_images(self) -> int:
        """Images that went through the vision tower so far."""
        return self.reader.encoded_images

    @property
    def device_type(self) -> str:
        """Where the model runs: ``cpu``, ``cuda``, …"""
        return str(self.model.device.type)

    @property
    def parameter_count(self) -> int:
        """Size of the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        """Greedy answer to one question."""
        prompt = self.encoder.encode(Query(image, question, ()))
        return self.text_of(self.scorer.write(self.level, prompt, self.stop_tokens, self.max_new_tokens))

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries, all with an image or all without."""
        return self._guarded(queries, self._score)

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Original answers and scores for many queries, encoding each image once."""
        return self._guarded(queries, self._answer)

    def propose_batch(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to every query, all queries with an image or all without.

        Beam search of width ``count`` behind the scoring prompt. Images are encoded once: the original answer, the
        search and the scores branch off from one reading.
        """
        check_count(count, _MAX_BEAMS)
        whole = [replace(query, candidates=tuple(dict.fromkeys(query.candidates)), whole=True) for query in queries]
        return self._guarded(whole, lambda prompts: self._propose(prompts, int(count)))

    def score_in_full(self, query: Query) -> CandidateScores:
        """The slow recipe that every shortcut must agree with: one whole pass per candidate, no cache, no batch."""
        from unprior.engines.transformers.levels import LEVELS

        prompt = self.encoder.encode(query)
        return _as_scores(prompt, self.scorer.score(LEVELS[-1], [prompt])[0])

    def _guarded(
        self, queries: Sequence[Query], work: Callable[[list[PromptTokens]], list[Item]]
    ) -> list[Item | QueryFailure]:
        """Tokenise each query, then work on those that could be."""
        results: list[Item | QueryFailure] = [QueryFailure("not reached")] * len(queries)
        prompts: dict[int, PromptTokens] = {}
        for index, query in enumerate(queries):
            try:
                prompts[index] = self.encoder.encode(query)
            except UnpriorError as error:
                results[index] = QueryFailure.from_error(error)
        done: list[Item | QueryFailure] = work_in_parts(list(prompts.values()), work)
        for index, result in zip(prompts, done, strict=True):
            results[index] = result
        return results

    def _score(self, prompts: list[PromptTokens]) -> list[CandidateScores]:
        results = self._exactly(prompts, lambda level: self.scorer.score(level, prompts))
        return list(map(_as_scores, prompts, results))

    def _answer(self, prompts: list[PromptTokens]) -> list[Answered]:
        stop, most = self.stop_tokens, self.max_new_tokens
        results = self._exactly(prompts, lambda level: self.scorer.answer(level, prompts, stop, most))
        return [
            Answered(self.text_of(result.tokens), _as_scores(prompt, result))
            for prompt, result in zip(prompts, results, strict=True)
        ]

    def _propose(self, prompts: list[PromptTokens], count: int) -> list[Proposed]:
        from unprior.engines.transformers.proposals import Proposer

        stop, most = self.stop_tokens, self.max_new_tokens
        proposer = Proposer(self.encoder, count, self._ends, self._answer_tokens)
        if prompts[0].image is None:
            return self._exactly(prompts, lambda level: self.scorer.finish(level, prompts, proposer))
        return self._exactly(prompts, lambda level: self.scorer.write_and_finish(level, prompts, stop, most, proposer))

    def _exactly(self, prompts: list[PromptTokens], work: Callable[[Level], list[Item]]) -> list[Item]:
        """Do the work; the first prompt that is longer than a large limit is tested like those at load."""
        from unprior.engines.transformers.levels import LEVELS

        self.reader.longest = 0
        results = work(self.level)
        shown, length, before = prompts[0].image is not None, self.reader.longest, self.level
        passed = {limit for limit in self._untested[shown] if limit < length}
        if not passed:
            return results
        self._untested[shown] -= passed
        longest = max(prompts, key=self.encoder.length)
        self.level = self.self_test.choose_for(self.self_test.beside_short(longest), LEVELS[LEVELS.index(before) :])
        return results if self.level is before else work(self.level)

    @property
    def _ends(self) -> tuple[int, ...]:
        """Tokens that end an answer, first the one that whole answers are scored with."""
        end = self.encoder.end
        others = sorted(token for token in self.stop_tokens if token != end and self.reader.knows(token))
        return (*([] if end is None else [end]), *others)

    @cached_property
    def _answer_tokens(self) -> list[bool]:
        return self.encoder.answer_tokens(self.model.config)

    def original_inputs(self, prompts: list[PromptTokens]) -> dict[str, Any]:
        """Model inputs of the prompts that original answers continue, all with an image or all without."""
        return self.encoder.inputs([prompt.original_text for prompt in prompts], [prompt.image for prompt in prompts])

    def text_of(self, tokens: list[int]) -> str:
        """What was written; a thinking block that the template has opened belongs to it."""
        return self.encoder.written(tokens)

    def _tested_as(self) -> str:
        """Changes with everything that the self-test depends on."""
        import torch

        place = torch.cuda.get_device_name(self.model.device) if self.device_type == "cuda" else self.device_type
        return fingerprint_of({**self._identity, "place": place}, self._layout, 0)

    @property
    def tolerance(self) -> float:
        """Largest difference between two ways to one score that the model's precision explains."""
        return explained_difference(self._identity["dtype"])


def _as_scores(prompt: PromptTokens, result: Result) -> CandidateScores:
    counts, first = tuple(len(tokens) for tokens in prompt.candidates), result.first
    return CandidateScores(tuple(result.scores), counts, first_scores=None if first is None else tuple(first))


def _stop_tokens(model: Any, tokenizer: Any) -> list[int]:
    """The tokens at which the model's own ``generate`` stops; the tokenizer's only where it would not stop at all."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    tokens = configured if isinstance(configured, list | tuple) else [configured]
    known = [token for token in tokens if token is not None] or [tokenizer.eos_token_id]
    return [token for token in known if token is not None]
