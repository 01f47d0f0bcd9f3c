"""Whisper tiny.en on faster-whisper, as a user names it: ``recognizer="faster-whisper"``."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from agentunit.addons.media.speech import whisper_folder
from agentunit.backends.quality import BackendUnavailable
from agentunit.multimodal.reference_texts import AudioTranscriptionMetric

pytestmark = pytest.mark.optional
ROOT = Path(__file__).resolve().parents[3]
AUDIO = ROOT / os.environ.get("AGENTUNIT_DATA", "../shared/data") / "media" / "asr_audio"
needs_recordings = pytest.mark.skipif(
    not AUDIO.is_dir(), reason="no recordings here (AGENTUNIT_DATA names their folder)"
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def evaluate(audio: str, answer: str, **parameters: Any) -> Any:
    metric = AudioTranscriptionMetric(recognizer="faster-whisper", **parameters)
    return metric.evaluate({"id": "q1", "metadata": {"audio_path": audio}}, None, answer)


@needs_recordings
def test_what_it_hears_is_close_to_what_was_said() -> None:
    pairs = json.loads((AUDIO / "pairs_pocketsphinx.json").read_text())
    read_aloud = [pair for pair in pairs if pair["audio"].startswith("sense")]
    results = [evaluate(pair["audio"], pair["reference"], media_root=AUDIO) for pair in read_aloud]
    assert {result.detail["backend"] for result in results} == {"wer, faster-whisper"}
    assert sum(result.value for result in results) / len(results) > 0.8
    again = evaluate(read_aloud[0]["audio"], read_aloud[0]["reference"], media_root=AUDIO)
    assert again == results[0]


@needs_recordings
def test_weights_in_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    shutil.copytree(whisper_folder("", "test"), folder)
    metric = AudioTranscriptionMetric(recognizer=f"faster-whisper:{folder}", media_root=AUDIO)
    result = metric.evaluate({"id": "q1", "metadata": {"audio_path": "cards/001.wav"}}, None, "ten of clubs")
    assert result.detail["reference"].lower().rstrip(".").endswith("of clubs")


def test_a_broken_recording_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(b"RIFF" + bytes(500))
    result = evaluate(str(tmp_path / "speech.wav"), "ten")
    assert result.value is None
    assert "cannot be decoded" in result.detail["reason"]


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"holds no model\.bin"):
        AudioTranscriptionMetric(recognizer=f"faster-whisper:{tmp_path}")
