"""The figures of the page, each with what it shows, in light and dark, and the numbers behind it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from unprior.evaluation import Evaluation
from unprior.plots.style import DARK, LIGHT, FigureStyle, as_svg
from unprior.report.figures import (
    AttractionDisplay,
    Display,
    IntervalsDisplay,
    MethodsDisplay,
    task_name,
)
from unprior.report.method_tables import cost_table, methods_table
from unprior.report.tables import attraction_table, changes_table
from unprior.studies import Attraction, Frontier, Methods, Ranges, Strengths, Studies
from unprior.studies.rq3.frontier import FrontierDisplay
from unprior.studies.rq3.stable_ranges import RangesDisplay, TaskRanges
from unprior.studies.rq3.strengths import StrengthsDisplay
from unprior.tables.html import HtmlTable, from_records, from_terminal

Draw = Callable[[FigureStyle], Display]


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, drawn twice."""

    light: str
    """Data URI."""
    dark: str
    """Data URI."""
    alt: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Section:
    """A figure with its words and numbers."""

    anchor: str
    title: str
    text: str
    panels: tuple[Panel, ...]
    numbers: HtmlTable | None
    """Everything behind the figure, folded away."""
    table: HtmlTable | None = None
    """A table to stand beside the figure."""
    below: tuple[HtmlTable, ...] = ()
    """Tables under the figures."""
    absent: str | None = None
    """Why there is nothing to see, if so."""


def figure_sections(evaluation: Evaluation, studies: Studies) -> list[Section]:
    """All figures of the page in their order.

    >>> from unprior import SelectivePriorCalibrator, evaluate, synthesize
    >>> from unprior.studies import run_studies
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator().fit(table)
    >>> decisions = calibrator.predict(table.where(split="test"))
    >>> sections = figure_sections(evaluate(decisions.table, decisions), run_studies(decisions, calibrator))
    >>> [section.anchor for section in sections]
    ['intervals', 'attraction', 'methods', 'frontier', 'strengths', 'ranges']
    """
    return [
        _intervals(evaluation),
        _attraction(studies.attraction),
        _methods(studies.methods),
        _frontier(studies.frontier),
        _strengths(studies.strengths),
        _ranges(studies.ranges),
    ]


def _intervals(evaluation: Evaluation) -> Section:
    text = (
        f"Change of accuracy against the original answers, with {100 * evaluation.level:g} % percentile intervals from "
        f"{evaluation.resamples:,} bootstrap resamples of pairs; both images of a pair move together."
    )
    alt = "; ".join(
        f"{task.task.upper()}: ΔCF {100 * task.cf.change.delta:+.1f}, ΔCS {100 * task.cs.change.delta:+.1f} points"
        for task in evaluation.tasks
    )
    panel = _panel(lambda style: IntervalsDisplay.from_results(evaluation, style=style), f"Intervals. {alt}")
    return Section(
        "intervals", "How sure is the change?", text, (panel,), None, from_terminal(changes_table(evaluation))
    )


def _attraction(results: Attraction) -> Section:
    whole = [cell for cell in results.overall if cell.attracted.total]
    said = "; ".join(
        f"{cell.task.upper()}: {100 * cell.attracted.value:.0f} % of {cell.attracted.total} errors"
        + (f", {100 * cell.chance:.0f} % expected by chance" if cell.task != "qa" else "")
        for cell in whole
    )
    text = (
        "Share of the wrong original answers to counterfactual images that are exactly what the model answers without "
        "any image; n is the number of wrong answers. " + (f"Overall: {said}. " if said else "")
    )
    if any(cell.task == "qa" for cell in whole):
        text += (
            "A yes/no question has only one wrong answer, so direction can be judged on multiple choice alone, where "
            "errors could have gone elsewhere."
        )
    panel = _panel(lambda style: AttractionDisplay.from_results(results, style=style), f"Heat map. {said}")
    numbers = from_records("Prior attraction", results.records())
    table = from_terminal(attraction_table(results))
    return Section("attraction", "Where do wrong answers come from?", text.strip(), (panel,), numbers, table)


def _methods(results: Methods | None) -> Section:
    title = "Beside other methods"
    if results is None:
        absent = "There are neither answers of other methods nor development rows to choose controls on."
        return Section("methods", title, "", (), None, absent=absent)
    panels, outside = [], []
    for task in results.tasks:
        draw = _draw_methods(results, task)
        display = draw(LIGHT)
        outside += [f"{point.label} ({task.upper()})" for point in display.outside]
        said = ", ".join(f"{each.label}: ΔCF {each.cf:+.1f}, ΔCS {each.cs:+.1f}" for each in display.points)
        panels.append(_panel(draw, f"Repair against retention by method, {task_name(task)}. {said}"))
    text = (
        "Up is repair, right is retention, both against the common original answers; faint lines join equal U = ΔCF + "
        "0.5 ΔCS. Circles are controls: other rules on the very scores that SPC uses, chosen on the same development "
        "rows by the same objective under the same limit."
    )
    if {row.kind for row in results.rows} - {"control", "spc"}:
        text += " Filled signs are methods that answer by themselves: other prompts, decoders, and edits of the model."
    if outside:
        text += f" Methods that lose too much to be shown: {', '.join(outside)}."
    text += f" The numbers below also give p adjusted over the {results.family} tests of the table (Holm)."
    tables = tuple(from_terminal(each) for each in (methods_table(results), cost_table(results)) if each is not None)
    return Section("methods", title, text, tuple(panels), from_records(title, results.records()), below=tables)


def _draw_methods(results: Methods, task: str) -> Callable[[FigureStyle], MethodsDisplay]:
    return lambda style: MethodsDisplay.from_results(results, task=task, style=style)


def _frontier(results: Frontier | None) -> Section:
    title = "What does a permitted loss buy?"
    if results is None:
        return Section("frontier", title, "", (), None, absent="There are no development rows to fit again on.")
    panels, outside = [], []
    for task in results.tasks:
        draw = _draw_frontier(results, task)
        display = draw(LIGHT)
        outside += [f"{label} ({task.upper()})" for label in display.outside]
        curve = ", ".join(f"ε {label}: ΔCF {cf:+.1f}, ΔCS {cs:+.1f}" for cs, cf, label in display.curves["spc"])
        panels.append(_panel(draw, f"Repair against retention, {task_name(task)}. {curve}"))
    text = (
        "Up is repair, right is retention. SPC is fitted again for every permitted loss ε of commonsense accuracy "
        "(labels, in points); the star is the calibrator of this report. Grey: one λ for all examples (labels), always "
        "adopted. Diamond: one fitted λ for all, with SPC’s gate under the same ε."
    )
    if outside:
        text += f" Fixed strengths that lose too much to be shown: {', '.join(outside)}."
    return Section("frontier", title, text, tuple(panels), from_records("Frontier", results.records()))


def _draw_frontier(results: Frontier, task: str) -> Callable[[FigureStyle], FrontierDisplay]:
    return lambda style: FrontierDisplay.from_results(results, task=task, style=style)


def _strengths(results: Strengths) -> Section:
    title = "How strongly is the prior subtracted?"
    if results.max_strength is None:
        return Section("strengths", title, "", (), None, absent="The calibrator abstains; it gives no strengths.")

    def panel(task: str) -> Panel:
        medians = ", ".join(f"{each.side.upper()} median {each.record()['median']:.2f}" for each in results.of(task))
        return _panel(
            lambda style: StrengthsDisplay.from_results(results, task=task, style=style),
            f"Distribution of λ, {task_name(task)}: {medians}",
        )

    text = (
        f"The learned λ of every test example, capped at {results.max_strength:g}; dotted lines are medians. The "
        f"calibrator never sees which side an image belongs to, it infers the need for "
        f"correction from the scores: little where the image speaks clearly, much where it only echoes the prior."
    )
    panels = tuple(panel(task) for task in results.tasks)
    return Section("strengths", title, text, panels, from_records("Strengths", results.records()))


def _ranges(results: Ranges) -> Section:
    title = "How much does the exact strength matter?"
    if not results.tasks:
        return Section("ranges", title, "", (), None, absent="The calibrator abstains; it makes no proposals.")

    def panel(each: TaskRanges) -> Panel:
        alt = f"Stable ranges of {len(each.low)} proposals, {task_name(each.task)}"
        return _panel(lambda style: RangesDisplay.from_results(results, task=each.task, style=style), alt)

    panels = tuple(panel(each) for each in results.tasks)
    text = (
        "Each line is one test example: the strengths for which its proposal stays the same, sorted by lower and then "
        "upper end and cut at 1.6. Dots are the fitted λ. A dot inside a long line is a proposal that small errors in "
        "λ would not change."
    )
    return Section("ranges", title, text, panels, from_records("Stable ranges", results.records()))


def _panel(draw: Draw, alt: str) -> Panel:
    figures = [draw(style).figure_ for style in (LIGHT, DARK)]
    width, height = (round(96 * inches) for inches in figures[0].get_size_inches().tolist())
    light, dark = (_data_uri(as_svg(figure)) for figure in figures)
    return Panel(light, dark, alt, width, height)


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode("ascii")
