"""RQ5: does what was fitted on one question form hold for others with the same meaning?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from unprior.evaluation import Share, holm, prior_winners
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.by_model import LEVEL
from unprior.studies.result import StudyResult, Test
from unprior.studies.rq5 import claims
from unprior.studies.study import Study
from unprior.tables.format import format_extremes, format_list, format_percent
from unprior.tables.model import Table


@dataclass(frozen=True, slots=True)
class FormEffects:
    """One question form under one method."""

    form: str
    method: str
    """``spc`` or ``cfg-score``."""
    reverses: Share
    """Pairs whose text-only answer reverses with the claim order; the same for both methods."""
    effects: tuple[claims.ClaimEffect, ...]
    """Claim orders and sides one by one, then both orders together."""
    holm_p: tuple[float, ...]
    """Of the effects of single claim orders; over all forms, orders and sides of a method."""
    exchanges: tuple[claims.Exchange, ...]

    @property
    def label(self) -> str:
        """The form for people."""
        return claims.form_label(self.form)


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
    names: dict[str, str]
    """SPC with its version and ε, and the control, by method."""
    warnings: tuple[str, ...] = ()
    """What a reader must know first, such as that SPC abstains."""

    def of(self, method: str) -> tuple[FormEffects, ...]:
        """All forms of one method."""
        return tuple(row for row in self.rows if row.method == method)

    def tests(self) -> tuple[Test, ...]:
        """Every form, claim order and side; a family is one method, as in the paper."""
        return tuple(
            Test(self.names[row.method], f"{row.label}, {effect.order}, {effect.side.upper()}", effect.p, holm_p)
            for row in self.rows
            for effect, holm_p in zip(row.effects, row.holm_p, strict=False)
            if effect.p is not None
        )

    @property
    def table(self) -> Table:
        """Forms by what becomes of prior, SPC and control."""
        rows, spc_name = [], self.names["spc"]
        for spc, cfg in zip(self.of("spc"), self.of("cfg-score"), strict=True):
            of_spc, of_cfg = (claims.by_order(each.effects, "cf") for each in (spc, cfg))
            right_twice = "→".join(format_percent(share.value) for share in spc.exchanges[0].right_twice)
            rows.append((spc.label, format_percent(spc.reverses.value), of_spc, of_cfg,
                         claims.by_order(spc.effects, "cs"), right_twice))  # fmt: skip
        return Table.plain(
            "Transfer across question forms",
            ("Question form", "Text-only answer reverses (%)", f"{spc_name} ΔCF", "CFG ΔCF", f"{spc_name} ΔCS",
             "Both orders right, CF (%)"),
            rows,
            f"{spc_name} and {self.names['cfg-score']}, γ = {self.scale:g}, are fitted on both orders of the "
            "contrastive form only. Changes in points, ordinary claim first/atypical claim first; joint accuracy "
            "before→after correction.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """Where the gains hold, where they turn, and what the prior does meanwhile."""
        sentences = list(self.warnings)
        for method, name in self.names.items():
            found = [
                (f"{row.label} {str(effect.order).replace('-', ' ')}", effect.change.delta, p)
                for row in self.of(method)
                for effect, p in zip(row.effects, row.holm_p, strict=False)
                if effect.side == "cf"
            ]
            gains = [p for _, delta, p in found if delta > 0]
            losses = [where for where, delta, _ in found if delta < 0]
            sentences.append(
                f"{name} gains CF accuracy in {len(gains)} of {len(found)} combinations of form and claim order, "
                f"{sum(p <= LEVEL for p in gains)} of them significant after adjustment, and loses in "
                f"{format_list(losses) if losses else 'none'}."
            )
        shares = format_extremes({row.label: row.reverses.value for row in self.of("spc")})
        return (*sentences, f"The share of pairs whose text-only answer reverses with the claim order {shares}.")

    def records(self) -> list[dict[str, Any]]:
        """One record per method, form, side and claim order; ``order`` None is both together."""
        family = sum(len(row.holm_p) for row in self.of("spc"))
        return [
            {"method": row.method, "form": row.form, "reverses": row.reverses.value}
            | effect.record()
            | {"holm_p": holm_p, "family": family}
            | row.exchanges[SIDES.index(effect.side)].record()
            for row in self.rows
            for effect, holm_p in zip_longest(row.effects, row.holm_p)
        ]

    def panels(self) -> Panels:
        """ΔCF by form and claim order, one panel per method."""
        effects = {name: {row.label: row.effects for row in self.of(key)} for key, name in self.names.items()}
        return claims.claim_panels([(name, "cf", each) for name, each in effects.items()])


def study_question_forms(
    forms: ScoreTable, *, epsilon: float = 0.10, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = claims.CLAIM_SEED
) -> QuestionForms:
    """Fit on the development pairs of the contrastive form and apply to the test pairs of all forms."""
    fitted = claims.fit_on_claims(forms, epsilon)
    prior, by_form, rows = prior_winners(fitted.test), claims.claim_forms(fitted.test), []
    for method, answers in (("spc", fitted.spc), ("cfg-score", fitted.cfg.answers)):
        effects = {
            name: claims.claim_effects(form, answers, resamples=resamples, seed=seed) for name, form in by_form.items()
        }
        raw = [each.p for of_form in effects.values() for each in of_form if each.p is not None]
        adjusted = iter(holm(raw).adjusted)
        for name, form in by_form.items():
            reverses = claims.share_of(form.consistent(prior, "cf"))
            kept = tuple(next(adjusted) for each in effects[name] if each.p is not None)
            rows.append(FormEffects(name, method, reverses, effects[name], kept, claims.exchanges(form, answers)))
    return QuestionForms(tuple(rows), fitted.cfg.settings["scale"]["qa"], fitted.names, fitted.warnings)


STUDY = Study(
    name="question-forms",
    title="Transfer across question forms",
    asks="Does SPC repair in question forms that it was not fitted on?",
    how="SPC (standard, ε = {wide_epsilon}) and CFG on scores (same ε) are fitted on both claim orders of the "
    "contrastive form of the development pairs and applied to four forms of the test pairs. Exact tests, Holm over "
    "forms, orders and sides of a method; 10,000 resamples of pairs, seed 20260715.",
    label="tab:template-transfer",
    needs=("forms",),
    run=lambda inputs: study_question_forms(inputs.variants["forms"], **claims.claim_options(inputs)),
)
