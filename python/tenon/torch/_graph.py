"""Builds an ONNX graph from nodes of a traced PyTorch graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from . import _wire
from ._wire import ElementType

OPSET = 21
IR_VERSION = 10
CONTRIB = "com.microsoft"

# The types that regions compute in, and their ONNX counterparts.
TYPES = {
    torch.float32: ElementType.FLOAT,
    torch.float64: ElementType.DOUBLE,
    torch.bfloat16: ElementType.BFLOAT16,
    torch.float16: ElementType.FLOAT16,
    torch.int64: ElementType.INT64,
    torch.int32: ElementType.INT32,
    torch.bool: ElementType.BOOL,
}

# Those of constants, which are never narrower than what regions compute in.
_CONSTANT_TYPES: dict[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
}

# Types of values that are computed in a wider type: only inputs and outputs of regions have them.
# Values between operators are not rounded, as with PyTorch's own compiler.
_WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type in which regions compute values of a type."""
    return _WIDER.get(dtype, dtype)


class GraphBuilder:
    """An ONNX graph under construction. Values are known by the names of their PyTorch nodes."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        # The names of constants.
        self._constants: dict[tuple[bytes, tuple[int, ...], torch.dtype], str] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self._declared: list[bytes] = []
        self._names: dict[torch.fx.Node, Any] = {}
        self._transposed: dict[str, str] = {}
        self._count = 0
        self._opset = OPSET

    def new_name(self) -> str:
        """A name that no other value has."""
        self._count += 1
        return f"v{self._count}"

    def add_input(self, shape: Sequence[int], dtype: torch.dtype) -> str:
        """Declares an input."""
        name = self.new_name()
        self._inputs.append(_wire.value_info(name, TYPES[dtype], shape))
        return name

    def add_output(self, value: str, shape: Sequence[int], dtype: torch.dtype) -> str:
        """Declares an output that has a value, and returns its name."""
        name: str = self.op("Identity", self.cast(value, wide(dtype), dtype))
        self._outputs.append(_wire.value_info(name, TYPES[dtype], shape))
        return name

    def define(self, node: torch.fx.Node, names: Any) -> None:
        """Says which values a node has: a name, or a tuple of names and None."""
        self._names[node] = names

    def names_of(self, node: torch.fx.Node) -> Any:
        """What `define` got for the node."""
        return self._names[node]

    def op(
        self,
        op_type: str,
        *inputs: str,
        outputs: int | Sequence[bool] = 1,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """Adds an operator.

        outputs  how many it has, or for each whether it is wanted
        returns  the name of its output, or a tuple of several, None for one that is not wanted
        """
        wanted = [True] * outputs if isinstance(outputs, int) else outputs
        names = tuple(self.new_name() if one else None for one in wanted)
        written = [name or "" for name in names]
        self._nodes.append(_wire.node(op_type, inputs, written, domain, attributes))
        return names[0] if outputs == 1 else names

    def contrib(self, op_type: str, *inputs: str, **arguments: Any) -> Any:
        """Adds an operator of com.microsoft."""
        return self.op(op_type, *inputs, domain=CONTRIB, **arguments)

    def need_opset(self, opset: int) -> None:
        """Says that an operator is not in earlier versions of the standard."""
        self._opset = max(self._opset, opset)

    def declare(self, name: str, shape: Sequence[int], dtype: torch.dtype) -> str:
        """Declares the shape of an inner value, for operators that need it."""
        self._declared.append(_wire.value_info(name, TYPES[dtype], shape))
        return name

    def constant(self, value: Any, dtype: torch.dtype = torch.int64) -> str:
        """A constant. Equal ones are one."""
        array = np.asarray(value, _CONSTANT_TYPES[dtype])
        key = (array.tobytes(), array.shape, dtype)
        if key not in self._constants:
            self._constants[key] = self.new_name()
        return self._constants[key]

    def cast(self, name: str, source: torch.dtype, target: torch.dtype) -> str:
        """The value in another type."""
        return name if source == target else self.op("Cast", name, to=TYPES[target])

    def value(self, argument: Any, dtype: torch.dtype | None = None) -> str:
        """The value of an argument, a node or a number, in the type that is asked for."""
        if isinstance(argument, torch.fx.Node):
            source = wide(argument.meta["val"].dtype)
            return self.cast(self._names[argument], source, dtype or source)
        return self.constant(argument, dtype or torch.float32)

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The value in another shape."""
        reshaped: str = self.op("Reshape", name, self.constant(list(shape)), allowzero=1)
        return reshaped

    def expand(self, name: str, shape: Sequence[int]) -> str:
        """The value, broadcast to a shape."""
        expanded: str = self.op("Expand", name, self.constant(list(shape)))
        return expanded

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """The value with its axes in another order."""
        if list(order) == list(range(len(order))):
            return name
        *outer, last_but_one, last = order
        are_matrices = [*outer, last, last_but_one] == list(range(len(order)))
        if are_matrices and name in self._transposed:
            return self._transposed[name]
        transposed: str = self.op("Transpose", name, perm=list(order))
        if are_matrices:
            self._transposed[transposed] = name
        return transposed

    def before_transposition(self, name: str) -> str | None:
        """The matrices of which the value has the transposed ones; None if it is none."""
        return self._transposed.get(name)

    def model(self) -> bytes:
        """The serialized model."""
        constants = [
            _wire.tensor(name, TYPES[dtype], shape, content)
            for (content, shape, dtype), name in self._constants.items()
        ]
        graph = _wire.graph(
            "region", self._nodes, constants, self._inputs, self._outputs, self._declared
        )
        return _wire.model(graph, IR_VERSION, {"": self._opset, CONTRIB: 1})
