"""Other right answers to an open question: shorter forms of the right one, and synonyms that a benchmark names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from unprior.answer_forms import normalize_answer
from unprior.prompts import YES_NO

Synonyms = Sequence[Sequence[str]]
"""Groups of words or phrases, any of which may stand for another of its group."""

_ASKS_A_NUMBER = re.compile(r"\b(?:how many|count|number of)\b", re.IGNORECASE)
_COUNTED = re.compile(r"(\d+)(?: (.+))?")
_REMARK = re.compile(r"\s*\([^()]*\)$")


def aliases_of(question: str, answer: str, options: Iterable[str] = (), synonyms: Synonyms = ()) -> tuple[str, ...]:
    """Texts that are as right as the answer, each in its shortest spelling: see :mod:`unprior.answer_forms`.

    A text that may also stand for another of the options is none.

    Parameters
    ----------
    question
        What is asked: a bare number is an answer only where a number is asked for.
    answer
        The right answer.
    options
        Other answers to the same question.
    synonyms
        Groups of wordings that mean the same, whatever the right answer is.

    >>> aliases_of("How many fingers are there?", "6 fingers", ["5 fingers", "6 fingers"])
    ('6',)
    >>> aliases_of("What color is it?", "White-gray", ["Red"], [("gray", "grey")])
    ('white grey',)
    """
    own = normalize_answer(answer)
    others = {normalize_answer(text): text for text in options}
    others.pop(own, None)
    taken = {form for text in others.values() for form in _forms(question, text, synonyms)}
    return tuple(form for form in _forms(question, answer, synonyms) if form != own and form not in taken)


def with_synonyms(text: str, synonyms: Synonyms) -> tuple[str, ...]:
    """All wordings of a text, its own first; whole words are exchanged, in the spelling of ``normalize_answer``.

    >>> with_synonyms("See-through plastic", [("see-through", "transparent"), ("plastic", "acrylic")])
    ('see through plastic', 'see through acrylic', 'transparent plastic', 'transparent acrylic')
    """
    found = [normalize_answer(text)]
    for group in synonyms:
        words = [normalize_answer(word) for word in group]
        member = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})\b")
        found = [form for known in found for form in (known, *(member.sub(word, known) for word in words))]
    return tuple(dict.fromkeys(found))


def _forms(question: str, text: str, synonyms: Synonyms) -> Iterator[str]:
    """The text, its shorter forms and all their wordings, each once."""
    found = (form for short in (text, *_short_forms(question, text)) for form in with_synonyms(short, synonyms))
    yield from dict.fromkeys(found)


def _short_forms(question: str, text: str) -> Iterator[str]:
    """What people say for short: the number alone, the text without a remark in parentheses, yes or no alone."""
    counted = _COUNTED.fullmatch(normalize_answer(text))
    if counted is not None and _ASKS_A_NUMBER.search(question):
        number, thing = counted.groups()
        yield number
        if number == "0":
            yield "none"
            if thing:
                yield f"no {thing}"
    if _REMARK.search(text) and (short := _REMARK.sub("", text)):
        yield short
    first, comma, _ = text.partition(",")
    if comma and first.strip().casefold() in YES_NO:
        yield first
