"""The benchmark of docs/how-to/extend.md is complete: it runs, and all commands know it after one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extend_page import module_with
from unprior.benchmarks import registry
from unprior.benchmarks.check import check_folder
from unprior.benchmarks.entry import Entry


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    entry: Entry = module_with("ENTRY = Entry(", tmp_path).ENTRY
    return entry


def test_the_example_works(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "odd-clocks"
    (folder / "images").mkdir(parents=True)
    rows = [
        {"number": n, "question": "What time is it?", "options": ["1", "2", "3", "13"],
         "cf": {"image": f"{n}-cf.png", "letter": "D"}, "cs": {"image": f"{n}-cs.png", "letter": "A"}}
        for n in range(40)
    ]  # fmt: skip
    (folder / "clocks.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.setitem(registry.BENCHMARKS, "odd-clocks", entry)
    benchmark = registry.load_benchmark("odd-clocks", tmp_path, data_dir=tmp_path)
    assert benchmark.counts() == dict(entry.card.counts)
    moved = registry.load_benchmark("odd-clocks", tmp_path, data_dir=tmp_path, variant="order-3210")
    assert [example.answer for example in moved][:2] == ["A", "D"]
    result = check_folder(entry, folder)
    assert len(result.missing) == 80
    differing = {count.name: count.found for count in result.counts if count.published != count.found}
    assert differing == {"images": 0}
