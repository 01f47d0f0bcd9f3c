"""A folder like that of a trained large model, with random weights: its speed is that of any weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

WIDTH, LAYERS, HEADS, INNER, BUCKETS, PLACES = 768, 12, 12, 3072, 32, 514


def write_large(folder: Path, tokenizer: Path) -> Path:
    """Write ``model.onnx`` (weights alone, so only torch can run it), ``tokenizer.json`` and settings."""
    from onnx import helper, numpy_helper

    chance = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        return (0.02 * chance.standard_normal(shape, np.float32)).astype(np.float32)

    arrays = {
        "words.weight": noise(30522, WIDTH),
        "places.weight": noise(PLACES, WIDTH),
        "kinds.weight": noise(2, WIDTH),
        "norm.weight": np.ones(WIDTH, np.float32),
        "norm.bias": noise(WIDTH),
        "distances.weight": 10 * noise(BUCKETS, HEADS),
        "claim_head.0.weight": noise(WIDTH, 3 * WIDTH),
        "claim_head.0.bias": noise(WIDTH),
        "claim_head.3.weight": 5 * noise(1, WIDTH),
        "claim_head.3.bias": noise(1),
        "token_head.weight": noise(1, WIDTH),
        "token_head.bias": noise(1),
    }
    for number in range(LAYERS):
        for name, n_in, n_out in (
            ("qkv", WIDTH, 3 * WIDTH), ("out", WIDTH, WIDTH), ("up", WIDTH, INNER), ("down", INNER, WIDTH),
        ):  # fmt: skip
            arrays[f"layers.{number}.{name}.weight"] = 2 * noise(n_in, n_out)
            arrays[f"layers.{number}.{name}.inverse"] = np.ones(n_in, np.float32)
            arrays[f"layers.{number}.{name}.bias"] = noise(n_out)
        for name in ("norm", "last_norm"):
            arrays[f"layers.{number}.{name}.weight"] = np.ones(WIDTH, np.float32)
            arrays[f"layers.{number}.{name}.bias"] = noise(WIDTH)
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    model = helper.make_model(helper.make_graph([], "weights", [], [], tensors))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "cross_encoder.json").write_text('{"name": "large, random weights", "max_tokens": 384}', encoding="utf-8")
    return folder
