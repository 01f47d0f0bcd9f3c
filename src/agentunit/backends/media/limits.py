"""What may be read from media, and the one way in which it is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

EXTRA = 'pip install "agentunit-eval[multimodal]"'


class MediaProblem(ValueError):
    """A picture or video that cannot be used. The message goes on after its name: the rule, and what was found."""


@dataclass(frozen=True)
class MediaLimits:
    """Bounds on time and memory, checked before the work is done where that is possible.

    A video may take ``most_video_s`` seconds and ``most_video_memory_bytes`` of the process that samples it, and
    ``most_frames_per_seek`` decoded frames and ``most_packets_per_seek`` packets until a wanted frame is found.
    """

    most_bytes: int = 64 * 2**20
    most_pixels: int = 64_000_000
    most_frame_pixels: int = 40_000_000
    most_video_s: float = 60.0
    most_video_memory_bytes: int = 2 * 2**30
    most_frames_per_seek: int = 3_000
    most_packets_per_seek: int = 50_000
    most_decode_s: float = 30.0
    most_fetch_s: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
                raise ValueError(f"MediaLimits: {each.name} must be a finite number above 0; received {value!r}")


@dataclass(frozen=True)
class MediaAccess:
    """Where media may come from: files under ``root`` only, when there is one; URLs only when they are allowed.

    Relative paths start at ``root``, else at the working directory.
    """

    root: Path | None = None
    allow_urls: bool = False
    limits: MediaLimits = MediaLimits()
