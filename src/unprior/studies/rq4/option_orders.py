"""RQ4: does the repair survive when the options change places?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unprior.calibration import Decisions, SelectivePriorCalibrator
from unprior.errors import UnpriorError
from unprior.evaluation import Share, compare, holm, mcnemar
from unprior.evaluation.metrics import correct
from unprior.plots.panels import Panels
from unprior.scores import ScoreTable
from unprior.scores.schema import SIDES
from unprior.studies.by_model import LEVEL
from unprior.studies.common.trade_off import TradeOff, trade_off_panels
from unprior.studies.inputs import ORDERS
from unprior.studies.result import StudyResult, Test
from unprior.studies.rq4.option_permutations import (
    Order,
    OrderAgreement,
    agreement,
    aligned,
    order_label,
    read_order,
    shares_by_side,
)
from unprior.studies.study import Study
from unprior.tables.format import format_changes, format_list, format_percent, format_points
from unprior.tables.model import Row, Section, Table


@dataclass(frozen=True, slots=True)
class OrderResult:
    """One order of the options under one ε."""

    epsilon: float
    method: str
    """SPC with its version and ε."""
    order: tuple[int, ...]
    """Which old option stands at each new place."""
    before: tuple[Share, Share]
    """Right original answers on CF and CS images."""
    after: tuple[Share, Share]
    """Right answers of SPC."""
    result: TradeOff
    p: tuple[float, float]
    """Exact tests on CF and CS images."""
    holm_p: tuple[float, float]
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
    >>> [row.label for row in result.rows], result.agreements[0].cf.value
    (['Original'], 1.0)
    """

    rows: tuple[OrderResult, ...]
    agreements: tuple[OrderAgreement, ...]
    """Of the original answers first."""

    @property
    def epsilons(self) -> tuple[float, ...]:
        """In the order of the calibrators."""
        return tuple(dict.fromkeys(row.epsilon for row in self.rows))

    def of(self, epsilon: float) -> tuple[OrderResult, ...]:
        """All orders under one ε."""
        return tuple(row for row in self.rows if row.epsilon == epsilon)

    def spread(self, epsilon: float, side: str = "cf") -> float:
        """Largest difference of SPC's accuracy between two orders under one ε."""
        return _range(row.after[SIDES.index(side)].value for row in self.of(epsilon))

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
        original = self.agreements[0]
        for row in self.rows:
            ours = self._agreement(row.epsilon)
            record = {"epsilon": row.epsilon, "order": "".join(map(str, row.order)), "label": row.label}
            record |= row.result.record()
            for place, side in enumerate(SIDES):
                record |= {
                    f"{side}_before": row.before[place].value, f"{side}_after": row.after[place].value,
                    f"{side}_p": row.p[place], f"{side}_holm_p": row.holm_p[place],
                    f"{side}_original_agreement": getattr(original, side).value,
                    f"{side}_spc_agreement": getattr(ours, side).value,
                    f"{side}_spread": self.spread(row.epsilon, side),
                }  # fmt: skip
            records.append(record)
        return records

    @property
    def table(self) -> Table:
        """Accuracies by order under the first ε, and how often answers agree."""
        shown = self.of(self.epsilons[0])
        rows = tuple(
            Row(
                (
                    row.label,
                    _shares(*row.before),
                    _shares(*row.after),
                    row.result.changes,
                    "/".join(f"{p:.3g}" for p in row.holm_p),
                )
            )
            for row in shown
        )
        original, ours = self.agreements[0], self._agreement(shown[0].epsilon)
        change = format_changes(ours.cf.value - original.cf.value, ours.cs.value - original.cs.value)
        same = Row(("All orders", _shares(original.cf, original.cs), _shares(ours.cf, ours.cs), change, "–"))
        return Table(
            f"Multiple choice with the options in other orders, {shown[0].method}",
            ("Order", "Original CF/CS (%)", "SPC CF/CS (%)", "ΔCF/ΔCS", "Holm p CF/CS"),
            (Section("Accuracy", rows), Section("Same answer in every order", (same,))),
            f"{shown[0].method}, fitted on the original order alone. Exact tests, Holm over {2 * len(rows)} "
            f"comparisons. An answer that could not be read agrees with none.",
        )

    def _agreement(self, epsilon: float) -> OrderAgreement:
        return next(each for each in self.agreements if each.epsilon == epsilon)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How far the gain moves with the order, what is significant, and what happens to agreement."""
        sentences = []
        for epsilon in self.epsilons:
            rows = self.of(epsilon)
            cf, cs = (_between([getattr(row.result, side).delta for row in rows]) for side in SIDES)
            sentences.append(
                f"With {rows[0].method} the CF changes of {len(rows)} orders are between {cf} points, the CS changes "
                f"between {cs}."
            )
        rows = self.of(self.epsilons[0])
        method = rows[0].method
        spreads = {self.of(epsilon)[0].method: self.spread(epsilon) for epsilon in self.epsilons}
        spreads["the original answers"] = _range(row.before[0].value for row in rows)
        differences = [f"{100 * spread:.1f} points with {name}" for name, spread in spreads.items()]
        sentences.append(f"Between two orders, CF accuracy differs by at most {format_list(differences)}.")
        gains = sum(row.result.cf.delta > 0 and row.holm_p[0] <= LEVEL for row in rows)
        losses = sum(row.result.cs.delta < 0 and row.holm_p[1] <= LEVEL for row in rows)
        sentences.append(
            f"With {method} CF accuracy rises significantly in {gains} and CS accuracy falls significantly in {losses} "
            f"of {len(rows)} orders (Holm, {LEVEL:g})."
        )
        original, ours = self.agreements[0], self._agreement(self.epsilons[0])
        difference = ours.cf.count + ours.cs.count - original.cf.count - original.cs.count
        word = "less often than" if difference < 0 else "more often than" if difference > 0 else "as often as"
        sentences.append(
            f"{method} gives the same answer in every order {word} the original answers do: "
            f"{_shares(ours.cf, ours.cs)} against {_shares(original.cf, original.cs)} % (CF/CS)."
        )
        return tuple(sentences)

    def panels(self) -> Panels | None:
        """ΔCF and ΔCS of every order under the first ε."""
        return trade_off_panels([(row.label, (row.result,)) for row in self.of(self.epsilons[0])])


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
    rows: list[OrderResult] = []
    agreements = [agreement(None, choices, {order: table.original_positions for order, table in tables.items()})]
    for calibrator in calibrators:
        decisions = {order: calibrator.predict(table) for order, table in tables.items()}
        rows += _results(decisions)
        finals = {order: each.final_positions for order, each in decisions.items()}
        agreements.append(agreement(calibrator.epsilon_cs, choices, finals))
    return OptionOrders(tuple(rows), tuple(agreements))


def _results(decisions: Mapping[Order, Decisions]) -> list[OrderResult]:
    changes = {order: [compare(each.table, each, side=side) for side in SIDES] for order, each in decisions.items()}
    tests = [mcnemar(change.repairs, change.harms).p_value for pair in changes.values() for change in pair]
    adjusted = holm(tests).adjusted
    return [
        OrderResult(
            each.made_with["epsilon_cs"],
            each.method,
            order,
            shares_by_side(each.table, correct(each.table, each.table.original_positions)),
            shares_by_side(each.table, correct(each.table, each.final_positions)),
            TradeOff("mc", *changes[order]),
            (tests[2 * place], tests[2 * place + 1]),
            (adjusted[2 * place], adjusted[2 * place + 1]),
        )
        for place, (order, each) in enumerate(decisions.items())
    ]


def _range(values: Iterable[float]) -> float:
    found = list(values)
    return max(found) - min(found)


def _between(deltas: Sequence[float]) -> str:
    return f"{format_points(min(deltas))} and {format_points(max(deltas))}"


def _shares(cf: Share, cs: Share) -> str:
    return f"{format_percent(cf.value)}/{format_percent(cs.value)}"


STUDY = Study(
    name="option-orders",
    question="rq4",
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
