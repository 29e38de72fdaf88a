"""Images of requests: refused by their headers before they are decoded, and read in one defined way."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image, ImageCms, features

from tests.serving.conftest import Serve, body, choice, data_url
from unprior.serving import images
from unprior.serving.errors import RequestError
from unprior.serving.images import ImageLimits, read_data_url, read_image

Post = Callable[..., httpx.Response]
ASKED = choice("Which?", "a", "b")


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def declared_png(width: int, height: int, *more: bytes) -> bytes:
    """A few bytes that say how large they are."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(more) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def declared_gif(width: int, height: int) -> bytes:
    """A small screen, and a frame that is larger."""
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02D\x01\x00"
    return b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + bytes(6) + frame + b";"


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def colours(image: Image.Image) -> set[Any]:
    return {colour for _, colour in image.getcolors() or ()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (declared_png(10_000, 10_000), "10000×10000 pixels are more than 20,000,000"),
        (declared_png(100_000, 100_000), "more than 20,000,000 pixels"),
        (declared_png(2**31 - 1, 2**31 - 1), "more than 20,000,000 pixels"),
        (declared_gif(60_000, 60_000), "more than 20,000,000 pixels"),
        (encoded(Image.new("L", (16_000, 1_300)), "JPEG"), "16000×1300 pixels are more than"),
        (encoded(Image.new("L", (16_000, 1_300)), "WEBP"), "16000×1300 pixels are more than"),
        (declared_png(1, 1), "shows nothing"),
        (declared_png(1, 100_000), "shows nothing"),
        (declared_png(100_000, 1), "shows nothing"),
        (declared_png(3, 3), "shows nothing"),
        (declared_png(4, 401), "shows nothing"),
        (declared_png(0, 10), ""),
        (b"", "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "TIFF"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "BMP"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "ICO"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "PPM"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "EPS"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "PDF"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "TGA"), "not a readable"),
        (encoded(Image.new("RGB", (64, 64)), "SGI"), "not a readable"),
        *([(encoded(Image.new("RGB", (64, 64)), "JPEG2000"), "not a readable")] if features.check("jpg_2000") else []),
        (b"\x89PNG\r\n\x1a\n", "not a readable"),
        (b"P" * (17 << 20), "more than 16,777,216 bytes"),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value[:12]),
)
def test_headers_are_enough_to_refuse(monkeypatch: pytest.MonkeyPatch, content: bytes, words: str) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("it was decoded")

    monkeypatch.setattr(images, "decode_image", never)
    with pytest.raises(RequestError) as told:
        read_image(content, ImageLimits(), "input")
    assert told.value.status == 400
    assert words in told.value.message


@pytest.mark.parametrize(
    "content",
    [
        encoded(Image.effect_noise((64, 64), 50), "PNG")[:-400],
        encoded(Image.effect_noise((64, 64), 50), "JPEG")[:200],
        encoded(Image.effect_noise((64, 64), 50), "WEBP")[:200],
        encoded(Image.effect_noise((64, 64), 50), "GIF")[:300],
        declared_png(64, 64),
        declared_png(64, 64, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(200 << 20)))),  # a text of 200 MB
        declared_png(64, 64, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(200 << 20)))),
    ],
    ids=["png", "jpeg", "webp", "gif", "nothing", "long text", "long profile"],
)
def test_damaged_images_are_refused_without_a_word_of_the_machine(content: bytes) -> None:
    with pytest.raises(RequestError) as told:
        read_image(content, ImageLimits(), "input")
    assert told.value.status == 400
    assert told.value.message in {
        "input: the image is damaged: its data cannot be decoded", "input: not a readable PNG, JPEG, WEBP or GIF image",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_the_first_frame_of_an_animation_counts(kind: str) -> None:
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "blue", "green")]
    lossless = {"lossless": True} if kind == "WEBP" else {}
    moving = encoded(frames[0], kind, save_all=True, append_images=frames[1:], duration=50, **lossless)
    with Image.open(io.BytesIO(moving)) as image:
        assert image.n_frames == 3  # type: ignore[attr-defined]
    assert colours(read_image(moving, ImageLimits(), "input")) == {(255, 0, 0)}


@pytest.mark.parametrize("turn", range(1, 9))
def test_cameras_are_turned_upright(turn: int) -> None:
    upright = Image.new("RGB", (64, 96), "white")
    upright.paste((0, 0, 0), (0, 0, 32, 20))
    back = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = turn
    stored = upright.transpose(back[turn]) if turn in back else upright
    read = read_image(encoded(stored, "PNG", exif=exif), ImageLimits(), "input")
    assert read.size == upright.size
    assert read.tobytes() == upright.tobytes()


def test_other_colours_become_rgb() -> None:
    grey = Image.new("I;16", (64, 64), 1 << 15)
    (shade,) = colours(read_image(encoded(grey, "PNG"), ImageLimits(), "input"))
    assert len(set(shade)) == 1
    clear = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    assert colours(read_image(encoded(clear, "PNG"), ImageLimits(), "input")) == {(255, 255, 255)}
    cyan = read_image(encoded(Image.new("CMYK", (64, 64), (255, 0, 0, 0)), "JPEG"), ImageLimits(), "input")
    red, green, blue = cyan.getpixel((5, 5))  # type: ignore[misc]
    assert red < 60
    assert min(green, blue) > 150
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert read_image(encoded(clear, "PNG", icc_profile=profile), ImageLimits(), "input").mode == "RGB"


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png,AAAA", "data:image/png;base64;AAAA", "data:;base64,AAAA", "data:image/png;base64,AA\nAA",
        "data:image/png;base64,AAA", "data:image/png;base64,äöü", "data:text/plain;base64,AAAA", "data:", "",
        "data:image/png;charset=x;base64,AAAA",
    ],
)  # fmt: skip
def test_addresses_that_hold_no_image(url: str) -> None:
    with pytest.raises(RequestError) as told:
        read_data_url(url, ImageLimits(), "input")
    assert told.value.code == "invalid_image"


def test_the_bytes_count_and_not_what_they_are_called(post: Post) -> None:
    content = base64.b64encode(encoded(Image.new("RGB", (64, 64), "red"), "JPEG")).decode()
    replies = [post(body(f"data:image/{kind};base64,{content}", ASKED)) for kind in ("jpeg", "png", "JPEG")]
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert replies[0].json()["answers"] == replies[1].json()["answers"] == replies[2].json()["answers"]


def test_the_same_bytes_in_another_shape_are_another_image(start: Serve, tmp_path: Path) -> None:
    pixels = Image.effect_noise((30, 100), 90).tobytes()
    tall, wide = Image.frombytes("L", (30, 100), pixels), Image.frombytes("L", (100, 30), pixels)
    assert tall.tobytes() == wide.tobytes()
    log, told = tmp_path / "decisions.jsonl", []
    with start(log=log) as address:
        for image in (tall, wide, tall, wide):
            reply = httpx.post(f"{address}/v1/decisions", json=body(data_url(image), ASKED), timeout=60).json()
            told.append([each["with_image"] for each in reply["answers"][0]["unprior"]["candidates"]])
    assert told[0] == told[2] != told[1] == told[3]
    digests = [json.loads(line)["image_digest"] for line in log.read_text().splitlines()[1:]]
    assert digests[0] == digests[2] != digests[1] == digests[3]
