"""The plan of a scoring run: what has to be asked, chunk by chunk, and under which keys the results are stored.

Image scores are asked for once per example. Prior scores do not depend on the image, so they are asked for once per
question and view and shared by all its images; so are those of the same claims asked in another way
(``unprior.scoring.claims``). A plan goes through a benchmark in chunks and forgets each one, so that memory does not
grow with the number of examples. An open question is one result, candidates and prior included, because what is scored
depends on what the model proposes (``unprior.scoring.open_answers``).
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from PIL import Image

from unprior.benchmarks.schema import OPEN, Benchmark, Example
from unprior.calibration.stable import check_prior
from unprior.engines.answer_search import MAX_ANSWER_TOKENS
from unprior.engines.load import BEAMS, CANDIDATES, TEXT_BEAMS
from unprior.engines.protocol import EngineInfo
from unprior.errors import UnpriorError, did_you_mean
from unprior.images import ImageError, mean_image, open_image, read_image_file
from unprior.prompts import PromptLayout
from unprior.scores.priors import VIEWS
from unprior.scores.provenance import Provenance
from unprior.scoring.claims import asked_in_fitted_form, claim_views, passes_per_question
from unprior.scoring.open_answers import check_candidates, check_length, check_proposes
from unprior.scoring.store import SeenKeys

CHUNK = 4096
"""Examples that are planned at once: many batches, little memory."""
_MEAN_SIDE = 512
_LIBRARIES = ("torch", "transformers", "vllm", "pillow")


@dataclass(frozen=True, slots=True)
class Job:
    """One result to compute; several examples may share it."""

    key: str
    """Names everything that the result depends on."""
    text: str
    """The whole user turn."""
    labels: tuple[str, ...]
    """The candidates."""
    image: Path
    """The image to show, or the one that gives the size of a blank one."""
    view: str | None
    """None for the image itself and an answer, ``image`` for the image and scores only, ``open`` for open questions."""

    @property
    def kind(self) -> str:
        """What a batch must not mix: answers, scores with the image, with a blank one or none, open questions."""
        if self.view == OPEN and self.labels:
            return "given"
        return "answer" if self.view is None else self.view if self.view in ("image", "text", OPEN) else "blank"


@dataclass(frozen=True, slots=True)
class PlannedExample:
    """An example with the keys of its results, or the reason why there can be none."""

    example: Example
    image_key: str = ""
    view_keys: dict[str, str] = field(default_factory=dict)
    """Key of every view."""
    unreadable: str | None = None
    """Why its image cannot be read."""

    @property
    def keys(self) -> list[str]:
        """Keys of all its results, the image's first."""
        return [] if self.unreadable else [self.image_key, *self.view_keys.values()]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some examples of a benchmark."""

    examples: list[PlannedExample]
    jobs: dict[str, Job]
    """What they need and no chunk before them needed, by key."""


class ScoringPlan:
    """What has to be asked for a benchmark.

    Parameters
    ----------
    engine
        The engine, or its description.
    benchmark
        What is asked.
    views
        Estimates of the prior besides ``text``: ``white``, ``black``, ``mean``.
    resize_to
        Side of the square that images are brought to before the model's own processing; None leaves them.
    full_benchmark
        The benchmark that the examples are a part of: the mean image is made of its development images.
    prior
        What else is asked about two claims: ``plain`` (nothing), ``symmetric`` or ``canonical``.
    candidates
        Different answers that are kept of those that the model proposes to an open question.
    """

    def __init__(
        self,
        engine: EngineInfo,
        benchmark: Benchmark,
        *,
        views: Sequence[str] = (),
        resize_to: int | None = None,
        full_benchmark: Benchmark | None = None,
        prior: str = "plain",
        candidates: int = CANDIDATES,
    ) -> None:
        """Check the request."""
        unknown = sorted(set(views) - set(VIEWS))
        if unknown:
            like = did_you_mean(unknown[0], VIEWS)
            raise UnpriorError(f"unknown view {', '.join(unknown)}{like}; choose from {', '.join(VIEWS)}")
        if not engine.capabilities.exact_scores and engine.capabilities.top_k is None:
            raise UnpriorError(f"engine {engine.name} gives no candidate scores, which calibration needs")
        if any(example.is_open for example in benchmark):
            check_proposes(engine)
            check_length(engine)
        self.candidates = check_candidates(candidates)
        self.engine, self.benchmark, self.resize_to = engine, benchmark, resize_to
        self._fingerprint = engine.fingerprint
        self.questions_digest = (full_benchmark or benchmark).digest()
        self.prior = check_prior(prior)
        # Of the full benchmark, so that a part of it has the same keys.
        self._answered = asked_in_fitted_form(full_benchmark or benchmark, prior, engine.layout)
        self.views = tuple(view for view in VIEWS if view == "text" or view in views)
        self.mean, self._mean_digest = None, ""
        if "mean" in self.views:
            self.mean = self._mean_of_development(full_benchmark or benchmark)
            self._mean_digest = "" if self.mean is None else hashlib.sha256(self.mean.tobytes()).hexdigest()

    @property
    def layout(self) -> PromptLayout:
        """The wording around questions."""
        return self.engine.layout

    def provenance(self) -> Provenance:
        """How the scores of this plan are made."""
        card = self.benchmark.card
        asked = {
            "benchmark": self.benchmark.name,
            "revision": None if card is None else card.revision,
            "questions": self.questions_digest,
        }
        kinds = {example.kind for example in self.benchmark}
        return engine_provenance(self.engine, self.resize_to, kinds).model_copy(update=asked)

    def passes(self) -> tuple[float, float]:
        """Mean number of passes of a question with its image and without, before results are shared."""
        return passes_per_question(self.benchmark, self.prior, self.layout)

    def for_benchmark(self, benchmark: Benchmark) -> ScoringPlan:
        """The same plan for other examples, with the same mean image."""
        other = copy.copy(self)
        other.benchmark = benchmark
        return other

    def chunks(self) -> Iterator[Chunk]:
        """Go through the benchmark; a job that several chunks need is in the first one."""
        with SeenKeys() as seen:
            for start in range(0, len(self.benchmark), CHUNK):
                chunk = self._plan(self.benchmark.examples[start : start + CHUNK])
                new = seen.add(chunk.jobs)
                yield Chunk(chunk.examples, {key: chunk.jobs[key] for key in new})

    def _plan(self, examples: Sequence[Example]) -> Chunk:
        digests, unreadable = digest_images(dict.fromkeys(example.image for example in examples))
        planned: list[PlannedExample] = []
        jobs: dict[str, Job] = {}
        for example in examples:
            if example.image in unreadable:
                planned.append(PlannedExample(example, unreadable=unreadable[example.image]))
                continue
            keys: dict[str, str] = {}
            for name, view, text, labels in self._asked(example):
                key = keys[name] = self._key(view, text, labels, digests[example.image])
                jobs.setdefault(key, Job(key, text, labels, example.image, view))
            planned.append(PlannedExample(example, keys.pop("image"), keys))
        return Chunk(planned, jobs)

    def _asked(self, example: Example) -> Iterator[tuple[str, str | None, str, tuple[str, ...]]]:
        """Everything that is asked for an example: what it is called, what is shown, the text, the candidates."""
        own = example.user_text(self.layout)
        if example.is_open:
            yield "image", OPEN, own, example.given
            return
        yield "image", None, own, example.labels
        for view in self.views:
            yield view, view, own, example.labels
        for claim in claim_views(example, self.prior, self.layout):
            # An answer is asked for where some example needs it anyway, so that one pass serves both.
            with_image = None if (example.image, claim.text) in self._answered else "image"
            yield claim.name, with_image if claim.with_image else "text", claim.text, claim.labels

    def _key(self, view: str | None, text: str, labels: tuple[str, ...], digest: str) -> str:
        """Everything that may change a result: engine, prompt, candidates, image bytes and their resizing."""
        # Blank images have the size of the image they stand for, unless all are brought to one size.
        known = {None: digest, "image": digest, OPEN: digest, "text": "", "mean": self._mean_digest}
        shown = known.get(view, "" if self.resize_to else digest)
        candidates: Sequence[object] = self.layout.continuations(labels)
        if view == OPEN:
            candidates = [BEAMS, TEXT_BEAMS, MAX_ANSWER_TOKENS, *candidates]
        resized = None if view == "text" else self.resize_to
        kind = "image" if view is None else f"view:{view}"
        content = [self._fingerprint, kind, text, candidates, shown, resized]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def _mean_of_development(self, full_benchmark: Benchmark) -> Image.Image | None:
        """Mean of the distinct development images; unreadable ones are left to fail on their own."""
        chosen = [example for example in full_benchmark if example.split == "dev"] or list(full_benchmark)
        images = _readable(dict.fromkeys(example.image for example in chosen))
        first = next(images, None)
        return None if first is None else mean_image(chain([first], images), self.resize_to or _MEAN_SIDE)


def engine_provenance(engine: EngineInfo, resize_to: int | None, kinds: Iterable[str] = ()) -> Provenance:
    """How an engine makes scores, with the prior asked for without an image; ``kinds``: of the questions."""
    identity = engine.identity
    known = {name: identity.get(name) for name in ("engine", "weights", "served_model", "prompt", "dtype")}
    told = {name: value for name, value in known.items() if value not in (None, "", "None")}
    precision = told.pop("dtype", None)
    return Provenance(
        model=engine.name,
        fingerprint=engine.fingerprint,
        precision=precision and precision.removeprefix("torch."),
        image_size=resize_to or 0,
        prior="text",
        wording={kind: engine.layout.wording(kind) for kind in sorted(kinds)},
        versions=_versions(identity),
        **told,
    )


def _versions(identity: Mapping[str, str]) -> dict[str, str]:
    """Libraries that took part, a server's own among them."""
    from unprior._version import __version__

    server = {identity.get("software") or "server": identity.get("version", "")}
    libraries = {name: identity.get(name, "") for name in _LIBRARIES} | server | {"unprior": __version__}
    return {name: version for name, version in libraries.items() if version}


def batches(jobs: Iterable[Job], size: int) -> Iterator[list[Job]]:
    """Jobs of one kind and of similar length together, so that little is padded."""
    known = list(jobs)
    for kind in ("answer", OPEN, "given", "image", "blank", "text"):
        group = sorted((job for job in known if job.kind == kind), key=lambda job: len(job.text))
        for start in range(0, len(group), size):
            yield group[start : start + size]


def digest_images(images: Iterable[Path]) -> tuple[dict[Path, str], dict[Path, str]]:
    """What tells one image from another, and why some cannot be read."""
    digests: dict[Path, str] = {}
    unreadable: dict[Path, str] = {}
    for image in images:
        try:
            digests[image] = hashlib.sha256(read_image_file(image)).hexdigest()
        except ImageError as error:
            unreadable[image] = str(error)
    return digests, unreadable


def _readable(paths: Iterable[Path]) -> Iterator[Image.Image]:
    for path in paths:
        try:
            yield open_image(path)
        except UnpriorError:
            continue
