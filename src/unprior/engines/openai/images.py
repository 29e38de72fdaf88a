"""Images in requests: encoded once, and inserted after the JSON is made."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

_PLACE = "\ufffc"  # "object replacement character"
_PLACE_IN_JSON = json.dumps(_PLACE).encode()


@dataclass(frozen=True, slots=True)
class Shown:
    """The image of a query, and who sees it: one server, which then has read it for all requests of the query."""

    image: bytes | None
    server: int
    in_full: bool = False
    """Past the server's cache of prompts."""


def encode_image(image: Image.Image | None) -> bytes | None:
    """An image as a JSON text; PNG, because the model must see the very pixels."""
    if image is None:
        return None
    return b'"data:image/png;base64,' + base64.b64encode(_png(image)) + b'"'


def _png(image: Image.Image) -> bytes:
    """Every line as its difference to the one above; Pillow tries five ways per line and takes four times as long."""
    if image.mode != "RGB":
        buffer = io.BytesIO()
        image.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()
    pixels = np.asarray(image).reshape(image.height, -1)
    lines = np.full((image.height, 1 + 3 * image.width), 2, dtype=np.uint8)  # 2 at the start means: difference
    lines[0, 1:] = pixels[0]
    np.subtract(pixels[1:], pixels[:-1], out=lines[1:, 1:])
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, 2, 0, 0, 0)  # 8 bits, RGB
    parts = ((b"IHDR", header), (b"IDAT", packer.compress(lines.data) + packer.flush()), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


def user_content(image: bytes | None, text: str) -> list[dict[str, Any]]:
    """What the user shows and says; the image's place is kept until :func:`write_body` fills it."""
    shown = [] if image is None else [{"type": "image_url", "image_url": {"url": _PLACE}}]
    return [*shown, {"type": "text", "text": text}]


def write_body(body: dict[str, Any], image: bytes | None) -> bytes:
    """The JSON text of a request; as the image comes first, no words that look like its place are taken for it.

    >>> image = b'"data:..."'
    >>> write_body({"content": user_content(image, "Blue?")}, image)
    b'{"content": [{"type": "image_url", "image_url": {"url": "data:..."}}, {"type": "text", "text": "Blue?"}]}'
    """
    content = json.dumps(body).encode()
    return content if image is None else content.replace(_PLACE_IN_JSON, image, 1)
