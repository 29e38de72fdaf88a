"""From questions to tokens: chat template, shared prefix, candidate continuations."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from PIL import Image

from unprior.engines.candidate_tree import tokens_after
from unprior.engines.probe import probe_texts, prompt_digest
from unprior.engines.protocol import Query, QueryRefusedError
from unprior.engines.transformers.chat_template import ChatTemplate, check_complete, check_prompts
from unprior.engines.transformers.forward import pad_left
from unprior.errors import UnpriorError
from unprior.prompts import THINKING_TAGS, PromptLayout, thinks

_MEDIA = re.compile("image|video|audio")
_TOO_LONG = "sequence-length-is-longer-than-the-specified-maximum"
_BLANK = Image.new("RGB", (64, 64))
_BROKEN = "\N{REPLACEMENT CHARACTER}"
"""What tokenizers write for a part of a character."""


@dataclass(frozen=True)
class PromptTokens:
    """One query as text, and its candidates as tokens."""

    image: Image.Image | None
    text: str
    """The user's turn."""
    original_text: str
    """The rendered prompt that the original answer continues."""
    scoring_text: str
    """The rendered prompt that candidates continue."""
    candidates: list[list[int]]
    """Tokens of the candidates; those of whole answers close with the end token."""
    strings: tuple[str, ...]
    """The candidates as text."""
    scoring: list[int]
    """Tokens of the text that candidates continue; an image has one token or none there."""


class PromptEncoder:
    """Renders and tokenises prompts the way the model's own processor does."""

    def __init__(
        self, processor: Any, layout: PromptLayout, template_arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Refuse a chat template whose prompts cannot be scored."""
        self.processor = processor
        self.tokenizer = processor.tokenizer
        # Prompts that are too long are refused here, with what to do; transformers would also warn of them, each time.
        getattr(self.tokenizer, "deprecation_warnings", {})[_TOO_LONG] = True
        self.layout = layout
        self.template = ChatTemplate(processor, template_arguments, layout.system)
        name = getattr(processor, "image_token", None)
        self.placeholder_text = None if name is None else str(name)
        self.placeholder = None if name is None else self.tokenizer.convert_tokens_to_ids(str(name))
        self.filler = self._filler()
        check_prompts(self.render, layout, self._special_tokens(), is_plain=self.template.is_plain)
        # Processors of models without a chat template may end a prompt themselves, but only beside an image.
        self._ending = ""
        if self.template.is_plain:
            self.template.placeholder = self._plain_placeholder()
        self._nested = self._takes_lists()
        if self.template.is_plain:
            self._ending = self._added_by_processor()
        self._tag_tokens, self._hidden_tokens = _special_tokens(self.tokenizer)
        self._reserved = _reserved_words(processor)
        numbers = self.tokenizer.convert_tokens_to_ids(self._reserved)
        self._reserved_tokens: dict[int, str] = dict(zip(numbers, self._reserved, strict=True))
        self._reserved_tokens.pop(self.tokenizer.unk_token_id, None)  # that of any unknown letter, too
        self.end: int | None = None
        """The token that closes whole answers; see :meth:`choose_end`."""

    def choose_end(self, stop: Sequence[int]) -> None:
        """Close whole answers with the token that the chat template writes behind an answer, if generation stops there.

        Otherwise with the first of the tokens at which it stops.
        """
        behind = self.tokenizer(self.template.behind_answer(), add_special_tokens=False)["input_ids"]
        self.end = next((token for token in behind if token in stop), stop[0] if stop else None)

    def length(self, prompt: PromptTokens) -> int:
        """Tokens of the prompt that candidates continue, those of its image included."""
        return int(self.inputs([prompt.scoring_text], [prompt.image])["input_ids"].shape[1])

    def encode(self, query: Query) -> PromptTokens:
        """Render both prompts of a query, and tokenise its candidates."""
        self._check_words(query.text)
        original_text = self.render(query.image is not None, query.text)
        check_complete(query.text, original_text, with_image=query.image is not None)
        self._check_placeholders(query, original_text)
        scoring_text = self.render(query.image is not None, query.text + self.layout.scoring_suffix)
        scoring = self.tokenize_prompt(scoring_text)
        ending = self._ending_tokens() if query.whole else []
        candidates = [[*self._continuation(scoring_text, scoring, text), *ending] for text in query.candidates]
        return PromptTokens(query.image, query.text, original_text, scoring_text, candidates, query.candidates, scoring)

    def whole_answer(self, prompt: PromptTokens, text: str, written: Sequence[int]) -> tuple[str, list[int]] | None:
        """A text that the model wrote, as a candidate and its tokens with the end token; None if it cannot be one.

        Some tokenizers lose the space before the first word when they decode: it is put back where the tokens say so.
        Texts without words, with tags of thinking, with a part of a character, or with what would be read as a control
        token are no candidates.
        """
        if not text.strip() or _BROKEN in text or thinks([text]) or any(word in text for word in self._reserved):
            return None
        plain = None
        for form in (text, f" {text}"):
            try:
                tokens = self._continuation(prompt.scoring_text, prompt.scoring, form)
            except UnpriorError:  # it melts into the prompt
                continue
            found = form, [*tokens, *self._ending_tokens()]
            if tokens == list(written[: len(tokens)]):
                return found
            plain = found if form == text else plain
        return plain

    def answer_tokens(self, config: Any) -> list[bool]:
        """For every token whether it may stand in an answer; control tokens and placeholders may not."""
        known = self.tokenizer.get_vocab()
        usable = set(known.values()) - self._tag_tokens - self._hidden_tokens - set(self.image_tokens(config))
        usable -= {known[word] for word in self._reserved if word in known}
        return [token in usable for token in range(1 + max(usable, default=-1))]

    def image_tokens(self, config: Any) -> list[int]:
        """Tokens that may stand for an image, by what configuration and processor say, the likeliest first.

        A model cannot read them as a part of its own answer.
        """
        named = ((config, "image_token_id"), (config, "image_token_index"), (self.processor, "image_token_id"))
        found = [getattr(owner, name, None) for owner, name in named]
        return [token for token in (*found, self.placeholder) if token is not None]

    def render(self, with_image: bool, text: str) -> str:
        """The chat template's text for one user turn, image first."""
        return self.template.render(with_image, text)

    def prompt_digests(self) -> dict[str, str]:
        """What tells these prompts from those of another template, date or layout; see ``_probe``."""
        texts = probe_texts(self.layout)
        with_image = json.dumps([self.render(True, text) for text in texts])
        return {
            "prompt": prompt_digest([self.tokenize(self.render(False, text)) for text in texts]),
            "image_prompt": hashlib.sha256(with_image.encode()).hexdigest(),
        }

    def written(self, tokens: Sequence[int]) -> str:
        """What a model wrote.

        Some models mark their thinking with special tokens, which must not disappear with the others.
        """
        text: str
        if self._tag_tokens.isdisjoint(tokens):
            text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        else:
            shown = [token for token in tokens if token not in self._hidden_tokens]
            text = self.tokenizer.decode(shown, skip_special_tokens=False)
        return text

    def tokenize(self, text: str) -> list[int]:
        """Tokens of rendered text; a start token is added only where the template has none."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=self._adds_start(text))["input_ids"]
        return ids

    def tokenize_prompt(self, text: str) -> list[int]:
        """Tokens of a rendered prompt without an image, with the end that the processor gives a prompt with one."""
        return self.tokenize(text + self._ending)

    def _takes_lists(self) -> bool:
        """Whether the processor takes a list of images for every prompt; otherwise it takes one image for each."""
        self._nested, text = True, self.render(True, "?")
        try:
            self.inputs([text], [_BLANK])
        except Exception:  # processors complain in many ways about what they do not take
            return False
        return True

    def _plain_placeholder(self) -> str:
        """What a prompt without a chat template needs where its image is; nothing if the processor writes that."""
        if self.placeholder_text is None:
            return ""
        self._nested = self._takes_lists()
        try:
            read = self.inputs([self.render(True, "?")], [_BLANK])["input_ids"][0].tolist()
        except Exception:  # some processors insist on a placeholder
            return self.placeholder_text
        written = self.placeholder in read or len(read) > 2 + len(self.tokenize(self.render(False, "?")))
        return "" if written else self.placeholder_text

    def _added_by_processor(self) -> str:
        text = self.render(True, "?")
        read = self.inputs([text], [_BLANK])["input_ids"][0].tolist()
        known = self.tokenize(self.render(False, "?"))[-2:]  # the end of “Answer:”
        added = next((count for count in range(3) if read[: len(read) - count][-len(known) :] == known), 0)
        return str(self.tokenizer.decode(read[len(read) - added :])) if added else ""

    def _adds_start(self, text: str) -> bool:
        start = self.tokenizer.bos_token
        return start is None or not text.startswith(start)

    def inputs(self, texts: Sequence[str], images: Sequence[Image.Image | None]) -> dict[str, Any]:
        """Rendered prompts as model inputs, padded on the left; all with an image or all without."""
        shown = [image for image in images if image is not None]
        if not shown:
            ids, mask = pad_left([self.tokenize_prompt(text) for text in texts], self.filler)
            return {"input_ids": ids, "attention_mask": mask}
        if len(shown) < len(images):
            raise UnpriorError("a batch must be all with images or all without")
        options = {"padding": True, "padding_side": "left", "add_special_tokens": self._adds_start(texts[0])}
        made = self.processor(
            text=list(texts),
            images=[[image] for image in shown] if self._nested else shown,
            return_tensors="pt",
            **options,
        )
        return {name: value for name, value in made.items() if name != "labels"}  # what training alone needs

    @contextmanager
    def remembering_images(self) -> Iterator[None]:
        """While this lasts, images that are shown again in the next prompts are not processed again."""
        own = self.processor.image_processor
        self.processor.image_processor = _RememberedImages(own)
        try:
            yield
        finally:
            self.processor.image_processor = own

    def _check_placeholders(self, query: Query, prompt: str) -> None:
        """At most one placeholder with an image, none without: otherwise the image would stand in another place."""
        if self.placeholder_text is None:
            return
        count = prompt.count(self.placeholder_text)
        if count > (query.image is not None):
            raise UnpriorError(
                f"the chat template renders {count} image placeholders ({self.placeholder_text}) for "
                f"{'one image' if query.image is not None else 'no image'}; correct chat_template.jinja in a local "
                f"copy of the model"
            )

    def _check_words(self, text: str) -> None:
        """A question must not hold what the model reads as something other than words: images, ends of turns."""
        found = next((token for token in self._reserved if token in text), None) or self._control_token(text)
        if found is not None:
            raise QueryRefusedError(
                f"the question contains {found}, which this model reads as a control token and not as words; write it "
                f"differently"
            )

    def _control_token(self, text: str) -> str | None:
        """A control token that the tokenizer finds though the text does not spell it: in another case or form."""
        read = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return next((self._reserved_tokens[token] for token in read if token in self._reserved_tokens), None)

    def _filler(self) -> int:
        """A token for padding, which is masked; processors refuse a batch when their tokenizer has none."""
        if self.tokenizer.pad_token_id is None:
            others = (self.tokenizer.eos_token, self.tokenizer.bos_token, self.tokenizer.unk_token)
            ordinary = (self.tokenizer.convert_ids_to_tokens(number) for number in range(len(self.tokenizer)))
            self.tokenizer.pad_token = next(
                token for token in (*others, *ordinary) if token is not None and token != self.placeholder_text
            )
        return int(self.tokenizer.pad_token_id)

    def _special_tokens(self) -> set[str]:
        """Everything that stands for something other than its letters."""
        known = {*self.tokenizer.all_special_tokens, *self.tokenizer.get_added_vocab()}
        return known if self.placeholder_text is None else {*known, self.placeholder_text}

    def _ending_tokens(self) -> list[int]:
        if self.end is None:
            raise UnpriorError(
                "the model has no token that ends an answer, so whole answers cannot be scored; name one as "
                "eos_token_id in generation_config.json of a local copy of the model"
            )
        return [self.end]

    def _continuation(self, prompt_text: str, prompt: list[int], candidate: str) -> list[int]:
        joint = self.tokenize(prompt_text + self._ending + candidate)
        return tokens_after(prompt, joint, candidate)


class _RememberedImages:
    """An image processor that keeps its last result."""

    def __init__(self, own: Any) -> None:
        self._own = own
        self._last: tuple[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __call__(self, images: Any = None, *arguments: Any, **options: Any) -> Any:
        asked = (_identities(images), repr(arguments), repr(sorted(options.items())))
        if self._last is None or self._last[0] != asked:
            self._last = (asked, self._own(images, *arguments, **options))
        return copy.copy(self._last[1])  # processors take away what they alone need


def _identities(images: Any) -> Any:
    return [_identities(each) for each in images] if isinstance(images, list | tuple) else id(images)


def _reserved_words(processor: Any) -> list[str]:
    """Special tokens, and what processor and tokenizer write for images, videos and sounds; longest first."""
    tokenizer = processor.tokenizer
    words = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    words |= {str(token) for token in tokenizer.all_special_tokens}
    for owner in (processor, tokenizer):
        named = {name for name in dir(owner) if _MEDIA.search(name) and name.endswith("_token")}
        words |= {value for name in named if isinstance(value := getattr(owner, name, None), str)}
    return sorted((word for word in words if not word.isalnum()), key=len, reverse=True)


def _special_tokens(tokenizer: Any) -> tuple[set[int], set[int]]:
    """Special tokens that mark thinking, or a part of such a mark, and all the others."""
    names = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    names |= {token: str(name) for token, name in tokenizer.added_tokens_decoder.items() if name.special}
    marks = [mark.lower() for tags in THINKING_TAGS for mark in tags]
    tags = {token for token, name in names.items() if name and any(name.lower() in mark for mark in marks)}
    return tags, set(names) - tags
