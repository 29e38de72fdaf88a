"""RQ5: is correction reliable where the estimated prior favours the ordinary answer in both claim orders?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

from unprior.benchmarks.forms import CLAIM_ORDERS
from unprior.evaluation import Share, prior_winners
from unprior.evaluation.statistics import BOOTSTRAP_RESAMPLES
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.result import StudyResult, format_repairs
from unprior.studies.rq5 import claims
from unprior.studies.study import Study
from unprior.tables.format import format_count, format_extremes, format_interval, format_percent, format_points
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class PriorGroup:
    """Pairs of one question form, grouped by the estimated prior alone."""

    form: str
    favours: bool
    """Text-only winner is yes with the ordinary claim first and no with the atypical one first."""
    pairs: Share
    effects: tuple[claims.ClaimEffect, ...]
    """Of SPC: claim orders and sides one by one, then both orders together."""

    @property
    def label(self) -> str:
        """The form for people."""
        return claims.form_label(self.form)


@dataclass(frozen=True, slots=True)
class PriorFavours(StudyResult):
    """What SPC does where the prior favours the ordinary answer in both orders, and elsewhere.

    >>> from unprior.synthetic import synthesize_claims
    >>> result = study_prior_favours(synthesize_claims(), resamples=100)
    >>> [group.pairs.count + other.pairs.count for group, other in zip(result.groups[::2], result.groups[1::2])]
    [40, 40, 40, 40]
    """

    groups: tuple[PriorGroup, ...]
    """Two per form."""
    method: str
    """SPC with its version and ε."""
    warnings: tuple[str, ...] = ()
    """What a reader must know first, such as that SPC abstains."""

    @property
    def table(self) -> Table:
        """Both tables of the paper in one: changes by order, and both orders together."""
        sections = tuple(
            Section(form, tuple(map(_row, groups))) for form, groups in groupby(self.groups, lambda each: each.label)
        )
        return Table(
            f"{self.method} by whether the estimated prior favours the ordinary answer",
            ("Estimated prior", "Pairs", "%", "ΔCF by order", "ΔCF", "95 %", "ΔCS", "Repairs/harms CF",
             "Repairs/harms CS"),
            sections,
            "Changes in points. By order: ordinary claim first/atypical claim first; the columns after "
            "it combine both orders. Intervals resample pairs. The groups depend on text-only scores alone.",
        )  # fmt: skip

    @property
    def sentences(self) -> tuple[str, ...]:
        """In how many forms both orders gain, by group, and what is harmed."""
        sentences = list(self.warnings)
        for favours, where in ((True, "Where the prior favours the ordinary answer"), (False, "Elsewhere")):
            groups = [group for group in self.groups if group.favours == favours and group.pairs.count]
            if not groups:
                sentences.append(f"{where} there is no pair in any form.")
                continue
            gains = sum(
                all(claims.effect_of(group.effects, order, "cf").change.delta > 0 for order in CLAIM_ORDERS)
                for group in groups
            )
            harms = sum(claims.effect_of(group.effects, None, "cf").change.harms for group in groups)
            sentences.append(
                f"{where}, {self.method} gains CF accuracy in both claim orders in {gains} of {len(groups)} forms and "
                f"harms {format_count(harms, 'CF answer')}."
            )
        shares = format_extremes({group.label: group.pairs.value for group in self.groups if group.favours})
        return (*sentences, f"The share of pairs in which the prior favours the ordinary answer {shares}.")

    def records(self) -> list[dict[str, Any]]:
        """One record per form, group, side and claim order; ``order`` None is both together."""
        return [
            {"form": group.form, "prior_favours_ordinary": group.favours, "pairs": group.pairs.count,
             "share": group.pairs.value}
            | effect.record()
            for group in self.groups
            for effect in group.effects
        ]  # fmt: skip

    def panels(self) -> Panels:
        """ΔCF by form and claim order, one panel per group."""
        titles = {True: "Prior favours the ordinary answer", False: "Prior does not favour it"}
        effects = {key: {each.label: each.effects for each in self.groups if each.favours == key} for key in titles}
        return claims.claim_panels([(title, "cf", effects[key]) for key, title in titles.items()], self.method)


def _row(group: PriorGroup) -> Row:
    cf, cs = (claims.effect_of(group.effects, None, side) for side in SIDES)
    name = "Favours ordinary" if group.favours else "Does not favour ordinary"
    share, by_order = format_percent(group.pairs.value), claims.by_order(group.effects, "cf")
    delta_cf, delta_cs = (format_points(each.change.delta, 2) for each in (cf, cs))
    changes = (
        delta_cf,
        format_interval(cf.low, cf.high, 2),
        delta_cs,
        *(format_repairs(each.change) for each in (cf, cs)),
    )
    return Row((name, str(group.pairs.count), share, by_order, *changes))


def study_prior_favours(
    forms: ScoreTable, *, epsilon: float = 0.10, resamples: int = BOOTSTRAP_RESAMPLES, seed: int = claims.CLAIM_SEED
) -> PriorFavours:
    """Group the test pairs of every form by the prior's direction, then measure SPC in each group."""
    fitted = claims.fit_on_claims(forms, epsilon)
    prior = prior_winners(fitted.test)
    groups = []
    for name, form in claims.claim_forms(fitted.test).items():
        ordinary, atypical = CLAIM_ORDERS
        favours = form.says("yes", prior, ordinary, "cf") & form.says("no", prior, atypical, "cf")
        for wanted in (True, False):
            chosen = favours == wanted
            effects = claims.claim_effects(form, fitted.spc, chosen, resamples=resamples, seed=seed)
            groups.append(PriorGroup(name, wanted, claims.share_of(chosen), effects))
    return PriorFavours(tuple(groups), fitted.names["spc"], fitted.warnings)


STUDY = Study(
    name="prior-favours-ordinary",
    title="Where the estimated prior favours the ordinary answer",
    asks="Is correction reliable in both claim orders where the prior speaks for the ordinary answer in both?",
    how="SPC (standard, ε = {wide_epsilon}) is fitted on both claim orders of the contrastive form of the development "
    "pairs. Test pairs of every form are grouped by text-only scores: yes with the ordinary claim first and no with "
    "the atypical one first, or not. 10,000 resamples of pairs, seed 20260715.",
    label="tab:semantic-conditioning-full",
    needs=("forms",),
    run=lambda inputs: study_prior_favours(inputs.variants["forms"], **claims.claim_options(inputs)),
)
