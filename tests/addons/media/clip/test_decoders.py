"""Pictures decoded by other processes: the same pixels, and nothing that a picture does to them reaches us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from made_media import encoded, shape

from agentunit.addons.media.clip._decoders import DecoderProcess, DecoderProcesses
from agentunit.addons.media.clip.clip_settings import ClipSettings, cropped
from agentunit.backends.media_sources import MediaLimits, MediaProblem

SETTINGS = ClipSettings()
PICTURE = encoded(shape("green", side=300), "JPEG")


@pytest.fixture
def decoder() -> Iterator[DecoderProcess]:
    process = DecoderProcess(SETTINGS, MediaLimits())
    yield process
    process.stop()


def decoded(decoder: DecoderProcess, content: bytes) -> np.ndarray:
    (made,) = decoder.decode([content])
    if isinstance(made, MediaProblem):
        raise made
    return np.frombuffer(made, np.uint8).reshape(224, 224, 3)


def test_the_same_pixels_as_here(decoder: DecoderProcess) -> None:
    from agentunit.addons.media._images import decode_image

    for content in (PICTURE, encoded(shape("red", side=1000)), PICTURE):
        expected = np.asarray(cropped(decode_image(content, MediaLimits()), SETTINGS))
        assert np.array_equal(decoded(decoder, content), expected)


def test_a_refused_picture_leaves_the_process_ready(decoder: DecoderProcess) -> None:
    for content in (b"no picture", b"", b"x" * 3_000_000):
        with pytest.raises(MediaProblem, match="is not a picture of a known format"):
            decoded(decoder, content)
    assert decoded(decoder, PICTURE).any()


def test_a_process_that_dies_costs_one_picture(decoder: DecoderProcess) -> None:
    decoded(decoder, PICTURE)
    assert decoder._process is not None
    os.kill(decoder._process.pid, signal.SIGKILL)
    decoder._process.wait()
    with pytest.raises(MediaProblem, match="brought its decoder down"):
        decoded(decoder, PICTURE)
    assert decoded(decoder, PICTURE).any()


STRUCK = """
import os, signal, sys
from agentunit.addons.media.clip._decoders import DecoderProcess
from agentunit.addons.media.clip.clip_settings import ClipSettings
from agentunit.backends.media_sources import MediaLimits

for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda number, frame: None)
decoder = DecoderProcess(ClipSettings(), MediaLimits())
content = sys.stdin.buffer.read()
for _ in range(2):
    (made,) = decoder.decode([content])
    assert isinstance(made, memoryview), made
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.killpg(0, number)
decoder.stop()
"""


@pytest.mark.skipif(os.name != "posix", reason="the signals of POSIX")
def test_what_the_whole_group_is_sent_is_not_the_decoders_to_hear() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRUCK], input=PICTURE, capture_output=True, timeout=300, start_new_session=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_many_pictures_keep_their_order_whatever_some_of_them_do(decoder: DecoderProcess) -> None:
    good = [
        encoded(shape(color, side=side))
        for color, side in zip(["red", "green", "blue"] * 2, range(250, 256), strict=True)
    ]
    contents = [*good]
    contents[1:1] = [b"no picture"]
    found = []
    for answer in decoder.decode(contents):
        found.append(str(answer) if isinstance(answer, MediaProblem) else bytes(answer))
        if len(found) == 3:
            assert decoder._process is not None
            os.kill(decoder._process.pid, signal.SIGKILL)
            decoder._process.wait()
    alone = [decoded(decoder, each).tobytes() for each in good]
    lost = "cannot be decoded: it brought its decoder down"
    # The fourth may have been made before its process died.
    assert found[:3] == [alone[0], "is not a picture of a known format", alone[1]]
    assert found[3] in (alone[2], lost)
    assert found[4:].count(lost) <= (found[3] != lost)
    assert found[5:] == alone[4:]


def test_a_process_that_hangs_is_ended() -> None:
    process = DecoderProcess(SETTINGS, MediaLimits(most_decode_s=0.2))
    started = process._started()
    os.kill(started.pid, signal.SIGSTOP)
    with pytest.raises(MediaProblem, match=r"must be decoded within 0\.2 s; it was not"):
        decoded(process, PICTURE)
    assert started.returncode == -signal.SIGKILL
    process.stop()


def test_they_end_with_their_owner() -> None:
    owner = DecoderProcesses(2, SETTINGS, MediaLimits())
    with owner.borrowed() as one, owner.borrowed() as other:
        assert one is not other
        decoded(one, PICTURE)
        assert one._process is not None
        running = one._process
    assert owner.ours
    del one, other
    owner.close()
    assert running.returncode is not None


def test_they_know_whose_they_are() -> None:
    owner = DecoderProcesses(1, SETTINGS, MediaLimits())
    owner._made_in += 1
    assert not owner.ours


def test_the_other_end_is_no_user_of_our_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file named like a module, in the folder we are in, is not what the process imports."""
    (tmp_path / "PIL.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    process = DecoderProcess(SETTINGS, MediaLimits())
    assert decoded(process, PICTURE).any()
    process.stop()
