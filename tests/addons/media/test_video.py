"""Frames of videos that are long, broken, or not what they say they are."""

from __future__ import annotations

import struct
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_media import shape, sound, video
from PIL import Image
from sampled_video import sample_frames

from agentunit.addons.media.video_frames import SampledVideo
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem

RED, BLUE = shape("red"), shape("blue")
HOUR_S = 3600.0


def sampled(source: Any, n_frames: int = 8, **limits: Any) -> SampledVideo[str]:
    def colour(frame: Image.Image) -> str:
        red, _, blue = frame.getpixel((frame.width // 2, frame.height // 2))
        return "red" if red > blue else "blue"

    return sample_frames(source, n_frames, MediaAccess(limits=MediaLimits(**limits)), colour)


def clip(n_frames: int = 200, step_s: float = 0.04, **options: Any) -> bytes:
    """Red in its first half, blue in the second."""
    return video(((at * step_s, RED if 2 * at < n_frames else BLUE) for at in range(n_frames)), **options)


def matroska_of(told_s: float) -> bytes:
    """Eight seconds that state another duration."""
    content = bytearray(clip(200, format="matroska", keyframe_every=10))
    at = content.index(b"\x44\x89") + 3  # the element that holds the duration
    content[at : at + 8] = struct.pack(">d", 1000 * told_s)
    return bytes(content)


def mp4_of(told_s: float) -> bytes:
    """Eight seconds that state another duration, everywhere but in the table of samples."""
    content = bytearray(clip(200, keyframe_every=10))
    for box, at in ((b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)):
        place = content.index(box) + at
        (was,) = struct.unpack_from(">I", content, place)
        struct.pack_into(">I", content, place, round(was * told_s / 8))
    return bytes(content)


@pytest.mark.parametrize("codec", ["mpeg4", "libx264"])
@pytest.mark.parametrize("format", ["mp4", "matroska", "mpegts", "avi"])
@pytest.mark.parametrize("keyframe_every", [10, 1000])
def test_frames_are_evenly_spaced(format: str, codec: str, keyframe_every: int) -> None:
    found = sampled(clip(format=format, codec=codec, keyframe_every=keyframe_every))
    assert found.frames == ["red"] * 4 + ["blue"] * 4
    assert found.duration_s == pytest.approx(8.0, abs=0.1)
    for index, time_s in enumerate(found.times_s):
        # Each lies within its eighth, at most a quarter of it before the middle.
        assert index + 0.2 <= time_s <= index + 1, found.times_s


@pytest.mark.parametrize("n_frames", [1, 2, 3, 8, 30])
def test_as_many_frames_as_asked(n_frames: int) -> None:
    assert len(sampled(clip(), n_frames).frames) == n_frames


def test_a_keyframe_near_by_is_all_that_is_decoded() -> None:
    found = sampled(clip(2000, keyframe_every=10))
    assert len(found.frames) == 8
    assert found.n_decoded == 8


def test_frames_after_one_keyframe_are_decoded_in_one_go() -> None:
    found = sampled(clip(200, keyframe_every=1000))
    assert len(found.frames) == 8
    assert found.n_decoded <= 200


def test_ten_hours_take_no_more_than_ten_seconds_would() -> None:
    found = sampled(clip(600, step_s=60.0, keyframe_every=5))
    assert found.duration_s == pytest.approx(10 * HOUR_S, rel=0.01)
    assert found.frames == ["red"] * 4 + ["blue"] * 4
    assert found.n_decoded == 8


def test_variable_frame_rate_is_sampled_by_time_and_not_by_count() -> None:
    # 100 red frames within the first second, then ten blue ones, one a second.
    times = [at / 100 for at in range(100)] + [1.0 + at for at in range(10)]
    content = video([(at, RED if at < 1 else BLUE) for at in times], keyframe_every=5)
    found = sampled(content)
    assert found.frames == ["red"] + ["blue"] * 7
    assert all(later - earlier <= 2.1 for earlier, later in pairwise(found.times_s))


def test_the_frame_that_is_shown_is_taken_and_not_the_next() -> None:
    slides = video([(0.0, RED), (60.0, BLUE), (70.0, BLUE)])  # a minute of red, ten seconds of blue
    assert sampled(slides, 7).frames == ["red", "blue"]
    assert sampled(slides, 1).frames == ["red"]


def test_fewer_frames_than_asked_are_told_apart() -> None:
    found = sampled(clip(3))
    assert len(found.frames) == len(set(found.times_s)) <= 3
    assert found.frames[0] == "red"


@pytest.mark.parametrize(
    "options", [{"format": "matroska"}, {"movflags": "frag_keyframe+empty_moov"}, {"format": "avi"}]
)
def test_a_video_that_was_cut_off_is_sampled_as_far_as_it_goes(options: dict[str, str]) -> None:
    content = clip(600, keyframe_every=25, **options)
    # The index of an AVI comes last, and is most of this one.
    frames, _, _ = content.partition(b"idx1") if options.get("format") == "avi" else (content, b"", b"")
    found = sampled(frames[: int(0.4 * len(frames))])
    assert len(found.frames) >= 6
    assert max(found.times_s) < 0.6 * 24.0


def test_a_duration_that_is_wrong_is_found_out() -> None:
    found = sampled(matroska_of(10 * HOUR_S))
    assert found.duration_s == pytest.approx(8.0, abs=0.1)
    assert found.frames == ["red"] * 4 + ["blue"] * 4


@pytest.mark.parametrize("content", [matroska_of(1.0), mp4_of(1.0)], ids=["matroska", "mp4"])
def test_what_comes_after_the_stated_end_is_sampled_too(content: bytes) -> None:
    found = sampled(content)
    assert found.duration_s == pytest.approx(8.0, abs=0.1)
    assert found.frames == ["red"] * 4 + ["blue"] * 4


def test_what_an_edit_list_leaves_out_is_not_sampled() -> None:
    content = bytearray(mp4_of(1.0))
    struct.pack_into(">I", content, content.index(b"elst") + 12, 1000)  # one second of the eight is to be shown
    found = sampled(bytes(content))
    assert found.duration_s == pytest.approx(1.0, abs=0.1)
    assert found.frames == ["red"] * 8


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"This is a text, whatever its name says." * 100, "not a video of a known format"),
        (clip()[:300], "not a video of a known format, or is damaged"),
        (clip()[:-200], "damaged|cannot be decoded|no frame"),
        (b"#EXTM3U\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n", "not a video of a known format"),
        (b"ffconcat version 1.0\nfile '/etc/passwd'\n", "not a video of a known format"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_video_is_refused_with_a_reason(content: bytes, words: str) -> None:
    with pytest.raises(MediaProblem, match=words):
        sampled(content)


def test_sound_alone_is_no_video() -> None:
    with pytest.raises(MediaProblem, match="holds no video stream"):
        sampled(sound())


def test_files_are_read_from_where_they_are_allowed_only(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "clip.mp4").write_bytes(clip())
    assert len(sampled(str(tmp_path / "clip.mp4")).frames) == 8
    assert len(sampled(tmp_path / "clip.mp4").frames) == 8
    with pytest.raises(MediaProblem, match="is outside of the allowed folder"):
        sample_frames("../clip.mp4", 8, MediaAccess(tmp_path / "root"), lambda frame: frame)
    with pytest.raises(MediaProblem, match="nothing is fetched unasked"):
        sampled("http://127.0.0.1:9/clip.mp4")
    with pytest.raises(MediaProblem, match="must be a file; found a folder"):
        sampled(tmp_path / "root")


def test_large_frames_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(MediaProblem, match="at most 4,000 pixels a frame; it has 64 × 64"):
        sampled(clip(), most_frame_pixels=4_000)


def test_no_more_frames_are_decoded_than_allowed() -> None:
    content = clip(600, keyframe_every=1000)  # 24 s with a single keyframe
    found = sampled(content, most_frames_per_seek=80)
    assert found.n_decoded <= 8 * 81
    with pytest.raises(MediaProblem, match=r"no frame that can be decoded: 5 frames without what was looked for"):
        sampled(content, most_frames_per_seek=5)


def test_no_more_packets_are_read_than_allowed() -> None:
    with pytest.raises(MediaProblem, match=r"no frame that can be decoded: 100 packets without"):
        sampled(clip(600, keyframe_every=1000), most_packets_per_seek=5)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 10))
    monkeypatch.setattr("agentunit.addons.media._video_reader.time.monotonic", lambda: float(next(clock)))
    with pytest.raises(MediaProblem, match="took longer than 60 s to sample"):
        sampled(clip())


def test_a_frame_is_turned_as_the_camera_says() -> None:
    buffer = BytesIO()
    wide = Image.new("RGB", (64, 32), (20, 20, 20))
    wide.paste((214, 40, 40), (0, 0, 32, 32))
    with av.open(buffer, "w", format="mp4") as container:
        stream: Any = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 32, "yuv420p"
        if not hasattr(stream, "set_display_rotation"):
            pytest.skip("this PyAV cannot write how a camera was held")
        stream.set_display_rotation(90)
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_image(wide)))
        container.mux(stream.encode(None))
    sizes = sample_frames(buffer.getvalue(), 1, MediaAccess(), lambda frame: frame.size).frames
    assert sizes == [(32, 64)]


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_broken_bytes_give_frames_or_a_reason(data: st.DataObject) -> None:
    content = bytearray(CLIPS[data.draw(st.sampled_from(sorted(CLIPS)))])
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found = "a reason"
    try:
        assert sampled(bytes(content), most_frames_per_seek=200, most_packets_per_seek=2_000).frames
    except MediaProblem as problem:
        found = str(problem)
    assert found.strip()


CLIPS = {"mp4": clip(40, keyframe_every=10), "matroska": clip(40, keyframe_every=10, format="matroska")}


def test_real_videos(data_folder: Path) -> None:
    for path in sorted((data_folder / "media" / "video").glob("*.mp4")):
        found = sample_frames(path, 8, MediaAccess(), lambda frame: frame.size)
        assert len(found.frames) == 8
        gaps = [later - earlier for earlier, later in pairwise(found.times_s)]
        assert max(gaps) < 2.5 * min(gaps), path.name
