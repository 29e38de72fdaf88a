"""Runs from Python: one model, several models, and what is printed about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tiny_models
from hand_questions import write_benchmark
from unprior import ScoreTable, UnpriorError
from unprior.cli import main
from unprior.errors import FailedExamplesWarning, UnpriorWarning
from unprior.progress import Progress
from unprior.runs.baselines import run_baselines
from unprior.runs.config import RunConfig
from unprior.runs.folder import check_folder
from unprior.runs.result import FILES
from unprior.runs.run import configs_of_models, finish_run, run, run_models
from unprior.runs.score import score_run
from unprior.studies.registry import PRESETS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_models.build("llava", tmp_path_factory.mktemp("models") / "first"))


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path, pairs=6, development=3)


@pytest.fixture
def caught() -> Iterator[pytest.WarningsRecorder]:
    """A random model on few pairs gives warnings, which are not what is tested here."""
    with pytest.warns(UnpriorWarning) as recorded:
        yield recorded


@pytest.mark.usefixtures("_few_studies")
def test_a_run_from_python_does_what_the_command_does(
    model: str, questions: Path, tmp_path: Path, caught: pytest.WarningsRecorder, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Progress] = []
    options: dict[str, Any] = {"device": "cpu", "max_new_tokens": 8, "report": seen.append}
    result = run(model=model, benchmark=questions, out=tmp_path / "python", **options)
    assert isinstance(result.table, ScoreTable)
    assert {"Loading " + model, "Scoring", "Writing the report"} <= {where.doing for where in seen}
    with pytest.raises(SystemExit) as exited:
        main(["run", "--config", str(tmp_path / "python" / "run.toml"), "--out", str(tmp_path / "command"), "--json"])
    assert exited.value.code == 0
    told, written = json.loads(capsys.readouterr().out), json.loads((tmp_path / "python" / "report.json").read_text())
    dated = ("date", "provenance")
    assert {name: told[name] for name in told if name not in dated} == {
        name: written[name] for name in written if name not in dated
    }
    assert set(FILES) <= {path.name for path in (tmp_path / "command").iterdir()}


@pytest.mark.usefixtures("_few_studies", "_figures_unseen")
def test_failures_are_warned_about_and_kept(
    model: str, questions: Path, tmp_path: Path, caught: pytest.WarningsRecorder
) -> None:
    (tmp_path / "5-cf.png").write_bytes(b"junk")
    options: dict[str, Any] = {"device": "cpu", "max_new_tokens": 8}
    done = finish_run(RunConfig.from_options(model=model, benchmark=questions, out=tmp_path / "out", **options))
    assert not done.is_complete
    (warning,) = [each.message for each in caught.list if isinstance(each.message, FailedExamplesWarning)]
    assert {name for name, _ in warning.failures} == {failure.example_id for failure in done.summary.failures}
    assert any("could not be scored" in note for note in done.notes)


@pytest.mark.usefixtures("_few_studies")
def test_several_models_side_by_side(
    model: str,
    questions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caught: pytest.WarningsRecorder,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PRESETS, "run", ("main-comparison",))
    out, other = tmp_path / "out", str(tmp_path / "nowhere")
    second = str(tiny_models.build("llava", tmp_path / "second", seed=1))
    arguments = ["--benchmark", str(questions), "--out", str(out), "--device", "cpu", "--max-new-tokens", "8"]
    with pytest.raises(SystemExit) as exited:
        main(["run", "--model", model, "--model", other, "--model", second, *arguments])
    assert exited.value.code == 1  # one of them is missing
    shown = capsys.readouterr()
    assert f"{other} is left out" in " ".join(shown.err.split())
    assert "cannot be loaded" in " ".join(shown.err.split())
    assert "Side by side:" in shown.out
    for name in (model, second):
        assert f"{name}: Task mc has only" in " ".join(shown.out.split())
    for own in configs_of_models([model, second], RunConfig.from_options(out=out)):
        assert set(FILES) <= {path.name for path in own.output.folder.iterdir()}
    assert (out / "index.html").exists()
    records = json.loads((out / "main-comparison.json").read_text())["records"]
    assert {record["model"] for record in records} == {model, second}
    whole = RunConfig.read(out)
    assert whole.models == (model, other, second)
    request.getfixturevalue("_figures_unseen")  # they were drawn above
    again = run_models(config=whole.with_options(model=[model, second]))  # everything is stored
    assert [each.summary.computed for each in again.runs] == [0, 0]
    assert again.failures == {}
    assert RunConfig.read(out).models == (model, second)


def test_several_models_of_which_none_can_be_run(
    questions: Path, tmp_path: Path, caught: pytest.WarningsRecorder
) -> None:
    others = [str(tmp_path / "nowhere"), str(tmp_path / "neither")]
    finished = run_models(others, RunConfig.from_options(benchmark=questions, out=tmp_path / "out", device="cpu"))
    assert (finished.runs, finished.page) == ((), None)
    assert all("cannot be loaded" in finished.failures[other] for other in others)
    command = ["run", "--model", others[0], "--model", others[1], "--benchmark", str(questions)]
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--out", str(tmp_path / "out")])


def test_a_dry_run_computes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["run", "--out", str(tmp_path / "out"), "--epsilon-cs", "0.1", "--dry-run"])
    assert exited.value.code == 0
    shown = capsys.readouterr().out
    assert "# 0 results are stored" in shown
    assert not (tmp_path / "out").exists()
    (tmp_path / "again.toml").write_text(shown)
    assert RunConfig.from_file(tmp_path / "again.toml") == RunConfig.from_options(out=tmp_path / "out", epsilon_cs=0.1)


def test_flags_override_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text('[engine]\nbatch_size = 3\n[output]\nfolder = "there"\n[model]\nname = "m"\n')
    with pytest.raises(SystemExit):
        main(["score", "--config", str(tmp_path / "mine.toml"), "--benchmark", "microworld", "--out", "here",
              "--dry-run", "--json"])  # fmt: skip
    config = json.loads(capsys.readouterr().out)["config"]
    assert (config["engine"]["batch_size"], config["output"]["folder"], config["model"]["name"]) == (3, "here", "m")
    with pytest.raises(SystemExit) as exited:
        main(["score", "--benchmark", "microworld", "--out", "here"])
    assert exited.value.code == 2
    assert "Missing option '--model'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", "--config", str(tmp_path / "mine.toml"), "--engine", "vlm"])
    assert "did you mean vllm" in capsys.readouterr().err


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UnpriorError, match="no such option of a run"):
        run(modle="embedded")


def test_a_dry_run_of_several_models_is_one_file_and_names_their_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    command = ["run", "--out", str(tmp_path / "out\n\x1b"), "--model", "embedded", "--model", model, "--dry-run"]
    with pytest.raises(SystemExit, match="0"):
        main(command)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    (tmp_path / "both.toml").write_text(shown)
    assert RunConfig.from_file(tmp_path / "both.toml").models == ("embedded", model)
    with pytest.raises(SystemExit, match="0"):
        main(["run", "--config", str(tmp_path / "both.toml"), "--dry-run"])
    assert capsys.readouterr().out == shown
    assert len([line for line in shown.splitlines() if line.startswith("# 0 results are stored in")]) == 2
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--json"])
    records = json.loads(capsys.readouterr().out)
    assert [each["config"]["model"]["name"] for each in records] == ["embedded", model]
    assert records[0]["config"]["output"]["folder"] == str(tmp_path / "out\n\x1b" / "embedded")


def test_one_call_runs_one_model(tmp_path: Path) -> None:
    with pytest.raises(UnpriorError, match=r"unprior\.run_models runs several"):
        run(model=["a", "b"], out=tmp_path)
    with pytest.raises(UnpriorError, match="give a list of names"):
        run_models([], out=tmp_path)


def test_the_folder_of_another_model_is_left_alone(tmp_path: Path) -> None:
    RunConfig.from_options(model="other", out=tmp_path / "embedded").write()
    with pytest.warns(UnpriorWarning, match="holds a run of model other, .* by those of embedded; choose another"):
        finished = run_models(["embedded"], out=tmp_path)
    assert list(finished.failures) == ["embedded"]
    assert RunConfig.read(tmp_path / "embedded").model.name == "other"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"model": "other"}, "holds a run of model embedded, and .* by those of other; choose another folder by out="),
        ({"benchmark": "other"}, "holds a run of benchmark microworld, .* by those of other"),
        ({"variant": "forms"}, "holds a run of variant standard, .* by those of forms"),
    ],
)
def test_another_run_does_not_replace_the_results_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], told: str
) -> None:
    monkeypatch.setattr("unprior.engines.load.load_engine", lambda *_, **__: pytest.fail("a model was loaded"))
    RunConfig.from_options(out=tmp_path).write()
    config = RunConfig.from_options(out=tmp_path, **options)
    for work in (finish_run, score_run, run_baselines):
        with pytest.raises(UnpriorError, match=told):
            work(config)


def test_a_folder_of_the_same_run_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "llava").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    earlier = RunConfig.from_options(model="../here/llava", benchmark="pope", out=tmp_path / "run")
    earlier.write()
    assert RunConfig.read(tmp_path / "run").model.name == str(tmp_path / "here" / "llava")
    monkeypatch.chdir(tmp_path)
    check_folder(earlier.with_options(model="here/llava"))
    (tmp_path / "here").rename(tmp_path / "there")
    check_folder(earlier.with_options(model="there/llava", epsilon_cs=0.1, batch_size=1))
    (tmp_path / "here" / "llava").mkdir(parents=True)
    with pytest.raises(UnpriorError, match=r"holds a run of model .*/here/llava"):
        check_folder(earlier.with_options(model="there/llava"))


@pytest.mark.parametrize("name", ["run.toml", "scores.parquet", "report.html"])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("unprior.runs.run.load_questions", lambda *_: pytest.fail("a benchmark was drawn"))
    (tmp_path / name).mkdir()
    with pytest.raises(UnpriorError, match=f"{name}: cannot be written, because this is a folder"):
        run(out=tmp_path)


def test_questions_without_an_answer_are_refused_before_the_model_is_loaded(questions: Path, tmp_path: Path) -> None:
    first, *others = questions.read_text().splitlines()
    unanswered = {name: value for name, value in json.loads(first).items() if name != "answer"}
    questions.write_text("\n".join([json.dumps(unanswered), *others]))
    with pytest.raises(UnpriorError, match=f"1 examples have no answer .{unanswered['id']}.; fitting"):
        run(model="no-such-model", benchmark=questions, out=tmp_path / "out")


def test_a_run_that_fails_leaves_the_record_of_an_earlier_one(
    model: str,
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caught: pytest.WarningsRecorder,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnpriorError("no scores today")

    monkeypatch.setattr("unprior.scoring.benchmark.score_benchmark", fail)
    RunConfig.from_options(model=model, benchmark=questions, out=tmp_path / "old", epsilon_cs=0.3).write()
    for folder, epsilon in (("old", 0.3), ("new", 0.2)):
        with pytest.raises(UnpriorError, match="no scores today"):
            run(model=model, benchmark=questions, out=tmp_path / folder, epsilon_cs=0.2)
        assert RunConfig.read(tmp_path / folder).method.epsilon_cs == epsilon
