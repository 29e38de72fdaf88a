"""A served model whose server, or something in front of it, is wrong in one way: well-formed answers, wrong scores."""

from __future__ import annotations

import base64
import copy
import io
import json
import math
import threading
import time
from typing import Any

import numpy as np
from PIL import Image

from faulty_server import Answer
from replayed_vllm import ReplayedVllm

Body = dict[str, Any] | None
PNG = "data:image/png;base64,"


class InFront:
    """Passes requests on; what is asked, and what comes back, can be changed."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        return self._answer(path, body)


class Remembers(InFront):
    """Sound, and fast when the same is asked again."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._known: dict[str, tuple[int, Any]] = {}

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        asked = {name: value for name, value in (body or {}).items() if name != "cache_salt"}
        key = json.dumps([path, asked], sort_keys=True)
        if key not in self._known:
            self._known[key] = super().__call__(path, body)
        return copy.deepcopy(self._known[key])


class SwapsImages(InFront):
    """Every question is about the image of the question before."""

    last: dict[str, Any] | None = None

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        shown = _image_part(body)
        if shown is None:
            return super().__call__(path, body)
        asked, self.last = self.last or shown, copy.deepcopy(shown)
        return super().__call__(path, _with_image(body, asked))


class DropsImages(InFront):
    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        return super().__call__(path, body if _image_part(body) is None else _with_image(body, None))


class ResizesImages(InFront):
    """Images are made smaller on the way, and larger again."""

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        shown = _image_part(body)
        if shown is None:
            return super().__call__(path, body)
        image = Image.open(io.BytesIO(base64.b64decode(shown["image_url"]["url"].removeprefix(PNG))))
        smaller = image.resize((max(1, image.width // 3), max(1, image.height // 3))).resize(image.size)
        buffer = io.BytesIO()
        smaller.save(buffer, "PNG")
        address = PNG + base64.b64encode(buffer.getvalue()).decode()
        return super().__call__(path, _with_image(body, {"type": "image_url", "image_url": {"url": address}}))


class KeepsAnswers(InFront):
    """A cache that takes all images for the same one; a salt is a part of its key, as in vLLM."""

    salted = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._kept: dict[str, tuple[int, Any]] = {}

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        if _image_part(body) is None:
            return super().__call__(path, body)
        key = _with_image(body, {"type": "image_url"})
        if not self.salted:
            key.pop("cache_salt", None)
        written = json.dumps(key, sort_keys=True)
        if written not in self._kept:
            self._kept[written] = super().__call__(path, body)
        return copy.deepcopy(self._kept[written])


class KeepsAllAnswers(KeepsAnswers):
    """The same, in a proxy that knows nothing of salts."""

    salted = False


class ChangesScores(InFront):
    """Every log-probability goes through a function."""

    def change(self, value: float) -> float:
        raise NotImplementedError

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        status, content = super().__call__(path, body)
        logprobs = content["choices"][0]["logprobs"] if status == 200 and "choices" in content else None
        if logprobs is None:
            return status, content
        for entry in logprobs["content"]:
            for listed in entry["top_logprobs"]:
                listed["logprob"] = self.change(listed["logprob"])
        return status, content


class RoundsProbabilities(ChangesScores):
    """Two decimals, as some hubs write them."""

    def change(self, value: float) -> float:
        return math.log(max(round(math.exp(value), 2), 1e-10))


class RoundsLogarithms(ChangesScores):
    def change(self, value: float) -> float:
        return round(value, 2)


class HalfPrecision(ChangesScores):
    def change(self, value: float) -> float:
        return float(np.float16(value))


class DependsOnOthers(ChangesScores):
    """Questions that are answered at the same time disturb each other, if there are more than so many."""

    most = 1

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self._lock, self._in_flight, self._many = threading.Lock(), 0, threading.local()

    def __call__(self, path: str, body: Body) -> tuple[int, Any]:
        with self._lock:
            self._in_flight += 1
            self._many.now = self._in_flight > self.most
        time.sleep(0.005)  # so that those that are sent together meet
        try:
            return super().__call__(path, body)
        finally:
            with self._lock:
                self._in_flight -= 1

    def change(self, value: float) -> float:
        return value - 0.5 if self._many.now else value


class DependsOnMany(DependsOnOthers):
    most = 4


class SomewhatOff(ChangesScores):
    """As if the model ran in another precision."""

    def change(self, value: float) -> float:
        return value - 0.02


class OtherWeights(ChangesScores):
    def change(self, value: float) -> float:
        return 1.5 * value


class OtherTemplate(ReplayedVllm):
    """A header for questions without an image."""

    def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
        image, text = super()._render(body)
        return image, text if image is not None else "Today is 26 Jul 2024.\n" + text


class OpenThinking(ReplayedVllm):
    """Answers are to begin with a thought, whatever the template is told."""

    def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
        image, text = super()._render(body)
        return image, text + "<think>\n" if body.get("add_generation_prompt", True) else text


class OtherWords(ReplayedVllm):
    """The same other template with and without an image."""

    def _render(self, body: dict[str, Any]) -> tuple[Image.Image | None, str]:
        image, text = super()._render(body)
        return image, text.replace("USER", "HUMAN")


def _image_part(body: Body) -> dict[str, Any] | None:
    if not body or "messages" not in body:
        return None
    return next((part for part in body["messages"][0]["content"] if part["type"] == "image_url"), None)


def _with_image(body: Body, image: dict[str, Any] | None) -> dict[str, Any]:
    """The request with another image, or without."""
    changed = copy.deepcopy(body or {})
    content = changed["messages"][0]["content"]
    others = [part for part in content if part["type"] != "image_url"]
    changed["messages"][0]["content"] = others if image is None else [image, *others]
    return changed
