"""From questions to tokens: chat template, shared prefix, candidate continuations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from unprior.engines.prompts import THINKING_TAGS, PromptLayout, opened_block
from unprior.engines.protocol import Query
from unprior.errors import UnpriorError


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
        """Refuse a processor without a chat template: prompts would be guesswork."""
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.layout = layout
        if not (getattr(processor, "chat_template", None) or getattr(self.tokenizer, "chat_template", None)):
            raise UnpriorError("the model has no chat template; prompts cannot be laid out as it was trained")
        name = getattr(processor, "image_token", None)
        self.placeholder = None if name is None else self.tokenizer.convert_tokens_to_ids(str(name))
        # Some templates of reasoning models open the thinking block themselves; what follows is not the answer yet.
        self.opened_block = opened_block(self.render(False, "?"))
        self._tag_tokens, self._hidden_tokens = _special_tokens(self.tokenizer)
        self.filler = self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else 0

    def encode(self, query: Query) -> PromptTokens:
        """Tokenise both prompts of a query and its candidates."""
        original_text = self.render(query.image is not None, query.text)
        scoring_text = self.render(query.image is not None, query.text + self.layout.scoring_suffix)
        original, scoring = self.tokenize(original_text), self.tokenize(scoring_text)
        if self.placeholder is not None and original.count(self.placeholder) != (query.image is not None):
            raise UnpriorError("the question contains the model's own image placeholder; write it differently")
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
        content: list[dict[str, str]] = [{"type": "image"}] if with_image else []
        content.append({"type": "text", "text": text})
        messages = [{"role": "user", "content": content}]
        rendered: str = self.processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return rendered

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

    def _after_image(self, tokens: list[int]) -> int:
        return tokens[::-1].index(self.placeholder) if self.placeholder in tokens else 0

    def _continuation(self, prompt_text: str, prompt: list[int], candidate: str) -> list[int]:
        joint = self.tokenize(prompt_text + candidate)
        if joint[: len(prompt)] != prompt:
            raise UnpriorError(
                f"candidate {candidate!r} changes how the end of the prompt is tokenised; choose another "
                f"continuation in the prompt layout"
            )
        if len(joint) == len(prompt):
            raise UnpriorError(f"candidate {candidate!r} tokenises to nothing")
        return joint[len(prompt) :]


def _special_tokens(tokenizer: Any) -> tuple[set[int], set[int]]:
    """Special tokens that mark thinking, or a part of such a mark, and all the others."""
    names = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True))
    names |= {token: str(name) for token, name in tokenizer.added_tokens_decoder.items() if name.special}
    marks = [mark.lower() for tags in THINKING_TAGS for mark in tags]
    tags = {token for token, name in names.items() if name and any(name.lower() in mark for mark in marks)}
    return tags, set(names) - tags
