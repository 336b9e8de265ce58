"""A model's graph while it is being rewritten."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

PRODUCER = "onnx.quantize"  # by which tools know quantized models
MIN_OPSET = 11
CONTRIB = "com.microsoft"

ModelLike = str | os.PathLike[str] | onnx.ModelProto


def load(model: ModelLike) -> onnx.ModelProto:
    """A copy of a model, with its shapes, of a version that can be quantized."""
    if isinstance(model, onnx.ModelProto):
        loaded = onnx.ModelProto()
        loaded.CopyFrom(model)
    else:
        loaded = onnx.load(model)
    opset = next((one.version for one in loaded.opset_import if one.domain in ("", "ai.onnx")), 0)
    if opset < MIN_OPSET:
        loaded = onnx.version_converter.convert_version(loaded, MIN_OPSET)
    return onnx.shape_inference.infer_shapes(loaded)


class Graph:
    """Nodes in order, and who makes and reads which value."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.graph = model.graph
        self.nodes: list[onnx.NodeProto] = list(model.graph.node)
        self.initializers = {one.name: one for one in model.graph.initializer}
        self.outputs = {value.name for value in model.graph.output}
        values = [*model.graph.value_info, *model.graph.input, *model.graph.output]
        self.types = {
            value.name: value.type.tensor_type.elem_type
            for value in values
            if value.type.HasField("tensor_type")
        }
        self._count_readers()

    def _count_readers(self) -> None:
        self.producers: dict[str, onnx.NodeProto] = {}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.output:
                self.producers[name] = node
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def refresh(self) -> None:
        """After nodes were changed."""
        self._count_readers()

    def is_float(self, name: str) -> bool:
        """Whether a value, or a constant, has 32-bit floating-point numbers."""
        if name in self.initializers:
            return self.initializers[name].data_type == onnx.TensorProto.FLOAT
        return self.types.get(name) == onnx.TensorProto.FLOAT

    def constant(self, name: str) -> np.ndarray | None:
        """The elements of an initializer."""
        tensor = self.initializers.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def rank(self, name: str) -> int | None:
        """The rank of a value, if it is known."""
        constant = self.initializers.get(name)
        if constant is not None:
            return len(constant.dims)
        for value in (*self.graph.value_info, *self.graph.input, *self.graph.output):
            if value.name == name and value.type.tensor_type.HasField("shape"):
                return len(value.type.tensor_type.shape.dim)
        return None

    def add_constant(self, name: str, array: np.ndarray) -> str:
        """Adds an initializer, once."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def finish(self, nodes: Iterable[onnx.NodeProto], extra_opsets: dict[str, int]) -> None:
        """Puts nodes and constants back, without constants that nobody reads."""
        kept = list(nodes)
        read = {name for node in kept for name in all_inputs(node)} | self.outputs
        del self.graph.node[:]
        self.graph.node.extend(sort(kept, read_from=self.graph, constants=self.initializers))
        del self.graph.initializer[:]
        self.graph.initializer.extend(
            one for name, one in self.initializers.items() if name in read
        )
        inputs = [one for one in self.graph.input if one.name in read or not self._was_const(one)]
        del self.graph.input[:]
        self.graph.input.extend(inputs)
        del self.graph.value_info[:]
        self.model.producer_name = PRODUCER
        present = {one.domain for one in self.model.opset_import}
        for domain, version in extra_opsets.items():
            if domain not in present:
                self.model.opset_import.append(helper.make_opsetid(domain, version))

    def _was_const(self, value: onnx.ValueInfoProto) -> bool:
        return value.name in self.initializers


def all_inputs(node: onnx.NodeProto) -> list[str]:
    """What a node reads, in its subgraphs too."""
    names = list(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                names += all_inputs(inner)
            names += [value.name for value in graph.output]
    return names


def sort(
    nodes: list[onnx.NodeProto], read_from: onnx.GraphProto, constants: Iterable[str]
) -> list[onnx.NodeProto]:
    """Nodes after those whose values they read."""
    made = {name for node in nodes for name in node.output}
    known = set(constants) | {value.name for value in read_from.input}
    result: list[onnx.NodeProto] = []
    waiting = nodes
    while waiting:
        later = []
        for node in waiting:
            if all(name in known or name not in made for name in all_inputs(node)):
                result.append(node)
                known.update(node.output)
            else:
                later.append(node)
        if len(later) == len(waiting):
            raise ValueError(f"the graph has a cycle at node '{later[0].name}'")
        waiting = later
    return result


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name."""
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def replace_gemm(graph: Graph) -> None:
    """Gemm without scaling becomes a product and a sum."""
    nodes = []
    for node in graph.nodes:
        attributes = attributes_of(node)
        is_plain = (
            node.op_type == "Gemm"
            and attributes.get("alpha", 1.0) == 1.0
            and attributes.get("beta", 1.0) == 1.0
            and not attributes.get("transA", 0)
        )
        weight = graph.constant(node.input[1]) if is_plain else None
        if not is_plain or (attributes.get("transB", 0) and weight is None):
            nodes.append(node)
            continue
        right = node.input[1]
        if attributes.get("transB", 0) and weight is not None:
            right = graph.add_constant(f"{right}_Transposed", np.ascontiguousarray(weight.T))
        has_bias = len(node.input) > 2
        product = f"{node.output[0]}_MatMul" if has_bias else node.output[0]
        name = f"{node.name}_MatMul"
        nodes.append(helper.make_node("MatMul", [node.input[0], right], [product], name=name))
        graph.types.setdefault(product, onnx.TensorProto.FLOAT)
        if has_bias:
            inputs = [product, node.input[2]]
            nodes.append(helper.make_node("Add", inputs, [node.output[0]], name=f"{node.name}_Add"))
    graph.nodes = nodes
    graph.refresh()


def save(model: onnx.ModelProto, path: str | os.PathLike[str], use_external_data: bool) -> None:
    """Writes the model."""
    if use_external_data:
        location = os.path.basename(os.fspath(path)) + ".data"
        onnx.save(model, os.fspath(path), save_as_external_data=True, location=location)
    else:
        onnx.save(model, os.fspath(path))
