from __future__ import annotations

import io
import os
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unprior import UnpriorError
from unprior.benchmarks.schema import Benchmark, Example
from unprior.images import ImageError, blank, decode_image, mean_image, open_image, resize
from unprior.scoring.plan import digest_images

RED, BLUE = (200, 30, 30), (30, 30, 200)


def two_halves(mode: str = "RGB") -> Image.Image:
    image = Image.new("RGB", (20, 10), RED)
    image.paste(BLUE, (10, 0, 20, 10))
    return image.convert(mode)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        encoded(two_halves()),
        encoded(two_halves(), "JPEG", quality=95),
        encoded(two_halves().quantize(8)),
        encoded(two_halves("CMYK"), "JPEG", quality=95),
        encoded(two_halves("RGBA")),
        encoded(two_halves(), "GIF", save_all=True, append_images=[Image.new("RGB", (20, 10))]),
        encoded(two_halves(), "WEBP", lossless=True),
        encoded(two_halves(), "BMP"),
        encoded(two_halves(), "TIFF"),
        encoded(two_halves(), "PPM"),
    ],
    ids=["png", "jpeg", "palette", "cmyk", "rgba", "animated", "webp", "bmp", "tiff", "ppm"],
)
def test_every_kind_becomes_the_same_rgb_image(content: bytes) -> None:
    image = decode_image(content, "image")
    assert (image.mode, image.size) == ("RGB", (20, 10))
    np.testing.assert_allclose(image.getpixel((4, 5)), RED, atol=12)
    np.testing.assert_allclose(image.getpixel((15, 5)), BLUE, atol=12)


def test_a_camera_s_rotation_is_undone() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright: rotate by 270°
    image = decode_image(encoded(two_halves(), "JPEG", exif=exif, quality=95), "photo.jpg")
    assert image.size == (10, 20)
    np.testing.assert_allclose(image.getpixel((5, 4)), RED, atol=12)


def test_transparency_lies_on_white() -> None:
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 128))
    np.testing.assert_allclose(decode_image(encoded(clear), "clear").getpixel((0, 0)), (255, 127, 127), atol=1)
    palette = Image.new("P", (4, 4), 0)
    assert decode_image(encoded(palette, transparency=0), "palette").getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize("mode", ["L", "LA", "1", "I;16"])
def test_grey_images(mode: str) -> None:
    image = Image.fromarray(np.full((3, 3), 60_000, dtype=np.uint16)) if mode == "I;16" else Image.new(mode, (3, 3), 1)
    assert decode_image(encoded(image), "grey").mode == "RGB"


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("whole", [True, False])
def test_pixels_that_are_not_finite_are_refused_and_not_made_black(value: float, whole: bool) -> None:
    pixels = np.full((4, 4), 100, dtype=np.float32)
    pixels[: 4 if whole else 1] = value
    with pytest.raises(ImageError, match=r"map\.tiff: it has pixels that are not finite"):
        decode_image(encoded(Image.fromarray(pixels), "TIFF"), "map.tiff")


@pytest.mark.parametrize("kind", [np.int32, np.float32])
def test_pixels_below_zero_are_refused(kind: type[np.generic]) -> None:
    depth = Image.fromarray(np.array([[-40, 0], [10, 90]], dtype=kind))
    with pytest.raises(ImageError, match=r"depth\.tiff: it has pixels below zero \(down to -40\)"):
        decode_image(encoded(depth, "TIFF"), "depth.tiff")


@pytest.mark.parametrize("top", [1.0, 255.0, 65_535.0])
def test_floats_keep_their_range(top: float) -> None:
    grey = Image.fromarray(np.array([[0.0, top / 2], [top / 4, top]], dtype=np.float32))
    shown = decode_image(encoded(grey, "TIFF"), "grey.tiff").convert("L")
    np.testing.assert_allclose(np.asarray(shown), [[0, 127], [63, 255]], atol=1)


def test_a_single_pixel_is_an_image() -> None:
    assert decode_image(encoded(Image.new("RGB", (1, 1), RED)), "dot").size == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "image: the file is empty"),
        (b"not an image", "image: not a readable image"),
        (encoded(two_halves())[:-30], "image: not a readable image"),
        (encoded(two_halves(), "JPEG")[:200], "image: not a readable image"),
    ],
    ids=["empty", "text", "truncated png", "truncated jpeg"],
)
def test_broken_files_are_named(content: bytes, message: str) -> None:
    with pytest.raises(ImageError, match=message):
        decode_image(content, "image")


@pytest.mark.skipif(sys.platform == "win32", reason="the program that must not start is a shell script")
def test_no_image_starts_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow shows EPS by Ghostscript, the first gs on the path; this one notes that it was called."""
    (tmp_path / "gs").write_text(f"#!/bin/sh\necho called >> '{tmp_path}/called'\n", encoding="utf-8")
    (tmp_path / "gs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "cell.png").write_bytes(encoded(two_halves(), "EPS"))
    with pytest.raises(ImageError, match=r"cell\.png: not a readable image \(of no known kind\)"):
        open_image(tmp_path / "cell.png")
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("size", [(20_000, 10_000), (60_000, 60_000)])
def test_a_huge_image_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    header = encoded(Image.new("1", (8, 8)))
    # Only the width and height in the header are changed: decoding would be impossible and is not tried.
    huge = header[:16] + size[0].to_bytes(4, "big") + size[1].to_bytes(4, "big") + header[24:]
    huge = huge[:29] + zlib.crc32(huge[12:29]).to_bytes(4, "big") + huge[33:]
    with pytest.raises(ImageError, match="too many"):
        decode_image(huge, "poster.png")


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"nowhere\.png: no such image"):
        open_image(tmp_path / "nowhere.png")
    with pytest.raises(ImageError, match="this is a folder, not an image file"):
        open_image(tmp_path)
    (tmp_path / "ok.png").write_bytes(encoded(two_halves()))
    assert open_image(tmp_path / "ok.png").size == (20, 10)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are those of POSIX")
def test_only_regular_files_of_some_size_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "link.png").symlink_to("ok.png")
    (tmp_path / "ok.png").write_bytes(encoded(two_halves()))
    for name, kind in (("pipe.png", "a pipe"), ("zero.png", "a device")):
        with pytest.raises(ImageError, match=f"{name}: this is {kind}, not an image file"):
            open_image(tmp_path / name)
    digests, unreadable = digest_images([tmp_path / "pipe.png", tmp_path / "zero.png", tmp_path / "link.png"])
    assert [path.name for path in digests] == ["link.png"]
    assert [path.name for path in unreadable] == ["pipe.png", "zero.png"]
    monkeypatch.setattr("unprior.images._MAX_BYTES", 10)
    with pytest.raises(ImageError, match="too much for an image"):
        open_image(tmp_path / "link.png")


@pytest.mark.parametrize("name", ["nul\0.png", "x" * 300, "half \ud800.png"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ImageError, match=r"cannot be read|the name is not valid"):
        open_image(tmp_path / name)
    assert list(digest_images([tmp_path / name])[1]) == [tmp_path / name]
    example = Example("1", tmp_path / name, "Is it red?", "qa", ("yes", "no"))
    assert Benchmark("mine", [example]).missing_images() == [tmp_path / name]


def test_views() -> None:
    assert resize(two_halves(), 6).size == (6, 6)
    assert resize(two_halves(), None).size == (20, 10)
    assert blank((3, 2), 255).getpixel((2, 1)) == (255, 255, 255)
    assert mean_image([blank((4, 4), 10), blank((2, 2), 20), blank((9, 1), 60)], 3).getpixel((1, 1)) == (30, 30, 30)
    with pytest.raises(UnpriorError, match="at least one image"):
        mean_image([], 4)
