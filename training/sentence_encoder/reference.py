"""The encoder in plain numpy and fp32, one sentence at a time: what the ONNX file is compared with."""

from __future__ import annotations

from math import erf

import numpy as np

from training.sentence_encoder.weights import HEADS, LAYER_NORM_EPSILON, LAYERS, WIDTH, Weights

_ERF = np.vectorize(erf, otypes=[np.float32])


def embed(weights: Weights, token_ids: list[int]) -> np.ndarray:
    """The mean token embedding of one sentence."""
    hidden = weights["embeddings.word_embeddings.weight"][token_ids]
    hidden = hidden + weights["embeddings.position_embeddings.weight"][: len(token_ids)]
    hidden = hidden + weights["embeddings.token_type_embeddings.weight"][0]
    hidden = _normalised(weights, hidden, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            _linear(weights, hidden, f"{name}.attention.self.{part}").reshape(-1, HEADS, WIDTH // HEADS).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(WIDTH // HEADS))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ value).swapaxes(0, 1).reshape(-1, WIDTH)
        attended = _linear(weights, mixed, f"{name}.attention.output.dense") + hidden
        attended = _normalised(weights, attended, f"{name}.attention.output.LayerNorm")
        inner = _linear(weights, attended, f"{name}.intermediate.dense")
        inner = inner * 0.5 * (1 + _ERF(inner / np.sqrt(np.float32(2))))
        hidden = _normalised(
            weights, _linear(weights, inner, f"{name}.output.dense") + attended, f"{name}.output.LayerNorm"
        )
    return hidden.mean(axis=0)


def _linear(weights: Weights, value: np.ndarray, name: str) -> np.ndarray:
    return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _normalised(weights: Weights, value: np.ndarray, name: str) -> np.ndarray:
    centred = value - value.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    return centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
