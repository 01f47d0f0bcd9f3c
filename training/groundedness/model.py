"""The cross-encoder: a small BERT with a head for the whole claim and one for each of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Shape:
    """The sizes of the encoder."""

    vocabulary: int = 30522
    positions: int = 512
    width: int = 384
    layers: int = 6
    heads: int = 12
    inner: int = 1536
    kinds: int = 2


class Layer(nn.Module):
    """Attention and feed-forward, each followed by a residual and a norm."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.heads = shape.heads
        self.dropout = dropout
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)
        self.last_norm = nn.LayerNorm(shape.width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """One layer; ``mask`` says which tokens may be looked at."""
        batch, length, width = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(
            parts[0], parts[1], parts[2], attn_mask=mask, dropout_p=self.dropout if self.training else 0.0
        )
        attended = self.out(attended.transpose(1, 2).reshape(batch, length, width))
        x = self.norm(x + functional.dropout(attended, self.dropout, self.training))
        inner = self.down(functional.gelu(self.up(x)))
        return self.last_norm(x + functional.dropout(inner, self.dropout, self.training))


class CrossEncoder(nn.Module):
    """Reads evidence and claim together; gives one score for the claim and one for each token."""

    def __init__(self, shape: Shape, dropout: float = 0.1) -> None:
        super().__init__()
        self.shape = shape
        self.dropout = dropout
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        self.places = nn.Embedding(shape.positions, shape.width)
        self.kinds = nn.Embedding(shape.kinds, shape.width)
        self.norm = nn.LayerNorm(shape.width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.layers))
        self.claim_head = nn.Sequential(
            nn.Linear(3 * shape.width, shape.width), nn.GELU(), nn.Dropout(dropout), nn.Linear(shape.width, 1)
        )
        self.token_head = nn.Linear(shape.width, 1)

    def forward(self, ids: Tensor, kinds: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """The logit that the claim is supported, and for each token the logit that it is not."""
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(kinds))
        x = functional.dropout(x, self.dropout, self.training)
        mask = attention[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask)
        said = (kinds > 0).to(x.dtype) * attention.to(x.dtype)
        mean = (x * said[..., None]).sum(1) / said.sum(1, keepdim=True).clamp(min=1.0)
        most = (x - (1.0 - said[..., None]) * 30000.0).amax(1)
        claim = self.claim_head(torch.cat([x[:, 0], mean, most], dim=-1)).squeeze(-1)
        return claim, self.token_head(x).squeeze(-1)


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


def load_deeper(model: CrossEncoder, state: dict[str, Tensor]) -> None:
    """Start from a trained, deeper cross-encoder: evenly spaced layers of it, and all the rest."""
    depth = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
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
