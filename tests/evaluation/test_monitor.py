"""The promise over time: a test that may be looked at after every decision."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from unprior import SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.errors import UnpriorWarning
from unprior.evaluation.monitor import Monitor, log_evidence, monitor_file
from unprior.plots.style import DARK
from unprior.scores.table import FloatArray

EPSILON = 0.06
STREAMS, LENGTH = 400, 1000


@pytest.fixture(scope="module")
def calibrator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("promise") / "calibrator.json"
    SelectivePriorCalibrator(retention="certified", epsilon_cs=EPSILON).fit(synthesize(seed=0)).save(path)
    return path


def decision(harmed: bool = False, task: str = "mc", **more: Any) -> dict[str, Any]:
    return {"task": task, "side": "cs", "original": "A", "final": "B" if harmed else "A", "answer": "A"} | more


@pytest.fixture
def watch(calibrator: Path, tmp_path: Path) -> Callable[..., Monitor]:
    def watch_rows(rows: list[dict[str, Any]], **options: Any) -> Monitor:
        path = tmp_path / "decisions.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return monitor_file(calibrator, path, **options)

    return watch_rows


def simulate(rate: float, seed: int) -> FloatArray:
    """Evidence after every decision of many streams."""
    harms = np.cumsum(np.random.default_rng(seed).random((STREAMS, LENGTH)) < rate, axis=1).astype(np.float64)
    return log_evidence(harms, np.arange(1.0, LENGTH + 1)[None, :], EPSILON)


@pytest.mark.parametrize("rate", [EPSILON, EPSILON / 2])
def test_the_evidence_grows_on_no_promise_that_holds(rate: float) -> None:
    """At any fixed time its mean is at most one, and it seldom ever gets large."""
    evidence = simulate(rate, seed=1)
    for time in (20, 100, 300):
        weights = np.exp(evidence[:, time - 1])
        assert weights.mean() <= 1.0 + 4 * weights.std() / np.sqrt(STREAMS)
    for alpha in (0.05, 0.2):
        ever = (evidence.max(axis=1) >= -np.log(alpha)).mean()
        assert ever <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / STREAMS)


def test_the_mean_of_the_evidence_is_exactly_one_at_the_limit() -> None:
    """By sums over all streams of a length, not by draws."""
    from scipy.stats import binom

    for length in (1, 7, 40):
        harms = np.arange(length + 1.0)
        weights = np.exp(log_evidence(harms, np.full(length + 1, float(length)), EPSILON))
        assert float((binom.pmf(harms, length, EPSILON) * weights).sum()) == pytest.approx(1.0, abs=1e-9)
        assert float((binom.pmf(harms, length, 0.5 * EPSILON) * weights).sum()) < 1.0


def test_a_broken_promise_is_noticed() -> None:
    evidence = simulate(3 * EPSILON, seed=2)
    given_up = evidence >= -np.log(0.05)
    assert given_up.any(axis=1).mean() > 0.99
    assert np.median(given_up.argmax(axis=1)) < 120


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1.0])
def test_rates_at_the_ends_have_evidence(rate: float) -> None:
    evidence = log_evidence(np.array([0.0, 5.0, 50.0]), np.array([50.0, 50.0, 50.0]), rate)
    assert not np.isnan(evidence).any()
    assert (evidence[1] > 5) == (rate < 1.0)


def test_the_decision_that_gave_the_promise_up_is_named(watch: Callable[..., Monitor]) -> None:
    rows = [decision(task="qa")] * 5 + [decision()] * 20 + [decision(harmed=True)] * 30
    watched = watch(rows)
    mc, qa = watched.tasks
    assert (mc.task, mc.count, qa.count, qa.alarm, qa.line) == ("mc", 50, 5, None, None)
    assert mc.alarm is not None
    # Each of two tasks has half of α.
    counts, harms = np.arange(1.0, 51), np.concatenate([np.zeros(20), np.arange(1.0, 31)])
    evidence = log_evidence(harms, counts, EPSILON)
    assert mc.alarm == int(np.flatnonzero(evidence >= np.log(2 / 0.05))[0]) + 1
    assert mc.line == mc.alarm + 5
    assert evidence[mc.alarm - 2] < np.log(40) <= evidence[mc.alarm - 1]
    assert not watched.stands
    assert watched.words[0] == watched.sentence
    assert watched.words[1].startswith("Recalibrate: 30 of 50 answers to MC were harmed (60.0 %). ")
    assert f"The promise was given up at decision {mc.alarm}, line {mc.line}: " in watched.words[1]
    assert watched.words[2] == "0 of 5 answers to QA were harmed (0.0 %): nothing contradicts it."
    assert EPSILON < mc.lower < 0.6
    assert qa.lower == pytest.approx(0.0, abs=1e-6)
    assert [row.cells[-1] for row in watched.table.rows] == [f"given up at {mc.alarm}", "stands"]
    record = json.loads(json.dumps(watched.record(), allow_nan=False))
    assert [(each["alarm"], each["line"], each["harms"]) for each in record["tasks"]] == [
        (mc.alarm, mc.line, 30), (None, None, 0),
    ]  # fmt: skip


def test_a_smaller_alpha_waits_longer(watch: Callable[..., Monitor]) -> None:
    rows = [decision(harmed=index % 3 == 0) for index in range(120)]
    early, late = (watch(rows, alpha=alpha).tasks[0].alarm for alpha in (0.2, 0.001))
    assert early is not None
    assert late is not None
    assert early < late


def test_what_says_nothing_is_left_out_and_counted(watch: Callable[..., Monitor]) -> None:
    rows = [
        decision(),
        decision(harmed=True, side="cf"),
        decision(harmed=True, answer=None),
        {name: value for name, value in decision(harmed=True).items() if name != "answer"},
        decision(final="B", answer="B"),  # a repair
        decision(original=None, final="B"),  # nothing was right before
        {name: value for name, value in decision().items() if name != "side"},
    ]
    watched = watch(rows)
    assert (watched.tasks[0].count, watched.tasks[0].harms.tolist()) == (4, [0.0, 0.0, 0.0, 0.0])
    assert (watched.unlabelled, watched.counterfactual, watched.stands) == (2, 1, True)
    assert watched.table.caption.endswith(" Decisions without an answer: 2. About counterfactual images: 1.")


def test_files_of_both_kinds_say_the_same(calibrator: Path, tmp_path: Path) -> None:
    table = synthesize(seed=0).where(split="test")
    decisions = SelectivePriorCalibrator.load(calibrator).predict(table)
    arrow = decisions.to_arrow()
    labelled = arrow.append_column("answer", pa.array(table.answer.tolist(), pa.string()))
    pq.write_table(labelled, tmp_path / "decisions.parquet")
    lines = "".join(json.dumps(row, allow_nan=True) + "\n" for row in labelled.drop_columns(["range_high"]).to_pylist())
    (tmp_path / "decisions.jsonl").write_text(lines.replace("NaN", "null"), encoding="utf-8")
    one, other = (monitor_file(calibrator, tmp_path / f"decisions.{ending}") for ending in ("parquet", "jsonl"))
    assert one.record() == other.record()
    assert one.counterfactual == 460
    assert [each.count for each in one.tasks] == [230, 230]
    right = (table.original == table.answer) & (decisions.final != table.answer) & ~table.is_cf
    assert sum(int(each.harms[-1]) for each in one.tasks) == int(right.sum()) > 0


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['{"task": "mc", "original": "A", "final": "A"}'], "no decision has an answer; add the right answer"),
        ([json.dumps(decision(side="cf"))], "all decisions with an answer are about counterfactual images"),
        ([json.dumps(decision()), '{"task": "mc", "orig'], "line 2: not a JSON object; the file may be truncated"),
        ([json.dumps(decision()), "[1]"], "line 2: not a JSON object"),
        (['{"task": "mc", "original": "A", "answer": "A"}'], "line 1: no final; `unprior apply` writes decisions"),
        ([json.dumps(decision(answer=2))], "line 1: the answer must be a text"),
        ([json.dumps(decision(answer=["A"]))], "line 1: the answer must be a text"),
    ],
)
def test_files_that_cannot_be_watched(calibrator: Path, tmp_path: Path, lines: list[str], reason: str) -> None:
    path = tmp_path / "decisions.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UnpriorError, match=reason):
        monitor_file(calibrator, path)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, 2, float("nan")])
def test_an_alpha_that_is_no_chance_is_refused(watch: Callable[..., Monitor], alpha: float) -> None:
    with pytest.raises(UnpriorError, match="a chance between 0 and 1"):
        watch([decision()], alpha=alpha)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [({}, "promises nothing about new pairs"), ({"retention": "certified", "epsilon_cs": 0.01}, "abstains")],
)
def test_calibrators_without_a_promise_are_refused(tmp_path: Path, parameters: dict[str, Any], reason: str) -> None:
    SelectivePriorCalibrator(**parameters).fit(synthesize(seed=0)).save(tmp_path / "calibrator.json")
    with pytest.raises(UnpriorError, match=rf"{reason}.*unprior fit --retention certified"):
        monitor_file(tmp_path / "calibrator.json", tmp_path / "decisions.jsonl")


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_figures_are_written_as_their_ending_says(
    watch: Callable[..., Monitor], tmp_path: Path, ending: str, start: bytes
) -> None:
    watch([decision(harmed=index > 3) for index in range(30)]).save_figure(tmp_path / f"promise.{ending}")
    assert (tmp_path / f"promise.{ending}").read_bytes().startswith(start)


def test_another_ending_is_refused(watch: Callable[..., Monitor], tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"a figure is written as \.svg, \.png, \.pdf"):
        watch([decision()]).save_figure(tmp_path / "promise.gif")
    assert not (tmp_path / "promise.gif").exists()


def test_it_is_drawn_on_given_axes(watch: Callable[..., Monitor]) -> None:
    watched = watch([decision(harmed=index % 2 == 0) for index in range(600)] + [decision(task="qa")])
    axes = Figure().subplots()
    assert watched.plot(axes, DARK) is axes
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert lines["promised at most"].get_ydata() == pytest.approx([100 * EPSILON] * 2)
    rates = np.asarray(lines["MC"].get_ydata())
    assert len(rates) <= 400
    assert (rates[0], rates[-1]) == (100.0, 50.0)
    assert [text.get_text() for text in axes.texts] == ["given up"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"answer": ""}, "the answer must be a text"),
        ({"side": "CF"}, "the side cf, cs or null"),
        ({"task": 3}, "the task must be a text"),
        ({"original": 1}, "the original must be a text"),
        ({"final": 2}, "the final must be a text"),
    ],
)
def test_labels_that_could_never_count_are_refused(
    watch: Callable[..., Monitor], change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnpriorError, match=rf"line 2: .*{reason}"):
        watch([decision(), decision() | change])


def test_an_answer_that_nobody_gives_is_told(watch: Callable[..., Monitor]) -> None:
    with pytest.warns(UnpriorWarning, match=r"the answers A  of task mc are never given or proposed there"):
        watch([decision(answer="A "), decision()])


def test_a_pair_counts_once_and_tasks_share_alpha_from_the_start(watch: Callable[..., Monitor]) -> None:
    same = [decision(harmed=True, pair_id=7) for _ in range(40)]
    once = watch([*same, decision(pair_id=8)])
    assert once.stands
    assert (once.repeated, once.tasks[0].count) == (39, 2)
    assert "Further decisions about a pair that was counted: 39." in once.table.caption
    harms = [decision(harmed=True, pair_id=number) for number in range(5)]
    alone, beside = watch(harms), watch([*harms, decision(task="qa", pair_id=9)])
    assert alone.tasks[0].alarm == beside.tasks[0].alarm
    assert alone.threshold == beside.threshold == 40.0
    other = watch([*harms, decision(task="zz", pair_id=9)])
    assert (other.uncovered, len(other.tasks)) == (1, 1)


def test_decisions_of_another_calibrator_are_refused(calibrator: Path, tmp_path: Path) -> None:
    table = synthesize(seed=0)
    for number, parameters in enumerate(({}, {"retention": "certified", "epsilon_cs": 0.1})):
        path = tmp_path / f"{number}.jsonl"
        SelectivePriorCalibrator(**parameters).fit(table).predict(table).write(path)  # type: ignore[arg-type]
        with pytest.raises(UnpriorError, match="made by another calibrator"):
            monitor_file(calibrator, path)


@pytest.mark.parametrize("alpha", ["0.05", None, [1], 0, 1.5])
def test_a_level_that_is_none_is_refused(calibrator: Path, alpha: Any) -> None:
    with pytest.raises(UnpriorError, match="a chance between 0 and 1"):
        monitor_file(calibrator, "decisions.jsonl", alpha=alpha)
