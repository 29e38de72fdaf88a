"""Errors while a model is loaded, with its name, the damaged file if there is one, and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pydantic

from unprior._files import parse_json
from unprior.errors import UnpriorError, format_option

_MAX_CHARACTERS = 300
_PLAIN = (OSError, ValueError, ImportError, RuntimeError)
"""Errors whose messages speak for themselves; others are told with their type."""
_NEEDS_CODE = (
    "it brings Python code of its own, which is never run unasked: read that code, then allow it with "
    f"{format_option('trust_remote_code', True)}, for a hub model with the commit as {format_option('revision')}"
)
_OBJECTS = frozenset(
    f"{name}.json"
    for name in (
        "config",
        "generation_config",
        "preprocessor_config",
        "processor_config",
        "tokenizer_config",
        "tokenizer",
    )
)
_JSON_WORDS = {
    list: "a list",
    str: "text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}


@contextmanager
def explaining(name: str, hint: str) -> Iterator[None]:
    """Say whatever the libraries raise while a model is loaded with its name and a remedy.

    Broken files make them raise nearly anything, panics of their compiled parts included, so nothing is left out but
    what this package says itself, and what ends the program.
    """
    try:
        yield
    except UnpriorError as error:
        if str(error).startswith((f"model {name}", name)):
            raise
        raise UnpriorError(f"model {name}: {error}") from None
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if "trust_remote_code" in str(error):
            raise UnpriorError(f"model {name} cannot be loaded: {_NEEDS_CODE}") from None
        damage = _damaged_file(Path(name))
        if damage is not None:
            raise UnpriorError(
                f"model {name} cannot be loaded: {damage}; download the file again, or restore it"
            ) from None
        raise UnpriorError(f"model {name} cannot be loaded: {told(error)} ({hint})") from None


def told(error: BaseException) -> str:
    """An error in one line.

    >>> told(KeyError("rope_type")), told(ValueError("too long\\nmore"))
    ("KeyError: 'rope_type'", 'too long')
    """
    text = error.errors()[0]["msg"] if isinstance(error, pydantic.ValidationError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    if len(first) > _MAX_CHARACTERS:
        first = first[: _MAX_CHARACTERS - 1] + "…"
    kind = type(error).__name__
    if first and (type(error) in _PLAIN or isinstance(error, pydantic.ValidationError)):
        return first
    return f"{kind}: {first}" if first else kind


def _damaged_file(folder: Path) -> str | None:
    """Which file of a local model cannot be read at all, and why; None if all can be."""
    from safetensors import safe_open

    if not folder.is_dir():
        return None
    for path in sorted(folder.iterdir()):
        try:
            if path.suffix == ".json" and path.is_file():
                content = parse_json(path.read_text(encoding="utf-8"))
                if path.name in _OBJECTS and not isinstance(content, dict):
                    return f"{path.name} holds {_JSON_WORDS[type(content)]} where an object is needed"
            elif path.suffix == ".safetensors" and path.is_file():
                with safe_open(path, "np"):  # reads the header, and compares it with the size of the file
                    pass
        except Exception as error:  # a broken file may raise anything
            return f"{path.name} is damaged or incomplete ({told(error)})"
    return None
