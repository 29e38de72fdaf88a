"""What a server does with a request, whatever it came by."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from unprior.engines.openai.exchanges import Exchange, recording
from unprior.engines.protocol import QueryFailure
from unprior.errors import UnpriorError
from unprior.images import pixel_digest
from unprior.images import resize as to_square
from unprior.scoring.ask import ClosedQuestion
from unprior.scoring.plan import engine_provenance
from unprior.serving.admission import Admission
from unprior.serving.backend import Backend
from unprior.serving.calibrators import KINDS, Calibrators, NamedCalibrator
from unprior.serving.decider import NOT_ASKED, Decider, Outcome
from unprior.serving.decision_log import DecisionLog, log_record
from unprior.serving.documents import BodyReader
from unprior.serving.errors import RequestError
from unprior.serving.fetch import ImageFetcher
from unprior.serving.images import read_data_url, read_image
from unprior.serving.metrics import Metrics
from unprior.serving.priors import PriorCache
from unprior.serving.questions import Asked
from unprior.serving.schemas import InputTokens, PriorCached, ServedBy, Usage
from unprior.serving.settings import Mode, ServeSettings

_LOGGER = logging.getLogger("unprior.serve")
_PROBE_EVERY, _PROBE_SECONDS = 5.0, 5.0


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions about one image, and how they were made."""

    outcomes: list[Outcome]
    calibrator: NamedCalibrator | None
    seconds: float
    exchanges: Sequence[Exchange]
    """With the server behind; none where the model is in this process."""

    @property
    def usage(self) -> Usage:
        """Tokens that the server behind counted."""
        read = sum(each.prompt_tokens or 0 for each in self.exchanges)
        written = sum(each.generated_tokens for each in self.exchanges)
        cached = InputTokens(cached_tokens=sum(each.cached_tokens for each in self.exchanges))
        return Usage(input_tokens=read, input_tokens_details=cached, output_tokens=written, total_tokens=read + written)

    def served_by(self, mode: Mode) -> ServedBy:
        """How they were made, for a reply."""
        known = {outcome.prior_known for outcome in self.outcomes} - {None}
        cache: PriorCached = "none"
        if known:
            cache = "partial" if len(known) > 1 else "hit" if known == {True} else "miss"
        return ServedBy(
            calibrator=None if self.calibrator is None else self.calibrator.name,
            calibrator_digest=None if self.calibrator is None else self.calibrator.digest,
            mode=mode,
            prior_cache=cache,
            upstream_calls=sum(each.prompt_tokens != 0 for each in self.exchanges),
            seconds=round(self.seconds, 4),
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from, and how long its client waits."""

    caller: str
    """Tells clients apart that share no kept priors."""
    request_id: str
    ends: float
    """Time of the event loop at which the deadline ends."""


@dataclass
class Service:
    """A model, its calibrators, and everything between a request and its reply."""

    settings: ServeSettings
    backend: Backend
    calibrators: Calibrators
    metrics: Metrics = field(default_factory=Metrics)
    log: DecisionLog | None = None

    def __post_init__(self) -> None:
        """Begin with nothing kept and nobody waiting."""
        settings = self.settings
        self.priors = PriorCache(settings.prior_cache)
        self.bodies = BodyReader()
        self.fetcher = ImageFetcher(settings.image_hosts, settings.image.max_bytes)
        self.decider = Decider(self.backend, self.priors, settings.on_error, self.metrics.timing, self._tell)
        self._probing = asyncio.Lock()
        self._probed = -math.inf
        self._problem: str | None = None
        self._cause: str | None = None
        self.admission = Admission(settings.concurrency, settings.queue, settings.deadline)

    @property
    def enforce(self) -> bool:
        """Whether decisions replace answers."""
        return self.settings.mode == "enforce"

    def check_model(self, model: str) -> None:
        """Refuse a request for another model."""
        own = self.backend.engine.name
        if model != own:
            raise RequestError(404, f"model: this server has {own} only", code="model_not_found", param="model")

    async def decide(
        self, url: str, questions: Sequence[Asked], named: str | None, origin: Origin, param: str
    ) -> Decided:
        """Read the image, ask, decide, count and log."""
        started = time.perf_counter()
        calibrator = self.calibrators.choose(named)
        image = await self._image(url, param)
        shown = await asyncio.to_thread(to_square, image, None if calibrator is None else calibrator.side)
        fitted = None if calibrator is None else calibrator.calibrator
        left = origin.ends - asyncio.get_running_loop().time()
        with recording() as exchanges:
            outcomes = await self.decider.decide(shown, questions, fitted, caller=origin.caller, seconds=left)
        failed = [outcome.failure for outcome in outcomes if outcome.failure is not None and not outcome.declined]
        if failed:
            self._tell(failed[0])
        if failed and all(outcome.failure is not None for outcome in outcomes):
            raise RequestError(502, NOT_ASKED, code="not_answered")
        self.metrics.count(outcomes, enforce=self.enforce)
        if self.log is not None:
            await asyncio.to_thread(self._write_log, outcomes, calibrator, image, origin.request_id)
        return Decided(outcomes, calibrator, time.perf_counter() - started, exchanges)

    async def _image(self, url: str, param: str) -> Image.Image:
        if url.startswith("data:"):
            return await asyncio.to_thread(read_data_url, url, self.settings.image, param)
        content = await self.fetcher.fetch(url, param)
        return await asyncio.to_thread(read_image, content, self.settings.image, param)

    def _tell(self, cause: str | None) -> None:
        """Tell whoever runs the server what clients are not told; once, until it is another cause."""
        if cause != self._cause:
            self._cause = cause
            _LOGGER.warning("the model could not be asked: %s", cause)

    def _write_log(
        self, outcomes: Sequence[Outcome], calibrator: NamedCalibrator | None, image: Image.Image, request_id: str
    ) -> None:
        assert self.log is not None
        digest = pixel_digest(image)
        made = engine_provenance(self.backend.engine, None if calibrator is None else calibrator.side, KINDS)
        records: list[dict[str, Any]] = []
        for place, outcome in enumerate(outcomes):
            record = log_record(
                outcome,
                place,
                request_id=request_id,
                model=self.backend.engine.name,
                calibrator=None if calibrator is None else calibrator.digest,
                image=digest,
                enforce=self.enforce,
            )
            records += [] if record is None else [record]
        try:
            self.log.write(records, made)
        except OSError:  # an answer is worth more than its line in the log; the count tells
            self.metrics.log_failures.inc(len(records))

    async def ready(self) -> str | None:
        """Why the model cannot be asked; None where it can. A server behind is asked at most every few seconds."""
        async with self._probing:  # who comes meanwhile waits for the same answer
            if time.monotonic() >= self._probed + _PROBE_EVERY:
                self._problem = await self._probe()
                self._probed = time.monotonic()
            return self._problem

    async def _probe(self) -> str | None:
        form = ClosedQuestion.from_options(self.backend.engine.layout, "Is this a test?", None)
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                (found,) = await self.backend.score([form.query(None)])
        except (UnpriorError, TimeoutError) as error:
            found = QueryFailure(str(error) or "no answer")
        if isinstance(found, QueryFailure):
            return "the model cannot be asked"
        if await self.backend.difference() is not None:
            return "the server behind serves something else than at the start"
        return "the model's scores are not exact" if any(found.censored or ()) else None

    async def close(self) -> None:
        """Let go of everything."""
        await self.priors.close()
        await self.fetcher.close()
        await self.backend.close()
        if self.log is not None:
            self.log.close()
