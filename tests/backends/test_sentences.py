from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentunit.backends import sentences
from agentunit.backends.quality import BackendUnavailable
from agentunit.backends.sentences import TextSimilarity, check_model_name, sentences_unready, text_similarity

np = pytest.importorskip("numpy")
needs_encoder = pytest.mark.skipif(sentences_unready() is not None, reason="agentunit-local is not installed")


class CountingEncoder:
    """Vectors of two numbers, and a list of what was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> object:
        self.asked.append(list(texts))
        return np.array([[1.0, 0.0] if "dog" in text else [0.6, 0.8] for text in texts], np.float32)


def test_a_text_is_encoded_once() -> None:
    encoder = CountingEncoder()
    similarity = TextSimilarity(encoder, "counting")
    similarity.remember(["a dog", "a cat", "a dog"])
    assert similarity.similarity("a dog", "a cat") == 0.6
    assert similarity.similarity("a dog", "a bird") == 0.6
    assert encoder.asked == [["a dog", "a cat"], ["a bird"]]


def test_memory_is_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_MOST_REMEMBERED", 3)
    similarity = TextSimilarity(CountingEncoder(), "counting")
    similarity.remember([f"cat {number}" for number in range(10)])
    assert [similarity.similarity("a dog", f"cat {number}") for number in range(10)] == [0.6] * 10
    assert len(similarity._vectors) <= 3


def test_threads_may_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "_MOST_REMEMBERED", 2)
    similarity = TextSimilarity(CountingEncoder(), "counting")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda number: similarity.similarity(f"dog {number}", f"cat {number}"), range(200)))
    assert found == [0.6] * 200


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_names_of_the_shipped_encoder(name: str) -> None:
    check_model_name(name, "Owner")


@pytest.mark.parametrize("name", ["all-mpnet-base-v2", "", 5, None, "a" * 5000, "bad\0name"])
def test_a_name_that_is_unknown_is_refused_in_one_sentence(name: object) -> None:
    with pytest.raises(ValueError, match=r"^Owner: model_name must be 'all-MiniLM-L6-v2' or a folder with an encoder"):
        check_model_name(name, "Owner")


def test_without_the_package_there_is_a_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sentences, "find_spec", lambda name: None if name == "agentunit_local" else find_spec(name))
    text_similarity.cache_clear()
    with pytest.raises(
        BackendUnavailable, match=r'^agentunit-local is not installed; pip install "agentunit-eval\[local\]"'
    ):
        text_similarity(str(tmp_path))
    text_similarity.cache_clear()


@needs_encoder
def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"no sentence encoder: .* holds no model\.onnx"):
        text_similarity(str(tmp_path))


@needs_encoder
def test_the_shipped_encoder_knows_what_is_alike() -> None:
    similarity = text_similarity("all-MiniLM-L6-v2")
    assert similarity.name == "all-MiniLM-L6-v2"
    assert similarity.similarity("A dog runs after a ball.", "A puppy chases a toy.") > 0.5
    assert similarity.similarity("A dog runs after a ball.", "Interest rates were raised.") < 0.2
    assert similarity.similarity("A dog.", "A dog.") == 1.0
    assert similarity.similarity("A dog.", "") == 0.0
