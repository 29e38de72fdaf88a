"""Results as the commands print them."""

from __future__ import annotations

import dataclasses

import pytest

from made_up_methods import COSTS, made_up
from unprior import Evaluation, ScoreTable, SelectivePriorCalibrator, evaluate
from unprior.baselines.answers import Cost
from unprior.cli.calibrate import print_methods
from unprior.cli.console import output, print_tables
from unprior.cli.run import print_run
from unprior.evaluation.comparison import SideResult, TaskResult
from unprior.evaluation.metrics import Change, Metrics, Share
from unprior.evaluation.statistics import mcnemar
from unprior.runs.result import RunResult
from unprior.studies.rq2.changes import study_changes
from unprior.studies.rq2.methods import MethodRow, Methods, study_methods

BEFORE = Metrics(cf=Share(100, 200), cs=Share(190, 200), ccr=Share(90, 100), attraction=Share(80, 100))
AFTER = Metrics(cf=Share(120, 200), cs=Share(188, 200), ccr=Share(60, 80), attraction=Share(40, 80))
CF = SideResult(Change(21, 1, 24, 200), 0.0625, 0.1375, mcnemar(21, 1), 2.1e-5)
CS = SideResult(Change(1, 3, 5, 200), -0.03, 0.0, mcnemar(1, 3), 0.625)
TASK = TaskResult("llava", "cdh", "mc", BEFORE, AFTER, CF, CS)


def evaluation(*tasks: TaskResult) -> Evaluation:
    return Evaluation(tasks or (TASK,), level=0.95, resamples=10_000, seed=3, method="SPC")


def show(evaluation: Evaluation) -> None:
    print_tables(evaluation.table, evaluation.changes_table)


class Terminal:
    """What was printed, in a terminal of a given width."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        self.resize(160)

    def resize(self, width: int) -> None:
        self._monkeypatch.setattr(output, "width", width)

    def lines(self) -> list[str]:
        """Line by line, without repeated spaces."""
        return [" ".join(line.split()) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capsys, monkeypatch)


def test_metrics_before_and_after_and_tests(terminal: Terminal) -> None:
    show(evaluation())
    seen = terminal.lines()
    assert any(line.startswith("MC Original 0.500 0.950 0.450 0.474 0.900") for line in seen)
    assert "SPC 0.600 0.940 0.340 0.362 0.750 +10.0/-1.0 [+6.2, +13.8] [-3.0, +0.0] 21/1 1/3" in seen
    assert "MC CF +10.0 [+6.2, +13.8] 21/1 24 1.1e-05 2.1e-05" in seen
    assert "CS -1.0 [-3.0, +0.0] 1/3 5 0.62 0.62" in seen
    caption = " ".join(seen)
    assert "10,000 bootstrap resamples of pairs" in caption
    assert "Holm over 2 tests" in caption


def test_several_models_are_named(terminal: Terminal) -> None:
    show(evaluation(TASK, dataclasses.replace(TASK, task="qa"), dataclasses.replace(TASK, model=None)))
    seen = terminal.lines()
    assert seen.count("llava · cdh") == seen.count("? · cdh") == 2
    assert "Holm over 6 tests" in " ".join(seen)


@pytest.mark.parametrize("model", ["llava[v1.5]", "[bold]m", "x[/INST]"])
def test_a_model_name_with_brackets_is_shown_as_it_is(terminal: Terminal, model: str) -> None:
    show(evaluation(TASK, dataclasses.replace(TASK, model=model)))
    assert terminal.lines().count(f"{model} · cdh") == 2


def test_what_is_undefined_is_a_dash(terminal: Terminal) -> None:
    nothing_wrong = Metrics(cf=Share(5, 5), cs=Share(0, 5), ccr=Share(0, 0), attraction=Share(0, 0))
    side = dataclasses.replace(CS, low=float("nan"), high=float("nan"))
    show(evaluation(dataclasses.replace(TASK, method=nothing_wrong, cs=side)))
    text = " ".join(terminal.lines())
    assert "SPC 1.000 0.000 -1.000 – – +10.0/-1.0 [+6.2, +13.8] – 21/1 1/3" in text
    assert "nan" not in text


def test_no_number_is_lost_in_eighty_columns(terminal: Terminal) -> None:
    models = ("Qwen2.5-VL-7B-Instruct", "llava-onevision-qwen2-7b-ov")
    several = evaluation(*(dataclasses.replace(TASK, model=model, benchmark="CDH-Bench") for model in models))
    shown = []
    for width in (80, 200):
        terminal.resize(width)
        show(several)
        lines = terminal.lines()
        assert "…" not in " ".join(lines)
        shown.append({word for line in lines for word in line.split() if "0." in word or "/" in word})
    assert shown[0] >= shown[1]


def result(task: str, cf: SideResult, cs: SideResult) -> TaskResult:
    share = Share(1, 2)
    return TaskResult(None, None, task, *[Metrics(share, share, share, share)] * 2, cf, cs)


BEST, WORST = (result("mc", CF, CS), result("qa", CS, CF)), (result("mc", CS, CF), result("qa", CS, CS))
ROWS = (
    MethodRow("vcd", "VCD", "decoder", None, {}, WORST, BEST, Cost(2.0, 12.5, 0.3, 20)),
    MethodRow("fixed", "Fixed λ", "control", "not feasible on the development rows", {}, BEST, None, None),
    MethodRow("spc", "SPC", "spc", "abstains: no setting feasible", {}, WORST, None, COSTS["spc"]),
)
METHODS = Methods(ROWS, COSTS["original"], 0.95, 100, 3)


def test_methods_beside_each_other_with_notes_and_costs(terminal: Terminal) -> None:
    print_methods(METHODS)
    seen = terminal.lines()
    assert "VCD -1.0/+10.0 +4.0 1/3 21/1 29 0.62 1.1e-05 +10.0/-1.0" in seen
    assert "Fixed λ ‡ +10.0/-1.0 +9.5 21/1 1/3 29 1.1e-05 0.62 –" in seen
    assert any(line.startswith("SPC †") for line in seen)
    assert "‡ not feasible on the development rows" in " ".join(seen)
    assert "† abstains: no setting feasible" in " ".join(seen)
    assert "correction switched off" in " ".join(seen)
    assert "Original answer 1 4 0.2 1.0 1.0" in seen
    assert "VCD 2 12.5 0.3 3.1 1.5" in seen
    assert "SPC 1 6 0.25 1.5 1.2" in seen
    assert "Means over 20 examples" in " ".join(seen)


def test_without_matched_decoders_and_measurements_there_is_nothing_about_them(terminal: Terminal) -> None:
    print_methods(dataclasses.replace(METHODS, rows=ROWS[1:2], original_cost=None))
    text = " ".join(terminal.lines())
    assert "matched" not in text.lower()
    assert "Cost of one example" not in text
    print_methods(dataclasses.replace(METHODS, original_cost=None))
    assert "VCD 2 12.5 0.3 – –" in terminal.lines()


@pytest.mark.parametrize(("baselines", "width"), [(True, 100), (False, 80)])
def test_every_method_has_a_line_of_its_own(terminal: Terminal, table: ScoreTable, baselines: bool, width: int) -> None:
    terminal.resize(width)
    test = table.where(split="test")
    calibrator = SelectivePriorCalibrator().fit(table)
    given = made_up(test) if baselines else []
    results = study_methods(calibrator.predict(test), calibrator, table.where(split="dev"), given, resamples=50)
    print_methods(results)
    seen = terminal.lines()
    assert "…" not in " ".join(seen)
    for row in results.rows:
        assert any(line.startswith(row.label) and "/" in line for line in seen), row.label


def test_unpaired_images_have_accuracies(terminal: Terminal, table: ScoreTable) -> None:
    test = table.where(split="test", task="qa")
    print_methods(study_changes(test, made_up(test)))
    seen = terminal.lines()
    before = evaluate(test, test.original, resamples=10).tasks[0].original
    accuracy = (before.cf.count + before.cs.count) / (before.cf.total + before.cs.total)
    assert any(line.startswith(f"QA Focus on Vision {accuracy:.3f} ") and line.endswith("– – –") for line in seen)
    assert any(line.startswith(f"QA NoLan {accuracy:.3f} ") and line.endswith(" 8 0.4") for line in seen)
    assert "no CF and no CS side" in " ".join(seen)


@pytest.mark.parametrize("width", [80, 160])
def test_a_run_shows_its_headline_and_every_study(terminal: Terminal, table: ScoreTable, width: int) -> None:
    terminal.resize(width)
    result = RunResult.from_table(table)
    print_run(result)
    text = " ".join(terminal.lines())
    assert text.startswith(result.headline)
    assert "…" not in text
    for each in result.studies:
        assert (str(each.lacks) if each.result is None else each.result.table.title) in text
