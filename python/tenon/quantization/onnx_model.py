"""A model, with queries and changes for programs that rewrite it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from ._gemm import replace_gemm
from ._graph import all_inputs, in_order, inner_graphs, replace
from ._saving import save


def find_by_name(item_name: str, item_list: Iterable[Any]) -> Any:
    """The first item of that name, or None."""
    return next((item for item in item_list if item.name == item_name), None)


class ONNXModel:
    """Changes `model` itself."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model

    def graph(self) -> GraphProto:
        """The graph."""
        return self.model.graph

    def nodes(self) -> Any:
        """Its nodes."""
        return self.model.graph.node

    def initializer(self) -> Any:
        """Its constants."""
        return self.model.graph.initializer

    def ir_version(self) -> int:
        """The version of the format."""
        return self.model.ir_version

    def opset_import(self) -> Any:
        """The opsets of its domains."""
        return self.model.opset_import

    def set_opset_import(self, domain: str, version: int) -> None:
        """Sets the opset of a domain."""
        for one in self.model.opset_import:
            if one.domain == domain:
                one.version = version
                return
        self.model.opset_import.append(helper.make_opsetid(domain, version))

    def add_node(self, node: NodeProto) -> None:
        """Adds a node."""
        self.model.graph.node.append(node)

    def add_nodes(self, nodes_to_add: Iterable[NodeProto]) -> None:
        """Adds nodes."""
        self.model.graph.node.extend(nodes_to_add)

    def remove_node(self, node: NodeProto) -> None:
        """Removes a node, if it is there."""
        if node in self.model.graph.node:
            self.model.graph.node.remove(node)

    def remove_nodes(self, nodes_to_remove: Iterable[NodeProto]) -> None:
        """Removes nodes."""
        for node in list(nodes_to_remove):
            self.remove_node(node)

    def add_initializer(self, tensor: TensorProto) -> None:
        """Adds a constant, unless there is one of its name."""
        if self.get_initializer(tensor.name) is None:
            self.model.graph.initializer.append(tensor)

    def initializer_extend(self, inits: Sequence[TensorProto]) -> None:
        """Adds constants."""
        self.model.graph.initializer.extend(inits)

    def get_initializer(self, name: str) -> TensorProto | None:
        """The constant of that name."""
        found: TensorProto | None = find_by_name(name, self.model.graph.initializer)
        return found

    def get_initializer_name_set(self) -> set[str]:
        """The names of constants."""
        return {one.name for one in self.model.graph.initializer}

    def remove_initializer(self, tensor: TensorProto) -> None:
        """Removes a constant, and the input of its name."""
        self.remove_initializers([tensor])

    def remove_initializers(self, init_to_remove: Iterable[TensorProto]) -> None:
        """Removes constants, and the inputs of their names."""
        names = {one.name for one in init_to_remove} & self.get_initializer_name_set()
        replace(self.model.graph.initializer, lambda one: one.name not in names)
        replace(self.model.graph.input, lambda one: one.name not in names)

    def get_non_initializer_inputs(self) -> set[str]:
        """The names of inputs that have no constant."""
        return {one.name for one in self.model.graph.input} - self.get_initializer_name_set()

    def find_graph_input(self, input_name: str) -> ValueInfoProto | None:
        """The input of that name."""
        found: ValueInfoProto | None = find_by_name(input_name, self.model.graph.input)
        return found

    def find_graph_output(self, output_name: str) -> ValueInfoProto | None:
        """The output of that name."""
        found: ValueInfoProto | None = find_by_name(output_name, self.model.graph.output)
        return found

    def is_graph_input(self, tensor_name: str) -> bool:
        """Whether a value is an input."""
        return self.find_graph_input(tensor_name) is not None

    def is_graph_output(self, output_name: str) -> bool:
        """Whether a value is an output."""
        return self.find_graph_output(output_name) is not None

    def get_tensor_type(self, tensor_name: str) -> onnx.TypeProto.Tensor | None:
        """The type of a value, if it is known."""
        graph = self.model.graph
        found = find_by_name(tensor_name, (*graph.value_info, *graph.input, *graph.output))
        return None if found is None else found.type.tensor_type

    def get_constant_value(self, output_name: str) -> np.ndarray | None:
        """The elements of a constant, or of the output of a Constant node."""
        for node in self.model.graph.node:
            if node.op_type == "Constant" and node.output[0] == output_name:
                for attribute in node.attribute:
                    if attribute.name == "value":
                        return numpy_helper.to_array(attribute.t)
        tensor = self.get_initializer(output_name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def input_name_to_nodes(self) -> dict[str, list[NodeProto]]:
        """The readers of each value."""
        readers: dict[str, list[NodeProto]] = {}
        for node in self.model.graph.node:
            for name in node.input:
                if name:
                    readers.setdefault(name, []).append(node)
        return readers

    def output_name_to_node(self) -> dict[str, NodeProto]:
        """The producer of each value."""
        return {name: node for node in self.model.graph.node for name in node.output if name}

    def get_children(
        self, node: NodeProto, input_name_to_nodes: dict[str, list[NodeProto]] | None = None
    ) -> list[NodeProto]:
        """The readers of a node's outputs."""
        readers = self.input_name_to_nodes() if input_name_to_nodes is None else input_name_to_nodes
        return [reader for name in node.output for reader in readers.get(name, ())]

    def get_parents(
        self, node: NodeProto, output_name_to_node: dict[str, NodeProto] | None = None
    ) -> list[NodeProto]:
        """The producers of a node's inputs."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return [makers[name] for name in node.input if name in makers]

    def get_parent(
        self, node: NodeProto, idx: int, output_name_to_node: dict[str, NodeProto] | None = None
    ) -> NodeProto | None:
        """The producer of one of a node's inputs."""
        makers = self.output_name_to_node() if output_name_to_node is None else output_name_to_node
        return makers.get(node.input[idx]) if idx < len(node.input) else None

    def find_node_by_name(
        self, node_name: str, new_nodes_list: Iterable[NodeProto], graph: GraphProto
    ) -> NodeProto | None:
        """The node of that name, in the graph or among new ones."""
        found: NodeProto | None = find_by_name(node_name, (*graph.node, *new_nodes_list))
        return found

    def find_nodes_by_initializer(
        self, graph: GraphProto, initializer: TensorProto
    ) -> list[NodeProto]:
        """The readers of a constant."""
        return [node for node in graph.node if initializer.name in node.input]

    def get_largest_node_name_suffix(self, node_name_prefix: str) -> int:
        """The largest number after the prefix in names of nodes, or -1."""
        return largest_suffix(node_name_prefix, (one.name for one in self.nodes()))

    def get_largest_initializer_name_suffix(self, initializer_name_prefix: str) -> int:
        """The largest number after the prefix in names of constants, or -1."""
        return largest_suffix(initializer_name_prefix, (one.name for one in self.initializer()))

    @staticmethod
    def replace_node_input(node: NodeProto, old_input_name: str, new_input_name: str) -> None:
        """Lets a node read another value."""
        for index, name in enumerate(node.input):
            if name == old_input_name:
                node.input[index] = new_input_name

    @staticmethod
    def replace_node_output(node: NodeProto, old_output_name: str, new_output_name: str) -> None:
        """Gives an output of a node another name."""
        for index, name in enumerate(node.output):
            if name == old_output_name:
                node.output[index] = new_output_name

    def replace_input_of_all_nodes(self, old_input_name: str, new_input_name: str) -> None:
        """Lets all nodes read another value."""
        for node in self.nodes():
            self.replace_node_input(node, old_input_name, new_input_name)

    def replace_input_of_nodes(
        self, old_input_name: str, new_input_name: str, node_names_set: Collection[str]
    ) -> None:
        """Lets the nodes of some names read another value."""
        for node in self.nodes():
            if node.name in node_names_set:
                self.replace_node_input(node, old_input_name, new_input_name)

    def replace_output_of_all_nodes(self, old_output_name: str, new_output_name: str) -> None:
        """Renames a value where it is made."""
        for node in self.nodes():
            self.replace_node_output(node, old_output_name, new_output_name)

    def replace_output_of_nodes(
        self, old_output_name: str, new_output_name: str, node_names_set: Collection[str]
    ) -> None:
        """The same for nodes of some names."""
        for node in self.nodes():
            if node.name in node_names_set:
                self.replace_node_output(node, old_output_name, new_output_name)

    def replace_gemm_with_matmul(self) -> None:
        """Replaces Gemm without scaling by a product and a sum."""
        replace_gemm(self.model.graph)

    def remove_unused_constant(self) -> None:
        """Removes constants that are not read, also nodes that make some."""
        read = {name for node in self.nodes() for name in all_inputs(node)}
        read |= {one.name for one in self.model.graph.output}
        replace(
            self.model.graph.node,
            lambda node: node.op_type != "Constant" or node.output[0] in read,
        )
        self.clean_initializers()

    def clean_initializers(self) -> tuple[GraphProto, set[str]]:
        """Removes constants that are not read. Returns the graph, and names that no node makes."""
        missing = clean(self.model.graph)
        return self.model.graph, missing

    def topological_sort(self) -> None:
        """Sorts nodes after the producers of their inputs."""
        ordered = in_order(list(self.model.graph.node))
        del self.model.graph.node[:]
        self.model.graph.node.extend(ordered)

    def save_model_to_file(
        self, output_path: str | os.PathLike[str], use_external_data_format: bool = False
    ) -> None:
        """Writes the model with sorted nodes. Large models always have external data."""
        self.topological_sort()
        save(self.model, output_path, use_external_data_format)


def largest_suffix(prefix: str, names: Iterable[str]) -> int:
    """The largest number after the prefix, or -1."""
    rests = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return max((int(rest) for rest in rests if rest.isdecimal()), default=-1)


def clean(graph: GraphProto) -> set[str]:
    """Removes unread constants from a graph and its subgraphs. Returns names made elsewhere."""
    wanted = {name for node in graph.node for name in node.input if name}
    wanted |= {one.name for one in graph.output}
    for node in graph.node:
        for inner in inner_graphs(node):
            wanted |= clean(inner)
    unread = {one.name for one in graph.initializer} - wanted
    replace(graph.initializer, lambda one: one.name not in unread)
    replace(graph.input, lambda one: one.name not in unread)
    made = {name for node in graph.node for name in node.output}
    made |= {one.name for one in (*graph.initializer, *graph.input)}
    made |= {one.values.name for one in graph.sparse_initializer}
    return wanted - made
