"""What blocks ask of the model's graph."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

OWN_DOMAIN = "com.tenon"


def after(value: str, earlier: str, output: str) -> NodeProto:
    """A node whose output is `value`, once the value `earlier` is there."""
    return helper.make_node("After", [value, earlier], [output], domain=OWN_DOMAIN)


def set_nodes(model: ModelProto, nodes: Iterable[NodeProto]) -> None:
    """Replaces the model's nodes by copies of these, some of which are of `after`."""
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    if all(opset.domain != OWN_DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(OWN_DOMAIN, 1))


def subgraphs_of(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in the node's attributes."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def reads_of(node: NodeProto) -> set[str]:
    """The values that a node reads, and all that the nodes of its subgraphs read."""
    reads = set(node.input)
    for graph in subgraphs_of(node):
        reads.update(output.name for output in graph.output)
        for inner in graph.node:
            reads |= reads_of(inner)
    return reads - {""}


def nodes_above(graph: GraphProto, names: Iterable[str]) -> list[NodeProto]:
    """The nodes that the values depend on, in the order of the graph."""
    needed, above = set(names), []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed |= reads_of(node)
            above.append(node)
    return above[::-1]


def find_type(model: ModelProto, name: str) -> ValueInfoProto | None:
    """A value's type, if the graph declares it."""
    graph = model.graph
    for values in (graph.output, graph.input, graph.value_info):
        value: ValueInfoProto
        for value in values:
            if value.name == name:
                return value
    for tensor in graph.initializer:
        if tensor.name == name:
            return helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
    return None


def is_value(model: ModelProto, name: str) -> bool:
    """Whether a node reads or makes the value, or the graph has it as an input or a constant."""
    graph = model.graph
    if any(name in (*node.input, *node.output) for node in graph.node):
        return True
    return any(value.name == name for value in (*graph.input, *graph.initializer))


def near(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a wrong one, as the end of an error's text."""
    matches = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def type_of(model: ModelProto, name: str) -> ValueInfoProto:
    """A value's type. Raises LookupError if the graph declares none."""
    value = find_type(model, name)
    if value is None:
        graph = model.graph
        known = [value.name for value in (*graph.output, *graph.input, *graph.value_info)]
        raise LookupError(f"the type of the value {name!r} is not known{near(name, known)}")
    return value


def set_outputs(model: ModelProto, names: Iterable[str]) -> None:
    """Makes these values the graph's outputs. Raises LookupError if there is no such value."""
    outputs = []
    for name in names:
        value = find_type(model, name)
        if value is None and not is_value(model, name):
            made = [output for node in model.graph.node for output in node.output]
            raise LookupError(f"output {name!r}: the graph has no such value{near(name, made)}")
        # The type of what a custom operator made may be unknown: a session infers it.
        output = ValueInfoProto(name=name)
        if value is not None:
            output.CopyFrom(value)
        outputs.append(output)
    del model.graph.output[:]
    model.graph.output.extend(outputs)
