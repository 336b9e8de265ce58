"""Builds an ONNX graph from nodes of a traced PyTorch graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

OPSET = 21

# The types that regions compute in, and their ONNX counterparts.
TYPES = {
    torch.float32: TensorProto.FLOAT,
    torch.float64: TensorProto.DOUBLE,
    torch.int64: TensorProto.INT64,
    torch.int32: TensorProto.INT32,
    torch.bool: TensorProto.BOOL,
}


class GraphBuilder:
    """An ONNX graph under construction. Values are known by the names of their PyTorch nodes."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._names: dict[torch.fx.Node, Any] = {}
        self._count = 0

    def new_name(self) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"v{self._count}"

    def add_input(self, node: torch.fx.Node) -> str:
        """Declares the value of a placeholder as an input."""
        value, name = node.meta["val"], self.new_name()
        shape = [int(size) for size in value.shape]
        self._inputs.append(helper.make_tensor_value_info(name, TYPES[value.dtype], shape))
        self._names[node] = name
        return name

    def define(self, node: torch.fx.Node, names: Any) -> None:
        """Says which values a node has: a name, or a tuple of names and None."""
        self._names[node] = names

    def names_of(self, node: torch.fx.Node) -> Any:
        """What `define` got for the node."""
        return self._names[node]

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds an operator. Returns the name of its output, or a tuple of several."""
        names = tuple(self.new_name() for _ in range(outputs))
        self._nodes.append(helper.make_node(op_type, list(inputs), list(names), **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: torch.dtype = torch.int64) -> str:
        """Adds a constant."""
        array = np.asarray(value, helper.tensor_dtype_to_np_dtype(TYPES[dtype]))
        name = self.new_name()
        self._initializers.append(numpy_helper.from_array(array, name))
        return name

    def cast(self, name: str, source: torch.dtype, target: torch.dtype) -> str:
        """The value in another type."""
        return name if source == target else self.op("Cast", name, to=TYPES[target])

    def value(self, argument: Any, dtype: torch.dtype | None = None) -> str:
        """The value of an argument, a node or a number, in the type that is asked for."""
        if isinstance(argument, torch.fx.Node):
            source = argument.meta["val"].dtype
            return self.cast(self._names[argument], source, dtype or source)
        return self.constant(argument, dtype or torch.float32)

    def reshape(self, name: str, shape: Any) -> str:
        """The value in another shape."""
        return self.op("Reshape", name, self.constant([int(n) for n in shape]), allowzero=1)

    def model(self, outputs: list[torch.fx.Node]) -> tuple[bytes, list[str]]:
        """The serialized model, and the names of the outputs that it gives for the nodes."""
        names, infos = [], []
        for node in outputs:
            value = node.meta["val"]
            name = self.op("Identity", self._names[node])
            infos.append(helper.make_tensor_value_info(name, TYPES[value.dtype], list(value.shape)))
            names.append(name)
        graph = helper.make_graph(
            self._nodes, "region", self._inputs, infos, initializer=self._initializers
        )
        imports = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=10)
        return model.SerializeToString(), names
