"""Small models for the tests."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dimensions = list[int | str | None] | None


def model(nodes: list[onnx.NodeProto], inputs: list, outputs: list, **fields: object) -> bytes:
    """A model of opset 19, or of the field `opset`."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, fields.pop("initializers", None))
    opsets = [
        helper.make_opsetid("", fields.pop("opset", 19)),
        helper.make_opsetid("ai.onnx.ml", 3),
    ]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=9, **fields
    ).SerializeToString()


def tensor(name: str, element_type: int = TensorProto.FLOAT, shape: Dimensions = None):
    return helper.make_tensor_value_info(name, element_type, shape)


def identity(element_type: int = TensorProto.FLOAT, shape: Dimensions = None) -> bytes:
    """y = x."""
    return model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [tensor("x", element_type, shape)],
        [tensor("y", element_type, shape)],
    )


def double(shape: Dimensions = None) -> bytes:
    """y = x + x."""
    return model(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        [tensor("x", shape=shape)],
        [tensor("y", shape=shape)],
    )


def weighted_chain(size: int, length: int, dtype: type = np.float32) -> bytes:
    """y = x * W1 * W2 * ..., products with constant [size, size] matrices."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"W{i}"], [names[i + 1]]) for i in range(length)]
    weights = [
        numpy_helper.from_array(np.full((size, size), (i + 1) / size, dtype), f"W{i}")
        for i in range(length)
    ]
    ends = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", size]
        )
        for name in ("x", "y")
    ]
    return model(nodes, ends[:1], ends[1:], initializers=weights)


def product_chain(size: int, length: int) -> bytes:
    """y = x * x * ... * x, matrix products that take some time."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], "x"], [names[i + 1]]) for i in range(length)]
    return model(nodes, [tensor("x", shape=[size, size])], [tensor("y", shape=[size, size])])
