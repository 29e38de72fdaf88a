"""Written forms of one answer: “Six fingers.”, “6 fingers” and “the six fingers” are the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from unprior.prompts import is_cut_off, visible_text

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NUMBERS = {word: value for value, word in enumerate(_ONES)} | {word: 10 * (2 + n) for n, word in enumerate(_TENS)}
_ARTICLES = frozenset({"a", "an", "the"})
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")  # 1,000
_DECIMAL = re.compile(r"-?\d+\.\d+")
_BEHIND = frozenset("+#")  # C++ is not C
_ALONE = frozenset("+#<>=/:%$€£°")  # 5:2 is not 5 2
_QUOTES = frozenset("'’ʼ`´")
_MAX_READ = 1000  # characters; no answer is longer


@lru_cache(maxsize=65_536)
def normalize_answer(text: str) -> str:
    """One spelling for all forms of an answer: case, articles, punctuation and number words make no difference.

    An answer of nothing but articles and punctuation stays what it is, in small letters.

    >>> normalize_answer("The Six Fingers."), normalize_answer("twenty-one"), normalize_answer("A")
    ('6 fingers', '21', 'a')
    >>> normalize_answer("see-through") == normalize_answer("See through!"), normalize_answer("A hundred and 3.50")
    (True, '100 and 3.5')
    """
    plain = _simple(text.strip()[:_MAX_READ]).casefold()
    words = _words(_GROUPED.sub("", plain))
    # “A” at the end is no article: type A, vitamin A.
    kept = [word for place, word in enumerate(words) if word not in _ARTICLES or place == len(words) - 1]
    return " ".join(_with_digits(kept)) or " ".join(plain.split())


def _simple(text: str) -> str:
    """Characters of one kind in one spelling; raised and other special digits stay what they are: 10² is not 102."""
    return "".join(
        char if unicodedata.category(char) == "No" else unicodedata.normalize("NFKC", char)
        for char in unicodedata.normalize("NFC", text)
    )


def _words(text: str) -> list[str]:
    """Words, numbers and signs; punctuation parts them, and a hyphen does unless it belongs to a number."""
    words: list[str] = []
    word = ""
    for place, char in enumerate(text):
        before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
        # A mark over or under a letter belongs to it, in scripts that write vowels so.
        if char.isalnum() or unicodedata.category(char)[0] == "M":
            word += char
        elif char in "-−" and after.isdigit() and (before.isdigit() or not before.strip()):
            word += "-"
        elif (char == "." and before.isdigit() and after.isdigit()) or (char in _BEHIND and word):
            word += char
        elif char not in _QUOTES:
            words += [word] if word else []
            word = ""
            words += [char] if char in _ALONE else []
    return [*words, word] if word else words


def _with_digits(words: Sequence[str]) -> list[str]:
    """Number words up to 999 as digits: “twenty”, “one” become 21, “two”, “hundred” become 200."""
    found: list[str] = []
    place = 0
    while place < len(words):
        value, length = _number_at(words, place)
        found.append(_shortest(words[place]) if value is None else str(value))
        place += length
    return found


def _shortest(word: str) -> str:
    """A number with decimals in its shortest form: 3.50 is 3.5."""
    return word.rstrip("0").rstrip(".") if _DECIMAL.fullmatch(word) else word


def _number_at(words: Sequence[str], place: int) -> tuple[int | None, int]:
    """The number that is written in words at a place, and how many words it takes; None for another word."""
    value, length = _below_hundred(words, place)
    if words[place] == "hundred":  # a hundred, whose article is gone
        value = 1
    following = place + length
    if value is not None and 0 < value < 10 and words[following : following + 1] == ["hundred"]:
        value, length = 100 * value, length + 1
        joined = words[following + 1 : following + 2] == ["and"]
        rest, more = _below_hundred(words, following + 1 + joined)
        if rest is not None:
            value, length = value + rest, length + more + joined
    return value, max(length, 1)


def _below_hundred(words: Sequence[str], place: int) -> tuple[int | None, int]:
    value = _NUMBERS.get(words[place]) if place < len(words) else None
    if value is None:
        return None, 0
    one = _NUMBERS.get(words[place + 1], 0) if place + 1 < len(words) else 0
    return (value + one, 2) if value >= 20 and 0 < one < 10 else (value, 1)


def is_accepted(text: str | None, answer: str, aliases: Iterable[str] = ()) -> bool:
    """Whether a text is the right answer, or one of its aliases, in any written form.

    >>> is_accepted("six", "6 fingers", ["6"]), is_accepted("five", "6 fingers", ["6"]), is_accepted(None, "6")
    (True, False, False)
    """
    return text is not None and normalize_answer(text) in {normalize_answer(each) for each in (answer, *aliases)}


def group_forms(texts: Sequence[str]) -> list[list[int]]:
    """Positions of texts that are forms of one answer, in the order of their first members.

    >>> group_forms(["6 fingers", "five fingers", "Six fingers."])
    [[0, 2], [1]]
    """
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        groups.setdefault(normalize_answer(text), []).append(place)
    return list(groups.values())


def read_open_answer(text: str, *, thinking: bool = False) -> str | None:
    """The answer in what a model wrote to an open question: its first line after any thinking, as it was written.

    None where there is nothing, or where thinking was cut off. White space before the answer stays, for it belongs to
    the tokens that the model wrote.

    >>> read_open_answer(" 6 fingers\\nbecause …"), read_open_answer("<think>Hm"), read_open_answer("\\n")
    (' 6 fingers', None, None)
    """
    if is_cut_off(text, thinking=thinking):
        return None
    lines = (line.rstrip() for line in visible_text(text).split("\n"))
    return next((line for line in lines if line.strip()), None)
