"""SparseToDenseMatMul of com.microsoft, compared with onnxruntime and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    np.float32: TensorProto.FLOAT,
    np.float64: TensorProto.DOUBLE,
    np.int32: TensorProto.INT32,
    np.int64: TensorProto.INT64,
    np.uint32: TensorProto.UINT32,
    np.uint64: TensorProto.UINT64,
}
A = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [3, 0, 0, 5]])
DIMS = np.array(A.shape, np.int64)


def dense(shape: tuple, dtype: type) -> np.ndarray:
    x = np.random.default_rng(len(shape)).integers(-9 if dtype(0) - 1 < 0 else 0, 9, shape)
    return x.astype(dtype)


def model(dtype: type, shape: tuple, dims: tuple = A.shape, **attributes: Any) -> bytes:
    element = TYPES[dtype]
    node = helper.make_node(
        "SparseToDenseMatMul", ["A", "B"], ["Y"], domain="com.microsoft", **attributes
    )
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_sparse_tensor_value_info("A", element, dims),
            helper.make_tensor_value_info("B", element, shape),
        ],
        [helper.make_tensor_value_info("Y", element, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def sparse(runtime: Any, kind: str, dtype: type) -> Any:
    device = runtime.OrtDevice.make("cpu", 0)
    values = A[A != 0].astype(dtype)
    if kind == "csr":
        columns, starts = np.nonzero(A)[1].astype(np.int64), np.array([0, 1, 1, 3])
        made = runtime.SparseTensor.sparse_csr_from_numpy(DIMS, values, columns, starts, device)
    else:
        places = np.flatnonzero(A) if kind == "linear" else np.argwhere(A).reshape(-1)
        made = runtime.SparseTensor.sparse_coo_from_numpy(DIMS, values, places, device)
    return runtime.OrtValue.ort_value_from_sparse_tensor(made)


def run(runtime: Any, content: bytes, kind: str, b: np.ndarray) -> np.ndarray:
    session = runtime.InferenceSession(content)
    return session.run(None, {"A": sparse(runtime, kind, b.dtype.type), "B": b})[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["coordinates", "csr"])
@pytest.mark.parametrize("attributes", [{}, {"alpha": 2.5}, {"alpha": -1.0}])
def test_sparse_product(dtype: type, kind: str, attributes: dict) -> None:
    b = dense((4, 5), dtype)
    content = model(dtype, b.shape, **attributes)
    expected = run(onnxruntime, content, kind, b)
    actual = run(tenon, content, kind, b)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("kind", ["linear", "coordinates", "csr"])
@pytest.mark.parametrize("transposes", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3), (0,)])
@pytest.mark.parametrize("columns", [0, 1, 5, 700])
@pytest.mark.parametrize("dims", [A.shape, ("m", "k")])
def test_sparse_products_as_numpy_has_them(
    kind: str, transposes: tuple, batch: tuple, columns: int, dims: tuple
) -> None:
    depth = 3 if transposes[0] else 4
    shape = (*batch, columns, depth) if transposes[1] else (*batch, depth, columns)
    b = dense(shape, np.float32)
    content = model(np.float32, shape, dims, transA=transposes[0], transB=transposes[1])
    expected = (A.T if transposes[0] else A) @ (b.swapaxes(-1, -2) if transposes[1] else b)
    np.testing.assert_array_equal(run(tenon, content, kind, b), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES)
def test_sparse_initializer(dtype: type) -> None:
    b = dense((4, 5), dtype)
    changed = onnx.load_from_string(model(dtype, b.shape))
    del changed.graph.input[0]
    values = numpy_helper.from_array(A[A != 0].astype(dtype), "A")
    places = numpy_helper.from_array(np.flatnonzero(A), "places")
    changed.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [*A.shape]))
    y = tenon.InferenceSession(changed.SerializeToString()).run(None, {"B": b})[0]
    np.testing.assert_array_equal(y, A.astype(dtype) @ b)


def test_integers_wrap_around() -> None:
    b = np.full((4, 1), 2**31 - 1, np.int32)
    y = run(tenon, model(np.int32, b.shape), "csr", b)
    np.testing.assert_array_equal(y, (A.astype(np.int32) @ b))


@pytest.mark.parametrize("places", [[1, 8, 12], [1, 8, -1], [-(2**63), 8, 11], [2**63 - 1, 8, 11]])
def test_places_out_of_the_matrix_are_rejected(places: list) -> None:
    device = tenon.OrtDevice.make("cpu", 0)
    values = np.ones(3, np.float32)
    b = dense((4, 5), np.float32)
    with pytest.raises(Exception, match=r"element|ind"):
        made = tenon.SparseTensor.sparse_coo_from_numpy(
            DIMS, values, np.array(places, np.int64), device
        )
        a = tenon.OrtValue.ort_value_from_sparse_tensor(made)
        tenon.InferenceSession(model(np.float32, b.shape)).run(None, {"A": a, "B": b})


@pytest.mark.parametrize(
    ("columns", "starts"),
    [
        ([1, 0, 4], [0, 1, 1, 3]),
        ([1, 0, -1], [0, 1, 1, 3]),
        ([1, 0, 3], [0, 1, 1, 4]),
        ([1, 0, 3], [0, 2, 1, 3]),
        ([1, 0, 3], [1, 1, 1, 3]),
        ([1, 0, 3], [0, 1, 1, 2]),
        ([1, 0, 3], [0, 2**63 - 1, 1, 3]),
    ],
)
def test_rows_that_do_not_fit_are_rejected(columns: list, starts: list) -> None:
    device = tenon.OrtDevice.make("cpu", 0)
    values = np.ones(3, np.float32)
    b = dense((4, 5), np.float32)
    with pytest.raises(Exception, match=r"element|ind|starts"):
        made = tenon.SparseTensor.sparse_csr_from_numpy(
            DIMS, values, np.array(columns, np.int64), np.array(starts, np.int64), device
        )
        a = tenon.OrtValue.ort_value_from_sparse_tensor(made)
        tenon.InferenceSession(model(np.float32, b.shape)).run(None, {"A": a, "B": b})


def test_matrices_that_do_not_fit_are_rejected() -> None:
    b = dense((3, 5), np.float32)
    with pytest.raises(Exception, match=r"SparseToDenseMatMul.*expected 4 rows"):
        run(tenon, model(np.float32, b.shape, ("m", "k")), "csr", b)
