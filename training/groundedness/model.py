"""The cross-encoder: a BERT or MPNet with a head for the whole claim and one for each of its tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The sizes of the encoder. ``relative`` are the buckets of MPNet's bias by distance (0: BERT, which has none)."""

    vocabulary: int = 30522
    positions: int = 512
    width: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    kinds: int = 2
    relative: int = 0

    @property
    def first_position(self) -> int:
        """MPNet numbers positions from 2."""
        return 2 if self.relative else 0

    @property
    def norm_eps(self) -> float:
        """What the norms add to a variance."""
        return 1e-5 if self.relative else 1e-12


class Norm(nn.LayerNorm):
    """A norm that keeps the kind of number it is given: mixed precision would write each as 32 bits."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension; sums are taken in 32 bits in any case."""
        with torch.autocast(x.device.type, enabled=False):
            return functional.layer_norm(
                x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps
            )


class Layer(nn.Module):
    """Attention and feed-forward, each followed by a residual and a norm."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = dropout
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm = Norm(shape.width, eps=shape.norm_eps)
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)
        self.last_norm = Norm(shape.width, eps=shape.norm_eps)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """One layer; ``mask`` says which tokens may be looked at, or what is added to how much they are."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = attention_of(parts[0], parts[1], parts[2], mask)
        attended = self.out(attended.transpose(1, 2).reshape(batch, length, width))
        x = self.norm(x + functional.dropout(attended, self.dropout, self.training))
        inner = self.down(functional.gelu(self.up(x)))
        return self.last_norm(x + functional.dropout(inner, self.dropout, self.training))


def attention_of(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attention with a mask that is added, or says what may be looked at.

    On a processor the plain form takes half the time of the fused one: most texts are shorter than 200 tokens.
    """
    if query.is_cuda or mask.dtype == torch.bool:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return torch.softmax((query * query.shape[-1] ** -0.5) @ key.transpose(2, 3) + mask, -1) @ value


class CrossEncoder(nn.Module):
    """Reads evidence and claim together; gives one score for the claim and one for each token."""

    def __init__(self, shape: Shape, dropout: float = 0.1) -> None:
        super().__init__()
        self.shape = shape
        self.dropout = dropout
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.positions, shape.width)
        self.kinds = nn.Embedding(shape.kinds, shape.width)
        self.norm = Norm(shape.width, eps=shape.norm_eps)
        if shape.relative:
            self.distances = nn.Embedding(shape.relative, shape.heads)
            buckets = distance_buckets(shape.positions - shape.first_position, shape.relative)
            self.register_buffer("buckets", buckets, persistent=False)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.claim_head = nn.Sequential(
            nn.Linear(3 * shape.width, shape.width), nn.GELU(), nn.Dropout(dropout), nn.Linear(shape.width, 1)
        )
        self.token_head = nn.Linear(shape.width, 1)

    def forward(self, ids: Tensor, kinds: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """The logit that the claim is supported, and for each token the logit that it is not."""
        length = ids.shape[1]
        places = torch.arange(length, device=ids.device) + self.shape.first_position
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(kinds))
        x = functional.dropout(x, self.dropout, self.training)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        mask = attention[:, None, None, :].bool()
        if self.shape.relative:
            # Not trained further: a gradient for each pair of places would take a third of the time. Laid out anew:
            # fast attention reads only what lies side by side, else a step takes twice as long.
            bias = self.distances(self.buckets[:length, :length].long()).permute(2, 0, 1).contiguous()[None].detach()
            mask = torch.where(mask, bias, torch.full_like(bias[:1, :1, :1, :1], -30000.0)).to(x.dtype)
        elif not mask.is_cuda:
            mask = x.new_zeros(mask.shape).masked_fill(~mask, -30000.0)
        for layer in self.layers:
            x = layer(x, mask)
        return self.said(x, kinds, attention)

    def said(self, x: Tensor, kinds: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """What the heads make of the last layer."""
        said = (kinds > 0).to(x.dtype) * attention.to(x.dtype)
        mean = (x * said[..., None]).sum(1) / said.sum(1, keepdim=True).clamp(min=1.0)
        most = (x - (1.0 - said[..., None]) * 30000.0).amax(1)
        claim = self.claim_head(torch.cat([x[:, 0], mean, most], dim=-1)).squeeze(-1)
        return claim, self.token_head(x).squeeze(-1)


def distance_buckets(length: int, n_buckets: int, farthest: int = 128) -> Tensor:
    """Which bucket each distance between two tokens falls in: near ones by themselves, far ones by their logarithm."""
    places = torch.arange(length)
    behind = places[:, None] - places[None, :]
    half = n_buckets // 2
    exact = half // 2
    distance = behind.abs()
    far = exact + (torch.log(distance.clamp(min=1) / exact) / math.log(farthest / exact) * (half - exact)).long()
    buckets = torch.where(distance < exact, distance, far.clamp(max=half - 1)) + (behind < 0).long() * half
    return buckets.to(torch.uint8)


def shape_of(weights: dict[str, Tensor], layers: int) -> Shape:
    """The shape that a start or a trained state has, with so many layers."""
    words = next(weights[name] for name in ("words.weight", *_WORDS) if name in weights)
    inner = next(
        tensor for name, tensor in weights.items() if name.endswith(("intermediate.dense.weight", "up.weight"))
    )
    distances = next((weights[name] for name in ("distances.weight", _DISTANCES) if name in weights), None)
    positions = next(weights[name] for name in ("places.weight", *_PLACES) if name in weights)
    return Shape(
        vocabulary=words.shape[0],
        positions=positions.shape[0],
        width=words.shape[1],
        layers=layers,
        heads=12 if distances is None else distances.shape[1],
        inner=inner.shape[0],
        relative=0 if distances is None else distances.shape[0],
    )


_DISTANCES = "encoder.relative_attention_bias.weight"
_WORDS = ("embeddings.word_embeddings.weight", "bert.embeddings.word_embeddings.weight")
_PLACES = ("embeddings.position_embeddings.weight", "bert.embeddings.position_embeddings.weight")
# How MPNet names what BERT names otherwise.
_MPNET_NAMES = {
    "attention.self.query": "attention.attn.q",
    "attention.self.key": "attention.attn.k",
    "attention.self.value": "attention.attn.v",
    "attention.output.dense": "attention.attn.o",
    "attention.output.LayerNorm": "attention.LayerNorm",
}


def load_mpnet(model: CrossEncoder, weights: dict[str, Tensor]) -> None:
    """Start from the weights of an MPNet; what tells claim from evidence starts at zero."""
    renamed = {}
    for name, tensor in weights.items():
        for bert, mpnet in _MPNET_NAMES.items():
            name = name.replace(f".{mpnet}.", f".{bert}.")
        renamed[name] = tensor
    renamed["embeddings.token_type_embeddings.weight"] = torch.zeros_like(model.kinds.weight)
    load_bert(model, renamed)
    with torch.no_grad():
        model.distances.weight.copy_(weights[_DISTANCES])


def load_bert(model: CrossEncoder, weights: dict[str, Tensor]) -> None:
    """Start from the weights of a BERT in the usual naming; a shallower model takes evenly spaced layers of it."""
    weights = {name.removeprefix("bert."): tensor.float() for name, tensor in weights.items()}
    with torch.no_grad():
        model.words.weight.copy_(weights["embeddings.word_embeddings.weight"])
        model.places.weight.copy_(weights["embeddings.position_embeddings.weight"])
        model.kinds.weight.copy_(weights["embeddings.token_type_embeddings.weight"])
        _copy(model.norm, weights, "embeddings.LayerNorm")
        deepest = max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
        spacing = (deepest + 1) / len(model.layers)
        for number, layer in enumerate(model.layers):
            at = f"encoder.layer.{int(number * spacing + spacing / 2)}."
            for kind in ("weight", "bias"):
                parts = [weights[f"{at}attention.self.{name}.{kind}"] for name in ("query", "key", "value")]
                getattr(layer.qkv, kind).copy_(torch.cat(parts))
            _copy(layer.out, weights, at + "attention.output.dense")
            _copy(layer.norm, weights, at + "attention.output.LayerNorm")
            _copy(layer.up, weights, at + "intermediate.dense")
            _copy(layer.down, weights, at + "output.dense")
            _copy(layer.last_norm, weights, at + "output.LayerNorm")


def _copy(module: nn.Module, weights: dict[str, Tensor], name: str) -> None:
    module.weight.copy_(weights[name + ".weight"])  # type: ignore[operator]
    module.bias.copy_(weights[name + ".bias"])  # type: ignore[operator]


def n_layers(state: dict[str, Tensor]) -> int:
    """How many layers a trained cross-encoder has."""
    return 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))


def load_deeper(model: CrossEncoder, state: dict[str, Tensor]) -> None:
    """Start from a trained, deeper cross-encoder: evenly spaced layers of it, and all the rest."""
    depth = n_layers(state)
    spacing = depth / len(model.layers)
    taken = {f"layers.{int(n * spacing + spacing / 2)}.": f"layers.{n}." for n in range(len(model.layers))}
    chosen = {}
    for name, tensor in state.items():
        if name.startswith("layers."):
            number = ".".join(name.split(".")[:2]) + "."
            if number not in taken:
                continue
            name = taken[number] + name[len(number) :]
        chosen[name] = tensor.float()
    model.load_state_dict(chosen)
