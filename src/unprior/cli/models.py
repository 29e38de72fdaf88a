"""The command that lists which architectures are known to work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from unprior.cli.console import AsJson, output, print_json, print_tables
from unprior.cli.lazy import examples
from unprior.errors import UnpriorError, did_you_mean

_WIDE = 150


@examples("unprior models", "unprior models qwen3_vl --json")
def models(
    name: Annotated[
        str | None, typer.Argument(metavar="ARCHITECTURE", help="Show this one alone, with every reason.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the architectures that were tried: exact or refused, what is shared, which methods run, and on vLLM."""
    from unprior.engines.support import known_architectures, support_table

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
        if output.width >= _WIDE:
            print_tables(support_table())
        else:
            print_tables(support_table(short=True))
            output.print("`unprior models ARCHITECTURE` shows window, thinking, each method and an example.")
    else:
        for field, value in asdict(chosen[0]).items():
            output.print(f"{field}: {value if value not in ('', None, ()) else '–'}", soft_wrap=True)
