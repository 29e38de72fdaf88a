"""Pictures in requests: megabytes that are encoded once, and never pass through the JSON encoder."""

from __future__ import annotations

import base64
import io
import json
import zlib
from typing import Any

from PIL import Image

_PLACE = "\ufffc"  # "object replacement character"
_PLACE_IN_JSON = json.dumps(_PLACE).encode()


def encode_picture(image: Image.Image | None) -> bytes | None:
    """A picture as a JSON text; PNG, because the model must see the very pixels."""
    if image is None:
        return None
    buffer = io.BytesIO()
    # Looking only for runs takes two thirds of the time, and photos even become smaller.
    image.save(buffer, "PNG", compress_level=1, compress_type=zlib.Z_RLE)
    return b'"data:image/png;base64,' + base64.b64encode(buffer.getvalue()) + b'"'


def user_content(picture: bytes | None, text: str) -> list[dict[str, Any]]:
    """What the user shows and says; the picture's place is kept until :func:`write_body` fills it."""
    shown = [] if picture is None else [{"type": "image_url", "image_url": {"url": _PLACE}}]
    return [*shown, {"type": "text", "text": text}]


def write_body(body: dict[str, Any], picture: bytes | None) -> bytes:
    """The JSON text of a request; as the picture comes first, no words that look like its place are taken for it.

    >>> picture = b'"data:..."'
    >>> write_body({"content": user_content(picture, "Blue?")}, picture)
    b'{"content": [{"type": "image_url", "image_url": {"url": "data:..."}}, {"type": "text", "text": "Blue?"}]}'
    """
    content = json.dumps(body).encode()
    return content if picture is None else content.replace(_PLACE_IN_JSON, picture, 1)
