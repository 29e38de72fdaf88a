"""Mixtures of subcategories for a certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from unprior import UnpriorError, synthesize
from unprior.benchmarks.mixtures import read_mixture
from unprior.calibration.certificate import mixture_weight


def test_the_mixture_of_cdh_bench_is_that_of_its_test_pairs() -> None:
    test, dev = (synthesize(seed=0).where(split=split, task="mc", side="cf") for split in ("test", "dev"))
    names = test.column("subcategory")
    mixture = read_mixture("cdh-bench")
    assert mixture == pytest.approx({name: names.count(name) / 230 for name in set(names)})
    drawn = {name: float(dev.column("subcategory").count(name)) for name in mixture}
    assert mixture_weight(mixture, drawn) == pytest.approx(1.217, abs=5e-4)


def test_a_file_gives_shares_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mixture.json"
    path.write_text('{"Color": 2, "Smell": 0.5, "Size": 0}', encoding="utf-8")
    assert read_mixture(str(path)) == {"Color": 2.0, "Smell": 0.5, "Size": 0.0}


@pytest.mark.parametrize(
    "text",
    ["[1, 2]", '{"Color": -1}', '{"Color": true}', '{"Color": "much"}', '{"Color": 0}', "{}", '{"Color": Infinity}',
     '{"Color": NaN}', '{"Color": [1]}'],
)  # fmt: skip
def test_shares_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "mixture.json").write_text(text, encoding="utf-8")
    with pytest.raises(UnpriorError, match=r"mixture\.json: give a share of at least 0 for every subcategory"):
        read_mixture(str(tmp_path / "mixture.json"))


@pytest.mark.parametrize("text", ["", '{"Color": 1', "[" * 100_000])
def test_a_file_that_is_no_json_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "mixture.json").write_text(text, encoding="utf-8")
    with pytest.raises(UnpriorError, match=r"mixture\.json: not valid JSON"):
        read_mixture(str(tmp_path / "mixture.json"))


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UnpriorError, match=r"cdh-bensh is neither cdh-bench nor a file; give a JSON file"):
        read_mixture("cdh-bensh")
