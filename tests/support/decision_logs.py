"""Logs of a server, made by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unprior.scores.logged import log_header
from unprior.scores.provenance import Provenance

MADE = Provenance(model="tiny", precision="float32", image_size=0, prior="text")
HEADER = log_header(MADE)


def decision(name: str = "r/0", **changes: Any) -> dict[str, Any]:
    """A logged decision: five legs are seen, four are expected."""
    return {
        "made": HEADER["made"], "example_id": name, "model": "tiny", "task": "mc", "name": None,
        "question": "How many legs?", "image_digest": f"image {name}", "candidates": ["4", "5"],
        "image_scores": [-0.5, -1.0], "prior_scores": [-0.1, -3.0], "original": "4", "original_text": "A",
        "decided": "5", "decision": "would_revise", "reason": "absorption", "calibrator": "sha256:one", "answer": None,
    } | changes  # fmt: skip


def write_log(path: Path, *records: dict[str, Any] | str, header: bool = True) -> Path:
    """Lines as they are, or records."""
    lines: Iterable[dict[str, Any] | str] = [HEADER, *records] if header else records
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) + "\n" for line in lines]
    path.write_text("".join(texts), encoding="utf-8")
    return path
