"""From questions about an image to decisions: the model is asked, the prior fetched or kept, the calibrator applied."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from PIL import Image

from unprior.answer_forms import read_open_answer
from unprior.engines.load import CANDIDATES
from unprior.engines.openai.asking import longest_wait
from unprior.engines.protocol import CandidateScores, Query, QueryFailure
from unprior.prompts import parse_answer
from unprior.scoring.ask import Answer, ClosedQuestion, ScoredAnswer, scored_openly
from unprior.serving.backend import Backend, Reading
from unprior.serving.errors import RequestError, refuse
from unprior.serving.priors import Prior, PriorCache
from unprior.serving.questions import Asked

if TYPE_CHECKING:
    from unprior.calibration import SelectivePriorCalibrator

PRIOR_UNAVAILABLE, SCORES_UNAVAILABLE = "prior_unavailable", "scores_unavailable"
CENSORED, NO_CALIBRATOR, NOT_ANSWERED = "censored_scores", "no_calibrator", "not_answered"
NOT_ASKED = "the model could not be asked; the server's own output tells the cause"
"""What clients are told: causes name addresses and paths that are not theirs to know."""
UNAVAILABLE = (PRIOR_UNAVAILABLE, SCORES_UNAVAILABLE)
Arm = Literal["image", "prior", "open"]
"""What a model is asked for: answer and scores with the image, scores without it, or both for an open question."""
Timing: TypeAlias = Callable[[Arm], AbstractContextManager[Any]]
_SHARE_OF_SCORES = 0.8
"""Of the time that is left: the original answer can still go out when scores take longer."""


_LATE = QueryFailure("no scores in time"), False


def _untold(_: str) -> None:
    pass


def _untimed(_: Arm) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    asked: Asked
    answer: Answer | None
    """With scores and, where a calibrator decided, its decision; None where there are no scores."""
    original: str | None
    """The label that the model's own answer names."""
    labels: tuple[str, ...]
    reason: str | None = None
    """Why no calibrator decided; None where one did."""
    failure: str | None = None
    """Why there is no answer at all."""
    declined: bool = False
    """Whether that is no fault of the model: questions of this kind are not answered."""
    clip: float | None = None
    """How far below its top the prior of an open question counts, in nats; None where that has no limit."""
    temperature: float = 1.0
    """What scores of an open question are divided by before they are probabilities."""
    prior_known: bool | None = None
    """Whether the prior was kept from before; None where none was asked for."""


@dataclass(frozen=True, slots=True)
class Decider:
    """Asks and decides."""

    backend: Backend
    priors: PriorCache
    on_error: str = "original"
    """``original`` lets an answer out whose scores could not be had; ``error`` does not."""
    timing: Timing = _untimed
    """Measures how long the model takes."""
    tell: Callable[[str], None] = _untold
    """Takes what whoever runs the server should know."""

    async def decide(
        self,
        image: Image.Image,
        questions: Sequence[Asked],
        calibrator: SelectivePriorCalibrator | None,
        *,
        caller: str,
        seconds: float,
    ) -> list[Outcome]:
        """Decide all questions about one image within some seconds.

        ``caller`` tells clients apart that share no kept priors.
        """
        closed = [asked for asked in questions if asked.kind in {"choice", "predicate"}]
        openly = [asked for asked in questions if asked.kind == "open"]
        patience = _SHARE_OF_SCORES * seconds
        work = [
            asyncio.ensure_future(self._closed(image, closed, calibrator, caller, patience)),
            *(asyncio.ensure_future(self._open(image, asked, calibrator, caller, patience)) for asked in openly),
        ]
        try:
            decided = [each for found in await asyncio.gather(*work) for each in found]
        finally:
            for task in work:
                task.cancel()
        by_question = {id(each.asked): each for each in decided}
        told = "scores are not answered; ask for a choice"
        outcomes = [
            by_question.get(id(asked)) or Outcome(asked, None, None, (), failure=told, declined=True)
            for asked in questions
        ]
        lost = [each for each in outcomes if each.reason in UNAVAILABLE]
        if lost and self.on_error == "error":
            raise RequestError(502, f"the model's scores could not be had ({lost[0].reason})", code=str(lost[0].reason))
        return outcomes

    async def _closed(
        self,
        image: Image.Image,
        questions: Sequence[Asked],
        calibrator: SelectivePriorCalibrator | None,
        caller: str,
        patience: float,
    ) -> list[Outcome]:
        if not questions:
            return []
        layout = self.backend.engine.layout
        forms = [ClosedQuestion.from_options(layout, each.question, each.options) for each in questions]
        clock = asyncio.get_running_loop().time
        priors, started = [asyncio.ensure_future(self._prior(form, caller, patience)) for form in forms], clock()
        try:
            with self.timing("image"):
                readings = await self.backend.answer([form.query(image) for form in forms], patience)
            # A server that hangs on the prior alone does not keep the answer back for long.
            await asyncio.wait(priors, timeout=longest_wait(clock() - started))
            known = [await task if task.done() else _LATE for task in priors]
            if (changed := await self.backend.difference()) is not None:
                self.tell(changed)
                known = [(QueryFailure(changed), False)] * len(forms)
        finally:
            for task in priors:
                task.cancel()
        return [
            _outcome(asked, form, reading, *prior, calibrator)
            for asked, form, reading, prior in zip(questions, forms, readings, known, strict=True)
        ]

    async def _prior(self, form: ClosedQuestion, caller: str, patience: float) -> tuple[Prior, bool]:
        async def ask() -> Prior:
            with self.timing("prior"):
                return (await self.backend.score([form.query(None)]))[0]

        key = (caller, self.backend.engine.fingerprint, self.backend.epoch, form.text, form.continuations)
        try:
            async with asyncio.timeout(patience):
                return await self.priors.get(key, ask)
        except TimeoutError:
            return _LATE

    async def _open(
        self,
        image: Image.Image,
        asked: Asked,
        calibrator: SelectivePriorCalibrator | None,
        caller: str,
        patience: float,
    ) -> list[Outcome]:
        engine = self.backend.engine
        if not engine.capabilities.proposes:
            told = f"{engine.name} cannot propose answers; give candidates"
            return [Outcome(asked, None, None, (), failure=told, declined=True)]
        query = Query(image, engine.layout.user_text(asked.question, (), None), ())
        try:
            async with asyncio.timeout(patience):
                with self.timing("open"):
                    found = await self.backend.propose(query, caller)
        except TimeoutError:
            found = _LATE[0]
        if (changed := await self.backend.difference()) is not None:
            self.tell(changed)
            found = QueryFailure(changed)
        if isinstance(found, QueryFailure):
            return [await self._open_original(asked, query, found)]
        scored = scored_openly(found, CANDIDATES)
        if not scored.labels:
            return [Outcome(asked, None, None, (), failure="the model proposed no answer", declined=True)]
        return [_decided(asked, scored, calibrator, None)]

    async def _open_original(self, asked: Asked, query: Query, failure: QueryFailure) -> Outcome:
        """The original answer, where candidates or their scores cannot be had."""
        written = failure if failure.refused else await self.backend.original(query)
        if isinstance(written, QueryFailure):
            return _failed(asked, (), written)
        answer = (read_open_answer(written) or "").strip()
        if not answer:
            return Outcome(asked, None, None, (), failure="the model gave no short answer", declined=True)
        return Outcome(asked, None, answer, (answer,), SCORES_UNAVAILABLE)


def _failed(asked: Asked, labels: tuple[str, ...], failure: QueryFailure) -> Outcome:
    """No answer; a question that this model cannot be asked at all is the client's to change."""
    if failure.refused:
        raise refuse(f"{asked.param}: {failure.reason}", code="question_refused", param=asked.param)
    return Outcome(asked, None, None, labels, failure=failure.reason)


def _outcome(
    asked: Asked,
    form: ClosedQuestion,
    reading: Reading | QueryFailure,
    prior: Prior,
    was_known: bool,
    calibrator: SelectivePriorCalibrator | None,
) -> Outcome:
    if isinstance(reading, QueryFailure):
        return _failed(asked, form.labels, reading)
    original = parse_answer(reading.text, form.labels)
    if isinstance(reading.scored, QueryFailure):
        if original is None:
            return Outcome(asked, None, None, form.labels, failure=reading.scored.reason)
        return Outcome(asked, None, original, form.labels, SCORES_UNAVAILABLE, prior_known=was_known)
    if isinstance(prior, QueryFailure):
        # What is known without the prior is told; nothing is decided on it.
        blank = CandidateScores((0.0,) * len(form.labels), (1,) * len(form.labels))
        answer = form.scored(reading.text, reading.scored, blank).decide(None)
        return Outcome(asked, answer, original, form.labels, PRIOR_UNAVAILABLE)
    return _decided(asked, form.scored(reading.text, reading.scored, prior), calibrator, was_known)


def _decided(
    asked: Asked, scored: ScoredAnswer, calibrator: SelectivePriorCalibrator | None, was_known: bool | None
) -> Outcome:
    reason = NO_CALIBRATOR if calibrator is None else None
    if scored.is_censored:
        reason = CENSORED
    if not all(math.isfinite(score) for score in (*scored.image, *scored.prior)):
        reason = SCORES_UNAVAILABLE
        if scored.original is None:
            return Outcome(asked, None, None, scored.labels, failure="the model gave a score that is not finite")
        return Outcome(asked, None, scored.original, scored.labels, reason, prior_known=was_known)
    fitted = calibrator if reason is None else None
    part = None if fitted is None or asked.kind != "open" else fitted.state_.open_part
    clip = None if part is None or part.scale is None or math.isinf(part.scale.clip) else part.scale.clip
    temperature = 1.0 if part is None or part.scale is None else part.scale.temperature
    return Outcome(
        asked, scored.decide(fitted), scored.original, scored.labels, reason,
        clip=clip, temperature=temperature, prior_known=was_known,
    )  # fmt: skip
