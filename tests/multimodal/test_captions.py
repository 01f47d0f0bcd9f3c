from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import agentunit
from agentunit.backends import sentence_encoders
from agentunit.backends.quality import BackendUnavailable
from agentunit.backends.sentence_encoders import TextSimilarity, sentences_unready
from agentunit.metrics.inputs import Item
from agentunit.multimodal import reference_texts
from agentunit.multimodal.reference_texts import ImageCaptionAccuracyMetric

np = pytest.importorskip("numpy")
needs_encoder = pytest.mark.skipif(sentences_unready() is not None, reason="agentunit-local is not installed")
DOG = "A brown dog runs across a lawn."


def evaluate(metric: ImageCaptionAccuracyMetric, expected: Any, caption: Any, **metadata: Any) -> Any:
    return metric.evaluate({"id": "q1", "expected_output": expected, "metadata": metadata}, None, caption)


class ByFirstWord:
    """An encoder whose vectors are known: 'A' → (1, 0), 'Some' → (0.6, 0.8), 'No' → (−1, 0)."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        known = {"A": (1.0, 0.0), "Some": (0.6, 0.8), "No": (-1.0, 0.0)}
        return np.array([known[text.split()[0]] for text in texts], np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> ByFirstWord:
    made = ByFirstWord()
    similarity = TextSimilarity(made, "by first word")
    monkeypatch.setattr(reference_texts, "text_similarity", lambda name: similarity)
    monkeypatch.setattr(reference_texts, "sentences_unready", lambda: None)
    return made


def test_seven_tenths_meaning_three_tenths_words(encoder: ByFirstWord) -> None:
    result = evaluate(ImageCaptionAccuracyMetric(), "Some dogs run", "A dog may run")
    # One word of four and of three is shared: P = 1/4, R = 1/3, F1 = 2/7. The cosine is 0.6.
    assert result.value == pytest.approx(0.7 * 0.6 + 0.3 * 2 / 7)
    assert result.detail == {
        "semantic_similarity": 0.6,
        "precision": 1 / 4,
        "recall": 1 / 3,
        "f1": pytest.approx(2 / 7),
        "reference": "Some dogs run",
        "n_references": 1,
        "caption": "A dog may run",
        "backend": "by first word",
        "why": (
            "has 33% of the reference's words, 25% of its own words are in the reference, meaning 0.60: "
            '"Some dogs run"'
        ),
    }


def test_the_best_reference_counts(encoder: ByFirstWord) -> None:
    result = evaluate(ImageCaptionAccuracyMetric(), ["No dog", "Some dogs run", "A dog runs"], "A dog runs")
    assert result.value == 1.0
    assert (result.detail["reference"], result.detail["n_references"]) == ("A dog runs", 3)


def test_a_meaning_that_is_opposite_counts_as_none(encoder: ByFirstWord) -> None:
    result = evaluate(ImageCaptionAccuracyMetric(), "No dog", "A cat")
    assert (result.value, result.detail["semantic_similarity"]) == (0.0, -1.0)


def test_a_batch_encodes_each_text_once(encoder: ByFirstWord) -> None:
    cases: list[tuple[Any, Any]] = [
        ("A dog", "Some dogs"),
        (["A dog", "A lawn"], "A dog"),
        (None, "Some unread caption"),
        ("A dog", None),
        (["A dog", " "], "Some dogs"),
    ]
    items = [Item({"id": "q", "expected_output": expected}, None, caption) for expected, caption in cases]
    items.append(Item({"id": "q", "metadata": {"references": 5}}, None, "A dog"))
    metric = ImageCaptionAccuracyMetric()
    batch = metric.evaluate_batch(items)
    assert encoder.asked == [["Some dogs", "A dog", "A lawn"]]
    assert batch == [metric.measure(item) for item in items]
    assert [result.value is None for result in batch] == [False, False, True, True, False, True]


def test_the_engine_batches_it(encoder: ByFirstWord) -> None:
    records = [{"case": {"id": str(n), "expected_output": "A dog"}, "outcome": f"Some dog {n % 3}"} for n in range(9)]
    run = agentunit.score(records, [ImageCaptionAccuracyMetric()])
    assert {score.scores["image_caption_accuracy"].status for score in run} == {"ok"}
    assert [len(texts) for texts in encoder.asked] == [4]


@pytest.mark.parametrize("key", ["references", "captions"])
@pytest.mark.parametrize("references", [DOG, [DOG], ("nothing", DOG)])
def test_references_in_the_metadata(key: str, references: Any) -> None:
    result = evaluate(ImageCaptionAccuracyMetric(use_semantic=False), None, DOG, **{key: references})
    assert (result.value, result.detail["backend"]) == (1.0, "keywords")


def test_the_expected_output_comes_first() -> None:
    result = evaluate(ImageCaptionAccuracyMetric(use_semantic=False), "a cat", DOG, references=[DOG])
    assert result.detail["reference"] == "a cat"


@pytest.mark.parametrize(
    ("references", "caption", "metadata", "reason"),
    [
        (None, DOG, {}, "no reference: neither case.expected_output nor case.metadata.references"),
        (" ", DOG, {}, "no reference"),
        (DOG, None, {}, "no answer: outcome.output is missing"),
        (None, DOG, {"references": [1]}, "case.metadata['references'] must be a text or a list of texts; received [1]"),
        (DOG, "x" * 100_001, {}, "a caption must have at most 100,000 characters; received 100,001"),
    ],
)
def test_what_cannot_be_scored_says_why(references: Any, caption: Any, metadata: Any, reason: str) -> None:
    result = evaluate(ImageCaptionAccuracyMetric(), references, caption, **metadata)
    assert result.value is None
    assert result.detail["reason"].startswith(reason)


def test_a_blank_caption_is_worth_nothing() -> None:
    for metric in (ImageCaptionAccuracyMetric(), ImageCaptionAccuracyMetric(use_semantic=False)):
        assert evaluate(metric, DOG, "  ").value == 0.0


def test_without_an_encoder_words_alone_count_and_the_backend_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoders, "find_spec", lambda name: None)
    result = evaluate(ImageCaptionAccuracyMetric(), "a b", "a c")
    assert (result.value, result.detail["semantic_similarity"], result.detail["backend"]) == (0.5, None, "keywords")
    assert not ImageCaptionAccuracyMetric().gains_from_batches


def test_an_encoder_that_is_named_and_cannot_run_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sentence_encoders, "find_spec", lambda name: None if name == "tokenizers" else find_spec(name))
    sentence_encoders.text_similarity.cache_clear()
    with pytest.raises(BackendUnavailable, match="is not installed; pip install"):
        ImageCaptionAccuracyMetric(model_name=str(tmp_path))
    assert ImageCaptionAccuracyMetric(use_semantic=False, model_name=str(tmp_path)).current_backend == "keywords"


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"use_semantic": 1}, "ImageCaptionAccuracyMetric: use_semantic must be True or False; received 1"),
        ({"model_name": "all-mpnet-base-v2"}, "ImageCaptionAccuracyMetric: model_name must be 'all-MiniLM-L6-v2' or"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        ImageCaptionAccuracyMetric(**parameters)


@needs_encoder
def test_meaning_is_seen_where_words_differ() -> None:
    metric = ImageCaptionAccuracyMetric()
    close = evaluate(metric, DOG, "The puppy is sprinting over the grass.")
    far = evaluate(metric, DOG, "A brown bus stands at a station.")
    assert close.detail["backend"] == "all-MiniLM-L6-v2"
    assert close.value > far.value
    assert close.detail["f1"] < far.detail["f1"]
    assert evaluate(metric, DOG, DOG).value == 1.0


@needs_encoder
def test_scores_do_not_depend_on_the_batch() -> None:
    texts = [f"{DOG} {'It barks. ' * number}" for number in range(12)]
    items = [Item({"id": "q", "expected_output": [DOG, "A cat sleeps."]}, None, text) for text in texts]
    together = [result.value for result in ImageCaptionAccuracyMetric().evaluate_batch(items)]
    sentence_encoders.text_similarity.cache_clear()
    alone = [ImageCaptionAccuracyMetric().measure(item).value for item in items]
    assert together == pytest.approx(alone, abs=1e-6)
