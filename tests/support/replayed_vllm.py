"""A vLLM server's answers, computed by the transformers engine: what a real one says, without starting one."""

from __future__ import annotations

import base64
import io
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
from PIL import Image

from unprior.engines.transformers.engine import TransformersEngine

MODEL = "tiny"
_computed: WeakKeyDictionary[TransformersEngine, dict[Hashable, Any]] = WeakKeyDictionary()
"""What was computed for any server in front of an engine: the same question has the same answer."""
Value = TypeVar("Value")


class ReplayedVllm:
    """Answers the requests of the HTTP engine; parts of the protocol can be taken away.

    ``named``: any token can be asked for; ``tokenizes``: tokens have numbers; ``logprobs``: there are any;
    ``tells_prompt``: answers repeat the prompt's tokens; ``parts``: chat templates get texts as lists of parts, and a
    template that fails is answered by the status ``failing``; ``processed``: log-probabilities
    are those after the rule which tokens may be written; ``replies_as``: what replies call the model; ``own_end``: the
    tokenizer's end token is that of the model, otherwise generation stops there and vLLM's beam search does not;
    ``chooses``: one of several texts can be asked for.
    """

    def __init__(
        self,
        engine: TransformersEngine,
        *,
        named: bool = True,
        tokenizes: bool = True,
        logprobs: bool = True,
        tells_prompt: bool = True,
        version: str = "0.32.0",
        parts: bool = False,
        failing: int = 400,
        processed: bool = False,
        replies_as: str | None = MODEL,
        own_end: bool = True,
        chooses: bool = True,
    ) -> None:
        self.engine, self.named, self.tokenizes, self.logprobs = engine, named, tokenizes, logprobs
        self.tells_prompt, self.version, self.parts, self.failing = tells_prompt, version, parts, failing
        self.processed, self.replies_as, self.own_end, self.chooses = processed, replies_as, own_end, chooses
        self._lock = threading.Lock()

    def __call__(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        known = {"/v1/models": self._models, "/v1/chat/completions": self._complete}
        if self.tokenizes:
            known |= {
                "/version": lambda _: {"version": self.version},
                "/tokenize": self._tokenize,
                "/detokenize": lambda asked: {"prompt": self.engine.encoder.tokenizer.decode(asked["tokens"])},
            }
        if path not in known:
            return 404, {"detail": "Not Found"}
        with self._lock:
            try:
                return 200, known[path](body or {})
            except TypeError as error:  # as a template raises it that adds a list to a text
                return self.failing, {"error": {"message": str(error)}}

    def _models(self, _: dict[str, Any]) -> dict[str, Any]:
        told = {"owned_by": "vllm", "root": "folder/tiny", "max_model_len": 512} if self.tokenizes else {}
        return {"data": [{"id": MODEL, **told}]}

    def _tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = self._tokens(body["prompt"] if "prompt" in body else self._render(body)[1], body)
        return {"count": len(tokens), "tokens": tokens}

    def _tokens(self, text: str, body: dict[str, Any]) -> list[int]:
        if not self.tokenizes:  # such servers see to the start token themselves
            return self.engine.encoder.tokenize(text)
        tokenizer = self.engine.encoder.tokenizer
        tokens: list[int] = tokenizer(text, add_special_tokens=body.get("add_special_tokens", False))["input_ids"]
        return tokens

    def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
        image, messages = None, []
        for message in body["messages"]:
            content = message["content"]
            if isinstance(content, list):
                for part in content:
                    if part["type"] == "image_url":
                        encoded = part["image_url"]["url"].removeprefix("data:image/png;base64,")
                        image = Image.open(io.BytesIO(base64.b64decode(encoded)))
                content = [{"type": "image"} if part["type"] == "image_url" else part for part in content]
            elif self.parts:
                content = [{"type": "text", "text": content}]
            messages.append({"role": message["role"], "content": content})
        processor = self.engine.encoder.processor
        settings = body.get("chat_template_kwargs", {})  # vLLM, too, passes on those that the template mentions
        text = processor.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=body.get("continue_final_message", False),
            **{name: value for name, value in settings.items() if name in processor.chat_template},
        )
        return image, text

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        if body.get("use_beam_search"):
            answer = self._beams(body)
        elif "structured_outputs" in body:
            answer = self._chosen(body)
        elif body["max_tokens"] == 1 or {"allowed_token_ids", "logprob_token_ids"} & set(body):
            answer = self._scored(body)
        else:
            answer = self._original(body)
        return answer if self.replies_as is None else answer | {"model": self.replies_as}

    def _original(self, body: dict[str, Any]) -> dict[str, Any]:
        engine, (image, prompt) = self.engine, self._render(body)
        asked = body["messages"][0]["content"][-1]["text"]
        key = ("answer", engine.max_new_tokens, frozenset(engine.stop_tokens), engine.level.name, _seen(image), prompt)
        text = self._once((*key, asked), lambda: engine.original_answer(image, asked))
        written = self.engine.encoder.tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens = None if image else self._tokens(prompt, body)
        inputs = self._once(("inputs", _seen(image), prompt), lambda: self._inputs(image, prompt, tokens))
        choices = [{"message": {"content": text}, "logprobs": None}]
        return {"choices": choices, "usage": _usage(inputs["input_ids"].numel(), len(written) + 1)}

    def _scored(self, body: dict[str, Any]) -> dict[str, Any]:
        """Tokens written greedily; log-probabilities are those before the rule which tokens may be written."""
        tokenizer, numbers = self.engine.encoder.tokenizer, body.get("return_tokens_as_token_ids", False)
        written: list[int] = []
        content: list[dict[str, Any]] = []
        prompt: list[int] = []
        for _ in range(body["max_tokens"]):
            distribution, prompt = self._distribution(body, written)
            allowed = body.get("allowed_token_ids", list(range(len(distribution))))
            best = allowed[int(distribution[allowed].argmax())]
            if self.processed:
                ruled = torch.full_like(distribution, -9999.0)
                ruled[allowed] = torch.log_softmax(distribution[allowed], dim=-1)
                distribution = ruled
            if self.named and "logprob_token_ids" in body:
                listed = list(dict.fromkeys([best, *body["logprob_token_ids"]]))
            else:
                listed = distribution.topk(body.get("top_logprobs", 0)).indices.tolist()
            names = {token: f"token_id:{token}" if numbers else tokenizer.decode([token]) for token in [best, *listed]}
            told = {token: {"token": name, "logprob": float(distribution[token])} for token, name in names.items()}
            content.append(told[best] | {"top_logprobs": [told[token] for token in listed]})
            written.append(best)
            if best in self.engine.stop_tokens and not body.get("ignore_eos"):
                break
        logprobs = {"content": content} if self.logprobs else None
        return self._told(body, prompt, [self._choice(body, written) | {"logprobs": logprobs}], len(written))

    def _choice(self, body: dict[str, Any], written: list[int]) -> dict[str, Any]:
        """What vLLM tells of tokens that were written one after the other."""
        text = self.engine.encoder.tokenizer.decode(written, skip_special_tokens=True)
        stopped = bool(written) and written[-1] in self.engine.stop_tokens
        numbers = {"token_ids": written} if self.tells_prompt and body.get("return_token_ids") else {}
        return {
            "message": {"content": text},
            "finish_reason": "stop" if stopped else "length",
            "stop_reason": written[-1] if stopped and not self.own_end else None,
            **numbers,
        }

    def _told(
        self, body: dict[str, Any], prompt: list[int], choices: list[dict[str, Any]], written: int
    ) -> dict[str, Any]:
        tells = self.logprobs and self.tells_prompt and body.get("return_token_ids")
        return {"choices": choices, "usage": _usage(len(prompt), written)} | (
            {"prompt_token_ids": prompt} if tells else {}
        )

    def _chosen(self, body: dict[str, Any]) -> dict[str, Any]:
        """One of the texts that may be written, here the first, and the end."""
        if not self.chooses:
            raise TypeError("structured outputs are not supported")
        tokenizer = self.engine.encoder.tokenizer
        text = tokenizer(body["structured_outputs"]["choice"][0], add_special_tokens=False)["input_ids"]
        written = [*text, min(self.engine.stop_tokens)]
        return self._told(body, self._distribution(body, [])[1], [self._choice(body, written)], len(written))

    def _beams(self, body: dict[str, Any]) -> dict[str, Any]:
        """vLLM's own search: all steps are taken, and only the tokenizer's end token ends a beam."""
        ends = self.engine.stop_tokens if self.own_end else set()
        prompt = self._distribution(body, [])[1]
        running: list[tuple[float, list[int]]] = [(0.0, [])]
        ended: list[tuple[float, list[int], int | None]] = []
        for _ in range(body["max_tokens"]):
            longer = []
            for score, tokens in running:
                best = self._distribution(body, tokens)[0].topk(2 * body["n"])
                for value, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                    if token in ends:
                        ended.append((score + value, tokens, token))
                    else:
                        longer.append((score + value, [*tokens, token]))
            running = sorted(longer, key=lambda beam: -beam[0])[: body["n"]]
        every = [*ended, *((score, tokens, None) for score, tokens in running)]
        # Other requests divide by the length.
        every = sorted(every, key=lambda beam: -beam[0] / len([*prompt, *beam[1]]) ** body.get("length_penalty", 1.0))
        choices = [
            self._choice(body, tokens) | {"finish_reason": "length" if end is None else "stop", "stop_reason": end}
            for _, tokens, end in every[: body["n"]]
        ]
        return self._told(body, prompt, choices, sum(len(tokens) for _, tokens, _ in every[: body["n"]]))

    def _distribution(self, body: dict[str, Any], written: list[int]) -> tuple[torch.Tensor, list[int]]:
        image, text = self._render(body)
        tokens = None if image else self._tokens(text, body)
        key = ("distribution", _seen(image), text, tuple(tokens or ()), tuple(written))
        return self._once(key, lambda: self._read(image, text, tokens, written))

    def _read(
        self, image: Image.Image | None, text: str, tokens: list[int] | None, written: list[int]
    ) -> tuple[torch.Tensor, list[int]]:
        inputs = self._inputs(image, text, tokens)
        prompt: list[int] = inputs["input_ids"][0].tolist()
        if written:
            more = torch.tensor([written])
            inputs["input_ids"] = torch.cat([inputs["input_ids"], more], dim=1)
            inputs["attention_mask"] = torch.cat([inputs["attention_mask"], torch.ones_like(more)], dim=1)
        logits = self.engine.reader.read(inputs, keep=1).logits[0, -1]
        return torch.log_softmax(logits, dim=-1), prompt

    def _inputs(self, image: Image.Image | None, text: str, tokens: list[int] | None) -> dict[str, Any]:
        if image is not None:
            inputs: dict[str, Any] = self.engine.encoder.inputs([text], [image])
            return inputs
        ids = torch.tensor([tokens])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def _once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        known = _computed.setdefault(self.engine, {})
        if key not in known:
            known[key] = compute()
        value: Value = known[key]
        return value


def _usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written}


def _seen(image: Image.Image | None) -> Hashable:
    return image and (image.mode, image.size, image.tobytes())
