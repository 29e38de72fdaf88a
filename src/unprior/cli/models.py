"""The command that lists which architectures are known to work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from unprior.cli.console import AsJson, output, print_json
from unprior.cli.lazy import examples
from unprior.errors import UnpriorError, did_you_mean

if TYPE_CHECKING:
    from unprior.engines.support import Support

_UNLIMITED = 1000  # columns


@examples("unprior models", "unprior models qwen3_vl --json")
def models(
    name: Annotated[
        str | None, typer.Argument(metavar="ARCHITECTURE", help="Show this one alone, with every reason.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the architectures that were tried: exact or refused, what is shared, which methods run, and on vLLM."""
    from unprior.engines.support import known_architectures

    known = {each.name: each for each in known_architectures()}
    if name is not None and name not in known:
        raise UnpriorError(
            f"{name}: this architecture was not tried{did_you_mean(name, known)}. That does not mean that it does not "
            f"work: `unprior doctor --model FOLDER` tries a model, and names what is wrong"
        )
    chosen = list(known.values()) if name is None else [known[name]]
    if as_json:
        print_json([asdict(each) for each in chosen])
    elif name is None:
        _print_all(chosen)
    else:
        _print_one(chosen[0])


def _print_all(chosen: Sequence[Support]) -> None:
    """A table if the terminal is wide enough for it; else the same as a list, where nothing is cut."""
    from rich.measure import Measurement
    from rich.padding import Padding
    from rich.text import Text

    from unprior.engines.support import CAPTION, describe_support, support_table
    from unprior.tables.terminal import as_rich

    table = as_rich(support_table())
    _, columns, *_ = table.renderables  # title and caption can be broken into lines
    if Measurement.get(output, output.options.update(width=_UNLIMITED), columns).maximum <= output.width:
        output.print(table)
        return
    for each in chosen:
        output.print(Text(each.name, "bold"))
        for line in _list_lines(describe_support(each)):
            output.print(Padding(Text(line), (0, 0, 0, 2), expand=False))
    output.print()
    output.print(Text(CAPTION, "table.caption"))


def _list_lines(cells: Mapping[str, str]) -> list[str]:
    """The cells of an architecture on few lines: what it can do, methods, what it needs, an example.

    >>> _list_lines({"Exact": "yes", "Images": "1", "vcd": "yes", "pai": "no", "vLLM": "exact", "Example": "a/b"})
    ['Exact: yes · Images: 1', 'vcd: yes · pai: no', 'vLLM: exact', 'Example: a/b']
    """
    measured, last = ("Exact", "Images", "Window", "bfloat16"), ("Thinking", "vLLM", "Needs")
    methods = [name for name in cells if name not in (*measured, *last, "Example")]
    groups = (measured, methods, last, ("Example",))
    lines = [" · ".join(f"{name}: {cells[name]}" for name in group if name in cells) for group in groups]
    return [line for line in lines if line]


def _print_one(support: Support) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    from unprior.engines.support import describe_support

    shown = RichTable.grid(padding=(0, 2))
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    shown.add_row(Text("Architecture"), Text(support.name, "bold"))
    for name, cell in describe_support(support, reasons=True).items():
        shown.add_row(Text(name), Text(cell))
    output.print(shown)
