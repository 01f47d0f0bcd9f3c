from __future__ import annotations

import json
import os
import sys
import wave
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentunit
from agentunit.multimodal import reference_texts
from agentunit.multimodal.reference_texts import AudioTranscriptionMetric

ROOT = Path(__file__).resolve().parents[2]
AUDIO = ROOT / os.environ.get("AGENTUNIT_DATA", "../shared/data") / "media" / "asr_audio"


def evaluate(metric: AudioTranscriptionMetric, reference: Any, answer: Any, **metadata: Any) -> Any:
    return metric.evaluate({"id": "q1", "expected_output": reference, "metadata": metadata}, None, answer)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A quarter of a second of silence."""
    with wave.open(str(tmp_path / "speech.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(8_000))
    return tmp_path / "speech.wav"


@pytest.mark.parametrize(
    ("reference", "answer", "wer", "cer", "value"),
    [
        ("four queen of clubs", "For Queen of Clubs.", 1 / 4, 1 / 19, 3 / 4),
        ("Ten of clubs!", "ten  of\nclubs", 0.0, 0.0, 1.0),
        ("It’s late", "it's late", 0.0, 0.0, 1.0),
        ("five", "five five five", 2.0, 2.5, 0.0),  # a WER above 1 is worth 0, never less
        ("five", "", 1.0, 1.0, 0.0),
        ("...", "", 0.0, 0.0, 1.0),  # nothing was said, and nothing was heard
        ("", "hello there", 2.0, 11.0, 0.0),
        ("你好世界", "你好 世界。", 0.0, 0.0, 1.0),
        ("你好世界", "你好事界", 1 / 4, 1 / 4, 3 / 4),  # a letter is a word where there are no spaces
        ("1,000 people", "1000 people", 0.0, 0.0, 1.0),
    ],
)
def test_hand_checked(reference: str, answer: str, wer: float, cer: float, value: float) -> None:
    result = evaluate(AudioTranscriptionMetric(), reference, answer)
    assert result.value == result.detail["accuracy"] == pytest.approx(value)
    assert (result.detail["wer"], result.detail["cer"]) == (pytest.approx(wer), pytest.approx(cer))
    assert (result.detail["backend"], result.detail["reference"]) == ("wer", reference)


def test_without_normalising_every_sign_counts() -> None:
    result = evaluate(AudioTranscriptionMetric(normalize=False), "Ten of clubs.", "ten of clubs")
    assert result.detail["wer"] == pytest.approx(2 / 3)


def test_the_best_reference_counts_by_words_then_by_letters() -> None:
    result = evaluate(AudioTranscriptionMetric(), ["the grey cat", "a gray cat", "the gruy cat"], "the gray cat")
    # One word of three is wrong in each; the second differs in three letters, the others in one of twelve.
    assert (result.detail["wer"], result.detail["cer"]) == (pytest.approx(1 / 3), pytest.approx(1 / 12))
    assert (result.detail["reference"], result.detail["n_references"]) == ("the grey cat", 3)


@pytest.mark.parametrize("key", ["transcript", "references"])
def test_references_in_the_metadata(key: str) -> None:
    assert evaluate(AudioTranscriptionMetric(), None, "ten", **{key: ["two", "ten"]}).value == 1.0


TEXTS = st.lists(st.sampled_from(["a", "A", "cat.", "e\u0301", "é", "東京", " ", "\t", "don’t", "\ud800"]), max_size=8)


@given(TEXTS.map(" ".join), TEXTS.map(" ".join), st.booleans())
@settings(deadline=None, max_examples=200)
def test_the_same_numbers_with_and_without_jiwer(reference: str, answer: str, normalize: bool) -> None:
    metric = AudioTranscriptionMetric(normalize=normalize)
    details = []
    for engine in ("jiwer", "agentunit"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference_texts, "engine_name", lambda engine=engine: engine)
            details.append(evaluate(metric, [reference], answer).detail)
    assert [detail.pop("engine") for detail in details] == ["jiwer", "agentunit"]
    assert details[0] == details[1]


def test_jiwer_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    import jiwer

    asked = []
    monkeypatch.setattr(jiwer, "wer", lambda reference, hypothesis: asked.append((reference, hypothesis)) or 0.5)
    result = evaluate(AudioTranscriptionMetric(), "Ten!", "two")
    assert (result.value, result.detail["engine"], asked) == (0.5, "jiwer", [("ten", "two")])


# A recogniser makes the reference that a case lacks.


def test_what_a_recognizer_hears_is_the_reference(recording: Path) -> None:
    heard: list[str] = []

    def listen(path: str) -> str:
        heard.append(path)
        return "Ten of clubs."

    metric = AudioTranscriptionMetric(recognizer=listen)
    result = evaluate(metric, None, "two of clubs", audio_path=str(recording))
    assert result.value == pytest.approx(2 / 3)
    assert heard == [str(recording)]
    assert result.detail["reference"] == "Ten of clubs."
    assert "listen" in result.detail["backend"]
    assert "audio_path" in result.detail["reference_from"]


def test_a_reference_of_people_comes_first(recording: Path) -> None:
    metric = AudioTranscriptionMetric(recognizer=lambda path: pytest.fail("not needed"))
    assert evaluate(metric, "ten", "ten", audio_path=str(recording)).detail["backend"] == "wer"


def test_the_two_kinds_of_evidence_are_two_rows(recording: Path) -> None:
    cases = [{"id": "1", "expected_output": "ten"}, {"id": "2", "metadata": {"audio_path": str(recording)}}]
    metric = AudioTranscriptionMetric(recognizer=lambda path: "ten")
    run = agentunit.score([{"case": case, "outcome": "ten"} for case in cases], [metric])
    assert len({row.backend for row in run.summary().metrics}) == 2


def test_a_recognizer_by_name(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (recording.parent / "my_ears.py").write_text("def listen(path):\n    return 'ten'\n")
    monkeypatch.syspath_prepend(str(recording.parent))
    metric = AudioTranscriptionMetric(recognizer="my_ears:listen")
    result = evaluate(metric, None, "ten", audio_path=str(recording))
    assert (result.value, result.detail["backend"]) == (1.0, "wer, my_ears:listen")
    sys.modules.pop("my_ears")


def test_no_recognizer_no_reference(recording: Path) -> None:
    result = evaluate(AudioTranscriptionMetric(), None, "ten", audio_path=str(recording))
    assert result.value is None
    assert "error" not in result.detail
    assert "recognizer= makes one of case.metadata.audio_path" in result.detail["reason"]


def test_relative_paths_start_at_the_root_and_stay_there(recording: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    recording.rename(inside / "speech.wav")
    (tmp_path / "secret.wav").write_bytes((inside / "speech.wav").read_bytes())
    (inside / "link.wav").symlink_to(tmp_path / "secret.wav")
    metric = AudioTranscriptionMetric(recognizer=lambda path: "ten", media_root=inside)
    assert evaluate(metric, None, "ten", audio_path="speech.wav").value == 1.0
    for outside in ("../secret.wav", str(tmp_path / "secret.wav"), "link.wav"):
        result = evaluate(metric, None, "ten", audio_path=outside)
        assert "is outside of the allowed folder" in result.detail["reason"]


def test_a_recognizer_that_fails_fails_one_case(recording: Path) -> None:
    def broken(path: str) -> str:
        raise RuntimeError("no microphone")

    result = evaluate(AudioTranscriptionMetric(recognizer=broken), None, "ten", audio_path=str(recording))
    assert result.value is None
    assert result.detail["error"]["type"] == "InputProblem"
    assert "failed on" in result.detail["reason"]
    assert "RuntimeError: no microphone" in result.detail["reason"]
    odd = AudioTranscriptionMetric(recognizer=lambda path: None)  # type: ignore[arg-type,return-value]
    assert "must give a text; received None" in evaluate(odd, None, "ten", audio_path=str(recording)).detail["reason"]


@pytest.mark.parametrize(
    ("reference", "answer", "metadata", "reason"),
    [
        (None, "ten", {}, "no reference transcript: neither case.expected_output nor case.metadata.transcript"),
        ("ten", None, {}, "no answer: outcome.output is missing"),
        (None, "ten", {"transcript": 5}, "case.metadata['transcript'] must be a text or a list of texts; received 5"),
        ("x" * 200_001, "ten", {}, "a transcript must have at most 200,000 characters; received 200,001"),
    ],
)
def test_what_cannot_be_scored_says_why(reference: Any, answer: Any, metadata: Any, reason: str) -> None:
    result = evaluate(AudioTranscriptionMetric(), reference, answer, **metadata)
    assert result.value is None
    assert result.detail["reason"] == reason


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"normalize": "yes"}, "normalize must be True or False; received 'yes'"),
        ({"media_root": "/no/such/folder"}, "media_root must be a folder; received '/no/such/folder'"),
        (
            {"recognizer": 5},
            "recognizer must be a function of a path, 'module:attribute' or 'faster-whisper'; received 5",
        ),
        ({"recognizer": "whisper"}, "recognizer must be a function of a path"),
        ({"recognizer": "no_such_module:listen"}, "'no_such_module:listen' cannot be loaded: No module named"),
        ({"recognizer": "json:listen"}, "'json:listen' cannot be loaded: module 'json' has no attribute 'listen'"),
        ({"recognizer": "json:__name__"}, "must be a function of a path; received 'json'"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=f"AudioTranscriptionMetric: .*{rule}"):
        AudioTranscriptionMetric(**parameters)


@pytest.mark.skipif(not AUDIO.is_dir(), reason="no recordings here (AGENTUNIT_DATA names their folder)")
@pytest.mark.parametrize("engine", ["jiwer", "agentunit"])
def test_the_output_of_a_real_recogniser(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_texts, "engine_name", lambda: engine)
    pairs = json.loads((AUDIO / "pairs_pocketsphinx.json").read_text())
    assert len(pairs) == 10
    for pair in pairs:
        detail = evaluate(AudioTranscriptionMetric(), pair["reference"], pair["hypothesis"].capitalize() + ".").detail
        assert (detail["wer"], detail["cer"]) == (pytest.approx(pair["wer_jiwer"]), pytest.approx(pair["cer_jiwer"]))
