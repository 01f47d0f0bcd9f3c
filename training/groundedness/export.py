"""Writes the trained cross-encoder as ONNX with 8-bit weights: ``python -m training.groundedness.export MODEL BUILT OUT``.

Multiplications run in 8 bits as well, with the range of the activations taken at run time. A few channels of this
model's activations are far larger than the others and would take all the room of 8 bits; before quantisation, part
of their size is moved into the weights (the product stays the same), so that little is lost. Attention is one operator of
ONNX Runtime: the plain operators that PyTorch writes for it take a quarter of the time of long pairs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.groundedness.groups import LENGTH
from training.groundedness.model import CrossEncoder, Layer, n_layers, shape_of

_SAMPLE = 192
_SHARES = {"qkv": 0.5, "out": 0.5, "up": 0.5, "down": 0.8}
"""How much of the size of large channels moves into the weights of a layer: more evens the activations, and unevens weights."""
_LARGE_WIDTH = 768
"""From this width on word embeddings take 4 bits a number: with 8, the file would outgrow a package of its own."""


class Evened(nn.Module):
    """A linear layer whose input channels are evened out: large ones are divided, their weights multiplied."""

    def __init__(self, layer: nn.Linear, largest: Tensor, share: float) -> None:
        super().__init__()
        weights = layer.weight.abs().amax(0).clamp(min=1e-5)
        factors = (largest.clamp(min=1e-5) ** share / weights ** (1 - share)).clamp(min=1e-4)
        self.inverse = nn.Parameter(1.0 / factors)
        self.weight = nn.Parameter((layer.weight * factors).T.contiguous())
        self.bias = nn.Parameter(layer.bias.clone())

    def forward(self, x: Tensor) -> Tensor:
        """The same product as before."""
        return (x * self.inverse) @ self.weight + self.bias


class Packed(nn.Module):
    """Word embeddings with 4 bits a number, two in a byte; each part of a row has a scale."""

    def __init__(self, words: Tensor, part: int = 128) -> None:
        super().__init__()
        # A few columns are far larger than the others: each is put to the same size first.
        columns = words.float().square().mean(0).sqrt().clamp(min=1e-6)
        parts = (words.float() / columns).unflatten(1, (-1, part))
        largest = parts.abs().amax(2, keepdim=True).clamp(min=1e-8)
        # Cutting the few largest numbers short pays, if the others are told apart better for it.
        tried = torch.stack([largest * share / 7.5 for share in (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)]).half().float()
        rounded = ((parts / tried + 7.5).round().clamp(0, 15) - 7.5) * tried
        best = (rounded - parts).square().sum(3, keepdim=True).argmin(0, keepdim=True)
        scale = tried.gather(0, best)[0]
        numbers = (parts / scale + 7.5).round().clamp(0, 15).to(torch.uint8).flatten(1)
        half = numbers.shape[1] // 2
        self.register_buffer("packed", numbers[:, :half] * 16 + numbers[:, half:])
        self.register_buffer("scale", scale.squeeze(2).half())
        self.register_buffer("columns", columns)

    def forward(self, ids: Tensor) -> Tensor:
        """The embeddings of words."""
        both = functional.embedding(ids, self.packed).float()
        first = torch.floor(both / 16)
        numbers = torch.cat([first, both - first * 16], -1) - 7.5
        scale = functional.embedding(ids, self.scale).float()
        return (numbers.unflatten(-1, (scale.shape[-1], -1)) * scale[..., None]).flatten(-2) * self.columns


class _OneAttention(torch.autograd.Function):
    """Attention of several heads as one operator; ``bias`` is added to how much tokens look at each other."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, heads: int) -> Tensor:
        """The same in PyTorch."""
        q, k, v = (each.unflatten(2, (heads, -1)).transpose(1, 2) for each in (query, key, value))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + bias, -1)
        return (weights @ v).transpose(1, 2).flatten(2)

    @staticmethod
    def symbolic(graph: Any, query: Any, key: Any, value: Any, bias: Any, heads: int) -> Any:
        """The operator of ONNX Runtime."""
        operator = "com.microsoft::MultiHeadAttention"
        lacking = [_unused(graph), _unused(graph)]
        return graph.op(operator, query, key, value, *lacking, bias, num_heads_i=heads).setType(query.type())


def _unused(graph: Any) -> Any:
    """An optional input that is not given."""
    value = graph.op("prim::Constant")
    value.setType(torch._C.OptionalType.ofTensor())
    return value


class _Attending(nn.Module):
    """A layer whose attention is one operator."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """The same as the layer's, with what is added to attention in place of a mask."""
        layer = self.layer
        attended = _OneAttention.apply(*layer.qkv(x).chunk(3, -1), bias, layer.heads)
        x = layer.norm(x + layer.out(attended))
        return layer.last_norm(x + layer.down(functional.gelu(layer.up(x))))


class Exported(nn.Module):
    """The cross-encoder as it is written: the same numbers, by operators that run fast on a processor."""

    def __init__(self, model: CrossEncoder) -> None:
        super().__init__()
        self.model = model
        self.layers = nn.ModuleList(_Attending(layer) for layer in model.layers)
        wide = model.shape.width >= _LARGE_WIDTH
        self.words = Packed(model.words.weight.detach()) if wide else model.words
        longest = LENGTH + model.shape.first_position
        self.places = nn.Embedding.from_pretrained(model.places.weight.detach()[:longest].clone())
        if model.shape.relative:
            # The bucket depends on the distance alone: one for each, from the farthest behind on.
            buckets = torch.cat([model.buckets[LENGTH - 1, :LENGTH], model.buckets[0, 1:LENGTH]])
            self.register_buffer("buckets", buckets.long())

    def forward(self, ids: Tensor, kinds: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
        """What the model says; see there."""
        model, length = self.model, ids.shape[1]
        places = torch.arange(length)
        x = model.norm(self.words(ids) + self.places(places + model.shape.first_position) + model.kinds(kinds))
        bias = (1.0 - attention[:, None, None, :].to(x.dtype)) * -30000.0
        if model.shape.relative:
            farther = places[None, :] - places[:, None] + (LENGTH - 1)
            bias = bias + model.distances(self.buckets[farther]).permute(2, 0, 1)[None]
        else:
            bias = bias.expand(-1, 1, length, -1)
        for layer in self.layers:
            x = layer(x, bias)
        return model.said(x, kinds, attention)


def even_out(
    model: CrossEncoder, sample: list[tuple[Tensor, Tensor, Tensor]], shares: Mapping[str, float] = _SHARES
) -> None:
    """Replace the linear layers of the encoder by evened ones, by the activations on a sample."""
    layers = {(block, name): getattr(block, name) for block in model.layers for name in shares}
    largest: dict[tuple[nn.Module, str], Tensor] = {}

    def watch(key: tuple[nn.Module, str]):  # type: ignore[no-untyped-def]
        def note(_: nn.Module, inputs: tuple[Tensor]) -> None:
            seen = inputs[0].abs().flatten(0, -2).amax(0)
            largest[key] = torch.maximum(largest[key], seen) if key in largest else seen

        return note

    hooks = [layer.register_forward_pre_hook(watch(key)) for key, layer in layers.items()]
    with torch.no_grad():
        for row in sample:
            model(*row)
        for hook in hooks:
            hook.remove()
        for (block, name), layer in layers.items():
            setattr(block, name, Evened(layer, largest[block, name], shares[name]))


def sample_pairs(built: Path) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Some pairs of the training data, one row each."""
    with np.load(built) as arrays:
        lengths, ids, types = arrays["lengths"], arrays["ids"], arrays["types"]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = []
    for pair in np.random.default_rng(1).choice(len(lengths), min(_SAMPLE, len(lengths)), replace=False):
        part = slice(starts[pair], starts[pair + 1])
        row = torch.from_numpy(ids[part].astype(np.int64))[None]
        rows.append((row, torch.from_numpy(np.minimum(types[part], 1).astype(np.int64))[None], torch.ones_like(row)))
    return rows


def trained(weights: Path) -> CrossEncoder:
    """The model of a training run."""
    state = torch.load(weights, weights_only=True)
    model = CrossEncoder(shape_of(state, n_layers(state)))
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    return model.eval()


def write(model: CrossEncoder, sample: list[tuple[Tensor, Tensor, Tensor]], out: Path) -> None:
    """Even out, write, quantise."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    even_out(model, sample)
    example = torch.ones((2, 16), dtype=torch.int64)
    names = ["input_ids", "token_type_ids", "attention_mask"]
    whole = out.with_suffix(".fp32.onnx")
    torch.onnx.export(
        Exported(model),
        (example, example, example),
        whole,
        input_names=names,
        output_names=["claim", "tokens"],
        dynamic_axes={
            **{name: {0: "rows", 1: "length"} for name in [*names, "tokens"]},
            "claim": {0: "rows"},
        },
        dynamo=False,
        opset_version=17,
        custom_opsets={"com.microsoft": 1},
    )
    _with_plain_names(whole, model)
    # Seven bits: processors without the newer instructions add two products in 16 bits, which eight could overflow.
    quantize_dynamic(
        whole,
        out,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        nodes_to_exclude=_gathered_as_they_are(whole),
    )
    whole.unlink()


def _with_plain_names(path: Path, model: CrossEncoder) -> None:
    """Give weights the names that they have in the trained model: whoever reads the file looks for those.

    The exporter forgets the names of some vectors; they are told by their numbers.
    """
    import onnx

    written = onnx.load(path)
    vectors = {tensor.numpy().tobytes(): name for name, tensor in model.state_dict().items() if tensor.ndim == 1}
    renamed = {}
    for each in written.graph.initializer:
        known = vectors.get(each.raw_data) if each.name.startswith("onnx::") else each.name.removeprefix("model.")
        if known is not None:
            renamed[each.name] = known
            each.name = known
    for node in written.graph.node:
        for number, name in enumerate(node.input):
            node.input[number] = renamed.get(name, name)
    onnx.save(written, path)


def _gathered_as_they_are(path: Path) -> list[str]:
    """The names of lookups in tables that are small already: of packed words, their scales, and distances."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    kept = ("words.packed", "words.scale", "distances.weight", "buckets")
    return [node.name for node in graph.node if node.op_type == "Gather" and node.input[0].endswith(kept)]


def main(weights: Path, built: Path, out: Path) -> None:
    """Load and write."""
    write(trained(weights), sample_pairs(built), out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
