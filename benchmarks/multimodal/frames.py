"""Eight frames of a long clip beside decoding all of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import av
import numpy as np
from PIL import Image

from agentunit.addons.media.video_frames import SampledVideo, open_video, sample_file
from agentunit.backends.media_sources import MediaAccess
from benchmarks.speed.answers import Answer, Column, decimals, times

_LEAST_GAIN = 3.0
_FRAMES_A_SECOND = 25


def measure(folder: Path, seconds: int, rounds: int) -> Answer:
    """A table of both ways."""
    columns = (
        Column("what", "8 frames"),
        Column("took_s", "seconds", decimals(3)),
        Column("n_decoded", "frames decoded", decimals(0)),
        Column("ratio", "against ours", times),
        Column("note", "target"),
    )
    answer = Answer("frames", f"8 frames of {seconds} s of video, 640 × 360, H.264", columns)
    for keyframe_every in (50, 250):
        path = folder / f"clip_{seconds}_{keyframe_every}.mp4"
        if not path.exists():
            make_clip(path, seconds, keyframe_every)
        ours_s, found = _timed(lambda path=path: _sampled(path), rounds)
        all_s, n_all = _timed(lambda path=path: _decode_all(path), rounds)
        every = f"a keyframe every {keyframe_every / _FRAMES_A_SECOND:g} s"
        gain = all_s / ours_s
        note = f"{'met' if gain >= _LEAST_GAIN else 'MISSED'} (≥ {_LEAST_GAIN:g}×)"
        answer.add(what=f"agentunit, {every}", took_s=ours_s, n_decoded=found.n_decoded)
        answer.add(what=f"all decoded, 8 kept, {every}", took_s=all_s, n_decoded=n_all, ratio=gain, note=note)
    answer.remarks.append(f"Medians of {rounds} runs, one thread each, the file in the cache of the system.")
    return answer


def make_clip(path: Path, seconds: int, keyframe_every: int) -> None:
    """A clip in which something moves."""
    random_ = np.random.default_rng(0)
    background = Image.fromarray(random_.integers(0, 256, (23, 40, 3), dtype=np.uint8)).resize((1280, 720))
    partial = path.with_suffix(".part")
    with av.open(str(partial), "w", format="mp4") as container:
        stream: Any = container.add_stream("libx264", rate=_FRAMES_A_SECOND, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        stream.codec_context.gop_size = keyframe_every
        stream.codec_context.time_base = Fraction(1, _FRAMES_A_SECOND)
        for index in range(seconds * _FRAMES_A_SECOND):
            left, top = index % 640, index % 360
            frame = av.VideoFrame.from_image(background.crop((left, top, left + 640, top + 360)))
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    partial.rename(path)


def _sampled(path: Path) -> SampledVideo[Any]:
    access = MediaAccess()
    with open_video(path, access) as file:
        return sample_file(file, 8, access.limits, lambda frame: frame)


def _decode_all(path: Path) -> int:
    kept, count = [], 0
    with av.open(str(path)) as container:
        every = max(1, (container.streams.video[0].frames or 1) // 8)
        for frame in container.decode(video=0):
            if count % every == 0:
                kept.append(frame.to_image())
            count += 1
    return count


def _timed(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    took_s, found = [], None
    for _ in range(rounds):
        start = time.perf_counter()
        found = work()
        took_s.append(time.perf_counter() - start)
    return median(took_s), found
