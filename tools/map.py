"""Writes the map of the package into CONTRIBUTING.md: every module with the first line of its docstring.

``python tools/map.py`` prints it; ``python tools/map.py --update CONTRIBUTING.md`` writes it between the markers.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "unprior"
BEGIN, END = "<!-- map: made by `make map` -->\n", "<!-- end of the map -->"


def package_map(package: Path = PACKAGE) -> str:
    """The tree of a package as text, one line for each folder and file."""
    lines = [(f"src/{package.name}/", _first_line(package / "__init__.py")), *_tree(package, "  ")]
    width = max(len(name) for name, _ in lines) + 2
    return "".join(f"{name:<{width}}{text}".rstrip() + "\n" for name, text in lines)


def updated(page: str, package: Path = PACKAGE) -> str:
    """A page with the map between its markers.

    >>> print(updated(f"before\\n{BEGIN}an old map\\n{END}\\nafter").splitlines()[-2:])
    ['<!-- end of the map -->', 'after']
    """
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"the page has no place for the map; add the lines {BEGIN.strip()} and {END}")
    return f"{before}{BEGIN}```\n{package_map(package)}```\n{END}{after}"


def _tree(folder: Path, indent: str) -> Iterator[tuple[str, str]]:
    """Folders with what is in them, then files, each in alphabetical order."""
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_file(), path.name)):
        if (path / "__init__.py").exists():
            yield f"{indent}{path.name}/", _first_line(path / "__init__.py")
            yield from _tree(path, indent + "  ")
        elif path.suffix == ".py" and path.name != "__init__.py":
            yield f"{indent}{path.name}", _first_line(path)


def _first_line(path: Path) -> str:
    """First line of a module's docstring, without the full stop."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].removesuffix(".")


def main() -> None:
    """Print the map, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--update", type=Path, help="the page that holds the map")
    page: Path | None = parser.parse_args().update
    if page is None:
        print(package_map(), end="")
    else:
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
