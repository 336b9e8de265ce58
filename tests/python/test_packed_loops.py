"""Elements that share bytes, sliced and joined by Loop and Scan."""

from __future__ import annotations

import graphs
import numpy as np
import pytest
import tenon
from onnx import GraphProto, TensorProto, helper

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT2: ml_dtypes.uint2,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}
FLOAT6 = 27  # float6e2m3, of which 8 elements share 6 bytes


def identity(element_type: int) -> GraphProto:
    names = {"state": TensorProto.FLOAT, "element": element_type}
    return helper.make_graph(
        [helper.make_node("Identity", [name], [f"{name}_out"]) for name in names],
        "body",
        [graphs.tensor(name, of) for name, of in names.items()],
        [graphs.tensor(f"{name}_out", of) for name, of in names.items()],
    )


def scanned(x: np.ndarray, element_type: int, opset: int, **attributes: object) -> np.ndarray:
    left_out = [""] if opset == 8 else []
    node = helper.make_node(
        "Scan",
        [*left_out, "state", "x"],
        ["", "y"],
        body=identity(element_type),
        num_scan_inputs=1,
        **attributes,
    )
    inputs = [graphs.tensor("state"), graphs.tensor("x", element_type)]
    graph = helper.make_graph([node], "graph", inputs, [graphs.tensor("y", element_type)])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    state = np.ones((x.shape[0], 1), np.float32)
    feed = {"state": state, "x": x}
    return tenon.InferenceSession(model.SerializeToString()).run(None, feed)[0]


def numbers(shape: tuple[int, ...], element_type: int) -> np.ndarray:
    return (np.arange(np.prod(shape)) % 4).reshape(shape).astype(TYPES[element_type])


def expect_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scan_along_any_axis(element_type: int, axis: int) -> None:
    x = numbers((3, 5, 3), element_type)
    attributes = {"scan_input_axes": [axis], "scan_output_axes": [axis]}
    expect_same(scanned(x, element_type, 21, **attributes), x)
    y = scanned(x, element_type, 21, **attributes, scan_input_directions=[1])
    expect_same(y, np.flip(x, axis))


@pytest.mark.parametrize("element_type", TYPES)
def test_old_scan(element_type: int) -> None:
    x = numbers((3, 5, 3), element_type)
    expect_same(scanned(x, element_type, 8), x)
    expect_same(scanned(x, element_type, 8, directions=[1]), np.flip(x, 1))


@pytest.mark.parametrize("element_type", [*TYPES, FLOAT6])
def test_loop_collects(element_type: int) -> None:
    trip = [graphs.tensor("i", TensorProto.INT64, []), graphs.tensor("go", TensorProto.BOOL, [])]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Cast", ["x"], ["part"], to=element_type),
        ],
        "body",
        trip,
        [graphs.tensor("go_on", TensorProto.BOOL, []), graphs.tensor("part", element_type)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["count", ""], ["parts"], body=body),
            helper.make_node("Cast", ["parts"], ["y"], to=TensorProto.FLOAT),
        ],
        "graph",
        [graphs.tensor("count", TensorProto.INT64, []), graphs.tensor("x")],
        [graphs.tensor("y")],
    )
    opsets = [helper.make_opsetid("", 28 if element_type == FLOAT6 else 25)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=13)
    x = (np.arange(1001) % 3).astype(np.float32)
    feed = {"count": np.array(7), "x": x}
    (y,) = tenon.InferenceSession(model.SerializeToString()).run(None, feed)
    np.testing.assert_array_equal(y, np.stack([x] * 7))
