"""What a run gives, in Python and as files."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

import pytest

from small_tables import few_pairs, synthetic, twelve_pairs
from unprior import ScoreTable, SelectivePriorCalibrator, UnpriorError, evaluate
from unprior.baselines.answers import MethodInfo, write_answers
from unprior.baselines.suite import ANSWERS, fitting_answers
from unprior.errors import UnpriorWarning
from unprior.progress import Progress
from unprior.runs.result import FILES, RunResult, refresh_report
from unprior.runs.study import study
from unprior.scores import read_scores
from unprior.studies.registry import PRESETS

pytestmark = pytest.mark.usefixtures("_figures_on_pages_only")


@pytest.fixture(scope="module")
def result(table: ScoreTable) -> RunResult:
    return RunResult.from_table(table)


def test_the_run_is_what_the_estimator_does(table: ScoreTable, result: RunResult) -> None:
    test = table.where(split="test")
    decisions = SelectivePriorCalibrator().fit(table).predict(test)
    assert result.decisions.to_arrow() == decisions.to_arrow()
    assert result.evaluation == evaluate(test, decisions)
    assert result.decisions.method in result.headline


def test_all_records_are_plain(result: RunResult) -> None:
    assert [each.study.name for each in result.studies] == list(PRESETS["run"])
    for each in result.studies:
        if each.result is not None:
            assert json.loads(json.dumps(each.result.records(), allow_nan=False)) == each.result.records()
            assert result.study(each.study.name) is each.result


def test_an_unknown_and_a_lacking_study_are_named(result: RunResult) -> None:
    with pytest.raises(UnpriorError, match=r"no study 'componets' among these results \(did you mean components\?\)"):
        result.study("componets")
    for each in result.studies:
        if each.result is None:
            with pytest.raises(UnpriorError, match=rf"unprior study {each.study.name} --prepare"):
                result.study(each.study.name)


def test_progress_names_the_studies(table: ScoreTable) -> None:
    seen: list[Progress] = []
    RunResult.from_table(table, report=seen.append)
    assert seen[0] == Progress("Fitting and deciding")
    assert [each.done for each in seen[1:]] == list(range(len(PRESETS["run"])))


def test_a_notebook_shows_headline_table_and_notes() -> None:
    result = RunResult.from_table(synthetic(seed=0), SelectivePriorCalibrator(epsilon_cs=0.02))
    assert repr(result) == f"RunResult(synthetic: {result.headline})"
    html = result._repr_html_()
    assert html.startswith(f"<p>{result.headline}</p><table>")
    assert html.count("<tr>") == 1 + 2 * len(result.evaluation.tasks)
    assert result.notes
    assert all(note in html for note in result.notes)


def test_a_data_frame_has_a_row_per_task(result: RunResult) -> None:
    frame = result.to_pandas()
    assert frame["task"].tolist() == ["mc", "qa"]
    assert frame["delta_cf"].tolist() == [task.cf.change.delta for task in result.evaluation.tasks]


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.6])
def test_any_limit_is_accepted(epsilon: float) -> None:
    result = RunResult.from_table(
        few_pairs(development=5, test=3), SelectivePriorCalibrator(epsilon_cs=epsilon, uncertainty=True)
    )
    assert result.calibrator.epsilon_cs == epsilon
    assert result.decisions.method.startswith("SPC (uncertainty-aware, ε = ")


def test_a_mixture_of_models_is_refused() -> None:
    rows = twelve_pairs().arrow.to_pylist()
    rows[0]["model"] = "another"
    with pytest.raises(UnpriorError, match=r"several models .*another on synthetic.* one report for each"):
        RunResult.from_table(ScoreTable.from_rows(rows))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_both_splits_are_needed(split: str) -> None:
    with pytest.raises(UnpriorError, match=f"no example has split '{'test' if split == 'dev' else 'dev'}'"):
        RunResult.from_table(twelve_pairs().where(split=split))


def test_a_loss_beyond_epsilon_is_told_first() -> None:
    result = RunResult.from_table(synthetic(seed=0), SelectivePriorCalibrator(epsilon_cs=0.0))
    assert "more than ε = 0.00 permits" in result.notes[0]


def test_pages_of_several_runs_tell_what_the_report_of_each_tells(tmp_path: Path) -> None:
    for name, table in (("large", synthetic(seed=0)), ("small", few_pairs(development=5, test=3))):
        table.write(tmp_path / name / "scores.parquet")
    both = [tmp_path / "large", tmp_path / "small"]
    text = (study("main-comparison", both, epsilon_cs=0.0).write(tmp_path)).read_text(encoding="utf-8")
    own = [
        RunResult.from_table(read_scores(each / "scores.parquet"), SelectivePriorCalibrator(epsilon_cs=0.0)).notes
        for each in both
    ]
    assert len(own[1]) > 1, "few pairs are told"
    for name, notes in zip(("large", "small"), own, strict=True):
        for note in notes:
            shown = note if note.startswith("Commonsense accuracy fell") else f"synthetic ({name}): {note}"
            assert f'<p class="note">{escape(shown)}</p>' in text


def test_the_embedded_model_is_no_useful_model() -> None:
    rows = [row | {"model": "embedded"} for row in few_pairs(development=5, test=3).arrow.to_pylist()]
    assert any("only for trying the method" in note for note in RunResult.from_table(ScoreTable.from_rows(rows)).notes)


@pytest.mark.usefixtures("_few_studies")
def test_a_report_is_made_again_when_answers_of_other_methods_are_there(tmp_path: Path) -> None:
    table = few_pairs(development=5, test=3)
    told = "2 of 14 examples could not be scored. 3 answers of other methods are missing, so none is compared."
    RunResult.from_table(table, SelectivePriorCalibrator(epsilon_cs=0.06)).write(tmp_path, note=told)
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    first = json.loads(before["report.json"])
    assert first["notes"][0] == told
    assert "Never right" not in before["report.html"].decode()
    rows = [row | {"method": "never", "answer": None} for row in table.where(split="test").arrow.to_pylist()]
    write_answers(tmp_path / ANSWERS, [MethodInfo("never", "Never right", "prompt", {}, None)], rows)
    again = refresh_report(tmp_path)
    assert again.calibrator.epsilon_cs == 0.06
    second = json.loads((tmp_path / "report.json").read_text())
    assert second["notes"][0] == "2 of 14 examples could not be scored.", "now the methods can be compared"
    assert "never" in {record["method"] for record in second["studies"]["methods"]}
    assert "Never right" in (tmp_path / "report.html").read_text()
    changed = {"notes", "studies"}
    assert {name: second[name] for name in set(second) - changed} == {
        name: first[name] for name in set(first) - changed
    }
    for name in FILES[:3]:
        assert (tmp_path / name).read_bytes() == before[name]


def test_answers_of_another_model_are_left_aside(tmp_path: Path) -> None:
    table = few_pairs(development=5, test=3)
    rows = [row | {"method": "never", "answer": None, "model": "another"} for row in table.arrow.to_pylist()]
    write_answers(tmp_path / ANSWERS, [MethodInfo("never", "Never right", "prompt", {}, None)], rows)
    with pytest.warns(UnpriorWarning, match="holds answers of another model or to another benchmark; it is left aside"):
        assert fitting_answers(tmp_path / ANSWERS, table) is None


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"there is no scores\.parquet; `unprior run --out"):
        refresh_report(tmp_path)
