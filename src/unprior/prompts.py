"""What the model is asked, and how its answer is read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from string import Formatter

from unprior.errors import UnpriorError, format_option

YES_NO = ("yes", "no")

THINKING_TAGS = (
    ("<think>", "</think>"),  # DeepSeek, Qwen, GLM, InternVL and most others
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),  # Mistral
    ("◁think▷", "◁/think▷"),  # Kimi-VL
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A
    ("<|inner_prefix|>", "<|inner_suffix|>"),  # Apertus
    ("<|channel>", "<channel|>"),  # Gemma 4
    ("<|channel|>analysis", "<|channel|>final"),  # gpt-oss
)
"""How models mark their thinking: what opens a block, and what closes it. Upper and lower case are the same."""


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """The wording around a question; every part can be replaced.

    >>> print(PromptLayout().user_text("How many fingers?", ["A", "B"], ["five", "six"]))
    How many fingers?
    A. five
    B. six
    Answer with a single letter (A or B).
    """

    option_line: str = "{label}. {text}"
    """One line per option of a multiple-choice question."""
    choice_instruction: str = "Answer with a single letter ({labels})."
    """Closes a multiple-choice question; ``{labels}`` becomes “A, B, C, or D”."""
    yes_no_instruction: str = "Answer with yes or no."
    """Closes a yes/no question."""
    scoring_suffix: str = "\nFinal answer:"
    """Added to the user's text when candidates are scored."""
    continuation: str = " {label}"
    """How a candidate starts the assistant's turn."""
    instruction_before: str = ""
    """Text before the question, such as a grounding instruction."""
    system: str = field(default="", repr=False)
    """A system message before the user's turn; none if it is empty."""
    open_instruction: str = field(default="Answer with a short phrase.", repr=False)
    """Closes a question without options. It is not in ``repr``, which stored results are found by: their keys have the
    whole text of the user's turn."""

    def check(self) -> None:
        """Refuse a wording with other braces than those that are filled in, and one that loses what it must name.

        >>> PromptLayout(continuation="{answer}").check()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        unprior.errors.UnpriorError: continuation='{answer}' (command line: --continuation {answer}): write {label} ...
        """
        if not self.open_instruction.strip():
            raise UnpriorError(
                f"{format_option('open_instruction', self.open_instruction)}: give the last line of open questions; it "
                f"asks for a short answer"
            )
        filled = {"option_line": ("label", "text"), "choice_instruction": ("labels",), "continuation": ("label",)}
        for name, fields in filled.items():
            wording = getattr(self, name)
            try:
                # Widths and conversions are refused, not tried: a width can ask for gigabytes.
                parts = [part[1:] for part in Formatter().parse(wording) if part[1] is not None]
            except ValueError:
                parts = [(None, None, None)]
            needed = fields if name != "choice_instruction" else ()
            plain = all(place in fields and not width and not conversion for place, width, conversion in parts)
            if not wording or not plain or not {place for place, _, _ in parts}.issuperset(needed):
                places = " and ".join(f"{{{field}}}" for field in fields)
                raise UnpriorError(
                    f"{format_option(name, wording)}: write {places} where it is filled in, and other braces twice"
                )

    def user_text(
        self, question: str, labels: Sequence[str], texts: Sequence[str] | None, instruction: str | None = None
    ) -> str:
        """Text of the user's turn: question, options, instruction.

        Without ``texts`` no options are listed: the question is answered by yes or no, or lists them itself. Without
        ``labels`` it is answered in the model's own words. An ``instruction`` of the benchmark's own takes the place of
        the last line.
        """
        lines = [self.instruction_before] if self.instruction_before else []
        lines.append(question)
        if texts is not None:
            lines += [
                self.option_line.format(label=label, text=text) for label, text in zip(labels, texts, strict=True)
            ]
        if not labels:
            instruction = instruction or self.open_instruction
        if instruction is None and texts is None and set(labels) == set(YES_NO):
            instruction = self.yes_no_instruction
        lines.append(instruction or self.choice_instruction.format(labels=_enumeration(labels)))
        return "\n".join(lines)

    def wording(self, kind: str) -> str:
        """What a model is asked in one kind of question (``mc``, ``qa``, ``open``), all but the question itself.

        >>> print(PromptLayout().wording("open"))
        {question}
        Answer with a short phrase.
        Final answer: {answer}
        """
        labels, texts = {"mc": (("A", "B"), ("{first}", "{second}")), "qa": (YES_NO, None)}.get(kind, ((), None))
        (beginning,) = self.continuations(["{answer}"])
        return self.user_text("{question}", labels, texts) + self.scoring_suffix + beginning

    def continuations(self, labels: Sequence[str]) -> tuple[str, ...]:
        """The texts that are scored."""
        return tuple(self.continuation.format(label=label) for label in labels)


def _enumeration(labels: Sequence[str]) -> str:
    if len(labels) < 2:
        raise UnpriorError(f"a question needs at least two options, got {len(labels)}")
    return f"{labels[0]} or {labels[1]}" if len(labels) == 2 else ", ".join(labels[:-1]) + f", or {labels[-1]}"


def thinks(texts: Iterable[str | None]) -> bool:
    """Whether these are answers of a thinking model: one with a tag is enough.

    >>> thinks(["B", "It is a hand.</think>B"]), thinks(["B", None])
    (True, False)
    """
    return any(_OPENS.search(text) or _CLOSES.search(text) for text in texts if text)


def opened_block(prompt: str) -> str:
    """The tag with which a prompt opens the thinking block itself; empty if it does not.

    Give the part behind the question: instructions may speak of such tags.

    >>> opened_block("<|im_start|>assistant\\n<think>\\nWell, "), opened_block("<think>\\n\\n</think>\\n\\n")
    ('<think>', '')
    """
    text = prompt.lower()
    for opening, closing in THINKING_TAGS:
        start = text.rfind(opening.lower())
        if start > text.rfind(closing.lower()):
            return opening
    return ""


def opens_block(text: str) -> bool:
    """Whether a text begins with thinking, and says so itself."""
    return _OPENS.match(text.lstrip()) is not None


def is_cut_off(text: str, *, thinking: bool = False) -> bool:
    """Whether the text ends before its thinking does, so that there is no answer yet.

    Parameters
    ----------
    text
        What the model wrote.
    thinking
        Whether the model is known to think: its chat template may have opened the block, so that only the closing tag
        tells where thinking ends.

    >>> is_cut_off("<think>A or"), is_cut_off("A or"), is_cut_off("A or", thinking=True), is_cut_off("…</think>B")
    (True, False, True, False)
    """
    visible, closed = _after_thinking(text)
    return _OPENS.search(visible) is not None or (thinking and not closed)


def visible_text(text: str) -> str:
    """What follows the last closing tag of thinking; everything where there is none.

    >>> visible_text("<think>Maybe A.</think> B")
    ' B'
    """
    return _after_thinking(text)[0]


def parse_answer(text: str, labels: Sequence[str], *, thinking: bool = False) -> str | None:
    """Read the first valid answer in what a model wrote; None when there is none.

    Everything up to the last closing thinking tag is dropped; text whose thinking was cut off is not read at all (see
    :func:`is_cut_off`, also for ``thinking``). A valid answer is one of the labels, in either case, standing alone: not
    inside a word, and not joined to one (“N/A”, “B's”, “C-shaped”, “no-one”, “e.g.”, “20 °C”). ``A`` and ``I`` are
    also words: in front of another word they are the article and the pronoun, unless the words around them say
    otherwise (“option A shows”, “A is right”).

    >>> letters = ["A", "B", "C", "D"]
    >>> parse_answer("<think>Maybe A.</think> The answer is (B).", letters), parse_answer("A cat is shown", letters)
    ('B', None)
    >>> parse_answer("It is no, not yes.", ["yes", "no"])
    'no'
    """
    if is_cut_off(text, thinking=thinking):
        return None
    by_name = {label.casefold(): label for label in reversed(labels)} | {label: label for label in labels}
    plain = _plain(_after_thinking(text)[0], frozenset("".join(labels)))
    for found in _mentions(tuple(labels)).finditer(plain):
        name = found[0]
        label = by_name.get(name) or by_name.get(name.casefold())
        if label is not None and not (len(name) == 1 and _is_word(plain, found.start(), found.end())):
            return label
    return None


def _tags(kind: int) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(tags[kind]) for tags in THINKING_TAGS), re.IGNORECASE)


_OPENS, _CLOSES = _tags(0), _tags(1)


def _after_thinking(text: str) -> tuple[str, bool]:
    """What follows the last closing tag, and whether there is one."""
    end = max((found.end() for found in _CLOSES.finditer(text)), default=None)
    return (text, False) if end is None else (text[end:], True)


_WORD = r"[^\W_]"
_JOINT = "[-‐‑'’ʼ/&@_]"
_ALONE_BEFORE = rf"(?:(?<=option[-_])|(?<=answer[-_])|(?<!{_WORD})(?<!{_WORD}{_JOINT}))"
_ALONE_AFTER = rf"(?!{_WORD})(?!{_JOINT}{_WORD})"
# Letters also stand in abbreviations (e.g., a.m.), behind numbers as units (20 °C, 5 A), and in names (C++, A+).
_LETTER_BEFORE = r"(?<![^\W\d_]\.)(?<!°)(?<![\d°][^\S\n])"
_LETTER_AFTER = rf"(?!\.[^\W\d_]\.)(?!(?-i:(?<=[a-z])\.[a-z])(?!{_WORD}))(?![+#](?!{_WORD}))"


@lru_cache(maxsize=64)
def _mentions(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Finds labels that stand alone."""
    known = [unicodedata.normalize("NFC", label) for label in labels if label]
    words = "|".join(re.escape(word) for word in sorted(known, key=len, reverse=True) if not _is_letter(word))
    letters = "".join(re.escape(word) for word in known if _is_letter(word))
    patterns = [f"{_LETTER_BEFORE}[{letters}]{_LETTER_AFTER}"] if letters else []
    patterns += [words] if words else []
    return re.compile(f"{_ALONE_BEFORE}(?:{'|'.join(patterns) or '(?!)'}){_ALONE_AFTER}", re.IGNORECASE)


def _is_letter(label: str) -> bool:
    return len(label) == 1 and label.isascii() and label.isalpha()


_HTML = re.compile(r"</?[a-z][a-z0-9]*(?:\s[^<>]*)?/?>")


def _plain(text: str, kept: frozenset[str]) -> str:
    """Text in which word characters are those of words with spaces between them.

    Full-width letters become plain ones, and tags (``<b>``) become markup of another kind, lest they be read. Letters
    of scripts without upper and lower case, such as Chinese, touch a label without belonging to it; they become dots.
    """
    text = unicodedata.normalize("NFC", text)
    if not text.isascii():
        text = "".join(char if char in kept else _plain_character(char) for char in text)
    return _HTML.sub("*", text)


@lru_cache(maxsize=4096)
def _plain_character(char: str) -> str:
    simple = unicodedata.normalize("NFKC", char)
    char = simple if len(simple) == 1 else char
    return "·" if char.isalpha() and char.lower() == char.upper() else char


_NEXT_WORD = re.compile(rf"[^\S\n]+[\"“”'‘’«*_`]*({_WORD}[\w'’-]*)")
_AFTER_ANY_LABEL = (
    "is isn't has hasn't does doesn't because since shows matches fits seems appears describes depicts represents"
)
_NEVER_AFTER_ARTICLE = (
    "was wasn't are were have had do did could would should and or but nor as so if that than then which whereas "
    "although though when where who in on of for from with without to by at over against like the this these those i "
    "it its it's he she they we you there here not based porque parce puisque weil denn perché poiché pois потому "
    "looks must may might will won't cannot can't contains displays illustrates indicates corresponds vs versus und "
    "oder et ou y e ist est es é è n'est"
)
_SHOW_LABEL = {
    "a": frozenset(f"{_AFTER_ANY_LABEL} {_NEVER_AFTER_ARTICLE}".split()),
    "other": frozenset(_AFTER_ANY_LABEL.split()),
}
_ANNOUNCING = r"\b(?:option|choice|letter|opción|opção|opzione|вариант)"
_ANSWER = rf"(?:{_ANNOUNCING}|\b(?:answer|respuesta|réponse|antwort|risposta|resposta|ответ))"
_INSIDE_SENTENCE = re.compile(r"\w[^\S\n]+$")
_NAMED = re.compile(rf"{_ANNOUNCING}[^\w\n.;!?]*$", re.IGNORECASE)
_LISTED = re.compile(rf"[^\S\n]+[A-Z](?!{_WORD}|{_JOINT})")  # A B C
_ANSWERED = re.compile(rf"{_ANSWER}[^\w\n.;!?]*:[^\w\n.;!?]*$", re.IGNORECASE)
_SAID = re.compile(rf"{_ANSWER}(?: +\w+){{0,3}}? +(?:is|be|was|es|est|è|é|ist|это)[^\w\n]*$", re.IGNORECASE)


def _is_word(text: str, start: int, end: int) -> bool:
    """Whether a single letter is a word of its own: the article, the pronoun, or a word of another language."""
    letter, before = text[start], text[max(0, start - 80) : start]
    if letter not in "AIaeiouy" or _NAMED.search(before):
        return False
    following = _NEXT_WORD.match(text, end)
    if following is None:
        # An article may be the last word before the text was cut off at its greatest length.
        last = letter.islower() and not text[end:].strip() and _INSIDE_SENTENCE.search(before) is not None
        return last and not _SAID.search(before)
    known = _SHOW_LABEL["a" if letter in "Aa" else "other"]
    if following[1].replace("’", "'").casefold() in known or (letter == "A" and _LISTED.match(text, end)):
        return False
    # In the middle of a sentence an article is not written as a capital: “the answer is A six fingers”.
    return not (letter.isupper() and (_SAID.search(before) or _ANSWERED.search(before)))
