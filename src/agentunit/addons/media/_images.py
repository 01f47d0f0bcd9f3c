"""Pictures from bytes: decoded within limits, in the colors and the position in which people see them."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.util import find_spec
from io import BytesIO
from math import isfinite
from threading import BoundedSemaphore
from typing import Any

from agentunit.backends.media_sources import EXTRA, MediaLimits, MediaProblem
from agentunit.backends.quality import require_ready

# Pixels only: formats that hold programs (EPS) or other documents stay closed, and so do icons (ICO), whose true size
# shows only once they are decoded.
_FORMATS = ("AVIF", "BMP", "DIB", "GIF", "JPEG", "JPEG2000", "MPO", "PNG", "PPM", "TIFF", "WEBP")
_MOST_SCANS = 200
_LARGE_PIXELS = 16_000_000
_ROOM_FOR_LARGE = BoundedSemaphore(2)
_ORIENTATION = 0x0112
_START_OF_SCAN = b"\xff\xda"


def decode_image(content: bytes, limits: MediaLimits) -> Any:
    """An RGB picture of Pillow. ``MediaProblem`` says why there is none.

    Size is checked before anything is decoded. Of an animation the first frame is taken; a picture that a camera
    marked as turned is turned; 16 bits a channel become 8; transparency is dropped, as CLIP does.
    """
    image = _opened(content, limits)
    try:
        # Many threads decode at once: of large pictures only a few may be in memory together.
        with _ROOM_FOR_LARGE if image.width * image.height > _LARGE_PIXELS else nullcontext():
            image.load()
            return as_rgb(_upright(image))
    except MediaProblem:
        raise
    except Exception as error:  # noqa: BLE001  # decoders of hostile bytes may raise anything
        raise MediaProblem(f"cannot be decoded: {_in_short(error)}") from None


def _opened(content: bytes, limits: MediaLimits) -> Any:
    require_ready(None if find_spec("PIL") else f"Pillow is not installed; {EXTRA} adds it")
    from PIL import Image, UnidentifiedImageError

    Image.init()
    known = [each for each in _FORMATS if each in Image.OPEN]
    try:
        image = Image.open(BytesIO(content), formats=known)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise MediaProblem(f"must have at most {limits.most_pixels:,} pixels; it has far more") from None
    except UnidentifiedImageError:
        raise MediaProblem("is not a picture of a known format") from None
    except Exception as error:  # noqa: BLE001  # decoders of hostile bytes may raise anything
        raise MediaProblem(f"cannot be read: {_in_short(error)}") from None
    width, height = image.size
    if width * height > limits.most_pixels:
        raise MediaProblem(f"must have at most {limits.most_pixels:,} pixels; it has {width:,} × {height:,}")
    # Each scan of a progressive JPEG goes over the whole picture, and may take but a few bytes.
    if image.format in ("JPEG", "MPO") and content.count(_START_OF_SCAN) > _MOST_SCANS:
        raise MediaProblem(f"must have at most {_MOST_SCANS} scans; it has more")
    return image


def as_rgb(image: Any) -> Any:
    """A picture of Pillow in the colors that a model takes."""
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I;16"):
        # Only whole numbers of 32 bits can be scaled in every order of bytes.
        return image.convert("I").point(lambda value: value / 256).convert("L").convert("RGB")
    if image.mode in ("I", "F"):
        # Whole numbers of 32 bits and floats have no agreed white: their own brightest is taken for it.
        low, high = image.getextrema()
        if not isfinite(high - low):
            raise MediaProblem(f"must hold finite numbers; they go from {low} to {high}")
        span = (high - low) or 1
        return image.point(lambda value: value * (255 / span) + (-low * 255 / span)).convert("L").convert("RGB")
    return image.convert("RGB")


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(image) if image.getexif().get(_ORIENTATION, 1) != 1 else image
    except Exception:  # noqa: BLE001  # a broken note on how the camera was held says nothing
        return image


def _in_short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
