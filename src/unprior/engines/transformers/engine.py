"""The transformers engine: any image-text-to-text model with a chat template, in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from PIL import Image

from unprior.engines.batches import work_in_parts
from unprior.engines.local import LocalEngine
from unprior.engines.precision import HALF, explained_difference
from unprior.engines.protocol import Answered, CandidateScores, Capabilities, Query, QueryFailure, fingerprint_of
from unprior.engines.transformers.source import Source
from unprior.engines.transformers.tokens import PromptEncoder, PromptTokens
from unprior.errors import UnpriorError
from unprior.prompts import PromptLayout

if TYPE_CHECKING:
    from unprior.engines.transformers.forward import Branch, Reader

MAX_NEW_TOKENS = 64

Result = TypeVar("Result")


def require_torch() -> None:
    """Say how to get torch and transformers when they are not installed."""
    try:
        import torch  # noqa: F401
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
        Check prefix sharing at load.
    name
        What score tables call the model; by default its folder or hub id.
    max_new_tokens
        Longest original answer, in tokens; a thinking model needs more than the paper's 64.
    trust_remote_code
        Run Python code that lies beside the weights; a hub model then needs a full commit as revision.
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
        self_test: bool = True,
        name: str | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        trust_remote_code: bool = False,
    ) -> None:
        """Load model and processor."""
        require_torch()
        from unprior.engines.transformers.forward import Reader
        from unprior.engines.transformers.load_errors import explaining
        from unprior.engines.transformers.loading import load_model

        source = Source(str(model), revision, trust_remote_code)
        loaded = load_model(source, dtype, device, device_map, attention)
        self.model: Any = loaded.model
        """The model itself, for methods that look inside."""
        self.unused_weights = loaded.unused
        """Stored tensors that the model has no place for."""
        self._name = name or str(model)
        self._layout = layout or PromptLayout()
        with explaining(str(model), "its tokenizer or processor does not fit the model; check the folder's files"):
            self.encoder = PromptEncoder(loaded.processor, self._layout)
            """Turns questions into tokens."""
            self._identity = {**loaded.identity, **self.encoder.prompt_digests()}
            self.reader: Reader = Reader(self.model)
            """Feeds tokens to the model."""
            self.stop_tokens = _stop_tokens(self.model, self.encoder.tokenizer)
            """Tokens that end an answer."""
        self.max_new_tokens = max_new_tokens
        """Longest original answer."""
        self.shares_prefix = True
        """Whether prefix sharing passed its self-test; otherwise every pass reads the whole prompt."""
        if self_test:
            with explaining(
                str(model), "it cannot read a question about an image; check its processor's files, and the memory"
            ):
                self.shares_prefix = self._largest_difference() <= self.tolerance

    @property
    def model_type(self) -> str | None:
        """The architecture, as the model's configuration calls it."""
        return getattr(self.model.config, "model_type", None)

    @property
    def capabilities(self) -> Capabilities:
        """Everything: the model runs in this process."""
        return Capabilities(exact_scores=True, hidden_states=True, attention_edits=True)

    @property
    def fingerprint(self) -> str:
        """Changes with weights, precision, attention, preprocessing, prompts and library versions."""
        return fingerprint_of(self._identity, self._layout, self.max_new_tokens, shares_prefix=self.shares_prefix)

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
        if not self.shares_prefix:
            return self.text_of(self._decode_in_full(prompt, self.max_new_tokens))
        return self._decode(self._read_original([prompt]))[0]

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries, all with an image or all without."""
        return self._guarded(queries, self._score)

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Original answers and scores for many queries, encoding each image once."""
        return self._guarded(queries, self._answer)

    def score_in_full(self, query: Query) -> CandidateScores:
        """The slow recipe that every shortcut must agree with: one whole pass per candidate, no cache, no batch."""
        prompt = self.encoder.encode(query)
        return _as_scores([prompt], [self._score_in_full(prompt)])[0]

    def _guarded(
        self, queries: Sequence[Query], work: Callable[[list[PromptTokens]], list[Result]]
    ) -> list[Result | QueryFailure]:
        """Tokenise each query, then work on those that could be."""
        results: list[Result | QueryFailure] = [QueryFailure("not reached")] * len(queries)
        prompts: dict[int, PromptTokens] = {}
        for index, query in enumerate(queries):
            try:
                prompts[index] = self.encoder.encode(query)
            except UnpriorError as error:
                results[index] = QueryFailure(str(error))
        done: list[Result | QueryFailure] = work_in_parts(list(prompts.values()), work)
        for index, result in zip(prompts, done, strict=True):
            results[index] = result
        return results

    def _score(self, prompts: list[PromptTokens]) -> list[CandidateScores]:
        from unprior.engines.transformers.forward import score_after

        if not self.shares_prefix:
            return _as_scores(prompts, [self._score_in_full(prompt) for prompt in prompts])
        branch = self._read(prompts, [prompt.scoring_text for prompt in prompts], [p.scoring for p in prompts])
        return _as_scores(prompts, score_after(self.reader, branch, [prompt.candidates for prompt in prompts]))

    def _answer(self, prompts: list[PromptTokens]) -> list[Answered]:
        from unprior.engines.transformers.forward import score_after

        # Every row gives up the same number of tokens at the end of its original prompt, so that the shared
        # beginnings end in one column; the scoring prompts go on from there.
        cut = max(prompt.end for prompt in prompts)
        if not self.shares_prefix:
            texts = [self.text_of(self._decode_in_full(prompt, self.max_new_tokens)) for prompt in prompts]
            return [Answered(text, scores) for text, scores in zip(texts, self._score(prompts), strict=True)]
        whole = self._read_original(prompts)
        texts = self._decode(whole)
        if cut > min(prompt.after_image for prompt in prompts):  # the image stands too close to the end to share it
            return [Answered(text, scores) for text, scores in zip(texts, self._score(prompts), strict=True)]
        ends = [prompt.scoring[len(prompt.original) - cut :] for prompt in prompts]
        scoring_end = self._read_end(whole.without_last(cut), ends)
        scores = score_after(self.reader, scoring_end, [prompt.candidates for prompt in prompts])
        return [Answered(text, scored) for text, scored in zip(texts, _as_scores(prompts, scores), strict=True)]

    def _read_end(self, beginning: Branch, ends: list[list[int]]) -> Branch:
        """Read the ends of the scoring prompts; each row keeps the distribution after its own last token."""
        import torch

        from unprior.engines.transformers.forward import Branch, pad_right

        ids, mask = pad_right(ends, self.encoder.filler)
        branch = self.reader.follow(beginning, ids, mask)
        last = mask.sum(dim=1).to(branch.logits.device) - 1
        rows = torch.arange(len(ends), device=branch.logits.device)
        return Branch(branch.cache, branch.mask, branch.offset, branch.logits[rows, last][:, None])

    def _read_original(self, prompts: list[PromptTokens]) -> Branch:
        return self.reader.read(self.original_inputs(prompts))

    def _read(self, prompts: list[PromptTokens], texts: list[str], tokens: list[list[int]]) -> Branch:
        """Read whole prompts, all with an image or all without."""
        return self.reader.read(self._inputs(prompts, texts, tokens))

    def original_inputs(self, prompts: list[PromptTokens]) -> dict[str, Any]:
        """Model inputs of the prompts that original answers continue, all with an image or all without."""
        return self._inputs(prompts, [prompt.original_text for prompt in prompts], [p.original for p in prompts])

    def _inputs(self, prompts: list[PromptTokens], texts: list[str], tokens: list[list[int]]) -> dict[str, Any]:
        from unprior.engines.transformers.forward import pad_left

        images = [prompt.image for prompt in prompts if prompt.image is not None]
        if not images:
            ids, mask = pad_left(tokens, self.encoder.filler)
            return {"input_ids": ids, "attention_mask": mask}
        if len(images) < len(prompts):
            raise UnpriorError("a batch must be all with images or all without")
        inputs = self.encoder.with_images(texts, images)
        for row, (prompt, listed) in enumerate(zip(prompts, tokens, strict=True)):
            # The image becomes many tokens; what follows it must be what the tokenizer alone makes of it.
            after = listed[len(listed) - prompt.after_image :] if prompt.after_image else []
            if after and inputs["input_ids"][row, -len(after) :].tolist() != after:
                raise UnpriorError("the processor tokenises the end of the prompt differently with an image")
        return inputs

    def _decode(self, branch: Branch) -> list[str]:
        from unprior.engines.transformers.forward import decode_greedily

        written = decode_greedily(self.reader, branch, self.stop_tokens, self.max_new_tokens)
        return [self.text_of(tokens) for tokens in written]

    def text_of(self, tokens: list[int]) -> str:
        """What was written; a thinking block that the template has opened belongs to it."""
        return self.encoder.written(tokens)

    def _decode_in_full(self, prompt: PromptTokens, most: int) -> list[int]:
        """The plain recipe: every token after reading everything before it anew."""
        from unprior.engines.transformers.forward import Rereader, decode_greedily

        reader = Rereader(self.reader)
        return decode_greedily(reader, reader.read(self.original_inputs([prompt])), self.stop_tokens, most)[0]

    def _score_in_full(self, prompt: PromptTokens) -> list[float]:
        """The plain recipe: one whole pass per candidate, no cache; slow, and right by construction."""
        import torch

        from unprior.engines.transformers.forward import append_tokens

        scores = []
        for tokens in prompt.candidates:
            inputs = self._inputs([prompt], [prompt.scoring_text], [prompt.scoring])
            append_tokens(inputs, torch.tensor([tokens]))
            logits = self.reader.read(inputs, keep=len(tokens) + 1).logits[0]
            distribution = torch.log_softmax(logits, dim=-1)
            scores.append(sum(float(distribution[step, token]) for step, token in enumerate(tokens)))
        return scores

    @property
    def tolerance(self) -> float:
        """Largest difference between two ways to one score that the model's precision explains."""
        return explained_difference(self._identity["dtype"])

    def _largest_difference(self) -> float:
        """Shared prefixes against full passes: two images of two sizes, without an image in between, three lengths."""
        generator = np.random.default_rng(0)
        images = [
            Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8))
            for height, width in ((64, 64), (48, 80))
        ]
        candidates = tuple(self._layout.continuation.format(label=label) for label in ("A", "yes", "seventeen zebras"))
        queries = [
            Query(images[0], "How many stripes are there?\nAnswer with one word.", candidates),
            Query(images[1], "Is this a zebra?", candidates),
        ]
        plain = [Query(None, query.text, query.candidates) for query in queries]
        difference = 0.0
        try:
            for batch in (queries, plain, queries[:1]):
                prompts = [self.encoder.encode(query) for query in batch]
                if batch is plain:
                    results = self._score(prompts)
                else:
                    results = [answered.scored for answered in self._answer(prompts)]
                if self._wrote_otherwise(prompts[0]):
                    return float("inf")
                for prompt, result in zip(prompts, results, strict=True):
                    slow = self._score_in_full(prompt)
                    difference = max(difference, float(np.abs(np.subtract(result.scores, slow)).max()))
        except UnpriorError:
            raise
        except Exception:  # a cache of another kind may raise anything; full passes need none
            for query in (queries[0], plain[0]):
                self.score_in_full(query)  # whatever is wrong here is wrong with the model
            return float("inf")
        return difference

    def _wrote_otherwise(self, prompt: PromptTokens) -> bool:
        """Whether the first tokens of an answer differ with and without a cache (ties in half precision may)."""
        from unprior.engines.transformers.forward import decode_greedily

        most = 3
        fast = decode_greedily(self.reader, self._read_original([prompt]), self.stop_tokens, most)[0]
        return self.tolerance < HALF and fast != self._decode_in_full(prompt, most)


def _as_scores(prompts: list[PromptTokens], scores: list[list[float]]) -> list[CandidateScores]:
    return [
        CandidateScores(tuple(row), tuple(len(tokens) for tokens in prompt.candidates))
        for prompt, row in zip(prompts, scores, strict=True)
    ]


def _stop_tokens(model: Any, tokenizer: Any) -> set[int]:
    configured = getattr(model.generation_config, "eos_token_id", None)
    tokens = configured if isinstance(configured, list) else [configured, tokenizer.eos_token_id]
    return {token for token in tokens if token is not None}
