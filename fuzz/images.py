"""Image files: ``open_image`` and ``decode_image``."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from PIL import Image

from fuzz.case import Case, Target, require
from fuzz.mutate import changed_bytes
from unprior import UnpriorError
from unprior.images import decode_image, open_image

_SIZE = (23, 17)


def make(folder: Path) -> Target:
    """Encode one image in every way there is."""
    return _Images().run


class _Images:
    def __init__(self) -> None:
        generator = np.random.default_rng(0)
        self.pixels = generator.integers(0, 256, (_SIZE[1], _SIZE[0], 3), dtype=np.uint8)
        self.files = dict(_encoded(Image.fromarray(self.pixels)))

    def run(self, case: Case) -> bool:
        random = case.random
        kind = random.choice(("bytes", "bytes", "bytes", "header", "neutral", "not finite", "place"))
        if kind == "place":
            return _strange_place(case, self.files["RGB.png"])
        if kind == "neutral":
            return self._neutral(case)
        if kind == "not finite":
            return self._not_finite(case)
        name = random.choice(list(self.files))
        case.note(f"{kind}, {name}")
        content = self.files[name]
        content = _other_header(random, content) if kind == "header" else changed_bytes(random, content)
        path = case.write(name, content)
        image = open_image(path)
        _sensible(image, content)
        again = decode_image(path.read_bytes(), name)
        require(image.size == again.size and image.tobytes() == again.tobytes(), "decoded twice, the pixels differ")
        return True

    def _neutral(self, case: Case) -> bool:
        """A lossless file in another dress has the same pixels."""
        random = case.random
        sink = io.BytesIO()
        image = Image.fromarray(self.pixels)
        dresses: list[tuple[str, dict[str, Any]]] = [
                ("PNG", {"compress_level": random.randrange(10)}), ("PNG", {"optimize": True}), ("BMP", {}),
                ("PPM", {}),
                ("TIFF", {"compression": random.choice((None, "tiff_lzw", "tiff_deflate", "packbits"))}),
                ("WEBP", {"lossless": True}), ("TGA", {}), ("GIF", {}),
        ]  # fmt: skip
        name, options = random.choice(dresses)
        case.note(f"neutral, {name} {options}")
        if name == "GIF":
            image = image.quantize(256)
        image.save(sink, name, **options)
        content = sink.getvalue()
        if name == "PNG" and random.random() < 0.7:
            content = _with_chunk(
                content, random.choice((b"tEXt", b"zzZz", b"tIME")), random.randbytes(random.randrange(40))
            )
        content += random.choice((b"", b"", b"\x00" * 9, b"trailing")) if name in ("PNG", "BMP", "WEBP") else b""
        found = open_image(case.write(f"image.{random.choice((name.lower(), 'bin'))}", content))
        require(found.tobytes() == image.convert("RGB").tobytes(), f"the same image as {name} has other pixels")
        return True

    def _not_finite(self, case: Case) -> bool:
        """An image with values that are no numbers is refused; one of ordinary size is not made black by it."""
        random = case.random
        values = self.pixels[:, :, 0].astype(np.float32)
        bad = random.choice((np.nan, np.inf, -np.inf))
        values[random.randrange(_SIZE[1]), random.randrange(_SIZE[0])] = bad
        sink = io.BytesIO()
        Image.fromarray(values).save(sink, "TIFF")
        case.note(f"a TIFF with {bad}")
        try:
            open_image(case.write("image.tiff", sink.getvalue()))
        except UnpriorError:
            return False
        require(False, "an image with values that are not finite is accepted")
        return True


def _encoded(image: Image.Image) -> list[tuple[str, bytes]]:
    modes = ("RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "YCbCr", "LAB", "I;16", "I", "F")
    files = []
    for kind in (
        "PNG",
        "JPEG",
        "GIF",
        "TIFF",
        "BMP",
        "WEBP",
        "PPM",
        "TGA",
        "ICO",
        "JPEG2000",
        "AVIF",
        "PCX",
        "DDS",
        "ICNS",
    ):
        for mode in modes:
            sink = io.BytesIO()
            try:
                converted = image.convert("L").convert(mode) if mode in ("I", "F", "I;16") else image.convert(mode)
                more = (
                    {"save_all": True, "append_images": [converted.rotate(90)]}
                    if kind in ("GIF", "TIFF", "WEBP")
                    else {}
                )
                converted.save(sink, kind, **more)
            except (OSError, ValueError, KeyError, SystemError):
                continue
            files.append((f"{mode.replace(';', '')}.{kind.lower()}", sink.getvalue()))
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        sink = io.BytesIO()
        image.save(sink, "JPEG", exif=exif)
        files.append((f"turned-{turn}.jpeg", sink.getvalue()))
    sink = io.BytesIO()
    image.save(sink, "PNG", transparency=(0, 0, 0))
    return [*files, ("transparent.png", sink.getvalue())]


def _other_header(random: Random, content: bytes) -> bytes:
    """Another width, height or depth; checksums are right, so that only sense can refuse it."""
    size = random.choice((0, 1, 7, 24, 255, 5000, 30_000, 65_535, 2**31 - 1))
    if content.startswith(b"\x89PNG"):
        header = bytearray(content[16:29])
        place = random.choice((0, 4, 8, 9, 12))
        if place < 8:
            header[place : place + 4] = struct.pack(">I", size)
        else:
            header[place] = random.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))
        return content[:16] + bytes(header) + struct.pack(">I", zlib.crc32(b"IHDR" + bytes(header))) + content[33:]
    data = bytearray(content)
    for little in (True, False):  # the size, wherever it stands in the first bytes
        for length in (2, 4):
            needle = _SIZE[0].to_bytes(length, "little" if little else "big")
            place = data.find(needle, 0, 400)
            if place >= 0 and random.random() < 0.5:
                data[place : place + length] = (size % (1 << 8 * length)).to_bytes(
                    length, "little" if little else "big"
                )
                return bytes(data)
    return changed_bytes(random, bytes(data[:200])) + bytes(data[200:])


def _sensible(image: Image.Image, content: bytes) -> None:
    require(image.mode == "RGB", f"the mode is {image.mode}")
    with Image.open(io.BytesIO(content)) as header:
        declared = header.size
    require(image.size in (declared, declared[::-1]), f"the size is {image.size}, the file says {declared}")
    require(len(image.tobytes()) == 3 * image.width * image.height, "pixels are missing")


def _with_chunk(content: bytes, name: bytes, data: bytes) -> bytes:
    """A PNG with one more chunk behind its header."""
    chunk = struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return content[:33] + chunk + content[33:]


def _strange_place(case: Case, content: bytes) -> bool:
    """Names and files that are no images: they are refused, at once and with a word."""
    folder = case.folder

    def pipe() -> Path:
        os.mkfifo(folder / "pipe.png")
        return folder / "pipe.png"

    def link(to: str) -> Callable[[], Path]:
        def made() -> Path:
            (folder / "link.png").symlink_to(to)
            return folder / "link.png"

        return made

    strange: dict[str, Callable[[], Path]] = {
        "a pipe": pipe,
        "a link to an endless device": link("/dev/zero"),
        "a link to nothing": link("nowhere"),
        "a link to itself": link("link.png"),
        "a folder": lambda: folder,
        "an empty device": lambda: Path(os.devnull),
        "a NUL in the name": lambda: folder / "a\x00b.png",
        "a long name": lambda: folder / ("a" * 300 + ".png"),
        "a lone surrogate": lambda: folder / "\udcff\ud800.png",
        "a file as folder": lambda: case.write("file", b"") / "image.png",
        "a large file without content": lambda: _hollow(folder / "large.png"),
        "an empty file": lambda: case.write("empty.png", b""),
        "an ordinary link": link(str(case.write("image.png", content))),
    }
    name = case.random.choice(list(strange))
    case.note(name)
    path = strange[name]()
    try:
        open_image(path)
    except UnpriorError:
        require(name != "an ordinary link", "an ordinary link to an image is refused")
        return False
    require(name == "an ordinary link", f"{name} is taken for an image")
    return True


def _hollow(path: Path) -> Path:
    """Three gigabytes that take no room on the disk."""
    with path.open("wb") as stream:
        stream.truncate(3 << 30)
    return path
