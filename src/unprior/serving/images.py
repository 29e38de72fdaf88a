"""Images in requests: of known kinds, of bounded size, checked before they are decoded."""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from dataclasses import dataclass

from PIL import Image

from unprior.images import ImageError, decode_image
from unprior.serving.errors import RequestError, refuse

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MIN_SIDE = 4
"""Of an image in pixels; what is smaller shows nothing."""
MAX_RATIO = 100
"""Of the sides of an image."""
URL_PATTERN = "^data:image/[A-Za-z0-9.+-]+;base64,[A-Za-z0-9+/]+={0,2}$"
"""For the published schema."""
_DATA_URL = re.compile(r"data:image/[A-Za-z0-9.+-]+;base64,")


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What an image may be."""

    max_pixels: int = 20_000_000
    max_bytes: int = 16 << 20


def read_data_url(url: str, limits: ImageLimits, param: str) -> Image.Image:
    """The image of a ``data:`` URL: first frame, rotated as its camera says, transparency on white, RGB."""
    head = _DATA_URL.match(url)
    if head is None:
        raise refuse(
            f"{param}: give the image as data:image/png;base64,… (PNG, JPEG, WEBP or GIF)", code="invalid_image",
            param=param,
        )  # fmt: skip
    try:
        content = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise refuse(f"{param}: the image is not valid base64", code="invalid_image", param=param) from None
    return read_image(content, limits, param)


def read_image(content: bytes, limits: ImageLimits, param: str) -> Image.Image:
    """Decode the bytes of an image."""
    if len(content) > limits.max_bytes:
        raise _wrong(param, f"the image has more than {limits.max_bytes:,} bytes; make it smaller")
    try:
        # Only the header is read here, and only by decoders of the kinds that are taken.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            width, height = Image.open(io.BytesIO(content), formats=FORMATS).size
    except Image.DecompressionBombError:
        raise _wrong(param, f"the image has more than {limits.max_pixels:,} pixels; make it smaller") from None
    except Exception:  # Pillow's decoders raise nearly anything on broken data
        raise _wrong(param, "not a readable PNG, JPEG, WEBP or GIF image") from None
    if width * height > limits.max_pixels:
        told = f"{width}×{height} pixels are more than {limits.max_pixels:,}; make the image smaller"
        raise _wrong(param, told)
    if min(width, height) < MIN_SIDE or max(width, height) > MAX_RATIO * min(width, height):
        raise _wrong(param, f"an image of {width}×{height} pixels shows nothing; give a larger or less narrow one")
    try:
        return decode_image(content, param, FORMATS)  # by the decoder whose sizes were checked
    except ImageError:  # its reason may name what no client should see, such as addresses in memory
        raise _wrong(param, "the image is damaged: its data cannot be decoded") from None


def _wrong(param: str, told: str) -> RequestError:
    return refuse(f"{param}: {told}", code="invalid_image", param=param)
