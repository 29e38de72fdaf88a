"""A run as a log of Inspect (inspect_ai): a sample for every question, the scorers “original” and “spc”."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import ascii_uppercase
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile, ZipInfo

from inspect_ai.event import Event, ModelEvent, ScoreEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score

from unprior._files import replacing
from unprior.benchmarks.schema import Example
from unprior.calibration import Decision, Decisions
from unprior.errors import warn
from unprior.evaluation import Evaluation, Metrics, TaskResult
from unprior.evaluation.metrics import correct
from unprior.progress import Progress, Report, silent
from unprior.prompts import PromptLayout
from unprior.report.gallery import range_text, with_texts
from unprior.report.headline import EMBEDDED_WARNING, headline, is_embedded, loss_note
from unprior.report.html import embed_image
from unprior.runs.recorded import RecordedRun
from unprior.scores import ScoreTable
from unprior.scores.files import finite_or_none

ORIGINAL, SPC = "original", "spc"
"""Names of the two scorers."""
UNKNOWN_DATE = "1970-01-01T00:00:00+00:00"
"""When the run was made, if its files do not say: those of version 0.1.0."""
_IMAGE_SIDE, _IMAGE_QUALITY = 512, 85
_OUTCOMES = {
    (False, True): "repaired",
    (True, False): "harmed",
    (True, True): "right before and after",
    (False, False): "wrong before and after",
}
_NAME_BYTES = 200
"""Of a sample's name; names of files have at most 255, and Inspect adds to it."""
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def write_log(path: Path, run: RecordedRun, *, images: bool = True, report: Report = silent) -> None:
    """Write a run as a log that `inspect view` shows; the same run gives the same bytes.

    Parameters
    ----------
    path
        The log, ``.eval`` or ``.json``; it appears whole or not at all.
    run
        What to write.
    images
        Whether samples hold their images, at most 512 pixels wide and high.
    report
        Told how many samples are made.
    """
    log = make_log(run, images=images, report=report)
    report(Progress(f"Writing {path}"))
    with TemporaryDirectory() as folder, replacing(path) as temporary:
        made = Path(folder, f"log{path.suffix}")
        # In a thread of its own: beside a running event loop, inspect_ai changes asyncio for the whole process.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(write_eval_log, log, str(made)).result()
        if path.suffix == ".json":
            shutil.copyfile(made, temporary)
        else:
            _copy_undated(made, temporary)


def _copy_undated(source: Path, target: Path) -> None:
    """Copy a log without the time of writing, which its archive notes beside every member."""
    with ZipFile(source) as made, ZipFile(target, "w") as copied:
        for member in made.infolist():
            undated = ZipInfo(member.filename, _ZIP_DATE)
            undated.compress_type, undated.external_attr = member.compress_type, member.external_attr
            copied.writestr(undated, made.read(member))


def make_log(run: RecordedRun, *, images: bool = True, report: Report = silent) -> EvalLog:
    """The log of a run, see :func:`write_log`."""
    table, evaluation = run.decisions.table, run.evaluation
    samples = [_sample(run, row) for row in _rows(run, images=images, report=report)]
    model, benchmark = (next(iter(table.values_of(name))) for name in ("model", "benchmark"))
    date, made_with = _date(table), run.decisions.made_with
    settings = {"options": run.decisions.settings, "open": run.decisions.open_settings}
    scorer = {
        "version": made_with["version"],
        "epsilon_cs": made_with["epsilon_cs"],
        **{f"settings_{kind}": _known(asdict(each)) for kind, each in settings.items() if each is not None},
    }
    told = {
        "headline": headline(evaluation, run.decisions.method, abstains=run.abstains),
        "caution": loss_note(evaluation, made_with["epsilon_cs"]) if run.split in ("test", None) else None,
        "promise": run.decisions.promise,
        "note": EMBEDDED_WARNING if is_embedded(model) else None,
        "method": run.decisions.method,
        "split": run.split or "all",
        "metrics": f"of the {run.evaluated:,} rows of split {'test' if run.split is None else run.split}",
    }
    return EvalLog(
        status="success",
        eval=EvalSpec(
            eval_id=_identity(run.digest, run.split, "eval"),
            run_id=_identity(run.digest, "run"),
            task_id=_identity(run.digest, run.split, "task"),
            created=date,
            task=benchmark or "unprior",
            model=model or "unknown",
            dataset=EvalDataset(name=benchmark, samples=len(samples), sample_ids=[each.id for each in samples]),
            config=EvalConfig(epochs=1),
            packages=_packages(table),
            tags=["unprior"],
            metadata=_known(told) | {"provenance": [record.record() for record in table.provenance]},
        ),
        plan=EvalPlan(
            name="unprior run", steps=[EvalPlanStep(solver="generate"), EvalPlanStep(solver=SPC, params=scorer)]
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=_results(evaluation, run.evaluated, scorer),
        ),
        stats=EvalStats(started_at=date, completed_at=date),
        samples=samples,
    )


def _identity(*parts: str | None) -> str:
    """A name that is the same for the same parts, as long as those that Inspect gives."""
    return hashlib.sha256("\0".join(part or "" for part in parts).encode()).hexdigest()[:22]


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _date(table: ScoreTable) -> str:
    """When the scores were made, in UTC."""
    for noted in sorted(filter(None, (record.date for record in table.provenance)), reverse=True):
        try:
            read = datetime.fromisoformat(noted)
            return (read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)).isoformat()
        except (ValueError, OverflowError):  # no date, or one that is outside the calendar in UTC
            continue
    return UNKNOWN_DATE


def _packages(table: ScoreTable) -> dict[str, str]:
    return {name: version for record in table.provenance for name, version in record.versions.items()}


def _results(evaluation: Evaluation, evaluated: int, params: dict[str, Any]) -> list[EvalScore]:
    """The numbers of the evaluation: accuracies of the original and of the final answers, and what changed by task."""
    counted: dict[str, Any] = {"scored_samples": evaluated}
    original = {name: each for task in evaluation.tasks for name, each in _accuracies(task.task, task.original).items()}
    final = {name: each for task in evaluation.tasks for name, each in _accuracies(task.task, task.method).items()}
    return [
        EvalScore(name=ORIGINAL, scorer=ORIGINAL, metrics=original, **counted),
        EvalScore(name=SPC, scorer=SPC, metrics=final, params=params, **counted),
        *(
            EvalScore(name=f"{SPC}_{task.task}", scorer=SPC, metrics=_changes(task, evaluation.level))
            for task in evaluation.tasks
        ),
    ]


def _accuracies(task: str, metrics: Metrics) -> dict[str, EvalMetric]:
    found = {}
    for side, share in (("cf", metrics.cf), ("cs", metrics.cs)):
        name = f"{task}_{side}_accuracy"
        shown: dict[str, Any] = {"name": name}
        if "group" in EvalMetric.model_fields:  # a heading over columns, which older versions do not know
            shown = {"name": side, "group": f"{task} accuracy"}
        found[name] = EvalMetric(**shown, value=share.value, metadata={"right": share.count, "of": share.total})
    return found


def _changes(task: TaskResult, level: float) -> dict[str, EvalMetric]:
    """ΔCF and ΔCS with interval and exact test, then repairs and harms."""
    deltas, counts = {}, {}
    for side, result in (("cf", task.cf), ("cs", task.cs)):
        change, ends = result.change, {"low": finite_or_none(result.low), "high": finite_or_none(result.high)}
        sure = ends | {"level": level, "p": result.test.p_value, "holm_p": result.holm_p}
        deltas[f"delta_{side}"] = EvalMetric(name=f"delta_{side}", value=change.delta, metadata=sure)
        for name, count in (("repairs", change.repairs), ("harms", change.harms)):
            counts[f"{side}_{name}"] = EvalMetric(name=f"{side}_{name}", value=count, metadata={"of": change.total})
    return deltas | counts


@dataclass(frozen=True, slots=True)
class _Row:
    """Everything about one row of the table."""

    number: int
    name: str
    record: Mapping[str, Any]
    decision: Decision
    example: Example | None
    image: str | None
    """A data URI."""
    right: tuple[bool, bool]
    """Whether the original answer and the final one are right."""

    @property
    def named(self) -> Decision:
        """The decision about “B: six fingers” instead of “B”."""
        return with_texts(self.decision, self.example)


def _rows(run: RecordedRun, *, images: bool, report: Report) -> Iterator[_Row]:
    decisions, table = run.decisions, run.decisions.table
    names = _names(table)
    before, after = (correct(table, each).tolist() for each in (table.original_positions, decisions.final_positions))
    embedded = cache(lambda path: embed_image(path, _IMAGE_SIDE, _IMAGE_QUALITY))
    lost: list[str] = []
    for row, record in enumerate(table.arrow.to_pylist()):
        example = run.examples.get(record["example_id"])
        image, missing = embedded(example.image) if images and example is not None else (None, None)
        lost += [] if missing is None else [missing]
        yield _Row(row, names[row], record, decisions[row], example, image, (before[row], after[row]))
        report(Progress("Making samples", row + 1, len(table)))
    if lost:
        warn(f"{len(lost):,} of {len(table):,} samples have no image, the first because of {lost[0]}")


def _names(table: ScoreTable) -> list[str]:
    """A name for every row, each once: that of its example, or its pair, side and task."""
    columns = (table.column(name) for name in ("example_id", "pair_id", "side", "task"))
    names = [_short(example or f"{pair}-{side}-{task}") for example, pair, side, task in zip(*columns, strict=True)]
    return names if len(set(names)) == len(names) else [f"{name}-{row}" for row, name in enumerate(names, start=1)]


def _short(name: str) -> str:
    """A name that a member of an archive, or a file, can have: a long one is cut, and told apart by its digest."""
    return name if len(name.encode("utf-8", "replace")) <= _NAME_BYTES else f"{name[:32]}…{_identity(name)}"


def _sample(run: RecordedRun, row: _Row) -> EvalSample:
    identity, record, decision = _identity(run.digest, run.split, row.name), row.record, row.decision
    asked = _asked(run.layout, row, identity)
    answer = record["original_text"] or decision.original or ""
    reply = ChatMessageAssistant(id=f"{identity}-answer", content=answer, source="generate", model=record["model"])
    output = ModelOutput(
        model=record["model"] or "unknown",
        choices=[ChatCompletionChoice(message=reply, stop_reason="stop")],
        completion=answer,
    )
    target = [record["answer"], *record["aliases"]] if record["aliases"] else record["answer"]
    scores = {
        ORIGINAL: _score(decision.original, row.right[0], _verdict(row)),
        SPC: _score(decision.final, row.right[1], row.named.explain(promise=False)),
    }
    when: dict[str, Any] = {"timestamp": datetime.fromisoformat(_date(run.decisions.table)), "working_start": 0.0}
    events: list[Event] = [
        ModelEvent(
            uuid=f"{identity}-model", model=output.model, input=asked, tools=[], tool_choice="none",
            config=GenerateConfig(), output=output, **when,
        ),
        *(
            ScoreEvent(uuid=f"{identity}-{name}", score=score, target=target, scorer=name, **when)
            for name, score in scores.items()
        ),
    ]  # fmt: skip
    return EvalSample(
        id=row.name,
        uuid=identity,
        epoch=1,
        input=asked,
        choices=_choices(row.example),
        target=target,
        messages=[*asked, reply],
        output=output,
        scores=scores,
        events=events,
        metadata=_about(row, run.decisions),
    )


def _asked(layout: PromptLayout, row: _Row, identity: str) -> list[ChatMessage]:
    """What the model was asked; without the benchmark, only which example it was."""
    text = f"(example {row.name})" if row.example is None else row.example.user_text(layout)
    content: list[Content] = [] if row.image is None else [ContentImage(image=row.image)]
    messages: list[ChatMessage] = []
    if layout.system:
        messages.append(ChatMessageSystem(id=f"{identity}-system", content=layout.system, source="input"))
    return [
        *messages,
        ChatMessageUser(id=f"{identity}-user", content=[*content, ContentText(text=text)], source="input"),
    ]


def _choices(example: Example | None) -> list[str] | None:
    """The options that Inspect shows behind the letters A, B, C …; None where answers are called otherwise."""
    if example is None or example.texts is None or "".join(example.labels) not in ascii_uppercase:
        return None
    return list(example.texts) if example.labels[0] == "A" else None


def _score(answer: str | None, right: bool, explanation: str) -> Score:
    return Score(value=CORRECT if right else INCORRECT, answer=answer, explanation=explanation)


def _verdict(row: _Row) -> str:
    """What the model answered, and what is right."""
    original, labels = row.named.original, dict(zip(row.decision.candidates, row.named.candidates, strict=True))
    if row.right[0]:
        return f"The model answered “{original}”, which is right."
    told = "No answer could be read from the model's text" if original is None else f"The model answered “{original}”"
    answer = row.record["answer"]
    return f"{told}; “{labels.get(answer, answer)}” is right."


def _about(row: _Row, decisions: Decisions) -> dict[str, Any]:
    """Where the sample belongs, what was decided, and by which scores."""
    record, decision = row.record, row.decision
    place = {
        "pair": record["pair_id"],
        **{name: record[name] for name in ("side", "task", "category", "subcategory", "split")},
        "outcome": _OUTCOMES[row.right],
    }
    decided = {
        "original": decision.original,
        "final": decision.final,
        "revised": decision.revised,
        "proposal": decision.proposal,
        "gate": str(decision.reason),
        "gate_meaning": decision.reason.meaning,
        "condition": None if decision.condition is None else str(decision.condition),
        "prior_favourite": decision.prior_favourite,
    }
    numbers = {
        "strength": decision.strength,
        "margin": decision.margin,
        "stable_range_low": decision.range_low,
        "stable_range_high": decision.range_high,
    }
    more = _known({name: getattr(decision, name) for name in ("support", "distance", "lead", "needed_lead")})
    return (
        _known(place)
        | decided
        | {"stable_range": range_text(decision.range_low, decision.range_high)}
        | {name: finite_or_none(value) for name, value in (numbers | more).items()}
        | _scores(row, decisions)
    )


def _scores(row: _Row, decisions: Decisions) -> dict[str, Any]:
    """The candidates, and their scores by name: with the image, without it, and corrected."""
    columns = {
        "s_I": row.record["image_scores"],
        "s_P": row.record["prior_scores"],
        "corrected": row.decision.corrected_scores,
    }
    if decisions.stable is not None:  # what was decided on instead: a stable prior, or the scale of open answers
        used = decisions.stable.arrow.slice(row.number, 1).to_pylist()[0]
        if (used["image_scores"], used["prior_scores"]) != (columns["s_I"], columns["s_P"]):
            columns |= {"s_I_used": used["image_scores"], "s_P_used": used["prior_scores"]}
    candidates = row.decision.candidates
    scores = {name: dict(zip(candidates, values, strict=True)) for name, values in columns.items()}
    return {"candidates": list(candidates)} | scores
