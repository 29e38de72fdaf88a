"""Images as a model sees them: opened safely, upright, in RGB."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from unprior._files import kind_of_file
from unprior.errors import UnpriorError

FORMATS = (
    *("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000"),
    *(["AVIF"] if find_spec("PIL.AvifImagePlugin") else []),  # of newer versions of Pillow
)
"""Kinds of images that are decoded. Others are refused, for Pillow starts another program for some, as for EPS."""
_MAX_PIXELS = 120_000_000
_MAX_BYTES = 1 << 30
"""Of an image file: more than an uncompressed image of that many pixels takes in 8 bits."""


class ImageError(UnpriorError):
    """An image that cannot be shown to a model, with the reason."""


def open_image(path: Path) -> Image.Image:
    """Read an image file: first frame, rotated as its camera says, transparency on white, RGB."""
    return decode_image(read_image_file(path), str(path))


def read_image_file(path: Path) -> bytes:
    """The bytes of an image file. A pipe would wait for ever and a device never end, so only regular files are read."""
    try:
        found = path.stat()
        if kind := kind_of_file(found.st_mode):
            raise ImageError(f"{path}: this is {kind}, not an image file")
        if found.st_size > _MAX_BYTES:
            raise ImageError(f"{path}: {found.st_size / 1e9:.1f} GB are too much for an image; make it smaller")
        return path.read_bytes()
    except ImageError:
        raise
    except FileNotFoundError:
        raise ImageError(f"{path}: no such image") from None
    except OSError as error:
        raise ImageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # a name that no file can have
        raise ImageError(f"{path}: no such image, the name is not valid ({error})") from None


def decode_image(content: bytes, name: str, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """Decode the bytes of an image file; ``name`` stands in the message when that fails. ``formats``: no others.

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
            image = Image.open(io.BytesIO(content), formats=formats)
            if image.width * image.height > _MAX_PIXELS:
                raise ImageError(f"{name}: {image.width}×{image.height} pixels are too many; make the image smaller")
            image.seek(0)
            upright = ImageOps.exif_transpose(image)
            return _to_rgb(upright, name)
    except ImageError:
        raise
    except Image.DecompressionBombError:
        raise ImageError(f"{name}: far too many pixels; make the image smaller") from None
    except UnidentifiedImageError:
        raise ImageError(f"{name}: not a readable image (of no known kind)") from None
    except Exception as error:  # Pillow's decoders raise nearly anything on broken data
        raise ImageError(f"{name}: not a readable image ({error})") from None


def _to_rgb(image: Image.Image, name: str) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = _to_grey(image, name)
    if "A" in image.getbands() or "transparency" in image.info:
        layered = image.convert("RGBA")
        canvas = Image.new("RGBA", layered.size, (255, 255, 255, 255))
        image = Image.alpha_composite(canvas, layered)
    return image.convert("RGB")


def _to_grey(image: Image.Image, name: str) -> Image.Image:
    """Grey of 16 or 32 bits in 8: the visible range is kept, and what has none is refused rather than made black."""
    values = np.asarray(image)
    low, high = float(values.min()), float(values.max())  # NaN if any pixel is
    if not np.isfinite([low, high]).all():
        raise ImageError(f"{name}: it has pixels that are not finite (NaN or infinity); convert it to 8 bits")
    if low < 0:
        raise ImageError(f"{name}: it has pixels below zero (down to {low:g}); convert it to 8 bits")
    top = 1.0 if image.mode == "F" and high <= 1 else max(high, 255.0)  # floats usually go from 0 to 1
    grey = np.empty(values.shape, dtype=np.uint8)
    for row, line in enumerate(values):  # line by line, for a large image in double precision is very large
        grey[row] = (line * (255.0 / top)).clip(0, 255)
    return Image.fromarray(grey)


def pixel_digest(image: Image.Image) -> str:
    """What tells one image from another by what it shows, whatever file it came in.

    >>> pixel_digest(Image.new("RGB", (30, 10))) == pixel_digest(Image.new("RGB", (10, 30)))
    False
    """
    return hashlib.sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()[:16]


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
