"""The report of one run as one HTML page that needs nothing else, and as a record for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unprior._text import one_line
from unprior.benchmarks.schema import Benchmark
from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.calibration.certificate import Certificate
from unprior.calibration.gate import Settings
from unprior.calibration.state import FittedState
from unprior.evaluation import Evaluation
from unprior.evaluation.metrics import open_coverage
from unprior.report.gallery import OUTCOMES, choose_gallery
from unprior.report.headline import Summary, headline
from unprior.report.html import write_page
from unprior.report.section import make_section
from unprior.scores import ScoreTable
from unprior.studies.finished import FinishedStudy
from unprior.tables.format import format_limit, format_list


def write_report(
    path: str | Path,
    *,
    calibrator: SelectivePriorCalibrator,
    decisions: Decisions,
    evaluation: Evaluation,
    studies: Sequence[FinishedStudy],
    benchmark: Benchmark | None = None,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> None:
    """Write the report of one run as a page that opens without a network.

    Parameters
    ----------
    path
        The HTML file to write; it appears whole or not at all.
    calibrator, decisions, evaluation
        The fitted calibrator, its decisions about the test rows, and their evaluation.
    studies
        What :func:`unprior.studies.run_studies` gave; each is a section.
    benchmark
        Where questions and images of the gallery come from, joined by ``example_id``; without it the gallery shows
        scores alone.
    title, notes
        A heading instead of “model on benchmark”, and what the reader should know before the numbers.

    >>> import tempfile
    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> evaluation = evaluate(decisions.table, decisions)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "report.html"
    ...     write_report(page, calibrator=calibrator, decisions=decisions, evaluation=evaluation, studies=[])
    ...     page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    gallery = choose_gallery(decisions, benchmark)
    abstains = calibrator.state_.abstains
    write_page(
        Path(path),
        "report.html.j2",
        title=title or default_title(decisions.table),
        notes=notes,
        summary=Summary.from_evaluation(evaluation, decisions.method, abstains=abstains),
        sections=[make_section(each, files=False) for each in studies],
        gallery=gallery,
        outcomes=OUTCOMES,
        subcategories=sorted({card.subcategory for card in gallery.cards if card.subcategory}),
        tasks=sorted({card.task for card in gallery.cards}),
        facts=_facts(calibrator, decisions),
    )


def report_record(
    *,
    table: ScoreTable,
    calibrator: SelectivePriorCalibrator,
    decisions: Decisions,
    evaluation: Evaluation,
    studies: Sequence[FinishedStudy],
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """All numbers of the page as plain values for JSON; the arguments are those of :func:`write_report`.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> evaluation = evaluate(decisions.table, decisions)
    >>> record = report_record(
    ...     table=table, calibrator=calibrator, decisions=decisions, evaluation=evaluation, studies=[]
    ... )
    >>> sorted(record)[:6]
    ['calibrator', 'date', 'evaluation', 'headline', 'notes', 'provenance']
    """
    from unprior._version import __version__

    settings = calibrator.settings_
    return {
        "unprior": __version__,
        "date": max(filter(None, (record.date for record in table.provenance)), default=None),
        "provenance": [record.record() for record in table.provenance],
        "title": default_title(decisions.table),
        "headline": headline(evaluation, decisions.method, abstains=calibrator.state_.abstains),
        "notes": list(notes),
        "test_rows": len(decisions),
        "calibrator": {
            "epsilon_cs": calibrator.epsilon_cs,
            "uncertainty": calibrator.uncertainty,
            "development_rows": calibrator.development_rows_,
            "abstains": calibrator.state_.abstains,
            "settings": None if settings is None else asdict(settings),
            "retention": calibrator.retention,
            "certificate": None if calibrator.certificate_ is None else calibrator.certificate_.record(),
        }
        | _open_record(calibrator.state_),
        **_coverage_record(decisions.table),
        "reasons": {str(reason): count for reason, count in decisions.count_reasons().items()},
        "evaluation": evaluation.record(),
        "studies": {each.study.name: None if each.result is None else each.result.records() for each in studies},
    }


def _open_record(state: FittedState) -> dict[str, Any]:
    """What was fitted on open questions, if anything was."""
    part = state.open_part
    if part is None or part.scale is None:
        return {}
    settings = None if part.settings is None else asdict(part.settings)
    return {"open": {"development_rows": part.development_rows, "settings": settings, "scale": part.scale.record()}}


def _coverage_record(table: ScoreTable) -> dict[str, Any]:
    """How often the right answer to an open question is among the candidates, by side."""
    shares = open_coverage(table)
    return {"coverage": {side: [share.count, share.total] for side, share in shares.items()}} if shares else {}


def default_title(*tables: ScoreTable) -> str:
    """Models and benchmarks of tables, as the heading of a page.

    >>> from unprior import synthesize
    >>> default_title(synthesize(seed=0))
    'synthetic'
    """
    named = [[table.column(column)[0] for table in tables] for column in ("model", "benchmark")]
    parts = (format_list(list(dict.fromkeys(one_line(name) for name in names if name))) for names in named)
    return " on ".join(dict.fromkeys(filter(None, parts))) or "Score table"


def _facts(calibrator: SelectivePriorCalibrator, decisions: Decisions) -> list[tuple[str, str]]:
    """How the numbers came about, for the foot of the page."""
    settings, epsilon = calibrator.settings_, calibrator.epsilon_cs
    certificate = calibrator.certificate_
    chosen = "none was feasible; the calibrator abstains"
    if certificate is not None and settings is not None:
        limits = format_list([f"{each.threshold:.3g} on {each.task.upper()}" for each in certificate.tasks])
        chosen = f"strength {certificate.strength:.3g}; log-odds of a revision above {limits}"
    elif settings is not None:
        chosen = _named_settings(settings)
    pairs = len(decisions.table.codes("pair_id")[1])
    return [
        ("Method", f"Selective Prior Calibration, {calibrator.state_.parameters.version}"),
        ("Permitted loss", f"ε = {format_limit(epsilon)} ({100 * epsilon:g} points of commonsense accuracy)"),
        *([] if certificate is None else [("Promise", certificate.sentence), ("Certificate", _rests_on(certificate))]),
        ("Settings", chosen),
        ("Fitted on", f"{calibrator.development_rows_:,} development rows"),
        *_open_facts(calibrator.state_, decisions.table),
        ("Tested on", f"{len(decisions):,} rows of {pairs:,} pairs"),
        *provenance_facts(decisions.table),
    ]


def _named_settings(settings: Settings) -> str:
    named = ((name.replace("_", " "), value) for name, value in asdict(settings).items())
    return ", ".join(f"{name} {value:.4g}" for name, value in named if value is not None)


def _open_facts(state: FittedState, tested: ScoreTable) -> list[tuple[str, str]]:
    """How open answers were made comparable, and how often the right one is among the candidates."""
    part = state.open_part
    if part is None or part.scale is None:
        return []
    clip = "not clipped" if math.isinf(part.scale.clip) else f"clipped {part.scale.clip:g} nats below its top (τ)"
    shares = [f"{share.count} of {share.total} on {side.upper()}" for side, share in open_coverage(tested).items()]
    told = f"scores divided by T = {part.scale.temperature:.2f}, prior {clip}; {part.development_rows:,} rows"
    if part.certificate is None and part.settings is not None and state.scale is None:
        told += f"; {_named_settings(part.settings)}"
    return [("Open answers", told), *([("Right answer proposed", format_list(shares))] if shares else [])]


def _rests_on(certificate: Certificate) -> str:
    """What a promise rests on, for the foot of the page."""
    if certificate.abstains:
        return "none" if certificate.harmed_by_strict else f"none; {certificate.pairs:,} development pairs are too few"
    harms = format_list([f"{each.harms} of {each.pairs} on {each.task.upper()}" for each in certificate.tasks])
    split = len(certificate.strength_pairs)
    own = f"strength fitted on {split} other pairs" if split else "strength not fitted"
    mixed = "the target mixture" if certificate.has_target else "the mixture of the development pairs"
    return f"{certificate.label}; harms on the pairs that set the thresholds: {harms}; {own}; covers {mixed}"


def provenance_facts(table: ScoreTable) -> list[tuple[str, str]]:
    """How the scores were made, for the foot of a page; with several sources each value stands once.

    >>> from unprior import synthesize
    >>> provenance_facts(synthesize(seed=0))
    [('Scores', 'their table does not say how they were made')]
    """
    facts: dict[str, dict[str, None]] = {}
    for record in table.provenance:
        for name, value in record.describe():
            facts.setdefault(name, {})[one_line(value)] = None
    if not facts:
        return [("Scores", "their table does not say how they were made")]
    return [(name, "; ".join(values)) for name, values in facts.items()]
