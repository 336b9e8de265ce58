"""A model's graph while it is being rewritten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ._names import PRODUCER, PRODUCER_VERSION
from ._types import FLOATS


class Graph:
    """Nodes in order, the producers and consumers of values, and the known types of values."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.nodes: list[onnx.NodeProto] = list(graph.node)
        self.initializers = {one.name: one for one in graph.initializer}
        self.outputs = {value.name for value in graph.output}
        self.inputs = {value.name for value in graph.input} - self.initializers.keys()
        values = [*graph.value_info, *graph.output, *graph.input]
        self.values = {value.name: value for value in values}
        self.refresh()

    def refresh(self) -> None:
        """Updates the tables after nodes were changed."""
        self.producers: dict[str, onnx.NodeProto] = {}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        self.inner_reads: set[str] = set()
        for node in self.nodes:
            self.producers.update(dict.fromkeys(node.output, node))
            for name in dict.fromkeys(node.input):
                self.readers.setdefault(name, []).append(node)
            self.inner_reads.update(inner_inputs(node))

    def kind(self, name: str) -> int | None:
        """The element type of a constant or a value, if it is known."""
        if name in self.initializers:
            return int(self.initializers[name].data_type)
        value = self.values.get(name)
        if value is None or not value.type.HasField("tensor_type"):
            return None
        return int(value.type.tensor_type.elem_type)

    def is_float(self, name: str) -> bool:
        """Whether a value or a constant has floating-point numbers of 32 or 16 bits."""
        return self.kind(name) in FLOATS

    def is_float_constant(self, name: str) -> bool:
        """The same for constants only."""
        return name in self.initializers and self.is_float(name)

    def constant(self, name: str) -> np.ndarray | None:
        """The elements of an initializer, or of the output of a Constant node."""
        if name in self.initializers:
            return numpy_helper.to_array(self.initializers[name])
        producer = self.producers.get(name)
        if producer is not None and producer.op_type == "Constant":
            for attribute in producer.attribute:
                if attribute.name == "value":
                    return numpy_helper.to_array(attribute.t)
        return None

    def add_constant(self, tensor: TensorProto) -> str:
        """Adds an initializer, unless there is one of its name."""
        self.initializers.setdefault(tensor.name, tensor)
        return tensor.name

    def replace_readers(self, old: str, new: str, only: Collection[str] | None = None) -> None:
        """Lets all readers of `old`, or only the nodes of those names, read `new`."""
        for node in list(self.readers.get(old, ())):
            if only is None or node.name in only:
                self.replace_input(node, old, new)

    def replace_input(self, node: onnx.NodeProto, old: str, new: str) -> None:
        """Lets one node read another value."""
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        self.readers[old] = [one for one in self.readers.get(old, ()) if one is not node]
        self.readers.setdefault(new, []).append(node)

    def rename_output(self, old: str, new: str) -> None:
        """Lets the producer of `old` produce `new`."""
        node = self.producers.pop(old)
        node.output[list(node.output).index(old)] = new
        self.producers[new] = node

    def remove(self, node: onnx.NodeProto) -> None:
        """Removes a node."""
        self.nodes = [one for one in self.nodes if one is not node]
        for name in dict.fromkeys(node.input):
            self.readers[name] = [one for one in self.readers[name] if one is not node]

    def finish(self, nodes: Iterable[onnx.NodeProto], keep_constants: bool = False) -> None:
        """Puts nodes and constants back, in order, without constants that are not read."""
        kept = list(nodes)
        read = {name for node in kept for name in all_inputs(node)} | self.outputs
        made = {name for node in kept for name in node.output}
        ordered = in_order(kept)
        del self.graph.node[:]
        self.graph.node.extend(ordered)
        were_constants = {one.name for one in self.graph.initializer}
        constants = [
            one for name, one in self.initializers.items() if keep_constants or name in read
        ]
        del self.graph.initializer[:]
        self.graph.initializer.extend(constants)
        present = {one.name for one in constants}
        replace(
            self.graph.input,
            lambda one: one.name in present or one.name not in were_constants,
        )
        replace(self.graph.value_info, lambda one: one.name in made)


def replace(values: Any, keep: Callable[[Any], bool]) -> None:
    """Keeps some of a message's values."""
    kept = [one for one in values if keep(one)]
    del values[:]
    values.extend(kept)


def sign(model: onnx.ModelProto) -> onnx.ModelProto:
    """Sets the producer of a model, by which tools recognize quantized models."""
    model.producer_name, model.producer_version = PRODUCER, PRODUCER_VERSION
    return model


def add_opsets(model: onnx.ModelProto, opsets: Mapping[str, int]) -> None:
    """Adds domains of operators that the model does not import yet."""
    present = {one.domain for one in model.opset_import}
    model.opset_import.extend(
        helper.make_opsetid(domain, version)
        for domain, version in opsets.items()
        if domain not in present
    )


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs of a node's attributes."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def inner_inputs(node: onnx.NodeProto) -> Iterator[str]:
    """The values that the graphs of a node read and do not have themselves."""
    for graph in inner_graphs(node):
        own = {one.name for values in (graph.input, graph.initializer) for one in values}
        own.update(name for inner in graph.node for name in inner.output)
        read = [name for inner in graph.node for name in all_inputs(inner)]
        read += [value.name for value in graph.output]
        yield from (name for name in read if name not in own)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and its subgraphs."""
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner)


def all_inputs(node: onnx.NodeProto) -> Iterator[str]:
    """The values that a node reads, also in its subgraphs."""
    yield from node.input
    yield from inner_inputs(node)


def in_order(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Sorts nodes after the producers of their inputs, as onnxruntime does.

    First come nodes that read nothing that others make, in the order of the last name that they
    read; each other node follows when the last of its inputs is there.
    """
    makers = {name for node in nodes for name in node.output if name}
    waits = [{name for name in all_inputs(node) if name} for node in nodes]
    readers: dict[str, list[int]] = {}
    for i, names in enumerate(waits):
        for name in names:
            readers.setdefault(name, []).append(i)
    result = [node for node, names in zip(nodes, waits, strict=True) if not names]

    def arrive(name: str) -> None:
        for i in readers.get(name, ()):
            waits[i].discard(name)
            if not waits[i]:
                result.append(nodes[i])

    for name in sorted(readers.keys() - makers):
        arrive(name)
    for node in result:  # which grows
        for name in node.output:
            arrive(name)
    if len(result) < len(nodes):
        left = next(node for node, names in zip(nodes, waits, strict=True) if names)
        raise ValueError(f"the graph has a cycle at node '{left.name}'")
    return result
