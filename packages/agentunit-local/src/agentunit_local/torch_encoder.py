"""The encoders of this package in torch, with the weights of their ONNX files: BERT, and MPNet with its relative bias.

Attention goes to torch's fused kernels, so what it is given has the form that they take: lengths that are multiples of
eight, and a mask of the same kind of number as the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentunit_local.onnx_weights import Weights
from agentunit_local.text_model import ModelFilesError

_BERT_EPS, _MPNET_EPS = 1e-12, 1e-5
_BERT_HEADS = 12
_MPNET_FIRST_PLACE = 2
_FARTHEST = 128
_MASKED = -30000.0


@dataclass(frozen=True)
class Layer:
    """The weights of one layer: matrices as ``linear`` takes them, each with what is added, and two norms."""

    qkv: tuple[Any, Any]
    out: tuple[Any, Any]
    norm: tuple[Any, Any]
    up: tuple[Any, Any]
    down: tuple[Any, Any]
    last_norm: tuple[Any, Any]


class TorchEncoder:
    """Token ids to what the last layer says of each token, in one kind of number on one device."""

    def __init__(self, device: str, dtype: Any, *, heads: int, eps: float, first_place: int) -> None:
        self.device, self.dtype = device, dtype
        self.words: Any = None
        self.places: Any = None
        self.kinds: Any = None
        self.norm: tuple[Any, Any] = (None, None)
        self.distances: Any = None
        self.layers: list[Layer] = []
        self._heads, self._eps, self._first_place = heads, eps, first_place
        self._buckets: Any = None

    def tensor(self, array: NDArray[Any]) -> Any:
        """An array of the weights on the device."""
        import torch

        return torch.from_numpy(np.array(array, np.float32)).to(device=self.device, dtype=self.dtype)

    def hidden(self, ids: Any, kinds: Any, is_there: Any, has_padding: bool) -> Any:
        """One row a token. ``is_there`` is false for what fills shorter texts up."""
        from torch.nn import functional

        length = ids.shape[1]
        x = functional.embedding(ids, self.words) + self.places[self._first_place : self._first_place + length]
        if self.kinds is not None:
            x = x + functional.embedding(kinds, self.kinds)
        x = self._normed(x, self.norm)
        mask = self._mask(is_there, has_padding)
        for layer in self.layers:
            x = self._layer(layer, x, mask)
        return x

    def _mask(self, is_there: Any, has_padding: bool) -> Any:
        """What is added to how much each token looks at each other one; ``None`` for nothing."""
        import torch

        if self.distances is None and not has_padding:
            return None
        mask = torch.zeros(is_there.shape, dtype=self.dtype, device=is_there.device)
        mask = mask.masked_fill_(~is_there, _MASKED)[:, None, None, :]
        if self.distances is None:
            return mask
        if self._buckets is None:
            n_places = self.places.shape[0] - self._first_place
            self._buckets = torch.from_numpy(distance_buckets(n_places, self.distances.shape[0])).to(mask.device)
        length = is_there.shape[1]
        bias = self.distances[self._buckets[:length, :length]].permute(2, 0, 1)[None]
        # Contiguous, with all of its sizes: what the fused kernel would otherwise make anew in every layer.
        return (bias + mask).contiguous()

    def _layer(self, layer: Layer, x: Any, mask: Any) -> Any:
        from torch.nn import functional

        n_rows, length, width = x.shape
        parts = functional.linear(x, *layer.qkv).view(n_rows, length, 3, self._heads, width // self._heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended = attended.transpose(1, 2).reshape(n_rows, length, width)
        x = self._normed(x + functional.linear(attended, *layer.out), layer.norm)
        inner = functional.gelu(functional.linear(x, *layer.up))
        return self._normed(x + functional.linear(inner, *layer.down), layer.last_norm)

    def _normed(self, x: Any, norm: tuple[Any, Any]) -> Any:
        from torch.nn import functional

        return functional.layer_norm(x, (x.shape[-1],), *norm, self._eps)


def distance_buckets(length: int, n_buckets: int) -> NDArray[np.int64]:
    """Which bucket each distance between two tokens falls in: near ones by themselves, far ones by their logarithm.

    >>> distance_buckets(3, 32).tolist()
    [[0, 17, 18], [1, 0, 17], [2, 1, 0]]
    """
    places = np.arange(length)
    behind = places[:, None] - places[None, :]
    half = n_buckets // 2
    exact = half // 2
    distance = np.abs(behind)
    logarithm = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        np.log(_FARTHEST / exact)
    )
    far = np.minimum(exact + (logarithm * (half - exact)).astype(np.int64), half - 1)
    buckets: NDArray[np.int64] = np.where(distance < exact, distance, far) + (behind < 0) * half
    return buckets


def cross_encoder(weights: Weights, device: str, dtype: Any, path: Path) -> tuple[TorchEncoder, Callable[..., Any]]:
    """The encoder of ``training/groundedness/export.py``, and its heads.

    The heads give, in full precision, the logit of each claim and behind it those of its tokens, as one array.
    """
    take = EncoderWeights(weights, path)
    relative = weights.get("distances.weight")
    encoder = TorchEncoder(
        device,
        dtype,
        heads=_BERT_HEADS if relative is None else relative.shape[1],
        eps=_BERT_EPS if relative is None else _MPNET_EPS,
        first_place=0 if relative is None else _MPNET_FIRST_PLACE,
    )
    put = encoder.tensor
    encoder.words = put(take.words())
    encoder.places, encoder.kinds = (put(take[f"{name}.weight"]) for name in ("places", "kinds"))
    encoder.norm = put(take["norm.weight"]), put(take["norm.bias"])
    encoder.distances = None if relative is None else put(relative)
    for number in range(take.n_layers("layers.")):
        at = f"layers.{number}."
        linear = {
            name: (put(take.evened(f"{at}{name}")), put(take[f"{at}{name}.bias"]))
            for name in ("qkv", "out", "up", "down")
        }
        norms = {
            name: (put(take[f"{at}{name}.weight"]), put(take[f"{at}{name}.bias"])) for name in ("norm", "last_norm")
        }
        encoder.layers.append(Layer(**linear, **norms))
    return encoder, _claim_heads(take, device)


def _claim_heads(take: EncoderWeights, device: str) -> Callable[..., Any]:
    import torch
    from torch.nn import functional

    def exact(array: NDArray[Any]) -> Any:
        return torch.from_numpy(np.array(array, np.float32)).to(device)

    first = exact(take.linear("claim_head.0")), exact(take["claim_head.0.bias"])
    last = exact(take.linear("claim_head.3")), exact(take["claim_head.3.bias"])
    token = exact(take.token_head()), exact(take["token_head.bias"])

    def heads(x: Any, kinds: Any, is_there: Any) -> Any:
        x = x.float()
        is_said = ((kinds > 0) & is_there)[..., None]
        mean = (x * is_said).sum(1) / is_said.sum(1).clamp(min=1)
        most = x.masked_fill(~is_said, _MASKED).amax(1)
        summary = torch.cat([x[:, 0], mean, most], dim=-1)
        claims = functional.linear(functional.gelu(functional.linear(summary, *first)), *last)
        return torch.cat([claims, functional.linear(x, *token).squeeze(-1)], dim=1)

    return heads


def sentence_encoder(weights: Weights, device: str, dtype: Any, path: Path) -> tuple[TorchEncoder, Callable[..., Any]]:
    """The encoder of ``training/sentence_encoder``, and its head: the mean over the tokens of each text."""
    take = EncoderWeights(weights, path)
    encoder = TorchEncoder(device, dtype, heads=_BERT_HEADS, eps=_BERT_EPS, first_place=0)
    put = encoder.tensor
    encoder.words, encoder.places = put(take["words"] * take["word_scales"]), put(take["places"])

    def norm(name: str) -> tuple[Any, Any]:
        return put(take[f"{name}.gain"]), put(take[f"{name}.bias"])

    def linear(*names: str) -> tuple[Any, Any]:
        matrices = [take[name].T for name in names]
        return put(np.concatenate(matrices)), put(np.concatenate([take[f"{name}.bias"] for name in names]))

    encoder.norm = norm("embeddings.LayerNorm")
    for number in range(take.n_layers("encoder.layer.")):
        at = f"encoder.layer.{number}."
        encoder.layers.append(
            Layer(
                qkv=linear(*(f"{at}attention.self.{name}" for name in ("query", "key", "value"))),
                out=linear(f"{at}attention.output.dense"),
                norm=norm(f"{at}attention.output.LayerNorm"),
                up=linear(f"{at}intermediate.dense"),
                down=linear(f"{at}output.dense"),
                last_norm=norm(f"{at}output.LayerNorm"),
            )
        )

    def head(x: Any, kinds: Any, is_there: Any) -> Any:
        return (x.float() * is_there[..., None]).sum(1) / is_there.sum(1, keepdim=True).clamp(min=1)

    return encoder, head


class EncoderWeights:
    """Weights by name; one that is not there is a reason to refuse the file."""

    def __init__(self, weights: Weights, path: Path) -> None:
        self._weights, self._path = weights, path

    def __getitem__(self, name: str) -> NDArray[Any]:
        found = self._weights.get(name)
        if found is None:
            raise ModelFilesError(
                f"{self._path}: must hold the weights of one of AgentUnit's own encoders to run on a GPU; it has no "
                f"{name!r} (the backend 'local' runs any cross-encoder)"
            )
        return found

    def n_layers(self, prefix: str) -> int:
        """How many layers the file has whose names begin with a prefix."""
        numbers = {name.removeprefix(prefix).split(".")[0] for name in self._weights if name.startswith(prefix)}
        return len(numbers)

    def words(self) -> NDArray[Any]:
        """Word embeddings; those of the large form have 4 bits a number, two in a byte, and a scale a part of a row."""
        if "words.packed" not in self._weights:
            return self["words.weight"]
        packed, scale = self["words.packed"], self["words.scale"].astype(np.float32)
        numbers = np.concatenate([packed >> 4, packed & 15], axis=1).astype(np.float32) - 7.5
        rows = (numbers.reshape(*scale.shape, -1) * scale[..., None]).reshape(numbers.shape)
        words: NDArray[Any] = rows * self["words.columns"]
        return words

    def evened(self, name: str) -> NDArray[Any]:
        """A matrix whose inputs were evened out for 8 bits, as it was before."""
        matrix: NDArray[Any] = (self[f"{name}.weight"] * self[f"{name}.inverse"][:, None]).T
        return matrix

    def linear(self, name: str) -> NDArray[Any]:
        """A matrix of outputs by inputs, whichever way it lies in the file."""
        matrix = self[f"{name}.weight"]
        n_outputs = self[f"{name}.bias"].shape[0]
        return matrix if matrix.shape[0] == n_outputs else matrix.T

    def token_head(self) -> NDArray[Any]:
        """The exporter leaves this matrix without its name: it is the only one with a single output."""
        width = self["norm.weight"].size
        named = [
            name for name, array in self._weights.items() if name.startswith("onnx::MatMul") and array.size == width
        ]
        return self[named[0] if named else "token_head.weight"].reshape(1, width)
