"""JSON schemas of the files that the program reads and writes, from its own models, and their fields in Markdown."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter
from site_cli import code, escape

import unprior
from unprior.benchmarks.user_file import UserQuestion
from unprior.calibration.decisions import Decision
from unprior.calibration.gate import CONDITIONS, REASONS
from unprior.calibration.storage import CalibratorFile
from unprior.runs.config import OPTIONS, RunConfig
from unprior.scores.provenance import Provenance
from unprior.scores.schema import ScoreRow

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = {"type": ["number", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_OPTIONAL_TEXT = {"type": ["string", "null"]}


def _plain(text: str) -> str:
    """A docstring in the words of Markdown."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`"))
    return " ".join(text.split())


@cache
def field_texts(model: type) -> dict[str, str]:
    """What the source says below each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0].body  # type: ignore[attr-defined]
    pairs = pairwise(body)
    return {
        field.target.id: _plain(text.value.value)
        for field, text in pairs
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }  # fmt: skip


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _described(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """A schema of pydantic with what the source says about each field, and without titles that repeat names."""
    known = {model.__name__: model for model in _models(BaseModel) if model.__module__.startswith("unprior.")}
    for title, part in ((name, schema), *schema.get("$defs", {}).items()):
        own = reversed(known[title].__mro__) if title in known else ()
        classes = [each for each in own if issubclass(each, BaseModel) and each is not BaseModel]
        texts = {field: text for each in classes for field, text in field_texts(each).items()}
        part.pop("title", None)
        if "description" in part:
            part["description"] = _plain(part["description"].partition("\n\n>>>")[0])
        for field, content in part.get("properties", {}).items():
            content.pop("title", None)
            if field in texts:
                content["description"] = texts[field]
    return schema


def _arrow_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    if pa.types.is_floating(kind):
        return dict(_NUMBER)
    return {"type": ["integer", "string"]} if pa.types.is_integer(kind) else dict(_OPTIONAL_TEXT)


def _provenance_list() -> dict[str, Any]:
    return {
        "type": "array",
        "items": {"$ref": "#/$defs/Provenance"},
        "description": "How the scores were made; see provenance.json.",
    }


def score_row() -> dict[str, Any]:
    """One row of a score table; the first may have the note on how scores were made."""
    schema = _described(ScoreRow.model_json_schema(), "ScoreRow")
    schema["properties"]["provenance"] = _provenance_list() | {
        "description": "In the first line only: how scores were made. Parquet files keep it in the schema's metadata."
    }
    schema["$defs"] = {"Provenance": provenance()}
    return schema


def question() -> dict[str, Any]:
    """One line of a file of questions."""
    return _described(UserQuestion.model_json_schema(), "UserQuestion")


def provenance() -> dict[str, Any]:
    """How scores were made."""
    return _described(Provenance.model_json_schema(), "Provenance")


def calibrator() -> dict[str, Any]:
    """A calibrator file with its checksum."""
    schema = _described(CalibratorFile.model_json_schema(), "CalibratorFile")
    schema["description"] = "A fitted calibrator. Readers refuse a file whose checksum does not match."
    schema["properties"]["checksum"] = {"type": "string", "description": "SHA-256 of the rest of the content."}
    schema["required"] = [*schema["required"], "checksum"]
    return schema


@cache
def _decided() -> pa.Schema:
    """The columns of decisions of every version of the method."""
    table = unprior.synthesize(seed=0)
    made = [{}, {"uncertainty": True}, {"retention": "certified"}]
    decided = [unprior.SelectivePriorCalibrator(**options).fit(table).predict(table) for options in made]  # type: ignore[arg-type]
    return pa.unify_schemas([each.to_arrow(explanations=True).schema for each in decided])


def decision() -> dict[str, Any]:
    """One line of a file of decisions."""
    texts = field_texts(ScoreRow) | field_texts(Decision)
    texts |= {"explanation": "One sentence that explains the decision; with `--explain`."}
    names = ["model", "benchmark", "example_id", "pair_id", "side", "task", "split"]
    rows = {name: {"description": texts[name], **({"type": ["string", "integer", "null"]})} for name in names}
    for field in _decided():
        if field.name not in rows:
            rows[field.name] = _arrow_type(field.type) | {"description": texts.get(field.name, "")}
    rows["reason"] = {"enum": [str(each) for each in REASONS], "description": texts["reason"]}
    rows["condition"] = {"enum": [*map(str, CONDITIONS), None], "description": texts["condition"]}
    rows["provenance"] = {
        "type": "object",
        "description": "In the first line only: how the scores were made (`scores`), and the calibrator.",
        "properties": {"scores": _provenance_list(), "calibrator": {"type": "object"}},
        "required": ["scores", "calibrator"],
    }
    always = ("original", "final", "proposal", "strength", "margin", "revised", "condition", "reason")
    return {
        "description": "The decision about one row of a score table, in the order of its rows.",
        "type": "object",
        "properties": rows,
        "required": [*always, "range_low", "range_high"],
        "additionalProperties": False,
        "$defs": {"Provenance": provenance()},
    }


def log_line() -> dict[str, Any]:
    """One line of a server's log: how scores were made, or a decision."""
    scores = _described(ScoreRow.model_json_schema(), "ScoreRow")["properties"]
    kept = ("example_id", "model", "task", "candidates", "image_scores", "prior_scores", "original", "original_text")
    own = {
        "made": {**_TEXT, "description": "Digest of the line above that says how the scores were made."},
        "time": {**_TEXT, "description": "When it was decided, in UTC."},
        **{name: scores[name] for name in kept},
        "name": {**_OPTIONAL_TEXT, "description": "The name that the request gave to the question."},
        "question": {**_TEXT, "description": "The question."},
        "image_digest": {**_TEXT, "description": "SHA-256 of the image; the image itself is not logged."},
        "decided": {**_OPTIONAL_TEXT, "description": "What the calibrator decided; in observe mode it did not go out."},
        "decision": {**_TEXT, "description": "What became of the original answer."},
        "reason": {**_TEXT, "description": "Why it was revised or kept."},
        "calibrator": {**_OPTIONAL_TEXT, "description": "Digest of the calibrator that decided."},
        "answer": {**_OPTIONAL_TEXT, "description": "The right answer: null until somebody labels the line."},
    }
    labels = {name: scores[name] for name in ("censored", "side", "split", "aliases")}
    header = {
        "unprior_log": {"const": 1, "description": "Version of the layout."},
        "made": {**_TEXT, "description": "Digest that decisions name this line by."},
        "provenance": _provenance_list(),
    }
    closed = {"type": "object", "additionalProperties": False}
    return {
        "description": "A line of the decision log: a header that says how scores were made, or a decision.",
        "oneOf": [
            {"title": "Decision", **closed, "properties": own | labels, "required": list(own)},
            {"title": "Header", **closed, "properties": header, "required": list(header)},
        ],
        "$defs": {"Provenance": provenance()},
    }


def run_config() -> dict[str, Any]:
    """The configuration of a run, `run.toml`."""
    schema = TypeAdapter(RunConfig).json_schema()
    for part in schema["$defs"].values():
        part.pop("title", None)
    schema.pop("title", None)
    schema["description"] = "Everything that determines a run. What a file does not say is as by default."
    for group, content in schema["properties"].items():
        fields = schema["$defs"][content.get("$ref", "").rpartition("/")[2]]["properties"]
        for option in OPTIONS.values():
            if option.group == group:
                fields[option.field].pop("title", None)
                fields[option.field]["description"] = option.flag.help
    return schema


def report() -> dict[str, Any]:
    """`report.json`, the numbers of a run's report."""
    share = {
        "type": "object",
        "properties": {"count": _COUNT, "total": _COUNT, "value": _NUMBER},
        "required": ["count", "total", "value"],
        "additionalProperties": False,
    }
    metrics = {name: {"$ref": "#/$defs/Share"} for name in ("cf", "cs", "ccr", "attraction")}
    metrics |= {"cfad": _NUMBER, "rpd": _NUMBER}
    side = {
        **dict.fromkeys(("delta", "low", "high"), _NUMBER),
        **dict.fromkeys(("repairs", "harms", "changed", "total"), _COUNT),
        **{name: {"type": "number", "minimum": 0, "maximum": 1} for name in ("p", "holm_p")},
    }
    task = {
        "model": _OPTIONAL_TEXT,
        "benchmark": _OPTIONAL_TEXT,
        "task": _TEXT,
        **{name: {"$ref": "#/$defs/Metrics"} for name in ("original", "method")},
        **{name: {"$ref": "#/$defs/Side"} for name in ("cf", "cs")},
        "utility": {**_NUMBER, "description": "U = ΔCF + 0.5 ΔCS."},
    }

    def closed(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        made = {"type": "object", "properties": dict(properties), "required": list(properties)}
        return {**made, "additionalProperties": False, **more}

    evaluation = {"level": {"type": "number"}, "resamples": _COUNT, "seed": {"type": "integer"}, "holm_family": _COUNT}
    evaluation["tasks"] = {"type": "array", "items": {"$ref": "#/$defs/Task"}}
    fitted = {
        "epsilon_cs": {"type": "number"},
        "uncertainty": {"type": "boolean"},
        "development_rows": _COUNT,
        "abstains": {"type": "boolean"},
        "settings": {"type": ["object", "null"]},
        "retention": _TEXT,
        "certificate": {"type": ["object", "null"]},
    }
    calibrated = closed(fitted, description="What was fitted, and what was promised about new pairs.")
    calibrated["properties"]["open"] = {"type": "object"}
    counts = {"type": "array", "items": _COUNT}
    record = {
        "unprior": {**_TEXT, "description": "Version of the package that wrote the report."},
        "date": {**_OPTIONAL_TEXT, "description": "When the scores were written, in UTC."},
        "provenance": _provenance_list(),
        "title": {**_TEXT, "description": "Model and benchmark."},
        "headline": {**_TEXT, "description": "The main result in one sentence."},
        "notes": {"type": "array", "items": _TEXT, "description": "What to know before relying on the numbers."},
        "test_rows": {**_COUNT, "description": "Rows that were judged."},
        "calibrator": calibrated,
        "reasons": {"type": "object", "additionalProperties": _COUNT, "description": "How often each reason occurs."},
        "evaluation": closed(evaluation, description="Both sides of every task, see the page on metrics."),
        "studies": {"type": "object", "description": "Flat records of every study by name; null for one left out."},
    }
    made = closed(record, description="All numbers of report.html as plain values.")
    made["properties"]["coverage"] = {
        "type": "object",
        "additionalProperties": counts,
        "description": "Open questions whose candidates hold a right answer: count and total, by side.",
    }
    made["$defs"] = {"Share": share, "Metrics": closed(metrics), "Side": closed(side), "Task": closed(task)}
    made["$defs"]["Provenance"] = provenance()
    return made


SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "score-row": score_row,
    "question": question,
    "calibrator": calibrator,
    "decision": decision,
    "run-config": run_config,
    "decision-log-line": log_line,
    "report": report,
    "provenance": provenance,
}
"""Every published schema by the name of its file."""


def schema_text(name: str) -> str:
    """A published schema, as its file holds it."""
    return json.dumps({"$schema": _DRAFT, **SCHEMAS[name]()}, indent=2, ensure_ascii=False) + "\n"


def _kind(content: Mapping[str, Any]) -> str:
    """What a field takes, in few words."""
    if "enum" in content:
        return " or ".join("null" if each is None else f'"{each}"' for each in content["enum"])
    if "const" in content:
        return json.dumps(content["const"])
    if "$ref" in content:
        return str(content["$ref"]).rpartition("/")[2].lstrip("_")
    for choice in ("anyOf", "oneOf"):
        if choice in content:
            return " or ".join(dict.fromkeys(_kind(each) for each in content[choice]))
    kinds = content.get("type", "anything")
    if kinds == "array" and "items" in content:
        return f"list of {_kind(content['items'])}"
    return " or ".join(kinds) if isinstance(kinds, list) else str(kinds)


def _fields(part: Mapping[str, Any]) -> Iterator[str]:
    required = part.get("required", ())
    for name, content in part["properties"].items():
        kind = _kind(content)
        if len(kind) > 90:
            kind = "one of the values in the schema"
        told = escape(content.get("description", ""))
        yield f"{code(name)} · {escape(kind)}{' · **required**' if name in required else ''}\n: {told or '—'}"


def markdown(name: str) -> str:
    """The fields of a file, and its schema."""
    schema = SCHEMAS[name]()
    parts = schema.get("oneOf", [schema])
    blocks = []
    for part in parts:
        if len(parts) > 1:
            blocks.append(f"**{part['title']}**")
        blocks += _fields(part)
    link = f'<a href="schemas/{name}.json">schemas/{name}.json</a>'
    blocks += ["<details><summary>JSON schema</summary>", f"```json\n{schema_text(name)}```", "</details>"]
    return "\n\n".join([f"Schema: {link}", *blocks])


def settings() -> str:
    """All settings of `run.toml`, by group."""
    blocks, group = [], ""
    for option in OPTIONS.values():
        if option.group != group:
            group = option.group
            blocks.append(f"**[{group}]**".replace("[", "\\[").replace("]", "\\]"))
        default = json.dumps(option.default, ensure_ascii=False, default=str)
        shown = "" if option.default in (None, "", ()) else f" *(default {code(default)})*"
        blocks.append(f"{code(option.field)} · {code(option.written)}\n: {escape(option.flag.help)}{shown}")
    return "\n\n".join(blocks)
