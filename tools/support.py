"""Writes the support matrix: into the package, and into the docs. `make support` runs it; it takes some minutes."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import tiny_models
from support_matrix import describe
from unprior.engines import support
from unprior.tables.model import Table

_ROOT = Path(__file__).resolve().parent.parent
DATA = _ROOT / "src" / "unprior" / "engines" / support.FILE
PAGE = _ROOT / "docs" / "reference" / "models.md"
LEFT_OUT = ("mistral3_without_torchvision",)
"""A stand-in of the tests, which nobody publishes."""


def markdown_table(table: Table) -> str:
    """The matrix for the docs."""
    rows = [row.cells for section in table.sections for row in section.rows]
    lines = [table.columns, ["---"] * len(table.columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> None:
    """Try every architecture, or take what is stored, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page-only", action="store_true", help="write the docs from what is stored")
    options = parser.parse_args()
    if not options.page_only:
        rows = []
        for name in sorted(set(tiny_models.REGISTRY) - set(LEFT_OUT)):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(describe(name, tiny_models.build(name, Path(folder), size="deep")))
            print(name, rows[-1].get("level") or rows[-1]["refused"], flush=True)
        DATA.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        support.known_architectures.cache_clear()
    table = support.support_table()
    before, mark, rest = PAGE.read_text(encoding="utf-8").partition("<!-- support -->\n")
    _, end, after = rest.partition("<!-- /support -->")
    made = f"{markdown_table(table)}\n\n{table.caption}\n"
    PAGE.write_text(f"{before}{mark}{made}{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
