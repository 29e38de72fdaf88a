"""Run by the Python that has vLLM: answers the queries of a file with the in-process engine, writes what it says.

Usage: in_process_vllm.py MODEL… FOLDER. The folder holds the images and, for the model of each name, NAME.json with
queries; NAME.results.json is written beside it. Several models take turns in one process, which starts once.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from unprior.engines.doctor import examine
from unprior.engines.protocol import Proposed, Query, QueryFailure
from unprior.engines.vllm import VllmEngine

OPTIONS = {"enforce_eager": True, "max_model_len": 512, "block_size": 32, "mm_processor_kwargs": {"use_fast": False}}
NEW_TOKENS = {True: 8, False: 64}
"""Several models are random ones, which write on and on; a few tokens show as much as many."""


COUNT = 4
"""Answers to search for."""


def _proposals(engine: VllmEngine, queries: list[Query]) -> list[Proposed | QueryFailure]:
    """To every query, all with an image together, then all without."""
    parts = [[query for query in queries if (query.image is None) is bare] for bare in (False, True)]
    return [result for part in parts for result in engine.propose_batch(part, COUNT)]


def _told(result: Proposed | QueryFailure) -> dict[str, Any]:
    if isinstance(result, QueryFailure):
        return {"failure": result.reason}
    scored = result.scored
    return {
        "text": result.text,
        "candidates": result.candidates,
        "scores": scored.scores,
        "counts": scored.token_counts,
    }


def main(model: Path, folder: Path) -> None:
    engine = VllmEngine(model, name=model.name, options=OPTIONS, max_new_tokens=NEW_TOKENS[len(sys.argv) > 3])
    queries = [
        Query(entry["image"] and Image.open(folder / entry["image"]), entry["text"], tuple(entry["candidates"]))
        for entry in json.loads((folder / f"{model.name}.json").read_text(encoding="utf-8"))
    ]
    told = []
    for result in engine.answer_batch(queries):
        if isinstance(result, QueryFailure):
            told.append({"failure": result.reason})
        else:
            told.append({"text": result.text, "scores": result.scored.scores, "counts": result.scored.token_counts})
    content = {
        "results": told,
        "alone": [engine.score_candidates(one.image, one.text, one.candidates).scores for one in queries[:3]],
        "answer": engine.original_answer(queries[0].image, queries[0].text),
        "identity": engine.identity,
        "model_type": engine.model_type,
        "proposed": [_told(result) for result in _proposals(engine, queries)],
        "statuses": {finding.name: finding.status for finding in examine(engine).findings},
    }
    (folder / f"{model.name}.results.json").write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":  # vLLM starts processes that import this file again
    for name in sys.argv[1:-1]:
        main(Path(name), Path(sys.argv[-1]))
        gc.collect()
        if len(sys.argv) > 3:
            from vllm.distributed import cleanup_dist_env_and_memory

            cleanup_dist_env_and_memory()  # of the model before
