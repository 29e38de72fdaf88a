from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from unprior.engines.openai.images import encode_image, user_content, write_body


def noise() -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (31, 17, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    "image",
    [noise(), noise().crop((0, 0, 1, 1)), Image.new("RGB", (300, 200), (1, 2, 3)), noise().convert("RGBA")],
)
def test_the_server_gets_the_very_pixels(image: Image.Image) -> None:
    encoded = encode_image(image)
    sent = json.loads(write_body({"model": "m", "content": user_content(encoded, "Blue?")}, encoded))
    url = sent["content"][0]["image_url"]["url"]
    kind, _, content = url.partition(",")
    assert kind == "data:image/png;base64"
    received = Image.open(io.BytesIO(base64.b64decode(content)))
    np.testing.assert_array_equal(np.asarray(received), np.asarray(image))
    assert sent["content"][1] == {"type": "text", "text": "Blue?"}


@pytest.mark.parametrize("image", [noise(), None])
@pytest.mark.parametrize("text", ["\ufffc", '"\ufffc"', "\\ufffc"])
def test_words_that_look_like_the_place_of_an_image_stay(image: Image.Image | None, text: str) -> None:
    encoded = encode_image(image)
    *shown, said = json.loads(write_body({"content": user_content(encoded, text)}, encoded))["content"]
    assert said["text"] == text
    assert len(shown) == (image is not None)
    assert all(part["image_url"]["url"].startswith("data:") for part in shown)
