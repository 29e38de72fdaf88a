"""Which level a model permits: every level is compared with the model's own ``generate`` before it is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import GenerationConfig

from unprior.engines.precision import CLOSE, HALF
from unprior.engines.protocol import Query
from unprior.engines.transformers.forward import Inputs, Reader
from unprior.engines.transformers.levels import LEVELS, Level, Result, Scorer
from unprior.engines.transformers.load_errors import told
from unprior.engines.transformers.tokens import PromptEncoder, PromptTokens
from unprior.engines.transformers.verdicts import recall, remember
from unprior.errors import UnpriorError

_LARGEST_TESTED = 2048  # prompts that exceed a larger limit are tested when the first one comes
_ORIGINAL = "original_max_position_embeddings"
_ANSWER_TOKENS = 3
_TIMES_NOISE = 4
_SENTENCE = "The zebra stands on the grass beside the tree and looks at the road."


@dataclass(frozen=True, slots=True)
class Trial:
    """How a level did."""

    level: Level
    difference: float
    """Largest difference from ``generate`` in a candidate's score; infinite if it could not be computed."""
    problem: str | None = None
    """What went wrong, if it could not be computed."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.level.name}: {self.problem or f'{self.difference:.2g} nats'}"


@dataclass
class SelfTest:
    """Chooses a level."""

    reader: Reader
    encoder: PromptEncoder
    scorer: Scorer
    tolerance: float
    """Largest difference that the precision explains on models that are noisy themselves."""
    trials: list[Trial] = field(default_factory=list)
    """All levels that were tried, the chosen one last."""
    noise: float | None = None
    """How far the model is from itself in half precision, in nats, where that is more than the usual margin."""
    _generated: dict[Any, Any] = field(default_factory=dict)
    """What ``generate`` gave so far: prompts come back in other batches, and levels mostly write the same answer."""

    def choose(self, key: str | None = None, *, again: bool = False) -> Level:
        """The first level that agrees with ``generate`` on small prompts; refuses a model without one.

        ``key``: what a verdict is remembered under; None remembers nothing. ``again``: do not rely on an earlier one.
        """
        known = None if key is None or again else recall(key)
        level = None if known is None else next((each for each in LEVELS if each.name == known["level"]), None)
        if known is not None and level is not None:
            self.trials, self.noise = [Trial(level, known["difference"])], known.get("noise")
            return level
        level = self.choose_for(self._batches(), LEVELS)
        if key is not None:
            remember(key, {"level": level.name, "difference": self.trials[-1].difference, "noise": self.noise})
        return level

    def choose_for(self, batches: Sequence[Sequence[PromptTokens]], levels: Sequence[Level]) -> Level:
        """The first of the levels that agrees with ``generate`` on these prompts, each batch read in one piece.

        Where the first does not agree closely, the model's own noise is measured: no way can be expected to come much
        closer to ``generate`` than plain full passes do.
        """
        self._generated.clear()
        expected = [[self._reference(prompt) for prompt in batch] for batch in batches]
        allowed, plain = self.closeness, None
        for level in levels:
            trial = plain if plain and plain.level is level else self._try(level, batches, expected)
            self.trials.append(trial)
            if trial.difference > allowed and plain is None:
                plain = self._try(levels[-1], batches, expected)
                allowed = self._allowed(plain.difference)
            if trial.difference <= allowed:
                self._generated.clear()
                return level
        if plain is not None and self.tolerance >= HALF and math.isfinite(plain.difference):
            # Half precision can set a model against itself, e.g. where experts change; then no way does better.
            self.noise = plain.difference
            return next(trial.level for trial in self.trials[-len(levels) :] if trial.difference <= self.noise)
        tried = "; ".join(map(str, self.trials))
        raise UnpriorError(
            f"no way of scoring agrees with the model's own generate() within {allowed:.2g} nats ({tried}); "
            f"its scores would not be exact, so it is refused. Try another precision (dtype float32) or attention "
            f"(eager), or a newer transformers"
        )

    @property
    def closeness(self) -> float:
        """A difference so small that the precision explains it on any model, in nats."""
        return CLOSE[self.tolerance >= HALF]

    def _allowed(self, noise: float) -> float:
        """The largest difference to accept, given that of plain full passes."""
        if not math.isfinite(noise):
            return self.tolerance if self.tolerance >= HALF else self.closeness
        return min(max(self.closeness, _TIMES_NOISE * noise), self.tolerance)

    @property
    def limits(self) -> set[int]:
        """Tokens after which the model may read otherwise: some layers forget, or positions are spread out."""
        text = self.reader.model.config.get_text_config()
        found = [getattr(text, name, None) for name in ("sliding_window", "attention_chunk_size", _ORIGINAL)]
        found += _values(_ORIGINAL, getattr(text, "rope_parameters", None))
        return {size for size in found if isinstance(size, int) and size > 0}

    @property
    def large_limits(self) -> frozenset[int]:
        """Those that are not tested at load."""
        return frozenset(limit for limit in self.limits if limit > _LARGEST_TESTED)

    def beside_short(self, prompt: PromptTokens) -> list[list[PromptTokens]]:
        """Batches that test a long prompt: beside a short one, which it must not change, and alone."""
        short = next(batch[0] for batch in self._batches() if (batch[0].image is None) is (prompt.image is None))
        return [[short, prompt], [prompt]]

    def _batches(self) -> list[list[PromptTokens]]:
        """Two images of two sizes; no image; an image again, alone; and a prompt past every small limit."""
        generator = np.random.default_rng(0)
        images = [
            Image.fromarray(generator.integers(0, 256, (height, width, 3), dtype=np.uint8))
            for height, width in ((64, 64), (48, 80))
        ]
        labels, wording = ("A", "yes", "seventeen", "seventeen zebras"), self.encoder.layout.continuation
        candidates = tuple(wording.format(label=label) for label in labels)
        questions = ("How many stripes are there?\nAnswer with one word.", "Is this a zebra?")
        shown = [Query(image, text, candidates) for image, text in zip(images, questions, strict=True)]
        hidden = [Query(None, text, candidates) for text in questions]
        batches = [shown, hidden, shown[:1]]
        for limit in sorted(self.limits - self.large_limits):
            many = 2 + limit // max(1, len(self.encoder.tokenize(_SENTENCE)))
            long = " ".join([_SENTENCE] * many)
            batches.append([shown[1], Query(images[0], f"{long}\n{questions[0]}", candidates)])
        return [[self.encoder.encode(query) for query in batch] for batch in batches]

    def learn(self) -> None:
        """How inputs grow with the text, and how caches can be forked."""
        first = self._batches()[0][0]
        shorter, longer = (
            self.encoder.inputs([text], [first.image]) for text in (first.original_text, first.scoring_text)
        )
        self.reader.learn_per_token(shorter, longer)
        try:
            branch = self.reader.read(shorter)
            self.reader.learn_forks(branch, torch.tensor([first.candidates[-1]]))
        except Exception:  # caches of other kinds may raise anything; then they are copied whole, or not used
            return

    def _try(
        self, level: Level, batches: Sequence[Sequence[PromptTokens]], expected: Sequence[Sequence[Reference]]
    ) -> Trial:
        difference = 0.0
        try:
            for batch, references in zip(batches, expected, strict=True):
                if batch[0].image is None:
                    results = self.scorer.score(level, batch)
                else:
                    results = self.scorer.answer(level, batch, set(), _ANSWER_TOKENS)
                for prompt, result, reference in zip(batch, results, references, strict=True):
                    difference = max(difference, self._difference(prompt, result, reference))
        except Exception as error:  # whatever a model's code raises, a plainer level may do without it
            return Trial(level, math.inf, told(error))
        return Trial(level, difference)

    def _difference(self, prompt: PromptTokens, result: Result, reference: Reference) -> float:
        scores = [reference.score(tokens) for tokens in prompt.candidates]
        pairs = zip(result.scores, scores, strict=True)
        largest = max(abs(one - other) for one, other in pairs if other is not None)
        if math.isnan(largest):
            return math.inf
        if result.tokens:
            logits = self._forced(prompt.original_text, prompt.image, result.tokens)
            for step, token in enumerate(result.tokens):
                # Greedy decoding takes the best token; precision explains another one only if both are about as good.
                largest = max(largest, float(logits[step].max() - logits[step, token]))
        return largest

    def _reference(self, prompt: PromptTokens) -> Reference:
        path = max(prompt.candidates, key=len)
        try:
            logits = self._forced(prompt.scoring_text, prompt.image, path)
        except Exception as error:  # a model's own code may raise anything
            if prompt.image is not None:
                raise
            raise UnpriorError(
                f"the model cannot read a question without an image ({told(error)}), so it has no prior that could be "
                f"subtracted; choose a model that also takes text alone"
            ) from None
        return Reference(path, torch.log_softmax(logits, dim=-1))

    def _forced(self, text: str, image: Image.Image | None, tokens: list[int]) -> Any:
        """Logits before each of the tokens, from ``generate`` that may take no others; shape (tokens, vocabulary)."""
        key = text, id(image), tuple(tokens)
        if key not in self._generated:
            self._generated[key] = self._generate(self.encoder.inputs([text], [image]), tokens)
        return self._generated[key]

    def _generate(self, inputs: Inputs, tokens: Sequence[int]) -> Any:
        steps = iter(tokens)
        config = GenerationConfig(
            do_sample=False, num_beams=1, max_new_tokens=len(tokens), pad_token_id=self.encoder.filler,
            output_logits=True, return_dict_in_generate=True,
            eos_token_id=-1,  # none: a forced token may be one that the model's own settings stop at
        )  # fmt: skip
        self.reader.forget_positions()
        with torch.inference_mode():
            output = self.reader.model.generate(
                **self.reader.on_device(inputs),
                generation_config=config,
                prefix_allowed_tokens_fn=lambda _row, _ids: [next(steps)],
            )
        return torch.cat([logits.float() for logits in output.logits])


def _values(key: str, content: object) -> list[object]:
    """All values of a key in nested dictionaries: some models have settings of positions for every kind of layer."""
    if not isinstance(content, dict):
        return []
    return [content.get(key), *(value for inner in content.values() for value in _values(key, inner))]


@dataclass(frozen=True, slots=True)
class Reference:
    """What ``generate`` says along one candidate."""

    path: list[int]
    log_probabilities: Any
    """Before each token of the path; shape (tokens, vocabulary)."""

    def score(self, tokens: list[int]) -> float | None:
        """The score of a candidate that leaves the path at its last token, if at all; None for others."""
        if tokens[:-1] != self.path[: len(tokens) - 1]:
            return None
        return sum(float(self.log_probabilities[step, token]) for step, token in enumerate(tokens))
