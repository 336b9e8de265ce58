"""Models for the tests of the command, each with one or a few nodes."""

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

Shape = Sequence[int | str | None] | None


def value(name: str, shape: Shape, element_type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def save(path: Path, nodes, inputs, outputs, initializers=()) -> Path:
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    model = helper.make_model(
        graph,
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 20)],
        producer_name="tests",
        producer_version="1.0",
    )
    onnx.save(model, path)
    return path


def identity(path: Path, shape: Shape, element_type: int = TensorProto.FLOAT) -> Path:
    """y = x: the command saves what it feeds."""
    return save(
        path,
        [helper.make_node("Identity", ["x"], ["y"])],
        [value("x", shape, element_type)],
        [value("y", shape, element_type)],
    )


def add(path: Path, shape: Shape) -> Path:
    """total = left + right."""
    return save(
        path,
        [helper.make_node("Add", ["left", "right"], ["total"])],
        [value("left", shape), value("right", shape)],
        [value("total", shape)],
    )
