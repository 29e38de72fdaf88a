from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from client import Load, ask, bare_loop, make_queries, record
from client_memory import score
from instant_server import MODEL, running_instant_server
from unprior.engines.openai.engine import HttpEngine


@pytest.mark.parametrize("clients", [1, 4])
def test_the_client_and_the_bare_loop_send_the_same(clients: int) -> None:
    queries = make_queries(Load(examples=6, side=16, rounds=1))
    with running_instant_server() as url:
        engine = HttpEngine(MODEL, [url], concurrency=4)
        ask(engine, queries, 4)
        before = engine.requests
        sent = record(engine, lambda: ask(engine, queries, 4))
        assert engine.requests - before == len(sent) == 3 * 6  # an answer, and scores with and without the picture
        with ThreadPoolExecutor(1) as thread:  # a browser test in this process may have left a running loop in ours
            assert thread.submit(lambda: asyncio.run(bare_loop(url, sent, 4, clients=clients))).result() > 0
        engine.close()
    pictures = [len(json.loads(body)["messages"][0]["content"]) == 2 for _, body in sent]
    assert sum(pictures) == 2 * 6


def test_memory_is_told_for_every_part_of_the_work() -> None:
    with running_instant_server() as url:
        used = score(url, 20)
    assert min(used.loaded, used.scoring, used.table) > 2**20
    assert used.scoring >= used.loaded
