"""Evenly spaced frames of a video, without decoding more than needed; in a process of its own for files of others."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from io import BytesIO
from itertools import groupby
from math import inf
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Generic, TypeVar

from agentunit.addons.media._video_opencv import sample_with_opencv
from agentunit.addons.media._video_reader import VideoReader, in_words
from agentunit.backends.media_sources import (
    EXTRA,
    MediaAccess,
    MediaLimits,
    MediaProblem,
    MediaSource,
    is_data_uri,
    is_url,
    open_file,
    read_source,
)
from agentunit.backends.quality import require_ready

Made = TypeVar("Made")
# Containers of pictures and sound only: playlists, which name further files and addresses, stay closed.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,ogg,flv,asf,gif,apng,ivf,nut,mxf,rm"
# How far from its place a frame may lie, as a part of the distance between two of them.
_NEAR_ENOUGH = 0.25
_SHORTER_THAN_STATED = 0.9
_START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentunit.addons.media.video_frames import serve; serve(sys.argv[2], sys.stdin.buffer, sys.stdout.buffer)"
)
_MOST_START_S = 30.0
_MOST_KEPT_PIXELS = 4_000_000


@dataclass(frozen=True)
class SampledVideo(Generic[Made]):
    """What was made of each frame, when it is shown, and how much had to be decoded."""

    frames: list[Made]
    times_s: list[float]
    duration_s: float
    n_decoded: int
    decoder: str = "pyav"


def video_unready() -> str | None:
    """Why videos cannot be read here, with the command that helps; ``None`` when they can."""
    return None if decoder_name() else f"PyAV is not installed, nor is OpenCV; {EXTRA} adds it"


def decoder_name() -> str | None:
    """What decodes videos here: PyAV, else OpenCV."""
    return "pyav" if find_spec("av") else "opencv" if find_spec("cv2") else None


def open_video(source: MediaSource, access: MediaAccess) -> BinaryIO:
    """A video as an open file, wherever it comes from."""
    text = "" if isinstance(source, (bytes, bytearray, memoryview)) else str(source)
    in_memory = not text or is_data_uri(text) or is_url(text)
    return BytesIO(read_source(source, access)) if in_memory else open_file(text, access)


def sample_file(
    file: BinaryIO, n_frames: int, limits: MediaLimits, prepare: Callable[[Any], Made]
) -> SampledVideo[Made]:
    """Up to ``n_frames`` frames from the middles of as many equal parts of a video, each given to ``prepare`` at once.

    A frame up to a quarter of a part before the middle is as good as that of the middle itself, so a keyframe there is
    all that is decoded. Else decoding runs from the keyframe before. A video with fewer frames, or with a damaged part,
    gives fewer. ``MediaProblem`` says why there are none. The limits hold between calls of FFmpeg, some of which a file
    can keep busy for hours: for files of others there is ``sample_frames_apart``.
    """
    require_ready(video_unready())
    if decoder_name() == "opencv":
        by_time, duration, n_decoded = sample_with_opencv(file, n_frames, _FORMATS, limits, prepare)
        return SampledVideo(list(by_time.values()), list(by_time), duration, n_decoded, "opencv")
    with _container(file) as container:
        stream = container.streams.best("video")
        if stream is None:
            raise MediaProblem("holds no video stream")
        reader = VideoReader(container, stream, limits)
        stated = reader.stated_duration()
        if stated and reader.goes_on_after(stated):
            stated = None
        duration = stated or reader.measured_duration()
        found = _sample(reader, duration, n_frames, prepare) if duration < inf else {}
        if stated and len(found) < n_frames:
            measured = reader.measured_duration()
            # A wrong duration, or a file that was cut off: what is there is sampled, not what was promised.
            if measured < _SHORTER_THAN_STATED * stated:
                duration = measured
                found = _sample(reader, duration, n_frames, prepare)
        if not found:
            raise MediaProblem(f"has no frame that can be decoded{reader.describe_trouble()}")
    times = sorted(found)
    return SampledVideo([found[each] for each in times], [reader.seconds(t) for t in times], duration, reader.n_decoded)


def _sample(reader: VideoReader, duration_s: float, n_frames: int, prepare: Callable[[Any], Made]) -> dict[int, Made]:
    spacing = duration_s / n_frames
    slack = reader.ticks(_NEAR_ENOUGH * spacing)
    targets = [reader.first_tick + reader.ticks((index + 0.5) * spacing) for index in range(n_frames)]
    # Where decoding has to start is looked up first, so that frames after one keyframe are decoded in one go.
    planned = [(reader.keyframe_before(target), target) for target in targets]
    reachable = [(start, target) for start, target in planned if start is not None]
    found: dict[int, Made] = {}
    for _, group in groupby(reachable, key=lambda each: each[0].tick):
        starts, aims = zip(*group, strict=True)
        for tick, image in reader.frames_at(starts[0], aims, slack):
            if tick not in found:
                found[tick] = prepare(image)
    return found


@contextmanager
def _container(file: BinaryIO) -> Any:
    import av

    options = {"format_whitelist": _FORMATS, "protocol_whitelist": "none"}
    try:
        container = av.open(file, mode="r", options=options, metadata_errors="replace")
    except (av.FFmpegError, ValueError, OSError) as error:
        raise MediaProblem(f"is not a video of a known format, or is damaged ({in_words(error)})") from None
    with container:
        try:
            yield container
        except MediaProblem:
            raise
        except Exception as error:  # noqa: BLE001  # decoders of hostile bytes may raise anything
            raise MediaProblem(f"cannot be decoded ({in_words(error)})") from None


def sample_frames_apart(source: MediaSource, n_frames: int, access: MediaAccess) -> SampledVideo[Any]:
    """``sample_file`` in another process: RGB pictures of Pillow, those above 4 million pixels halved until they fit.

    ``MediaProblem`` also says when the process had to be ended, or did not survive the video.
    """
    require_ready(video_unready())
    request = json.dumps({"n_frames": n_frames, "limits": asdict(access.limits)})
    with open_video(source, access) as opened, _with_descriptor(opened) as file:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _START, json.dumps(sys.path), request],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=access.limits.most_video_s + _MOST_START_S,
                check=False,
                start_new_session=True,  # a Ctrl-C is ours to hear: a video is not broken because one came
            )
        except subprocess.TimeoutExpired:
            raise MediaProblem(f"took longer than {access.limits.most_video_s:g} s to sample") from None
    header, _, pixels = done.stdout.partition(b"\n")
    if done.returncode or not header:
        raise MediaProblem("cannot be decoded: it brought its decoder down")
    return _read(json.loads(header), memoryview(pixels))


def serve(request: str, file: BinaryIO, answers: BinaryIO) -> None:
    """Sample the video that standard input is: a line of JSON, then the pixels of one frame after the other."""
    # A decoder's warnings do not matter here.
    warnings.simplefilter("ignore")
    asked = json.loads(request)
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


def _read(answer: dict[str, Any], pixels: memoryview) -> SampledVideo[Any]:
    if "problem" in answer:
        raise MediaProblem(answer["problem"])
    from PIL import Image

    frames = []
    for width, height in answer["frames"]:
        n_bytes = 3 * width * height
        frames.append(Image.frombytes("RGB", (width, height), pixels[:n_bytes]))
        pixels = pixels[n_bytes:]
    return SampledVideo(frames, answer["times_s"], answer["duration_s"], answer["n_decoded"], answer["decoder"])


def _with_descriptor(opened: BinaryIO) -> BinaryIO:
    """A file that can be passed to a process; what is in memory is written down for it."""
    if not isinstance(opened, BytesIO):
        return opened
    file: Any = TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(opened.getbuffer())
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
