"""RQ5: does what was fitted on one question form hold for others with the same meaning?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.evaluation import Share, holm, prior_winners
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.scores import ScoreTable
from unprior.studies.result import StudyResult
from unprior.studies.rq2.significance import LEVEL
from unprior.studies.rq5.claim_effects import (
    Effect,
    Exchange,
    claim_effects,
    effect_of,
    exchanges,
)
from unprior.studies.rq5.claims import (
    ABSTAINS,
    CLAIM_SEED,
    SIDES,
    claim_forms,
    claim_seed,
    fit_on_claims,
)
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_extremes, format_list, format_percent
from unprior.tables.model import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unprior.plots.style import FigureStyle

METHODS = {"spc": "SPC", "cfg-score": "CFG score control"}


@dataclass(frozen=True, slots=True)
class FormEffects:
    """One question form under one method."""

    form: str
    method: str
    """``spc`` or ``cfg-score``."""
    reverses: Share
    """Pairs whose text-only answer reverses with the claim order; the same for both methods."""
    effects: tuple[Effect, ...]
    """Claim orders and sides one by one, then both orders together."""
    holm_p: tuple[float, ...]
    """Of the effects of single claim orders; over all forms, orders and sides of a method."""
    exchanges: tuple[Exchange, ...]

    @property
    def label(self) -> str:
        """The form for people."""
        return form_label(self.form)


def form_label(form: str) -> str:
    """The name of a question form for people.

    >>> form_label("reject-second")
    'Reject second'
    """
    return form.replace("-", " ").capitalize()


@dataclass(frozen=True, slots=True)
class QuestionForms(StudyResult):
    """SPC and the control on all forms, both fitted on the contrastive one.

    >>> from unprior.synthetic import synthesize_claims
    >>> [row.label for row in study_question_forms(synthesize_claims(), resamples=100).of("spc")]
    ['Contrastive', 'Instead', 'Choice', 'Reject second']
    """

    rows: tuple[FormEffects, ...]
    """All forms of SPC, then all forms of the control."""
    scale: float
    """γ of the control."""
    abstains: bool = False
    """Whether no setting of SPC was feasible."""

    def of(self, method: str) -> tuple[FormEffects, ...]:
        """All forms of one method."""
        return tuple(row for row in self.rows if row.method == method)

    def p_values(self, method: str = "spc") -> dict[str, float]:
        """Raw p of every form, claim order and side, to be adjusted together with those of other models."""
        return {
            f"{row.label}, {effect.order}, {effect.side.upper()}": effect.p
            for row in self.of(method)
            for effect in row.effects
            if effect.p is not None
        }

    @property
    def table(self) -> Table:
        """Forms by what becomes of prior, SPC and control."""
        rows = []
        for spc, cfg in zip(self.of("spc"), self.of("cfg-score"), strict=True):
            twice = spc.exchanges[0].right_twice
            rows.append(
                (spc.label, format_percent(spc.reverses.value), *(_by_order(row, side) for row, side in (
                    (spc, "cf"), (cfg, "cf"), (spc, "cs"))),
                 "→".join(format_percent(share.value) for share in twice))
            )  # fmt: skip
        return Table.plain(
            "Transfer across question forms",
            ("Question form", "Text-only answer reverses (%)", "SPC ΔCF", "CFG ΔCF", "SPC ΔCS",
             "Both orders right, CF (%)"),
            rows,
            "Fitted on both orders of the contrastive form only. Changes in points, ordinary claim first/atypical "
            f"claim first; joint accuracy before→after SPC; γ = {self.scale:g}.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Where the gains hold, where they turn, and what the prior does meanwhile."""
        said = [ABSTAINS] if self.abstains else []
        for method, name in METHODS.items():
            found = [
                (row, effect, p)
                for row in self.of(method)
                for effect, p in zip(row.effects, row.holm_p, strict=False)
                if effect.side == "cf"
            ]
            gains = [each for each in found if each[1].change.delta > 0]
            losses = [each for each in found if each[1].change.delta < 0]
            kept = sum(p <= LEVEL for _, _, p in gains)
            lost = [f"{row.label} {str(effect.order).replace('-', ' ')}" for row, effect, _ in losses]
            said.append(
                f"{name} gains CF in {len(gains)} of {len(found)} combinations of form and claim order, {kept} of them "
                "significant after adjustment"
                + (f", and loses in {format_list(lost)}." if lost else ", and loses in none.")
            )
        shares = {row.label: row.reverses.value for row in self.of("spc")}
        said.append(
            f"The share of pairs whose text-only answer reverses with the claim order {format_extremes(shares)}."
        )
        return tuple(said)

    def records(self) -> list[dict[str, Any]]:
        """One record per method, form, side and claim order; ``order`` None is both together."""
        family = sum(len(row.holm_p) for row in self.of("spc"))
        return [
            {"method": row.method, "form": row.form, "reverses": row.reverses.value}
            | effect.record()
            | {"holm_p": row.holm_p[index] if index < len(row.holm_p) else None, "family": family}
            | row.exchanges[SIDES.index(effect.side)].record()
            for row in self.rows
            for index, effect in enumerate(row.effects)
        ]

    def figure(self, style: FigureStyle | None = None) -> Figure | None:
        """ΔCF by form and claim order, one panel per method."""
        from unprior.plots.style import LIGHT
        from unprior.report.figures.claim_orders import claim_figure

        panels = [(name, "cf", {row.label: row.effects for row in self.of(key)}) for key, name in METHODS.items()]
        return claim_figure(panels, style or LIGHT)


def _by_order(row: FormEffects, side: str) -> str:
    first, second = (effect_of(row.effects, order, side).change.delta for order in CLAIM_ORDERS)
    return format_changes(first, second)


def study_question_forms(
    forms: ScoreTable, *, epsilon: float = 0.10, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = CLAIM_SEED
) -> QuestionForms:
    """Fit on the development pairs of the contrastive form and apply to the test pairs of all forms."""
    fitted = fit_on_claims(forms, epsilon)
    prior = prior_winners(fitted.test)
    rows = []
    for method, answers in (("spc", fitted.spc), ("cfg-score", fitted.cfg.answers)):
        found = {
            name: (form, claim_effects(form, answers, resamples=resamples, seed=seed))
            for name, form in claim_forms(fitted.test).items()
        }
        raw = [effect.p for _, effects in found.values() for effect in effects if effect.p is not None]
        adjusted = iter(holm(raw).adjusted)
        for name, (form, effects) in found.items():
            turned = form.consistent(prior, "cf")
            reverses = Share(int(turned.sum()), len(turned))
            kept = tuple(next(adjusted) for effect in effects if effect.p is not None)
            rows.append(FormEffects(name, method, reverses, effects, kept, exchanges(form, answers)))
    return QuestionForms(tuple(rows), fitted.cfg.settings["scale"]["qa"], fitted.calibrator.settings_ is None)


STUDY = Study(
    name="question-forms",
    question="rq5",
    title="Transfer across question forms",
    asks="Does SPC repair in question forms that it was not fitted on?",
    how="SPC (standard version, ε = {wide_epsilon}) and CFG on scores are fitted on both claim orders of the "
    "contrastive form of the development pairs and applied to four forms of the test pairs. Exact tests, Holm over "
    "forms, orders and sides of a method; 10,000 resamples of pairs, seed 20260715.",
    needs=("forms",),
    run=lambda inputs: study_question_forms(
        inputs.variants["forms"], epsilon=inputs.wide_epsilon, resamples=inputs.resamples, seed=claim_seed(inputs)
    ),
)
