"""Matrix products of bfloat16 numbers beside float64."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tenon
from contrib import floats
from onnx import TensorProto, helper

BF16 = ml_dtypes.bfloat16
DOMAINS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


def numbers(*shape: int, seed: int) -> np.ndarray:
    return floats(*shape, seed=seed).astype(BF16)


def stored(array: np.ndarray, name: str) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.BFLOAT16, dims=array.shape)
    tensor.raw_data = array.tobytes()
    return tensor


def run(
    op: str,
    arrays: dict[str, np.ndarray],
    constants: tuple[str, ...] = (),
    threads: int = 1,
    domain: str = "",
    **attributes: Any,
) -> np.ndarray:
    """One node's output, as float32."""
    graph = helper.make_graph(
        [helper.make_node(op, list(arrays), ["y"], domain=domain, **attributes)],
        "product",
        [
            helper.make_tensor_value_info(name, TensorProto.BFLOAT16, array.shape)
            for name, array in arrays.items()
            if name not in constants
        ],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, None)],
        [stored(arrays[name], name) for name in constants],
    )
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    model = helper.make_model(graph, opset_imports=DOMAINS, ir_version=10)
    session = tenon.InferenceSession(model.SerializeToString(), options)
    feeds = {
        name: tenon.OrtValue.ortvalue_from_numpy_with_onnx_type(
            array.view(np.uint16), TensorProto.BFLOAT16
        )
        for name, array in arrays.items()
        if name not in constants
    }
    results = []
    for _ in range(3):  # the first ones read and pack the constants
        (value,) = session.run_with_ort_values(["y"], feeds)
        results.append(value.numpy().view(BF16).astype(np.float32))
    assert np.array_equal(results[0], results[1], equal_nan=True)
    assert np.array_equal(results[0], results[2], equal_nan=True)
    return results[0]


def check(got: np.ndarray, expected: np.ndarray, size: np.ndarray) -> None:
    """Compares with a rounding to 8 digits of sums in float32. size: that of the terms."""
    assert got.shape == expected.shape
    assert np.all(np.abs(got - expected) <= np.abs(expected) * 2**-8 + size * 2**-20 + 1e-30)


def exact(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((1, 70), (70, 40)),
    ((3, 64), (64, 700)),
    ((37, 130), (130, 65)),
    ((2, 5, 33), (33, 20)),
    ((2, 3, 20, 32), (2, 3, 32, 24)),
    ((4, 1, 9, 16), (3, 16, 40)),
    ((50,), (50, 30)),
    ((20, 50), (50,)),
    ((50,), (50,)),
    ((300, 64), (64, 300)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
@pytest.mark.parametrize("constants", [(), ("b",)])
def test_products_are_sums_in_float32_rounded_once(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], constants: tuple[str, ...]
) -> None:
    a, b = numbers(*a_shape, seed=1), numbers(*b_shape, seed=2)
    got = run("MatMul", {"a": a, "b": b}, constants)
    check(got, exact(a) @ exact(b), np.abs(exact(a)) @ np.abs(exact(b)))
    assert np.array_equal(got, run("MatMul", {"a": a, "b": b}, constants, threads=3))


@pytest.mark.parametrize("transposed", [0, 1, 2, 3])
@pytest.mark.parametrize("c_shape", [None, (), (1,), (45,), (1, 45), (38, 1), (38, 45)])
def test_gemm_adds_a_matrix_that_is_broadcast(
    transposed: int, c_shape: tuple[int, ...] | None
) -> None:
    a, b = numbers(38, 70, seed=1), numbers(70, 45, seed=2)
    arrays = {
        "a": np.ascontiguousarray(a.T) if transposed & 1 else a,
        "b": np.ascontiguousarray(b.T) if transposed & 2 else b,
    }
    c = np.zeros(1, BF16)
    if c_shape is not None:
        arrays["c"] = c = numbers(*c_shape, seed=3) if c_shape else numbers(1, seed=3).reshape(())
    attributes = {"transA": transposed & 1, "transB": transposed >> 1, "alpha": 0.5, "beta": -2.0}
    expected = 0.5 * (exact(a) @ exact(b)) - 2 * exact(c)
    size = np.abs(exact(a)) @ np.abs(exact(b)) + 2 * np.abs(exact(c))
    check(run("Gemm", arrays, **attributes), expected, size)
    check(run("Gemm", arrays, ("b",), **attributes), expected, size)
    fused = run("FusedGemm", arrays, domain="com.microsoft", activation="Relu", **attributes)
    check(fused, np.maximum(expected, 0), size)


@pytest.mark.parametrize("transposed", [0, 1, 2, 3])
def test_fused_products_transpose_and_scale(transposed: int) -> None:
    a, b = numbers(3, 20, 40, seed=1), numbers(3, 40, 17, seed=2)
    arrays = {
        "a": np.ascontiguousarray(a.swapaxes(1, 2)) if transposed & 1 else a,
        "b": np.ascontiguousarray(b.swapaxes(1, 2)) if transposed & 2 else b,
    }
    got = run(
        "FusedMatMul",
        arrays,
        domain="com.microsoft",
        transA=transposed & 1,
        transB=transposed >> 1,
        alpha=0.25,
    )
    check(got, exact(a) @ exact(b) / 4, np.abs(exact(a)) @ np.abs(exact(b)))


def test_empty_products_are_empty_or_zero() -> None:
    assert run("MatMul", {"a": numbers(0, 5, seed=1), "b": numbers(5, 4, seed=2)}).shape == (0, 4)
    zeros = run("MatMul", {"a": numbers(3, 0, seed=1), "b": numbers(0, 4, seed=2)})
    assert np.array_equal(zeros, np.zeros((3, 4)))


def test_infinities_and_what_is_no_number_pass_through() -> None:
    a, b = numbers(20, 40, seed=1), np.abs(numbers(40, 33, seed=2)) + BF16(0.5)
    a[3, 5], a[4, 6] = np.inf, np.nan
    got = run("MatMul", {"a": a, "b": b})
    assert np.all(np.isposinf(got[3]))
    assert np.all(np.isnan(got[4]))
    assert np.all(np.isfinite(np.delete(got, [3, 4], 0)))


@pytest.mark.parametrize("a_shape", [(50,), (1, 50), (37, 50), (2, 3, 50)])
@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_ALL"])
def test_layers_between_wider_operators(a_shape: tuple[int, ...], level: str) -> None:
    """Exp has no kernel of bfloat16, so all of it is computed in floats but the product."""
    a, w, bias = numbers(*a_shape, seed=1), numbers(50, 40, seed=2), numbers(40, seed=3)
    graph = helper.make_graph(
        [
            helper.make_node("Exp", ["a"], ["e"]),
            helper.make_node("MatMul", ["e", "w"], ["p"]),
            helper.make_node("Add", ["p", "bias"], ["s"]),
            helper.make_node("Relu", ["s"], ["y"]),
        ],
        "layer",
        [helper.make_tensor_value_info("a", TensorProto.BFLOAT16, a_shape)],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, None)],
        [stored(w, "w"), stored(bias, "bias")],
    )
    model = helper.make_model(graph, opset_imports=DOMAINS, ir_version=10).SerializeToString()
    options = tenon.SessionOptions()
    options.graph_optimization_level = getattr(tenon.GraphOptimizationLevel, level)
    session = tenon.InferenceSession(model, options)
    feed = tenon.OrtValue.ortvalue_from_numpy_with_onnx_type(
        a.view(np.uint16), TensorProto.BFLOAT16
    )
    sums = np.exp(exact(a)) @ exact(w) + exact(bias)
    size = np.exp(exact(a)) @ np.abs(exact(w))
    for _ in range(3):
        (value,) = session.run_with_ort_values(["y"], {"a": feed})
        got = value.numpy().view(BF16).astype(np.float32)
        assert got.shape == sums.shape
        # The product rounds the exponentials, which others would have rounded before.
        assert np.all(np.abs(got - np.maximum(sums, 0)) <= np.abs(sums) * 2**-8 + size * 2**-8)
