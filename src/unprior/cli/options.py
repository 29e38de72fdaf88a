"""Options of the commands, made from the configuration of a run, so that each is described once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from unprior.cli.console import flag, warn
from unprior.runs.config import OPTIONS, RunConfig
from unprior.runs.option import Option

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
    # A flag can take back what a file says; permission to run code is never taken from one.
    off = f"/--no-{setting.written[2:]}" if setting.kind is bool and name != "trust_remote_code" else ""
    return flag(setting.group.capitalize(), text or setting.flag.help, setting.written + off, **limits)


def takes_config(
    *wanted: str,
    leave_out: Collection[str] = (),
    needed: Collection[str] = (),
    keeps: Collection[str] = (),
    texts: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a configuration, and the configuration that they make.

    Parameters
    ----------
    wanted
        Groups, such as ``model``, with all their options, or options of other groups by name.
    leave_out
        Options of these groups that the command has no use for.
    needed
        Options that must be given, here or in the file of ``--config``.
    keeps
        Groups and options that stay as the configuration in the output folder says, unless they are given.
    texts
        Where the help differs from that of the configuration.
    """
    chosen = [each for each in OPTIONS.values() if {each.group, each.name} & set(wanted) and each.name not in leave_out]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "config"]

        def called(ctx: typer.Context, **given: Any) -> None:
            values = {each.name: given.pop(each.name) for each in chosen}
            command(config=_effective(ctx, given.pop(CONFIG), values, needed, keeps), **given)

        made = [_parameter(each, (texts or {}).get(each.name, each.flag.help), each.name in needed) for each in chosen]
        arguments = [each for each in own if each.kind is not each.KEYWORD_ONLY]
        others = [each for each in own if each.kind is each.KEYWORD_ONLY]
        file = inspect.Parameter(CONFIG, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_ConfigFile)
        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        parameters = [context, *arguments, *made, file, *others]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__name__, called.__module__ = command.__name__, command.__module__
        called.__doc__ = command.__doc__
        return called

    return decorate


def _parameter(setting: Option, text: str, needed: bool) -> inspect.Parameter:
    kind, default = str if setting.name == "model" else setting.kind, setting.default  # `run` has its own --model
    if setting.several:  # several values are given one by one, or as a text with commas
        kind, default = (list[str] | None, None) if setting.flag.repeated else (str, ",".join(default))
    if needed:
        kind, default, text = kind | None, None, f"{text} Needed."
    annotation: Any = Annotated
    annotation = annotation[kind, option(setting.name, text)]
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _effective(
    ctx: typer.Context, file: Path | None, values: Mapping[str, Any], needed: Collection[str], keeps: Collection[str]
) -> RunConfig:
    """The configuration of a file, overridden by what was given; without a file that of all options."""
    from unprior.runs.folder import find_config, stated_options

    sources = {name: ctx.get_parameter_source(name) for name in values}
    given = {name for name, source in sources.items() if source and source.name in ("COMMANDLINE", "ENVIRONMENT")}
    base, stated = RunConfig(), given
    if file is not None:
        base, in_file = RunConfig.from_file(file), stated_options(file)
        stated = given | set(in_file)
        if in_file.get("trust_remote_code") and "trust_remote_code" not in given:
            warn(f"{file} says that the model's code may run, which a file cannot allow; give --trust-remote-code")
    for name in values:
        if name in needed and name not in stated:
            also = "" if file is None else " (not in the file of --config)"
            ctx.fail(f"Missing option '{OPTIONS[name].written}'{also}.")
    taken = given if file is not None else set(values)
    config = base.with_options(**{name: values[name] for name in values if name in taken})
    earlier = find_config(config.output.folder) if keeps else None
    if earlier is None:
        return config
    kept = [each.name for each in OPTIONS.values() if {each.group, each.name} & set(keeps) and each.name not in stated]
    return config.with_options(**{name: earlier.get(name) for name in kept})
