"""A graph whose operators are replaced, one after another, by integer operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper

from ._graph import Graph, all_inputs, inner_graphs
from ._names import (
    TENSOR_NAME_QUANT_SUFFIX,
    add_dequant_suffix,
    add_quant_suffix,
)
from ._scales import (
    Scale,
    add_scale,
    quantized_bias,
    scale_of_constant,
    scale_wide_enough,
)
from ._settings import Settings
from ._tensors import quantize_onnx_initializer, tensor_of, tensor_proto_to_array
from ._types import FLOATS

if TYPE_CHECKING:
    from .tensor_quant_overrides import TensorQuantOverridesHelper

# Replaces a node, and says whether it has.
Rule = Callable[["Rewriter", NodeProto], bool]


@dataclass
class Quantized:
    """Names of a quantized value or constant, its scale and its zero point."""

    name: str
    scale: str
    zero_point: str
    axis: int | None = None  # of a constant with a scale for each of its indices
    is_rearranged: bool = False  # a constant's integers have another order than its numbers

    @property
    def names(self) -> list[str]:
        """All three names, which most operators take."""
        return [self.name, self.scale, self.zero_point]


@dataclass
class Plan:
    """The settings for a model and its subgraphs."""

    settings: Settings
    overrides: TensorQuantOverridesHelper
    opset_version: int
    is_static: bool  # values are quantized only by ranges that are known ahead
    rules: Mapping[str, Rule]
    scales: Mapping[str, Scale] = field(default_factory=dict)  # of values with such ranges
    saturates: Callable[[NodeProto, int, tuple[float, float]], bool] | None = None


class Rewriter:
    """Takes the nodes of a graph in order.

    values   quantized values and constants, by the name of what they stand for
    numbers  values that are available as numbers
    assumed  element types that are assumed where they are unknown
    result   the new nodes
    """

    def __init__(self, graph: Graph, plan: Plan, parent: Rewriter | None = None) -> None:
        self.graph = graph
        self.plan = plan
        self.settings = plan.settings
        self.parent = parent
        self.result: list[NodeProto] = []
        self.values: dict[str, Quantized] = {}
        self.numbers = set(graph.initializers) | {one.name for one in graph.graph.input}
        self.assumed: dict[str, int] = {}

    def rewrite(self) -> None:
        """Replaces all nodes that can be replaced; the others read and write numbers."""
        for node in self.graph.nodes:
            if self.settings.option("EnableSubgraph"):
                for inner in inner_graphs(node):
                    Rewriter(Graph(inner), self.plan, self).rewrite()
            rule = self.plan.rules.get(node.op_type)
            if rule is None or not self.settings.takes(node) or not rule(self, node):
                self.keep(node)
        for name in self.graph.outputs:
            self.number(name)
        self._store_constants_once()
        self.graph.finish(self.result)

    def _store_constants_once(self) -> None:
        """Makes numbers from the integers of quantized constants whose numbers are read, too."""
        read = {name for node in self.result for name in all_inputs(node)} | self.graph.outputs
        for name, value in self.values.items():
            is_read = name in read and name in self.graph.initializers
            has_axes = value.axis is None or self.plan.opset_version >= 13
            if is_read and has_axes and not value.is_rearranged:
                kind = self.kind(name)
                del self.graph.initializers[name]
                self._dequantize(name, kind)

    def owner(self, name: str) -> Rewriter:
        """The graph that has a value or constant: this graph or one around it."""
        graph = self.graph
        here = (graph.initializers, graph.producers, graph.values)
        is_here = self.parent is None or any(name in names for names in here)
        return self if is_here or self.parent is None else self.parent.owner(name)

    def kind(self, name: str) -> int | None:
        """The element type of a value or constant, if it is known or assumed."""
        owner = self.owner(name)
        found = owner.graph.kind(name) or owner.assumed.get(name)
        found = found or self.settings.option("DefaultTensorType")
        return None if found is None else int(found)

    def assume(self, name: str, like: str) -> None:
        """Assumes that a value of unknown type has the type of another one."""
        kind = self.kind(like)
        if self.kind(name) is None and kind is not None:
            self.owner(name).assumed[name] = kind

    def is_float(self, name: str) -> bool:
        """Whether its numbers can be quantized."""
        return self.kind(name) in FLOATS

    def rank(self, name: str) -> int | None:
        """The rank of a value or constant, if it is known."""
        graph = self.owner(name).graph
        if name in graph.initializers:
            return len(graph.initializers[name].dims)
        kind = graph.values[name].type.tensor_type if name in graph.values else None
        return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else None

    def constant(self, name: str) -> TensorProto | None:
        """The constant of that name, if its numbers can be quantized."""
        graph = self.owner(name).graph
        return graph.initializers[name] if graph.is_float_constant(name) else None

    def present(self, name: str) -> Quantized | None:
        """A value that is quantized already, other than a constant."""
        owner = self.owner(name)
        return None if name in owner.graph.initializers else owner.values.get(name)

    def activation(self, name: str) -> Quantized | None:
        """A quantized value, or a constant with the type of values; None if that is impossible."""
        owner = self.owner(name)
        if name not in owner.values:
            if owner.constant(name) is not None:
                return owner.constant_of(name, self.settings.activation_type, None, False)
            made = owner.quantize_value(name)
            if made is None:
                return None
            owner.values[name] = made
        return owner.values[name]

    def weight(self, name: str, axis: int | None, kind: int | None = None) -> Quantized | None:
        """A quantized weight. With an axis, each of its indices has its own scale."""
        if self.constant(name) is None:
            return self.activation(name)
        kind = self.settings.weight_type if kind is None else kind
        return self.owner(name).constant_of(name, kind, axis, self.settings.reduce_range)

    def constant_of(self, name: str, kind: int, axis: int | None, reduce: bool) -> Quantized:
        """A quantized constant of this graph."""
        if name not in self.values:
            scale = self.constant_scale(name, kind, axis, reduce)
            names = add_scale(self.graph, name, scale)
            self._store(name, scale)
            self.values[name] = Quantized(name + TENSOR_NAME_QUANT_SUFFIX, *names, scale.axis)
        return self.values[name]

    def constant_scale(self, name: str, kind: int, axis: int | None, reduce: bool) -> Scale:
        """The scale of a quantized constant."""
        settings = self.settings
        overrides = self.plan.overrides.get(name) or ()
        quant_type = overrides[0].get("quant_type") if overrides else None
        kind = kind if quant_type is None else quant_type.tensor_type
        is_weight = kind == settings.weight_type or axis is not None
        symmetric = (
            settings.symmetric_weights(kind) if is_weight else settings.symmetric_activations
        )
        tensor = self.graph.initializers[name]
        scale = scale_of_constant(settings, tensor, kind, symmetric, axis, reduce, overrides)
        scale.scale = scale.scale.astype(np.float32)  # the only types that integer operators take
        return scale

    def _store(self, name: str, scale: Scale) -> None:
        integers = quantize_onnx_initializer(
            self.graph.initializers[name], scale.kind, scale.zero_point, scale.scale, scale.axis
        )
        self.graph.initializers[integers.name] = integers

    def quantize_value(self, name: str) -> Quantized | None:
        """Adds nodes that quantize a value of this graph, by its range known ahead or of a run."""
        if name in self.plan.scales:
            names = add_scale(self.graph, name, self.plan.scales[name])
            result = Quantized(name + TENSOR_NAME_QUANT_SUFFIX, *names)
            inputs = [self.as_float32(name), *names]
            self.add("QuantizeLinear", inputs, [result.name], add_quant_suffix(name))
            return result
        if self.plan.is_static or not self.is_float(name):
            return None
        return self.quantize_in_run(name)

    def quantize_in_run(self, name: str) -> Quantized:
        """The same by the value's range in each run."""
        result = Quantized(f"{name}_quantized", f"{name}_scale", f"{name}_zero_point")
        source = self.as_float32(name)
        if self.settings.activation_type == TensorProto.UINT8:
            self.add("DynamicQuantizeLinear", [source], result.names, add_quant_suffix(name))
            return result
        if self.settings.activation_type != TensorProto.INT8:
            kind = TensorProto.DataType.Name(self.settings.activation_type)
            raise ValueError(f"values of ranges of a run: expected UINT8 or INT8, got {kind}")
        self.graph.add_constant(tensor_of(np.zeros((), np.int8), result.zero_point))
        steps = self.graph.add_constant(tensor_of(np.float32(127), "tenon_int8_steps"))
        distance, farthest = f"{name}_Abs", f"{name}_Abs_Max"
        self.add("Abs", [source], [distance], distance)
        self.add("ReduceMax", [distance], [farthest], farthest, keepdims=0)
        self.add("Div", [farthest, steps], [result.scale], f"{name}_scale_Div")
        inputs = [source, result.scale, result.zero_point]
        self.add("QuantizeLinear", inputs, [result.name], add_quant_suffix(name))
        return result

    def as_float32(self, name: str) -> str:
        """A value of this graph as float32 numbers."""
        if self.kind(name) in (None, TensorProto.FLOAT):
            return name
        wide = f"{name}_float"
        return self.add("Cast", [name], [wide], f"{wide}_Cast", to=TensorProto.FLOAT)

    def made(self, name: str, scale: Scale | None = None) -> Quantized | None:
        """The quantization of a new node's output. None: its range is unknown."""
        scale = self.plan.scales.get(name) if scale is None else scale
        if scale is None:
            return None
        return Quantized(name + TENSOR_NAME_QUANT_SUFFIX, *add_scale(self.graph, name, scale))

    def scale_of(self, value: Quantized) -> Scale | None:
        """The numbers of a scale, if they are constants."""
        graph = self.owner(value.scale).graph
        scale, zero = graph.constant(value.scale), graph.constant(value.zero_point)
        kind = graph.kind(value.zero_point)
        if scale is None or zero is None or kind is None:
            return None
        return Scale(zero, scale, kind, value.axis)

    def bias(
        self, name: str, node: NodeProto, value: Quantized, weight: Quantized, factor: float = 1.0
    ) -> str | None:
        """A bias times a factor as sums of products. None: it is not a constant."""
        tensor, scale = self.constant(name), self.scale_of(value)
        if tensor is None or scale is None:
            return None
        numbers = tensor_proto_to_array(tensor)
        weight_scale = self._widened(node.input[1], weight, scale.scale, numbers * factor)
        if weight_scale is None:
            return None
        sums, _, _ = quantized_bias(numbers, scale.scale, weight_scale, factor)
        stored = tensor_of(sums, name + TENSOR_NAME_QUANT_SUFFIX)
        if stored.name in self.graph.initializers:  # another node adds it with another scale
            stored.name = f"{name}_{node.name}{TENSOR_NAME_QUANT_SUFFIX}"
        return self.graph.add_constant(stored)

    def _widened(
        self, name: str, weight: Quantized, value_scale: np.ndarray, bias: np.ndarray
    ) -> np.ndarray | None:
        """The scale of a weight, made large enough for a bias if no other node reads the weight."""
        scale = self.scale_of(weight)
        if scale is None:
            return None
        is_ours = name in self.graph.initializers and self.graph.readers.get(name, [])[1:] == []
        if scale.kind != TensorProto.INT8 or np.any(scale.zero_point) or not is_ours:
            return scale.scale
        widened = scale_wide_enough(value_scale, scale.scale, bias)
        if np.any(widened != scale.scale):
            scale.scale = widened
            self.graph.initializers[weight.scale] = tensor_of(widened, weight.scale)
            self._store(name, scale)
        return widened

    def add(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        name: str,
        domain: str = "",
        copied: Iterable[onnx.AttributeProto] = (),
        **attributes: Any,
    ) -> str:
        """Adds a node, with the attributes of another one. Returns its first output."""
        node = helper.make_node(op_type, inputs, outputs, name=name, domain=domain, **attributes)
        node.attribute.extend(copied)
        self.result.append(node)
        return outputs[0]

    def replace(
        self,
        node: NodeProto,
        op_type: str,
        inputs: Sequence[str],
        output: Quantized,
        domain: str = "",
        without: Sequence[str] = (),
        **attributes: Any,
    ) -> bool:
        """Adds the integer counterpart of a node, which makes a quantized value."""
        copied = [one for one in node.attribute if one.name not in without]
        name = f"{node.name}_quant" if node.name else ""
        self.add(op_type, inputs, [output.name], name, domain, copied, **attributes)
        self.values[node.output[0]] = output
        return True

    def keep(self, node: NodeProto) -> None:
        """Keeps a node, and provides the numbers that it and its subgraphs read."""
        for name in node.input:
            self.number(name)
        for inner in inner_graphs(node):
            for name in _read_from_outside(inner):
                self.number(name)
        self.result.append(node)
        self.numbers.update(node.output)

    def number(self, name: str) -> None:
        """Ensures that a value of this graph or one around it is available as numbers."""
        owner = self.owner(name)
        if name not in owner.numbers and name in owner.values:
            owner._dequantize(name, owner.kind(name))

    def _dequantize(self, name: str, kind: int | None) -> None:
        """Adds nodes that make numbers of that type from a quantized value of this graph."""
        value = self.values[name]
        more: dict[str, Any] = {}
        if value.axis is not None:
            last = len(self.graph.initializers[value.name].dims) - 1
            more["axis"] = -1 if value.axis == last else value.axis  # as onnxruntime writes it
        is_wide = kind in (None, TensorProto.FLOAT)
        wide = name if is_wide else f"{name}_dequantized"
        self.add("DequantizeLinear", value.names, [wide], add_dequant_suffix(name), **more)
        if not is_wide:
            self.add("Cast", [wide], [name], f"{wide}_Cast", to=kind)
        self.numbers.add(name)


def _read_from_outside(graph: onnx.GraphProto) -> set[str]:
    """The values that a graph reads and does not make."""
    inside = Graph(graph)
    read = {name for node in graph.node for name in node.input}
    for node in graph.node:
        for inner in inner_graphs(node):
            read |= _read_from_outside(inner)
    return (
        (read | inside.outputs)
        - inside.producers.keys()
        - {one.name for one in (*graph.input, *graph.initializer)}
    )
