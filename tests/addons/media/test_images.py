"""Pictures as they come from anywhere: odd, broken or made to do harm."""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_media import encoded, shape
from PIL import Image, ImageFile

from agentunit.addons.media._images import decode_image
from agentunit.backends.media_sources import MediaLimits, MediaProblem

LIMITS = MediaLimits()
RED = (214, 40, 40)


def png_of_size(width: int, height: int) -> bytes:
    """A PNG of 70 bytes that claims to be of any size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(64))), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("mode", "format"),
    [
        ("RGB", "PNG"), ("RGB", "JPEG"), ("RGB", "WEBP"), ("RGB", "BMP"), ("RGB", "TIFF"), ("RGB", "PPM"),
        ("RGBA", "PNG"), ("P", "PNG"), ("P", "GIF"), ("CMYK", "JPEG"), ("CMYK", "TIFF"), ("YCbCr", "JPEG"),
    ],
)  # fmt: skip
def test_colours_survive_every_way_of_writing_them(mode: str, format: str) -> None:
    picture = Image.new("RGB", (40, 30), RED).convert(mode)
    found = decode_image(encoded(picture, format), LIMITS)
    assert (found.mode, found.size) == ("RGB", (40, 30))
    # A palette of the web's colors, and JPEG's own, are not exact.
    assert np.abs(np.asarray(found.getpixel((20, 15))) - RED).max() <= 12


@pytest.mark.parametrize(
    ("kind", "format"), [("uint16", "PNG"), ("uint16", "TIFF"), ("int32", "TIFF"), ("float32", "TIFF")]
)
def test_more_than_eight_bits_are_scaled_and_not_cut_off(kind: str, format: str) -> None:
    ramp = np.linspace(0, 65535, 256).astype(kind).reshape(16, 16)
    found = np.asarray(decode_image(encoded(Image.fromarray(ramp), format), LIMITS))[:, :, 0].ravel()
    assert found[0] == 0
    assert found[-1] >= 254
    assert abs(int(found[128]) - 128) <= 2


def test_sixteen_bits_in_the_other_order_of_bytes() -> None:
    ramp = np.linspace(0, 65535, 256).astype(">u2").reshape(16, 16)
    content = encoded(Image.frombytes("I;16B", (16, 16), ramp.tobytes()), "TIFF")
    found = np.asarray(decode_image(content, LIMITS))[:, :, 0].ravel()
    assert (found[0], found[128], found[-1]) == (0, 128, 255)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_make_no_picture(number: float) -> None:
    ramp = np.linspace(0, 1, 256).astype("float32").reshape(16, 16)
    ramp[3, 3] = number
    ramp[0, 0] = number
    with pytest.raises(MediaProblem, match="must hold finite numbers"):
        decode_image(encoded(Image.fromarray(ramp), "TIFF"), LIMITS)


def test_an_icon_is_not_opened_since_it_may_hold_a_picture_of_any_size() -> None:
    inside = png_of_size(13_000, 13_000)
    entry = struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 32, len(inside), 22)
    with pytest.raises(MediaProblem, match="is not a picture of a known format"):
        decode_image(struct.pack("<HHH", 0, 1, 1) + entry + inside, LIMITS)


def test_a_picture_is_turned_as_the_camera_says() -> None:
    picture = Image.new("RGB", (40, 20), RED)
    picture.paste((0, 0, 0), (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter to the right: what was left is on top
    found = decode_image(encoded(picture, "JPEG", exif=exif), LIMITS)
    assert found.size == (20, 40)
    assert max(found.getpixel((10, 5))) < 60
    assert found.getpixel((10, 35))[0] > 150


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_a_broken_note_of_the_camera_does_no_harm() -> None:
    broken = b"Exif\x00\x00MM\x00*" + b"\xff" * 44
    content = encoded(Image.new("RGB", (40, 20), RED), "JPEG", exif=broken)
    assert decode_image(content, LIMITS).size == (40, 20)


def test_the_first_frame_of_an_animation_is_taken() -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in (RED, (0, 0, 255))]
    content = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(content, LIMITS).getpixel((4, 4))[0] > 200


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"This is a text, whatever its name says.", "not a picture of a known format"),
        (b"\x89PNG\r\n\x1a\n", "not a picture|cannot be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture of a known format"),
        (b"%PDF-1.4", "not a picture of a known format"),
        (encoded(shape(side=128), "JPEG")[:700], "truncated"),
        (encoded(shape(side=128))[:300], "cannot be decoded"),
        (png_of_size(30_000, 30_000), "at most 64,000,000 pixels"),
        (png_of_size(8_001, 8_000), "it has 8,001 × 8,000"),
        (png_of_size(2_000_000_000, 2), "pixels|cannot be read"),
        (png_of_size(0, 0), "cannot be|not a picture"),
        (encoded(shape(), "JPEG").replace(b"\xff\xda", b"\xff\xda" * 300), "at most 200 scans|cannot be"),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_a_reason(content: bytes, words: str) -> None:
    with pytest.raises(MediaProblem, match=words):
        decode_image(content, LIMITS)


def test_size_is_checked_before_anything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(shape(side=64))

    def loaded(self: Any) -> None:
        raise AssertionError("a picture that is too large was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", loaded)
    with pytest.raises(MediaProblem, match="at most 1,000 pixels; it has 64 × 64"):
        decode_image(content, MediaLimits(most_pixels=1_000))


def test_large_pictures_are_decoded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentunit.addons.media._images._LARGE_PIXELS", 1_000)
    together, most = 0, 0
    lock = Lock()
    load = ImageFile.ImageFile.load

    def watched(self: Any) -> Any:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        try:
            return load(self)
        finally:
            with lock:
                together -= 1

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", watched)
    content = encoded(shape(side=400))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: decode_image(content, LIMITS).size, range(24)))
    assert found == [(400, 400)] * 24
    assert 1 <= most <= 2


def test_no_reason_shows_what_a_file_holds() -> None:
    secret = b"root:x:0:0:secret"
    with pytest.raises(MediaProblem) as caught:
        decode_image(secret, LIMITS)
    assert "root" not in str(caught.value)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_broken_bytes_give_a_picture_or_a_reason(data: st.DataObject) -> None:
    format = data.draw(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"]))
    content = bytearray(encoded(shape(side=24), format))
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    reason = "decoded"
    try:
        assert decode_image(bytes(content[:cut] or b"x"), MediaLimits(most_pixels=100_000)).mode == "RGB"
    except MediaProblem as problem:
        reason = str(problem)
    assert reason.strip()


@pytest.mark.parametrize("field", ["most_bytes", "most_pixels", "most_video_s"])
@pytest.mark.parametrize("value", [0, -1, float("inf"), "many", True])
def test_limits_must_be_limits(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"MediaLimits: {field} must be a finite number above 0"):
        MediaLimits(**{field: value})


def test_pictures_of_the_data_folder_are_read(data_folder: Path) -> None:
    for path in sorted((data_folder / "media" / "images").rglob("*.*g")):
        assert decode_image(path.read_bytes(), LIMITS).mode == "RGB"
