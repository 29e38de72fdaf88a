from __future__ import annotations

import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unprior import Grid, ScoreTable, SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import storage
from unprior.calibration.conditions import ConditionsCalibrator
from unprior.calibration.fixed import FixedStrengthCalibrator
from unprior.calibration.gate import Condition
from unprior.calibration.one_sided import OneSidedCalibrator
from unprior.calibration.prior_blind import PriorBlindCalibrator


@pytest.fixture(scope="module", params=["standard", "uncertainty", "own grid", "abstaining"])
def fitted(request: pytest.FixtureRequest, table: ScoreTable) -> SelectivePriorCalibrator:
    if request.param == "abstaining":
        calibrator = SelectivePriorCalibrator().fit(table)
        calibrator.settings_ = None
        calibrator.selection_ = type(calibrator.selection_)(None, (), 0, 0, 80)
        return calibrator
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


VARIANTS: list[SelectivePriorCalibrator] = [
    SelectivePriorCalibrator(ties="released"),
    ConditionsCalibrator(epsilon_cs=0.3, allowed=(Condition.CONFLICT,)),
    ConditionsCalibrator(epsilon_cs=0.3, allowed=None),
    ConditionsCalibrator(epsilon_cs=0.3, allowed=(), uncertainty=True),
    OneSidedCalibrator(),
    OneSidedCalibrator(fit_on_both=False, uncertainty=True),
    PriorBlindCalibrator(uncertainty=True),
    FixedStrengthCalibrator(uncertainty=True),
    FixedStrengthCalibrator(strength=0.7, ties="released"),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=repr)
def test_every_variant_decides_the_same_after_loading(
    variant: SelectivePriorCalibrator, table: ScoreTable, tmp_path: Path
) -> None:
    fitted = variant.clone().fit(table)
    fitted.save(tmp_path / "calibrator.json")
    decisions = fitted.predict(table)
    assert decisions.revised.any() or fitted.get_params().get("allowed") == ()
    for kind in (type(variant), SelectivePriorCalibrator):
        loaded = kind.load(tmp_path / "calibrator.json")
        assert type(loaded) is type(variant)
        assert loaded.get_params() == fitted.get_params()
        assert loaded.selection_ == fitted.selection_
        for column in ("final", "reason", "strength", "margin", "distance"):
            np.testing.assert_array_equal(getattr(loaded.predict(table), column), getattr(decisions, column))
        loaded.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "calibrator.json").read_bytes()


def test_a_variant_is_not_taken_for_another(table: ScoreTable, tmp_path: Path) -> None:
    ConditionsCalibrator(allowed=None).fit(table).save(tmp_path / "conditions.json")
    with pytest.raises(UnpriorError, match=r"conditions\.json: the file holds a Conditions.*otherwise than One"):
        OneSidedCalibrator.load(tmp_path / "conditions.json")


def test_a_variant_of_ones_own_is_loaded_by_its_class_or_refused(table: ScoreTable, tmp_path: Path) -> None:
    class Cautious(SelectivePriorCalibrator):
        def __init__(self, *, epsilon_cs: float = 0.04, uncertainty: bool = False, grid: Grid | None = None) -> None:
            super().__init__(epsilon_cs=epsilon_cs, uncertainty=uncertainty, grid=grid)

    class Opaque(SelectivePriorCalibrator):
        def __init__(self, *, grid: Grid | None = None, rule: object = None, **parameters: Any) -> None:
            super().__init__(grid=grid)
            self.rule, self.parameters = rule, parameters

    Cautious(epsilon_cs=0.1).fit(table).save(tmp_path / "own.json")
    assert type(Cautious.load(tmp_path / "own.json")) is Cautious
    renamed = json.loads((tmp_path / "own.json").read_text())
    renamed["variant"]["kind"] = "Elsewhere"
    del renamed["checksum"]
    renamed["checksum"] = storage._checksum(renamed)
    (tmp_path / "own.json").write_text(json.dumps(renamed))
    with pytest.raises(UnpriorError, match=r"holds a Elsewhere, .* load the file with Elsewhere\.load"):
        SelectivePriorCalibrator.load(tmp_path / "own.json")
    with pytest.raises(UnpriorError, match="this Opaque cannot be saved: "):
        Opaque(rule=len).fit(table).save(tmp_path / "opaque.json")
    assert not (tmp_path / "opaque.json").exists()


def test_what_was_fitted_is_saved_and_not_what_was_set_since(table: ScoreTable, tmp_path: Path) -> None:
    fitted = SelectivePriorCalibrator(epsilon_cs=0.1).fit(table)
    expected = fitted.predict(table)
    fitted.set_params(epsilon_cs=0.5, uncertainty=True)
    fitted.save(tmp_path / "calibrator.json")
    loaded = SelectivePriorCalibrator.load(tmp_path / "calibrator.json")
    assert loaded.get_params() == SelectivePriorCalibrator(epsilon_cs=0.1).get_params()
    np.testing.assert_array_equal(loaded.predict(table).final_positions, expected.final_positions)


def test_files_of_the_first_version_are_read(table: ScoreTable, tmp_path: Path) -> None:
    """They name no variant; a given strength stands at the top."""
    fitted = FixedStrengthCalibrator(strength=0.7).fit(table)
    fitted.save(tmp_path / "calibrator.json")
    content = json.loads((tmp_path / "calibrator.json").read_text())
    del content["variant"], content["checksum"]
    content["strength"] = 0.7
    content["checksum"] = storage._checksum(content)
    (tmp_path / "old.json").write_text(json.dumps(content))
    for kind in (FixedStrengthCalibrator, SelectivePriorCalibrator):
        loaded = kind.load(tmp_path / "old.json")
        assert type(loaded) is kind
        assert loaded.get_params().get("strength") == (0.7 if kind is FixedStrengthCalibrator else None)
        np.testing.assert_array_equal(loaded.predict(table).final_positions, fitted.predict(table).final_positions)
    SelectivePriorCalibrator().fit(table).save(tmp_path / "plain.json")
    assert {"variant", "ties", "strength"}.isdisjoint(json.loads((tmp_path / "plain.json").read_text()))


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
    assert (content["format"], content["version"], content["model"]) == ("unprior.calibrator", 1, "synthetic")
    assert set(content["features"]["prior_margin"]) == {"mean", "scale", "theta"}
    assert len(text.splitlines()) < 200  # vectors and matrix rows stand on one line each


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


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "may be truncated"),
        (lambda text: "", "may be truncated"),
        (lambda text: "[]", "not a calibrator"),
        (lambda text: "{}", "not a calibrator"),
        (edited(lambda content: content.update(version=2)), "version 2, this unprior reads version 1"),
        (edited(lambda content: content.pop("version")), "version None"),
        (edited(lambda content: content["settings"].update(max_strength=1.4)), "changed after the file was saved"),
        (edited(lambda content: content["features"]["bias"].update(theta=0.5)), "changed after the file was saved"),
        (edited(lambda content: content.pop("checksum")), "changed after the file was saved"),
        (edited(lambda content: content.update(comment="mine")), "there is no field comment"),
        (edited(lambda content: content["features"].pop("divergence")), "features must be exactly"),
        (edited(lambda content: content["features"]["bias"].update(theta="x")), "features.bias.theta"),
        (edited(lambda content: content["features"]["bias"].update(scale=0.0)), "features.bias.scale"),
        (edited(lambda content: content.update(laplace=None)), "laplace must be present"),
        (edited(lambda content: content["settings"].update(max_distance=None)), "thresholds must be present"),
        (edited(lambda content: content["laplace"]["precision"].pop()), "laplace.precision"),
        (edited(lambda content: content["laplace"]["precision"][3].pop()), "12 by 12"),
        (edited(lambda content: content["laplace"]["covariance"][0].pop()), "laplace.covariance"),
        (edited(lambda content: content.update(candidate_counts=[])), "candidate_counts"),
        (edited(lambda content: content.update(model="\ud800")), "not valid Unicode"),
        (edited(lambda content: operator.setitem(content["laplace"]["covariance"][2], 2, -1.0)), "negative variance"),
        (edited(lambda content: operator.setitem(content["laplace"]["precision"][2], 2, -9.0)), "negative variance"),
        (edited(lambda content: operator.setitem(content["laplace"]["covariance"][2], 3, 9.0)), "must be symmetric"),
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
    calibrator = SelectivePriorCalibrator(uncertainty=True).fit(synthesize(seed=0))
    calibrator.model_.theta[3] = 1e300
    with pytest.raises(UnpriorError, match="theta"):
        calibrator.save(tmp_path / "cal.json")
