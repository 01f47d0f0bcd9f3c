"""The runtime of agentunit-local, on a model that looks tokens up in a table, so that every output is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_onnx import write_lookup_model

pytest.importorskip("agentunit_local", reason="agentunit-local is not installed")

import numpy as np
from agentunit_local.onnx_text import ModelFilesError, OnnxTextModel, Tokens
from agentunit_local.sentences import WEIGHTS

TOKENIZER = WEIGHTS / "tokenizer.json"
VOCABULARY = 30_522
CLS, SEP, DOG, CAT = 101, 102, 3899, 4937


@pytest.fixture(scope="module")
def lookup_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = np.stack([np.arange(VOCABULARY), np.ones(VOCABULARY)], axis=1)
    return write_lookup_model(tmp_path_factory.mktemp("lookup") / "model.onnx", table.tolist())


@pytest.fixture(scope="module")
def model(lookup_file: Path) -> OnnxTextModel:
    return OnnxTextModel(lookup_file, TOKENIZER, max_tokens=16, batch_tokens=32)


def ids_seen(outputs: dict[str, Any]) -> list[int]:
    return [int(number) for number in outputs["last_hidden_state"][:, 0]]


def test_each_text_gets_its_own_rows_in_the_order_given(model: OnnxTextModel) -> None:
    texts = ["dog", "cat " * 12, "", "dog cat", "cat"] * 7
    assert [ids_seen(outputs) for outputs in model.run(texts)] == [model.tokens(text).ids for text in texts]


def test_texts_and_pairs_have_the_tokens_around_them(model: OnnxTextModel) -> None:
    assert model.tokens("Dog") == Tokens([CLS, DOG, SEP], [0, 0, 0])
    assert model.tokens(("dog", "cat")) == Tokens([CLS, DOG, SEP, CAT, SEP], [0, 0, 0, 1, 1])
    assert ids_seen(model.run([("dog", "cat")])[0]) == [CLS, DOG, SEP, CAT, SEP]


def test_no_call_sees_more_tokens_than_allowed(model: OnnxTextModel, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []
    session = model._session

    class Watched:
        def run(self, names: Any, fed: dict[str, Any]) -> Any:
            shapes.append(fed["input_ids"].shape)
            return session.run(names, fed)

    monkeypatch.setattr(model, "_session", Watched())
    model.run(["dog " * (number % 14) for number in range(60)])
    assert sum(rows for rows, _ in shapes) == 60
    assert all(rows * length <= 32 for rows, length in shapes)
    assert len(shapes) < 60


def test_a_text_that_does_not_fit_is_refused_not_cut(model: OnnxTextModel) -> None:
    with pytest.raises(ValueError, match="at most 16 tokens; received 42"):
        model.run(["dog", "dog " * 40])


@pytest.mark.parametrize("n_words", [1, 14, 15, 28, 29, 100])
def test_windows_hold_every_token_once(model: OnnxTextModel, n_words: int) -> None:
    text = " ".join(["dog", "cat"][number % 2] for number in range(n_words))
    windows = model.windows(text)
    assert [number for window in windows for number in window.ids[1:-1]] == model.tokens(text).ids[1:-1]
    assert all(window.ids[0] == CLS and window.ids[-1] == SEP and len(window.ids) <= 16 for window in windows)
    assert len(windows) == -(-n_words // 14)
    lengths = [len(window.ids) for window in windows]
    assert max(lengths) - min(lengths) < len(windows)


def test_half_a_character_is_read_as_an_unknown_one(model: OnnxTextModel) -> None:
    assert model.tokens("dog \ud83d") == model.tokens("dog \ufffd")


def test_only_declared_inputs_are_fed(lookup_file: Path, tmp_path: Path) -> None:
    table = [[1.0]] * 200
    with_mask = write_lookup_model(tmp_path / "mask.onnx", table, inputs=("input_ids", "attention_mask"))
    assert len(OnnxTextModel(with_mask, TOKENIZER).run([""])) == 1
    odd = write_lookup_model(tmp_path / "odd.onnx", table, inputs=("input_ids", "pixel_values"))
    with pytest.raises(ModelFilesError, match=r"inputs must be among .*; received 'pixel_values'"):
        OnnxTextModel(odd, TOKENIZER)


def test_files_that_are_no_model_are_named(lookup_file: Path, tmp_path: Path) -> None:
    text = tmp_path / "model.onnx"
    text.write_text("not a model")
    with pytest.raises(ModelFilesError, match=r"model\.onnx: no ONNX model that can be opened"):
        OnnxTextModel(text, TOKENIZER)
    with pytest.raises(ModelFilesError, match=r"gone\.onnx: no such file"):
        OnnxTextModel(tmp_path / "gone.onnx", TOKENIZER)
    with pytest.raises(ModelFilesError, match=r"model\.onnx: no tokenizer that can be read"):
        OnnxTextModel(lookup_file, text)
    with pytest.raises(ModelFilesError, match=r"gone\.json: no such file"):
        OnnxTextModel(lookup_file, tmp_path / "gone.json")


def test_nothing_in_nothing_out(model: OnnxTextModel) -> None:
    assert model.run([]) == []
