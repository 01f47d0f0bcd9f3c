"""The sentence encoder that agentunit-local ships, and encoders of a user's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_onnx import write_lookup_model

pytest.importorskip("agentunit_local", reason="agentunit-local is not installed")

import numpy as np
from agentunit_local.sentences import WEIGHTS, SentenceEncoder, encoder_from_folder, shipped_encoder
from agentunit_local.text_model import ModelFilesError

SENTENCES = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
# What the documentation of sentence-transformers prints for all-MiniLM-L6-v2 and these sentences.
DOCUMENTED = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return shipped_encoder()


def test_similarities_are_the_documented_ones(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(SENTENCES)
    assert vectors @ vectors.T == pytest.approx(np.array(DOCUMENTED), abs=0.01)


def test_vectors_have_length_one_and_blank_texts_none(encoder: SentenceEncoder) -> None:
    vectors = encoder.encode(["", " \n", "A dog.", "\ud800", "🙂", "x" * 5000])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0, 0, 1, 1, 1, 1], abs=1e-5)
    assert vectors.dtype == np.float32
    assert encoder.encode([]).shape == (0, 384)


def test_what_stands_beside_a_text_does_not_change_it(encoder: SentenceEncoder) -> None:
    texts = [f"{sentence} {'More of it. ' * number}" for number in range(8) for sentence in SENTENCES]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-6)
    assert np.array_equal(encoder.encode(texts), together)


def test_a_long_text_counts_to_its_end(encoder: SentenceEncoder) -> None:
    filler = "The committee met and talked about the weather. " * 60
    plain, with_end = encoder.encode([filler, f"{filler} A brown dog chases a red ball across the lawn. " * 2])
    dog = encoder.encode(["A brown dog chases a red ball across the lawn."])[0]
    assert plain @ with_end < 0.999
    assert with_end @ dog > plain @ dog + 0.02


def test_windows_are_averaged_by_their_tokens(encoder: SentenceEncoder) -> None:
    text = " ".join(SENTENCES * 30)
    windows = encoder._model.windows(text, encoder.max_tokens)
    assert len(windows) > 1
    means = [outputs["sentence_embedding"] for outputs in encoder._model.run_tokens(windows)]
    mean = np.average(means, axis=0, weights=[len(window.ids) for window in windows])
    assert encoder.encode([text])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


FolderOf = Callable[..., str]


@pytest.fixture
def folder_of(tmp_path: Path) -> FolderOf:
    """A folder as an export leaves it: token 101 ([CLS]) has the vector (1, 0), every other token (0, 1)."""

    def make(*, model: str = "model.onnx", **settings: object) -> str:
        table = [[float(number == 101), float(number != 101)] for number in range(30_522)]
        write_lookup_model(tmp_path / "mine" / model, table)
        shutil.copy(WEIGHTS / "tokenizer.json", tmp_path / "mine")
        for name, content in settings.items():
            file = (
                tmp_path / "mine" / {"pooling": "1_Pooling/config.json", "longest": "sentence_bert_config.json"}[name]
            )
            file.parent.mkdir(exist_ok=True)
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(tmp_path / "mine")

    return make


def test_an_encoder_in_a_folder_is_pooled_by_mean(folder_of: FolderOf) -> None:
    encoder = encoder_from_folder(folder_of())
    # One of three tokens is [CLS]: (1, 2)/3, at length 1.
    assert encoder.encode(["dog"])[0] == pytest.approx(np.array([1, 2]) / np.sqrt(5))
    assert encoder.name == "mine"


def test_the_first_token_where_the_export_says_so(folder_of: FolderOf) -> None:
    modes = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 2}
    folder = folder_of(model="onnx/model.onnx", pooling=modes)
    assert encoder_from_folder(folder).encode(["dog"])[0] == pytest.approx([1, 0])


def test_the_longest_text_where_the_export_says_so(folder_of: FolderOf) -> None:
    encoder = encoder_from_folder(folder_of(longest={"max_seq_length": 8}))
    # Six words a window, each with its own [CLS]: 2 of 16 tokens, not 1 of 14.
    assert encoder.encode(["dog " * 12])[0] == pytest.approx(np.array([1, 7]) / np.sqrt(50))


def test_a_folder_that_cannot_be_used_says_why(folder_of: FolderOf, tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"holds no model\.onnx"):
        encoder_from_folder(str(tmp_path))
    with pytest.raises(ModelFilesError, match="pooling must be by mean or by first token; received pooling_mode_max"):
        encoder_from_folder(folder_of(pooling={"pooling_mode_max_tokens": True}))
    with pytest.raises(ModelFilesError, match="cannot be read as JSON"):
        encoder_from_folder(folder_of(pooling="{"))
    (tmp_path / "mine" / "tokenizer.json").unlink()
    with pytest.raises(ModelFilesError, match=r"tokenizer\.json: no such file"):
        encoder_from_folder(str(tmp_path / "mine" / ".." / "mine"))
