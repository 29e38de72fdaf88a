"""RQ5: does correction survive when the two claims of a question change places?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM
from unprior.calibration import SelectivePriorCalibrator
from unprior.evaluation import Share
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.result import StudyResult
from unprior.studies.rq5 import claims
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_interval, format_list, format_percent, format_points
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class ClaimMethod:
    """What one method does in both claim orders."""

    name: str
    label: str
    """The name for people, with the version and ε of SPC."""
    note: str | None
    """What a reader must know about its choice."""
    idle: bool
    """Whether it cannot change an answer; ``note`` says why."""
    effects: tuple[claims.ClaimEffect, ...]
    exchanges: tuple[claims.Exchange, ...]
    """By side."""


@dataclass(frozen=True, slots=True)
class ClaimOrder(StudyResult):
    """SPC fitted on the original form, SPC fitted on both orders, and the control, on balanced claims.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> from unprior.synthetic import synthesize_claims
    >>> calibrator = SelectivePriorCalibrator(epsilon_cs=0.1).fit(synthesize(seed=0))
    >>> [method.name for method in study_claim_order(synthesize_claims(), calibrator, resamples=100).methods]
    ['spc-original-form', 'spc-both-orders', 'cfg-score']
    """

    methods: tuple[ClaimMethod, ...]
    pairs: int

    @property
    def table(self) -> Table:
        """Changes by claim order with intervals, consistency and joint accuracy."""
        sections = tuple(
            Section(
                f"{method.label}: {method.note}" if method.note else method.label,
                tuple(Row(_cells(method, exchange)) for exchange in method.exchanges),
            )
            for method in self.methods
        )
        return Table(
            f"Exchanging the two claims ({FITTED_FORM} form)",
            ("Images", "Δ ordinary first", "95 % (ordinary)", "Δ atypical first", "95 % (atypical)",
             "Consistency after exchange", "Both orders right"),
            sections,
            f"{self.pairs} test pairs; Δ in points with intervals from resampled pairs; shares of pairs before→after "
            "correction. Consistent: exchanging the claims turns yes into no or no into yes.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Gains by order, how clear they are, and who is right in both orders most often."""
        changes = [
            f"{method.label} changes CF accuracy by {claims.by_order(method.effects, 'cf')} points ({_clear(method)})"
            for method in self.methods
        ]
        sentences = [
            f"With the ordinary/atypical claim first, {'; '.join(changes)}.",
            *(f"{each.label} cannot change an answer here: {each.note}." for each in self.methods if each.idle),
        ]
        for name, measure in (("consistent", "consistent after exchange"), ("right_twice", "right in both orders")):
            before = getattr(self.methods[0].exchanges[0], name)[0]
            after = {method.label: getattr(method.exchanges[0], name)[1].value for method in self.methods}
            sentences.append(
                f"The share of CF pairs that are {measure}, {format_percent(before.value)} % before correction, "
                f"{format_extremes(after)}."
            )
        return tuple(sentences)

    def records(self) -> list[dict[str, Any]]:
        """One record per method, side and claim order; ``order`` None is both together."""
        return [
            {"method": method.name, "label": method.label, "note": method.note}
            | effect.record()
            | method.exchanges[SIDES.index(effect.side)].record()
            for method in self.methods
            for effect in method.effects
        ]

    def panels(self) -> Panels:
        """Changes by method and claim order, one panel per side."""
        effects = {method.label: method.effects for method in self.methods}
        return claims.claim_panels([("Counterfactual images", "cf", effects), ("Commonsense images", "cs", effects)])


def _cells(method: ClaimMethod, exchange: claims.Exchange) -> tuple[str, ...]:
    effects = [claims.effect_of(method.effects, order, exchange.side) for order in CLAIM_ORDERS]
    changes = ((format_points(each.change.delta), format_interval(each.low, each.high)) for each in effects)
    return (exchange.side.upper(), *chain(*changes), *map(before_after, (exchange.consistent, exchange.right_twice)))


def before_after(shares: tuple[Share, ...]) -> str:
    """Two shares as the paper writes them.

    >>> before_after((Share(103, 230), Share(176, 230)))
    '0.448→0.765'
    """
    return "→".join(f"{share.value:.3f}" for share in shares)


def _clear(method: ClaimMethod) -> str:
    first, second = (claims.effect_of(method.effects, order, "cf").clear for order in CLAIM_ORDERS)
    if first == second:
        return "both intervals exclude zero" if first else "neither interval excludes zero"
    return f"only the {'first' if first else 'second'} interval excludes zero"


def _why_idle(calibrator: SelectivePriorCalibrator) -> str | None:
    """Why SPC leaves every yes/no question alone; None where it does not."""
    if calibrator.settings_ is None:
        return "it abstains, no setting was feasible"
    counts = format_list(list(map(str, calibrator.candidate_counts_)))
    known = 2 in calibrator.candidate_counts_
    return None if known else f"it was fitted on questions with {counts} candidates, never on questions with two"


def study_claim_order(
    forms: ScoreTable,
    original_form: SelectivePriorCalibrator,
    *,
    epsilon: float = 0.10,
    resamples: int = BOOTSTRAP_RESAMPLES,
    seed: int = claims.CLAIM_SEED,
) -> ClaimOrder:
    """Apply corrections to both claim orders of the fitted form.

    Parameters
    ----------
    forms
        The variant ``forms`` of a benchmark, with development and test pairs.
    original_form
        SPC fitted on the benchmark's own development rows.
    epsilon
        Permitted loss for what is fitted on the development rows of ``forms``.
    """
    fitted = claims.fit_on_claims(forms, epsilon)
    form = claims.fitted_form(fitted.test)
    original, scale = original_form.predict(fitted.test), fitted.cfg.settings["scale"]["qa"]
    answers = (
        ("spc-original-form", f"{original.method} fitted on the original form", original.final_positions,
         _why_idle(original_form)),
        ("spc-both-orders", f"{fitted.names['spc']} fitted on both orders", fitted.spc,
         _why_idle(fitted.calibrator)),
        ("cfg-score", fitted.names["cfg-score"], fitted.cfg.answers,
         f"γ = {scale:g}" + ("" if fitted.cfg.feasible else ", not feasible on the development rows")),
    )  # fmt: skip
    methods = []
    for name, label, given, note in answers:
        idle = name != "cfg-score" and note is not None
        effects = claims.claim_effects(form, given, resamples=resamples, seed=seed)
        methods.append(ClaimMethod(name, label, note, idle, effects, claims.exchanges(form, given)))
    return ClaimOrder(tuple(methods), len(form.pairs))


STUDY = Study(
    name="claim-order",
    title="Exchanging the two claims",
    asks="Does SPC repair when the atypical claim comes first, as it does when the ordinary one does?",
    how="Contrastive form, both claim orders of the test pairs. {wide_method} is fitted on the benchmark's "
    "own development rows, SPC (standard, ε = {wide_epsilon}) on both claim orders of the development pairs; CFG on "
    "scores has γ chosen on the latter with the same ε. The paper's numbers for the original form in this section have "
    "ε = 0.10. 10,000 resamples of pairs, seed 20260715.",
    label="tab:polarity-consistency",
    needs=("scores", "forms"),
    run=lambda inputs: study_claim_order(
        inputs.variants["forms"], inputs.fitted(inputs.wide_epsilon), **claims.claim_options(inputs)
    ),
)
