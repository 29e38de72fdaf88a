"""Measuring the sizes of a served model's prompts and replies with a few questions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from unprior.engines.candidate_tree import branch_points
from unprior.engines.openai.client import HttpClient, WrongAnswerError
from unprior.engines.openai.images import encode_image, user_content, write_body
from unprior.engines.openai.replies import MAX_NAMED_TOKENS, named_tokens, prompt_tokens, written_text
from unprior.engines.openai.server import CHAT, Served, naming, question
from unprior.engines.openai.sizes import ANSWER_HEAD, REQUEST_HEAD, CandidateTree, Sizes
from unprior.engines.openai.tokens import ServerTokenizer
from unprior.engines.protocol import Query
from unprior.errors import UnpriorError
from unprior.images import blank


class SizesProbe:
    """Asks a server a few questions and looks at the sizes."""

    def __init__(
        self, client: HttpClient, tokenizer: ServerTokenizer, served: Served, suffix: str, new_tokens: int
    ) -> None:
        """``suffix``: what scoring adds to a text; ``new_tokens``: the longest original answer."""
        if served.top_k is not None or not served.tells_prompt:
            raise UnpriorError("an estimate needs a server that gives exact scores: vLLM 0.26 or newer")
        self.client, self.tokenizer, self.served = client, tokenizer, served
        self.suffix, self.new_tokens = suffix, new_tokens

    async def sizes(self, queries: Sequence[Query], texts: Sequence[str]) -> Sizes:
        """Ask the queries, which have images, and have further texts tokenised."""
        if not queries:
            raise UnpriorError("an estimate needs at least one question with an image")
        lengths, counts, tails = [], [], []
        for text in dict.fromkeys([*texts, *(query.text for query in queries)]):
            plain, scoring = await self.tokenizer.chat(text), await self.tokenizer.chat(text + self.suffix)
            lengths += [len(text), len(text + self.suffix)]
            counts += [len(plain), len(scoring)]
            tails.append(len(plain) - _alike(plain, scoring))
        slope, base = np.polyfit(lengths, counts, 1)
        first: dict[tuple[str, ...], list[int]] = {}
        trees: dict[tuple[str, ...], CandidateTree] = {}
        for query in queries:
            if query.candidates not in trees:
                before = self.client.requests
                prompt = await self.tokenizer.prompt(query.text + self.suffix)
                encoded = await self.tokenizer.encode(prompt, query.candidates)
                trees[query.candidates] = CandidateTree.from_tokens(encoded.candidates, self.client.requests - before)
                following = branch_points(encoded.candidates)[()]
                first[query.candidates] = [int(token) for token in following[:MAX_NAMED_TOKENS]]
        found = [await self._with_image(query, first[query.candidates]) for query in queries]
        mean: dict[str, Any] = {name: float(np.mean([sizes[name] for sizes in found])) for name in found[0]}
        mean |= {"text_tokens": float(base), "tokens_per_character": float(slope), "tail_tokens": float(np.mean(tails))}
        return Sizes(trees=trees, **mean)

    async def _with_image(self, query: Query, asked: list[int]) -> dict[str, float]:
        if query.image is None:
            raise UnpriorError("an estimate needs questions with an image")
        text = query.text + self.suffix
        bare = await self.tokenizer.chat(text)

        def with_scores(answer: Any) -> Any:
            named_tokens(answer, asked)
            return answer

        settings = self.served.extras | {"max_tokens": self.new_tokens}
        image, white = (encode_image(shown) for shown in (query.image, blank(query.image.size, 255)))
        body = question(self.served.model, user_content(image, query.text)) | settings
        answer = await self.client.post(CHAT, body, _counted, image=image)
        body = question(self.served.model, user_content(image, text)) | self.served.extras | naming(asked)
        scored = await self.client.post(CHAT, body, with_scores, image=image)
        image_bytes, sent = _bytes_of_image(image), len(write_body(body, image))
        entries, ids = scored["choices"][0]["logprobs"]["content"][0]["top_logprobs"], prompt_tokens(scored) or bare
        lead, image_tokens = _alike(ids, bare), len(ids) - len(bare)
        return {
            "image_tokens": image_tokens,
            "lead_tokens": lead,
            "answer_tokens": answer["usage"]["completion_tokens"],
            "answer_characters": len(written_text(answer)),
            "image_bytes": image_bytes,
            "blank_bytes": _bytes_of_image(white),
            "image_id_bytes": _received(ids[lead : lead + image_tokens]) / max(image_tokens, 1),
            "text_id_bytes": _received(bare) / len(bare),
            "request_bytes": REQUEST_HEAD + sent - image_bytes - _sent(text) - _sent(asked),
            "answer_bytes": ANSWER_HEAD + _received(answer),
            "scored_bytes": ANSWER_HEAD + _received(scored) - _received(ids) - _received(entries),
            "named_bytes": _received(entries) / len(entries),
        }


def _counted(answer: Any) -> Any:
    """An original answer that tells its number of tokens."""
    written_text(answer)
    usage = answer.get("usage")
    if not isinstance(usage, dict) or not isinstance(usage.get("completion_tokens"), int):
        raise WrongAnswerError("it does not tell how many tokens it has")
    return answer


def _alike(first: Sequence[int], second: Sequence[int]) -> int:
    """Tokens that two prompts begin with in common."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _bytes_of_image(image: bytes | None) -> int:
    """What an image adds to a request."""
    return len(write_body(user_content(image, "")[0], image))


def _sent(content: Any) -> int:
    return len(json.dumps(content))


def _received(content: Any) -> int:
    return len(json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())
