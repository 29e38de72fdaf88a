"""The study of certified retention: draws from a population, and what it says about them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from study_checks import is_plain
from unprior import SelectivePriorCalibrator, synthesize
from unprior.calibration import Fixed
from unprior.studies.beyond import certified_retention
from unprior.studies.beyond.certified_retention import Cell, CertifiedRetention, study_certified_retention
from unprior.studies.common.pools import Pool
from unprior.studies.inputs import StudyInputs

RULES = ("paper", "split", "fixed", "expected")


@pytest.fixture(scope="module")
def result() -> CertifiedRetention:
    return study_certified_retention({"made up": synthesize(seed=1)}, draws=3, sizes=(35, 70), limits=(0.04, 0.1))


def test_cells_equal_fits_on_the_same_draws(result: CertifiedRetention) -> None:
    pool = Pool(synthesize(seed=1))
    rng = np.random.default_rng(certified_retention.SEED)
    parameters = {
        "paper": {}, "split": {"retention": "certified"}, "expected": {"retention": "expected"},
        "fixed": {"retention": "certified", "strength": Fixed(1.0)},
    }  # fmt: skip
    cells = {(cell.pairs, cell.epsilon, cell.rule): cell for cell in result.cells}
    assert set(cells) == {(pairs, epsilon, rule) for pairs in (35, 70) for epsilon in (0.04, 0.1) for rule in RULES}
    for pairs in (35, 70):
        drawn = [pool.draw(rng, pairs) for _ in range(3)]
        for rule, given in parameters.items():
            harms, gains, abstaining = [], [], 0
            for each in drawn:
                fitted = SelectivePriorCalibrator(epsilon_cs=0.1, **given).fit(each, split=None)  # type: ignore[arg-type]
                outcome = pool.outcome(fitted.model_, fitted.settings_)
                harms.append(outcome.worst_harm)
                gains.append(outcome.mean_cf)
                abstaining += fitted.settings_ is None
            cell = cells[pairs, 0.1, rule]
            assert cell.draws == 3
            assert cell.exceeded == pytest.approx(np.mean([harm > 0.1 for harm in harms]))
            assert cell.delta_cf == pytest.approx(np.mean(gains), abs=1e-12)
            assert (cell.harm, cell.abstains) == pytest.approx((np.median(harms), abstaining / 3))
            assert cell.share == pytest.approx(cell.delta_cf / cells[pairs, 0.1, "paper"].delta_cf)
    assert cells[35, 0.04, "split"].abstains == 1.0
    assert cells[35, 0.04, "split"].delta_cf == 0.0


def test_it_is_fit_to_be_written(result: CertifiedRetention) -> None:
    assert is_plain(result)
    assert len(result.records()) == len(result.table.rows) == 16
    figure = result.figure()
    assert figure is not None
    (axes,) = figure.axes
    drawn = {str(line.get_label()) for line in axes.get_lines()}
    assert {"paper's rule", "certified, split λ", "expected, split λ", "as permitted"} <= drawn


def _cell(rule: str, exceeded: float) -> Cell:
    error = math.sqrt(exceeded * (1 - exceeded) / 200)
    return Cell("mine", 70, 0.04, rule, 200, exceeded, error, 0.1, 0.7, 0.02, 0.03, 0.0)


def _made(split: float) -> CertifiedRetention:
    cells = (_cell("paper", 0.5), _cell("split", split), _cell("fixed", 0.02), _cell("expected", 0.4))
    return CertifiedRetention(0.1, {"mine": 3000}, cells)


def test_a_promise_that_held_is_said() -> None:
    first, second = _made(0.03).sentences
    assert first == (
        "The certified rule kept its promise in all 2 cells, within two standard errors: ε was exceeded on at most "
        "3.0 % of draws, and 10 % are promised."
    )
    assert second == (
        "mine, 70 pairs: the paper's rule exceeds ε on 50.0 % of draws at ε = 0.04 (certified: 3.0 %, 70 % of the "
        "repair)."
    )


def test_a_promise_that_broke_is_said() -> None:
    broken = _made(0.25)
    assert broken.sentences[0] == (
        "The certified rule exceeded ε more often than promised in 1 cell: mine, n = 70, ε = 0.04."
    )
    assert not broken.cells[1].keeps(0.1)
    assert _made(0.14).cells[1].keeps(0.1), "by chance"
    assert not _made(0.16).cells[1].keeps(0.1)


def test_a_share_of_nothing_is_no_share() -> None:
    made = _made(0.0)
    cells = tuple(replace(cell, share=math.nan) for cell in made.cells)
    none = replace(made, cells=cells)
    assert "no share of the repair" in none.sentences[1]
    assert {record["share"] for record in none.records()} == {None}
    assert is_plain(none)


def test_as_a_study_it_takes_the_run_and_a_synthetic_population(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def noted(sources: dict[str, object], **options: object) -> CertifiedRetention:
        seen.update({"sources": list(sources), **options})
        return _made(0.0)

    monkeypatch.setattr(certified_retention, "study_certified_retention", noted)
    certified_retention.STUDY.run(StudyInputs(synthesize(seed=2), promise={"delta": 0.05}))
    assert seen == {"sources": ["synthetic", "synthetic, another seed"], "draws": 2, "delta": 0.05}
