"""Replaces Gemm by a product and a sum."""

from __future__ import annotations

import copy

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from ._graph import all_inputs, inner_graphs
from ._tensors import attributes_of, tensor_of


def replace_gemm(graph: GraphProto, outer: tuple[GraphProto, ...] = ()) -> None:
    """Replaces Gemm without scaling by MatMul and Add, in subgraphs too."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        for inner in inner_graphs(node):
            replace_gemm(inner, (*outer, graph))
        nodes += _product_and_sum(node, (*outer, graph)) if is_plain(node) else [node]
    del graph.node[:]
    graph.node.extend(nodes)


def is_plain(node: NodeProto) -> bool:
    """Whether a node is a Gemm that neither scales nor transposes its first input."""
    attributes = attributes_of(node)
    scales = (attributes.get("alpha", 1.0), attributes.get("beta", 1.0))
    return node.op_type == "Gemm" and scales == (1.0, 1.0) and not attributes.get("transA", 0)


def _product_and_sum(node: NodeProto, graphs: tuple[GraphProto, ...]) -> list[NodeProto]:
    def name(suffix: str) -> str:
        return f"{node.name}_{suffix}" if node.name else ""

    result, right = [], node.input[1]
    if attributes_of(node).get("transB", 0):
        transposed = _transposed(right, graphs)
        if transposed is None:
            transposed = f"{right}_Transposed"
            result.append(
                helper.make_node("Transpose", [right], [transposed], name=name("Transpose"))
            )
        right = transposed
    has_bias = len(node.input) > 2 and node.input[2] != ""
    product = f"{node.output[0]}_MatMul" if has_bias else node.output[0]
    inputs = [node.input[0], right]
    result.append(helper.make_node("MatMul", inputs, [product], name=name("MatMul")))
    if has_bias:
        inputs = [product, node.input[2]]
        result.append(helper.make_node("Add", inputs, list(node.output), name=name("Add")))
    return result


def _transpose_declared(graph: GraphProto, name: str) -> None:
    """Swaps the sizes of a matrix that inputs or PyTorch's exporter declare."""
    for value in (*graph.input, *graph.value_info):
        dims = value.type.tensor_type.shape.dim
        if value.name == name and len(dims) == 2:
            first, second = copy.deepcopy(dims[0]), copy.deepcopy(dims[1])
            dims[0].CopyFrom(second)
            dims[1].CopyFrom(first)


def _transposed(name: str, graphs: tuple[GraphProto, ...]) -> str | None:
    """The constant of that name, transposed in place if no other node reads it."""
    for graph in reversed(graphs):
        for tensor in graph.initializer:
            if tensor.name != name:
                continue
            array = np.ascontiguousarray(numpy_helper.to_array(tensor).T)
            readers = [one for node in graphs[0].node for one in all_inputs(node) if one == name]
            new = name if len(readers) == 1 else f"{name}_Transposed"
            if new == name:
                tensor.CopyFrom(tensor_of(array, new))
                _transpose_declared(graph, name)
            elif all(one.name != new for one in graph.initializer):
                graph.initializer.append(tensor_of(array, new))
            return new
    return None
