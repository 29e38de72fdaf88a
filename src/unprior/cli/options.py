"""Options of the commands, made from the configuration of a run, so that each is described once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from unprior.cli.console import flag
from unprior.runs.config import OPTIONS, Option, RunConfig

CONFIG = "config_file"
_ConfigFile = Annotated[
    Path | None,
    flag(
        "Output",
        "Settings from a file, such as the run.toml of a run folder; options given here override it.",
        "--config",
        show_default=False,
    ),
]


def option(name: str, text: str | None = None) -> Any:
    """The option of a setting by its name, for a command that takes it alone."""
    setting = OPTIONS[name]
    ranged = setting.flag.min is not None and setting.kind is not float  # the configuration says what ε is
    limits = {"min": setting.flag.min, "max": setting.flag.max} if ranged else {}
    return flag(setting.group.capitalize(), text or setting.flag.help, setting.written, **limits)


def takes_config(
    *wanted: str,
    leave_out: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    needed: Collection[str] = (),
    texts: Mapping[str, str] | None = None,
    examples: Sequence[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a configuration, and the configuration that they make.

    Parameters
    ----------
    wanted
        Groups, such as ``model``, with all their options, or options of other groups by name.
    leave_out
        Options of these groups that the command has no use for.
    defaults, texts
        Where the command differs from the configuration.
    needed
        Options that must be given, here or in the file of ``--config``.
    examples
        Command lines for the help.
    """
    chosen = [each for each in OPTIONS.values() if {each.group, each.name} & set(wanted) and each.name not in leave_out]
    unlike, words = dict(defaults or {}), dict(texts or {})

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "config"]

        def called(ctx: typer.Context, **given: Any) -> None:
            values = {each.name: given.pop(each.name) for each in chosen}
            command(config=_effective(ctx, given.pop(CONFIG), chosen, values, needed), **given)

        made = [_parameter(each, unlike, words, each.name in needed) for each in chosen]
        arguments = [each for each in own if each.kind is not each.KEYWORD_ONLY]
        others = [each for each in own if each.kind is each.KEYWORD_ONLY]
        file = inspect.Parameter(CONFIG, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_ConfigFile)
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        parameters = [context, *arguments, *made, file, *others]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__name__, called.__module__ = command.__name__, command.__module__
        shown = ["[bold]Examples[/bold]", *(f"[cyan]{each}[/cyan]" for each in examples)] if examples else []
        called.__doc__ = "\n\n".join([inspect.getdoc(command) or "", *shown])
        return called

    return decorate


def _parameter(setting: Option, unlike: Mapping[str, Any], words: Mapping[str, str], needed: bool) -> inspect.Parameter:
    kind, default = setting.kind, unlike.get(setting.name, setting.default)
    text = words.get(setting.name, setting.flag.help)
    if setting.several:  # several values are given one by one, or as a text with commas
        kind, default = (list[str] | None, None) if setting.flag.repeated else (str, ",".join(default))
    if needed:
        kind, default, text = kind | None, None, f"{text} Needed."
    annotated: Any = Annotated.__class_getitem__((kind, option(setting.name, text)))  # type: ignore[attr-defined]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotated)


def _effective(
    ctx: typer.Context, file: Path | None, chosen: Sequence[Option], values: Mapping[str, Any], needed: Collection[str]
) -> RunConfig:
    """The configuration of a file, overridden by what was given; without a file that of all options."""
    given = {}
    for setting in chosen:
        source = ctx.get_parameter_source(setting.name)
        typed = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
        if not typed and file is None and setting.name in needed:
            ctx.fail(f"Missing option '{setting.written}'.")
        if typed or (file is None and setting.name not in needed):
            given[setting.name] = values[setting.name]
    base = RunConfig() if file is None else RunConfig.from_file(file)
    return base.with_options(**given)
