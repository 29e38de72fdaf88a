"""`unprior study` on the embedded model and on plain score tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import tiny_models
import unprior
from hand_questions import write_benchmark
from small_tables import synthetic
from unprior import Progress, ScoreTable, UnpriorError, read_scores
from unprior.runs.config import RunConfig
from unprior.scores.provenance import Provenance
from unprior.studies.inputs import NEEDS, StudyInputs
from unprior.studies.registry import STUDIES
from unprior.studies.study import QUESTIONS

pytestmark = pytest.mark.usefixtures("_figures_on_pages_only")


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    """A folder with nothing but a score table."""
    folder = tmp_path / "run"
    folder.mkdir()
    synthetic(seed=3).write(folder / "scores.parquet")
    return folder


def test_the_list_shows_every_study_with_its_needs(
    run: Callable, scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("study", "list")
    assert told.code == 0
    for name in STUDIES:
        assert name in told.out
    rows = run("study", "list", "--run", scored, "--json").json
    assert [row["name"] for row in rows] == list(STUDIES)
    for row in rows:
        assert set(row["needs"]) <= set(NEEDS)
        assert row["question"] in QUESTIONS
        assert row["ready"] is (set(row["needs"]) == {"scores"})


def test_plain_scores_are_enough_for_many_studies(run: Callable, scored: Path) -> None:
    told = run("study", "rq1", "rq2", "rq5", "--run", scored)
    assert told.code == 0
    assert "Prior attraction" in told.out
    for name, study in STUDIES.items():
        if study.question not in ("rq1", "rq2", "rq5"):
            continue
        done = (scored / "study" / f"{name}.json").exists()
        assert done is (study.needs == ("scores",)), name
        if not done:
            assert f"unprior study {name} --run" in told.err
    assert (scored / "study" / "index.html").exists()


def test_studies_are_chosen_by_name_and_by_question(run: Callable, scored: Path, tmp_path: Path) -> None:
    records = run("study", "rq1", "--run", scored, "--out", tmp_path / "other", "--json").json
    assert [record["name"] for record in records] == [n for n, study in STUDIES.items() if study.question == "rq1"]
    assert not (scored / "study").exists()
    assert json.loads((tmp_path / "other" / "attraction.json").read_text()) == records[0]


def test_the_limits_that_were_chosen_are_the_limits_that_are_told(run: Callable, scored: Path) -> None:
    given = ("--epsilon-cs", 0.025, "--wide-epsilon-cs", 0.2)
    components, support = run("study", "components", "support-conditions", "--run", scored, *given, "--json").json
    assert "ε = 0.025" in components["how"]
    assert "ε = 0.20" in support["how"]
    page = (scored / "study" / "index.html").read_text(encoding="utf-8")
    assert components["how"] in page
    assert support["how"].split(".")[0] in page


def test_mistakes_are_named(run: Callable, scored: Path, tmp_path: Path) -> None:
    run("study", "rq9", "--run", scored).refused("no study 'rq9'", "rq5", "attraction")
    run("study", "main-comparison", "list", "--run", scored).refused("no study 'list'")
    run("study", "list", "--run", tmp_path / "nowhere").refused("no scores.parquet")
    run("study", "main-comparison", "--run", scored / "scores.parquet").refused("this is a file")
    for epsilon in ("4", "-1", "nan"):
        run("study", "main-comparison", "--run", scored, "--epsilon-cs", epsilon).refused("--epsilon-cs")
    run("study", "all", "--run", tmp_path / "nowhere").refused("no scores.parquet", "unprior run")
    lacking = [name for name, study in STUDIES.items() if study.needs != ("scores",)]
    if lacking:
        run("study", lacking[0], "--run", scored, "--prepare").refused("does not say which model")
        assert run("study", lacking[0], "--run", scored).code == 1


def test_a_folder_that_cannot_be_written_is_refused_before_any_work(
    run: Callable, scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError("this was computed for nothing")

    monkeypatch.setattr("unprior.runs.study.run_studies", no_work)
    monkeypatch.setattr("unprior.engines.load.load_engine", no_work)
    (tmp_path / "file").touch()
    (tmp_path / "pages" / "index.html").mkdir(parents=True)
    run("study", "all", "--run", scored, "--out", tmp_path / "pages").refused("index.html: cannot be written")
    for out in (tmp_path / "file", tmp_path / "file" / "deep"):
        refused = f"{out}: cannot be written", "choose another path"
        run("study", "all", "--run", scored, "--out", out).refused(*refused)
        model = ("--model", tmp_path / "no-model", "--out", out)
        benchmark = ("--benchmark", write_benchmark(tmp_path))
        run("run", *model, *benchmark).refused(*refused)
        run("run", "--model", "a", *model, *benchmark).refused(*refused)
        run("score", *model, *benchmark).refused(*refused)
        run("baseline", "nolan", *model, *benchmark).refused(*refused)
    run("reproduce", tmp_path / "none", "--out", tmp_path / "file" / "cells.csv").refused(
        "cells.csv: cannot be written"
    )


@pytest.mark.parametrize("place", ["variants/forms.parquet", "external/pope/scores.parquet"])
def test_scores_of_another_model_are_left_aside(run: Callable, scored: Path, place: str) -> None:
    (scored / place).parent.mkdir(parents=True)
    synthetic(seed=3).write(scored / place)
    assert "left aside" not in run("study", "main-comparison", "--run", scored).err
    synthetic(seed=3).with_columns(model="other").write(scored / place)
    told = run("study", "main-comparison", "--run", scored)
    assert told.code == 0
    assert f"left aside: {scored / place}: not of the model of the run: model synthetic, here other" in told.err
    assert StudyInputs.from_run(scored).variants == StudyInputs.from_run(scored).external == {}


def test_a_model_that_was_moved_is_still_the_same(scored: Path) -> None:
    def made(name: str, weights: str) -> ScoreTable:
        rows = synthetic(seed=3).with_columns(model=name).arrow.to_pylist()
        return ScoreTable.from_rows(rows, provenance=(Provenance(model=name, weights=weights),))

    made("here", "w").write(scored / "scores.parquet")
    for weights, found in (("w", ["forms"]), ("v", [])):
        made("there", weights).write(scored / "variants" / "forms.parquet")
        assert list(StudyInputs.from_run(scored).variants) == found


def test_a_broken_file_is_left_aside(run: Callable, scored: Path) -> None:
    (scored / "variants").mkdir()
    (scored / "variants" / "forms.parquet").write_bytes(b"PAR1 and nothing else")
    (scored / "variants" / "order-1230.parquet").write_bytes(b"no table at all")
    (scored / "baselines.parquet").write_bytes(b"broken")
    told = run("study", "main-comparison", "--run", scored)
    assert told.code == 0
    assert told.err.count("left aside") == 3
    (scored / "scores.parquet").write_bytes(b"broken")
    run("study", "main-comparison", "--run", scored).refused("scores.parquet", "not a Parquet file")


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """Score tables of two models."""
    folders = tmp_path / "a", tmp_path / "b"
    for seed, folder in enumerate(folders):
        synthetic(seed=seed).with_columns(model=f"model-{seed}", benchmark="worlds").write(folder / "scores.parquet")
    return folders


def test_several_runs_stand_side_by_side(run: Callable, two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    runs = [argument for folder in two_runs for argument in ("--run", folder)]
    shown = run("study", "components", "claim-order", *runs)
    assert shown.code == 0
    assert shown.out.count("model-0") >= 2  # over its rows, and before its sentences
    assert f"Results: {Path('unprior-study', 'index.html')}" in shown.out
    for folder in two_runs:
        assert f"`unprior study claim-order --run {folder} --prepare`" in shown.err
        assert not (folder / "study").exists()
    together = json.loads((tmp_path / "unprior-study" / "components.json").read_text())
    for seed, folder in enumerate(two_runs):
        (alone,) = run("study", "components", "--run", folder, "--json").json
        own = [record for record in together["records"] if record["model"] == f"model-{seed}"]
        assert own == [{"model": f"model-{seed}"} | record for record in alone["records"]]
        assert {f"model-{seed}: {sentence}" for sentence in alone["sentences"]} <= set(together["sentences"])
    page = (tmp_path / "unprior-study" / "index.html").read_text(encoding="utf-8")
    assert "model-0 and model-1 on worlds" in page
    ready = {row["name"]: row["ready"] for row in run("study", "list", *runs, "--json").json}
    assert ready["components"] is True
    assert ready["claim-order"] is False


def test_mistakes_of_several_runs_are_named(run: Callable, two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    one, _ = two_runs
    run("study", "main-comparison", "--run", one, "--run", one / ".." / "a").refused("is given twice")
    run("study", "main-comparison", "--run", one, "--run", tmp_path / "none").refused(
        "none: there is no scores.parquet"
    )


def test_python_gets_the_same_results(two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    seen: list[Progress] = []
    results = unprior.study(["components", "claim-order"], two_runs, out=tmp_path / "out", report=seen.append)
    assert list(results) == ["components", "claim-order"]
    assert len(results) == 2
    frame = results.to_pandas("components")
    assert frame["model"].unique().tolist() == ["model-0", "model-1"]
    record = json.loads((tmp_path / "out" / "components.json").read_text())
    assert frame["variant"].tolist() == [row["variant"] for row in record["records"]]
    with pytest.raises(UnpriorError, match="claim-order needs"):
        results.to_pandas("claim-order")
    shown = results._repr_html_()
    assert "model-1" in shown
    assert "--prepare" in shown
    assert [(each.done, each.total) for each in seen[1:3]] == [(0, 2), (1, 2)]
    alone = unprior.study("components", two_runs[0])
    assert not (two_runs[0] / "study").exists()
    assert alone.title == "model-0 on worlds"


def test_studies_take_the_limit_and_the_version_of_the_run(run: Callable, two_runs: tuple[Path, Path]) -> None:
    RunConfig.from_options(out=two_runs[0], epsilon_cs=0.15, uncertainty=True).write()
    results = unprior.study("components", two_runs[0])
    (own,) = results.runs
    assert (own.epsilon, own.wide_epsilon, own.uncertainty) == (0.15, 0.3, True)
    assert "ε = 0.15" in run("study", "components", "--run", two_runs[0], "--json").json[0]["how"]
    (other,) = unprior.study("components", two_runs[0], epsilon_cs=0.01, uncertainty=False).runs
    assert (other.epsilon, other.wide_epsilon, other.uncertainty) == (0.01, 0.1, False)
    both = ("study", "components", "--run", two_runs[0], "--run", two_runs[1])
    run(*both).refused("the runs differ in epsilon_cs (0.15 in", "e.g. --epsilon-cs 0.15")
    run(*both, "--epsilon-cs", 0.04).refused("the runs differ in uncertainty", "e.g. --uncertainty")
    assert run(*both, "--epsilon-cs", 0.04, "--no-uncertainty").code == 0


def test_mistakes_in_python_are_named(two_runs: tuple[Path, Path]) -> None:
    with pytest.raises(UnpriorError, match="no run is given"):
        unprior.study("all", run=[])
    with pytest.raises(UnpriorError, match="epsilon_cs: must be a number"):
        unprior.study("components", two_runs[0], epsilon_cs="abc")  # type: ignore[arg-type]
    results = unprior.study("components", two_runs[0])
    with pytest.raises(UnpriorError, match=r"^no study 'component' .*\(did you mean components\?\)"):
        results["component"]
    assert "component" not in results
    assert results.get("component") is None


def test_runs_of_one_model_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    folders = [tmp_path / "x" / "run", tmp_path / "y" / "run", tmp_path / "z"]
    for seed, folder in enumerate(folders):
        synthetic(seed=seed).write(folder / "scores.parquet")
    names = set(unprior.study("components", folders).to_pandas("components")["model"])
    assert names == {f"synthetic ({folders[0]})", f"synthetic ({folders[1]})", "synthetic (z)"}


@pytest.mark.parametrize("split", ["dev", "test"])
def test_half_a_pair_is_left_out_and_told(run: Callable, tmp_path: Path, split: str) -> None:
    table = synthetic(seed=0)
    pair = 1 if split == "dev" else 6
    half = table.mask(pair_id=pair, side="cf")
    table.take(~half).write(tmp_path / "scores.parquet")
    told = run("study", "main-comparison", "--run", tmp_path)
    assert told.code == 0
    assert "left aside: 2 pairs of" in told.err
    assert f"pair {pair} (mc): has no counterfactual (cf) side" in " ".join(told.err.split())


def test_a_table_without_splits_is_told_what_it_lacks(run: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    synthetic(seed=3).where(split="test").write(folder / "scores.parquet")
    run("study", "attraction", "--run", folder).refused("lacks rows of split dev", "Mark them")


def test_preparing_asks_any_model_for_other_questions(run: Callable, tmp_path: Path) -> None:
    """A model of random weights: nothing can be learned of it, and everything must go through all the same."""
    model = tiny_models.build("llava", tmp_path / "model")
    questions, folder = write_benchmark(tmp_path), tmp_path / "run"
    assert run("score", "--model", model, "--benchmark", questions, "--out", folder, "--max-new-tokens", 8).code == 0
    told = run("study", "claim-order", "--run", folder, "--prepare")
    assert told.code == 1
    assert "forms cannot be prepared" in told.err  # both images of a pair have the same answer
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for row in rows:
        if row["side"] == "cs":
            row["answer"] = "five" if "options" in row else "yes"
    questions.write_text("\n".join(json.dumps(row) for row in rows))
    assert run("score", "--model", model, "--benchmark", questions, "--out", folder, "--max-new-tokens", 8).code == 0
    names = ("option-orders", "alternative-priors", "claim-order", "prior-favours-ordinary")
    told = run("study", *names, "--run", folder, "--prepare", "--json")
    assert told.code == 0
    assert {record["name"] for record in told.json if "lacks" not in record} == set(names)
    asked = read_scores(folder / "variants" / "forms.parquet")
    assert set(asked.where(split="dev").column("form")) == {"contrastive"}
    assert len(set(zip(asked.column("form"), asked.column("claim_order"), strict=True))) == 4 * 2
    assert run("study", "option-orders", "--run", folder, "--prepare").code == 0  # nothing is lacking now
    toml = (folder / "run.toml").read_text()
    (folder / "run.toml").write_text(toml.replace(str(model), "embedded"))
    (folder / "variants" / "forms.parquet").unlink()
    run("study", "claim-order", "--run", folder, "--prepare").refused("names another model than that of scores.parquet")


@pytest.mark.slow
def test_preparing_asks_the_model_for_what_is_lacking(
    run: Callable, small_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPRIOR_DATA", str(tmp_path / "no-data"))
    folder = tmp_path / "run"
    assert run("run", "--benchmark", small_world, "--out", folder).code == 0
    told = run("study", "all", "--run", folder, "--prepare")
    assert told.code == 0
    lacking = {name for name, study in STUDIES.items() if "external" in study.needs}
    for name in STUDIES:
        assert (folder / "study" / f"{name}.json").exists() is (name not in lacking), name
    if lacking:
        assert "no other benchmark" in told.err
    # Again nothing is computed, and the results are the same bytes (but for the cost, which is measured).
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert run("study", "all", "--run", copy).code == 0
    for name in set(STUDIES) - lacking:
        assert (copy / "study" / f"{name}.json").read_bytes() == (folder / "study" / f"{name}.json").read_bytes()


@pytest.mark.slow
def test_presence_questions_are_the_other_benchmark_of_the_default(
    run: Callable, default_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPRIOR_DATA", str(tmp_path / "no-data"))
    folder = Path(shutil.copytree(default_run, tmp_path / "copy"))
    assert run("study", "external", "--run", folder, "--prepare").code == 0
    assert (folder / "external" / "microworld-presence" / "scores.parquet").exists()
    text = (folder / "study" / "external.json").read_text()
    assert "microworld-presence" in text
    assert "NoLan" in text


def test_a_table_of_several_models_is_not_pooled(run: Callable, two_runs: tuple[Path, Path], tmp_path: Path) -> None:
    tables = [parquet.read_table(folder / "scores.parquet") for folder in two_runs]
    parquet.write_table(pa.concat_tables(tables), tmp_path / "scores.parquet")
    run("study", "components", "--run", tmp_path).refused("holds several models (model-0, model-1)")
