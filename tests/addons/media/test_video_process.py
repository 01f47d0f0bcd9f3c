"""Videos that only a process of their own survives."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_media import shape, video
from sampled_video import sample_frames

from agentunit.addons.media import video_frames as videos
from agentunit.addons.media.video_frames import sample_frames_apart
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem

CLIP = video(((at / 25, shape("red" if at < 50 else "blue")) for at in range(100)), keyframe_every=10)


def with_samples(n_samples: int) -> bytes:
    """A video of a few kilobytes whose tables state any number of samples, of one byte each."""
    content = bytearray(CLIP)
    for box, places in ((b"stsz", {8: 1, 12: n_samples}), (b"stsc", {16: n_samples}), (b"stts", {12: n_samples})):
        for at, number in places.items():
            struct.pack_into(">I", content, content.index(box) + at, number)
    return bytes(content)


def test_it_gives_what_sampling_here_gives(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    path.write_bytes(CLIP)
    here = sample_frames(path, 8, MediaAccess(), lambda frame: frame.copy())
    for source in (CLIP, path, str(path)):
        apart = sample_frames_apart(source, 8, MediaAccess())
        assert replace(apart, frames=[]) == replace(here, frames=[])
        assert [each.tobytes() for each in apart.frames] == [each.tobytes() for each in here.frames]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"This is a text.", "is not a video of a known format"),
        ("nowhere.mp4", "cannot be opened"),
        ("/dev/zero", "found a device"),
        ("http://127.0.0.1:9/x.mp4", "nothing is fetched unasked"),
    ],
)
def test_reasons_come_through(source: Any, words: str) -> None:
    with pytest.raises(MediaProblem, match=words):
        sample_frames_apart(source, 8, MediaAccess())


def test_a_call_that_takes_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(videos, "_MOST_START_S", 1.0)
    with pytest.raises(MediaProblem, match="took longer than 1 s to sample"):
        sample_frames_apart(with_samples(2_000_000), 8, MediaAccess(limits=MediaLimits(most_video_s=1.0)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems bound the time of a video, not its memory")
def test_memory_that_a_file_asks_for_is_not_given() -> None:
    # With all the memory that it asks for, this one would go on until its time is up.
    limits = MediaLimits(most_video_memory_bytes=256 * 2**20)
    with pytest.raises(MediaProblem, match="has no timestamps to choose frames by"):
        sample_frames_apart(with_samples(20_000_000), 8, MediaAccess(limits=limits))


def test_a_process_that_dies_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(videos, "_START", "import os; os.abort()")
    with pytest.raises(MediaProblem, match="it brought its decoder down"):
        sample_frames_apart(CLIP, 8, MediaAccess())
