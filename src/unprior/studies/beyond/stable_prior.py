"""Beyond the paper: a prior that survives the wording of a question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unprior.benchmarks.forms import CLAIM_ORDERS, FITTED_FORM
from unprior.calibration import SelectivePriorCalibrator
from unprior.calibration.stable import CANONICAL_VIEWS, SWAPPED
from unprior.errors import UnpriorError
from unprior.evaluation.metrics import correct
from unprior.plots.panels import Panels
from unprior.plots.style import FigureStyle
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES, IntArray
from unprior.studies.inputs import StudyInputs
from unprior.studies.result import StudyResult
from unprior.studies.rq5.claims import ClaimForm, claim_forms, form_label, in_fitted_form, read_claim
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_limit, format_points
from unprior.tables.model import Row, Section, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BIASES = (-4.0, -2.0, 0.0, 2.0, 4.0)
"""Nats that are added to yes, in every text-only score."""
REMEDIES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("plain prior", {}),
    "symmetric": ("symmetric prior", {"prior": "symmetric"}),
    "canonical": ("canonical prior", {"prior": "canonical"}),
    "strict": ("canonical prior, strict", {"prior": "canonical", "strict": True}),
}
"""Names for people, and parameters of the calibrator."""
PASSES = {"plain": (1, 1), "symmetric": (1, 2), "canonical": (3, 4), "strict": (2, 4)}
"""Passes per question with the image and without it, the prior between the claims as options included; one image pass
less for ``canonical`` when the question is asked in the canonical form."""


@dataclass(frozen=True, slots=True)
class FormCell:
    """One remedy in one question form and claim order."""

    remedy: str
    form: str
    order: str
    delta_cf: float
    delta_cs: float


@dataclass(frozen=True, slots=True)
class Remedy:
    """One remedy over all forms and orders."""

    name: str
    abstains: bool
    cells: tuple[FormCell, ...]
    right_twice: tuple[float, float]
    """Share of pairs whose answers are right in both claim orders, mean over forms, by side."""
    same: tuple[float, float]
    """Share of pairs with one and the same claim in all forms and orders, by side."""
    worst_with_bias: tuple[float, ...]
    """ΔCS of the worst cell for every injected bias of the prior, as in ``BIASES``."""
    moved: int
    """Answers that an injected bias of the prior changes, over all biases."""
    moved_by_both: int | None
    """The same when the image scores have the bias, too; only for ``strict``, whose answers do not depend on it."""
    answers: int
    """Answers compared for ``moved``."""

    @property
    def mean_cf(self) -> float:
        """Mean ΔCF over forms and orders."""
        return float(np.mean([cell.delta_cf for cell in self.cells]))

    @property
    def worst_cs(self) -> float:
        """ΔCS of the worst form and order."""
        return min(cell.delta_cs for cell in self.cells)


@dataclass(frozen=True, slots=True)
class StablePrior(StudyResult):
    """All remedies, fitted on one form and tested in every form and order."""

    epsilon: float
    pairs: int
    remedies: tuple[Remedy, ...]
    original: tuple[tuple[float, float], tuple[float, float]]
    """Of the original answers: right in both orders, and the same claim everywhere, by side."""

    def of(self, name: str) -> Remedy:
        """A remedy by its name."""
        return next(each for each in self.remedies if each.name == name)

    @property
    def table(self) -> Table:
        """ΔCF/ΔCS by form and order, with mean repair and worst retention."""
        forms = list(dict.fromkeys(cell.form for cell in self.remedies[0].cells))
        sections = []
        for remedy in self.remedies:
            rows = []
            for form in forms:
                cells = {cell.order: cell for cell in remedy.cells if cell.form == form}
                changes = [format_changes(cells[order].delta_cf, cells[order].delta_cs) for order in CLAIM_ORDERS]
                rows.append(Row((form_label(form), *changes)))
            rows.append(Row(("mean ΔCF / worst ΔCS", format_changes(remedy.mean_cf, remedy.worst_cs), ""), bold=True))
            sections.append(Section(REMEDIES[remedy.name][0].capitalize(), tuple(rows)))
        return Table(
            f"SPC (ε = {format_limit(self.epsilon)}) in every question form and claim order",
            ("Form", "ordinary first", "atypical first"),
            tuple(sections),
            f"ΔCF/ΔCS in points on {self.pairs} test pairs; fitted on the {FITTED_FORM} form in both orders.",
        )

    @property
    def further_tables(self) -> tuple[Table, ...]:
        """Consistency, cost and injected biases."""
        rows = [
            ("original answers", *_two(self.original[0]), *_two(self.original[1]), "1/–", *("–" for _ in BIASES), "–")
        ]
        for each in self.remedies:
            image, text = PASSES[each.name]
            biased = [format_points(value) for value in each.worst_with_bias]
            moved = f"{each.moved:,}" if each.moved_by_both is None else f"{each.moved:,} ({each.moved_by_both:,})"
            rows.append(
                (REMEDIES[each.name][0], *_two(each.right_twice), *_two(each.same), f"{image}/{text}", *biased, moved)
            )
        columns = (
            "Prior", "both right CF", "both right CS", "same CF", "same CS", "passes",
            *(f"CS {bias:+g}" for bias in BIASES), "moved",
        )  # fmt: skip
        caption = (
            "both right: % of pairs right in both claim orders, mean over forms; same: % with one claim in all forms "
            "and orders; passes with the image/without it per question (without it they are shared by all images). "
            "CS: worst ΔCS when so many nats are added to yes in every text-only score and SPC is fitted again; moved: "
            f"answers that this changes, of {self.remedies[0].answers:,} (in brackets: when image scores have it, too)."
        )
        return (Table.plain("Consistency, cost and injected biases", columns, rows, caption),)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What held and what did not."""
        plain, canonical, strict = self.of("plain"), self.of("canonical"), self.of("strict")
        told = [
            f"Fitted on one form, SPC with the plain prior has a ΔCS of {format_points(plain.worst_cs)} in its worst "
            f"form and order; with the canonical prior {format_points(canonical.worst_cs)}, and mean ΔCF is "
            f"{format_points(canonical.mean_cf)} instead of {format_points(plain.mean_cf)}.",
            f"Strict: mean ΔCF {format_points(strict.mean_cf)}, worst ΔCS {format_points(strict.worst_cs)}, and the "
            f"same claim in all forms and orders on {_two(strict.same)[0]} % of CF and {_two(strict.same)[1]} % of CS "
            f"pairs.",
            f"Of {strict.answers:,} answers, a yes-bias of up to {max(BIASES):g} nats changes {plain.moved:,} with the "
            f"plain prior, {canonical.moved:,} with the canonical one and {strict.moved:,} in strict mode"
            f"{_in_both(strict)}; the worst ΔCS under such a bias is {format_points(min(plain.worst_with_bias))} with "
            f"the plain and {format_points(min(canonical.worst_with_bias))} with the canonical prior.",
        ]
        told += [f"SPC with the {REMEDIES[each.name][0]} abstains." for each in self.remedies if each.abstains]
        return tuple(told)

    def records(self) -> list[dict[str, Any]]:
        """One record per remedy, form and order."""
        return [
            {
                "remedy": each.name, "form": cell.form, "order": cell.order, "delta_cf": cell.delta_cf,
                "delta_cs": cell.delta_cs, "mean_cf": each.mean_cf, "worst_cs": each.worst_cs,
                "both_right_cf": each.right_twice[0], "both_right_cs": each.right_twice[1], "same_cf": each.same[0],
                "same_cs": each.same[1], "worst_with_bias": min(each.worst_with_bias), "moved": each.moved,
                "answers": each.answers, "image_passes": PASSES[each.name][0], "text_passes": PASSES[each.name][1],
                "abstains": each.abstains, "epsilon": self.epsilon,
            }
            for each in self.remedies
            for cell in each.cells
        ]  # fmt: skip

    def panels(self) -> Panels | None:
        """Repair against retention in every cell, and the worst retention under injected biases."""
        return Panels((self._draw_cells, self._draw_biases), 4.2, 3.6)

    def _looks(self, style: FigureStyle) -> list[tuple[Remedy, str, str]]:
        colours = {"plain": style.control, "symmetric": style.cs, "canonical": style.method, "strict": style.ink}
        return [(each, colours[each.name], marker) for each, marker in zip(self.remedies, "s^oD", strict=False)]

    def _draw_cells(self, ax: Axes, style: FigureStyle) -> None:
        for each, colour, marker in self._looks(style):
            ax.plot([100 * cell.delta_cs for cell in each.cells], [100 * cell.delta_cf for cell in each.cells], marker,
                    color=colour, alpha=0.85, markersize=5, label=REMEDIES[each.name][0])  # fmt: skip
        ax.axvline(0, color=style.quiet, linewidth=0.8)
        ax.set(xlabel="ΔCS: retention (points)", ylabel="ΔCF: repair (points)", title="Every form and claim order")
        ax.legend(loc="lower left")  # both panels have the same one, which then stands once below them

    def _draw_biases(self, ax: Axes, style: FigureStyle) -> None:
        for each, colour, marker in self._looks(style):
            ax.plot(BIASES, [100 * value for value in each.worst_with_bias], f"{marker}-", color=colour, markersize=5,
                    label=REMEDIES[each.name][0])  # fmt: skip
        ax.axhline(0, color=style.quiet, linewidth=0.8)
        ax.legend(loc="lower left")
        ax.set(xlabel="yes-bias added to the prior (nats)", ylabel="ΔCS of the worst cell (points)",
               title="With an injected bias")  # fmt: skip


def _two(shares: tuple[float, float]) -> tuple[str, str]:
    return f"{100 * shares[0]:.1f}", f"{100 * shares[1]:.1f}"


def _in_both(strict: Remedy) -> str:
    return "" if strict.moved_by_both is None else f" ({strict.moved_by_both:,} when the image scores have it, too)"


def study_stable_prior(table: ScoreTable, *, epsilon: float = 0.10) -> StablePrior:
    """Fit every remedy on the fitted form in both orders, and test it in every form and order.

    Parameters
    ----------
    table
        The variant ``forms``, scored with ``prior="canonical"``.
    epsilon
        Limit of commonsense loss on the development pairs.
    """
    full = with_swapped(table)
    test = full.where(split="test")
    forms = claim_forms(test)
    remedies = tuple(_remedy(name, full, forms, epsilon) for name in REMEDIES)
    original = test.original_positions
    pairs = len(next(iter(forms.values())).pairs)
    return StablePrior(epsilon, pairs, remedies, (_right_twice(forms, original), _same(forms, original)))


def _remedy(name: str, full: ScoreTable, forms: dict[str, ClaimForm], epsilon: float) -> Remedy:
    parameters = REMEDIES[name][1]
    test = next(iter(forms.values())).table

    def answers(table: ScoreTable) -> tuple[IntArray, bool]:
        fitted = SelectivePriorCalibrator(epsilon_cs=epsilon, **parameters)
        fitted.fit(in_fitted_form(table, "dev"), split=None)
        return fitted.predict(table.where(split="test")).final_positions, fitted.settings_ is None

    plain, abstains = answers(full)
    biased = {bias: plain if bias == 0.0 else answers(add_bias(full, bias))[0] for bias in BIASES}
    by_both = None
    if name == "strict":
        by_both = sum(
            int((answers(add_bias(full, bias, image=True))[0] != plain).sum()) for bias in BIASES if bias != 0.0
        )
    return Remedy(
        name,
        abstains,
        tuple(_cells(name, forms, plain)),
        _right_twice(forms, plain),
        _same(forms, plain),
        tuple(min(cell.delta_cs for cell in _cells(name, forms, given)) for given in biased.values()),
        sum(int((given != plain).sum()) for given in biased.values()),
        by_both,
        len(test) * (len(BIASES) - 1),
    )


def _cells(name: str, forms: dict[str, ClaimForm], answers: IntArray) -> Iterator[FormCell]:
    for form, asked in forms.items():
        right, before = (correct(asked.table, given) for given in (answers, asked.table.original_positions))
        for order in CLAIM_ORDERS:
            deltas = [
                float(right[asked.rows[order, side]].mean() - before[asked.rows[order, side]].mean()) for side in SIDES
            ]
            yield FormCell(name, form, order, *deltas)


def _right_twice(forms: dict[str, ClaimForm], answers: IntArray) -> tuple[float, float]:
    first, second = (float(np.mean([form.right_twice(answers, side) for form in forms.values()])) for side in SIDES)
    return first, second


def _same(forms: dict[str, ClaimForm], answers: IntArray) -> tuple[float, float]:
    """Share of pairs for which all forms and orders name one claim."""
    shares = []
    for side in SIDES:
        ordinary = np.stack(
            [
                form.says("yes" if order == CLAIM_ORDERS[0] else "no", answers, order, side)
                for form in forms.values()
                for order in CLAIM_ORDERS
            ]
        )
        shares.append(float((ordinary.all(axis=0) | (~ordinary).all(axis=0)).mean()))
    return shares[0], shares[1]


def with_swapped(table: ScoreTable) -> ScoreTable:
    """The same table with the prior of the exchanged claims, which stands in another row of it."""
    asked = map(read_claim, *(table.column(name) for name in ("form", "claim_order", "example_id")))
    keys = zip(*(table.column(name) for name in ("pair_id", "side")), asked, strict=True)
    rows = {(pair, side, *claim): row for row, (pair, side, claim) in enumerate(keys)}
    offsets, prior = table.offsets, table.prior_scores
    changed = []
    for (pair, side, form, order), row in rows.items():
        other = rows.get((pair, side, form, CLAIM_ORDERS[1 - CLAIM_ORDERS.index(order)]))
        if other is None:
            raise UnpriorError(
                f"pair {pair} does not have both claim orders of the {form} form on side {side}; score the variant "
                f"`forms` of all pairs"
            )
        views = dict(table.arrow.column("views")[row].as_py() or ())
        changed.append(views | {SWAPPED: prior[offsets[other] : offsets[other + 1]].tolist()})
    return table.with_column("views", changed)


def add_bias(table: ScoreTable, nats: float, *, image: bool = False) -> ScoreTable:
    """The same table from a model that prefers yes by so many nats more, without the image and perhaps with it."""
    yes = table.offsets[:-1]
    prior, shown = table.prior_scores.copy(), table.image_scores.copy()
    prior[yes] += nats
    kinds = ["canonical-text"]
    if image:
        shown[yes] += nats
        kinds.append("canonical-image")
    changed = []
    for entry in table.column("views"):
        views = {name: list(scores) for name, scores in dict(entry or ()).items()}
        for name in (SWAPPED, *CANONICAL_VIEWS):
            if name in views and (name == SWAPPED or any(name.startswith(kind) for kind in kinds)):
                views[name][0] += nats
        changed.append(views)
    return table.with_prior_scores(prior).with_image_scores(shown).with_column("views", changed)


def _run(inputs: StudyInputs) -> StablePrior:
    return study_stable_prior(inputs.variants["forms"], epsilon=inputs.wide_epsilon)


STUDY = Study(
    name="stable-prior",
    title="A prior that survives the wording",
    asks="Does correction still help, and harm little, when a question is asked in other words or in the other order?",
    how="SPC (standard, ε = {wide_epsilon}) with each prior, fitted on the development pairs in the contrastive form "
    "and both claim orders, tested in four forms and both orders. Biases are added to the scores of yes, and "
    "everything is fitted again.",
    needs=("forms", "canonical"),
    run=_run,
)
