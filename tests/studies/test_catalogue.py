"""What every study must give, whatever it is about."""

from __future__ import annotations

import json

import pytest

from made_up_methods import made_up
from small_tables import few_pairs
from unprior.studies.catalogue import STUDIES
from unprior.studies.inputs import External, StudyInputs


@pytest.fixture(scope="module")
def inputs() -> StudyInputs:
    table = few_pairs(development=5, test=3)
    test = table.where(split="test")
    order = table.where(task="mc")
    return StudyInputs(
        table,
        variants={f"order-{name}": order for name in ("1230", "2301", "3210")},
        external={"other": External(few_pairs(seed=8))},
        baselines=tuple(made_up(test)),
        resamples=200,
    )


@pytest.mark.parametrize("name", STUDIES)
def test_records_sentences_and_captions_are_fit_to_be_written(name: str, inputs: StudyInputs) -> None:
    study = STUDIES[name]
    assert study.name == name
    if study.missing(inputs):
        pytest.skip(f"needs {study.needs}")
    result = study.run(inputs)
    records = json.loads(json.dumps(result.records(), allow_nan=False))
    assert records
    assert {tuple(record) for record in records} == {tuple(records[0])}, "every record has the same fields"
    assert all(isinstance(value, str | int | float | None) for record in records for value in record.values())
    assert all(sentence.endswith(".") for sentence in (*result.sentences, result.table.caption, study.explained()))
    assert result.table.rows
