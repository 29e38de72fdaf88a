from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from small_tables import synthetic
from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import IMAGE_FEATURES, Condition, Constant, Fixed, Selection, storage

VERSION_1 = sorted((Path(__file__).parent / "version_1").glob("*.json"))
"""Files that the last package before version 2 wrote, fitted on ``synthesize(seed=3)``."""


@pytest.fixture(scope="module", params=["standard", "uncertainty", "own grid", "abstaining"])
def fitted(request: pytest.FixtureRequest, table: ScoreTable) -> SelectivePriorCalibrator:
    if request.param == "abstaining":
        state = SelectivePriorCalibrator().fit(table).state_
        return SelectivePriorCalibrator.from_state(replace(state, selection=Selection(None, (), 0, 0, 80)))
    grid = Grid(rho=(0.5,), max_strength=(0.9, 1.1)) if request.param == "own grid" else None
    return SelectivePriorCalibrator(uncertainty=request.param == "uncertainty", grid=grid).fit(table)


def test_save_load_predict_is_identical(fitted: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path) -> None:
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert loaded.get_params() == fitted.get_params()
    assert loaded.settings_ == fitted.settings_
    assert loaded.selection_ == fitted.selection_
    assert loaded.candidate_counts_ == fitted.candidate_counts_
    assert (loaded.loss_, loaded.gradient_norm_) == (fitted.loss_, fitted.gradient_norm_)
    fitted.predict(table).write(tmp_path / "ours.jsonl")
    loaded.predict(table).write(tmp_path / "theirs.jsonl")
    assert (tmp_path / "ours.jsonl").read_bytes() == (tmp_path / "theirs.jsonl").read_bytes()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibrator.json").read_bytes()


VARIANTS: list[dict[str, Any]] = [
    {"ties": "released"},
    {"epsilon_cs": 0.3, "conditions": (Condition.CONFLICT,)},
    {"epsilon_cs": 0.3, "conditions": None},
    {"epsilon_cs": 0.3, "conditions": (), "uncertainty": True},
    {"select_on": "cf"},
    {"fit_on": "cf", "select_on": "cf", "uncertainty": True},
    {"fit_on": "cf"},
    {"features": IMAGE_FEATURES, "uncertainty": True},
    {"strength": Constant(), "uncertainty": True},
    {"strength": Fixed(0.7), "ties": "released"},
]


@pytest.mark.parametrize("parameters", VARIANTS, ids=repr)
def test_every_parameter_is_saved_and_decides_the_same_after_loading(
    parameters: dict[str, Any], table: ScoreTable, tmp_path: Path
) -> None:
    fitted = SelectivePriorCalibrator(**parameters).fit(table)
    fitted.save(tmp_path / "calibrator.json")
    decisions = fitted.predict(table)
    assert decisions.revised.any() or fitted.conditions == ()
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert loaded.get_params() == fitted.get_params()
    assert loaded.selection_ == fitted.selection_
    for column in ("final", "reason", "strength", "margin", "distance"):
        np.testing.assert_array_equal(getattr(loaded.predict(table), column), getattr(decisions, column))
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibrator.json").read_bytes()


@pytest.mark.parametrize("parameters", [{}, {"uncertainty": True}, {"strength": Fixed(0.7)}, {"ties": "released"}])
def test_settings_can_be_chosen_again_from_the_file(
    parameters: dict[str, Any], table: ScoreTable, tmp_path: Path
) -> None:
    fitted = SelectivePriorCalibrator(**parameters).fit(table)
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    for epsilon in (0.0, 0.02, 0.1, 1.0):
        expected, again = fitted.reselect(epsilon), loaded.reselect(epsilon)
        assert again.epsilon_cs == epsilon
        assert again.selection_ == expected.selection_
        np.testing.assert_array_equal(again.model_.theta, expected.model_.theta)
        np.testing.assert_array_equal(again.predict(table).final_positions, expected.predict(table).final_positions)


def test_the_file_stays_small(tmp_path: Path) -> None:
    """It holds counts and not rows, so that thirty times the rows make it little larger."""
    sizes = []
    for repeats in (1, 30):
        path = tmp_path / f"{repeats}.json"
        SelectivePriorCalibrator(uncertainty=True).fit(synthesize(0, repeats=repeats)).save(path)
        sizes.append(path.stat().st_size)
    assert sizes[0] < 40_000
    assert sizes[1] < 4 * sizes[0]


@pytest.mark.parametrize("path", VERSION_1, ids=lambda path: path.stem)
def test_files_of_version_1_decide_as_they_did(path: Path, tmp_path: Path) -> None:
    table = synthetic(seed=3)
    expected = json.loads((Path(__file__).parent / "version_1_decisions.json").read_text())[path.stem]
    loaded = SelectivePriorCalibrator.load(path)
    decisions = loaded.predict(table)
    digest = hashlib.sha256(decisions.final_positions.astype("<i8").tobytes() + decisions.reason.tobytes())
    assert int(decisions.revised.sum()) == expected["revised"]
    assert digest.hexdigest() == expected["decisions"]
    assert decisions.strength.sum() == pytest.approx(expected["strengths"], rel=1e-12)
    again = loaded.clone().fit(table)
    assert again.get_params() == loaded.get_params()
    settings, before = again.settings_, loaded.settings_
    if before.max_distance is not None:  # its last digits are those of the BLAS
        assert settings.max_distance == pytest.approx(before.max_distance, rel=1e-12)
        settings = replace(settings, max_distance=before.max_distance)
    assert settings == before
    np.testing.assert_array_equal(again.predict(table).final_positions, decisions.final_positions)
    with pytest.raises(UnpriorError, match=r"from a file of version 1.*Fit it again"):
        loaded.reselect(0.1)
    loaded.save(tmp_path / "new.json")
    newer = SelectivePriorCalibrator.load(tmp_path / "new.json")
    assert newer.get_params() == loaded.get_params()
    np.testing.assert_array_equal(newer.predict(table).final_positions, decisions.final_positions)


def test_version_1_has_a_file_for_every_control() -> None:
    parameters = [SelectivePriorCalibrator.load(path).get_params() for path in VERSION_1]
    for name in ("uncertainty", "grid", "ties", "strength", "features", "conditions", "fit_on", "select_on"):
        assert len({repr(each[name]) for each in parameters}) > 1, name


def first_release(path: Path, **changes: Any) -> str:
    """What 0.1.0 itself wrote: no variant, no ties, no provenance."""
    content = {name: value for name, value in json.loads(path.read_text()).items() if name not in FIRST_UNKNOWN}
    content |= changes
    return json.dumps(content | {"checksum": storage._checksum(content)})


FIRST_UNKNOWN = ("variant", "ties", "provenance", "checksum")


def test_files_of_the_first_release_are_read(tmp_path: Path) -> None:
    """A control was not recorded there, but decides by its model; a given strength stands at the top."""
    table = synthetic(seed=3)
    folder = VERSION_1[0].parent
    for name, strength in (("fixed-standard", 0.8), ("constant-standard", None), ("spc-standard", None)):
        given = {} if strength is None else {"strength": strength}
        (tmp_path / "old.json").write_text(first_release(folder / f"{name}.json", **given))
        old, new = (SelectivePriorCalibrator.load(path) for path in (tmp_path / "old.json", folder / f"{name}.json"))
        assert (old.strength == Fixed(0.8)) == (strength is not None)
        np.testing.assert_array_equal(old.predict(table).final_positions, new.predict(table).final_positions)


def test_a_class_that_is_not_known_is_refused(tmp_path: Path) -> None:
    text = first_release(VERSION_1[0], variant={"kind": "Elsewhere", "parameters": {}})
    (tmp_path / "own.json").write_text(text)
    with pytest.raises(UnpriorError, match=r"own\.json: the file holds a Elsewhere, a class that is not part of"):
        SelectivePriorCalibrator.load(tmp_path / "own.json")


def test_what_was_fitted_is_saved_and_not_what_was_set_since(table: ScoreTable, tmp_path: Path) -> None:
    fitted = SelectivePriorCalibrator(epsilon_cs=0.1).fit(table)
    expected = fitted.predict(table)
    fitted.set_params(epsilon_cs=0.5, uncertainty=True)
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert loaded.get_params() == SelectivePriorCalibrator(epsilon_cs=0.1).get_params()
    np.testing.assert_array_equal(loaded.predict(table).final_positions, expected.final_positions)


@pytest.mark.parametrize("name", ["m [ 1  2 ] x", 'quoted "[1,\n2]"', "ünïcode [ ]", ""])
def test_any_model_name_survives(name: str, table: ScoreTable, tmp_path: Path) -> None:
    SelectivePriorCalibrator().fit(table.with_columns(model=name)).save(tmp_path / "calibrator.json")
    assert SelectivePriorCalibrator.load(tmp_path / "calibrator.json").model_name_ == name


def test_a_subclass_loads_as_itself(table: ScoreTable, tmp_path: Path) -> None:
    class Own(SelectivePriorCalibrator):
        pass

    SelectivePriorCalibrator().fit(table).save(tmp_path / "calibrator.json")
    assert type(Own.load(tmp_path / "calibrator.json")) is Own


def test_the_file_is_readable(table: ScoreTable, tmp_path: Path) -> None:
    SelectivePriorCalibrator(uncertainty=True).fit(table).save(tmp_path / "calibrator.json")
    text = (tmp_path / "calibrator.json").read_text()
    content = json.loads(text)
    assert (content["format"], content["version"], content["model"]) == ("unprior.calibrator", 2, "synthetic")
    assert set(content["features"]["prior_margin"]) == {"mean", "scale"}
    assert len(text.splitlines()) < 250  # vectors and matrix rows stand on one line each


@pytest.fixture(scope="module")
def saved(table: ScoreTable, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("calibrator") / "calibrator.json"
    SelectivePriorCalibrator(uncertainty=True).fit(table).save(path)
    return path.read_text()


def edited(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return edit


def doubled(places: list[int]) -> None:
    places[1] = places[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "may be truncated"),
        (lambda text: "", "may be truncated"),
        (lambda text: "[]", "not a calibrator"),
        (lambda text: "{}", "not a calibrator"),
        (edited(lambda content: content.update(version=3)), "version 3, this unprior reads versions 1 to 2"),
        (edited(lambda content: content.pop("version")), "version None"),
        (edited(lambda content: content["settings"].update(max_strength=1.4)), "changed after the file was saved"),
        (
            edited(lambda content: operator.setitem(content["fits"][0]["theta"], 0, 0.5)),
            "changed after the file was saved",
        ),
        (edited(lambda content: content.pop("checksum")), "changed after the file was saved"),
        (edited(lambda content: content.update(comment="mine")), "there is no field comment"),
        (edited(lambda content: content["features"].pop("divergence")), "features must be exactly"),
        (edited(lambda content: operator.setitem(content["fits"][0]["theta"], 0, "x")), "fits.0.theta.0"),
        (edited(lambda content: content["features"]["bias"].update(scale=0.0)), "features.bias.scale"),
        (edited(lambda content: content.update(precision=None)), "precision and covariance must be present"),
        (edited(lambda content: content["fits"][1].update(covariance=None)), "precision and covariance must be"),
        (edited(lambda content: content["settings"].update(rho=7.0)), "no fit for the chosen rho 7"),
        (edited(lambda content: content["parameters"].update(strength={"rule": "luck"})), "parameters.strength"),
        (edited(lambda content: content["outcomes"]["net"]["places"].pop()), "outcomes.net"),
        (edited(lambda content: content["outcomes"]["net"]["places"].append(10**9)), "outcomes.net"),
        (edited(lambda content: doubled(content["outcomes"]["net"]["places"])), "outcomes.net"),
        (edited(lambda content: content["features"]["divergence"].update(scale=1e-320)), "features.divergence.scale"),
        (edited(lambda content: content["features"]["divergence"].update(mean=1e308)), "features.divergence.mean"),
        (edited(lambda content: content.update(development_rows=-1)), "development_rows"),
        (edited(lambda content: content["settings"].update(conflict_support=-0.1)), "settings.conflict_support"),
        (edited(lambda content: content["settings"].update(max_distance=-1.0)), "settings.max_distance"),
        (edited(lambda content: content["settings"].update(max_distance=None)), "thresholds must be present"),
        (edited(lambda content: content["precision"].pop()), "precision"),
        (edited(lambda content: content["precision"][3].pop()), "12 by 12"),
        (edited(lambda content: content["fits"][2]["covariance"][0].pop()), "fits.2.covariance"),
        (edited(lambda content: content.update(candidate_counts=[])), "candidate_counts"),
        (edited(lambda content: content.update(model="\ud800")), "not valid Unicode"),
        (edited(lambda content: operator.setitem(content["fits"][2]["covariance"][2], 2, -1.0)), "negative variance"),
        (edited(lambda content: operator.setitem(content["precision"][2], 2, -9.0)), "negative variance"),
        (edited(lambda content: operator.setitem(content["fits"][2]["covariance"][2], 3, 9.0)), "must be symmetric"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(
    saved: str, tmp_path: Path, damage: Callable[[str], str], message: str
) -> None:
    path = tmp_path / "calibrator.json"
    path.write_text(damage(saved))
    with pytest.raises(UnpriorError, match=message) as caught:
        SelectivePriorCalibrator.load(path)
    assert str(path) in str(caught.value)


def resealed(text: str, change: Callable[[dict[str, Any]], Any]) -> str:
    content = json.loads(text)
    del content["checksum"]
    change(content)
    return json.dumps(content | {"checksum": storage._checksum(content)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content["parameters"].update(conditions=["luck"]), "conditions are conflict and absorption"),
        (lambda content: content["parameters"].update(features=["luck"]), "features has 'luck'"),
        (lambda content: content["parameters"].update(epsilon_cs=2.0), "epsilon_cs is 2.0"),
        (lambda content: content["outcomes"]["totals"].pop(), "do not belong to the grid and the tasks"),
        (lambda content: content["outcomes"]["distance_limits"].pop(), "distance limits do not belong"),
        (lambda content: content["fits"].pop(), "the fits do not belong to the grid"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(
    saved: str, tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    (tmp_path / "calibrator.json").write_text(resealed(saved, change))
    with pytest.raises(UnpriorError, match=rf"calibrator\.json: .*{message}"):
        SelectivePriorCalibrator.load(tmp_path / "calibrator.json")


def test_binary_rubbish_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "image.json").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(UnpriorError, match="not a calibrator"):
        SelectivePriorCalibrator.load(tmp_path / "image.json")
    with pytest.raises(UnpriorError, match="no such file"):
        SelectivePriorCalibrator.load(tmp_path / "nowhere.json")


def test_numbers_survive_exactly(table: ScoreTable, tmp_path: Path) -> None:
    fitted = SelectivePriorCalibrator(uncertainty=True).fit(table)
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    for name in ("theta", "covariance", "precision"):
        np.testing.assert_array_equal(getattr(loaded.model_, name), getattr(fitted.model_, name))


def test_weights_beyond_all_measure_are_refused(tmp_path: Path) -> None:
    calibrator = SelectivePriorCalibrator(uncertainty=True).fit(synthetic(seed=0))
    calibrator.model_.theta[3] = 1e300
    with pytest.raises(UnpriorError, match="theta"):
        calibrator.save(tmp_path / "cal.json")
