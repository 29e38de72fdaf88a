"""What is wrong with a value, in words that need no knowledge of the library that found it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from unprior.errors import did_you_mean

_LONGEST_SHOWN = 60
_WORDS = {
    "missing": "missing",
    "string_type": "must be text",
    "string_unicode": "has a character that is not valid Unicode",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "is_instance_of": "must be a {class}",
    "dict_type": "must be an object",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "too_short": "needs {min_length} entries or more, and has {actual_length}",
    "too_long": "may have {max_length} entries, and has more",
}
"""By pydantic's names of errors; the words follow the name of the field."""


def describe_validation_error(error: ValidationError, fields: Iterable[str] = ()) -> str:
    """First complaint, short: the field and what is wrong with it; ``fields`` are those that there could be.

    >>> from pydantic import BaseModel, ConfigDict
    >>> class Question(BaseModel, extra="forbid"):
    ...     options: list[str] = []
    >>> try:
    ...     Question(opitons=["five", "six"])
    ... except ValidationError as error:
    ...     describe_validation_error(error, Question.model_fields)
    'there is no field opitons (did you mean options?)'
    """
    first = error.errors()[0]
    kind, context, message = first["type"], first.get("ctx", {}), first["msg"]
    # Alternatives of one field are told apart by their types, which are no part of the file.
    parts = [str(part) for part in first["loc"] if part not in ("int", "str", "function-after[_encodable(), str]")]
    where = ".".join(parts)
    if kind == "extra_forbidden":
        return f"there is no field {where}{did_you_mean(where, fields)}"
    if kind == "json_invalid":
        return f"not a JSON object ({context.get('error', message)})"
    if kind == "model_type":
        return "not a JSON object"
    if kind == "int_type" and first["loc"][-1] == "int":
        return f"{where}: must be a whole number or text{_instead(first['input'], kind)}"
    if kind in _WORDS:
        return f"{where}: {_WORDS[kind].format(**context)}{_instead(first['input'], kind)}"
    message = str(context["error"]) if kind == "value_error" and "error" in context else message
    return f"{where}: {message[0].lower()}{message[1:]}" if where else message


def _instead(value: Any, kind: str) -> str:
    """What stands there instead, where it is short enough to be named."""
    if kind in ("missing", "string_unicode", "string_too_short", "too_short", "too_long"):
        return ""
    if not isinstance(value, str | bool | int | float | None):
        return ""
    shown = json.dumps(value, ensure_ascii=False)
    return f", not {shown}" if len(shown) <= _LONGEST_SHOWN else ""
