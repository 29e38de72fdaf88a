"""Names and messages that others wrote, made safe to show."""

from __future__ import annotations

import re
import unicodedata

# What moves the cursor, colours or renames the terminal (ESC, C0, DEL, C1), what turns the direction of writing, and
# what XML forbids.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
_BREAKS = re.compile(r"[\t\n\u2028\u2029]")


def visible(text: str) -> str:
    r"""Text whose control characters can be seen and do nothing; lines and tabs stay.

    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return CONTROLS.sub(_escaped, text)


def one_line(name: str) -> str:
    r"""A name as tables, figures and pages show it: on one line, with control characters that can be seen.

    >>> print(one_line("a\x00b\nc"))
    a\x00b\nc
    """
    return _BREAKS.sub(_escaped, visible(name))


def seen(text: str) -> str:
    r"""Text as a reader tells it from others: in one spelling of accents, without spaces around and invisible marks.

    >>> seen(" e\u0301\u200b ") == seen("\u00e9"), seen("\u200b")
    (True, '')
    """
    marked = (each for each in unicodedata.normalize("NFC", text) if unicodedata.category(each) != "Cf")
    return " ".join("".join(marked).split())


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
