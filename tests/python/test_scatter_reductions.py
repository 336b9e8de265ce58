"""ScatterElements and ScatterND combine elements that are no numbers of one part: truth values,
complex numbers and strings, beside NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper

COMBINE: dict[str, Callable] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
}


def scatter(op: str, reduction: str, data: np.ndarray, at: list, updates: np.ndarray) -> np.ndarray:
    is_text = data.dtype == object
    kind = TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(data.dtype)
    indices = np.array(at) if op == "ScatterElements" else np.array(at)[:, None]
    graph = helper.make_graph(
        [helper.make_node(op, ["data", "indices", "updates"], ["y"], reduction=reduction)],
        "graph",
        [
            helper.make_tensor_value_info("data", kind, data.shape),
            helper.make_tensor_value_info("indices", TensorProto.INT64, indices.shape),
            helper.make_tensor_value_info("updates", kind, updates.shape),
        ],
        [helper.make_tensor_value_info("y", kind, data.shape)],
    )
    opsets = [helper.make_opsetid("", 18)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    feeds = {"data": data, "indices": indices, "updates": updates}
    return tenon.InferenceSession(content).run(None, feeds)[0]


VALUES = {
    "bool": (np.array([0, 1, 0, 1], bool), np.array([1, 0, 1, 1, 0], bool)),
    "complex64": (
        np.array([1 + 2j, -3, 2 - 1j, 4j], np.complex64),
        np.array([2j, 1 - 1j, 3, 2 + 1j, 5j], np.complex64),
    ),
    "complex128": (
        np.array([1 + 2j, -3, 2 - 1j, 4j]),
        np.array([2j, 1 - 1j, 3, 2 + 1j, 5j]),
    ),
    "string": (
        np.array(["b", "é", "", "中"], object),
        np.array(["a", "z", "x", "", "\U0001f600"], object),
    ),
}


@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("reduction", COMBINE)
@pytest.mark.parametrize("kind", VALUES)
def test_scatter_combines(op: str, reduction: str, kind: str) -> None:
    data, updates = VALUES[kind]
    at = [0, 1, 1, 2, 3]
    refused = {("string", "mul"): "strings have no product"}
    refused |= {
        (kind, reduction): "complex numbers have no order"
        for kind in ("complex64", "complex128")
        for reduction in ("max", "min")
    }
    if (kind, reduction) in refused:
        with pytest.raises(Exception, match=refused[kind, reduction]):
            scatter(op, reduction, data, at, updates)
        return
    expected = data.tolist()
    for i, update in zip(at, updates.tolist(), strict=True):
        expected[i] = COMBINE[reduction](expected[i], update)
    expected = np.array(expected, data.dtype)
    np.testing.assert_array_equal(scatter(op, reduction, data, at, updates), expected)
