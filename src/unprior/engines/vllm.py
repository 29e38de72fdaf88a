"""The vLLM engine: a model in this process, in large batches."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from unprior.answer_forms import read_open_answer
from unprior.engines.answer_search import SHOWN_TOKENS, AnswerSearch, as_proposed, check_count
from unprior.engines.batches import work_in_parts
from unprior.engines.candidate_tree import Beginning, NextTokens, Token, branch_points, sum_up
from unprior.engines.local import LocalEngine
from unprior.engines.openai.replies import MAX_NAMED_TOKENS
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
    from unprior.engines.transformers.tokens import PromptTokens

MAX_NEW_TOKENS = 64
_BATCH = 64


class VllmEngine(LocalEngine):
    """Original answers and exact candidate scores from a model that vLLM runs in this process.

    Prompts are laid out and tokenised as in the transformers engine, so the two score the same tokens.

    Parameters
    ----------
    model
        Local folder or hub id.
    revision
        Branch, tag or commit on the hub.
    dtype
        ``auto`` (as stored), ``float32``, ``bfloat16`` or ``float16``.
    layout
        The wording around questions.
    name
        What score tables call the model; by default its folder or hub id.
    options
        Further settings of ``vllm.LLM``, e.g. ``{"tensor_parallel_size": 4, "max_model_len": 4096}``; they are part of
        the fingerprint.
    max_new_tokens
        Longest original answer, in tokens; a thinking model needs more than the paper's 64.
    trust_remote_code
        Run Python code that lies beside the weights; a hub model then needs a full commit as revision.
    template_arguments
        What the chat template is told beside the conversation, e.g. ``{"enable_thinking": False}``.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        layout: PromptLayout | None = None,
        name: str | None = None,
        options: dict[str, Any] | None = None,
        max_new_tokens: int = MAX_NEW_TOKENS,
        trust_remote_code: bool = False,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Load the model."""
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # standard output is for results
        try:
            from vllm import LLM
        except ImportError as error:
            raise UnpriorError(
                f"the engine vllm needs vLLM ({error.name} is not installed): pip install 'vllm>=0.26'"
            ) from None
        from unprior.engines.transformers.load_errors import explaining
        from unprior.engines.transformers.loading import load_processor, quiet, stores_single_precision
        from unprior.engines.transformers.tokens import PromptEncoder

        self._layout, self._name = layout or PromptLayout(), name or str(model)
        self.max_new_tokens = max_new_tokens
        """Longest original answer."""
        settings = {"limit_mm_per_prompt": {"image": 1}, "logprobs_mode": "raw_logprobs", "seed": 0, **(options or {})}
        hint = "check the folder or hub id and the settings; vLLM may have said more above"
        source = Source(str(model), revision, trust_remote_code)
        with explaining(str(model), hint), quiet():
            self.encoder = PromptEncoder(load_processor(source), self._layout, template_arguments)
            """Turns questions into tokens."""
            if dtype == "auto" and stores_single_precision(source):
                dtype = "float32"  # vLLM would take half precision
            self.llm = LLM(str(model), **source.options, dtype=dtype, **settings)
            """The model itself."""
            self._identity = self._describe(source, options or {})
            self.encoder.choose_end(self._stop_tokens)

    @property
    def model_type(self) -> str | None:
        """The architecture, as the model's configuration calls it."""
        return getattr(self.llm.llm_engine.model_config.hf_config, "model_type", None)

    @property
    def capabilities(self) -> Capabilities:
        """Exact scores, in large batches."""
        return Capabilities(exact_scores=True, batch_size=_BATCH, proposes=self.encoder.end is not None)

    @property
    def fingerprint(self) -> str:
        """Changes with weights, precision, preprocessing, layout, settings and library versions."""
        return fingerprint_of(self._identity, self._layout, self.max_new_tokens)

    @property
    def tolerance(self) -> float:
        """Largest difference between two ways to one score that the model's precision explains."""
        return explained_difference(self._identity["dtype"])

    def original_answer(self, image: Image.Image | None, question: str) -> str:
        """Greedy answer to one question."""
        return self._write([self.encoder.encode(Query(image, question, ()))])[0]

    def score_batch(self, queries: Sequence[Query]) -> list[CandidateScores | QueryFailure]:
        """Scores for many queries."""
        return work_in_parts(list(queries), lambda part: self._score([self.encoder.encode(query) for query in part]))

    def answer_batch(self, queries: Sequence[Query]) -> list[Answered | QueryFailure]:
        """Original answers and scores for many queries."""
        return work_in_parts(list(queries), lambda part: self._answer([self.encoder.encode(query) for query in part]))

    def propose_batch(self, queries: Sequence[Query], count: int) -> list[Proposed | QueryFailure]:
        """The most probable whole answers to every query, and their scores beside those of the query's candidates.

        vLLM's own search is not used: it ends answers at the tokenizer's end token alone, lets special tokens into
        beams, and takes all its steps even when every answer has ended. This one asks for the same distributions.
        """
        check_count(count)

        def work(part: list[Query]) -> list[Proposed]:
            return self._propose([self.encoder.encode(replace(query, whole=True)) for query in part], count)

        return work_in_parts(list(queries), work)

    def score_in_full(self, query: Query) -> CandidateScores:
        """Scores past vLLM's cache of prompts, for ``unprior doctor``."""
        return self._score([self.encoder.encode(query)], in_full=True)[0]

    def _answer(self, prompts: list[PromptTokens]) -> list[Answered]:
        texts, scores = self._write(prompts), self._score(prompts)
        return [Answered(text, scored) for text, scored in zip(texts, scores, strict=True)]

    def _write(self, prompts: list[PromptTokens]) -> list[str]:
        return [self.encoder.written(tokens) for tokens in self._write_tokens(prompts)]

    def _write_tokens(self, prompts: list[PromptTokens]) -> list[list[int]]:
        settings = [{"max_tokens": self.max_new_tokens}] * len(prompts)
        requests = [_request(prompt, self.encoder.tokenize_prompt(prompt.original_text)) for prompt in prompts]
        return [list(one.token_ids) for one in self._generate(requests, settings)]

    def _propose(self, prompts: list[PromptTokens], count: int) -> list[Proposed]:
        shown = [prompt for prompt in prompts if prompt.image is not None]
        written = iter(self._write_tokens(shown))
        texts: list[str | None] = []
        firsts: list[int] = []
        wholes: list[PromptTokens] = []
        found: list[set[str]] = []
        for prompt, beams in zip(prompts, self._search(prompts, count), strict=True):
            tokens = next(written) if prompt.image is not None else []
            texts.append(self.encoder.written(tokens) if prompt.image is not None else None)
            candidates = dict(zip(prompt.strings, prompt.candidates, strict=True))
            original = read_open_answer(texts[-1] or "")
            self._add(candidates, prompt, original or "", tokens)
            firsts.append(len(candidates))
            found.append(set())
            for beam in beams:
                text = self.encoder.tokenizer.decode(beam, skip_special_tokens=True)
                found[-1] |= self._add(candidates, prompt, text, beam)
            wholes.append(replace(prompt, strings=tuple(candidates), candidates=list(candidates.values())))
        # All are scored in one way, however they were found.
        scores = self._score(wholes)
        return [
            as_proposed(text, first, whole.strings, scored, by_search)
            for text, first, whole, scored, by_search in zip(texts, firsts, wholes, scores, found, strict=True)
        ]

    def _add(
        self, candidates: dict[str, list[int]], prompt: PromptTokens, text: str, tokens: Sequence[int]
    ) -> set[str]:
        """Add a text that the model wrote, if it can be a candidate; gives the candidate."""
        placed = self.encoder.whole_answer(prompt, text, tokens)
        if placed is None:
            return set()
        candidates.setdefault(*placed)
        return {placed[0]}

    def _search(self, prompts: list[PromptTokens], count: int) -> list[list[list[int]]]:
        """Answers to all prompts, step by step together."""
        end, usable = self.encoder.end, self._answer_tokens
        if end is None:
            return [[] for _ in prompts]

        def can_follow(token: Token) -> bool:
            return isinstance(token, int) and token in usable

        searches = [AnswerSearch(count, end, can_follow) for _ in prompts]
        while places := [(index, beam) for index, search in enumerate(searches) for beam in search.running]:
            requests = [_request(prompts[index], [*prompts[index].scoring, *beam]) for index, beam in places]
            found = self._generate(requests, [{"max_tokens": 1, "logprobs": SHOWN_TOKENS}] * len(places))
            read: list[dict[Beginning, NextTokens]] = [{} for _ in prompts]
            for (index, beam), one in zip(places, found, strict=True):
                shown = {token: float(value.logprob) for token, value in one.logprobs[0].items()}
                read[index][beam] = NextTokens({token: value for token, value in shown.items() if math.isfinite(value)})
            for search, steps in zip(searches, read, strict=True):
                if search.running:
                    search.advance(steps)
        return [[list(map(int, beam)) for beam in search.answers()] for search in searches]

    @cached_property
    def _answer_tokens(self) -> frozenset[int]:
        """Tokens that can stand in an answer."""
        usable = self.encoder.answer_tokens(self.llm.llm_engine.model_config.hf_config)
        return frozenset(token for token, may in enumerate(usable) if may) - set(self._stop_tokens)

    @property
    def _stop_tokens(self) -> list[int]:
        """Tokens at which vLLM stops by itself, the model's own first."""
        config = self.llm.llm_engine.model_config
        told = config.try_get_generation_config().get("eos_token_id")
        tokens = [*(told if isinstance(told, list | tuple) else [told]), self.encoder.tokenizer.eos_token_id]
        return list(
            dict.fromkeys(int(token) for token in tokens if token is not None and token < config.get_vocab_size())
        )

    def _score(self, prompts: list[PromptTokens], *, in_full: bool = False) -> list[CandidateScores]:
        """Read the distributions at every branch of all candidates in one go."""
        requests, settings, places = [], [], []
        for index, prompt in enumerate(prompts):
            for beginning, following in branch_points([tuple(tokens) for tokens in prompt.candidates]).items():
                for start in range(0, len(following), MAX_NAMED_TOKENS):
                    asked = following[start : start + MAX_NAMED_TOKENS]
                    # Only prompts with the same salt are found in the cache.
                    salt = {"cache_salt": secrets.token_hex()} if in_full else {}
                    requests.append(_request(prompt, [*prompt.scoring, *beginning]) | salt)
                    settings.append({"max_tokens": 1, "logprob_token_ids": list(asked)})
                    places.append((index, beginning, asked))
        read: list[dict[Beginning, NextTokens]] = [{} for _ in prompts]
        for (index, beginning, asked), one in zip(places, self._generate(requests, settings), strict=True):
            found = {token: float(one.logprobs[0][token].logprob) for token in asked if token in one.logprobs[0]}
            if len(found) < len(asked) or not all(map(math.isfinite, found.values())):
                raise UnpriorError("vLLM left out log-probabilities that were asked for; use version 0.26 or newer")
            before = read[index][beginning].visible if beginning in read[index] else {}
            read[index][beginning] = NextTokens({**before, **found})
        return [
            sum_up([tuple(tokens) for tokens in prompt.candidates], steps)
            for prompt, steps in zip(prompts, read, strict=True)
        ]

    def _generate(self, requests: list[dict[str, Any]], settings: list[dict[str, Any]]) -> list[Any]:
        from vllm import SamplingParams

        parameters = [SamplingParams(temperature=0.0, **setting) for setting in settings]
        return [output.outputs[0] for output in self.llm.generate(requests, parameters, use_tqdm=False)]

    def _describe(self, source: Source, options: dict[str, Any]) -> dict[str, str]:
        import vllm
        from vllm.transformers_utils.processor import cached_processor_from_config

        from unprior.engines.transformers.loading import describe

        config = self.llm.llm_engine.model_config
        # vLLM's own processor prepares images, with the options it was given.
        known = describe(source, config.hf_config, str(config.dtype), cached_processor_from_config(config))
        known |= self.encoder.prompt_digests()
        return {**known, "engine": "vllm", "vllm": vllm.__version__, "options": json.dumps(options, sort_keys=True)}


def _request(prompt: PromptTokens, tokens: Sequence[int | str]) -> dict[str, Any]:
    """A prompt for vLLM, which makes the image's many tokens of its one."""
    shown = {} if prompt.image is None else {"multi_modal_data": {"image": prompt.image}}
    return {"prompt_token_ids": list(tokens), **shown}
