"""Writes the trained cross-encoder as ONNX with 8-bit weights: ``python -m training.groundedness.export MODEL BUILT OUT``.

Multiplications run in 8 bits as well, with the range of the activations taken at run time. A few channels of this
model's activations are far larger than the others and would take all the room of 8 bits; before quantisation, part
of their size is moved into the weights (the product stays the same), so that little is lost.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from training.groundedness.model import CrossEncoder, shape_of

_SAMPLE = 192
_SHARE = 0.9


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


def even_out(model: CrossEncoder, sample: list[tuple[Tensor, Tensor, Tensor]], share: float = _SHARE) -> None:
    """Replace the linear layers of the encoder by evened ones, by the activations on a sample."""
    layers = {(block, name): getattr(block, name) for block in model.layers for name in ("qkv", "out", "up", "down")}
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
            setattr(block, name, Evened(layer, largest[block, name], share))


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


def main(weights: Path, built: Path, out: Path) -> None:
    """Load, even out, export, quantise."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    state = torch.load(weights, weights_only=True)
    depth = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
    model = CrossEncoder(shape_of(state, depth))
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    model.eval()
    even_out(model, sample_pairs(built))
    example = torch.ones((2, 16), dtype=torch.int64)
    names = ["input_ids", "token_type_ids", "attention_mask"]
    whole = out.with_suffix(".fp32.onnx")
    torch.onnx.export(
        model,
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
    )
    # Seven bits: processors without the newer instructions add two products in 16 bits, which eight could overflow.
    quantize_dynamic(whole, out, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
