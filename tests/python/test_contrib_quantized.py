"""Quantized operators, of com.microsoft and ONNX, compared with onnxruntime."""

import contrib
import numpy as np
import onnx
import pytest
from contrib import floats

BYTES = [np.uint8, np.int8]
# What onnxruntime takes beside A of these types.
PAIRS = [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)]


def integers(dtype: type, *shape: int, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    generator = np.random.default_rng([seed, *shape])
    return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)


def scalar(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def check(op_type: str, inputs: list, output: type, most: int = 0, **options: object) -> None:
    """Whether integers differ from onnxruntime's by at most `most`."""
    content = contrib.model(op_type, inputs, {"y": output}, **options)
    (expected,) = contrib.run_onnxruntime(content, inputs)
    (actual,) = contrib.run_tenon(content, inputs)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max() <= most


@pytest.mark.parametrize("constants", [(), (3,)])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_qlinear_matmul_has_the_same_bits(a: type, b: type, constants: tuple) -> None:
    for m, n, k in [(1, 40, 64), (50, 70, 133), (7, 3, 5)]:
        inputs = [
            *(integers(a, m, k), scalar(0.02), scalar(5, a)),
            *(integers(b, k, n), scalar(0.03), scalar(7, b)),
            *(scalar(1.5), scalar(10, a)),
        ]
        check("QLinearMatMul", inputs, a, domain="", constants=constants)


@pytest.mark.parametrize(("x", "w"), PAIRS)
@pytest.mark.parametrize("per_channel", [False, True])
def test_qlinear_conv_has_the_same_bits(x: type, w: type, per_channel: bool) -> None:
    channels = (24,) if per_channel else ()
    w_scale = np.abs(floats(*channels)).astype(np.float32) / 50 + np.float32(0.01)
    inputs = [
        *(integers(x, 1, 16, 14, 14), scalar(0.02), scalar(5, x)),
        *(integers(w, 24, 16, 3, 3), np.asarray(w_scale), np.full(channels, 7, w)),
        *(scalar(1.5), scalar(10, x), np.arange(24, dtype=np.int32)),
    ]
    check(
        *("QLinearConv", inputs, x),
        domain="",
        constants=tuple(range(1, 9)),
        pads=[1, 1, 1, 1],
        strides=[2, 1],
    )


@pytest.mark.parametrize("dtype", BYTES)
def test_elementwise(dtype: type) -> None:
    x, row = integers(dtype, 3, 40), integers(dtype, 40, seed=1)
    zero = [scalar(z, dtype) for z in (5, 9, 100)]
    operands = [x, scalar(0.03), zero[0], row, scalar(0.02), zero[1], scalar(0.04), zero[2]]
    # onnxruntime multiplies by the ratio of the scales, which may round another way.
    check("QLinearAdd", operands, dtype, most=1)
    check("QLinearMul", operands, dtype, most=1)
    constants = (1, 2, 3, 4)
    unary = [x, scalar(0.03), zero[0], scalar(0.04), zero[2]]
    check("QLinearLeakyRelu", unary, dtype, most=1, constants=constants, alpha=0.1)
    unary = [x, scalar(0.03), zero[0], scalar(0.004), scalar(0, dtype)]
    check("QLinearSigmoid", unary, dtype, most=1, constants=constants)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 12), (0, 12)])
def test_softmax(dtype: type, axis: int, opset: int) -> None:
    inputs = [
        integers(dtype, 3, 4, 5),
        *(scalar(0.03), scalar(5, dtype), scalar(0.004), scalar(0, dtype)),
    ]
    # The attribute `opset` cannot be given to contrib.model, whose own argument has that name.
    content = contrib.model(
        "QLinearSoftmax", inputs, {"y": dtype}, constants=(1, 2, 3, 4), axis=axis
    )
    model = onnx.ModelProto.FromString(content)
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("opset", opset))
    content = model.SerializeToString()
    (expected,) = contrib.run_onnxruntime(content, inputs)
    (actual,) = contrib.run_tenon(content, inputs)
    assert np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max() <= 1


@pytest.mark.parametrize("dtype", BYTES)
def test_concat_and_where(dtype: type) -> None:
    zero = [scalar(z, dtype) for z in (3, 5, 7)]
    parts = [
        *(scalar(0.02), zero[0]),
        *(integers(dtype, 2, 3), scalar(0.03), zero[1]),
        *(integers(dtype, 2, 4), scalar(0.05), zero[2]),
    ]
    check("QLinearConcat", parts, dtype, most=1, constants=(0, 1, 3, 4, 6, 7), axis=1)
    condition = np.array([[True, False, True], [False, True, False]])
    inputs = [
        condition,
        *(integers(dtype, 2, 3), scalar(0.03), zero[1]),
        *(integers(dtype, 3), scalar(0.05), zero[2]),
        *(scalar(0.02), zero[0]),
    ]
    check("QLinearWhere", inputs, dtype, most=1, constants=(2, 3, 5, 6, 7, 8))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_products_to_float(a: type, b: type) -> None:
    left, right, bias = integers(a, 5, 33), integers(b, 33, 20), floats(20)
    scales, zeros = [scalar(0.02), floats(20, seed=1)], [scalar(5, a), scalar(7, b)]
    contrib.check("MatMulIntegerToFloat", [left, right, *scales, *zeros, bias])
    contrib.check("MatMulIntegerToFloat", [left, right, *scales, *zeros], constants=(1,))
    x = floats(5, 33, seed=2)
    contrib.check("DynamicQuantizeMatMul", [x, right, scalar(0.03), zeros[1], bias])
    contrib.check("DynamicQuantizeMatMul", [x, right, scales[1], zeros[1]], constants=(1, 2, 3))


def test_matmul_integer16() -> None:
    inputs = [integers(np.int16, 5, 33), integers(np.int16, 33, 20)]
    check("MatMulInteger16", inputs, np.int32)


# onnxruntime has no kernel for 8 bits with zero points of floats.
NBITS = [(bits, zeros) for bits in (2, 4, 8) for zeros in ("none", "packed", "floats")]


@pytest.mark.parametrize(("bits", "zero_points"), NBITS[:-1])
def test_matmul_nbits(bits: int, zero_points: str) -> None:
    k, n, block = 96, 40, 32
    blocks = k // block
    zeros = {
        "none": None,
        "packed": integers(np.uint8, n * ((blocks * bits + 7) // 8)),
        "floats": floats(n * blocks, seed=3),
    }[zero_points]
    weights = integers(np.uint8, n, blocks, block * bits // 8)
    inputs = [floats(7, k), weights, floats(n * blocks, seed=1), zeros]
    options = {"K": k, "N": n, "bits": bits, "block_size": block}
    contrib.check("MatMulNBits", inputs, rtol=1e-4, atol=1e-3, constants=(1, 2, 3), **options)


@pytest.mark.parametrize("quant_type", [0, 1])
def test_matmul_bnb4(quant_type: int) -> None:
    inputs = [floats(7, 64), integers(np.uint8, 20 * 64 // 2), floats(20 * 64 // 32, seed=1)]
    options = {"K": 64, "N": 20, "block_size": 32, "quant_type": quant_type}
    contrib.check("MatMulBnb4", inputs, constants=(1, 2), **options)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("with_zero_points", [False, True])
def test_gather_block_quantized(bits: int, with_zero_points: bool) -> None:
    rows, columns, block = 10, 64, 16
    data = integers(np.uint8, rows, columns * bits // 8)
    zeros = integers(np.uint8, rows, columns // block * bits // 8) if with_zero_points else None
    indices = np.array([[3, 0], [9, 9]], np.int64)
    inputs = [data, indices, floats(rows, columns // block), zeros]
    options = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    contrib.check("GatherBlockQuantized", inputs, constants=(0, 2, 3), **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantize_and_dequantize_of_microsoft(dtype: type) -> None:
    x, scales, zeros = floats(3, 4, 5), np.abs(floats(4)) + 1, integers(dtype, 4)
    scales = scales.astype(np.float32) / 50
    check("QuantizeLinear", [x, scales, zeros], dtype, axis=1)
    check("QuantizeLinear", [x, scalar(0.02), scalar(3, dtype)], dtype)
    contrib.check("DequantizeLinear", [integers(dtype, 3, 4, 5), scales, zeros], axis=1)
