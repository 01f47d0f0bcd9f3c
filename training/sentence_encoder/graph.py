"""The ONNX graph of the encoder: token ids in, the mean of the token embeddings out."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from training.sentence_encoder.weights import HEADS, LAYER_NORM_EPSILON, LAYERS, WIDTH, Weights, quantised

OPSET, IR_VERSION = 17, 8
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "sentence_embedding"
# Added to the attention of padding: its share becomes exactly 0, so padding changes no embedding.
MASKED = -1e9


def build_graph(weights: Weights) -> onnx.ModelProto:
    """The whole model, its matrices as 8-bit integers that ONNX Runtime turns into fp32 once, at load."""
    return _Graph(weights).model()


class _Graph:
    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def model(self) -> onnx.ModelProto:
        mask = self.op("Cast", "attention_mask", to=TensorProto.FLOAT)
        hidden = self.embeddings()
        bias = self.op("Mul", self.op("Sub", self.number(1), mask), self.number(MASKED))
        bias = self.op("Unsqueeze", bias, self.whole("axes_1_2", [1, 2]))
        for layer in range(LAYERS):
            hidden = self.layer(hidden, bias, f"encoder.layer.{layer}")
        held = self.op("Mul", hidden, self.op("Unsqueeze", mask, self.whole("axis_2", [2])))
        total = self.op("ReduceSum", held, self.whole("axis_1", [1]), keepdims=0)
        count = self.op("ReduceSum", mask, self.whole("axis_1", [1]), keepdims=1)
        self.nodes.append(helper.make_node("Div", [total, count], [OUTPUT], name=OUTPUT))
        graph = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in INPUTS],
            [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", WIDTH])],
            list(self.constants.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model

    def embeddings(self) -> str:
        integers, scales = quantised(self.weights["embeddings.word_embeddings.weight"], axis=1)
        # Only the rows of the words at hand are turned into fp32.
        rows = self.op("Gather", self.constant("words", integers), "input_ids")
        rows = self.op("Cast", rows, to=TensorProto.FLOAT)
        words = self.op("Mul", rows, self.op("Gather", self.constant("word_scales", scales), "input_ids"))
        # Sentences are never pairs, so the embedding of the first segment belongs to every position.
        places = self.weights["embeddings.position_embeddings.weight"]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        length = self.op("Shape", "input_ids", start=1, end=2)
        used = self.op(
            "Slice", self.constant("places", places), self.whole("from", [0]), length, self.whole("axis_0", [0])
        )
        return self.normalised(self.op("Add", words, used), "embeddings.LayerNorm")

    def layer(self, hidden: str, bias: str, name: str) -> str:
        parts = {}
        for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
            split = self.op(
                "Reshape",
                self.linear(hidden, f"{name}.attention.self.{part}"),
                self.whole("heads", [0, 0, HEADS, WIDTH // HEADS]),
            )
            parts[part] = self.op("Transpose", split, perm=order)
        scores = self.op("MatMul", parts["query"], parts["key"])
        scores = self.op("Mul", scores, self.number((WIDTH // HEADS) ** -0.5))
        shares = self.op("Softmax", self.op("Add", scores, bias), axis=-1)
        mixed = self.op("Transpose", self.op("MatMul", shares, parts["value"]), perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", mixed, self.whole("joined", [0, 0, WIDTH]))
        attended = self.op("Add", self.linear(mixed, f"{name}.attention.output.dense"), hidden)
        attended = self.normalised(attended, f"{name}.attention.output.LayerNorm")
        inner = self.gelu(self.linear(attended, f"{name}.intermediate.dense"))
        out = self.op("Add", self.linear(inner, f"{name}.output.dense"), attended)
        return self.normalised(out, f"{name}.output.LayerNorm")

    def linear(self, value: str, name: str) -> str:
        integers, scales = quantised(self.weights[f"{name}.weight"].T, axis=0)
        as_float = self.op("Cast", self.constant(f"{name}.integers", integers), to=TensorProto.FLOAT)
        matrix = self.op("Mul", as_float, self.constant(f"{name}.scales", scales))
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.op("Add", self.op("MatMul", value, matrix), bias)

    def gelu(self, value: str) -> str:
        error = self.op("Erf", self.op("Div", value, self.number(2**0.5)))
        return self.op("Mul", self.op("Mul", value, self.op("Add", error, self.number(1))), self.number(0.5))

    def normalised(self, value: str, name: str) -> str:
        gain = self.constant(f"{name}.gain", self.weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.op("LayerNormalization", value, gain, bias, axis=-1, epsilon=LAYER_NORM_EPSILON)

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(f"number_{value:.9g}", np.array(value, np.float32))

    def whole(self, name: str, values: list[int]) -> str:
        return self.constant(name, np.array(values, np.int64))
