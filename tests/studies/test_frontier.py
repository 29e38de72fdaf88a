from __future__ import annotations

import straightforward
from small_tables import corrected_winner, count_changes, hopeless_table, twelve_pairs
from unprior import SelectivePriorCalibrator
from unprior.baselines.controls import STRENGTHS
from unprior.studies import study_frontier
from unprior.studies.frontier import EPSILONS


def test_every_point_against_plain_loops() -> None:
    table = twelve_pairs()
    development, test = table.where(split="dev"), table.where(split="test")
    rows = test.arrow.to_pylist()
    result = study_frontier(SelectivePriorCalibrator(epsilon_cs=0.04), development, test)
    finals: dict[tuple[str, float], list[str | None]] = {}
    for epsilon in EPSILONS:
        model = straightforward.fit(development.arrow.to_pylist(), epsilon_cs=epsilon)
        finals["spc", epsilon] = [straightforward.decide(model, row)["final"] for row in rows]
    for strength in STRENGTHS:
        finals["fixed", strength] = [corrected_winner(row, strength) for row in rows]
    seen = 0
    for point in result.points:
        if point.method == "fixed_selected":
            continue
        key = point.epsilon if point.method == "spc" else point.strength
        assert key is not None
        for side, change in (("cf", point.result.cf), ("cs", point.result.cs)):
            expected = count_changes(rows, finals[point.method, key], point.result.task, side)
            assert (change.repairs, change.harms, change.total) == expected
            seen += 1
    assert seen == 2 * 2 * (len(EPSILONS) + len(STRENGTHS))


def test_the_selected_strength_keeps_the_calibrators_limit() -> None:
    table = twelve_pairs()
    calibrator = SelectivePriorCalibrator(epsilon_cs=0.1)
    result = study_frontier(calibrator, table.where(split="dev"), table.where(split="test"), epsilons=(0.1,))
    (point,) = result.of("mc", "fixed_selected")
    assert point.epsilon == result.epsilon == 0.1
    assert point.strength is not None
    assert not hasattr(calibrator, "model_"), "the calibrator is left as it is"
    assert result.tasks == ("mc", "qa")


def test_what_abstains_stays_where_it_is() -> None:
    test = twelve_pairs().where(split="test", task="mc")
    result = study_frontier(SelectivePriorCalibrator(), hopeless_table(), test, epsilons=(0.0, 0.1))
    points = (*result.of("mc", "spc"), *result.of("mc", "fixed_selected"))
    assert [point.epsilon for point in points] == [0.0, 0.04, 0.1, 0.04], "the calibrator's own ε is among them"
    for point in points:
        assert point.abstains
        assert point.strength is None
        assert point.result.cf.changed == point.result.cs.changed == 0
    assert not any(point.abstains for point in result.of("mc", "fixed"))
