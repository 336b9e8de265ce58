"""Graphs with QuantizeLinear and DequantizeLinear around operators run in integers.

Each graph runs so, with `session.disable_quant_qdq`, and on onnxruntime without optimizations, that
is as the graph says: each element may differ by one quantum.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from quantized_graphs import FORMS, Graph, assert_near, clipped, conv, run, run_genuine
from saturation import saturates


def matmul(g: Graph, b: str, **options: Any) -> str:
    return g.op("MatMul", g.input(2, 5, 32, **options), b)


def moved(g: Graph, op_type: str, *inputs: str, **attributes: Any) -> str:
    """An operator that moves elements, with the same quantization before and after it."""
    x = g.input(2, 4, 6, 8)
    return g.quantize(g.op(op_type, x, *inputs, **attributes), 0.03)


def halves(g: Graph, x: str) -> list[str]:
    return g.split(x, 2, axis=1, num_outputs=2)


def silu(g: Graph, x: str) -> str:
    gate = g.between(g.op("Sigmoid", x), 1 / 256)
    return g.quantize(g.op("Mul", x, gate), 0.02)


def gelu_of_parts(g: Graph, x: str) -> str:
    """GELU as exporters write it, quantized between its operators but for one."""
    error = g.between(
        g.op("Erf", g.op("Div", x, g.constant(np.array([1.4142135], np.float32)))), 1 / 127
    )
    # The constant is dequantized, too.
    one = g.dequantize(g.constant(g.dtype(min(g.zero + 127, np.iinfo(g.dtype).max))), 1 / 127)
    shifted = g.between(g.op("Add", error, one), 2 / 255)
    product = g.between(g.op("Mul", x, shifted), 0.04)
    return g.quantize(g.op("Mul", product, g.constant(np.float32(0.5))), 0.03)


def twice(x: str) -> list[tuple[str, str]]:
    return [("Sigmoid", x), ("Tanh", x)]


def ints(g: Graph, *values: int) -> str:
    return g.constant(np.array(values, np.int64))


# By name: what makes the graph and returns its result, and the operators that run.
CASES: dict[str, tuple[Callable[[Graph], str], set[str]]] = {
    "conv": (lambda g: g.quantize(conv(g), 0.05), {"QLinearConv"}),
    "conv, a scale per channel": (
        lambda g: g.quantize(conv(g, weights={"axis": 0}, pads=[1, 1, 1, 1]), 0.05),
        {"QLinearConv"},
    ),
    "conv, uint8 weights": (
        lambda g: g.quantize(conv(g, weights={"dtype": np.uint8}, strides=[2, 2]), 0.05),
        {"QLinearConv"},
    ),
    "conv, float bias": (lambda g: g.quantize(conv(g, bias="floats"), 0.05), {"QLinearConv"}),
    "conv, no bias": (lambda g: g.quantize(conv(g, bias=None), 0.05), {"QLinearConv"}),
    "conv, depthwise": (
        lambda g: g.quantize(conv(g, out=6, group=6, weights={"axis": 0}), 0.05),
        {"QLinearConv"},
    ),
    "conv, one axis": (
        lambda g: g.quantize(conv(g, shape=(1, 6, 40), kernel=(5,), dilations=[2]), 0.05),
        {"QLinearConv"},
    ),
    "matmul": (lambda g: g.quantize(matmul(g, g.weights(32, 7)), 0.05), {"QLinearMatMul"}),
    "matmul, a scale per column": (
        lambda g: g.quantize(matmul(g, g.weights(32, 7, axis=1)), 0.05),
        {"QLinearMatMul"},
    ),
    "matmul, transposed weights": (
        lambda g: g.quantize(
            matmul(g, g.op("Transpose", g.weights(7, 32, axis=0), perm=[1, 0])), 0.05
        ),
        {"QLinearMatMul"},
    ),
    "matmul of activations": (
        lambda g: g.quantize(matmul(g, g.input(2, 32, 5, scale=0.01)), 0.3),
        {"QLinearMatMul"},
    ),
    "matmul, not quantized": (
        lambda g: matmul(g, g.weights(32, 7, axis=1)),
        {"MatMulIntegerToFloat"},
    ),
    "matmul, float bias": (
        lambda g: g.quantize(
            g.op("Add", matmul(g, g.weights(32, 7)), g.constant(np.ones(7, np.float32))), 0.05
        ),
        {"MatMulIntegerToFloat", "QuantizeLinear"},
    ),
    "gemm": (
        lambda g: g.quantize(
            g.op("Gemm", g.input(5, 32), g.weights(7, 32, axis=0), g.bias(7), transB=1, alpha=0.5),
            0.05,
        ),
        {"QGemm"},
    ),
    "gemm, not quantized": (
        lambda g: g.op("Gemm", g.input(5, 32), g.weights(32, 7), g.bias(7)),
        {"QGemm"},
    ),
    "sum": (
        lambda g: g.quantize(
            g.op("Add", g.input(2, 3, 5, 7), g.input(3, 1, 7, scale=0.02, zero=5)), 0.04
        ),
        {"QLinearAdd"},
    ),
    "product": (
        lambda g: g.quantize(g.op("Mul", g.input(2, 3, 5, 7), g.input(2, 3, 1, 1)), 0.06),
        {"QLinearMul"},
    ),
    "requantized": (lambda g: g.quantize(g.input(3, 40), 0.05, zero=7), {"QLinearTable"}),
    "product with an activation of the same": (
        lambda g: silu(g, g.input(2, 3, 5, 7)),
        {"QLinearTable"},
    ),
    "GELU of several operators": (
        lambda g: gelu_of_parts(g, g.input(2, 3, 5, 7)),
        {"QLinearTable"},
    ),
    "floats between that another reads": (
        lambda g: g.quantize(
            g.op(
                "Add",
                g.op("Sqrt", g.op("Abs", g.input(2, 3, 40))),
                g.constant(np.arange(40, dtype=np.float32) / 40),
            ),
            0.03,
        ),
        {"DequantizeLinear", "FusedElements", "QuantizeLinear"},
    ),
    "a constant that adds an axis": (
        lambda g: g.quantize(
            g.op("Mul", g.input(3, 40), g.constant(np.full((1, 1, 1), 0.5, np.float32))), 0.02
        ),
        {"DequantizeLinear", "Mul", "QuantizeLinear"},
    ),
    "a constant with the rank of the tensor": (
        lambda g: g.quantize(
            g.op("Mul", g.input(2, 3, 40), g.constant(np.full((1, 1, 1), 0.5, np.float32))), 0.02
        ),
        {"QLinearTable"},
    ),
    "sum of activations of the same": (
        lambda g: g.quantize(
            g.op("Add", *(g.between(g.op(f, x), 0.02) for f, x in twice(g.input(3, 40)))), 0.03
        ),
        {"QLinearTable"},
    ),
    "product with an activation of another": (
        lambda g: g.quantize(
            g.op("Mul", g.input(3, 40), g.between(g.op("Sigmoid", g.input(3, 40)), 1 / 128)), 0.04
        ),
        {"QLinearTable", "QLinearMul"},
    ),
    "global pool": (
        lambda g: g.quantize(g.op("GlobalAveragePool", g.input(2, 5, 7, 7)), 0.01),
        {"QLinearGlobalAveragePool"},
    ),
    "average pool": (
        lambda g: g.quantize(
            g.op("AveragePool", g.input(2, 5, 7, 7), kernel_shape=[3, 3], pads=[1, 1, 1, 1]), 0.0217
        ),
        {"QLinearAveragePool"},
    ),
    "softmax": (
        lambda g: g.quantize(g.op("Softmax", g.input(4, 9), axis=1), 1 / 256),
        {"QLinearSoftmax"},
    ),
    # 1 is no multiple of the scale, which com.microsoft's QLinearSoftmax would change.
    "softmax, of other steps": (
        lambda g: g.quantize(g.op("Softmax", g.input(4, 9, 30), axis=1), 0.0117),
        {"QLinearSoftmax"},
    ),
    "concat": (
        lambda g: g.quantize(
            g.op("Concat", g.input(2, 3, 4), g.input(2, 1, 4, scale=0.05), axis=1), 0.05
        ),
        {"QLinearConcat"},
    ),
    "concat of the same": (
        lambda g: g.quantize(g.op("Concat", g.input(2, 3), g.input(2, 1), axis=1), 0.03),
        {"Concat"},
    ),
    "transpose": (lambda g: moved(g, "Transpose", perm=[0, 2, 3, 1]), {"Transpose"}),
    "slice": (lambda g: moved(g, "Slice", ints(g, 1), ints(g, 3), ints(g, 1)), {"Slice"}),
    "max pool": (
        lambda g: moved(g, "MaxPool", kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 0, 1]),
        {"MaxPool"},
    ),
    "depth to space": (lambda g: moved(g, "DepthToSpace", blocksize=2), {"DepthToSpace"}),
    "resize": (
        lambda g: moved(
            g,
            "Resize",
            "",
            g.constant(np.array([1, 1, 2, 2], np.float32)),
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        {"Resize"},
    ),
    "split": (
        lambda g: g.quantize(
            g.op("Add", *(g.between(part, 0.03) for part in halves(g, g.input(2, 6, 4)))), 0.05
        ),
        {"Split", "QLinearAdd"},
    ),
    "split after a reshape": (
        lambda g: g.quantize(
            g.op("Mul", *halves(g, g.op("Reshape", g.input(4, 3, 4), ints(g, 2, 6, 4)))), 0.05
        ),
        {"Split", "QLinearMul"},
    ),
    "pad": (lambda g: moved(g, "Pad", ints(g, 0, 0, 1, 2, 0, 0, 0, 1)), {"Pad"}),
    "rows of a table": (
        lambda g: g.op("Gather", g.weights(50, 8), g.constant(np.array([3, 44, 3]))),
        {"Gather", "DequantizeLinear"},
    ),
    "moved twice, then a product": (
        lambda g: g.quantize(
            g.op(
                "MatMul",
                g.op(
                    "Reshape", g.op("Transpose", g.input(4, 6, 8), perm=[1, 0, 2]), ints(g, 6, 32)
                ),
                g.weights(32, 3),
            ),
            0.05,
        ),
        {"Transpose", "QLinearMatMul"},
    ),
}
for name, attributes in {
    "Sigmoid": {},
    "Tanh": {},
    "HardSwish": {},
    "LeakyRelu": {"alpha": 0.2},
    "Elu": {},
    "Gelu": {},
    "Relu": {},
}.items():
    CASES[name] = (
        lambda g, name=name, attributes=attributes: g.quantize(
            g.op(name, g.input(3, 40), **attributes), 0.02
        ),
        {"QLinearTable"},
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CASES)
def test_runs_in_integers(name: str, form: str, tmp_path: pathlib.Path) -> None:
    make, expected_ops = CASES[name]
    g = Graph(form)
    model = g.model(make(g))
    integers, ran = run(model, g.feeds, True, tmp_path)
    floats, ran_before = run(model, g.feeds, False, tmp_path)
    assert ran - {"Reshape"} == expected_ops
    assert "DequantizeLinear" in ran_before or not g.inputs
    assert_near(integers, floats)
    assert_near(integers, run_genuine(model, g.feeds))


@pytest.mark.parametrize("bound", ["Relu", "Clip", "Clip inside"])
@pytest.mark.parametrize("inner", ["conv", "sum", "matmul", "gemm"])
@pytest.mark.parametrize("form", FORMS)
def test_bounds_are_integers(form: str, inner: str, bound: str, tmp_path: pathlib.Path) -> None:
    """Relu needs no operation where the least integer stands for 0, else a Clip of integers."""
    g = Graph(form)
    x = {
        "conv": conv,
        "sum": lambda g: g.op("Add", g.input(3, 50), g.input(3, 50)),
        "matmul": lambda g: matmul(g, g.weights(32, 7)),
        "gemm": lambda g: g.op("Gemm", g.input(5, 32), g.weights(32, 7), g.bias(7)),
    }[inner](g)
    if bound == "Relu":
        x = g.op("Relu", x)
    else:
        x = clipped(g, x, 0, 1000) if bound == "Clip" else clipped(g, x, -0.5, 0.7)
    model = g.model(g.quantize(x, 0.05, zero=0 if form == "uint8" else None))
    integers, ran = run(model, g.feeds, True, tmp_path)
    needs_clip = form != "uint8" or bound == "Clip inside"
    assert ("Clip" in ran) == needs_clip
    assert "Relu" not in ran and "QuantizeLinear" not in ran
    assert_near(integers, run_genuine(model, g.feeds))


@pytest.mark.parametrize(
    "bias, scale, fits",
    [
        (1_900_000_000, 2e-8, True),
        (2**31 - 1, 2e-8, False),  # a sum may not fit
        (2**31 - 1, 1e-14, True),  # but what does not is no thousandth of a quantum
        (-(2**31), 1e-14, True),
        (2**31 - 1, 1e-10, True),
    ],
)
def test_biases_may_fill_32_bits(
    bias: int, scale: float, fits: bool, tmp_path: pathlib.Path
) -> None:
    """Weights close to 0 get a scale close to 0, in which their bias is a large number."""
    g = Graph("symmetric int8")
    scales = np.array([0.004, scale, 0.006], np.float32)
    weights = g.random.integers(-127, 128, (3, 6, 3, 3), np.int8)
    zeros = np.zeros(3, np.int8)
    biases = np.array([-4000, bias, 2000], np.int32)
    x = g.input(1, 6, 9, 9)
    w = g.op("DequantizeLinear", *map(g.constant, (weights, scales, zeros)), axis=0)
    b = g.op("DequantizeLinear", *map(g.constant, (biases, scales * np.float32(0.03))), axis=0)
    model = g.model(g.quantize(g.op("Conv", x, w, b), 0.02))
    integers, ran = run(model, g.feeds, True, tmp_path)
    assert ("QLinearConv" in ran) == fits
    assert ("Conv" in ran) != fits
    assert_near(integers, run_genuine(model, g.feeds))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kernel, strides, attributes, dtype, axis",
    [
        ((2, 2), (2, 2), {}, np.int8, 1),
        ((2, 2), (2, 2), {}, np.uint8, None),
        ((4, 4), (2, 2), {"pads": [1, 1, 1, 1]}, np.int8, 1),
        ((4, 4), (2, 2), {"pads": [0, 1, 2, 1]}, np.uint8, 1),
        ((3, 3), (2, 2), {"pads": [1, 1, 1, 1], "output_padding": [1, 1]}, np.int8, 1),
        ((3, 3), (2, 2), {}, np.uint8, 1),
        ((3, 6), (3, 3), {}, np.int8, None),
        ((5, 5), (3, 3), {"pads": [1, 2, 0, 1], "output_padding": [0, 1]}, np.uint8, 1),
    ],
)
def test_transposed_convolutions_run_on_integers(
    form: str,
    kernel: tuple,
    strides: tuple,
    attributes: dict,
    dtype: type,
    axis: int | None,
    tmp_path: pathlib.Path,
) -> None:
    g = Graph(form)
    x = g.input(2, 6, 5, 7)
    w = g.weights(6, 8, *kernel, axis=axis, dtype=dtype)
    y = g.op("Relu", g.op("ConvTranspose", x, w, g.bias(8), strides=strides, **attributes))
    model = g.model(g.quantize(y, 0.02))
    integers, ran = run(model, g.feeds, True, tmp_path)
    assert ran & {"QLinearConv", "NhwcQLinearConv"} and "DepthToSpace" in ran
    assert not ran & {"ConvTranspose", "DequantizeLinear"}
    assert_near(integers, run_genuine(model, g.feeds))


@pytest.mark.parametrize(
    "kernel, attributes",
    [
        ((2, 2), {"strides": [2, 2], "dilations": [2, 2]}),
        ((2, 2), {"strides": [2, 1]}),
        ((1, 1), {"strides": [2, 2]}),  # three of four outputs are zeros
        ((2, 2), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((2, 2), {"strides": [2, 2], "output_padding": [1, 1]}),
        ((2, 2), {"strides": [2, 2], "group": 2}),
    ],
)
def test_other_transposed_convolutions_stay(
    kernel: tuple, attributes: dict, tmp_path: pathlib.Path
) -> None:
    g = Graph("uint8")
    w = g.weights(6, 8, *kernel)
    model = g.model(g.quantize(g.op("ConvTranspose", g.input(2, 6, 5, 7), w, **attributes), 0.02))
    integers, ran = run(model, g.feeds, True, tmp_path)
    assert "ConvTranspose" in ran
    assert_near(integers, run_genuine(model, g.feeds))


def test_operators_that_are_not_meant_stay(tmp_path: pathlib.Path) -> None:
    """A Conv whose activation is no bound, one that another node reads too, 16 bits."""
    g = Graph("uint8")
    hidden = conv(g)
    model = g.model(g.quantize(g.op("Sigmoid", hidden), 0.01))
    _, ran = run(model, g.feeds, True, tmp_path)
    assert "QLinearConv" not in ran
    g = Graph("uint8")
    hidden = conv(g)
    both = g.op("Add", g.op("Exp", hidden), g.between(hidden, 0.05))
    _, ran = run(g.model(both), g.feeds, True, tmp_path)
    assert "QLinearConv" not in ran


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_dynamic_products_run_in_one_operator(
    has_bias: bool, columns: bool, tmp_path: pathlib.Path
) -> None:
    """As quantize_dynamic writes them."""
    random = np.random.default_rng(0)
    constants = {
        "w": random.integers(-127, 128, (32, 7), np.int8),
        "ws": random.uniform(0.001, 0.01, 7 if columns else ()).astype(np.float32),
        "wz": np.zeros(7 if columns else (), np.int8),
        "b": random.standard_normal(7).astype(np.float32),
    }
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "as", "az"]),
        helper.make_node("MatMulInteger", ["a", "w", "az", "wz"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["as", "ws"], ["scale"]),
        helper.make_node("Mul", ["floats", "scale"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["y"])
        if has_bias
        else helper.make_node("Identity", ["product"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, n) for n, v in constants.items()],
    )
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    feeds = {"x": random.standard_normal((2, 5, 32)).astype(np.float32)}
    result, ran = run(model, feeds, True, tmp_path)
    assert ran == {"DynamicQuantizeLinear", "MatMulIntegerToFloat"}
    assert_near(result, run(model, feeds, False, tmp_path)[0])
    if not saturates():
        assert_near(result, run_genuine(model, feeds))


def block_weights(k: int, n: int, kind: int, is_transposed: bool, has_zeros: bool) -> tuple:
    """Tensors w, scales and zeros, if there are any, with a scale for 32 elements of a column."""
    random = np.random.default_rng(1)
    low, high = {
        TensorProto.INT4: (-8, 7),
        TensorProto.UINT4: (0, 15),
        TensorProto.INT8: (-128, 127),
        TensorProto.UINT8: (0, 255),
    }[kind]
    blocks = -(-k // 32)
    shapes = [(n, k), (n, blocks)] if is_transposed else [(k, n), (blocks, n)]

    def integers(name: str, shape: tuple) -> Any:
        values = random.integers(low, high + 1, shape)
        return helper.make_tensor(name, kind, shape, values.ravel().tolist())

    scales = random.uniform(0.01, 0.1, shapes[1]).astype(np.float32)
    tensors = [integers("w", shapes[0]), numpy_helper.from_array(scales, "scales")]
    return (*tensors, integers("zeros", shapes[1])) if has_zeros else tuple(tensors)


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "INT8", "UINT8"])
@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("k", [96, 80])
def test_products_read_blocks_as_they_are_stored(
    kind: str, is_transposed: bool, has_zeros: bool, k: int, tmp_path: pathlib.Path
) -> None:
    tensors = block_weights(k, 7, TensorProto.DataType.Value(kind), is_transposed, has_zeros)
    names = [tensor.name for tensor in tensors]
    axis = 1 if is_transposed else 0
    nodes = [helper.make_node("DequantizeLinear", names, ["floats"], block_size=32, axis=axis)]
    if is_transposed:
        nodes.append(helper.make_node("Transpose", ["floats"], ["turned"], perm=[1, 0]))
    nodes.append(helper.make_node("MatMul", ["x", nodes[-1].output[0]], ["y"]))
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 7])],
        tensors,
    )
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    x = np.random.default_rng(2).standard_normal((2, 3, k)).astype(np.float32)
    feed, expected = {"x": x}, run_genuine(model, {"x": x})
    result, ran = run(model, feed, True, tmp_path, qdq_matmulnbits_accuracy_level="1")
    assert ran == {"MatMulNBits"}
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
    rounded, _ = run(model, feed, True, tmp_path)  # to 8 bits, as by default in onnxruntime
    assert np.abs(rounded - expected).max() < 0.02 * np.abs(expected).max()


def random_step(g: Graph, values: list[str]) -> str:
    """An operator on some of `values`, each dequantized, of shape [1, 4, 6, 6] and scale 0.03."""
    random = g.random
    x, other = (values[i] for i in random.integers(0, len(values), 2))
    pointwise = g.weights(4, 4, 1, 1, axis=0)
    steps: list[Callable[[], str]] = [
        lambda: g.op("Conv", x, g.weights(4, 4, 3, 3), g.bias(4), pads=[1, 1, 1, 1]),
        lambda: g.op("Relu", g.op("Conv", x, pointwise)),
        lambda: g.op("Conv", x, g.weights(4, 1, 3, 3, axis=0), pads=[1, 1, 1, 1], group=4),
        lambda: g.op("Add", x, other),
        lambda: g.op("Relu", g.op("Add", x, other)),
        lambda: g.op("Mul", x, other),
        lambda: g.op("HardSwish", x),
        lambda: clipped(g, x, 0, 2.5),
        lambda: g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        lambda: g.op("AveragePool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        lambda: g.op("Transpose", x, perm=[0, 1, 3, 2]),
        lambda: g.op(
            "Conv", g.between(g.op("Concat", x, other, axis=1), 0.03), g.weights(4, 8, 1, 1)
        ),
        lambda: g.op(
            "Slice",
            g.op("Pad", x, ints(g, 0, 0, 1, 1, 0, 0, 0, 0)),
            ints(g, 0, 0),
            ints(g, 6, 6),
            ints(g, 2, 3),
        ),
        lambda: g.op("Reshape", g.op("Reshape", x, ints(g, 4, 36)), ints(g, 1, 4, 6, 6)),
        lambda: g.op("MatMul", x, g.weights(6, 6, axis=1)),
        lambda: g.op("Concat", *reversed([g.between(h, 0.03) for h in halves(g, x)]), axis=1),
    ]
    return steps[random.integers(len(steps))]()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(25))
def test_random_graphs_agree_with_floats(seed: int, form: str, tmp_path: pathlib.Path) -> None:
    g = Graph(form, seed)
    values = [g.input(1, 4, 6, 6), g.input(1, 4, 6, 6)]
    for _ in range(6):
        values.append(g.between(random_step(g, values), 0.03))
    model = g.model(g.quantize(g.op("Identity", values[-1]), 0.03))
    integers, ran = run(model, g.feeds, True, tmp_path)
    floats, _ = run(model, g.feeds, False, tmp_path)
    assert not ran & {"Conv", "Add", "Mul", "HardSwish", "AveragePool", "DequantizeLinear"}
    # An operator may make a difference of one, which those after it enlarge.
    differences = np.abs(integers.astype(np.int32) - floats.astype(np.int32))
    assert np.mean(differences) < 0.5 and np.max(differences) <= 12
