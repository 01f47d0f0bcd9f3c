"""Frames of a video, sampled in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentunit.addons.media.video_frames import SampledVideo, open_video, sample_file
from agentunit.backends.media_sources import MediaAccess, MediaSource


def sample_frames(
    source: MediaSource, n_frames: int, access: MediaAccess, prepare: Callable[[Any], Any]
) -> SampledVideo[Any]:
    """What ``sample_file`` gives of a video, wherever it comes from."""
    with open_video(source, access) as file:
        return sample_file(file, n_frames, access.limits, prepare)
