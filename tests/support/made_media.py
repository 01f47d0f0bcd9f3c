"""Pictures and videos made for tests, and the small CLIP that knows what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any

import av
from PIL import Image, ImageDraw

TINY_CLIP = Path(__file__).resolve().parents[1] / "data" / "tiny_clip"
"""A CLIP trained on colored shapes (training/tiny_clip): a checkpoint and an ONNX pair of the same weights."""
COLOURS = {"red": (214, 40, 40), "green": (40, 160, 70), "blue": (40, 80, 210), "yellow": (240, 215, 50)}


def shape(colour: str = "red", kind: str = "circle", side: int = 64) -> Image.Image:
    """A shape of one color on gray."""
    picture = Image.new("RGB", (4 * side, 4 * side), (140, 140, 140))
    box = (side, side, 3 * side, 3 * side)
    draw = ImageDraw.Draw(picture)
    (draw.ellipse if kind == "circle" else draw.rectangle)(box, fill=COLOURS[colour])
    return picture.resize((side, side), Image.Resampling.LANCZOS)


def encoded(picture: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    """A picture as the bytes of a file."""
    buffer = BytesIO()
    picture.save(buffer, format, **options)
    return buffer.getvalue()


def video(
    pictures: Iterable[tuple[float, Image.Image]],
    *,
    keyframe_every: int = 1000,
    codec: str = "mpeg4",
    format: str = "mp4",
    **options: str,
) -> bytes:
    """A video of pictures, each shown from a time in seconds on."""
    buffer = BytesIO()
    with av.open(buffer, "w", format=format, options=options) as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.pix_fmt = "yuv420p"
        stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        stream.codec_context.gop_size = keyframe_every
        for index, (time_s, picture) in enumerate(pictures):
            if index == 0:
                stream.width, stream.height = picture.size
            frame = av.VideoFrame.from_image(picture)
            frame.pts, frame.time_base = round(1000 * time_s), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def sound() -> bytes:
    """A file with sound and no pictures."""
    buffer = BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream: Any = container.add_stream("aac", rate=16000, layout="mono")
        frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
        frame.sample_rate, frame.pts = 16000, 0
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return buffer.getvalue()
