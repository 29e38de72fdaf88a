"""The published schemas accept what the program writes, and nothing in it is unknown to them."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

import unprior
from doc_pages import DOCS, blocks
from unprior import RunConfig, ScoreTable, SelectivePriorCalibrator, evaluate, synthesize
from unprior.report import report_record
from unprior.scores.provenance import Provenance

VARIANTS: list[dict[str, Any]] = [{}, {"uncertainty": True}, {"retention": "certified", "epsilon_cs": 0.1}]


@cache
def validator(name: str) -> Draft202012Validator:
    from site_formats import schema_text

    schema = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture(params=[False, True], ids=["closed", "open"])
def scored(request: pytest.FixtureRequest) -> ScoreTable:
    """Scores that say how they were made."""
    return synthesize(seed=3, open_questions=request.param)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_schema_is_on_the_page() -> None:
    from site_formats import SCHEMAS

    text = (DOCS / "reference" / "files.md").read_text("utf-8")
    assert set(re.findall(r"<!-- generate: schema (\S+) -->", text)) == set(SCHEMAS)


def test_score_rows(scored: ScoreTable, tmp_path: Path) -> None:
    scored.write(tmp_path / "scores.jsonl")
    check = validator("score-row")
    rows = lines(tmp_path / "scores.jsonl")
    assert set(rows[0]) <= set(check.schema["properties"])
    for row in rows:
        check.validate(row)
    with pytest.raises(ValidationError):
        check.validate(rows[0] | {"side": "left"})


def test_the_examples_of_the_page() -> None:
    rows, questions = [json.loads(block.text) for block in blocks(DOCS / "reference" / "files.md", "json")]
    validator("score-row").validate(rows)
    validator("question").validate(questions)
    with pytest.raises(ValidationError):
        validator("question").validate(questions | {"colour": "red"})


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_calibrators_decisions_and_reports(scored: ScoreTable, options: dict[str, Any], tmp_path: Path) -> None:
    calibrator = SelectivePriorCalibrator(**options).fit(scored)
    decisions = calibrator.predict(scored.where(split="test"))
    calibrator.save(tmp_path / "calibrator.json")
    validator("calibrator").validate(json.loads((tmp_path / "calibrator.json").read_text("utf-8")))
    decisions.write(tmp_path / "decisions.jsonl", explanations=True)
    for row in lines(tmp_path / "decisions.jsonl"):
        validator("decision").validate(row)
    evaluation = evaluate(decisions.table, decisions, resamples=100)
    record = report_record(
        table=scored, calibrator=calibrator, decisions=decisions, evaluation=evaluation, studies=[], notes=["One."]
    )
    validator("report").validate(json.loads(json.dumps(record)))


def test_configurations(tmp_path: Path) -> None:
    config = RunConfig.from_options(model="embedded", epsilon_cs=0.06, out=tmp_path)
    config.write()
    content = tomllib.loads((tmp_path / "run.toml").read_text("utf-8"))
    check = validator("run-config")
    check.validate(content)
    for group, values in content.items():
        part = check.schema["$defs"][check.schema["properties"][group]["$ref"].rpartition("/")[2]]
        assert set(values) <= set(part["properties"])


def test_fields_say_what_the_source_says() -> None:
    from site_formats import field_texts, markdown

    assert field_texts(Provenance)["precision"] == "Number format of the model's weights, e.g. `bfloat16`."
    assert "`prior_scores` · list of number · **required**\n: The same without the image." in markdown("score-row")
    assert unprior.ScoreRow.__doc__
