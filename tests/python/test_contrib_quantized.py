"""Quantized operators, of com.microsoft and ONNX, compared with onnxruntime."""

import math

import contrib
import numpy as np
import onnx
import pytest
import tenon
from contrib import floats
from saturation import needs_exact_sums

BYTES = [np.uint8, np.int8]
# The types of B that onnxruntime supports for these types of A.
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
@needs_exact_sums
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
@needs_exact_sums
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
    # onnxruntime multiplies by the ratio of the scales, which may round in another way.
    check("QLinearAdd", operands, dtype, most=1)
    check("QLinearMul", operands, dtype, most=1)
    constants = (1, 2, 3, 4)
    unary = [x, scalar(0.03), zero[0], scalar(0.04), zero[2]]
    check("QLinearLeakyRelu", unary, dtype, most=1, constants=constants, alpha=0.1)
    unary = [x, scalar(0.03), zero[0], scalar(0.004), scalar(0, dtype)]
    check("QLinearSigmoid", unary, dtype, most=1, constants=constants)


# Rows that repeat, that follow each other, elements for whole planes, and mixtures of these.
BROADCASTS = [
    ((2, 7, 5, 40), (2, 1, 1, 40)),
    ((2, 300, 3), (3,)),
    ((2, 3, 5, 70), (2, 3, 1, 1)),
    ((4, 1, 33), (1, 6, 33)),
    ((2, 3, 4, 5), (1, 3, 1, 5)),
    ((3, 1), (1, 50)),
    ((5, 1000, 16), (5, 1, 16)),
    ((2, 50, 1, 1), (1, 50, 1, 1)),
    ((3, 1, 1), (1, 4, 1)),
    ((1,), (4, 9)),
    ((), (7,)),
    ((), ()),
    ((2, 0, 3), (1, 1, 3)),
]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("a", "b"), BROADCASTS)
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_operands_broadcast(op_type: str, a: tuple, b: tuple, dtype: type) -> None:
    """The results are those of NumPy in float32, also with the operands exchanged."""
    scales = [np.float32(s) for s in (0.03, 0.02, 0.04)]
    zeros = [5, 9, 100]
    for first, second in [(a, b), (b, a)]:
        x, y = integers(dtype, *first), integers(dtype, *second, seed=1)
        inputs = []
        for value, scale, zero in zip((x, y), scales[:2], zeros[:2], strict=True):
            inputs += [value, scalar(scale), scalar(zero, dtype)]
        inputs += [scalar(scales[2]), scalar(zeros[2], dtype)]
        (actual,) = contrib.run_tenon(contrib.model(op_type, inputs, {"y": dtype}), inputs)
        u, v = (
            (w.astype(np.float32) - z) * s
            for w, z, s in zip((x, y), zeros[:2], scales[:2], strict=True)
        )
        quotients = ((u + v) if op_type == "QLinearAdd" else (u * v)) / scales[2]
        limits = np.iinfo(dtype)
        expected = np.clip(np.rint(quotients) + zeros[2], limits.min, limits.max).astype(dtype)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 12), (0, 12)])
@pytest.mark.parametrize("scale", [0.004, 0.0059, 0.03, 0.6])
@pytest.mark.parametrize("shape", [(3, 4, 5), (9, 197)])
def test_softmax(dtype: type, axis: int, opset: int, scale: float, shape: tuple) -> None:
    inputs = [
        integers(dtype, *shape),
        *(scalar(0.03), scalar(5, dtype), scalar(scale), scalar(0, dtype)),
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
    # Long sums are rounded in another order.
    differences = np.abs(actual.astype(np.int32) - expected.astype(np.int32))
    assert differences.max() <= (1 if len(shape) == 2 else 0) and np.mean(differences) < 0.01


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
@needs_exact_sums
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


# onnxruntime has no kernel for 8 bits with floating-point zero points.
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
    options = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": 1}
    contrib.check("MatMulNBits", inputs, rtol=1e-4, atol=1e-3, constants=(1, 2, 3), **options)


@pytest.mark.parametrize("quant_type", [0, 1])
def test_matmul_bnb4(quant_type: int) -> None:
    inputs = [floats(7, 64), integers(np.uint8, 20 * 64 // 2), floats(20 * 64 // 32, seed=1)]
    options = {"K": 64, "N": 20, "block_size": 32, "quant_type": quant_type}
    contrib.check("MatMulBnb4", inputs, constants=(1, 2), **options)


NF4_ABOVE_ZERO = "0.0795803 0.1609302 0.2461123 0.33791524 0.44070983 0.562617 0.72295684 1"
NF4_BELOW_ZERO = "-1 -0.6961928 -0.52507305 -0.3949175 -0.28444138 -0.18477343 -0.091050036"
NF4 = np.array(f"{NF4_BELOW_ZERO} 0 {NF4_ABOVE_ZERO}".split(), np.float32)


@pytest.mark.parametrize(("k", "n", "block"), [(64, 20, 32), (20, 64, 16), (6, 5, 16)])
def test_matmul_bnb4_with_weights_as_they_are(k: int, n: int, block: int) -> None:
    """transB = 0, for which onnxruntime still transposes and reads past its rows."""
    packed, a = integers(np.uint8, n * k // 2), floats(7, n)
    scales = floats(-(-n * k // block), seed=1)
    codes = np.stack([packed >> 4, packed & 15], axis=-1).reshape(-1)
    weights = NF4[codes] * np.repeat(scales, block)[: n * k]
    options = {"K": k, "N": n, "block_size": block, "quant_type": 1, "transB": 0}
    expected = [a @ weights.reshape(n, k)]
    contrib.check("MatMulBnb4", [a, packed, scales], expected=expected, atol=1e-4, **options)


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


# --- Networks of quantized images ---


def last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


POOLS = [
    ((2, 3, 7, 6), {"kernel_shape": [3, 2], "strides": [2, 1]}),
    ((1, 5, 6, 7), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    ((1, 2, 8, 8), {"kernel_shape": [3, 3], "pads": [1, 0, 1, 2], "strides": [2, 2]}),
    ((1, 4, 9), {"kernel_shape": [4], "strides": [3]}),
    ((1, 2, 4, 5, 3), {"kernel_shape": [2, 2, 2]}),
    ((1, 3, 7, 7), {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    ((2, 20, 7, 7), {"kernel_shape": [7, 7]}),
    ((2, 150, 6, 6), {"kernel_shape": [3, 3]}),
]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("shape", "attributes"), POOLS)
def test_average_pool(dtype: type, shape: tuple, attributes: dict) -> None:
    quantization = [scalar(0.03), scalar(5, dtype), scalar(0.04), scalar(9, dtype)]
    x = integers(dtype, *shape)
    check("QLinearAveragePool", [x, *quantization], dtype, most=1, **attributes)
    inputs = [last(x), *quantization]
    check("QLinearAveragePool", inputs, dtype, most=1, channels_last=1, **attributes)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shape", [(2, 3, 7, 6), (1, 40, 9), (1, 2, 3, 4, 5)])
def test_global_average_pool(dtype: type, shape: tuple) -> None:
    quantization = [scalar(0.03), scalar(5, dtype), scalar(0.002), scalar(9, dtype)]
    x = integers(dtype, *shape)
    check("QLinearGlobalAveragePool", [x, *quantization], dtype)
    check("QLinearGlobalAveragePool", [last(x), *quantization], dtype, channels_last=1)


@pytest.mark.parametrize("dtype", BYTES)
def test_nhwc_max_pool(dtype: type) -> None:
    for shape, attributes in [
        ((2, 7, 6, 5), {"kernel_shape": [3, 2], "strides": [2, 1]}),
        ((1, 6, 7, 33), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "dilations": [2, 1]}),
        ((1, 9, 4), {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}),
    ]:
        check("NhwcMaxPool", [integers(dtype, *shape)], dtype, **attributes)


@pytest.mark.parametrize(("x", "w"), PAIRS)
@pytest.mark.parametrize("channels_last", [0, 1])
@needs_exact_sums
def test_qlinear_conv_of_microsoft(x: type, w: type, channels_last: int) -> None:
    for shape, weights, attributes in [
        ((1, 16, 9, 8), (24, 16, 3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
        ((2, 16, 11), (8, 4, 3), {"group": 4}),
    ]:
        channels = weights[0]
        pixels = integers(x, *shape)
        w_scale = np.abs(floats(channels)) / 50 + np.float32(0.01)
        inputs = [
            *(last(pixels) if channels_last else pixels, scalar(0.02), scalar(5, x)),
            *(integers(w, *weights), w_scale, np.full(channels, 7, w)),
            *(scalar(1.5), scalar(10, x), np.arange(channels, dtype=np.int32)),
        ]
        constants = tuple(range(1, 9))
        options = {"constants": constants, "channels_last": channels_last, **attributes}
        check("QLinearConv", inputs, x, **options)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize(("axes", "keepdims"), [([1], 1), ([0, 2], 0), ([-1], 0), ([0, 1, 2], 1)])
def test_reductions(dtype: type, axes: list, keepdims: int) -> None:
    # onnxruntime has no kernel for these.
    x = integers(dtype, 3, 4, 5)
    options = {"axes": axes, "keepdims": keepdims}
    total = x.astype(np.int32).sum(tuple(axes), keepdims=bool(keepdims))
    sum_type = np.int32 if dtype is np.int8 else np.uint32
    expected = [np.asarray(total, sum_type)]
    contrib.check("ReduceSumInteger", [x], {"y": sum_type}, expected=expected, **options)
    mean = (x.astype(np.float64) - 5).mean(tuple(axes), keepdims=bool(keepdims)) * 0.03
    limits = np.iinfo(dtype)
    mean = np.clip(np.round(mean / 0.0217) + 9, limits.min, limits.max).astype(dtype)
    inputs = [x, scalar(0.03), scalar(5, dtype), scalar(0.0217), scalar(9, dtype)]
    contrib.check("QLinearReduceMean", inputs, {"y": dtype}, expected=[np.asarray(mean)], **options)


# --- Products ---


# Shapes of the addend to a product of [5, 20].
@pytest.mark.parametrize("addend", [None, (20,), (1, 20), (5, 20), (5, 1), (1, 1), ()])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
@needs_exact_sums
def test_qgemm(addend: tuple | None, left: int, right: int) -> None:
    for a, b in PAIRS:
        x = integers(a, 33, 5) if left else integers(a, 5, 33)
        w = integers(b, 20, 33) if right else integers(b, 33, 20)
        c = None if addend is None else np.asarray(floats(*addend) * 1000).astype(np.int32)
        w_scale = np.abs(floats(20)) / 50 + np.float32(0.01)
        inputs = [x, scalar(0.02), scalar(5, a), w, w_scale, np.full(20, 7, b), c]
        options = {"transA": left, "transB": right, "alpha": 0.5}
        # onnxruntime only supports rows of C, or a whole matrix.
        expected = None
        if addend in ((5, 1), (1, 1), ()):
            wide = [*inputs[:6], np.ascontiguousarray(np.broadcast_to(c, (5, 20)))]
            expected = contrib.run_onnxruntime(
                contrib.model("QGemm", wide, {"y": np.float32}, **options), wide
            )
        contrib.check("QGemm", inputs, expected=expected, **options)
        contrib.check("QGemm", inputs, expected=expected, constants=(3, 4, 5), **options)
        if expected is None:
            check("QGemm", [*inputs, scalar(1.5), scalar(10, a)], a, most=1, **options)


@pytest.mark.parametrize("m", [1, 2, 5, 6])
@pytest.mark.parametrize(("bits", "zero_points"), NBITS[:-1])
@pytest.mark.parametrize("block", [16, 32, 128])
def test_matmul_nbits_of_few_rows(m: int, bits: int, zero_points: str, block: int) -> None:
    k, n = 2 * block + 9, 37
    blocks = 3
    zeros = {
        "none": None,
        "packed": integers(np.uint8, n * ((blocks * bits + 7) // 8)),
        "floats": floats(n * blocks, seed=3),
    }[zero_points]
    weights = integers(np.uint8, n, blocks, block * bits // 8)
    inputs = [floats(m, k), weights, floats(n * blocks, seed=1), zeros, None, floats(n, seed=4)]
    options = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": 1}
    magnitude = 2.0 ** (bits - 4)
    contrib.check("MatMulNBits", inputs, atol=2e-3 * max(1, magnitude), **options)


@pytest.mark.parametrize("m", [1, 2, 5, 6])
@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("place", [0, 40, 95])
def test_matmul_nbits_keeps_nan(m: int, level: int, place: int) -> None:
    """Also where rows are rounded to bytes, of which none says it."""
    k, n, block = 96, 21, 32
    a, weights = floats(m, k), integers(np.uint8, n, k // block, block // 2)
    inputs = [a, weights, floats(n * k // block, seed=1)]
    options = {"K": k, "N": n, "bits": 4, "block_size": block, "accuracy_level": level}
    content = contrib.model("MatMulNBits", inputs, {"y": np.float32}, **options)
    (expected,) = contrib.run_tenon(content, inputs)
    a[0, place], expected[0] = np.nan, np.nan
    np.testing.assert_array_equal(contrib.run_tenon(content, inputs)[0], expected)


@pytest.mark.parametrize("m", [1, 2, 5, 6])
@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("places", [{0: 1}, {40: -1}, {3: 1, 95: -1}])
def test_matmul_nbits_keeps_infinities(m: int, level: int, bits: int, places: dict) -> None:
    """With NaN where weights are 0 or signs differ; other rows do not change."""
    k, n, block = 96, 21, 32
    a, weights = floats(m, k), integers(np.uint8, n, k // block, block * bits // 8)
    scales = floats(n * k // block, seed=1)
    inputs = [a, weights, scales]
    options = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level}
    content = contrib.model("MatMulNBits", inputs, {"y": np.float32}, **options)
    (expected,) = contrib.run_tenon(content, inputs)
    unpacked = np.unpackbits(weights.reshape(n, -1), axis=1, bitorder="little")
    elements = unpacked.reshape(n, k, bits) @ (1 << np.arange(bits)) - (1 << (bits - 1))
    for place, sign in places.items():
        a[0, place] = sign * np.inf
    with np.errstate(invalid="ignore"):
        row = (elements * scales.reshape(n, -1).repeat(block, 1).astype(np.float64)) @ a[0]
    expected[0] = row
    assert np.isinf(row).any() or len(places) > 1
    np.testing.assert_array_equal(contrib.run_tenon(content, inputs)[0], expected)
    if level == 1:
        np.testing.assert_array_equal(contrib.run_onnxruntime(content, inputs)[0][0], row)


# --- Attention ---


@pytest.mark.parametrize(("x", "w"), PAIRS[:2])
@pytest.mark.parametrize("mask", [None, "lengths", "matrix"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("per_column", [False, True])
@needs_exact_sums
def test_qattention(x: type, w: type, mask: str | None, causal: int, per_column: bool) -> None:
    batch, length, hidden, heads = 2, 4, 16, 2
    columns = (3 * hidden,) if per_column else ()
    w_scale = np.asarray(np.abs(floats(*columns)) / 500 + np.float32(0.001), np.float32)
    masks = {
        None: None,
        "lengths": np.array([3, 4], np.int32),
        "matrix": np.array([[1, 1, 0, 1], [1, 1, 1, 0]], np.int32),
    }
    inputs = [
        *(integers(x, batch, length, hidden), integers(w, hidden, 3 * hidden)),
        *(floats(3 * hidden), scalar(0.02), w_scale, masks[mask]),
        *(scalar(5, x), np.asarray(np.full(columns, 7, w))),
    ]
    options = {"num_heads": heads, "unidirectional": causal}
    contrib.check("QAttention", inputs, **options)
    contrib.check("QAttention", inputs, constants=(1, 2, 4), **options)
    past = floats(2, batch, heads, 3, hidden // heads, seed=5)
    if mask is None:
        outputs = {"y": np.float32, "present": np.float32}
        contrib.check("QAttention", [*inputs, past], outputs, **options)


def test_qattention_turns_queries_and_keys() -> None:
    """Like Attention with the weights as floats; onnxruntime ignores do_rotary."""
    x, w = integers(np.uint8, 2, 4, 16), integers(np.int8, 16, 48)
    scales, bias, past = (scalar(0.02), scalar(0.003)), floats(48), floats(2, 2, 2, 3, 8, seed=5)
    outputs = {"y": np.float32, "present": np.float32}
    options = {"num_heads": 2, "do_rotary": 1}
    wide = [(x.astype(np.float32) - 5) * scales[0], w.astype(np.float32) * scales[1], bias]
    content = contrib.model("Attention", [*wide, None, past], outputs, **options)
    expected = contrib.run_tenon(content, [*wide, None, past])
    inputs = [x, w, bias, *scales, None, scalar(5, np.uint8), scalar(0, np.int8), past]
    contrib.check("QAttention", inputs, outputs, expected, **options)


# --- The orders of cuBLASLt ---


def ordered(x: np.ndarray, order: int) -> np.ndarray:
    """The elements of a matrix, whose sizes are multiples of 32, in memory order."""
    rows, columns = x.shape
    if order == 0:
        return x.T.ravel()
    if order == 1:
        return x.ravel()
    if order == 2:
        return x.reshape(rows, columns // 32, 32).transpose(1, 0, 2).ravel()
    if order == 3:
        tiles = x.reshape(rows // 8, 4, 2, columns // 32, 4, 2, 4)
        return tiles.transpose(3, 0, 2, 4, 5, 1, 6).ravel()
    tiles = x.reshape(rows // 32, 4, 4, 2, columns // 32, 32)
    return tiles.transpose(4, 0, 2, 1, 3, 5).ravel()


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_quantize_and_dequantize_with_order(source: int, target: int) -> None:
    rows, scale = floats(32, 64), scalar(0.02)
    given = ordered(rows, source).reshape(1, 32, 64)
    quantized = np.clip(np.round(rows / scale), -128, 127).astype(np.int8)
    options = {"order_input": source, "order_output": target}
    expected = [ordered(quantized, target).reshape(1, 32, 64)]
    contrib.check("QuantizeWithOrder", [given, scale], {"y": np.int8}, expected, **options)
    for dtype, number in [(np.float32, 1), (np.float16, 10)]:
        bytes_given = ordered(quantized, source).reshape(1, 32, 64)
        expected = [ordered(quantized * scale, target).reshape(1, 32, 64).astype(dtype)]
        outputs = {"y": dtype}
        inputs = [bytes_given, scale]
        contrib.check("DequantizeWithOrder", inputs, outputs, expected, to=number, **options)


@pytest.mark.parametrize(("order", "shape"), [(2, (4, 31)), (3, (7, 32)), (4, (8, 32)), (5, (1,))])
def test_quantize_with_order_rejects(order: int, shape: tuple) -> None:
    inputs = [floats(*shape), scalar(0.02)]
    options = {"order_input": 1, "order_output": order}
    content = contrib.model("QuantizeWithOrder", inputs, {"y": np.int8}, **options)
    with pytest.raises(Exception, match="QuantizeWithOrder"):
        contrib.run_tenon(content, inputs)


# --- Graphs of simpler operators ---


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("has_zeros", [False, True])
def test_mul_integer(dtype: type, has_zeros: bool) -> None:
    a, b = integers(dtype, 3, 4, 5), integers(dtype, 4, 1, seed=1)
    zeros = [scalar(7, dtype), scalar(9, dtype)] if has_zeros else [None, None]
    shifted = [
        x.astype(np.int32) - (0 if z is None else np.int32(z))
        for x, z in zip((a, b), zeros, strict=True)
    ]
    expected = [shifted[0] * shifted[1]]
    contrib.check("MulInteger", [a, zeros[0], b, zeros[1]], {"y": np.int32}, expected)


def to_int8(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    return np.clip(np.round(x / scale), -128, 127).astype(np.int8)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_ordered_gelu_and_layer_normalization(order: int, dtype: type) -> None:
    x, x_scale, y_scale = integers(np.int8, 6, 64), scalar(0.031), scalar(0.017)
    values = x * x_scale
    gelu = values / 2 * (1 + np.vectorize(math.erf)(values / np.sqrt(2)))
    orders = {"order_X": order, "order_Y": order}
    expected = [to_int8(gelu, y_scale)]
    contrib.check("QOrderedGelu", [x, x_scale, y_scale], {"y": np.int8}, expected, **orders)
    gamma, beta = floats(64, dtype=dtype), floats(64, seed=1, dtype=dtype)
    y = (values - values.mean(-1, keepdims=True)) / np.sqrt(values.var(-1, keepdims=True) + 1e-5)
    for b in (beta, None):
        shifted = y * gamma + (0 if b is None else b)
        expected = [ordered(to_int8(shifted, y_scale), order).reshape(x.shape)]
        inputs = [ordered(x, order).reshape(x.shape), x_scale, gamma, b, y_scale]
        contrib.check("QOrderedLayerNormalization", inputs, {"y": np.int8}, expected, **orders)


def test_gemm_fast_gelu_gather_and_embedding() -> None:
    x, w, bias = floats(2, 3, 8), floats(8, 6, seed=1), floats(6, seed=2)
    z = x @ w + bias
    y = 0.5 * z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))
    contrib.check("GemmFastGelu", [x, w, bias], expected=[y.astype(np.float32)])
    indices = np.array([[1, 2], [0, -1]], np.int32)
    contrib.check("GatherND", [x, indices], expected=[x[[1, 0], [2, -1]]])
    rows = np.array([[3, 0], [7, 7]])
    contrib.check("TorchEmbedding", [w, rows, np.array(3)], expected=[w[rows]])


@pytest.mark.parametrize("orders", [(1, 0, 1), (2, 3, 2), (2, 4, 2)])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("addend", [None, "one", "each"])
def test_ordered_matmul(orders: tuple, per_column: bool, addend: str | None) -> None:
    order_a, order_b, order_y = orders
    a, b = integers(np.int8, 2, 32, 64), integers(np.int8, 64, 96, seed=1)
    a_scale, y_scale, c_scale = scalar(0.02), scalar(0.71), scalar(0.3)
    b_scale = np.abs(floats(96)) / 50 + np.float32(0.01) if per_column else scalar(0.03)
    bias = floats(96, seed=3) if order_b == 0 else None
    y = (a.astype(np.int32) @ b.astype(np.int32)) * (a_scale * b_scale).astype(np.float32)
    y = y + (0 if bias is None else bias)
    c = None
    if addend:
        c = integers(np.int8, 1 if addend == "one" else 2, 32, 96, seed=4)
        y = y + c * c_scale

    def laid_out(x: np.ndarray, order: int) -> np.ndarray:
        return np.stack([ordered(m, order) for m in x]).reshape(x.shape)

    given_b = ordered(b, 0) if order_b == 0 else ordered(np.ascontiguousarray(b.T), order_b)
    inputs = [
        *(laid_out(a, order_a), a_scale, given_b.reshape(b.shape), b_scale, y_scale, bias),
        *([] if c is None else [laid_out(c, order_y), c_scale]),
    ]
    expected = laid_out(to_int8(y, y_scale), order_y)
    options = {"order_A": order_a, "order_B": order_b, "order_Y": order_y}
    content = contrib.model("QOrderedMatMul", inputs, {"y": np.int8}, **options)
    (actual,) = contrib.run_tenon(content, inputs)
    # Where the reference is a tie except for its rounding.
    assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    assert (actual != expected).mean() < 1e-3


@pytest.mark.parametrize("orders", [(1, 1, 1), (0, 0, 0), (1, 0, 2), (2, 3, 1), (-1, 0, 1)])
def test_ordered_matmul_rejects_orders(orders: tuple) -> None:
    inputs = [integers(np.int8, 32, 32), scalar(1), integers(np.int8, 32, 32), scalar(1), scalar(1)]
    options = dict(zip(("order_A", "order_B", "order_Y"), orders, strict=True))
    content = contrib.model("QOrderedMatMul", inputs, {"y": np.int8}, **options)
    with pytest.raises(Exception, match="QOrderedMatMul"):
        contrib.run_tenon(content, inputs)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("dtype", BYTES)
def test_dynamic_quantize_lstm(direction: str, per_column: bool, dtype: type) -> None:
    directions = 2 if direction == "bidirectional" else 1
    length, batch, size, hidden = 5, 3, 8, 6
    columns = (directions, 4 * hidden) if per_column else (directions,)

    def quantized(k: int, seed: int) -> list:
        weights = integers(dtype, directions, k, 4 * hidden, seed=seed)
        if dtype is np.int8:
            weights //= 2  # sums of two products of 7 bits fit in onnxruntime's 16 bits
        scales = np.abs(floats(*columns, seed=seed)) / 400 + np.float32(0.002)
        # onnxruntime only supports columns of int8 with zero points 0.
        zero = np.full(columns, 0 if per_column and dtype is np.int8 else 7, dtype)
        return [weights, np.float32(scales), zero]

    w, w_scale, w_zero = quantized(size, 1)
    r, r_scale, r_zero = quantized(hidden, 2)
    state = floats(directions, batch, hidden, seed=5) / 4
    inputs = [
        *(floats(length, batch, size), w, r, floats(directions, 8 * hidden, seed=3) / 4),
        *(np.array([5, 3, 4], np.int32), state, state, None),
        *(w_scale, w_zero, r_scale, r_zero),
    ]
    outputs = dict.fromkeys(("y", "h", "c"), np.float32)
    options = {"direction": direction, "hidden_size": hidden, "constants": (1, 2, 8, 9, 10, 11)}
    # onnxruntime reads a reversed sequence from its own end: a step's range has other states.
    most = 1e-6 if direction == "forward" else 5e-3
    contrib.check("DynamicQuantizeLSTM", inputs, outputs, rtol=0, atol=most, **options)
    inputs[4] = None
    contrib.check("DynamicQuantizeLSTM", inputs, outputs, rtol=0, atol=1e-6, **options)
    options["constants"] = (1, 2, 8, 9)  # the recurrence's scales and zero points are none
    contrib.check("DynamicQuantizeLSTM", inputs, outputs, rtol=0, atol=1e-6, **options)


def test_dynamic_quantize_lstm_ignores_steps_behind_all_sequences() -> None:
    length, batch, size, hidden = 7, 3, 8, 6
    weights = [integers(np.int8, 1, k, 4 * hidden, seed=k) // 2 for k in (size, hidden)]
    parameters = [np.full(1, 0.004, np.float32), np.zeros(1, np.int8)]
    x = floats(length, batch, size)
    x[5:] *= 50
    outputs = dict.fromkeys(("y", "h", "c"), np.float32)
    options = {"hidden_size": hidden, "constants": (1, 2, 8, 9, 10, 11)}
    for lens in ([5, 3, 4], [7, 3, 4], [1, 0, 1], [0, 0, 0]):
        inputs = [x, *weights, None, np.array(lens, np.int32), None, None, None]
        inputs += [*parameters, *parameters]
        contrib.check("DynamicQuantizeLSTM", inputs, outputs, rtol=0, atol=1e-6, **options)


def test_dynamic_quantize_lstm_without_optimizations() -> None:
    length, batch, size, hidden = 3, 2, 4, 5
    weights = [integers(np.int8, 1, k, 4 * hidden, seed=k) // 2 for k in (size, hidden)]
    parameters = [np.full(1, 0.004, np.float32), np.zeros(1, np.int8)]
    inputs = [floats(length, batch, size), *weights, *[None] * 5, *parameters, *parameters]
    content = contrib.model(
        "DynamicQuantizeLSTM",
        inputs,
        {"y": np.float32},
        hidden_size=hidden,
        constants=(1, 2, 8, 9, 10, 11),
    )
    options = tenon.SessionOptions()
    options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = tenon.InferenceSession(content, options)
    (got,) = session.run(None, {session.get_inputs()[0].name: inputs[0]})
    (expected,) = contrib.run_onnxruntime(content, inputs)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_dynamic_quantize_lstm_names_wrong_scales() -> None:
    weights = [integers(np.int8, 1, k, 20, seed=k) for k in (4, 5)]
    parameters = [np.full(1, 0.004, np.float32), np.zeros(1, np.int8)]
    wrong = [np.full(3, 0.004, np.float32), np.zeros(1, np.int8)]
    inputs = [floats(3, 2, 4), *weights, *[None] * 5, *parameters, *wrong]
    content = contrib.model(
        "DynamicQuantizeLSTM",
        inputs,
        {"y": np.float32},
        hidden_size=5,
        constants=(1, 2, 8, 9, 10, 11),
    )
    with pytest.raises(Exception, match="R_scale and R_zero_point: expected one for each of 1"):
        contrib.run_tenon(content, inputs)


def test_ordered_attention() -> None:
    batch, length, hidden, heads = 2, 5, 16, 2
    x, x_scale, y_scale = integers(np.int8, batch, length, hidden), scalar(0.02), scalar(0.015)
    weights = [integers(np.int8, hidden, hidden, seed=s) for s in (1, 2, 3)]
    scales = [scalar(0.01), np.abs(floats(hidden)) / 100 + np.float32(0.001), scalar(0.002)]
    scales = [np.asarray(s, np.float32) for s in scales]
    biases = [floats(hidden, seed=s) for s in (4, 5, 6)]
    mask = np.array([[1, 1, 1, 0, 1], [1, 1, 1, 1, 0]], np.int32)
    by_columns = [ordered(w, 0).reshape(w.shape) for w in weights]
    gemm = [scalar(0.1)] * 3
    inputs = [x, x_scale, *gemm, *by_columns, *scales, *biases, scalar(0.1), scalar(0.01)]
    inputs += [y_scale, mask]
    options = {"num_heads": heads, "unidirectional": 1}
    merged = np.concatenate([w * s for w, s in zip(weights, scales, strict=True)], -1)
    attended = [x * x_scale, merged.astype(np.float32), np.concatenate(biases), mask]
    plain = contrib.model("Attention", attended, {"y": np.float32}, **options)
    expected = to_int8(contrib.run_onnxruntime(plain, attended)[0], y_scale)
    orders = {"order_input": 1, "order_weight": 0, "order_output": 1}
    content = contrib.model("QOrderedAttention", inputs, {"y": np.int8}, **options, **orders)
    (actual,) = contrib.run_tenon(content, inputs)
    assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    assert (actual != expected).mean() < 0.02


def test_ordered_longformer_attention() -> None:
    batch, length, hidden = 2, 12, 16
    x, x_scale, y_scale = integers(np.int8, batch, length, hidden), scalar(0.02), scalar(0.015)
    weights = [integers(np.int8, hidden, 3 * hidden, seed=s) for s in (1, 2)]
    w_scale, biases = scalar(0.004), [floats(3 * hidden, seed=s) for s in (3, 4)]
    mask = np.zeros((batch, length), np.float16)
    mask[:, -1] = -10000
    flags = np.zeros((batch, length), np.int32)
    flags[:, 0] = 1
    by_columns = [ordered(w, 0).reshape(w.shape) for w in weights]
    inputs = [
        *(x, x_scale, by_columns[0], w_scale, biases[0], scalar(1), scalar(0.1), mask),
        *(by_columns[1], w_scale, biases[1], scalar(0.1), flags, y_scale),
    ]
    options = {"num_heads": 2, "window": 3}
    floats_in = [x * x_scale, *(w * w_scale for w in weights)]
    plain_inputs = [floats_in[0], floats_in[1], biases[0], mask.astype(np.float32)]
    plain_inputs += [floats_in[2], biases[1], flags]
    plain = contrib.model("LongformerAttention", plain_inputs, {"y": np.float32}, **options)
    expected = to_int8(contrib.run_tenon(plain, plain_inputs)[0], y_scale)
    orders = {"order_input": 1, "order_weight": 0, "order_global_weight": 0, "order_output": 1}
    content = contrib.model(
        "QOrderedLongformerAttention", inputs, {"y": np.int8}, **options, **orders
    )
    (actual,) = contrib.run_tenon(content, inputs)
    assert np.abs(actual.astype(int) - expected.astype(int)).max() <= 1
    assert (actual != expected).mean() < 0.02


@pytest.mark.parametrize("activation", ["NONE", "RELU", "GELU"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_gemm_float8(activation: str, dtype: type) -> None:
    float8 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.FLOAT8E4M3FN)
    a, b = (floats(*shape, seed=1).astype(float8) for shape in ((5, 8), (6, 8)))
    c = floats(5, 6, seed=2).astype(dtype)
    scales = [np.array([s], np.float32) for s in (0.5, 3.0, 0.25)]
    y = 0.7 * (a.astype(np.float32) * 0.5) @ (b.astype(np.float32).T * 3) + 0.3 * c
    if activation == "RELU":
        y = np.maximum(y, 0)
    if activation == "GELU":
        y = y / 2 * (1 + np.vectorize(math.erf)(y / np.sqrt(2)))
    options = {"transB": 1, "alpha": 0.7, "beta": 0.3, "activation": activation}
    options["dtype"] = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [a.astype(np.float16), b.astype(np.float16), c, *scales]
    expected = [(y * 0.25).astype(dtype)]
    contrib.check("GemmFloat8", inputs, {"y": dtype}, expected, rtol=1e-2, atol=1e-2, **options)
