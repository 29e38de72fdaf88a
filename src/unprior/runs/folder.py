"""Reading the configuration of a run from a file or from its folder, also from folders of version 0.1.0."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, replace
from datetime import date, time
from pathlib import Path
from typing import Any, TypeVar

from unprior._files import check_output_file, check_output_folder, exists, is_file, read_whole
from unprior.errors import UnpriorError, did_you_mean, format_option
from unprior.runs.config import FILE, OPTIONS, RunConfig

OLD_FILE = "run.json"
Kind = TypeVar("Kind")


def read_folder(folder: Path) -> RunConfig:
    """The configuration of a run folder, whose output is that folder wherever it lies now."""
    if is_file(folder / FILE):
        config = read_file(folder / FILE)
    elif is_file(folder / OLD_FILE):
        config = _read_old(folder / OLD_FILE)
    else:
        raise UnpriorError(
            f"{folder} does not say which model and benchmark it is about; `unprior run --out {folder}` with the "
            f"options it was made with notes that, and computes nothing anew"
        )
    return config.with_options(out=folder)


def find_config(folder: Path) -> RunConfig | None:
    """The configuration of a run folder, if there is one.

    >>> find_config(Path("nowhere"))
    """
    return read_folder(folder) if is_file(folder / FILE) or is_file(folder / OLD_FILE) else None


def keeping_method(config: RunConfig) -> RunConfig:
    """The same with the method that the folder of the run notes already, for work that has nothing to do with it."""
    earlier = find_config(config.output.folder)
    return config if earlier is None else replace(config, method=earlier.method)


def check_folder(config: RunConfig, *files: str) -> None:
    """Refuse an output folder that these files cannot be written to, or that holds another model or benchmark."""
    from unprior.scoring.benchmark import TABLE

    folder = config.output.folder
    check_output_folder(folder)
    for name in (FILE, TABLE, *files):
        check_output_file(folder / name)
    earlier = find_config(folder)
    if earlier is None:
        return
    if (len(earlier.models) > 1) != (len(config.models) > 1):
        raise UnpriorError(f"{folder} holds a run of {', '.join(earlier.models)}; choose another folder")
    models = ("model", *earlier.models, *config.models)  # of several, each has a folder of its own
    for what, old, new in (
        *([models] if len(models) == 3 else []),
        ("benchmark", earlier.benchmark.name, config.benchmark.name),
        ("variant", earlier.benchmark.variant or "standard", config.benchmark.variant or "standard"),
    ):
        if not _may_be_same(Path(old), Path(new)):
            raise UnpriorError(
                f"{folder} holds a run of {what} {old}, and its results would be replaced by those of {new}; choose "
                f"another folder by {format_option('out')}"
            )


def _may_be_same(old: Path, new: Path) -> bool:
    """Whether two names mean one thing: a path can be written in several ways, and what it names can be moved."""
    if old == new or not exists(new):
        return old == new
    return old.samefile(new) if exists(old) else old.name == new.name


def stated_options(path: Path) -> dict[str, Any]:
    """The options that a file says something about, and what; a run folder stands for the file in it."""
    if path.is_dir():
        return {"out": path} | stated_options(path / (FILE if is_file(path / FILE) else OLD_FILE))
    if path.suffix == ".json":
        config = read_file(path)
        return {each.name: config.get(each.name) for each in OPTIONS.values() if each.group != "method"}
    content = _read_toml(path)
    groups = ((each, content.get(each.group, {})) for each in OPTIONS.values())
    return {each.name: group[each.field] for each, group in groups if each.field in group}


def read_file(path: Path) -> RunConfig:
    """A configuration in TOML; what it does not say is as by default."""
    if path.is_dir():
        return read_folder(path)
    if path.suffix == ".json":
        return _read_old(path).with_options(out=path.parent)
    content = _read_toml(path)
    _refuse_unknown(path, content)
    for group, values in content.items():
        if dates := [name for name, value in values.items() if isinstance(value, date | time)]:
            raise UnpriorError(f"{path}: {group}.{dates[0]}: this is a date; put it into quotes if it is meant as text")
    text = json.dumps(content, default=str).encode()
    config = _validated(RunConfig, text, path, "{reason}; correct it, or leave it out for the default")
    for option in OPTIONS.values():
        option.check(config.get(option.name), path)
    if not config.models:
        raise UnpriorError(f"{path}: model.name names no model; give one, or leave it out for the default")
    # A file cannot allow a model's code to run.
    return config.with_options(model=config.models, trust_remote_code=False)


def _read_toml(path: Path) -> dict[str, Any]:
    text = read_whole(path)
    try:
        content = tomllib.loads(text.decode("utf-8-sig"))
        json.dumps(content, default=str)  # numbers may be too long for that, too
        return content
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits
        raise UnpriorError(
            f"{path}: not a configuration in TOML ({error}); correct it, or make one with `unprior run --dry-run`"
        ) from None


def _validated(kind: type[Kind], text: bytes, path: Path, message: str) -> Kind:
    from pydantic import TypeAdapter, ValidationError

    from unprior._validation import describe_validation_error

    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise UnpriorError(f"{path}: {message.format(reason=describe_validation_error(error))}") from None


def _refuse_unknown(path: Path, content: dict[str, Any]) -> None:
    groups = {group: list(values) for group, values in asdict(RunConfig()).items()}
    for group, values in content.items():
        if group not in groups:
            like = did_you_mean(group, groups)
            raise UnpriorError(f"{path}: there is no group [{group}]{like}; groups are {', '.join(groups)}")
        if not isinstance(values, dict):
            raise UnpriorError(f"{path}: {group} is a group; write its settings below a line [{group}]")
        for name in values:
            if name not in groups[group]:
                like = did_you_mean(name, groups[group])
                raise UnpriorError(
                    f"{path}: [{group}] has no setting {name}{like}; its settings are {', '.join(groups[group])}"
                )


@dataclass(frozen=True, slots=True)
class _OldModel:
    model: str
    revision: str | None
    dtype: str
    device: str | None
    device_map: str | None
    attention: str | None
    engine: str = "transformers"
    base_urls: tuple[str, ...] = ()
    concurrency: int = 16
    tensor_parallel: int = 1
    most_new_tokens: int = 64


@dataclass(frozen=True, slots=True)
class _OldRecord:
    """What version 0.1.0 left in a run folder."""

    model: _OldModel
    benchmark: str
    variant: str | None
    seed: int
    data_dir: str | None
    resize: int | None
    allow_censored: bool = False


def _read_old(path: Path) -> RunConfig:
    message = "not a record of a run ({reason}); delete it and run again"
    options = asdict(_validated(_OldRecord, read_whole(path), path, message))
    model = options.pop("model")
    renamed = {"base_url": model.pop("base_urls"), "max_new_tokens": model.pop("most_new_tokens")}
    return RunConfig.from_options(**options, **model, **renamed)
