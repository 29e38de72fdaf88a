"""Calibrators and decisions in a notebook; all text is escaped."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

from unprior.calibration.decisions import method_name
from unprior.calibration.gate import Reason
from unprior.errors import format_option, warn
from unprior.scores.schema import OPEN
from unprior.tables.format import format_points
from unprior.tables.html import as_html
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unprior.calibration.calibrator import SelectivePriorCalibrator
    from unprior.calibration.certificate import Certificate
    from unprior.calibration.decisions import Decisions
    from unprior.calibration.open_answers import OpenScale
    from unprior.calibration.state import FittedState
    from unprior.plots.style import FigureStyle

_FIRST_ROWS = 5


def calibrator_html(calibrator: SelectivePriorCalibrator) -> str:
    """Parameters, and once fitted the chosen settings, their development outcome, and the limit in words."""
    head = f"<p><code>{escape(repr(calibrator))}</code></p>"
    if not hasattr(calibrator, "state_"):
        return head + "<p>Not fitted yet: call <code>fit(table)</code>.</p>"
    for state in filter(None, (calibrator.state_, calibrator.state_.open)):
        head += f"<p>{escape(limit_in_words(state))}</p>"
        if state.settings is not None:
            head += as_html(settings_table(state)) + as_html(outcome_table(state))
    return head


def limit_in_words(state: FittedState) -> str:
    """What the calibrator kept to on its development data.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> limit_in_words(SelectivePriorCalibrator().fit(synthesize(seed=0)).state_)[:58]
    'SPC (standard, ε = 0.04), fitted on 280 rows of synthetic:'
    """
    parameters, selection = state.parameters, state.selection
    name = method_name(parameters.version, parameters.epsilon_cs)
    rows = "rows" if state.scale is None else "open rows"
    fitted = f"{name}, fitted on {state.development_rows:,} {rows} of {state.model_name or 'a model without a name'}"
    kept = "lose no counterfactual accuracy"
    if parameters.select_on == "both":
        kept += f" and at most {100 * parameters.epsilon_cs:g} points of commonsense accuracy"
    if state.certificate is not None:
        return f"{fitted}: {state.certificate.sentence}"
    many = f"{selection.feasible} of {selection.searched} settings"
    if state.settings is None:
        return f"{fitted}: it abstains, because none of {selection.searched} settings would {kept} on every task."
    return f"{fitted}: {many} {kept} on every development task."


def settings_table(state: FittedState) -> Table:
    """The chosen settings by name; none from a calibrator that abstains."""
    if state.certificate is not None:
        return _thresholds_table(state.certificate, state.scale)
    chosen = {} if state.settings is None else asdict(state.settings)
    if state.scale is not None:
        chosen |= {"clip": state.scale.clip, "temperature": state.scale.temperature}
    rows = [(name.replace("_", " "), f"{value:.4g}") for name, value in chosen.items() if value is not None]
    title = "Chosen settings" if state.scale is None else "Chosen settings for open questions"
    return Table.plain(title, ("Setting", "Value"), rows, "")


def _thresholds_table(certificate: Certificate, scale: OpenScale | None) -> Table:
    """The thresholds for questions with options, or for open questions, which have a scale."""
    rows = [
        (each.task.upper(), f"{each.threshold:.4g}", f"{each.harms} of {each.pairs}", f"{each.bound:.4f}")
        for each in certificate.tasks
        if (each.task == OPEN) == (scale is not None)
    ]
    strength = certificate.strength
    if scale is not None and certificate.open_strength is not None:
        strength = certificate.open_strength
    scaled = "" if scale is None else f" Prior clipped at {scale.clip:g} nats, temperature {scale.temperature:.3g}."
    rule = (
        f"fitted on the other {len(certificate.strength_pairs)} pairs"
        if certificate.strength_rule == "split"
        else "not fitted"
    )
    chance = certificate.chance
    spent = "" if chance is None else f" The promise breaks with a chance of at most {chance:.3f}."
    return Table.plain(
        f"Certificate ({certificate.label})",
        ("Task", "Threshold", "Harms seen", "Bound"),
        rows,
        f"A revision needs log-odds above the threshold. Bound: the smallest ε that is promised. Thresholds are set on "
        f"{certificate.calibration} pairs; strength {strength:.3g}, {rule}.{scaled}{spent}",
    )


def outcome_table(state: FittedState) -> Table:
    """What the chosen settings do to the development rows, by task."""
    rows = [
        (
            change.task.upper(),
            format_points(change.delta_cf),
            f"{change.cf_net:+d} of {change.cf_total}",
            *(
                (format_points(change.delta_cs), f"{change.cs_net:+d} of {change.cs_total}")
                if change.cs_total
                else ("–", "–")
            ),
        )
        for change in state.selection.changes
    ]
    columns = ("Task", "ΔCF", "net CF", "ΔCS", "net CS")
    return Table.plain("Development outcome", columns, rows, f"{state.selection.changed} answers changed; Δ in points.")


def reasons_table(decisions: Decisions) -> Table:
    """How often each reason occurs, and what it means."""
    counts = [(str(reason), reason.meaning, f"{count:,}") for reason, count in decisions.count_reasons().items()]
    return Table.plain("Decisions by reason", ("Reason", "Meaning", "Rows"), counts, "", text_columns=2)


def revised_in_words(decisions: Decisions) -> str:
    """How many answers were revised."""
    return f"{int(decisions.revised.sum()):,} of {len(decisions):,} answers revised"


def decisions_html(decisions: Decisions) -> str:
    """How often each reason occurs, and the first decisions with their explanations."""
    head = f"<p>{escape(decisions.method)}: {revised_in_words(decisions)}.</p>"
    rows = [
        (decision.original or "–", decision.final or "–", decision.explain(promise=False))
        for decision, _ in zip(decisions, range(_FIRST_ROWS), strict=False)
    ]
    first = Table.plain("First decisions", ("Original", "Final", "Explanation"), rows, "", text_columns=3)
    return head + as_html(reasons_table(decisions)) + as_html(first)


def plot_reasons(decisions: Decisions, ax: Axes | None = None, style: FigureStyle | None = None) -> Axes:
    """Bars for the rows of every reason; those of revisions stand out.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> decisions = SelectivePriorCalibrator().fit(table).predict(table)
    >>> [label.get_text() for label in plot_reasons(decisions).get_yticklabels()][:2]
    ['conflict', 'absorption']
    """
    from unprior.plots.style import LIGHT

    style = style or LIGHT
    counts = decisions.count_reasons()
    with style.applied():
        axes = style.axes_or_new(ax, 4.5, 0.7 + 0.32 * len(counts))
        revisions = (Reason.CONFLICT, Reason.ABSORPTION)
        colours = [style.method if reason in revisions else style.quiet for reason in counts]
        bars = axes.barh([reason.replace("_", " ") for reason in counts], list(counts.values()), color=colours)
        axes.bar_label(bars, fmt="{:,.0f}", padding=3)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set(xlabel="rows", title=decisions.method)
        axes.grid(visible=False, axis="y")
    return axes


def warn_about_abstaining(calibrator: SelectivePriorCalibrator) -> None:
    """Without a feasible setting nothing is ever changed, which a person should know."""
    certificate = calibrator.certificate_
    if certificate is not None and certificate.abstains:
        warn(f"{certificate.sentence} See `unprior plan` for what more pairs would promise.")
        return
    for state in filter(None, (calibrator.state_, calibrator.state_.open)):
        if state.settings is None:
            kind = "" if state.scale is None else " to an open question"
            warn(
                f"none of the {state.selection.searched} settings kept ΔCF ≥ 0 and ΔCS ≥ −{calibrator.epsilon_cs:g} "
                f"on every task: this calibrator abstains, it never changes an answer{kind}. "
                f"A larger limit, {format_option('epsilon_cs')}, or more development pairs may help."
            )
