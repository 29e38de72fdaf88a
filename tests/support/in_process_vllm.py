"""Run by the Python that has vLLM: answers the queries of a file with the in-process engine, writes what it says.

Usage: in_process_vllm.py MODEL QUERIES.json RESULTS.json; images stand beside the queries.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image

from unprior.engines.doctor import examine
from unprior.engines.protocol import Query, QueryFailure
from unprior.engines.vllm import VllmEngine


def main(model: str, asked: Path, results: Path) -> None:
    options = {"enforce_eager": True, "max_model_len": 512, "mm_processor_kwargs": {"backend": "pil"}}
    engine = VllmEngine(model, name="embedded", options=options)
    queries = [
        Query(entry["image"] and Image.open(asked.parent / entry["image"]), entry["text"], tuple(entry["candidates"]))
        for entry in json.loads(asked.read_text(encoding="utf-8"))
    ]
    told = []
    for result in engine.answer_batch(queries):
        if isinstance(result, QueryFailure):
            told.append({"failure": result.reason})
        else:
            told.append({"text": result.text, "scores": result.scored.scores, "counts": result.scored.token_counts})
    one = queries[0]
    alone = {
        "text": engine.original_answer(one.image, one.text),
        "scores": engine.score_candidates(one.image, one.text, one.candidates).scores,
    }
    content = {
        "results": told,
        "alone": alone,
        "identity": engine.identity,
        "model_type": engine.model_type,
        "statuses": {finding.name: finding.status for finding in examine(engine).findings},
    }
    results.write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":  # vLLM starts processes that import this file again
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
