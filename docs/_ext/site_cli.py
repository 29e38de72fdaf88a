"""Every command and option in Markdown, as the program itself describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

import typer

from unprior.cli.app import Commands, app

_LIMITS = re.compile(r"(?:; )?((?:-?[\d.]+<=?)?x(?:[<>]=?-?[\d.]+)?)$")
_OPTION = re.compile(r"(?<![\w`-])(--[a-z][a-z-]*[a-z])(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)")
_MARKED = re.compile(r"(`[^`]*`)")
_TO_ESCAPE = re.compile(r"([\\*_<>\[\]{}#|])")


def commands() -> Iterator[tuple[str, Any, Any]]:
    """Heading, command and context of every command, those of groups such as `data` one by one."""
    root = typer.main.get_command(app)
    top = root.make_context("unprior", [], resilient_parsing=True)
    for heading, listed in Commands.listed.items():
        for entry in listed:
            command: Any = root.get_command(top, entry.name)  # type: ignore[attr-defined]
            context = type(top)(command, info_name=entry.name, parent=top)
            yield heading, command, context
            for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
                part = command.get_command(context, name)
                yield heading, part, type(top)(part, info_name=name, parent=context)


@cache
def names() -> dict[str, set[str]]:
    """The options of every command by its whole name, such as `data get`."""
    found = {}
    for _, command, context in commands():
        written = context.command_path.removeprefix("unprior ")
        params = command.get_params(context)
        found[written] = {option for each in params for option in (*each.opts, *each.secondary_opts)}
    return found


@cache
def required() -> dict[str, set[str]]:
    """The options that must be given, by command; those that `--config` may hold as well end their help with this."""
    found = {}
    for _, command, context in commands():
        params = [each for each in command.get_params(context) if each.param_type_name == "option"]
        needed = [each for each in params if each.required or (each.help or "").endswith(" Needed.")]
        found[context.command_path.removeprefix("unprior ")] = {each.opts[0] for each in needed}
    return found


def escape(text: str) -> str:
    """Text that Markdown shows as it is; options are code, and so is what stands in backticks."""
    pieces = _MARKED.split(_OPTION.sub(r"`\1`", text))
    return "".join(each if place % 2 else _TO_ESCAPE.sub(r"\\\1", each) for place, each in enumerate(pieces))


def code(text: str) -> str:
    """Text as code, whatever signs are in it."""
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if "`" in text or text != text.strip() else f"{fence}{text}{fence}"


def _describe(record: tuple[str, str]) -> str:
    """An option and what it does, as an entry of a definition list."""
    written, told = record
    told, _, extra = re.sub(r"\\\[", "[", told).partition("  [")
    extra = extra.removesuffix("]")
    if not extra and (found := re.search(r" \[(default: [^]]*)\]$", told)):
        told, extra = told[: found.start()], found[1]
    limits = _LIMITS.search(extra)
    values = [limits[1].replace("<=x<=", " to ").replace("x>=", "at least ")] if limits else []
    default = (extra[: limits.start()] if limits else extra).removeprefix("default: ")
    if default and default != "required":
        values.insert(0, f"default {code(default)}")
    elif default:
        values.insert(0, default)
    return f"{code(written)}\n: {escape(told)}" + (f" *({'; '.join(values)})*" if values else "")


def _command(command: Any, context: Any) -> Iterator[str]:
    yield f"### {context.command_path}"
    yield escape(command.help or "")
    if hasattr(command, "list_commands"):
        return
    params = command.get_params(context)
    arguments = [each for each in params if each.param_type_name == "argument"]
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    examples = re.findall(r"\[cyan\](.*?)\[/cyan\]", command.epilog or "")
    yield "```text\n" + usage + "\n```"
    if examples:
        yield "```console\n" + "\n".join(f"$ {line}" for line in examples) + "\n```"
    if arguments:
        yield "**Arguments**"
        yield from (_describe(each.get_help_record(context)) for each in arguments if each.get_help_record(context))
    options = [each for each in params if each.param_type_name != "argument" and each.name != "help"]
    for panel, group in groupby(options, key=lambda each: each.rich_help_panel or "Options"):
        yield f"**{panel}**"
        yield from (_describe(record) for each in group if (record := each.get_help_record(context)))


def markdown() -> str:
    """All commands, by the headings of `unprior --help`."""
    blocks = []
    for heading, group in groupby(commands(), key=lambda each: each[0]):
        blocks.append(f"## {heading}")
        for _, command, context in group:
            blocks += _command(command, context)
    return "\n\n".join(blocks)
