"""RQ4: does the repair survive when the options change places?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unprior.calibration import SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Share, compare, holm, mcnemar
from unprior.evaluation.metrics import correct
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES, BoolArray, IntArray
from unprior.studies.by_model import LEVEL
from unprior.studies.common.trade_off import TradeOff, trade_off_panels
from unprior.studies.common.variants import more_or_less
from unprior.studies.inputs import ORDERS
from unprior.studies.result import StudyResult, Test
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_list, format_percent, format_points
from unprior.tables.model import Row, Section, Table

Order = tuple[int, ...]
"""Which old option stands at each new place."""
BySide = tuple[Share, Share]
"""Of CF and CS images."""


@dataclass(frozen=True, slots=True)
class OrderResult:
    """One order of the options under one ε."""

    epsilon: float
    method: str
    """SPC with its version and ε."""
    order: Order
    before: BySide
    """Right original answers."""
    after: BySide
    """Right answers of SPC."""
    agreement: BySide
    """Questions whose answer by SPC means the same in every order; equal for all orders under one ε."""
    result: TradeOff
    p: tuple[float, ...]
    """Exact tests on CF and CS images."""
    holm_p: tuple[float, ...]
    """Adjusted over all orders and both sides."""

    @property
    def label(self) -> str:
        """The paper's name of the order."""
        return order_label(self.order)


@dataclass(frozen=True, slots=True)
class OptionOrders(StudyResult):
    """Every order under every ε, the first ε being that of the table.

    >>> from unprior import SelectivePriorCalibrator, synthesize
    >>> table = synthesize(seed=0)
    >>> calibrator = SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True).fit(table)
    >>> result = study_option_orders([calibrator], table.where(split="test"), {})
    >>> [row.label for row in result.rows], result.original_agreement[0].value
    (['Original'], 1.0)
    """

    rows: tuple[OrderResult, ...]
    original_agreement: BySide
    """Questions whose original answer means the same in every order."""

    @property
    def epsilons(self) -> tuple[float, ...]:
        """In the order of the calibrators."""
        return tuple(dict.fromkeys(row.epsilon for row in self.rows))

    def of(self, epsilon: float) -> tuple[OrderResult, ...]:
        """All orders under one ε."""
        return tuple(row for row in self.rows if row.epsilon == epsilon)

    def spread(self, epsilon: float, side: str = "cf", *, after: bool = True) -> float:
        """Largest difference of accuracy between two orders under one ε, of SPC or of the original answers."""
        shares = [(row.after if after else row.before)[SIDES.index(side)].value for row in self.of(epsilon)]
        return max(shares) - min(shares)

    def tests(self) -> tuple[Test, ...]:
        """Every order and side; a family is one ε, as in the paper."""
        return tuple(
            Test(row.method, f"{row.label} {side.upper()}", p, holm_p)
            for row in self.rows
            for side, p, holm_p in zip(SIDES, row.p, row.holm_p, strict=True)
        )

    def records(self) -> list[dict[str, Any]]:
        """One record per ε and order; agreement and spread are over all orders, so the same for all of one ε."""
        records: list[dict[str, Any]] = []
        for row in self.rows:
            record = {"epsilon": row.epsilon, "order": "".join(map(str, row.order)), "label": row.label}
            record |= row.result.record()
            for place, side in enumerate(SIDES):
                record |= {
                    f"{side}_before": row.before[place].value, f"{side}_after": row.after[place].value,
                    f"{side}_p": row.p[place], f"{side}_holm_p": row.holm_p[place],
                    f"{side}_original_agreement": self.original_agreement[place].value,
                    f"{side}_spc_agreement": row.agreement[place].value,
                    f"{side}_spread": self.spread(row.epsilon, side),
                }  # fmt: skip
            records.append(record)
        return records

    @property
    def table(self) -> Table:
        """Accuracies by order under the first ε, and how often answers agree."""
        shown = self.of(self.epsilons[0])
        rows = tuple(
            Row((row.label, _shares(*row.before), _shares(*row.after), row.result.changes,
                 "/".join(f"{p:.3g}" for p in row.holm_p)))
            for row in shown
        )  # fmt: skip
        original, ours = self.original_agreement, shown[0].agreement
        cf, cs = (after.value - before.value for before, after in zip(original, ours, strict=True))
        same = Row(("All orders", _shares(*original), _shares(*ours), format_changes(cf, cs), "–"))
        return Table(
            "Multiple choice with the options in other orders",
            ("Order", "Original CF/CS (%)", f"{shown[0].method} CF/CS (%)", "ΔCF/ΔCS", "Holm p CF/CS"),
            (Section("Accuracy", rows), Section("Same answer in every order", (same,))),
            f"{shown[0].method}, fitted on the original order alone. Exact tests, Holm over {2 * len(rows)} "
            f"comparisons. An answer that could not be read agrees with none.",
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """How far the gain moves with the order, what is significant, and what happens to agreement."""
        first, sentences, spreads = self.epsilons[0], [], {}
        for epsilon in self.epsilons:
            rows = self.of(epsilon)
            cf, cs = (sorted(getattr(row.result, side).delta for row in rows) for side in SIDES)
            sentences.append(
                f"With {rows[0].method} the CF changes of {len(rows)} orders are between {format_points(cf[0])} and "
                f"{format_points(cf[-1])} points, the CS changes between {format_points(cs[0])} and "
                f"{format_points(cs[-1])}."
            )
            spreads[rows[0].method] = self.spread(epsilon)
        spreads["the original answers"] = self.spread(first, after=False)
        differences = [f"{100 * spread:.1f} points with {name}" for name, spread in spreads.items()]
        rows = self.of(first)
        gains = sum(row.result.cf.delta > 0 and row.holm_p[0] <= LEVEL for row in rows)
        losses = sum(row.result.cs.delta < 0 and row.holm_p[1] <= LEVEL for row in rows)
        original, ours = self.original_agreement, rows[0].agreement
        difference = sum(share.count for share in ours) - sum(share.count for share in original)
        return (
            *sentences,
            f"Between two orders, CF accuracy differs by at most {format_list(differences)}.",
            f"With {rows[0].method} CF accuracy rises significantly in {gains} and CS accuracy falls significantly in "
            f"{losses} of {len(rows)} orders (Holm, {LEVEL:g}).",
            f"{rows[0].method} gives the same answer in every order "
            f"{more_or_less(difference, 'more often than', 'less often than', 'as often as')} the original answers do: "
            f"{_shares(*ours)} against {_shares(*original)} % (CF/CS).",
        )

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every order under the first ε."""
        shown = self.of(self.epsilons[0])
        return trade_off_panels([(row.label, (row.result,)) for row in shown], method=shown[0].method)


def study_option_orders(
    calibrators: Sequence[SelectivePriorCalibrator], test: ScoreTable, variants: Mapping[str, ScoreTable]
) -> OptionOrders:
    """Apply calibrators that were fitted on the original order to test questions in other orders.

    Parameters
    ----------
    calibrators
        Fitted, with different ε; the table shows the first.
    test
        Test rows in the original order; the multiple-choice ones are used.
    variants
        The same questions in other orders, by names such as ``order-1230`` (which old option stands at each place).
    """
    choices = test.where(task="mc")
    size = int(choices.candidate_counts[0])
    tables: dict[Order, ScoreTable] = {tuple(range(size)): choices}
    tables |= {read_order(name): aligned(choices, table.where(task="mc"), name) for name, table in variants.items()}
    for order, table in tables.items():
        if (table.candidate_counts != len(order)).any():
            raise UnpriorError(f"option order {order}: some questions do not have {len(order)} options")
    rows = [row for each in calibrators for row in _results(each, tables)]
    return OptionOrders(
        tuple(rows), _agreement({order: table.original_positions for order, table in tables.items()}, choices)
    )


def _results(calibrator: SelectivePriorCalibrator, tables: Mapping[Order, ScoreTable]) -> list[OrderResult]:
    decisions = {order: calibrator.predict(table) for order, table in tables.items()}
    changes = {order: [compare(each.table, each, side=side) for side in SIDES] for order, each in decisions.items()}
    raw = [mcnemar(change.repairs, change.harms).p_value for pair in changes.values() for change in pair]
    tests = zip(raw, holm(raw).adjusted, strict=True)
    same = _agreement({order: each.final_positions for order, each in decisions.items()}, tables[next(iter(tables))])
    rows = []
    for order, each in decisions.items():
        answers = (each.table.original_positions, each.final_positions)
        before, after = (_by_side(each.table, correct(each.table, given)) for given in answers)
        p, holm_p = zip(*(next(tests) for _ in SIDES), strict=True)
        result = TradeOff("mc", *changes[order])
        rows.append(OrderResult(calibrator.epsilon_cs, each.method, order, before, after, same, result, p, holm_p))
    return rows


def _agreement(answers: Mapping[Order, IntArray], choices: ScoreTable) -> BySide:
    """How often answers agree in all orders, after letters are mapped back to the original options."""
    meanings = np.stack([np.where(given < 0, -1, np.array(order)[given]) for order, given in answers.items()])
    return _by_side(choices, (meanings == meanings[0]).all(axis=0) & (meanings[0] >= 0))


def _by_side(table: ScoreTable, which: BoolArray) -> BySide:
    cf, cs = (Share(int((which & side).sum()), int(side.sum())) for side in (table.is_cf, ~table.is_cf))
    return cf, cs


def _shares(cf: Share, cs: Share) -> str:
    return f"{format_percent(cf.value)}/{format_percent(cs.value)}"


def order_label(order: Order) -> str:
    """The paper's name of an order.

    >>> [order_label(order) for order in ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 2, 1, 0), (1, 0, 2, 3))]
    ['Original', 'Rotation 1', 'Rotation 2', 'Reversal', 'B, A, C, D']
    """
    places = list(range(len(order)))
    for turns in places:
        if list(order) == places[turns:] + places[:turns]:
            return f"Rotation {turns}" if turns else "Original"
    return "Reversal" if list(order) == places[::-1] else ", ".join("ABCDEFGHIJ"[old] for old in order)


def read_order(name: str) -> Order:
    """Which old option stands at each new place, from a name such as ``order-1230``.

    >>> read_order("order-1230")
    (1, 2, 3, 0)
    """
    order = tuple(int(place) for place in name.rpartition("-")[2] if place.isdigit())
    if not order or sorted(order) != list(range(len(order))):
        raise UnpriorError(f"{name!r} does not name an order of options; it is called like order-1230")
    return order


def aligned(choices: ScoreTable, other: ScoreTable, name: str) -> ScoreTable:
    """Rows of another order in the order of the original questions."""

    def keys(table: ScoreTable) -> list[tuple[Any, ...]]:
        return list(zip(*(table.column(column) for column in ("pair_id", "side", "example_id")), strict=True))

    places = {key: place for place, key in enumerate(keys(other))}
    lacking = [key for key in keys(choices) if key not in places]
    if lacking:
        raise UnpriorError(
            f"{name}: {len(lacking)} of {len(choices)} test questions are not there (first: pair {lacking[0][0]}, "
            f"{lacking[0][1]}); prepare the order again from the same benchmark"
        )
    return other.take(np.array([places[key] for key in keys(choices)]))


STUDY = Study(
    name="option-orders",
    title="Multiple choice with the options in other orders",
    asks="Does the repair survive when the options change places?",
    how="SPC (uncertainty-aware, ε = {wide_epsilon} in the table, {epsilon} too in the records) is fitted on "
    "development questions in the original order and applied to test questions in two rotations and in reverse. Exact "
    "tests with Holm's adjustment over orders and sides; for agreement, letters are mapped back to their meanings.",
    label="tab:mc-option-order",
    needs=("scores", "orders"),
    run=lambda inputs: study_option_orders(
        [inputs.fitted(epsilon, uncertainty=True) for epsilon in (inputs.wide_epsilon, inputs.epsilon)],
        inputs.test,
        {name: inputs.variants[name].where(split="test") for name in ORDERS},
    ),
)
