"""Decoding pictures as a script would: a plain pool of processes. Light, because each process imports it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from io import BytesIO
from multiprocessing import get_context
from typing import Any

from agentunit.addons.media.clip.clip_settings import ClipSettings, cropped

_TOGETHER = 32


@cache
def decoding_pool() -> ProcessPoolExecutor:
    """One process for each processor, kept for all runs."""
    return ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=get_context("spawn"))


def squares_of(pool: ProcessPoolExecutor, files: list[bytes], batch: int, settings: ClipSettings) -> Iterator[Any]:
    """The squares of pictures, a batch at a time, as one array."""
    import numpy as np

    side = settings.side
    made = pool.map(partial(_square, settings), files, chunksize=_TOGETHER)
    for at in range(0, len(files), batch):
        some = [next(made) for _ in range(min(batch, len(files) - at))]
        yield np.frombuffer(bytearray(b"".join(some)), np.uint8).reshape(len(some), side, side, 3)


def _square(settings: ClipSettings, content: bytes) -> bytes:
    from PIL import Image

    pixels: bytes = cropped(Image.open(BytesIO(content)).convert("RGB"), settings).tobytes()
    return pixels
