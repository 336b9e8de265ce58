"""Gradients that operators of com.microsoft compute, in float32, beside PyTorch's in float64.

The gradients of gradients of convolutions and pools are here, too.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import onnx
import pytest
import tenon
from onnx import parser

torch = pytest.importorskip("torch")
functional = torch.nn.functional

HEADER = (
    '<ir_version: 9, opset_import: ["": 23, "com.microsoft": 1, "ai.onnx.preview.training": 1]>\n'
)
GRADIENT = 'da, dw = ai.onnx.preview.training.Gradient <xs=["a", "w"], y="y"> (a, w)'
# cos, sin: [7, 4], any numbers
TABLES = "".join(
    f"flat_{name} = Constant <value_floats=[{', '.join(map(str, values))}]> ()\n"
    f"{name} = Reshape (flat_{name}, sizes)\n"
    for name, values in {
        "cos": [round(0.1 + i % 5 / 7, 3) for i in range(28)],
        "sin": [round(0.9 - i % 6 / 5, 3) for i in range(28)],
    }.items()
)
ROTATION = (
    "sizes = Constant <value_ints=[7, 4]> ()\noffset = Constant <value_ints=[1]> ()\n" + TABLES
)
ENDS = "e = Constant <value_ints=[2, 2, 5]> ()\n"
GROUPS = [slice(0, 2), slice(2, 2), slice(2, 5)]
LABELS = "i = Constant <value_ints=[1, 0, 3, 1]> ()\n"


def classes() -> torch.Tensor:
    return torch.tensor([1, 0, 3, 1])


def grouped(a: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The products of groups of a's rows and w's matrices, and zeros for the row in no group."""
    products = [a[rows] @ each for rows, each in zip(GROUPS, w, strict=True)]
    return torch.cat([*products, torch.zeros(1, w.shape[2], dtype=a.dtype)])


def rotated(x: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """x [..., 5, 8] by rows 1 to 5 of the tables."""
    at = torch.arange(4, 24).reshape(5, 4)
    cos, sin = (0.1 + at % 5 / 7).double(), (0.9 - at % 6 / 5).double()
    cos, sin = (torch.tensor(np.round(t.numpy(), 3)) for t in (cos, sin))
    one, two = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :4], x[..., 4:])
    both = cos * one - sin * two, sin * one + cos * two
    return torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)


# Nodes that make c of a and w, the same in PyTorch, and the shapes of a and w.
CASES: dict[str, tuple[str, Callable, list[int], list[int]]] = {
    "Conv": (
        "c = Conv <strides=[2, 1], pads=[1, 0, 0, 2], dilations=[1, 2]> (a, w)",
        lambda a, w: functional.conv2d(
            functional.pad(a, (0, 2, 1, 0)), w, stride=(2, 1), dilation=(1, 2)
        ),
        [2, 3, 7, 6],
        [4, 3, 3, 2],
    ),
    "Conv in groups with a bias": (
        "b = ReduceSum <keepdims=0> (w, axes)\nc = Conv <group=2> (a, w, b)",
        lambda a, w: functional.conv1d(a, w, w.sum((1, 2)), groups=2),
        [2, 4, 9],
        [6, 2, 3],
    ),
    "ConvTranspose": (
        "b = ReduceSum <keepdims=0> (w, outer)\n"
        "c = ConvTranspose <strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]> (a, w, b)",
        lambda a, w: functional.conv_transpose2d(
            a, w, w.sum((0, 2, 3)), stride=2, padding=1, output_padding=1
        ),
        [2, 3, 4, 5],
        [3, 2, 3, 3],
    ),
    "MaxPool": (
        "d = MaxPool <kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]> (a)\nc = Mul (d, w)",
        lambda a, w: functional.max_pool2d(a, (3, 2), (2, 2), (1, 0)) * w,
        [2, 3, 6, 6],
        [3, 1, 1],
    ),
    "AveragePool": (
        "d = AveragePool <kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0],"
        " count_include_pad=1> (a)\nc = Mul (d, w)",
        lambda a, w: functional.avg_pool2d(a, (3, 2), (2, 1), (1, 0)) * w,
        [2, 3, 7, 6],
        [3, 1, 1],
    ),
    "GroupedMatMul": (
        ENDS + "c = com.microsoft.GroupedMatMul (a, w, e)",
        grouped,
        [6, 4],
        [3, 4, 5],
    ),
    "GroupedMatMul of transposed matrices": (
        ENDS + "c = com.microsoft.GroupedMatMul <transB=1> (a, w, e)",
        lambda a, w: grouped(a, w.mT),
        [6, 4],
        [3, 5, 4],
    ),
    "GroupedMatMul of rows": (
        ENDS + "c = com.microsoft.GroupedMatMul (a, w, e)",
        lambda a, w: torch.stack([a[rows].mT @ w[rows] for rows in GROUPS]),
        [6, 4],
        [6, 5],
    ),
    "LayerNormalization": (
        "b = Neg (w)\nc = LayerNormalization <epsilon=0.01> (a, w, b)",
        lambda a, w: functional.layer_norm(a, (6,), w, -w, 0.01),
        [3, 5, 6],
        [6],
    ),
    "SkipLayerNormalization": (
        "k = Sigmoid (a)\nn = Neg (w)\nbias = Mul (w, w)\n"
        "d, m, v, s = com.microsoft.SkipLayerNormalization <epsilon=0.01> (a, k, w, n, bias)\n"
        "c = Add (d, s)",
        lambda a, w: (
            functional.layer_norm(a + a.sigmoid() + w * w, (6,), w, -w, 0.01)
            + (a + a.sigmoid() + w * w)
        ),
        [3, 5, 6],
        [6],
    ),
    "SkipLayerNormalization of two inputs": (
        "first = Constant <value_ints=[0]> ()\nk = ReduceSum (a, first)\n"
        "c = com.microsoft.SkipLayerNormalization <epsilon=0.01> (a, k, w)",
        lambda a, w: functional.layer_norm(a + a.sum(0, keepdim=True), (6,), w, None, 0.01),
        [3, 5, 6],
        [6],
    ),
    "SkipSimplifiedLayerNormalization": (
        "k = Sigmoid (a)\nbias = Mul (w, w)\n"
        "d, m, v, s = com.microsoft.SkipSimplifiedLayerNormalization <epsilon=0.01> "
        "(a, k, w, bias)\n"
        "c = Add (d, s)",
        lambda a, w: (
            functional.rms_norm(a + a.sigmoid() + w * w, (6,), w, 0.01) + (a + a.sigmoid() + w * w)
        ),
        [3, 5, 6],
        [6],
    ),
    "RotaryEmbedding": (
        ROTATION + "d = com.microsoft.RotaryEmbedding (a, offset, cos, sin)\n"
        "e = com.microsoft.RotaryEmbedding <interleaved=1> (w, offset, cos, sin)\nc = Mul (d, e)",
        lambda a, w: rotated(a, False) * rotated(w, True),
        [2, 3, 5, 8],
        [2, 3, 5, 8],
    ),
    "RotaryEmbedding of the standard": (
        ROTATION + "row = Constant <value_ints=[1, 2, 3, 4, 5, 1, 2, 3, 4, 5]> ()\n"
        "two = Constant <value_ints=[2, 5]> ()\nplaces = Reshape (row, two)\n"
        "d = RotaryEmbedding (a, cos, sin, places)\n"
        "e = RotaryEmbedding <interleaved=1> (w, cos, sin, places)\nc = Mul (d, e)",
        lambda a, w: rotated(a, False) * rotated(w, True),
        [2, 3, 5, 8],
        [2, 3, 5, 8],
    ),
    "Gelu": (
        "d = Gelu (a)\nc = Mul (d, w)",
        lambda a, w: functional.gelu(a) * w,
        [3, 5],
        [5],
    ),
    "Gelu by tanh": (
        'd = Gelu <approximate="tanh"> (a)\nc = Mul (d, w)',
        lambda a, w: functional.gelu(a, approximate="tanh") * w,
        [3, 5],
        [5],
    ),
    "Relu, Sigmoid, Tanh, LeakyRelu": (
        "d = Relu (a)\ne = Sigmoid (a)\nf = Tanh (a)\ng = LeakyRelu <alpha=0.2> (a)\n"
        "h = Sum (d, e, f, g)\nc = Mul (h, w)",
        lambda a, w: (a.relu() + a.sigmoid() + a.tanh() + functional.leaky_relu(a, 0.2)) * w,
        [3, 5],
        [5],
    ),
    "Softmax": (
        "d = Softmax <axis=1> (a)\nc = Mul (d, w)",
        lambda a, w: a.softmax(1) * w,
        [3, 5, 2],
        [5, 1],
    ),
    "LogSoftmax": (
        "d = LogSoftmax (a)\nc = Mul (d, w)",
        lambda a, w: a.log_softmax(-1) * w,
        [3, 5],
        [5],
    ),
    "Gather": (
        LABELS + "d = Gather (a, i)\nc = Mul (d, w)",
        lambda a, w: a[classes()] * w,
        [5, 3],
        [3],
    ),
    "SoftmaxCrossEntropyLoss": (
        LABELS + "d = MatMul (a, w)\nc = SoftmaxCrossEntropyLoss (d, i)",
        lambda a, w: functional.cross_entropy(a @ w, classes()),
        [4, 6],
        [6, 5],
    ),
    "SoftmaxCrossEntropyLoss with ignored labels": (
        LABELS + "d = MatMul (a, w)\n"
        'c = SoftmaxCrossEntropyLoss <ignore_index=1, reduction="sum"> (d, i)',
        lambda a, w: functional.cross_entropy(a @ w, classes(), ignore_index=1, reduction="sum"),
        [4, 6],
        [6, 5],
    ),
}
BODY = """g (float{a} a, float{w} w) => ({outputs})
    <int64[2] axes = {{1, 2}}, int64[3] outer = {{0, 2, 3}}> {{
{nodes}
y = Mul (c, c)
{gradients}
}}"""


def model_of(name: str, gradients: str, outputs: list[str]) -> bytes:
    nodes, _, a, w = CASES[name]
    declared = ", ".join(f"float {output}" for output in outputs)
    text = BODY.format(a=a, w=w, outputs=declared, nodes=nodes, gradients=gradients)
    model = parser.parse_model(HEADER + text)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model.SerializeToString()


def outputs_of(name: str, gradients: str, outputs: list[str]) -> list[np.ndarray]:
    session = tenon.InferenceSession(model_of(name, gradients, outputs))
    feeds = dict(zip("aw", values_of(name), strict=True))
    return session.run(outputs, feeds)


def values_of(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.uniform(-1.5, 1.5, shape).astype(np.float32) for shape in CASES[name][2:]]


def tensors_of(name: str) -> list[torch.Tensor]:
    return [torch.tensor(v.astype(float), requires_grad=True) for v in values_of(name)]


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name: str) -> None:
    tensors = tensors_of(name)
    y = CASES[name][1](*tensors).square()
    expected = [y, *torch.autograd.grad(y.sum(), tensors)]
    actual = outputs_of(name, GRADIENT, ["y", "da", "dw"])
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("Conv", "ConvGrad"),
        ("MaxPool", "MaxPoolGrad"),
        ("LayerNormalization", "LayerNormalizationGrad"),
        ("Gather", "GatherGrad"),
        ("SoftmaxCrossEntropyLoss", "SoftmaxCrossEntropyLossGrad"),
    ],
)
def test_which_operators_compute_them(name: str, operator: str, tmp_path: pathlib.Path) -> None:
    options = tenon.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "expanded.onnx")
    tenon.InferenceSession(model_of(name, GRADIENT, ["da", "dw"]), options)
    nodes = onnx.load(options.optimized_model_filepath).graph.node
    assert operator in {node.op_type for node in nodes}


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    tensors = tensors_of(name)
    y = CASES[name][1](*tensors).square()
    da, dw = torch.autograd.grad(y.sum(), tensors, create_graph=True)
    z = da.square().sum() + dw.square().sum()
    expected = torch.autograd.grad(z, tensors)
    again = f"""{GRADIENT}
        p = ReduceSumSquare <keepdims=0> (da)
        q = ReduceSumSquare <keepdims=0> (dw)
        z = Add (p, q)
        daa, dww = ai.onnx.preview.training.Gradient <xs=["a", "w"], y="z"> (a, w)"""
    for got, wanted in zip(outputs_of(name, again, ["daa", "dww"]), expected, strict=True):
        scale = max(1.0, wanted.abs().max().item())
        np.testing.assert_allclose(got / scale, wanted.numpy() / scale, rtol=1e-4, atol=2e-5)
