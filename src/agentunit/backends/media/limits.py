"""What may be read from media, and the one way in which it is refused."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path

from agentunit.core.case import origin_of
from agentunit.installation import install_command

EXTRA = install_command("multimodal")


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

    def check_frame(self, width: float, height: float) -> None:
        """Refuse a frame with too many pixels."""
        if width * height > self.most_frame_pixels:
            raise MediaProblem(
                f"must have at most {self.most_frame_pixels:,} pixels a frame; it has {int(width):,} × {int(height):,}"
            )


_configured: Path | None = None


def configure_media_root(root: str | os.PathLike[str] | None) -> None:
    """Let every metric without a ``media_root`` of its own read media in this folder; ``None`` forgets it."""
    global _configured  # one setting of the process, as that of the judge
    if root is not None and not (isinstance(root, (str, os.PathLike)) and os.path.isdir(root)):
        raise ValueError(f"media_root must be a folder; received {root!r:.200}")
    _configured = None if root is None else Path(root)


def configured_media_root() -> Path | None:
    """The folder that was configured."""
    return _configured


@dataclass(frozen=True)
class MediaAccess:
    """Where media may come from: files under ``root`` only, when there is one; URLs only when they are allowed.

    Relative paths start at ``root``, else at the working directory. ``foreign`` is true when the root is nobody's
    choice but the folder of the file that names the media.
    """

    root: Path | None = None
    allow_urls: bool = False
    limits: MediaLimits = MediaLimits()
    foreign: bool = False

    @classmethod
    def for_case(
        cls,
        case: object,
        media_root: str | os.PathLike[str] | None,
        allow_urls: bool = False,
        limits: MediaLimits | None = None,
    ) -> MediaAccess:
        """What the media of a case may be: under the root that the user names, else beside the file of the case.

        A case that was made in Python names files as its program does: anywhere.
        """
        chosen = _configured if media_root is None else Path(media_root)
        origin = origin_of(case) if chosen is None else None
        root = Path(origin) if origin is not None else chosen
        return cls(root, allow_urls, limits or MediaLimits(), origin is not None)
