"""Calls of the operators of com.microsoft that graphs of training have, which onnxruntime lacks."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
from recipes import Call

FLOAT, INT64 = np.float32, np.int64
# What of the standard's domain has no size but the one that its output declares.
DECLARED = {"MaxPoolGrad": [1, 2, 8], "AveragePoolGrad": [1, 2, 8]}


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(FLOAT)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, INT64)


def attribute_kind(value: Any) -> str:
    """As onnx.defs names it."""
    kinds = {bool: "INT", int: "INT", float: "FLOAT", str: "STRING"}
    return f"{kinds[type(value[0])]}S" if isinstance(value, list) else kinds[type(value)]


@dataclasses.dataclass
class Schema:
    """What is known of one from its calls."""

    name: str
    calls: list[Call]

    @property
    def domain(self) -> str:
        return "" if self.name in DECLARED else "com.microsoft"

    @property
    def since_version(self) -> int:
        return 9 if self.name in DECLARED else 1

    @property
    def attributes(self) -> dict[str, SimpleNamespace]:
        given = {name: value for call in self.calls for name, value in call.attributes.items()}
        return {
            name: SimpleNamespace(type=SimpleNamespace(name=attribute_kind(value)))
            for name, value in given.items()
        }


X, W, R = floats(5, 2, 3), floats(1, 16, 3, seed=1), floats(1, 16, 4, seed=2)
LENGTHS = np.array([5, 2], np.int32)
STATE = floats(1, 2, 4, seed=3)
STATES = floats(5, 1, 2, 4, seed=4)
GATES, PEEPHOLES = floats(5, 1, 2, 16), floats(1, 12)
RECURRENT = {
    "hidden_size": 4,
    "direction": "forward",
    "layout": 0,
    "activations": ["Sigmoid", "Tanh", "Tanh"],
    "activation_alpha": [0.5, 0.5, 0.5],
    "activation_beta": [0.5, 0.5, 0.5],
    "clip": 2.0,
}
GRU_INPUTS = [X, W[:, :12], R[:, :12], floats(1, 24), LENGTHS, STATE]
GRU = {**RECURRENT, "activations": ["Sigmoid", "Tanh"], "linear_before_reset": 1}
RNN = {**RECURRENT, "activations": ["Tanh"]}
HEADS = {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1, "scale": 0.5}
QKV = [floats(2, n, 8, seed=n) for n in (5, 7, 7)]
MASK = floats(1, 1, 5, 7)
CONV = {
    "kernel_shape": [3, 3],
    "strides": [1, 1],
    "dilations": [1, 1],
    "pads": [1, 1, 1, 1],
    "group": 1,
    "auto_pad": "NOTSET",
}
POOL = {"kernel_shape": [2], "strides": [2], "pads": [0, 0], "count_include_pad": 1}
ADAM = {
    "alpha": 0.8,
    "beta": 0.9,
    "lambda": 0.05,
    "epsilon": 1e-6,
    "weight_decay_mode": 0,
    "do_bias_correction": 1,
}
BATCHED_INDICES = ints(*[1, 2] * 7, *[-1, 0] * 7).reshape(2, 7, 2)
TRUE, RATE = np.array([True]), np.array([0.1], FLOAT)
PAIR = [floats(2, 3), floats(2, 3, seed=1)]
IMAGE = floats(1, 2, 5, 5)
LOSS = [floats(2, 3, 2), ints(0, 2, 1, 0).reshape(2, 2), floats(3)]  # scores, labels, weights


def optimizer(has_moments: bool) -> list[Call]:
    groups = [[floats(2, 3, seed=i), floats(4, seed=i)] for i in range(4 if has_moments else 2)]
    step = [ints(3)] if has_moments else []
    return [Call([RATE, *step, *groups, TRUE], {}, 4 if has_moments else 2)]


RECIPES = {
    "AdamOptimizer": [
        Call(
            [
                RATE,
                np.array(3),
                *[floats(9, seed=i) ** 2 for i in range(4)],
                None,
                None,
                None,
                TRUE,
            ],
            ADAM,
            5,
        )
    ],
    "AdamWOptimizer": optimizer(True),
    "AveragePoolGrad": [Call([floats(1, 2, 4)], POOL)],
    "BatchNormInternal": [
        Call(
            [floats(4, 3, 5), *[floats(3, seed=i) ** 2 for i in range(4)]],
            {"epsilon": 1e-3, "momentum": 0.8},
            5,
        )
    ],
    "BatchNormalizationGrad": [
        Call(
            [floats(2, 3, 4), floats(2, 3, 4, seed=1), *[floats(3, seed=i) for i in range(3)]],
            {"epsilon": 1e-5},
            3,
        )
    ],
    "BatchScale": [Call([PAIR[0]], {"scale_0": 3.0, "scale_1": 0.25}, 2)],
    "BiasFastGeluGrad_dX": [Call([*PAIR, floats(3)])],
    "BiasGeluGrad_dX": [Call([*PAIR, floats(3)])],
    "BroadcastGradientArgs": [Call([ints(2, 1), ints(4, 1, 3)], {}, 2)],
    "ConcatTraining": [Call([floats(2, 3), floats(2, 2)], {"axis": 1}, 2)],
    "ConvGrad": [Call([floats(2, 5, 6, 6), floats(2, 3, 6, 6), floats(5, 3, 3, 3)], CONV, 3)],
    "DivGrad": [Call([PAIR[0], PAIR[1], floats(3) + 9], {}, 2)],
    "DropoutGrad": [Call([PAIR[0], PAIR[1] > 0, np.array(0.5, FLOAT), np.array(True)])],
    "FakeQuant": [
        Call(
            [PAIR[0], np.array(0.7, FLOAT), np.array(3, FLOAT)],
            {"quant_min": 0, "quant_max": 255},
            2,
        )
    ],
    "FakeQuantGrad": [Call([PAIR[0], PAIR[1] > 0])],
    "FastGeluGrad": [Call(PAIR)],
    "GRUGrad": [
        Call(
            [*GRU_INPUTS, STATES, floats(5, 1, 2, 12), STATES, STATE],
            GRU,
            5,
        )
    ],
    "GRUTraining": [Call(GRU_INPUTS, GRU, 3)],
    "GatherElementsGrad": [
        Call([floats(2, 2), ints(2, 3), ints(0, 2, 2, 2).reshape(2, 2)], {"axis": 1})
    ],
    "GatherGrad": [
        Call([ints(4, 3), ints(0, -1), floats(2, 3)], {"axis": 0}),
        Call([ints(4, 3), ints(0, 2, 1), floats(4, 3)], {"axis": 1}),
    ],
    "GatherNDGrad": [
        Call([ints(2, 3), ints(1, 1).reshape(2, 1), floats(2, 3)], {"batch_dims": 0}),
        Call([ints(2, 3, 4, 5), BATCHED_INDICES, floats(2, 7, 5)], {"batch_dims": 1}),
    ],
    "GeluGrad": [Call(PAIR)],
    "GroupedMatMul": [
        Call([floats(6, 3), floats(3, 3, 4), ints(2, 2, 5)], {"transB": 0}),
        Call([floats(6, 3), floats(3, 4, 3), ints(2, 2, 5)], {"transB": 1}),
        Call([floats(6, 3), floats(6, 4), ints(2, 2, 5)]),
    ],
    "InPlaceAccumulator": [Call([*PAIR, TRUE])],
    "InPlaceAccumulatorV2": [Call([*PAIR, TRUE], {}, 2)],
    "InplaceClipGradNorm": [Call([[*PAIR, floats(4)]], {"max_norm": 1.0, "norm_type": "fro"})],
    "LSTMGrad": [
        Call(
            [X, W, R, LENGTHS, *[STATE] * 2, *[STATES] * 2, GATES, STATES, *[STATE] * 2, PEEPHOLES],
            {**RECURRENT, "input_forget": 0},
            7,
        )
    ],
    "LSTMTraining": [
        Call(
            [X, W, R, floats(1, 32), LENGTHS, STATE, STATE, PEEPHOLES],
            {**RECURRENT, "input_forget": 0},
            5,
        )
    ],
    "LayerNormalizationGrad": [
        Call([*PAIR, floats(3), floats(2, 1), floats(2, 1)], {"axis": -1}, 3)
    ],
    "LeakyReluGrad": [Call(PAIR, {"alpha": 0.3})],
    "LogSoftmaxGrad": [Call(PAIR, {"axis": 1})],
    "LogSoftmaxGrad_13": [Call(PAIR, {"axis": 1})],
    "MaxPoolGrad": [Call([floats(1, 2, 2), ints(7, 0, 1, 7).reshape(1, 2, 2)])],
    "MaxRoiPoolGrad": [
        Call(
            [floats(3, 2, 2, 2), IMAGE, np.zeros((3, 5), FLOAT)],
            {"pooled_shape": [2, 2], "spatial_scale": 1.0},
        )
    ],
    "MixedPrecisionScale": [Call([np.array(0.5, FLOAT), *PAIR], {"to": 10, "fuse_outputs": 0}, 2)],
    "PassThrough": [Call(PAIR, {}, 2)],
    "QuickGeluGrad": [Call(PAIR, {"alpha": 1.5})],
    "RNNGrad": [
        Call(
            [X, W[:, :4], R[:, :4], LENGTHS, STATE, STATES, STATES, STATE],
            RNN,
            5,
        )
    ],
    "ReduceAllL2": [Call([*PAIR, floats(5)])],
    "ReduceSumTraining": [
        Call([floats(2, 3, 4), ints(1, -1)], {"keepdims": 0, "noop_with_empty_axes": 1})
    ],
    "ReluGrad": [Call(PAIR)],
    "RoiAlignGrad": [
        Call(
            [floats(3, 2, 2, 2), IMAGE, floats(3, 4) ** 2, ints(0, 0, 0)],
            {"output_height": 2, "output_width": 2, "sampling_ratio": 1, "mode": "max"}
            | {"spatial_scale": 0.5},
        )
    ],
    "SGDOptimizer": [Call([RATE, floats(7), floats(7, seed=1)], {}, 2)],
    "SGDOptimizerV2": optimizer(False),
    "Scale": [Call([PAIR[0], np.array(4, FLOAT)], {"scale_down": 1})],
    "ScaledDotProductAttention": [Call([*QKV, MASK], HEADS, 2)],
    "ScaledDotProductAttentionGrad": [Call([floats(2, 5, 8), *QKV, MASK], HEADS, 3)],
    "ScaledSum": [Call(PAIR, {"scale_0": 0.5, "scale_1": -2.0})],
    "SigmoidGrad": [Call(PAIR)],
    "SimplifiedLayerNormalizationGrad": [Call([*PAIR, floats(3), floats(2, 1)], {"axis": -1}, 2)],
    "SliceGrad": [
        Call([floats(2, 2), ints(4, 3), ints(3, 0), ints(0, 2), ints(0, -1), ints(-2, 1)])
    ],
    "SoftmaxCrossEntropyLossGrad": [
        Call(
            [np.array(1, FLOAT), *LOSS],
            {"ignore_index": 1, "reduction": "mean"},
        )
    ],
    "SoftmaxCrossEntropyLossInternal": [
        Call(
            [*LOSS, np.array(1)],
            {"output_type": 1, "reduction": "mean"},
            2,
        )
    ],
    "SoftmaxCrossEntropyLossInternalGrad": [
        Call(
            [np.array(1, FLOAT), *LOSS, np.array(1), floats(2, 3, 2)],
            {"output_type": 1, "reduction": "mean"},
        )
    ],
    "SoftmaxGrad": [Call(PAIR, {"axis": 1})],
    "SoftmaxGrad_13": [Call(PAIR, {"axis": 1})],
    "SplitTraining": [Call([floats(2, 5), ints(3, 2)], {"axis": 1}, 2)],
    "TanhGrad": [Call(PAIR)],
    "ZeroGradient": [Call([PAIR[0], TRUE])],
}
SCHEMAS = {name: Schema(name, calls) for name, calls in RECIPES.items()}
