"""The scale of open answers in calibrator files: a forged one is refused, whatever the checksum says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from unprior import SelectivePriorCalibrator, UnpriorError, synthesize
from unprior.calibration import Fixed, OpenAnswers, storage

TABLE = synthesize(seed=0, open_questions=True)
OPEN = TABLE.where(task="open")
CERTIFIED: dict[str, Any] = {"retention": "certified", "epsilon_cs": 0.06}
PAPER, PROMISING = (SelectivePriorCalibrator(**each).fit(TABLE) for each in ({}, CERTIFIED))


def sealed(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The file with a change that its checksum does not tell."""
    document = json.loads(path.read_text())
    del document["checksum"]
    change(document)
    path.write_text(json.dumps(document | {"checksum": storage._checksum(document)}))
    return path


def forge(*names: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        part: Any = document
        for name in names[:-1]:
            part = part[name]
        part[names[-1]] = value

    return change


def every_temperature(value: float, rows: int | None = None) -> Callable[[dict[str, Any]], None]:
    """T changed wherever it stands."""

    def change(document: dict[str, Any]) -> None:
        for part in (document["open"], *document["open"]["other_clips"]):
            part["scale"] |= {"temperature": value} | ({} if rows is None else {"rows": rows})

    return change


def swap_clips(document: dict[str, Any]) -> None:
    """The chosen τ and the next one, exchanged."""
    opened = document["open"]
    opened["scale"]["clip"], other = opened["other_clips"][0]["scale"]["clip"], opened["scale"]["clip"]
    opened["other_clips"][0]["scale"]["clip"] = other


@pytest.mark.parametrize(
    ("fitted", "change", "reason"),
    [
        (PAPER, forge("open", "scale", "clip", value=4.0), "the values of τ are not those that the parameters offer"),
        (PAPER, forge("open", "other_clips", value=[]), "the values of τ are not those that the parameters offer"),
        (PAPER, forge("open", "scale", "clip", value=-1.0), "open.scale.clip: must be greater than 0"),
        (PAPER, forge("open", "scale", "clip", value=math.inf), "open.scale.clip: must be a finite number"),
        (PAPER, forge("open", "scale", "temperature", value=1.0), "T must be the same for all values of τ"),
        (PAPER, every_temperature(50.0), "no fit finds a T of 50"),
        (PAPER, every_temperature(1.0, rows=7), "T must be fitted on the rows that the strength was fitted on"),
        (
            PAPER,
            every_temperature(2.0, rows=0),
            "a T that was fitted on no row is 2, and comes with a certificate only",
        ),
        (PAPER, swap_clips, "τ and the settings for open questions are not those that its counts lead to"),
        (PAPER, forge("open", "settings", "max_strength", value=0.5), "are not those that its counts lead to"),
        (PAPER, forge("open", "selection", "changed", value=0), "are not those that its counts lead to"),
        (PAPER, forge("open", "outcomes", value=None), "does not hold what every setting does to open questions"),
        (
            PROMISING,
            forge("open", "scale", "clip", value=7.0),
            "the values of τ are not those that the parameters offer",
        ),
        (PROMISING, forge("open", "scale", "temperature", value=50.0), "no fit finds a T of 50"),
        (PROMISING, forge("open", "scale", "rows", value=10_000), "on more rows than there are, or on none"),
        (PROMISING, every_temperature(1.9, rows=0), "a T that was fitted on no row is 2"),
        (
            PROMISING,
            forge("parameters", "open_answers", value={"clips": [3.0, 5.0, 7.0], "temperature": 3.0}),
            "T is not the one that the parameters give",
        ),
    ],
)
def test_a_forged_scale_is_refused_although_the_checksum_fits(
    tmp_path: Path, fitted: SelectivePriorCalibrator, change: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    path = tmp_path / "calibrator.json"
    fitted.save(path)
    SelectivePriorCalibrator.load(sealed(path, lambda document: None))
    with pytest.raises(UnpriorError, match=rf"calibrator\.json: .*{reason}.*unprior fit"):
        SelectivePriorCalibrator.load(sealed(path, change))


def test_the_scale_of_a_calibrator_of_open_answers_alone_is_checked_too(tmp_path: Path) -> None:
    for number, fitted in enumerate((PAPER.open_, SelectivePriorCalibrator().fit(OPEN), PROMISING.open_)):
        path = tmp_path / f"{number}.json"
        fitted.save(path)
        with pytest.raises(UnpriorError, match="the values of τ are not those that the parameters offer"):
            SelectivePriorCalibrator.load(sealed(path, forge("scale", "clip", value=4.0)))


@pytest.mark.parametrize("parameters", [{}, CERTIFIED, CERTIFIED | {"strength": Fixed(1.0)}])
@pytest.mark.parametrize("offered", [OpenAnswers((4.0, math.inf), 3.0), OpenAnswers((math.inf,)), OpenAnswers()])
def test_every_scale_that_a_fit_leaves_behind_is_accepted(
    tmp_path: Path, parameters: dict[str, Any], offered: OpenAnswers
) -> None:
    fitted = SelectivePriorCalibrator(**parameters, open_answers=offered).fit(TABLE)
    fitted.save(tmp_path / "calibrator.json")
    assert SelectivePriorCalibrator.load(tmp_path / "calibrator.json").made_with == fitted.made_with


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_a_temperature_at_the_end_of_its_range_is_accepted(tmp_path: Path, factor: float) -> None:
    fitted = SelectivePriorCalibrator().fit(OPEN.with_image_scores(OPEN.image_scores * factor))
    fitted.save(tmp_path / "calibrator.json")
    assert SelectivePriorCalibrator.load(tmp_path / "calibrator.json").made_with == fitted.made_with


def moved_strength(by: float, part: str | None) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        theta = (document if part is None else document[part])["fits"][0]["theta"]
        theta[0] += by

    return change


@pytest.mark.parametrize("part", [None, "open"])
def test_a_certified_strength_may_differ_in_its_last_digits_only(tmp_path: Path, part: str | None) -> None:
    """Another NumPy or processor ends a logarithm otherwise, and must read the file all the same."""
    path = tmp_path / "calibrator.json"
    PROMISING.save(path)
    read = SelectivePriorCalibrator.load(sealed(path, moved_strength(1e-14, part)))
    assert (read.predict(TABLE).final_positions == PROMISING.predict(TABLE).final_positions).all()
    with pytest.raises(UnpriorError, match="the strength is not that of the certificate"):
        SelectivePriorCalibrator.load(sealed(path, moved_strength(1e-6, part)))
