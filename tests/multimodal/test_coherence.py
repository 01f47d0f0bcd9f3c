from __future__ import annotations

from typing import Any

import pytest

from agentunit.multimodal.metrics import KEYWORDS, MultimodalCoherenceMetric


def evaluate(answer: Any, query: str | None = None, **metadata: Any) -> Any:
    return MultimodalCoherenceMetric().evaluate({"id": "q1", "query": query, "metadata": metadata}, None, answer)


@pytest.mark.parametrize(
    ("metadata", "query", "modalities"),
    [
        ({"image_path": "a.png"}, None, ["image"]),
        ({"images": ["a.png"], "Audio": b"x", "video_url": "v"}, "Why?", ["image", "audio", "video", "text"]),
        ({"image_path": None, "audio_path": "", "video_frames": []}, "Why?", ["text"]),
        ({"my_image": "a.png", "colour": "red"}, "Why?", ["text"]),
        ({"video_path": "v"}, "  ", ["video"]),
        ({"image_size": 12, "audio_length": "3 s", "videos": 2, "text_id": "t1", "image": True}, "Why?", ["text"]),
        ({"text": "A report.", "image_path": "a.png"}, None, ["image", "text"]),
    ],
)
def test_modalities_of_the_input(metadata: dict[str, Any], query: str | None, modalities: list[str]) -> None:
    assert evaluate("yes", query, **metadata).detail["modalities"] == modalities


@pytest.mark.parametrize(
    ("answer", "value", "referenced", "transitions"),
    [
        ("A cat.", 0.0, [], []),
        ("The picture has a cat.", 0.3, ["image"], []),
        ("The picture has a cat; however, nobody purrs.", 0.7, ["image"], ["however"]),
        ("I hear purring in the RECORDING and see a cat in the photo.", 0.6, ["image", "audio"], []),
        ("In contrast to the image, the audio is loud.", 1.0, ["image", "audio"], ["in contrast"]),
        ("Photography and soundness alsoran.", 0.0, [], []),  # parts of words are no keywords
        ("Also a cat.", 0.4, [], ["also"]),
        ("The film shows it, too.", 0.0, [], []),  # a modality that the input does not have
    ],
)
def test_by_the_formula(answer: str, value: float, referenced: list[str], transitions: list[str]) -> None:
    result = evaluate(answer, image_path="cat.jpg", audio_path="cat.wav")
    assert result.value == pytest.approx(value)
    assert (result.detail["referenced"], result.detail["transitions"]) == (referenced, transitions)
    assert result.detail["coverage"] == len(referenced) / 2
    assert result.detail["coherence"] == float(bool(transitions))
    assert set(result.detail["keywords"]) == set(referenced)


def test_all_four() -> None:
    answer = "Both the image and the video match the document, while the sound is missing."
    result = evaluate(answer, "Compare.", image_path="i", video_path="v", audio_path="a")
    assert result.value == 1.0


@pytest.mark.parametrize(
    ("answer", "query", "metadata", "reason"),
    [
        ("A cat.", None, {}, "no modality: no query, and no image, audio, video or text in case.metadata"),
        (None, "Why?", {"image_path": "cat.jpg"}, "no answer: outcome.output is missing"),
        ("A cat.", "Why?", [1], "case.metadata must be a dict; received [1]"),
    ],
)
def test_what_cannot_be_scored_says_why(answer: Any, query: Any, metadata: Any, reason: str) -> None:
    from agentunit.core.case import DatasetCase

    result = MultimodalCoherenceMetric().evaluate(DatasetCase("q1", query, metadata=metadata), None, answer)
    assert result.value is None
    assert result.detail["reason"] == reason


def test_no_word_speaks_for_two_modalities() -> None:
    words = [word for of_modality in KEYWORDS.values() for word in of_modality]
    assert len(words) == len(set(words))
