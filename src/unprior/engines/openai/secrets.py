"""Keeping the API key out of messages, stored failures and records, even where a server quotes a part of it."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from urllib.parse import quote

_SHORTEST_PART = 8  # characters; fewer in common with a key are chance


class Mask:
    """Replaces a key, and any longer part of it, by ``***``; as it is, and as it is written in addresses.

    >>> hide = Mask("sk-0123456789/abc")
    >>> hide("wrong key: sk-0123456789/abc, sk-01234567..., sk-0123456789%2Fabc; see page 23456")
    'wrong key: ***, ***..., ***; see page 23456'
    >>> Mask(None)("as it is")
    'as it is'
    """

    def __init__(self, key: str | None) -> None:
        """``key``: None when there is none."""
        forms = () if key is None else {key, quote(key), quote(key, safe=""), quote(quote(key, safe=""))}
        self._length = min([_SHORTEST_PART, *map(len, forms)])
        self._parts = {
            form[start : start + self._length].lower()
            for form in forms
            for start in range(len(form) - self._length + 1)
        }

    def __call__(self, text: str) -> str:
        """The text without the key."""
        if not self._parts:
            return text
        hidden = [False] * len(text)
        for start in range(len(text) - self._length + 1):
            if text[start : start + self._length].lower() in self._parts:
                hidden[start : start + self._length] = [True] * self._length
        pieces = groupby(zip(text, hidden, strict=True), key=itemgetter(1))
        return "".join("***" if secret else "".join(sign for sign, _ in piece) for secret, piece in pieces)

    def in_answer(self, text: str) -> str:
        """An answer of the model without the key; a key as short as a word could be what the model really said."""
        return text if self._length < _SHORTEST_PART else self(text)
