"""A group of commands that are listed without being imported, so that help and every single command start fast."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

Function = TypeVar("Function", bound=Callable[..., None])
_GROUPS = (
    *(
        "",
        "Input",
        "Columns",
        "Model",
        "Engine",
        "Prompt",
        "Benchmark",
        "Method",
        "Statistics",
        "Preparing",
        "Cluster",
        "Server",
    ),
    "Output",
)
_VALUES = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "path": "PATH"}


class GroupedCommand(TyperCommand):
    """A command whose help has the groups of options in one order, and says what to write instead of Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All arguments and options, in the order of their groups."""
        params = super().get_params(ctx)
        for each in params:
            if isinstance(each, TyperArgument):  # its name says what it is
                each.__dict__["display_type_rich"] = lambda ctx: None
            elif each.metavar is None and hasattr(each, "display_type"):  # older versions of typer show no Python types
                shown = each.display_type(ctx).lower()
                each.metavar = next((word for kind, word in _VALUES.items() if kind in shown), "")
        return sorted(params, key=lambda each: _GROUPS.index(getattr(each, "rich_help_panel", None) or ""))


def application(**options: Any) -> typer.Typer:
    """An application in the way of all commands."""
    return typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, **options)


@dataclass(frozen=True, slots=True)
class Command:
    """Where a command is, and what the list of commands says about it."""

    name: str
    place: str
    """Module of ``unprior.cli`` and name of a function, or of an application with commands of its own."""
    summary: str
    cls: str | None = None
    """Module and name of its class, if it parses its arguments in a way of its own."""

    def load(self) -> Any:
        """Import the command."""
        found = _find(self.place)
        if isinstance(found, typer.Typer):
            made = typer.main.get_command(found)
        else:
            alone = application()
            cls: type[TyperCommand] = GroupedCommand if self.cls is None else _find(self.cls)
            alone.command(self.name, cls=cls, help=help_text(found), epilog=epilog(found))(found)
            made = typer.main.get_command(alone)
        made.name = self.name
        return made


def examples(*lines: str) -> Callable[[Function], Function]:
    """Show these calls below the options of a command.

    >>> @examples("unprior synth --out scores.jsonl", "unprior synth --out scores.jsonl --seed 7")
    ... def synth() -> None: ...
    >>> epilog(synth).splitlines()[-1]
    '[dim]$[/dim] [cyan]unprior synth --out scores.jsonl --seed 7[/cyan]'
    """

    def add(function: Function) -> Function:
        function.__dict__["examples"] = lines
        return function

    return add


def epilog(function: Callable[..., Any]) -> str | None:
    """The examples of a command, as they stand below its options."""
    lines: Sequence[str] = getattr(function, "examples", ())
    shown = [f"[dim]$[/dim] [cyan]{line}[/cyan]" for line in lines]
    return "\n".join(["[bold]Examples[/bold]", *shown]) if lines else None


def help_text(function: Callable[..., Any]) -> str:
    """The description of a command; its lines end where the terminal does, not where the source does."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(" ".join(each.split()) for each in paragraphs)


class LazyGroup(TyperGroup):
    """Lists commands by heading; imports the one that is called."""

    listed: ClassVar[Mapping[str, Sequence[Command]]] = {}
    """Commands by the heading that they stand under."""

    def __init__(self, **options: Any) -> None:
        """Know the names of all commands."""
        super().__init__(**options)
        self._known = {command.name: command for commands in self.listed.values() for command in commands}
        self.commands = dict.fromkeys(self._known)  # type: ignore[assignment]  # for suggestions after a slip

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        return self._known[cmd_name].load() if cmd_name in self._known else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print what there is, as typer does, without importing the commands."""
        from rich.padding import Padding

        from unprior.cli.console import output

        output.print(Padding(self.get_usage(ctx), 1), style="bold")
        output.print(Padding(self.help or "", (0, 1, 1, 1)))
        width = max(map(len, self._known))
        records = [record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))]
        _print_panel("Options", records, width)
        for heading, commands in self.listed.items():
            _print_panel(heading, [(command.name, command.summary) for command in commands], width)
        output.print(" `unprior COMMAND --help` shows the options of a command, with examples.\n", style="dim")


def _print_panel(title: str, rows: Sequence[tuple[str, str]], width: int) -> None:
    from rich.panel import Panel
    from rich.table import Table

    from unprior.cli.console import output

    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="bold cyan", width=width)
    table.add_column(ratio=1)
    for row in rows:
        table.add_row(*row)
    output.print(Panel(table, title=title, title_align="left", border_style="dim"))


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"unprior.cli.{module}"), name)
