from __future__ import annotations

import json
from dataclasses import replace

import pytest

from small_tables import example, few_pairs, with_other_answers
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError
from unprior.evaluation import PAPER_FAMILIES, Share, holm, mcnemar
from unprior.studies.by_model import ByModel
from unprior.studies.rq4.option_orders import OptionOrders, study_option_orders

ORDER = (1, 2, 3, 0)


def reordered(table: ScoreTable, order: tuple[int, ...] = ORDER, **changes: str) -> ScoreTable:
    """The same options in another order with the same scores, so that every answer keeps its meaning."""
    rows = []
    for row in table.arrow.to_pylist():
        if row["task"] == "mc":
            labels = row["candidates"]
            moved = {name: [row[name][old] for old in order] for name in ("image_scores", "prior_scores")}
            for name in ("original", "answer"):
                moved[name] = None if row[name] is None else labels[order.index(labels.index(row[name]))]
            rows.append(row | moved)
    return ScoreTable.from_rows([row | changes for row in reversed(rows)])


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    return few_pairs(development=3, test=2)


@pytest.fixture(scope="module")
def calibrator(table: ScoreTable) -> SelectivePriorCalibrator:
    return SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True).fit(table)


def run(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> OptionOrders:
    test = table.where(split="test")
    return study_option_orders([calibrator], test, {"order-1230": reordered(test)})


def test_moved_options_keep_their_meaning(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    result = run(table, calibrator)
    original, rotated = result.rows
    assert (original.label, rotated.label) == ("Original", "Rotation 1")
    assert original.result == rotated.result, "the same scores give the same decisions wherever an option stands"
    assert original.after == rotated.after
    for agreement in (result.original_agreement, *(row.agreement for row in result.rows)):
        assert agreement == (Share(6, 6), Share(6, 6))


def test_numbers_against_plain_loops(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    test = table.where(split="test")
    other = reordered(with_other_answers(test, pair_id=1))
    result = study_option_orders([calibrator], test, {"order-1230": other})
    for row, part in zip(result.rows, (test.where(task="mc"), other), strict=True):
        decisions = calibrator.predict(part)
        for place, side in enumerate(("cf", "cs")):
            rows = [(each, decision) for each, decision in zip(part.arrow.to_pylist(), decisions, strict=True)
                    if each["side"] == side]  # fmt: skip
            assert row.before[place] == Share(sum(each["original"] == each["answer"] for each, _ in rows), len(rows))
            assert row.after[place] == Share(sum(made.final == each["answer"] for each, made in rows), len(rows))
            change = (row.result.cf, row.result.cs)[place]
            assert row.p[place] == mcnemar(change.repairs, change.harms).p_value
            assert row.holm_p[place] >= row.p[place]


def test_an_answer_that_moves_with_its_place_does_not_agree(calibrator: SelectivePriorCalibrator) -> None:
    flat = [-1.0, -1.0, -1.0, -1.0]
    test = ScoreTable.from_rows(
        [example(1, side, flat, flat, original, "B") for side, original in (("cf", "A"), ("cs", None))]
    )
    other = ScoreTable.from_rows([example(1, side, flat, flat, "A", "A") for side in ("cf", "cs")])
    agreement = study_option_orders([calibrator], test, {"order-1230": other}).original_agreement
    assert agreement == (Share(0, 1), Share(0, 1)), "always A is another option each time"
    moved = ScoreTable.from_rows([example(1, side, flat, flat, "D", "A") for side in ("cf", "cs")])
    agreement = study_option_orders([calibrator], test, {"order-1230": moved}).original_agreement
    assert agreement == (Share(1, 1), Share(0, 1)), "what could not be read agrees with none"


def test_a_question_that_is_not_there_is_named(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    test = table.where(split="test")
    lacking = reordered(test.where(category="Counting Anomalies"))
    with pytest.raises(UnpriorError, match=r"order-1230: 8 of 12 test questions"):
        study_option_orders([calibrator], test, {"order-1230": lacking})
    with pytest.raises(UnpriorError, match="order-1230"):
        study_option_orders([calibrator], test, {"backwards": reordered(test)})


def test_sentences_follow_the_numbers(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    result = run(table, calibrator)
    assert "as often as" in result.sentences[-1]
    less = replace(result.rows[0], agreement=(Share(3, 6), Share(6, 6)))
    assert "less often than" in replace(result, rows=(less, result.rows[1])).sentences[-1]
    assert "With SPC (uncertainty-aware, ε = 0.10) CF accuracy rises significantly in 0 and" in result.sentences[-2], (
        "six pairs are too few"
    )
    sure = replace(result.rows[0], holm_p=(0.01, 0.2))
    gained = result.rows[0].result.cf.delta > 0
    assert gained
    assert (
        "significantly in 1 and CS accuracy falls significantly in 0 of 2 orders"
        in replace(result, rows=(sure, result.rows[1])).sentences[-2]
    )


def test_the_first_limit_is_shown_and_all_are_recorded(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    test = table.where(split="test")
    other = SelectivePriorCalibrator(uncertainty=True).fit(table)
    result = study_option_orders([calibrator, other], test, {"order-1230": reordered(test)})
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert [(each["epsilon"], each["order"]) for each in records] == [
        (0.1, "0123"), (0.1, "1230"), (0.04, "0123"), (0.04, "1230"),
    ]  # fmt: skip
    assert {each["cf_spc_agreement"] for each in records} == {1.0}
    assert len(result.table.rows) == 3
    assert result.figure() is not None
    assert study_option_orders([calibrator, other], test, {"order-1230": reordered(test)}) == result


def test_the_largest_difference_between_orders(table: ScoreTable, calibrator: SelectivePriorCalibrator) -> None:
    test = table.where(split="test")
    others = {"order-1230": reordered(with_other_answers(test, side="cf")), "order-3210": reordered(test, (3, 2, 1, 0))}
    result = study_option_orders([calibrator], test, others)
    accuracies = []
    for part in (test.where(task="mc"), *others.values()):
        rows = calibrator.predict(part)
        right = [each.final == answer for each, answer in zip(rows, part.column("answer"), strict=True)]
        of_side = [hit for hit, side in zip(right, part.column("side"), strict=True) if side == "cf"]
        accuracies.append(sum(of_side) / len(of_side))
    largest = max(accuracies) - min(accuracies)
    assert largest > 0
    assert result.spread(0.1) == pytest.approx(largest)
    assert {record["cf_spread"] for record in result.records()} == {result.spread(0.1)}
    shown = f"differs by at most {100 * largest:.1f} points with SPC (uncertainty-aware, ε = 0.10) and "
    assert any(shown in sentence for sentence in result.sentences)


def test_two_models_make_the_papers_family_of_sixteen() -> None:
    models = {}
    for model, seed in (("one", 3), ("two", 4)):
        part = few_pairs(development=3, test=2, seed=seed)
        test = part.where(split="test")
        names = {f"order-{''.join(map(str, order))}": order for order in ((1, 2, 3, 0), (2, 3, 0, 1), (3, 2, 1, 0))}
        fitted = SelectivePriorCalibrator(epsilon_cs=0.1, uncertainty=True).fit(part)
        fits = [fitted, fitted.reselect(0.04)]
        models[model] = study_option_orders(fits, test, {name: reordered(test, order) for name, order in names.items()})
    adjusted = ByModel(models).adjusted()
    for epsilon in ("0.10", "0.04"):
        family = f"SPC (uncertainty-aware, ε = {epsilon})"
        members = {(model, test.name): (test.p, p) for (model, test), p in adjusted.items() if test.family == family}
        assert [name for _, name in members][:3] == ["Original CF", "Original CS", "Rotation 1 CF"]
        assert len(members) == PAPER_FAMILIES["option orders"] == 16
        assert [p for _, p in members.values()] == list(holm([raw for raw, _ in members.values()]).adjusted)
    assert [test.holm_p for test in models["one"].tests()[:2]] == list(models["one"].rows[0].holm_p)
