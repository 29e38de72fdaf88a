"""Questions and candidates of requests: visible text of bounded length, no candidate twice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from unprior._text import one_line, visible
from unprior.serving.errors import RequestError, refuse

MAX_QUESTION, MAX_CANDIDATE, MAX_NAME = 8_000, 500, 64
"""Characters."""
MAX_CANDIDATES = 26
"""They are named by letters."""
_SHOWN = 60
# Of no width, or turning the direction of writing: what a person sees is not what the model reads. The joiners belong
# to words of some scripts and to emoji, so they are taken between other characters.
_HIDDEN_CLASS = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff0-\uffff"
)
_HIGH = "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
_HIDDEN = re.compile(f"[{_HIDDEN_CLASS}{_HIGH}]|^[\u200c\u200d]|[\u200c\u200d]$")
# Taken, but nothing to see on their own: joiners and variation selectors. Two texts must differ in more than these, or
# than the signs around numbers of some scripts, which are format characters, too.
_JOINERS = r"\u200c\u200d\ufe00-\ufe0f"
_SIGNS = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
_UNSEEN = re.compile(f"[{_HIDDEN_CLASS}{_HIGH}{_JOINERS}{_SIGNS}]")
_BLANKS = r"\s\u2800"  # the second is a Braille cell without dots
_BLANK = re.compile(f"[{_BLANKS}]+")
_FILLED = re.compile(f"[^{_BLANKS}{_JOINERS}]")
_CONTROLS = r"\u0000-\u0008\u000b-\u001f\u007f-\u009f"
# The same for the published schema, as far as patterns that all readers understand can tell it.
TEXT_PATTERN = f"^[^{_CONTROLS}{_HIDDEN_CLASS}]*$"
FILLED_PATTERN = TEXT_PATTERN[:-1] + TEXT_PATTERN[1:-3] + f"{_BLANKS}{_JOINERS}]" + TEXT_PATTERN[1:]
LINE_PATTERN = FILLED_PATTERN.replace(_CONTROLS, r"\u0000-\u001f\u007f-\u009f")
# What control tokens of the families of models look like; an engine in this process also asks its own tokenizer.
_TOKEN = re.compile(
    r"<[|｜][^<>\n]{0,80}[|｜]?>|<<?/?SYS>?>"
    r"|</?(?:s|[bes]o[adimpstv]|pad|unk|mask|cls|sep|box|bbox|ref|obj|point|quad|poly|phrase|grounding|patch|slice|unit"
    r"|think|thinking|reasoning|tool_[a-z]{1,20})/?>"
    r"|</?[a-z0-9_-]{0,40}(?:image|img|video|audio|vision|start_of|begin_of|end_of|im_start|im_end|im_patch)"
    r"[a-z0-9_-]{0,40}/?>"
    r"|<(?:unused|extra_id_|reserved_|special_|patch_index_|loc|seg|ctrl|fim_|row_)[a-z0-9_]{0,40}>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|THINK|IMG|AVAILABLE_TOOLS|TOOL_|[gs]?MASK|CLS|SEP|PAD|BOS|EOS|UNK)[A-Z_]{0,40}\]",
    re.IGNORECASE,
)


def check_text(text: str, param: str, longest: int) -> str:
    """Refuse a text that is empty, too long, or reads otherwise than it looks."""
    if len(text) > longest:
        raise refuse(f"{param}: {len(text):,} characters are more than {longest:,}", code="text_too_long", param=param)
    if _FILLED.search(text) is None:
        raise refuse(f"{param}: the text is empty", code="empty_text", param=param)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise refuse(f"{param}: half of a character (a surrogate) is no text", code="text", param=param) from None
    hidden = _HIDDEN.search(text)
    found = [hidden[0]] if hidden else sorted(filter(_is_control, set(text) - {"\n", "\t"}))
    if found:
        name = f"U+{ord(found[0]):04X}"
        told = f"{param}: character {name} cannot be seen, or turns the direction of writing; leave it out"
        raise refuse(told, code="hidden_character", param=param)
    return text


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Co", "Cn"}


def check_tokens(text: str, param: str) -> None:
    """Refuse what a served model may read as a control token, such as ``<image>``, and not as words.

    >>> check_tokens("is 3 < 4 or <b>?", "question")
    """
    found = _TOKEN.search(_UNSEEN.sub("", text))  # a tokenizer may leave out what nobody sees
    if found is not None:
        told = f"{param}: {show(found[0])} may be read as a control token of the model; write it differently"
        raise refuse(told, code="control_token", param=param)


def check_candidates(texts: Sequence[str], param: str) -> None:
    """Refuse too few, too many, and two that a person cannot tell apart.

    Texts that differ in case, such as “cat” and “CAT”, and letters of two scripts that look alike are taken: they can
    be meant, and whether they look alike depends on the font.
    """
    if len(texts) < 2:
        raise refuse(f"{param}: give at least two candidates", code="candidates", param=param)
    if len(texts) > MAX_CANDIDATES:
        told = f"{param}: {len(texts):,} candidates are more than {MAX_CANDIDATES}, which are named by letters"
        raise refuse(told, code="candidates", param=param)
    seen: dict[str, int] = {}
    for place, text in enumerate(texts):
        check_text(text, f"{param}[{place}]", MAX_CANDIDATE)
        if "\n" in text or "\t" in text:
            raise refuse(f"{param}[{place}]: a candidate is one line", code="candidates", param=param)
        form = _BLANK.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", text))).strip()
        if form in seen:
            raise _double(param, seen[form], place, text)
        seen[form] = place


def _double(param: str, first: int, second: int, text: str) -> RequestError:
    told = f"{param}[{first}] and {param}[{second}] are the same text, {show(text)}; each candidate must differ"
    return refuse(told, code="duplicate_candidates", param=param)


def show(text: str) -> str:
    """A text of a request in a message: on one line, not too long, with what it hides made visible."""
    line = one_line(visible(text))
    return f"“{line[:_SHOWN]}…”" if len(line) > _SHOWN else f"“{line}”"
