"""Videos by OpenCV, where PyAV is missing: a stand-in for the package, and the package itself where it is installed."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sampled_video import sample_frames

from agentunit.addons.media import video_frames as videos
from agentunit.addons.media.video_frames import SampledVideo, sample_file, video_unready
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem

np = pytest.importorskip("numpy")
pytest.importorskip("PIL")
COUNT, RATE, WIDTH, HEIGHT, PLACE = range(5)


class FakeCapture:
    """A video of ``n_frames`` frames, 10 a second, whose red value is the number of the frame."""

    def __init__(self, n_frames: int, *, stated: float | None = None, side: int = 4, opens: bool = True) -> None:
        self.n_frames, self.side, self.opens, self.place = n_frames, side, opens, 0
        self.stated = n_frames if stated is None else stated
        self.is_released = False

    def isOpened(self) -> bool:  # noqa: N802
        return self.opens

    def get(self, what: int) -> float:
        return {COUNT: self.stated, RATE: 10.0, WIDTH: self.side, HEIGHT: self.side}[what]

    def set(self, what: int, value: float) -> bool:
        assert what == PLACE
        self.place = int(value)
        return True

    def grab(self) -> bool:
        self.place += 1
        return self.place <= self.n_frames

    def read(self) -> tuple[bool, Any]:
        if not self.grab():
            return False, None
        frame = np.zeros((self.side, self.side, 3), np.uint8)
        frame[..., 2] = self.place - 1
        return True, frame

    def release(self) -> None:
        self.is_released = True


@pytest.fixture
def opencv(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A machine with OpenCV alone; gives a function that says which video is opened."""

    def install(capture: FakeCapture) -> list[tuple[str, int]]:
        opened: list[tuple[str, int]] = []

        def open_capture(path: str, backend: int) -> FakeCapture:
            opened.append((Path(path).read_bytes().decode(), backend))
            return capture

        module = SimpleNamespace(
            VideoCapture=open_capture, CAP_FFMPEG=1900, CAP_PROP_FRAME_COUNT=COUNT, CAP_PROP_FPS=RATE,
            CAP_PROP_FRAME_WIDTH=WIDTH, CAP_PROP_FRAME_HEIGHT=HEIGHT, CAP_PROP_POS_FRAMES=PLACE, COLOR_BGR2RGB=4,
            cvtColor=lambda frame, _: np.ascontiguousarray(frame[..., ::-1]), error=type("error", (Exception,), {}),
        )  # fmt: skip
        monkeypatch.setitem(sys.modules, "cv2", module)
        monkeypatch.setattr(videos, "find_spec", lambda name: None if name == "av" else name == "cv2")
        return opened

    return install


def sampled(n_frames: int, **limits: Any) -> SampledVideo[int]:
    return sample_file(BytesIO(b"video"), n_frames, MediaLimits(**limits), lambda frame: frame.getpixel((0, 0))[0])


def test_frames_come_from_the_middles_of_equal_parts(opencv: Any) -> None:
    capture = FakeCapture(40)
    opened = opencv(capture)
    found = sampled(4)
    assert opened == [("video", 1900)]
    assert (found.frames, found.times_s) == ([5, 15, 25, 35], [0.5, 1.5, 2.5, 3.5])
    assert (found.duration_s, found.n_decoded, found.decoder) == (4.0, 4, "opencv")
    assert capture.is_released


@pytest.mark.parametrize("stated", [0.0, -1.0, 400.0, 1e300], ids=["none", "negative", "too many", "absurd"])
def test_a_wrong_number_of_frames_is_counted_anew(opencv: Any, stated: float) -> None:
    opencv(FakeCapture(40, stated=stated))
    assert (sampled(4).frames, sampled(4).duration_s) == ([5, 15, 25, 35], 4.0)


def test_a_video_with_fewer_frames_gives_them_all(opencv: Any) -> None:
    opencv(FakeCapture(3))
    assert sampled(8).frames == [0, 1, 2]


@pytest.mark.parametrize(
    ("capture", "limits", "sentence"),
    [
        (FakeCapture(0, opens=False), {}, "is not a video of a known format, or is damaged"),
        (FakeCapture(0), {}, "has no frame that can be decoded"),
        (FakeCapture(9, side=64), {"most_frame_pixels": 1000}, "at most 1,000 pixels a frame; it has 64 × 64"),
        (
            FakeCapture(900, stated=0),
            {"most_packets_per_seek": 100},
            "has more than 100 frames and does not say how many",
        ),
        (FakeCapture(9), {"most_video_s": 1e-9}, "took longer than 1e-09 s to sample"),
    ],
)
def test_the_limits_hold(opencv: Any, capture: FakeCapture, limits: dict[str, Any], sentence: str) -> None:
    opencv(capture)
    with pytest.raises(MediaProblem, match=sentence):
        sampled(4, **limits)


def test_pyav_comes_first_and_neither_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(videos, "find_spec", lambda name: name)
    assert (videos.decoder_name(), video_unready()) == ("pyav", None)
    monkeypatch.setattr(videos, "find_spec", lambda name: None)
    assert str(video_unready()).startswith("PyAV is not installed, nor is OpenCV; pip install")


def test_the_real_opencv_reads_a_real_video(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("cv2", reason="opencv-python-headless is not installed")
    pytest.importorskip("av")
    from made_media import shape, video

    path = tmp_path / "clip.mp4"
    path.write_bytes(video((at * 0.04, shape("red" if at < 50 else "blue")) for at in range(100)))
    monkeypatch.setattr(videos, "decoder_name", lambda: "opencv")
    found = sample_frames(str(path), 4, MediaAccess(root=tmp_path), lambda frame: frame.getpixel((32, 32)))
    assert [red > blue for red, _, blue in found.frames] == [True, True, False, False]
