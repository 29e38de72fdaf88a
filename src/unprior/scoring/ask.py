"""One question about one image, answered by a model and, with a calibrator, by SPC."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unprior._text import seen
from unprior.benchmarks.schema import OPEN
from unprior.engines.load import CANDIDATES
from unprior.engines.protocol import CandidateScores, Engine, Query, QueryFailure, require_engine
from unprior.errors import UnpriorError, UnpriorNote, format_option, require_type, warn, wrong_type
from unprior.images import open_image
from unprior.images import resize as to_square
from unprior.prompts import YES_NO, PromptLayout, is_cut_off, parse_answer
from unprior.scoring.benchmark import check_side
from unprior.scoring.open_answers import OpenAsker, OpenScores, candidates_of, check_candidates, check_length

if TYPE_CHECKING:
    from PIL import Image

    from unprior.calibration import Decision, SelectivePriorCalibrator

_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character, which no tokenizer takes
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class AskedCandidate:
    """One possible answer and its scores."""

    label: str
    text: str | None
    """What stands beside the letter; None for yes and no, and for an open question, whose answers are labels."""
    image_score: float
    prior_score: float
    corrected_score: float | None
    """After subtracting a part of the prior; None without a calibrator."""

    def __str__(self) -> str:
        """As a person reads it: letter and text."""
        return self.label if self.text is None else f"{self.label}. {self.text}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model answered, and what became of it."""

    final: str | None
    """The label of the answer that stands in the end."""
    original: str | None
    """The label that the model's own answer names."""
    original_text: str
    candidates: tuple[AskedCandidate, ...]
    decision: Decision | None
    """What SPC decided; None without a calibrator."""
    mass: float
    """The model's probability of all candidates with the image."""

    @property
    def explanation(self) -> str | None:
        """Why the answer was kept or changed, in a sentence."""
        return None if self.decision is None else self.decision.explain()

    def record(self) -> dict[str, Any]:
        """Plain values."""
        rows = [{"candidate": row.pop("label"), **row} for row in map(asdict, self.candidates)]
        return {
            "answer": self.final,
            "original": self.original,
            "original_text": self.original_text,
            "candidates": rows,
            "explanation": self.explanation,
        }


def read_image(
    path: str | Path, calibrator: SelectivePriorCalibrator | None = None, resize: int | None = None
) -> tuple[Image.Image, int | None]:
    """The image, and the side of the square that it was brought to.

    ``resize``: 0 leaves it as it is; None takes the size that the calibrator was fitted at, with a note.
    """
    side = (_fitted_size(calibrator) if resize is None else resize) or None
    return to_square(open_image(Path(path)), side), side


def ask(
    engine: Engine,
    image: str | PathLike[str],
    question: str,
    *,
    options: Sequence[str] | None = None,
    open_ended: bool = False,
    claims: Sequence[str] | None = None,
    open_question: str | None = None,
    calibrator: SelectivePriorCalibrator | str | PathLike[str] | None = None,
    resize: int | None = None,
    force: bool = False,
    allow_censored: bool = False,
    candidates: int = CANDIDATES,
) -> Answer:
    """Ask one question about one image.

    Parameters
    ----------
    engine
        The model, see :func:`unprior.engines.load.load_engine`.
    image, question
        The file of the image, and what to ask.
    options
        Answers to choose from; without, yes or no.
    open_ended
        Let the model answer in its own words, and propose the candidates itself.
    claims, open_question
        The two answers that a yes/no question is about, the one that yes stands for first, and the question without a
        claim in it; a calibrator with a stable prior asks about them in its own form.
    calibrator
        A calibrator of this model, or where it is: a file, a folder, or a repository of the hub (``owner/name``);
        without one the answer stays as it is.
    resize
        Side of the square that the image is brought to; 0 leaves it, None takes the size of the calibrator's images.
    force
        Continue although the calibrator was fitted on scores made in another way.
    allow_censored
        Take bounds for candidates outside the top tokens that a server shows.
    candidates
        Different answers that are kept of those that the model proposes to an open question.
    """
    require_engine(engine)
    require_type("image", image, (str, PathLike), "the path of an image file; ask_about takes an image")
    check_side(resize)
    from unprior.calibration import SelectivePriorCalibrator

    if isinstance(calibrator, str | PathLike):
        calibrator = SelectivePriorCalibrator.from_pretrained(Path(calibrator))
    require_type("calibrator", calibrator, SelectivePriorCalibrator | None, "a calibrator, or the path of its file")
    shown, side = read_image(Path(image), calibrator, resize)
    return ask_about(
        engine, shown, question, options=options, open_ended=open_ended, claims=claims, open_question=open_question,
        calibrator=calibrator, side=side, force=force, allow_censored=allow_censored, candidates=candidates,
        name=str(image),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClosedQuestion:
    """A question with options, or one that is answered by yes or no, as a model is asked."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    """The candidates in the words of an explanation, which needs no key then."""
    texts: tuple[str, ...] | None
    """What stands beside the letters; None for yes and no."""
    text: str
    """The user's turn."""
    continuations: tuple[str, ...]

    @classmethod
    def from_options(cls, layout: PromptLayout, question: str, options: Sequence[str] | None) -> ClosedQuestion:
        """Without options, the answer is yes or no.

        >>> ClosedQuestion.from_options(PromptLayout(), "How many?", ["five", "six"]).names
        ('A. five', 'B. six')
        """
        labels = YES_NO if options is None else tuple(_LETTERS[: len(options)])
        names = labels if options is None else tuple(f"{a}. {b}" for a, b in zip(labels, options, strict=True))
        texts = None if options is None else tuple(options)
        return cls(labels, names, texts, layout.user_text(question, labels, options), layout.continuations(labels))

    def query(self, image: Image.Image | None) -> Query:
        """The question with an image, or without."""
        return Query(image, self.text, self.continuations)

    def scored(self, text: str, image: CandidateScores, prior: CandidateScores) -> ScoredAnswer:
        """An answer to it with all its scores."""
        return ScoredAnswer(
            self.labels, self.names, self.texts or [None] * len(self.labels), image.scores, prior.scores,
            parse_answer(text, self.labels), text, None, any((*(image.censored or ()), *(prior.censored or ()))),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """An answer with the scores of its candidates."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    """The candidates in the words of an explanation."""
    texts: Sequence[str | None]
    image: Sequence[float]
    prior: Sequence[float]
    original: str | None
    text: str
    task: str | None
    """None for yes and no or letters, which tell their task themselves."""
    is_censored: bool

    def decide(
        self, calibrator: SelectivePriorCalibrator | None, views: dict[str, tuple[float, ...]] | None = None
    ) -> Answer:
        """What a calibrator makes of it; without one it stays as it is."""
        decision, final, labels = None, self.original, self.labels
        corrected: Sequence[float | None] = [None] * len(labels)
        if calibrator is not None:
            named = None if self.original is None else self.names[labels.index(self.original)]
            decision = calibrator.decide(self.names, self.image, self.prior, named, task=self.task, views=views)
            final = None if decision.final is None else labels[self.names.index(decision.final)]
            corrected = _in_nats(calibrator, decision)
        rows = zip(labels, self.texts, self.image, self.prior, corrected, strict=True)
        asked = tuple(AskedCandidate(*each) for each in rows)
        return Answer(final, self.original, self.text, asked, decision, sum(map(math.exp, self.image)))


def ask_about(
    engine: Engine,
    image: Image.Image,
    question: str,
    *,
    options: Sequence[str] | None = None,
    open_ended: bool = False,
    claims: Sequence[str] | None = None,
    open_question: str | None = None,
    calibrator: SelectivePriorCalibrator | None = None,
    side: int | None = None,
    force: bool = False,
    allow_censored: bool = False,
    candidates: int = CANDIDATES,
    name: str = "the image",
    calibrator_name: str = "the calibrator",
) -> Answer:
    """Ask about an image that was read already, see :func:`ask` and :func:`read_image`; names are for messages."""
    require_engine(engine)
    _check_question(question, options, claims, open_ended=open_ended)
    if claims is not None and (calibrator is None or calibrator.prior == "plain"):
        warn("claims are only used by a calibrator with a stable prior, see `unprior fit --prior canonical`")
    if calibrator is not None:
        from unprior.scoring.plan import engine_provenance

        kind = kind_of_question(options, open_ended=open_ended)
        differences = calibrator.differences([engine_provenance(engine, side, [kind])])
        told = f"the answer would not be scored as those that {calibrator_name} was fitted on"
        differences.warn_or_refuse(told, force=force)
    if open_ended:
        scored = _ask_openly(engine, image, question, check_candidates(candidates), name)
    else:
        scored = _ask_closed(engine, image, question, options, name)
    if not all(math.isfinite(score) for score in (*scored.image, *scored.prior)):
        raise UnpriorError(
            f"{engine.name} gave a score that is not finite; try another precision, e.g. "
            f"{format_option('dtype', 'float32')}"
        )
    if scored.is_censored:
        told = "a candidate is not among the tokens that the server shows"
        if calibrator is not None and not allow_censored:
            raise UnpriorError(f"{told}; {format_option('allow_censored', True)} takes a bound")
        warn(f"{told}; its score is only an upper bound")
    if is_cut_off(scored.text):
        from unprior.scores.checked import warn_about_cut_off

        warn_about_cut_off(1, 1)
    views = None
    if calibrator is not None:
        views = _claim_scores(engine, image, question, claims, open_question, calibrator)
    return scored.decide(calibrator, views)


def kind_of_question(options: Sequence[str] | None, *, open_ended: bool = False) -> str:
    """How a question is worded: ``mc`` with options, ``qa`` for yes or no, ``open``."""
    return OPEN if open_ended else "qa" if options is None else "mc"


def _in_nats(calibrator: SelectivePriorCalibrator, decision: Decision) -> list[float]:
    """Corrected scores beside log-probabilities: those of open answers were divided by T."""
    part = calibrator.state_.open_part
    divided = part.scale.temperature if decision.is_open and part is not None and part.scale is not None else 1.0
    return [divided * score for score in decision.corrected_scores]


def _ask_closed(
    engine: Engine, image: Image.Image, question: str, options: Sequence[str] | None, name: str
) -> ScoredAnswer:
    asked = ClosedQuestion.from_options(engine.layout, question, options)
    answered = engine.answer_batch([asked.query(image)])[0]
    if isinstance(answered, QueryFailure):
        raise UnpriorError(f"{name}: {answered.reason}")
    prior = engine.score_candidates(None, asked.text, asked.continuations)
    return asked.scored(answered.text, answered.scored, prior)


def _ask_openly(engine: Engine, image: Image.Image, question: str, count: int, name: str) -> ScoredAnswer:
    check_length(engine)
    asked = OpenAsker(engine).ask([Query(image, engine.layout.user_text(question, (), None), ())])[0]
    if isinstance(asked, QueryFailure):
        raise UnpriorError(f"{name}: {asked.reason}")
    return scored_openly(asked, count)


def scored_openly(asked: OpenScores, count: int) -> ScoredAnswer:
    """An answer to an open question, with so many of the candidates that the model proposed."""
    found = candidates_of(asked.record(), count)
    return ScoredAnswer(
        found.labels, found.labels, [None] * len(found.labels), found.image_scores, found.prior_scores, found.original,
        asked.text, OPEN, any(found.censored or ()),
    )  # fmt: skip


def _check_question(
    question: object, options: Sequence[str] | None, claims: Sequence[str] | None, *, open_ended: bool
) -> None:
    if not isinstance(question, str) or not seen(question):
        raise wrong_type("question", question, "a text")
    for name, text in (("question", question), *(("options", each) for each in options or ()),
                       *(("claims", each) for each in claims or ())):  # fmt: skip
        if isinstance(text, str) and _SURROGATE.search(text):
            raise UnpriorError(f"{name}={text!r}: it has a character that is not valid Unicode; write it differently")
    require_type("open_ended", open_ended, bool, "True or False")
    if open_ended and (options is not None or claims is not None):
        raise UnpriorError("an open question has no options and no claims; leave them out, or do not ask openly")
    if options is not None:
        check_options(options)
    if claims is not None:
        check_claims(claims, options)


def check_claims(claims: Sequence[str], options: Sequence[str] | None = None) -> None:
    """Refuse claims that are not two different answers to a yes/no question."""
    texts = isinstance(claims, list | tuple) and all(isinstance(each, str) for each in claims)
    if (
        not texts
        or len(claims) != 2
        or len({seen(each).casefold() for each in claims} - {""}) < 2
        or options is not None
    ):
        shown = "|".join(claims) if texts else ""
        raise UnpriorError(
            f"claims={claims!r} (command line: --claims {shown!r}): give two different answers, the one that yes "
            f"stands for first, and only without options (on the command line separated by |)"
        )


def _claim_scores(
    engine: Engine,
    image: Image.Image,
    question: str,
    claims: Sequence[str] | None,
    open_question: str | None,
    calibrator: SelectivePriorCalibrator,
) -> dict[str, tuple[float, ...]] | None:
    """What the calibrator's prior needs to know about the claims; None where it needs nothing or there are none."""
    if calibrator.prior == "plain" or claims is None:
        return None
    from unprior.benchmarks.schema import Example
    from unprior.scoring.claims import claim_views

    first, second = claims
    example = Example(
        "asked", Path("image"), question, "qa", YES_NO, claims=(first, second), open_question=open_question
    )
    views = claim_views(example, calibrator.prior, engine.layout)
    found = {}
    for with_image in (True, False):  # queries with and without an image are not mixed in a batch
        chosen = [view for view in views if view.with_image == with_image]
        queries = [
            Query(image if with_image else None, view.text, engine.layout.continuations(view.labels)) for view in chosen
        ]
        for view, scored in zip(chosen, engine.score_batch(queries) if queries else [], strict=True):
            if isinstance(scored, QueryFailure):
                raise UnpriorError(f"{view.name}: {scored.reason}")
            found[view.name] = scored.scores
    return found or None


def check_options(options: Sequence[str]) -> Sequence[str]:
    """Refuse options that are not different answers, or too many to name by letters."""
    texts = isinstance(options, list | tuple) and all(isinstance(each, str) for each in options)
    different = {seen(each) for each in options} - {""} if texts else set()
    if not texts or not 2 <= len(options) <= len(_LETTERS) or len(different) < len(options):
        shown = "|".join(options) if texts else ""
        raise UnpriorError(
            f"options={options!r} (command line: --options {shown!r}): give 2 to 26 different answers, as a list "
            f"of texts (in one text of the command line separated by |)"
        )
    return options


def _fitted_size(calibrator: SelectivePriorCalibrator | None) -> int | None:
    """Side of the images that a calibrator was fitted at, which is said where it is not the usual one."""
    sizes = set() if calibrator is None else {record.image_size for record in calibrator.provenance_} - {None}
    if len(sizes) != 1:
        return None
    side = sizes.pop()
    if side:
        told = f"The image is brought to {side}×{side}, as those that the calibrator was fitted on"
        warn(UnpriorNote(f"{told}; {format_option('resize')} chooses another size."))
    return side
