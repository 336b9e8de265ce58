"""Sparse initializers and constants, which nodes get as dense tensors."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import helper, numpy_helper

X = np.array([[0, 3, 0, 0], [0, 0, 0, 5], [7, 0, 0, 0]])
LEVELS = (
    tenon.GraphOptimizationLevel.ORT_DISABLE_ALL,
    tenon.GraphOptimizationLevel.ORT_ENABLE_ALL,
)


def sparse_tensor(x: np.ndarray, form: str, name: str = "w") -> onnx.SparseTensorProto:
    zero = np.zeros((), x.dtype)
    places = np.argwhere(x != zero) if form == "coordinates" else np.flatnonzero(x != zero)
    values = numpy_helper.from_array(x[x != zero], name)
    indices = numpy_helper.from_array(places.astype(np.int64), "places")
    return helper.make_sparse_tensor(values, indices, list(x.shape))


def value_info(name: str, dtype: np.dtype) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)


def model_of(graph: onnx.GraphProto) -> bytes:
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def adding(w: np.ndarray, form: str) -> bytes:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    info = [value_info("x", w.dtype)], [value_info("y", w.dtype)]
    return model_of(
        helper.make_graph([node], "g", *info, sparse_initializer=[sparse_tensor(w, form)])
    )


def run(content: bytes, feeds: dict, level: tenon.GraphOptimizationLevel = LEVELS[1]) -> np.ndarray:
    options = tenon.SessionOptions()
    options.graph_optimization_level = level
    return tenon.InferenceSession(content, options).run(None, feeds)[0]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("form", ["linear", "coordinates"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8])
def test_nodes_take_sparse_initializers(
    dtype: type, form: str, level: tenon.GraphOptimizationLevel
) -> None:
    x = np.ones(X.shape, dtype)
    np.testing.assert_array_equal(run(adding(X.astype(dtype), form), {"x": x}, level), x + X)


def test_onnxruntime_says_the_same() -> None:
    content = adding(X.astype(np.float32), "coordinates")
    feeds = {"x": np.full(X.shape, 2, np.float32)}
    (expected,) = onnxruntime.InferenceSession(content).run(None, feeds)
    np.testing.assert_array_equal(run(content, feeds), expected)


@pytest.mark.parametrize("form", ["linear", "coordinates"])
@pytest.mark.parametrize("shape", [(3, 5), (1,), (2, 3, 4)])
def test_elements_may_be_less_than_a_byte(shape: tuple, form: str) -> None:
    size = np.prod(shape)
    w = (np.arange(size) % 3 * 2 - (np.arange(size) % 5 == 1)).reshape(shape).astype(ml_dtypes.int4)
    node = helper.make_node("Cast", ["w"], ["y"], to=onnx.TensorProto.INT32)
    graph = helper.make_graph(
        [node],
        "g",
        [],
        [value_info("y", np.dtype(np.int32))],
        sparse_initializer=[sparse_tensor(w, form)],
    )
    for level in LEVELS:
        np.testing.assert_array_equal(run(model_of(graph), {}, level), w.astype(np.int32))


def test_there_may_be_no_values() -> None:
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(adding(np.zeros_like(x), "linear"), {"x": x}), x)


@pytest.mark.parametrize("level", LEVELS)
def test_constants_and_subgraphs_may_be_sparse(level: tenon.GraphOptimizationLevel) -> None:
    w = X.astype(np.float32)
    constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse_tensor(w, "linear", ""))
    info = [value_info("b", w.dtype)]
    then = helper.make_graph(
        [constant, helper.make_node("Add", ["x", "w"], ["b"])], "then_branch", [], info
    )
    other = helper.make_graph(
        [helper.make_node("Mul", ["x", "v"], ["b"])],
        "else_branch",
        [],
        info,
        sparse_initializer=[sparse_tensor(w, "coordinates", "v")],
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    inputs = [value_info("c", np.dtype(bool)), value_info("x", w.dtype)]
    content = model_of(helper.make_graph([node], "g", inputs, [value_info("y", w.dtype)]))
    x = np.full(X.shape, 2, np.float32)
    for condition, expected in ((True, x + X), (False, x * X)):
        actual = run(content, {"c": np.array(condition), "x": x}, level)
        np.testing.assert_array_equal(actual, expected)


def sparse_output(attribute: str) -> bytes:
    """y, declared as a sparse tensor, from a Constant node with that attribute."""
    w = X.astype(np.float32)
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.add(
        name=attribute,
        type=onnx.AttributeProto.SPARSE_TENSOR,
        sparse_tensor=sparse_tensor(w, "linear", ""),
    )
    output = helper.make_sparse_tensor_value_info("y", onnx.TensorProto.FLOAT, list(w.shape))
    return model_of(helper.make_graph([node], "g", [], [output]))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("attribute", ["value", "sparse_value"])
def test_constants_may_leave_the_model_sparse(
    attribute: str, level: tenon.GraphOptimizationLevel
) -> None:
    for package in (tenon, onnxruntime):
        options = package.SessionOptions()
        options.graph_optimization_level = package.GraphOptimizationLevel(level.value)
        session = package.InferenceSession(sparse_output(attribute), options)
        for _ in range(2):
            (y,) = session.run_with_ort_values(["y"], {})
            assert y.data_type() == "sparse_tensor(float)"
            sparse = y.as_sparse_tensor()
            np.testing.assert_array_equal(sparse.dense_shape(), X.shape)
            np.testing.assert_array_equal(sparse.values(), X[X != 0])
            np.testing.assert_array_equal(sparse.as_coo_view().indices(), np.flatnonzero(X))


def test_what_is_too_large_is_an_error() -> None:
    tensor = sparse_tensor(X.astype(np.float32), "linear")
    tensor.dims[:] = [1 << 30, 1 << 30]
    node = helper.make_node("Neg", ["w"], ["y"])
    info = [], [value_info("y", np.dtype(np.float32))]
    graph = helper.make_graph([node], "g", *info, sparse_initializer=[tensor])
    with pytest.raises(Exception, match=r"sparse initializer 'w': .* memory"):
        run(model_of(graph), {})
