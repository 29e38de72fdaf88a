"""The published artefact layout of the method: one JSON object per example with a ``cp_vbc`` part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unprior.errors import UnpriorError
from unprior.prompts import is_cut_off, parse_answer

_SIDES = {"counterfactual": "cf", "commonsense": "cs"}


def is_published(record: dict[str, Any]) -> bool:
    """Tell this layout from the ordinary one.

    >>> is_published({"status": "ok", "cp_vbc": {}}), is_published({"pair_id": 1})
    (True, False)
    """
    return "cp_vbc" in record or ("status" in record and "image_scores" not in record)


def row_from_published(record: dict[str, Any]) -> dict[str, Any]:
    """Translate one object; keys are compared without regard to case.

    >>> row = row_from_published({
    ...     "status": "ok", "task": "qa", "side": "counterfactual", "pair_id": 7, "gt": "No",
    ...     "category": "Counting", "subcategory": "Body Parts",
    ...     "cp_vbc": {"baseline_key": "YES", "baseline_pred": "yes", "candidates": [
    ...         {"key": "yes", "logp_image": -0.2, "logp_prior": -0.1},
    ...         {"key": "no", "logp_image": -1.7, "logp_prior": -2.4}]}})
    >>> row["side"], row["original"], row["answer"], row["image_scores"]
    ('cf', 'yes', 'no', [-0.2, -1.7])
    """
    status = record.get("status")
    if status != "ok":
        raise UnpriorError(f"status is {status!r}, only rows with status 'ok' hold scores")
    scored = record.get("cp_vbc")
    entries = scored.get("candidates") if isinstance(scored, dict) else None
    if not isinstance(scored, dict) or not isinstance(entries, list):
        raise UnpriorError("cp_vbc.candidates is missing or not a list")
    if not all(isinstance(entry, dict) and isinstance(entry.get("key"), str) for entry in entries):
        raise UnpriorError("cp_vbc.candidates has an entry without a key")
    for entry in entries:
        for name in ("logp_image", "logp_prior"):
            if name not in entry:
                raise UnpriorError(f"candidate {entry['key']!r} has no {name}")
    keys = [entry["key"] for entry in entries]
    names = {key.strip().casefold(): key for key in keys}
    if len(names) < len(keys):
        raise UnpriorError(f"a candidate appears twice in {keys} (upper and lower case are the same here)")
    task, answer = record.get("task"), record.get("gt")
    key, text = scored.get("baseline_key"), scored.get("baseline_pred")
    return {
        "model": record.get("model"),
        "benchmark": record.get("benchmark"),
        "pair_id": record.get("pair_id"),
        "side": _SIDES.get(str(record.get("side")).casefold(), str(record.get("side"))),
        "task": task.casefold() if isinstance(task, str) else task,
        "category": record.get("category"),
        "subcategory": record.get("subcategory"),
        "split": record.get("split"),
        "candidates": keys,
        "image_scores": [entry["logp_image"] for entry in entries],
        "prior_scores": [entry["logp_prior"] for entry in entries],
        "original": _original(key, text, keys, names),
        # An unknown label is kept as it is, so that validation can name it.
        "answer": _candidate(answer, names) or (None if answer is None else str(answer)),
        "original_text": text if isinstance(text, str) else None,
    }


def published_from_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same the other way round; fields that the layout does not have are lost.

    >>> record = published_from_row({
    ...     "pair_id": 7, "side": "cf", "task": "qa", "candidates": ["yes", "no"], "original": "yes", "answer": "no",
    ...     "image_scores": [-0.2, -1.7], "prior_scores": [-0.1, -2.4]})
    >>> record["side"], record["cp_vbc"]["candidates"][1]
    ('counterfactual', {'key': 'no', 'logp_image': -1.7, 'logp_prior': -2.4})
    """
    scores = zip(row["candidates"], row["image_scores"], row["prior_scores"], strict=True)
    about = ("model", "benchmark", "split", "task", "pair_id", "category", "subcategory")
    return {
        "status": "ok",
        **{name: row[name] for name in about if row.get(name) is not None},
        "side": {short: long for long, short in _SIDES.items()}[row["side"]],
        "gt": row["answer"],
        "cp_vbc": {
            "baseline_key": row["original"],
            "baseline_pred": row.get("original_text"),
            "candidates": [{"key": key, "logp_image": image, "logp_prior": prior} for key, image, prior in scores],
        },
    }


def _original(key: Any, text: Any, keys: list[str], names: dict[str, str]) -> str | None:
    """The answer as the file has it, or else as it is read here; a key that names no candidate is no answer."""
    if isinstance(text, str) and is_cut_off(text):
        return None
    if key:
        return _candidate(key, names)
    return parse_answer(text, keys) if isinstance(text, str) else None


def _candidate(key: Any, names: dict[str, str]) -> str | None:
    return names.get(key.strip().casefold()) if isinstance(key, str) else None
