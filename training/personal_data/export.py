"""The trained arrays as an ONNX graph with 8-bit weights: ``python -m training.personal_data.export TRAINED OUT.onnx``.

Matrices are stored as 8-bit integers with one fp32 scale a column (the table: a row) and computed in fp32, so that the
file is small and the answers stay close to those of training. Needs ``onnx``, not PyTorch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from agentunit_local.recognizer.tokens import LABELS, PIECES
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from training.sentence_encoder.weights import quantised

OPSET, IR_VERSION = 17, 8
HEADS, LAYERS = 4, 4
MASKED = -10000.0
EPSILON = 1e-5
Arrays = dict[str, NDArray[np.float32]]


def read(trained: Path) -> Arrays:
    """The arrays that training wrote, in fp32."""
    with np.load(trained / "layers.npz") as layers:
        arrays = {name: layers[name].astype(np.float32) for name in layers.files}
    table = np.concatenate([np.load(part) for part in sorted(trained.glob("table-*.npy"))])
    return {**arrays, "table.weight": table.astype(np.float32)}


def build_graph(arrays: Arrays) -> onnx.ModelProto:
    """``pieces`` [batch, length, PIECES] in, ``shares`` [batch, length, labels] out: how likely each label is."""
    return _Graph(arrays).model()


class _Graph:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.width = arrays["widened.weight"].shape[0]
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        integers, scales = quantised(self.arrays["table.weight"], axis=1)
        rows = self.op("Cast", self.op("Gather", self.constant("table", integers), "pieces"), to=TensorProto.FLOAT)
        rows = self.op("Mul", rows, self.op("Gather", self.constant("table_scales", scales), "pieces"))
        summed = self.op("ReduceSum", rows, self.whole("axis_2", [2]), keepdims=0)
        hidden = self.linear(self.normalized(summed, "summed"), "widened")
        length = self.op("Shape", "pieces", start=1, end=2)
        places = self.constant("position", self.arrays["position"])
        used = self.op("Slice", places, self.whole("from", [0]), length, self.whole("axis_0", [0]))
        hidden = self.op("Add", hidden, used)
        first = self.op("Gather", "pieces", self.constant("first", np.array(0, np.int64)), axis=2)
        filled = self.op(
            "Cast", self.op("Equal", first, self.constant("none", np.array(0, np.int32))), to=TensorProto.FLOAT
        )
        bias = self.op("Unsqueeze", self.op("Mul", filled, self.number(MASKED)), self.whole("axes_1_2", [1, 2]))
        for layer in range(LAYERS):
            hidden = self.layer(hidden, bias, f"layers.{layer}")
        logits = self.linear(self.normalized(hidden, "last"), "label")
        self.nodes.append(helper.make_node("Softmax", [logits], ["shares"], axis=-1))
        graph = helper.make_graph(
            self.nodes,
            "agentunit-recognizer",
            [helper.make_tensor_value_info("pieces", TensorProto.INT32, ["batch", "length", PIECES])],
            [helper.make_tensor_value_info("shares", TensorProto.FLOAT, ["batch", "length", len(LABELS)])],
            list(self.constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model

    def layer(self, hidden: str, bias: str, name: str) -> str:
        split = self.linear(self.normalized(hidden, f"{name}.before_attention"), f"{name}.query_key_value")
        parts = self.op("Split", split, axis=2, n_outputs=3)
        query, key, value = (
            self.op("Transpose", self.op("Reshape", part, self.whole("heads", [0, 0, HEADS, -1])), perm=order)
            for part, order in zip(parts.split(), ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scores = self.op("Mul", self.op("MatMul", query, key), self.number((self.width // HEADS) ** -0.5))
        weights = self.op("Softmax", self.op("Add", scores, bias), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", weights, value), perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", mixed, self.whole("joined", [0, 0, self.width]))
        hidden = self.op("Add", hidden, self.linear(mixed, f"{name}.attended"))
        inner = self.op("Relu", self.linear(self.normalized(hidden, f"{name}.before_inner"), f"{name}.inner"))
        return self.op("Add", hidden, self.linear(inner, f"{name}.outer"))

    def linear(self, value: str, name: str) -> str:
        integers, scales = quantised(self.arrays[f"{name}.weight"].T, axis=0)
        as_float = self.op("Cast", self.constant(f"{name}.integers", integers), to=TensorProto.FLOAT)
        matrix = self.op("Mul", as_float, self.constant(f"{name}.scales", scales))
        bias = self.constant(f"{name}.bias", self.arrays[f"{name}.bias"])
        return self.op("Add", self.op("MatMul", value, matrix), bias)

    def normalized(self, value: str, name: str) -> str:
        gain = self.constant(f"{name}.gain", self.arrays[f"{name}.weight"])
        bias = self.constant(f"{name}.shift", self.arrays[f"{name}.bias"])
        return self.op("LayerNormalization", value, gain, bias, axis=-1, epsilon=EPSILON)

    def op(self, kind: str, *inputs: str, n_outputs: int = 1, **attributes: object) -> str:
        """Add a node; the names of its outputs, parted by spaces."""
        names = [f"{kind}_{len(self.nodes)}_{number}" for number in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return " ".join(names)

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(f"number_{value:.9g}", np.array(value, np.float32))

    def whole(self, name: str, values: list[int]) -> str:
        return self.constant(name, np.array(values, np.int64))


def main(arguments: list[str]) -> None:
    """Read, build, write."""
    out = Path(arguments[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save_model(build_graph(read(Path(arguments[0]))), str(out))
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
