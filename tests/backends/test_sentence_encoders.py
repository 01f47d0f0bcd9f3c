from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from agentunit.backends import sentence_encoders
from agentunit.backends.quality import BackendUnavailable
from agentunit.backends.sentence_encoders import TextSimilarity, check_model_name, sentences_unready, text_similarity
from agentunit.installation import install_command

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
    monkeypatch.setattr(sentence_encoders, "_MOST_REMEMBERED", 3)
    similarity = TextSimilarity(CountingEncoder(), "counting")
    similarity.remember([f"cat {number}" for number in range(10)])
    assert [similarity.similarity("a dog", f"cat {number}") for number in range(10)] == [0.6] * 10
    assert len(similarity._vectors) <= 3


def test_threads_may_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoders, "_MOST_REMEMBERED", 2)
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
    monkeypatch.setattr(
        sentence_encoders, "find_spec", lambda name: None if name == "agentunit_local" else find_spec(name)
    )
    text_similarity.cache_clear()
    with pytest.raises(
        BackendUnavailable, match=r"^agentunit-local is not installed; " + re.escape(install_command("local"))
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


class FakeTransformer:
    """A model of sentence-transformers; ``made`` says with what each one was made."""

    made: ClassVar[list[tuple[str, dict[str, object]]]] = []
    cached = True

    def __init__(self, name: str, **options: object) -> None:
        if name == "nowhere" or (options.get("local_files_only") and not FakeTransformer.cached):
            raise OSError("no such model")
        FakeTransformer.made.append((name, options))

    def encode(self, texts: list[str], **options: object) -> object:
        assert options == {"normalize_embeddings": True, "convert_to_numpy": True, "show_progress_bar": False}
        return np.array([[1.0, 0.0] if "dog" in text else [0.6, 0.8] for text in texts], np.float32)


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeTransformer]]:
    """A machine with sentence-transformers."""
    module = SimpleNamespace(SentenceTransformer=FakeTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    there = {"sentence_transformers": object()}
    monkeypatch.setattr(sentence_encoders, "find_spec", lambda name: there.get(name) or find_spec(name))
    monkeypatch.setattr(FakeTransformer, "made", [])
    for each in (text_similarity, sentence_encoders.similarity_on_this_machine):
        each.cache_clear()
    yield FakeTransformer
    for each in (text_similarity, sentence_encoders.similarity_on_this_machine):
        each.cache_clear()


@pytest.mark.parametrize("name", ["all-mpnet-base-v2", "BAAI/bge-small-en-v1.5"])
def test_any_name_is_loaded_by_sentence_transformers(transformers: type[FakeTransformer], name: str) -> None:
    check_model_name(name, "Owner")
    similarity = text_similarity(name)
    # The user named it, so the package may get it from where it gets models.
    assert transformers.made == [(name, {})]
    assert similarity.name == f"sentence-transformers:{name.rpartition('/')[2]}"
    assert (similarity.similarity("a dog", "a cat"), similarity.similarity("a dog", " ")) == (0.6, 0.0)


def test_a_folder_without_onnx_is_loaded_by_sentence_transformers(
    transformers: type[FakeTransformer], tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    assert text_similarity(str(tmp_path / "mine")).name == "sentence-transformers:mine"


@needs_encoder
def test_the_default_name_stays_with_our_own_encoder(transformers: type[FakeTransformer]) -> None:
    assert text_similarity("all-MiniLM-L6-v2").name == "all-MiniLM-L6-v2"
    assert transformers.made == []


def test_the_default_is_taken_from_this_machine_where_our_own_is_missing(
    transformers: type[FakeTransformer], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence_encoders.similarity_on_this_machine() is not None
    assert transformers.made == [("sentence-transformers/all-MiniLM-L6-v2", {"local_files_only": True})]
    sentence_encoders.similarity_on_this_machine.cache_clear()
    monkeypatch.setattr(transformers, "cached", False)
    assert sentence_encoders.similarity_on_this_machine() is None


def test_a_model_that_does_not_load_says_why(transformers: type[FakeTransformer]) -> None:
    with pytest.raises(
        BackendUnavailable, match=r"sentence-transformers cannot load 'nowhere' \(OSError: no such model\)"
    ):
        text_similarity("nowhere")


def test_a_name_without_the_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sentence_encoders, "find_spec", lambda name: None if name == "sentence_transformers" else find_spec(name)
    )
    with pytest.raises(
        ValueError, match=r"other names need sentence-transformers \(pip install sentence-transformers\)"
    ):
        check_model_name("all-mpnet-base-v2", "Owner")


def test_the_real_package_loads_a_folder() -> None:
    transformer = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    folder = os.environ.get("AGENTUNIT_TEST_SENTENCE_TRANSFORMER")
    if not folder:
        pytest.skip("AGENTUNIT_TEST_SENTENCE_TRANSFORMER names no folder of a model")
    assert transformer
    assert text_similarity(folder).similarity("A dog runs.", "A puppy runs.") > 0.5
