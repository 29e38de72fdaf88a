"""A model's chat template: rendered with one date for a whole run, and checked before anything is scored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, meta

from unprior.engines.protocol import QueryRefusedError
from unprior.engines.template_args import RESERVED, refuse_reserved
from unprior.engines.transformers.load_errors import told
from unprior.errors import UnpriorError, did_you_mean
from unprior.prompts import PromptLayout, opened_block

_LABEL = re.compile(r"\W*(?:image|picture|photo|img)?\W*\d*\W*", re.IGNORECASE)
"""What a template may write beside the placeholder of an image, such as “Picture 1: ”."""
_TAG = re.compile(r"<[^<>\s]+>|\[[A-Z_]+\]")
_MAX_SHOWN = 120
_WORDS = "Which one?"
_DEFAULT = "default"
"""Of several templates by name, the one that transformers takes."""
NO_THINKING = {"enable_thinking": False, "thinking": False}
"""Candidates answer at once, so a template that can is told not to open a block for thinking."""
_REMEDY = "correct chat_template.jinja in a local copy of the model"


class ChatTemplate:
    """Lays out one user turn the way the model's own template does, with thinking switched off.

    Parameters
    ----------
    processor
        The model's own.
    arguments
        What the template is told beside the conversation, by name.
    system
        A system message before the user's turn.
    """

    def __init__(self, processor: Any, arguments: Mapping[str, Any] | None = None, system: str = "") -> None:
        """Refuse arguments that the template does not know, and several templates of which none is the usual one."""
        self._processor, self._system = processor, system
        self._loaded = _now()
        self._source = _source(processor)
        reserved = {*RESERVED, *Environment().globals, *processor.tokenizer.special_tokens_map}
        refuse_reserved(arguments or {}, reserved)
        known = _variables(self._source) - reserved
        for name in arguments or {}:
            if name not in known:
                offered = ", ".join(sorted(known)) or "none"
                raise UnpriorError(
                    f"the chat template has no argument {name!r}{did_you_mean(name, known)}; it knows: {offered}"
                )
        self.placeholder = ""
        """What stands for the image in a plain prompt; empty if the processor writes it."""
        self.arguments = {name: value for name, value in NO_THINKING.items() if name in known} | dict(arguments or {})
        self._image_word = str(getattr(processor, "image_token", None) or "")
        self._takes_parts = self.is_plain or not self._takes_only_text()

    @property
    def is_plain(self) -> bool:
        """Whether the model has no chat template: a prompt is the image, the question, and a line “Answer:”."""
        return not self._source

    @property
    def writes_date(self) -> bool:
        """Whether prompts differ from day to day."""
        return self._render(False, "?", self._loaded) != self._render(False, "?", datetime(1999, 12, 31, 1, 2, 3))

    def render(self, with_image: bool, text: str) -> str:
        """The prompt for one user turn, image first; “now” is when the model was loaded, however long a run takes."""
        return self._render(with_image, text, self._loaded)

    def behind_answer(self) -> str:
        """What the template writes behind an assistant's turn; empty if it cannot be told."""
        for parts in () if self.is_plain else (self._takes_parts, not self._takes_parts):
            said = ([{"type": "text", "text": words}] if parts else words for words in ("?", _WORDS))
            messages = [{"role": role, "content": next(said)} for role in ("user", "assistant")]
            try:
                with _at(self._loaded):
                    shown = self._apply(messages, add_generation_prompt=False)
            except Exception:  # templates are programs: they may raise anything, also on purpose
                continue
            before, found, behind = shown.rpartition(_WORDS)
            if found and "'type'" not in before:
                return behind
        return ""

    def _render(self, with_image: bool, text: str, moment: datetime) -> str:
        if self.is_plain:
            system = f"{self._system}\n" if self._system else ""
            return f"{system}{self.placeholder if with_image else ''}{text}\nAnswer:"
        try:
            with _at(moment):
                return self._lay_out(with_image, text, parts=self._takes_parts)
        except Exception as error:  # templates are programs: they may raise anything, also on purpose
            which = "with an image" if with_image else "without an image"
            raise UnpriorError(
                f"the chat template cannot lay out a question {which} ({told(error)}); {_REMEDY}"
            ) from None

    def _lay_out(self, with_image: bool, text: str, *, parts: bool) -> str:
        """One turn as a list of parts, or as a text with the placeholder of the image before it."""
        if parts:
            content: Any = [*([{"type": "image"}] if with_image else []), {"type": "text", "text": text}]
            system: Any = [{"type": "text", "text": self._system}]
        else:
            content, system = f"{self._image_word}\n{text}" if with_image else text, self._system
        messages = [{"role": "system", "content": system}] if self._system else []
        messages.append({"role": "user", "content": content})
        return self._apply(messages, add_generation_prompt=True)

    def _apply(self, messages: list[dict[str, Any]], *, add_generation_prompt: bool) -> str:
        options = {"tokenize": False, "add_generation_prompt": add_generation_prompt, **self.arguments}
        return str(self._processor.apply_chat_template(messages, chat_template=self._source, **options))

    def _takes_only_text(self) -> bool:
        """Whether the template takes a turn as a text, as older ones do, and not as a list of parts."""
        shown = []
        for parts in (True, False):
            try:
                shown.append(self._lay_out(False, _WORDS, parts=parts))
            except Exception:  # templates are programs: they may raise anything, also on purpose
                shown.append("")
        listed, plain = shown
        return _WORDS in plain and (_WORDS not in listed or "'type'" in listed)


def _source(processor: Any) -> str:
    """The template's text, empty if there is none; some models keep it with the tokenizer.

    Of several templates by name the one called “default” is taken. No other is: they are made for other tasks, such as
    the use of tools, and a model may not answer a plain question there.
    """
    owners = (processor, processor.tokenizer)
    found = [owner.chat_template for owner in owners if getattr(owner, "chat_template", None)]
    named = [each if isinstance(each, dict) else {_DEFAULT: each} for each in found]
    names = sorted({name for each in named for name in each})
    if names and _DEFAULT not in names:
        raise UnpriorError(
            f"the model has chat templates by name ({', '.join(names)}) and none of them is called {_DEFAULT!r}; copy "
            f"the one for questions about images to chat_template.jinja in a local copy of the model"
        )
    return next((str(each[_DEFAULT]) for each in named if _DEFAULT in each), "")


def _variables(source: str) -> set[str]:
    """What a template takes from outside."""
    try:
        return meta.find_undeclared_variables(Environment(extensions=["jinja2.ext.loopcontrols"]).parse(source))
    except TemplateSyntaxError:  # some templates have statements that the library alone understands
        return set(re.findall(r"[A-Za-z_]\w*", source))


def _now() -> datetime:
    return datetime.now()  # as templates see it: the local time


@contextmanager
def _at(moment: datetime) -> Iterator[None]:
    """Let templates see one moment as now; the library offers them a clock, and takes no other one."""
    from transformers.utils import chat_template_utils

    before = chat_template_utils.datetime
    chat_template_utils.datetime = SimpleNamespace(now=lambda: moment)
    try:
        yield
    finally:
        chat_template_utils.datetime = before


def check_prompts(
    render: Callable[[bool, str], str], layout: PromptLayout, special: Iterable[str], *, is_plain: bool = False
) -> None:
    """Refuse a template that loses a part of a question, or lays it out differently beside an image.

    A score and its prior are compared, so their prompts may differ by the image alone: its placeholder with the
    ``special`` tokens, white space and label around it. ``is_plain``: the processor may add the placeholder later.
    """
    text = layout.user_text("How many stripes does the zebra have?", ("A", "B"), ("twelve & a <half>", "“thirteen”"))
    text += layout.scoring_suffix
    plain, with_image = render(False, text), render(True, text)
    for prompt in (plain, with_image):
        check_complete(text, prompt, with_image=prompt is with_image)
    last = text.splitlines()[-1].strip()
    block = opened_block(with_image.rpartition(last)[2]) or opened_block(plain.rpartition(last)[2])
    if block:
        raise UnpriorError(
            f"the chat template opens a block for thinking ({block}) that the answer would stand in; candidates are "
            f"scored as answers, not as thoughts. Switch thinking off with a template argument (command line: "
            f"--template-arg NAME=VALUE), or {_REMEDY}"
        )
    if plain == with_image and not is_plain:
        raise UnpriorError(f"the chat template has no place for an image; {_REMEDY}")
    difference = beyond_the_image(plain, with_image, special)
    if difference is not None:
        raise UnpriorError(
            f"the chat template {difference}; the prompts may differ by the image alone, or the prior is that of "
            f"another question; {_REMEDY}"
        )


def check_complete(text: str, prompt: str, *, with_image: bool) -> None:
    """Refuse a prompt in which a line of the user's text is missing or changed."""
    lost = [line.strip() for line in text.splitlines() if line.strip() not in prompt]
    if lost:
        raise QueryRefusedError(
            f"the chat template leaves out or changes a part of the question {'beside' if with_image else 'without'} "
            f"an image: {_shown(lost[0])}; {_REMEDY}"
        )


def beyond_the_image(plain: str, with_image: str, special: Iterable[str] = ()) -> str | None:
    """What else differs between prompts without and with an image; None if it is the image alone.

    >>> beyond_the_image("USER: Red?", "USER: <image>\\nRed?")
    >>> beyond_the_image("Today is Monday. Red?", "<image> Red?")
    "writes '<image>' with an image, where it writes 'Today is Monday.' without one"
    """
    without, block = _differing(plain, with_image)
    rest = block
    for token in sorted(special, key=len, reverse=True):
        rest = rest.replace(token, " ")
    if not without.strip() and _LABEL.fullmatch(_TAG.sub(" ", rest)):
        return None
    return f"writes {_shown(block)} with an image, where it writes {_shown(without)} without one"


def _differing(first: str, second: str) -> tuple[str, str]:
    """What is left of two texts without their common beginning and end.

    >>> _differing("USER: How many?", "USER: <image> How many?")
    ('', '<image> ')
    """
    start = _alike(first, second)
    first, second = first[start:], second[start:]
    end = _alike(first[::-1], second[::-1])
    return first[: len(first) - end], second[: len(second) - end]


def _alike(first: str, second: str) -> int:
    """Characters that two texts have in common, from the start."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(first), len(second)))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…") if text else "nothing"
