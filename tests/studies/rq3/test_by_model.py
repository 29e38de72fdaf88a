"""Studies of RQ3 with two models."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from unprior.plots.style import DARK
from unprior.studies.by_model import ByModel
from unprior.studies.registry import choose_studies
from unprior.studies.result import StudyResult


@pytest.mark.parametrize("name", [study.name for study in choose_studies(["rq3"])])
def test_every_model_has_a_block_and_a_column(name: str, study_result: Callable[[str], StudyResult]) -> None:
    one = study_result(name)
    both = ByModel({"first": one, "second": one})
    assert [row.cells for row in both.table.rows] == 2 * [row.cells for row in one.table.rows]
    assert [str(section.heading).partition(":")[0] for section in both.table.sections] == (
        ["first"] * len(one.table.sections) + ["second"] * len(one.table.sections)
    )
    panels, figure = one.panels(), both.figure(DARK)
    assert (panels is None) == (figure is None)
    if panels is not None:
        assert len(figure.axes) == 2 * len(panels.draws)


@pytest.mark.parametrize("name", [study.name for study in choose_studies(["rq3"]) if study.name != "prior-agreement"])
def test_version_and_limit_are_named(name: str, study_result: Callable[[str], StudyResult]) -> None:
    result = study_result(name)
    table = result.table
    words = " ".join([table.caption, *(str(section.heading) for section in table.sections), *table.columns,
                      *(row.cells[0] for row in table.rows)])  # fmt: skip
    for text in (words, " ".join(result.sentences)):
        assert "standard" in text or "uncertainty-aware" in text
        assert "ε = 0." in text
