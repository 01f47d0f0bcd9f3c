"""Frames of a video by OpenCV, for machines that have it and not PyAV."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, TypeVar

from agentunit.backends.media_sources import MediaLimits, MediaProblem

Made = TypeVar("Made")
_OPTIONS = "OPENCV_FFMPEG_CAPTURE_OPTIONS"
_LONGEST_S = 10_000 * 3600.0


def sample_with_opencv(
    file: BinaryIO, n_frames: int, formats: str, limits: MediaLimits, prepare: Callable[[Any], Made]
) -> tuple[dict[float, Made], float, int]:
    """Frames from the middles of equal parts by the second they are shown at, the duration, and how many were read.

    OpenCV looks for a place by decoding from the keyframe before it. Where a file states no number of frames, or a
    wrong one, they are counted.
    """
    deadline = time.monotonic() + limits.most_video_s
    with _capture(file, formats) as capture:
        video = _Video(capture, limits, deadline)
        stated = video.stated_frames()
        found, duration_s = video.sample(n_frames, stated)
        if len(found) < min(n_frames, stated or n_frames):
            found, duration_s = video.sample(n_frames, video.counted_frames())
    if not found:
        raise MediaProblem("has no frame that can be decoded")
    return {time_s: prepare(picture) for time_s, picture in found.items()}, duration_s, video.n_decoded


class _Video:
    """An open capture under limits."""

    def __init__(self, capture: Any, limits: MediaLimits, deadline: float) -> None:
        import cv2

        self._cv2, self._capture, self._limits, self._deadline = cv2, capture, limits, deadline
        self.n_decoded = 0
        rate = float(capture.get(cv2.CAP_PROP_FPS))
        self._rate = rate if isfinite(rate) and 0 < rate <= 1000 else 25.0
        limits.check_frame(capture.get(cv2.CAP_PROP_FRAME_WIDTH), capture.get(cv2.CAP_PROP_FRAME_HEIGHT))

    def stated_frames(self) -> int:
        """How many frames the file says it has; 0 when it does not say."""
        stated = float(self._capture.get(self._cv2.CAP_PROP_FRAME_COUNT))
        return int(stated) if 0 < stated < _LONGEST_S * self._rate else 0

    def counted_frames(self) -> int:
        """How many frames can be read from the beginning on, up to the limit."""
        self._capture.set(self._cv2.CAP_PROP_POS_FRAMES, 0)
        for count in range(self._limits.most_packets_per_seek):
            self._check_time()
            if not self._capture.grab():
                return count
            self.n_decoded += 1
        raise MediaProblem(f"has more than {self._limits.most_packets_per_seek:,} frames and does not say how many")

    def sample(self, n_frames: int, n_all: int) -> tuple[dict[float, Any], float]:
        """The frames in the middles of equal parts, by their seconds; fewer where some cannot be read."""
        places = sorted({int((part + 0.5) * n_all / n_frames) for part in range(n_frames)}) if n_all else []
        found: dict[float, Any] = {}
        for place in places:
            self._check_time()
            self._capture.set(self._cv2.CAP_PROP_POS_FRAMES, place)
            is_read, frame = self._capture.read()
            if is_read and frame is not None:
                self.n_decoded += 1
                found[place / self._rate] = self._picture(frame)
        return found, n_all / self._rate

    def _picture(self, frame: Any) -> Any:
        from PIL import Image

        height, width = frame.shape[:2]
        self._limits.check_frame(width, height)
        return Image.fromarray(self._cv2.cvtColor(frame, self._cv2.COLOR_BGR2RGB))

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise MediaProblem(f"took longer than {self._limits.most_video_s:g} s to sample")


@contextmanager
def _capture(file: BinaryIO, formats: str) -> Iterator[Any]:
    import cv2

    # The same containers as elsewhere: playlists, which name further files and addresses, stay closed.
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"format_whitelist;{formats}|protocol_whitelist;file"
    try:
        with _named(file) as path:
            capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG)
            try:
                if not capture.isOpened():
                    raise MediaProblem("is not a video of a known format, or is damaged")
                yield capture
            except cv2.error as error:
                raise MediaProblem(f"cannot be decoded ({' '.join(str(error).split())[:200]})") from None
            finally:
                capture.release()
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


@contextmanager
def _named(file: BinaryIO) -> Iterator[str]:
    """A path to what an open file holds: OpenCV reads nothing else."""
    path = _path_by_number(file)
    if path is not None:
        yield path
        return
    with NamedTemporaryFile(prefix="agentunit-video-", delete=False) as copy:
        try:
            shutil.copyfileobj(file, copy)
            copy.close()
            yield copy.name
        finally:
            copy.close()
            os.unlink(copy.name)


def _path_by_number(file: BinaryIO) -> str | None:
    """The name by which a file that is open already is opened again, where the system has such names."""
    try:
        path = f"/dev/fd/{file.fileno()}"
        return path if os.path.samestat(os.stat(path), os.fstat(file.fileno())) else None
    except OSError:
        # It is in memory, or this is Windows.
        return None
