"""Matrices of 2, 4 and 8 bits: compared with the original package's kernels, and their errors."""

import copy
import math
import pathlib
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime.quantization as theirs
import pytest
import tenon
import tenon.capi.onnxruntime_pybind11_state as state
import tenon.quantization as ours
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as genuine
from onnxruntime.quantization.matmul_bnb4_quantizer import (
    MatMulBnb4Quantizer as TheirBnb4Quantizer,
)
from quantized_models import constants_of, model, node, normal, op_types, run, run_genuine
from tenon.quantization._blocks import (
    blocks_of,
    by_range,
    by_rounding,
    by_weighted_squares,
    packed,
)
from tenon.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from tenon.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    GPTQWeightOnlyQuantConfig,
    HQQWeightOnlyQuantConfig,
    KQuantWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
    NVAWQWeightOnlyQuantConfig,
    RTNWeightOnlyQuantConfig,
)

SIZES = [(64, 8, 32), (96, 5, 64), (16, 3, 16), (256, 4, 128), (70, 7, 32), (33, 3, 16)]
# The allowed error of a model of so many bits, as a share of the range of results.
SHARES = {2: 0.45, 4: 0.12, 8: 0.01}


def unpacked(content: np.ndarray, bits: int) -> np.ndarray:
    """Integers along the last axis, the first one in the lowest bits of a byte."""
    parts = [content >> shift & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*content.shape[:-1], -1).astype(np.int64)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize(("k", "n", "size"), SIZES)
def test_packs_blocks_as_onnxruntime(
    k: int, n: int, size: int, bits: int, is_symmetric: bool
) -> None:
    weight = normal(k, n)
    weight[:, 0] = 0
    blocks = by_range(blocks_of(weight, size), bits, is_symmetric)
    numbers, zeros = packed(blocks, k)
    count = -(-k // size)
    expected = np.zeros((n, count, size * bits // 8), np.uint8)
    scales = np.zeros((n, count), np.float32)
    expected_zeros = np.zeros((n, -(-count * bits // 8)), np.uint8)
    padded = np.pad(weight, [(0, count * size - k), (0, 0)])
    quantize = getattr(genuine, f"quantize_matmul_{bits}bits")
    quantize(expected, padded, scales, expected_zeros, size, n, k, is_symmetric)
    np.testing.assert_allclose(blocks.scales, scales, rtol=1e-6)
    for a, b in zip(unpacked(numbers, bits), unpacked(expected, bits), strict=True):
        np.testing.assert_array_equal(a.reshape(-1)[:k], b.reshape(-1)[:k])
    if zeros is not None:
        np.testing.assert_array_equal(zeros, expected_zeros)
    assert (zeros is None) == is_symmetric


NATIVE = [f"quantize_matmul_{bits}bits" for bits in (2, 4, 8)]
NATIVE.append("quantize_qdq_matmul_4bits")  # that of 2 bits crashes in the genuine package


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("k", "n", "size"), [(64, 8, 32), (96, 5, 32), (128, 4, 64)])
def test_writes_into_arrays(
    k: int, n: int, size: int, dtype: type, is_symmetric: bool, name: str
) -> None:
    """Like programs that call the native functions."""
    bits, count = int(name[-5]), k // size
    results = []
    for module in (state, genuine):
        numbers = np.zeros(k * n * bits // 8, np.uint8)
        zeros = np.zeros(n * -(-count * bits // 8), np.uint8)
        if "qdq" in name:
            zeros = np.zeros(-(-n * count * bits // 8), np.uint8)
        scales = np.zeros(n * count, dtype)
        weight = normal(k, n).astype(dtype)
        shape = (n, count, -1)
        into = numbers.reshape(shape) if "qdq" not in name else numbers
        getattr(module, name)(into, weight, scales, zeros, size, n, k, is_symmetric)
        results.append((unpacked(numbers, bits), scales, zeros))
    (mine, scales, zeros), (expected, their_scales, their_zeros) = results
    np.testing.assert_allclose(scales, their_scales, rtol=2e-3 if dtype is np.float16 else 1e-6)
    assert np.mean(mine != expected) < (0.02 if dtype is np.float16 else 1e-9)
    if not is_symmetric:
        np.testing.assert_array_equal(zeros, their_zeros)


@pytest.mark.parametrize("is_symmetric", [False, True])
def test_writes_rows_of_2_bits(is_symmetric: bool) -> None:
    """The integers of MatMulNBits, by columns."""
    k, n, size = 64, 8, 32
    by_column = np.zeros((n, k // size, size // 4), np.uint8)
    by_row, scales = np.zeros(k * n // 4, np.uint8), np.zeros(2 * n, np.float32)
    rest = (size, n, k, is_symmetric)
    state.quantize_matmul_2bits(by_column, normal(k, n), scales, np.zeros(n, np.uint8), *rest)
    zeros = np.zeros(n // 2, np.uint8)
    is_signed = state.quantize_qdq_matmul_2bits(by_row, normal(k, n), scales, zeros, *rest)
    assert is_signed == is_symmetric
    numbers = unpacked(by_row, 2).reshape(k, n)
    if is_symmetric:
        numbers = (numbers + 2) % 4
    np.testing.assert_array_equal(numbers, unpacked(by_column, 2).reshape(n, k).T)


def product(
    k: int = 128,
    n: int = 16,
    leading: tuple[int, ...] = (),
    rank: int = 2,
    opset: int = 17,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """Two products, the first by a matrix that may have leading ones."""
    shape = [*[2] * (rank - 1), k]
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    constants = {
        "w": normal(*leading, k, n).astype(dtype),
        "w2": normal(n, 12).astype(dtype),
    }
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h w2", "y")]
    made = model(nodes, {"x": shape}, {"y": None}, constants, opset)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = kind
    return made


def feed_of(source: onnx.ModelProto, seed: int = 9) -> dict:
    given = source.graph.input[0].type.tensor_type
    shape = [dim.dim_value for dim in given.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(given.elem_type)
    return {"x": normal(*shape, seed=seed).astype(dtype)}


def quantized(source: onnx.ModelProto, **settings: Any) -> onnx.ModelProto:
    quantizer = MatMulNBitsQuantizer(copy.deepcopy(source), **settings)
    quantizer.process()
    return quantizer.model.model


def expect_share(
    made: onnx.ModelProto, source: onnx.ModelProto, share: float, both: bool = True
) -> None:
    """Both runtimes' results are close to the model's, and have its shape."""
    feed = feed_of(source)
    expected = run(source, feed).astype(np.float64)
    for runtime in (run, run_genuine) if both else (run,):
        actual = runtime(made, feed)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, atol=share * np.ptp(expected))


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize(("k", "n", "size"), [(128, 16, 32), (100, 8, 16)])
def test_products_by_few_bits_give_about_the_same(
    k: int, n: int, size: int, bits: int, is_symmetric: bool
) -> None:
    source = product(k, n)
    settings = {"bits": bits, "block_size": size, "is_symmetric": is_symmetric}
    made = quantized(source, **settings, accuracy_level=1)
    assert op_types(made) == {"MatMulNBits": 2}
    assert constants_of(made)["w_scales"].shape == (n, -(-k // size))
    expect_share(made, source, SHARES[bits])


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize("by_columns", [False, True])
def test_pairs_dequantize_what_operators_would(
    bits: int, is_symmetric: bool, by_columns: bool
) -> None:
    """The constants of the pairs are the matrix, to half a step of each block."""
    source = product(100, 8)
    made = quantized(
        source,
        bits=bits,
        block_size=32,
        is_symmetric=is_symmetric,
        quant_format=ours.QuantFormat.QDQ,
        channel_wised_quantize=by_columns,
    )
    is_transposed = by_columns and is_symmetric
    assert op_types(made)["Transpose"] == 2 * is_transposed
    original, constants = numpy_helper.to_array(source.graph.initializer[0]), constants_of(made)
    integers = constants[f"w_DQ_Q{bits}"].astype(np.float32)
    scales = constants["w_DQ_scales"]
    zeros = constants.get("w_DQ_zero_points", np.zeros(scales.shape, np.float32))
    axis, size = (1, 100) if is_transposed else (0, 100 if by_columns else 32)
    repeated = [np.repeat(one, size, axis).take(range(100), axis) for one in (scales, zeros)]
    matrix = (integers - repeated[1].astype(np.float32)) * repeated[0]
    matrix, steps = (one.T if is_transposed else one for one in (matrix, repeated[0]))
    # In symmetric blocks the largest number may be a step beyond the last integer.
    most = np.abs(steps) * (1.001 if is_symmetric else 0.501)
    assert np.all(np.abs(matrix - original) <= most + 1e-6)
    expect_share(made, source, SHARES[bits] * (1 + by_columns), both=bits == 4)


@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize(("k", "n", "size"), SIZES)
def test_pairs_have_the_integers_of_onnxruntime(
    k: int, n: int, size: int, is_symmetric: bool
) -> None:
    source, count = product(k, n), -(-k // size)
    weight = numpy_helper.to_array(source.graph.initializer[0])
    numbers = np.zeros((k * n + 1) // 2, np.uint8)
    scales = np.zeros((count, n), np.float32)
    zeros = np.zeros((count * n + 1) // 2, np.uint8)
    genuine.quantize_qdq_matmul_4bits(numbers, weight, scales, zeros, size, n, k, is_symmetric)
    made = quantized(
        source, block_size=size, is_symmetric=is_symmetric, quant_format=ours.QuantFormat.QDQ
    )
    constants = constants_of(made)
    np.testing.assert_allclose(constants["w_DQ_scales"], scales, rtol=1e-6)
    for name, content in (("w_DQ_Q4", numbers), ("w_DQ_zero_points", zeros)):
        if name in constants:
            actual = constants[name].astype(np.int64).reshape(-1) & 15
            np.testing.assert_array_equal(actual, unpacked(content, 4)[: actual.size], name)


@pytest.mark.parametrize(
    ("leading", "rank", "opset"),
    [((1,), 1, 17), ((1,), 2, 17), ((1, 1), 3, 17), ((1,), 3, 17), ((1, 1), 2, 11)],
)
@pytest.mark.parametrize("form", list(ours.QuantFormat))
def test_leading_ones_of_matrices_come_back(
    leading: tuple, rank: int, opset: int, form: ours.QuantFormat
) -> None:
    source = product(leading=leading, rank=rank, opset=opset)
    expect_share(quantized(source, block_size=32, quant_format=form), source, SHARES[4])


def test_leaves_what_it_cannot_quantize() -> None:
    source = product(leading=(2,), rank=3)
    assert op_types(quantized(source)) == {"MatMul": 1, "MatMulNBits": 1}
    source = product()
    source.graph.input[0].type.tensor_type.ClearField("shape")
    source.graph.initializer[0].dims.insert(0, 1)
    assert op_types(quantized(source))["MatMul"] == 1  # of unknown rank


@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_narrow_matrices_have_narrow_scales(kind: int) -> None:
    source = product(kind=kind)
    made = quantized(source, block_size=32)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    assert constants_of(made)["w_scales"].dtype == dtype
    feed = feed_of(source)
    expected = run(source, feed).astype(np.float32)
    actual = run(made, feed).astype(np.float32)
    np.testing.assert_allclose(actual, expected, atol=SHARES[4] * np.ptp(expected))
    assert dtype in (np.float16, ml_dtypes.bfloat16)


def test_models_need_not_import_the_operators_of_onnxruntime() -> None:
    """In the form of some of its tools."""
    source = product()
    made = quantized(source, block_size=32)
    (domain,) = (one for one in made.opset_import if one.domain == "com.microsoft")
    made.opset_import.remove(domain)
    expect_share(made, source, SHARES[4])


def test_takes_and_leaves_nodes_by_name() -> None:
    source = product()
    assert op_types(quantized(source, nodes_to_exclude=["n_h"]))["MatMulNBits"] == 1
    nothing = {"op_types_to_quantize": ["Gather"]}
    assert op_types(quantized(source, **nothing))["MatMulNBits"] == 0
    made = quantized(source, **nothing, nodes_to_include=["n_y"])
    assert [one.op_type for one in made.graph.node] == ["MatMul", "MatMulNBits"]


def test_quantizes_inner_graphs() -> None:
    inner = helper.make_graph(
        [node("MatMul", "x w", "t")],
        "then",
        [],
        [helper.make_tensor_value_info("t", TensorProto.FLOAT, [2, 8])],
    )
    other = helper.make_graph(
        [node("MatMul", "x wi", "e")],
        "else",
        [],
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, [2, 8])],
        [numpy_helper.from_array(normal(32, 8, seed=1), "wi")],
    )
    choice = helper.make_node("If", ["c"], ["y"], name="n", then_branch=inner, else_branch=other)
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"), choice]
    constants = {"w": normal(32, 8), "zero": np.float32(0)}
    source = model(nodes, {"x": [2, 32]}, {"y": [2, 8]}, constants)
    made = quantized(source, block_size=16)
    inside = [
        one.op_type for attribute in made.graph.node[-1].attribute for one in attribute.g.node
    ]
    assert inside == ["MatMulNBits", "MatMulNBits"]
    assert "w" not in constants_of(made)
    for seed in range(4):
        feed = feed_of(source, seed)
        expected = run(source, feed)
        np.testing.assert_allclose(run(made, feed), expected, atol=0.12 * np.ptp(expected))


@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize("quant_axis", [0, 1, -1])
def test_tables_of_4_bits(is_symmetric: bool, quant_axis: int) -> None:
    nodes = [node("Gather", "table i", "g", axis=0), node("Add", "g x", "y")]
    constants = {"table": normal(40, 36), "i": np.array([3, 0, 39])}
    source = model(nodes, {"x": [3, 36]}, {"y": [3, 36]}, constants)
    made = quantized(
        source,
        block_size=16,
        is_symmetric=is_symmetric,
        op_types_to_quantize=["MatMul", "Gather"],
        quant_axes=[("Gather", quant_axis)],
    )
    assert op_types(made)["GatherBlockQuantized"] == 1
    assert (made.opset_import[0].version, made.ir_version) == (21, 10)
    kind = TensorProto.INT4 if is_symmetric else TensorProto.UINT4
    kinds = {one.name: one.data_type for one in made.graph.initializer}
    assert kinds["table_Q4"] == kind
    expect_share(made, source, 0.1)


def rows(k: int, seed: int) -> np.ndarray:
    """Random columns that depend on each other, like the values of networks."""
    return normal(64, k, seed=seed) @ normal(k, k, seed=99)


class Rows(ours.CalibrationDataReader):
    def __init__(self, k: int) -> None:
        self.feeds = iter([{"x": rows(k, seed)} for seed in range(10)])

    def get_next(self) -> dict | None:
        return next(self.feeds, None)


class TheirRows(Rows, theirs.CalibrationDataReader):
    pass


def one_product(k: int = 256, n: int = 32) -> onnx.ModelProto:
    return model([node("MatMul", "x w", "y")], {"x": [64, k]}, {"y": [64, n]}, {"w": normal(k, n)})


def error_of(made: onnx.ModelProto, source: onnx.ModelProto) -> float:
    """Relative to the product's results, on data like that of calibration."""
    pairs = []
    sessions = [tenon.InferenceSession(one) for one in (made, source)]
    for seed in range(10):
        pairs.append([one.run(None, {"x": rows(256, seed)})[0] for one in sessions])
    actual, expected = (np.array(one, np.float64) for one in zip(*pairs, strict=True))
    return float(np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected**2)))


@pytest.mark.parametrize("size", [32, 128])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_rounding_that_knows_the_data_is_better(size: int, is_symmetric: bool) -> None:
    source = one_product()
    settings = {"block_size": size, "is_symmetric": is_symmetric}
    plain = quantized(source, **settings, algo_config=RTNWeightOnlyQuantConfig())
    least = error_of(plain, source)
    for more in ({}, {"actorder": True}, {"mse": True}, {"block_size": 16}):
        config = GPTQWeightOnlyQuantConfig(Rows(256), **more)
        made = quantized(source, **settings, algo_config=config)
        assert op_types(made) == {"MatMulNBits": 1}
        assert error_of(made, source) < 0.75 * least, more
    shared = GPTQWeightOnlyQuantConfig(Rows(256), perchannel=False)
    scales = constants_of(quantized(source, **settings, algo_config=shared))["w_scale"]
    np.testing.assert_array_equal(scales, np.broadcast_to(scales[:1], scales.shape))
    with pytest.raises(ValueError, match="GPTQ: expected a calibration_data_reader"):
        quantized(source, algo_config=GPTQWeightOnlyQuantConfig())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_zero_points_between_integers_are_better(bits: int) -> None:
    source = one_product()
    plain = quantized(source, bits=bits, block_size=32)
    made = quantized(source, algo_config=HQQWeightOnlyQuantConfig(32, bits))
    zeros = constants_of(made)["w_zero_points"]
    assert zeros.dtype == np.float32
    assert np.any(zeros != np.round(zeros))
    assert error_of(made, source) < 0.97 * error_of(plain, source)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize("ratio", [1.0, 0.8])
def test_rounds_to_the_nearest(bits: int, is_symmetric: bool, ratio: float) -> None:
    """Compares with simple loops over blocks."""
    values = normal(5, 2, 32)
    blocks = by_rounding(values, bits, is_symmetric, ratio)
    most = (1 << bits) - 1
    for index in np.ndindex(5, 2):
        x = [float(one) for one in values[index]]
        low, high = ratio * min(x), ratio * max(x)
        if is_symmetric:
            low, high = -max(-low, high), max(-low, high)
        scale = (high - low) / most
        zero = (most + 1) / 2 if is_symmetric else np.clip(np.round(-low / scale), 0, most)
        np.testing.assert_allclose(blocks.scales[index], scale, rtol=1e-6)
        assert (blocks.zeros is None) == is_symmetric
        if blocks.zeros is not None:
            assert blocks.zeros[index] == zero
        expected = [np.clip(np.round(one / scale + zero), 0, most) for one in x]
        assert np.abs(blocks.numbers[index] - np.array(expected)).max() <= 1
        assert np.mean(blocks.numbers[index] != expected) < 0.1


def test_ways_of_rounding_hold_zero() -> None:
    """Blocks with only positive numbers: zero, with which the last block is padded, is exact."""
    weight = np.abs(normal(64, 4)) + 1
    source = model([node("MatMul", "x w", "y")], {"x": [2, 64]}, {"y": [2, 4]}, {"w": weight})
    for config in (RTNWeightOnlyQuantConfig(), KQuantWeightOnlyQuantConfig()):
        made = quantized(source, block_size=32, algo_config=config)
        expect_share(made, source, 0.12)


def search_of_k_quants(values: np.ndarray, most: int) -> tuple[float, float]:
    """Scale and offset of one block, by llama.cpp's search in simple loops."""
    x = [float(one) for one in values]
    weight = [math.sqrt(sum(one * one for one in x) / len(x)) + abs(one) for one in x]
    low, high = min(0.0, *x), max(0.0, *x)

    def rounded(steps: float) -> list[float]:
        return [min(max(np.round(steps / (high - low) * (one - low)), 0), most) for one in x]

    def cost(scale: float, offset: float, numbers: list[float]) -> float:
        parts = zip(weight, numbers, x, strict=True)
        return sum(w * (scale * q + offset - one) ** 2 for w, q, one in parts)

    scale = (high - low) / most
    least = cost(scale, low, rounded(most))
    for step in range(20):
        numbers = rounded(most - 1 + 0.1 * step)
        sums = [sum(w * q**power for w, q in zip(weight, numbers, strict=True)) for power in (1, 2)]
        mixed = sum(w * q * one for w, q, one in zip(weight, numbers, x, strict=True))
        total, moment = sum(weight), sum(w * one for w, one in zip(weight, x, strict=True))
        determinant = total * sums[1] - sums[0] ** 2
        slope = (total * mixed - moment * sums[0]) / determinant
        offset = (sums[1] * moment - sums[0] * mixed) / determinant
        if offset > 0:
            slope, offset = mixed / sums[1], 0.0
        if (found := cost(slope, offset, numbers)) < least:
            least, scale, low = found, slope, offset
    return scale, low


@pytest.mark.parametrize("bits", [4, 8])
def test_searches_as_k_quants_do(bits: int) -> None:
    values = normal(6, 2, 32, seed=3)
    values[0] = np.abs(values[0]) + 1
    blocks = by_weighted_squares(values, bits)
    assert blocks.zeros is not None
    most = (1 << bits) - 1
    for index in np.ndindex(6, 2):
        scale, offset = search_of_k_quants(values[index], most)
        np.testing.assert_allclose(blocks.scales[index], scale, rtol=1e-3)
        assert blocks.zeros[index] == np.clip(np.round(-offset / scale), 0, most)


def test_single_nodes_have_settings() -> None:
    source = product()
    own = {"n_y": {"bits": 8, "group_size": 16, "scheme": "sym"}}
    made = quantized(
        source, block_size=32, algo_config=RTNWeightOnlyQuantConfig(customized_weight_config=own)
    )
    attributes = [{a.name: a.i for a in one.attribute} for one in made.graph.node]
    assert [(one["bits"], one["block_size"]) for one in attributes] == [(4, 32), (8, 16)]
    assert "w2_Q8G16" in constants_of(made)
    narrow = RTNWeightOnlyQuantConfig(ratios={"w": 0.5})
    scales = constants_of(quantized(source, block_size=32, algo_config=narrow))["w_scale"]
    full = constants_of(made)["w_scale"]
    np.testing.assert_allclose(scales, full / 2, rtol=1e-6)


def test_configurations_of_few_bits_go_to_quantize(tmp_path: pathlib.Path) -> None:
    source, path = product(), tmp_path / "quantized.onnx"
    ours.quantize(source, path, DefaultWeightOnlyQuantConfig(block_size=32, bits=8))
    made = onnx.load(path)
    assert op_types(made) == {"MatMulNBits": 2}
    expect_share(made, product(), SHARES[8])


def test_refuses_what_there_is_not() -> None:
    with pytest.raises(ValueError, match="expected 2, 4 or 8 bits, got 3"):
        MatMulNBitsQuantizer(product(), bits=3)
    with pytest.raises(ValueError, match=r"expected a block size of 16, 32, 64, \.\.\., got 24"):
        MatMulNBitsQuantizer(product(), block_size=24)
    with pytest.raises(ValueError, match=r"RTN: expected QuantFormat\.QOperator, got QDQ"):
        RTNWeightOnlyQuantConfig(quant_format=ours.QuantFormat.QDQ)
    with pytest.raises(NotImplementedError, match=r"expected QuantFormat\.QDQ"):
        DefaultWeightOnlyQuantConfig(channel_wised_quantize=True)
    with pytest.raises(ImportError, match="nvidia-modelopt"):
        NVAWQWeightOnlyQuantConfig("folder")
    gather = HQQWeightOnlyQuantConfig(op_types_to_quantize=["Gather"])
    nodes = [node("Gather", "table i", "y")]
    table = model(nodes, {"i": [1]}, {"y": [1, 32]}, {"table": normal(4, 32)})
    with pytest.raises(NotImplementedError, match="Gather 'n_y': HQQ has no tables"):
        quantized(table, algo_config=gather)


def command(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", f"tenon.quantization.{module}", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


def test_quantizes_on_a_command_line(tmp_path: pathlib.Path) -> None:
    source = product()
    onnx.save(source, tmp_path / "model.onnx")
    files = ["--input_model", tmp_path / "model.onnx", "--output_model"]
    for number, more in enumerate(
        [[], ["--quant_method", "hqq"], ["--quant_method", "k_quant", "--symmetric", "false"]]
    ):
        path = tmp_path / f"{number}.onnx"
        done = command("matmul_nbits_quantizer", *files, path, *more)
        assert done.returncode == 0, done.stderr
        expect_share(onnx.load(path), source, SHARES[4])
    done = command("matmul_nbits_quantizer", *files, tmp_path / "0.onnx")
    assert "already exists" in done.stderr
    done = command("matmul_bnb4_quantizer", *files, tmp_path / "bnb4.onnx", "--block_size", 32)
    assert done.returncode == 0, done.stderr
    assert op_types(tmp_path / "bnb4.onnx") == {"MatMulBnb4": 2}


@pytest.mark.parametrize("kind", [MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("k", "n", "size"), [(64, 8, 64), (33, 5, 16), (100, 7, 32)])
def test_numbers_of_4_bits_are_those_of_onnxruntime(
    k: int, n: int, size: int, dtype: type, kind: int
) -> None:
    weight = normal(k, n).astype(dtype)
    weight[:, 0] = 0
    weight[:25, 1] = np.arange(-12, 13) / 12  # in the middle of two numbers
    source = product()
    packed_mine, largest = MatMulBnb4Quantizer(source, kind, size).bnb4_block_quant(weight)
    expected = TheirBnb4Quantizer(source, kind, size).bnb4_block_quant(weight)
    np.testing.assert_array_equal(packed_mine, expected[0])
    np.testing.assert_array_equal(largest, expected[1])
    written = np.zeros_like(packed_mine), np.zeros_like(largest)
    transposed = np.ascontiguousarray(weight.T)
    state.quantize_matmul_bnb4(written[0], transposed, written[1], size, kind, n, k)
    np.testing.assert_array_equal(written[0], expected[0])
    np.testing.assert_array_equal(written[1], expected[1])


@pytest.mark.parametrize("kind", [MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4])
def test_products_by_numbers_of_4_bits(kind: int) -> None:
    source = product()
    quantizer = MatMulBnb4Quantizer(copy.deepcopy(source), kind, 32, nodes_to_exclude=["n_y"])
    quantizer.process()
    assert op_types(quantizer.model.model) == {"MatMulBnb4": 1, "MatMul": 1}
    expect_share(quantizer.model.model, source, 0.12)
    with pytest.raises(ValueError, match="expected FP4"):
        MatMulBnb4Quantizer(source, 2, 32)
    with pytest.raises(ValueError, match="expected a block size of 16, 32, 64, 128, 256, got 20"):
        MatMulBnb4Quantizer(source, 1, 20)


def few_bits(
    weight: np.ndarray, bits: int, size: int, rows: int, **attributes: int
) -> tuple[onnx.ModelProto, np.ndarray]:
    """A product with blocks from the original package's kernel, and their numbers: [K, N]."""
    k, n = weight.shape
    numbers = np.zeros((n, k // size, size * bits // 8), np.uint8)
    scales = np.zeros((n, k // size), np.float32)
    zeros = np.zeros((n, -(-k // size * bits // 8)), np.uint8)
    quantize = getattr(genuine, f"quantize_matmul_{bits}bits")
    quantize(numbers, weight, scales, zeros, size, n, k, True)
    options = {"K": k, "N": n, "bits": bits, "block_size": size, **attributes}
    made = model(
        [node("MatMulNBits", "x w s", "y", domain="com.microsoft", **options)],
        {"x": [rows, k]},
        {"y": [rows, n]},
        {"w": numbers, "s": scales},
    )
    weights = (unpacked(numbers, bits) - (1 << (bits - 1))) * scales[..., None].astype(np.float64)
    return made, weights.reshape(n, k).T


# The greatest error at a level, as a share of the greatest result.
@pytest.mark.parametrize(("level", "share"), [(1, 2e-6), (2, 1e-4), (4, 2e-2)])
@pytest.mark.parametrize("rows", [1, 20, 21, 128])
@pytest.mark.parametrize(("bits", "size"), [(4, 32), (4, 64), (4, 128), (2, 32), (8, 32)])
def test_errors_are_those_of_the_level(
    bits: int, size: int, rows: int, level: int, share: float
) -> None:
    """Against the product in float64."""
    made, weights = few_bits(normal(256, 48), bits, size, rows, accuracy_level=level)
    x = normal(rows, 256, seed=1)
    expected = x.astype(np.float64) @ weights
    error = np.abs(run(made, {"x": x}) - expected).max() / np.abs(expected).max()
    assert error < share


@pytest.mark.parametrize("outlier", [1, 100])
@pytest.mark.parametrize("rows", [1, 20, 40])
@pytest.mark.parametrize(("bits", "size"), [(4, 16), (4, 32), (4, 128), (2, 64)])
def test_without_a_level_errors_drown_in_those_of_the_weights(
    bits: int, size: int, rows: int, outlier: int
) -> None:
    """LLM-2: rows of 8 bits add at most 5 % to the error that rounding the weights has made."""
    weight, x = normal(512, 256), normal(40, 512, seed=1)
    x[:, 7::size] *= outlier
    made, weights = few_bits(weight, bits, size, rows)
    session = tenon.InferenceSession(made.SerializeToString())
    actual = np.concatenate(
        [session.run(None, {"x": x[i : i + rows]})[0] for i in range(0, 40, rows)]
    )
    exact, asked = x.astype(np.float64) @ weight, x.astype(np.float64) @ weights
    assert np.std(actual - exact) < 1.05 * np.std(asked - exact)


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize(
    ("bits", "size", "asked"),
    [(8, 32, ""), (4, 256, ""), (4, 32, "1"), (2, 32, "1"), (8, 32, "4"), (4, 32, "2")],
)
def test_without_a_level_the_weights_or_the_session_choose_it(
    bits: int, size: int, asked: str, rows: int
) -> None:
    """LLM-2: it can be turned off; and it is where weights are more exact than rows of 8 bits."""
    weight, feed = normal(512, 48), {"x": normal(rows, 512, seed=1)}
    options = tenon.SessionOptions()
    if asked:
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", asked)
    made, _ = few_bits(weight, bits, size, rows)
    actual = tenon.InferenceSession(made.SerializeToString(), options).run(None, feed)[0]
    named, _ = few_bits(weight, bits, size, rows, accuracy_level=int(asked or "1"))
    np.testing.assert_array_equal(actual, run(named, feed))


def test_levels_that_do_not_exist_are_refused() -> None:
    options = tenon.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "5")
    made, _ = few_bits(normal(64, 8), 4, 32, 1)
    with pytest.raises(Exception, match="expected a level from 0 to 4, got 5"):
        tenon.InferenceSession(made.SerializeToString(), options)
