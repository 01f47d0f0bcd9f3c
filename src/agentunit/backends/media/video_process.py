"""Frames of a video, sampled by a process of its own, which ends with the time and the memory that it may have.

FFmpeg cannot be interrupted everywhere: a file of three kilobytes that states a million frames keeps a single call busy
for minutes, or takes gigabytes before the first frame.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import asdict
from io import BytesIO
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from agentunit.backends.media.limits import MediaAccess, MediaLimits, MediaProblem
from agentunit.backends.media.sources import MediaSource
from agentunit.backends.media.video import SampledVideo, open_video, sample_file, video_unready
from agentunit.backends.quality import BackendUnavailable

_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentunit.backends.media.video_process import serve; serve(sys.argv[2], sys.stdin.buffer, sys.stdout.buffer)"
)
_MOST_START_S = 30.0
_MOST_KEPT_PIXELS = 4_000_000


def sample_frames_apart(source: MediaSource, n_frames: int, access: MediaAccess) -> SampledVideo[Any]:
    """``sample_frames`` in another process: RGB pictures of Pillow, those above 4 million pixels halved until they fit.

    ``MediaProblem`` also says when the process had to be ended, or did not survive the video.
    """
    unready = video_unready()
    if unready:
        raise BackendUnavailable(unready)
    told = json.dumps({"n_frames": n_frames, "limits": asdict(access.limits)})
    with open_video(source, access) as given, _with_descriptor(given) as file:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _START, json.dumps(sys.path), told],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=access.limits.most_video_s + _MOST_START_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MediaProblem(f"took longer than {access.limits.most_video_s:g} s to sample") from None
    header, _, pixels = done.stdout.partition(b"\n")
    if done.returncode or not header:
        raise MediaProblem("cannot be decoded: it brought its decoder down")
    return _read(json.loads(header), memoryview(pixels))


def serve(told: str, file: BinaryIO, answers: BinaryIO) -> None:
    """Sample the video that standard input is: a line of JSON, then the pixels of one frame after the other."""
    # What a decoder only warns of is neither here nor there.
    warnings.simplefilter("ignore")
    asked = json.loads(told)
    limits = MediaLimits(**asked["limits"])
    _bound_memory(limits.most_video_memory_bytes)
    try:
        found = sample_file(file, asked["n_frames"], limits, _shrunk)
    except MediaProblem as problem:
        answers.write(json.dumps({"problem": str(problem)}).encode() + b"\n")
        return
    facts = {**vars(found), "frames": [frame.size for frame in found.frames]}
    answers.write(json.dumps(facts).encode() + b"\n")
    for frame in found.frames:
        answers.write(frame.tobytes())


def _read(told: dict[str, Any], pixels: memoryview) -> SampledVideo[Any]:
    if "problem" in told:
        raise MediaProblem(told["problem"])
    from PIL import Image

    frames = []
    for width, height in told["frames"]:
        n_bytes = 3 * width * height
        frames.append(Image.frombytes("RGB", (width, height), pixels[:n_bytes]))
        pixels = pixels[n_bytes:]
    return SampledVideo(frames, told["times_s"], told["duration_s"], told["n_decoded"], told["decoder"])


def _with_descriptor(given: BinaryIO) -> BinaryIO:
    """A file that can be handed to a process; what is in memory is written down for it."""
    if not isinstance(given, BytesIO):
        return given
    file: Any = TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(given.getbuffer())
    file.seek(0)
    return file  # type: ignore[no-any-return]


def _bound_memory(most_bytes: int) -> None:
    # Where the system has no such limit (Windows), time alone is bounded.
    with suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))


def _shrunk(frame: Any) -> Any:
    """A frame that may wait in memory."""
    factor = 1
    while frame.width * frame.height > _MOST_KEPT_PIXELS * factor * factor:
        factor *= 2
    return frame.reduce(factor) if factor > 1 else frame
