"""Calibrators with their cards on the command line: made, published, and used from a folder or a hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hub_server import TOKEN, Hub, serve_models
from recorded_runs import write_run
from unprior import SelectivePriorCalibrator, read_scores
from unprior.benchmarks.microworld import pairs
from unprior.benchmarks.microworld.benchmark import image_path
from unprior.calibration.pretrained import CARD, FILE

REPO = "me/spc-embedded"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serve_models() as hub:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def question(folder: Path) -> list[object]:
    pair = next(pairs(0))
    return [image_path(folder, pair, "cf"), pair.concept.question, "--options", "|".join(pair.options)]


def test_fit_writes_a_folder_with_a_card(run: Callable, files: object, tmp_path: Path) -> None:
    scores = files.scores  # type: ignore[attr-defined]
    done = run("fit", scores, "--out", "cal/", "--json")
    assert (done.code, done.json["out"]) == (0, "cal/")
    assert sorted(path.name for path in Path("cal").iterdir()) == [CARD, FILE]
    assert "are not known to this card" in (Path("cal") / CARD).read_text()
    assert run("apply", "cal", scores, "--out", "decisions.jsonl").code == 0
    Path("other").mkdir()
    (Path("other") / CARD).write_text("# Mine\n")
    run("fit", scores, "--out", "other/").refused("this is no card of a calibrator, and would be replaced")


def test_a_run_is_published_with_its_test_rows(run: Callable, default_run: Path, hub: Hub) -> None:
    done = run("publish", default_run, "--out", "cal", "--repo", REPO, "--json")
    assert done.code == 0, done.err
    assert done.json["written"][0] == "cal"
    assert done.json["written"][1].startswith(f"{hub.url}/{REPO}/commit/")
    card = (Path("cal") / CARD).read_text()
    report = json.loads((default_run / "report.json").read_text())
    for task in report["evaluation"]["tasks"]:
        for side in ("cf", "cs"):
            assert f"| {task[side]['repairs']}/{task[side]['harms']} |" in card
    assert hub.branches[REPO, "main"][FILE] == (default_run / "calibrator.json").read_bytes()


def test_ask_and_serve_take_folders_and_repositories(
    run: Callable, default_run: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrator = SelectivePriorCalibrator.load(default_run / "calibrator.json")
    calibrator.save_pretrained("cal")
    calibrator.push_to_hub(REPO)
    asked = ["ask", *question(default_run), "--json"]
    by_file = run(*asked, "--calibrator", default_run / "calibrator.json").json
    for place in ("cal", REPO):
        by_place = run(*asked, "--calibrator", place).json
        assert by_place.pop("calibrator") == place
        assert by_place == {name: value for name, value in by_file.items() if name != "calibrator"}
    checked = run("serve", "--check", "--json", "--calibrator", "mine=cal", "--calibrator", REPO)
    assert checked.code == 0, checked.err
    one, two = checked.json["calibrators"]
    assert (one["id"], two["id"]) == ("mine", "spc-embedded")
    assert one["digest"] == two["digest"]


def test_a_calibrator_of_another_model_is_refused(run: Callable, files: object, default_run: Path, hub: Hub) -> None:
    other = SelectivePriorCalibrator.load(files.calibrator)  # type: ignore[attr-defined]
    other.save_pretrained("cal")
    other.push_to_hub(REPO)
    for place in ("cal", REPO):
        run("ask", *question(default_run), "--calibrator", place).refused("model synthetic, here embedded")
        run("serve", "--check", "--calibrator", f"mine={place}").refused("model synthetic, here embedded")


def test_the_calibrator_of_another_run_is_not_replaced(run: Callable, tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_run(tmp_path / name / "run", model=name)
    before = (tmp_path / "second" / "run" / FILE).read_bytes()
    for source in ("first/run", f"first/run/{FILE}"):
        run("publish", source, "--out", "second/run").refused("second/run: this is the folder of another run")
        assert run("publish", source, "--out", "first/run").code == 0
    assert (tmp_path / "second" / "run" / FILE).read_bytes() == before


def test_a_run_without_test_rows_is_published_without_results(run: Callable, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    table = read_scores(folder / "scores.parquet")
    table.where(split="dev").write(folder / "scores.parquet")
    done = run("publish", "run", "--out", "cal")
    assert (done.code, done.err) == (0, "")
    assert "are not known to this card" in (Path("cal") / CARD).read_text()
    table.take(np.arange(1, len(table))).write(folder / "scores.parquet")
    done = run("publish", "run", "--out", "cal")
    assert done.code == 0
    assert "1 pairs of run/scores.parquet are left out, the first because of" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["{run}"], "give a folder by --out"),
        (["{run}", "--out", "cal", "--private"], "--revision and --private go with --repo"),
        (["nowhere", "--out", "cal"], "nowhere: no such file"),
        (["{run}", "--repo", "nothing"], "no repository of the hub has such a name"),
    ],
)
def test_mistakes(run: Callable, default_run: Path, arguments: list[str], told: str) -> None:
    run("publish", *(each.format(run=default_run) for each in arguments)).refused(told)
