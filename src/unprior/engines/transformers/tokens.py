"""From questions to tokens: chat template, shared prefix, candidate continuations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from unprior.engines.candidate_tree import tokens_after
from unprior.engines.probe import probe_texts, prompt_digest
from unprior.engines.protocol import Query
from unprior.engines.transformers.chat_template import ChatTemplate, check_prompts
from unprior.errors import UnpriorError
from unprior.prompts import THINKING_TAGS, PromptLayout, opened_block


@dataclass(frozen=True)
class PromptTokens:
    """One query as text and tokens; images are a single placeholder token here."""

    image: Image.Image | None
    original_text: str
    """The rendered prompt that the original answer continues."""
    original: list[int]
    scoring_text: str
    """The rendered prompt that candidates continue."""
    scoring: list[int]
    candidates: list[list[int]]
    shared: int
    """Tokens that both prompts have in common, from the start."""
    after_image: int
    """Tokens of the original prompt behind the image, all of it without an image, 0 if that cannot be told."""

    @property
    def end(self) -> int:
        """Tokens at the end of the original prompt that the scoring prompt does not have."""
        return len(self.original) - self.shared


class PromptEncoder:
    """Renders and tokenises prompts the way the model's own processor does."""

    def __init__(self, processor: Any, layout: PromptLayout) -> None:
        """Refuse a chat template whose prompts cannot be scored."""
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.layout = layout
        self.template = ChatTemplate(processor)
        name = getattr(processor, "image_token", None)
        self.placeholder_text = None if name is None else str(name)
        self.placeholder = None if name is None else self.tokenizer.convert_tokens_to_ids(str(name))
        self.filler = self._filler()
        check_prompts(self.render, layout, self._special_tokens())
        # Some templates of reasoning models open the thinking block themselves; what follows is not the answer yet.
        self.opened_block = opened_block(self.render(False, "?"))
        self._tag_tokens, self._hidden_tokens = _special_tokens(self.tokenizer)

    def encode(self, query: Query) -> PromptTokens:
        """Tokenise both prompts of a query and its candidates."""
        original_text = self.render(query.image is not None, query.text)
        scoring_text = self.render(query.image is not None, query.text + self.layout.scoring_suffix)
        original, scoring = self.tokenize(original_text), self.tokenize(scoring_text)
        self._check_placeholders(query, original)
        shared = next(
            (index for index, pair in enumerate(zip(original, scoring, strict=False)) if pair[0] != pair[1]),
            min(len(original), len(scoring)),
        )
        # At least one token must remain to be read after the shared part.
        shared = min(shared, len(original) - 1, len(scoring) - 1)
        candidates = [self._continuation(scoring_text, scoring, text) for text in query.candidates]
        after_image = len(original) if query.image is None else self._after_image(original)
        return PromptTokens(
            query.image, original_text, original, scoring_text, scoring, candidates, shared, after_image
        )

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
        """What a model wrote; a thinking block that the template has opened belongs to it.

        Some models mark their thinking with special tokens, which must not disappear with the others.
        """
        text: str
        if self._tag_tokens.isdisjoint(tokens):
            text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        else:
            shown = [token for token in tokens if token not in self._hidden_tokens]
            text = self.tokenizer.decode(shown, skip_special_tokens=False)
        return self.opened_block + text

    def tokenize(self, text: str) -> list[int]:
        """Tokens of rendered text; a start token is added only where the template has none."""
        start = self.tokenizer.bos_token
        add = start is None or not text.startswith(start)
        ids: list[int] = self.tokenizer(text, add_special_tokens=add)["input_ids"]
        return ids

    def with_images(self, texts: Sequence[str], images: Sequence[Image.Image]) -> dict[str, Any]:
        """Rendered prompts with their images as model inputs, padded on the left."""
        start = self.tokenizer.bos_token
        add = start is None or not texts[0].startswith(start)
        return dict(
            self.processor(
                text=list(texts),
                images=[[image] for image in images],
                padding=True,
                padding_side="left",
                add_special_tokens=add,
                return_tensors="pt",
            )
        )

    def _check_placeholders(self, query: Query, tokens: list[int]) -> None:
        """One placeholder with an image, none without: otherwise the image would stand in another place, or nowhere."""
        if self.placeholder is None or tokens.count(self.placeholder) == (query.image is not None):
            return
        if str(self.placeholder_text) in query.text:
            raise UnpriorError("the question contains the model's own image placeholder; write it differently")
        raise UnpriorError(
            f"the chat template renders {tokens.count(self.placeholder)} image placeholders "
            f"({self.placeholder_text}) for {'one image' if query.image is not None else 'no image'}; correct "
            f"chat_template.jinja in a local copy of the model"
        )

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

    def _after_image(self, tokens: list[int]) -> int:
        return tokens[::-1].index(self.placeholder) if self.placeholder in tokens else 0

    def _continuation(self, prompt_text: str, prompt: list[int], candidate: str) -> list[int]:
        joint = self.tokenize(prompt_text + candidate)
        return tokens_after(prompt, joint, candidate)


def _special_tokens(tokenizer: Any) -> tuple[set[int], set[int]]:
    """Special tokens that mark thinking, or a part of such a mark, and all the others."""
    names = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    names |= {token: str(name) for token, name in tokenizer.added_tokens_decoder.items() if name.special}
    marks = [mark.lower() for tags in THINKING_TAGS for mark in tags]
    tags = {token for token, name in names.items() if name and any(name.lower() in mark for mark in marks)}
    return tags, set(names) - tags
