"""One setting of a run: what the command line says about it, and which values it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

from unprior.errors import UnpriorError, format_option

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LARGEST = 2**31 - 1
"""Of whole numbers without a limit of their own."""


@dataclass(frozen=True, slots=True)
class Flag:
    """What the command line says about a setting, and how it calls it."""

    help: str
    option: str | None = None
    """Its name there, in Python; by default that of the field."""
    min: float | None = None
    max: float | None = None
    repeated: bool = False
    """Given once for every value, instead of once with commas between them."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a run: where it stands in the configuration, and how the command line calls it."""

    group: str
    field: str
    kind: Any
    """Its type."""
    default: Any
    flag: Flag

    @property
    def name(self) -> str:
        """The name in Python."""
        return self.flag.option or self.field

    @property
    def written(self) -> str:
        """The name on the command line.

        >>> from unprior.runs.config import OPTIONS
        >>> OPTIONS["batch_size"].written
        '--batch-size'
        """
        return f"--{self.name.replace('_', '-')}"

    @property
    def several(self) -> bool:
        """Whether it may have several values."""
        return get_origin(self.kind) is tuple

    def convert(self, value: Any) -> Any:
        """A value as people give it; paths may be text, several values a text with commas, and numbers NumPy's.

        >>> from unprior.runs.config import OPTIONS
        >>> OPTIONS["epsilon_cs"].convert("abc")
        Traceback (most recent call last):
            ...
        unprior.errors.UnpriorError: epsilon_cs: must be a number, not "abc"; leave it out for the default, 0.04
        """
        if self.several:
            if isinstance(value, Mapping):  # NAME=VALUE texts, as a mapping
                value = [f"{name}={_joined(each)}" for name, each in value.items()]
            parts = value.split(",") if isinstance(value, str) else value or ()
            value = tuple(parts) if isinstance(parts, list | set) else parts
            return tuple(part for each in self._typed(value) if (part := each.strip()))
        if self.name == "model" and isinstance(value, list | tuple):
            value = value[0] if len(value) == 1 else tuple(value) or None
        elif Path in (self.kind, *get_args(self.kind)):
            value = Path(value) if isinstance(value, str | PathLike) else value
        elif isinstance(value, PathLike):
            value = fspath(value)
        elif hasattr(value, "item"):  # a number of NumPy
            value = value.item()
        return self._typed(value)

    def check(self, value: Any, file: Path | None = None) -> None:
        """Refuse a value of another type, and a number that is out of range, in the words of the file it is from."""
        self._typed(value)
        if isinstance(value, Path) and "\0" in str(value):
            raise UnpriorError(f"{self.name}: no path has the character NUL; check {str(value)!r}")
        low, high = self.flag.min, self.flag.max
        if value is None or isinstance(value, str | bool | tuple | Path):
            return
        high = LARGEST if high is None and isinstance(value, int) else high
        finite = isinstance(value, int) or math.isfinite(value)
        if not finite or (low is not None and value < low) or (high is not None and value > high):
            upper = None if high == LARGEST and value < LARGEST else high
            limits = [f"at least {low}"] * (low is not None) + [f"at most {upper}"] * (upper is not None)
            readable = -LARGEST <= value <= LARGEST or not finite
            told = format_option(self.name, value) if readable else f"{format_option(self.name)} is out of range"
            if file is not None:
                told = f"{file}: {self.group}.{self.field} {f'= {value}' if readable else 'is out of range'}"
            raise UnpriorError(f"{told}: give {' and '.join(limits) or 'a finite number'}")

    def _typed(self, value: Any) -> Any:
        from pydantic import ValidationError

        from unprior._validation import describe_validation_error

        try:
            return _adapter(self.kind).validate_python({self.name: value}, strict=True)[self.name]
        except ValidationError as error:
            default = "" if self.default is None or self.several else f", {self.default}"
            raise UnpriorError(f"{describe_validation_error(error)}; leave it out for the default{default}") from None


def _joined(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


@cache
def _adapter(kind: Any) -> TypeAdapter[dict[str, Any]]:
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, kind])
