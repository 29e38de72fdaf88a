"""Tables of the benchmarks, and where they go."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def markdown(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table: the first column on the left, numbers on the right."""
    rows = [header, ["---"] + ["---:"] * (len(header) - 1), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def replace_section(path: Path, name: str, text: str) -> None:
    """Put text between the marks of a section of a page."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = path.read_text(encoding="utf-8")
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path} has no section {start} … {end}")
    path.write_text(f"{before}{start}\n{text}\n{end}{after}", encoding="utf-8")


def publish(report: Callable[[], str], section: str, description: str | None) -> None:
    """The command of a benchmark: print its report, and put it into a page with ``--update``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--update", type=Path, help="file whose marked section receives the tables")
    arguments = parser.parse_args()
    text = report()
    print(text)
    if arguments.update:
        replace_section(arguments.update, section, text)
