"""Images as a model sees them: opened safely, upright, in RGB."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from unprior.errors import UnpriorError

_MOST_PIXELS = 120_000_000


class ImageError(UnpriorError):
    """An image that cannot be shown to a model, with the reason."""


def open_image(path: Path) -> Image.Image:
    """Read an image file: first frame, rotated as its camera says, transparency on white, RGB."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ImageError(f"{path}: no such image") from None
    except OSError as error:
        raise ImageError(f"{path}: cannot be read ({error.strerror or error})") from None
    return decode_image(content, str(path))


def decode_image(content: bytes, name: str) -> Image.Image:
    """Decode the bytes of an image file; ``name`` stands in the message when that fails.

    >>> buffer = io.BytesIO()
    >>> Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(buffer, "PNG")
    >>> decode_image(buffer.getvalue(), "clear.png").getpixel((0, 0))
    (255, 255, 255)
    """
    if not content:
        raise ImageError(f"{name}: the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit follows
            image = Image.open(io.BytesIO(content))
            if image.width * image.height > _MOST_PIXELS:
                raise ImageError(f"{name}: {image.width}×{image.height} pixels are too many; make the image smaller")
            image.seek(0)
            upright = ImageOps.exif_transpose(image)
            return _to_rgb(upright)
    except ImageError:
        raise
    except Image.DecompressionBombError:
        raise ImageError(f"{name}: far too many pixels; make the image smaller") from None
    except UnidentifiedImageError:
        raise ImageError(f"{name}: not a readable image (of no known kind)") from None
    except Exception as error:  # Pillow's decoders raise nearly anything on broken data
        raise ImageError(f"{name}: not a readable image ({error})") from None


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":  # 16 and 32 bit grey: keep the visible range
        values = np.asarray(image, dtype=np.float64)
        top = max(float(values.max()), 255.0)
        image = Image.fromarray((values * (255.0 / top)).clip(0, 255).astype(np.uint8))
    if "A" in image.getbands() or "transparency" in image.info:
        layered = image.convert("RGBA")
        canvas = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        image = Image.alpha_composite(canvas, layered)
    return image.convert("RGB")


def resize(image: Image.Image, side: int | None) -> Image.Image:
    """A square of the given side (Lanczos), or the image as it is."""
    return image if side is None else image.resize((side, side), Image.Resampling.LANCZOS)


def blank(size: tuple[int, int], brightness: int) -> Image.Image:
    """A white (255) or black (0) image."""
    return Image.new("RGB", size, (brightness,) * 3)


def mean_image(images: Iterable[Image.Image], side: int) -> Image.Image:
    """Average of the pixels of many images, each brought to one square size.

    >>> mean_image([blank((4, 4), 0), blank((8, 2), 255)], 2).getpixel((0, 0))
    (128, 128, 128)
    """
    total, count = np.zeros((side, side, 3)), 0
    for image in images:
        total += np.asarray(resize(image, side), dtype=np.float64)
        count += 1
    if count == 0:
        raise UnpriorError("the mean image needs at least one image")
    return Image.fromarray(np.floor(total / count + 0.5).astype(np.uint8))
