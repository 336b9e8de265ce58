"""Infers the shapes of all values of a model, with names for sizes that are known only in a run.

On a command line: python -m tenon.tools.symbolic_shape_infer --input IN --output OUT
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from ._shape_rules import (
    MOST_ELEMENTS,
    RULES,
    Data,
    Node,
    Shape,
    Tensor,
    dims_of,
    infer_data,
    objects,
    to_proto,
)
from ._sizes import Size

INTEGERS: tuple[int, ...] = (TensorProto.INT32, TensorProto.INT64)
FLOATS: tuple[int, ...] = (TensorProto.FLOAT, TensorProto.DOUBLE)


class SymbolicShapeInference:
    """Inference by rules for names of sizes, and else by ONNX's schemas."""

    @staticmethod
    def infer_shapes(
        in_mp: ModelProto,
        int_max: int = 2**31 - 1,
        auto_merge: bool = False,
        guess_output_rank: bool = False,
        verbose: int = 0,
        prefix: str = "",
    ) -> ModelProto:
        """The model with inferred types and shapes. Raises for types that contradict.

        auto_merge   go on where ONNX's own inference finds a contradiction
        prefix       of the names of sizes of which nothing is known
        """
        model = ModelProto()
        model.CopyFrom(in_mp)
        walk = Walk(model, auto_merge, prefix)
        walk.infer(model.graph)
        return model


class Walk:
    """Infers one graph, and graphs within its nodes."""

    def __init__(self, model: ModelProto, auto_merge: bool, prefix: str) -> None:
        self.model, self.auto_merge, self.prefix = model, auto_merge, prefix
        self.opsets = {one.domain or "ai.onnx": one.version for one in model.opset_import}
        self.types: dict[str, TypeProto] = {}
        self.data: dict[str, Data] = {}
        self.tensors: dict[str, TensorProto] = {}
        self.sizes: dict[str, Size] = {}  # by their texts, which are names of dimensions
        self.functions = {(one.domain, one.name) for one in model.functions}

    def infer(self, graph: GraphProto) -> None:
        """Adds the types of the graph's values to it."""
        for tensor in graph.initializer:
            self._learn_constant(tensor.name, tensor)
        for value in graph.input:
            self.types[value.name] = value.type
        made: dict[str, TypeProto] = {}
        for node in graph.node:
            self._infer_node(node)
            made.update((name, self.types[name]) for name in node.output if name in self.types)
        for output in graph.output:
            inferred = self.types.get(output.name)
            if inferred is not None:
                output.type.CopyFrom(inferred)
        del graph.value_info[:]
        graph.value_info.extend(helper.make_value_info(*item) for item in made.items())

    def _learn_constant(self, name: str, tensor: TensorProto) -> None:
        self.types[name] = helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        self.tensors[name] = tensor
        if tensor.data_location == TensorProto.EXTERNAL or np.prod(tensor.dims) > MOST_ELEMENTS:
            return
        if tensor.data_type in INTEGERS:
            numbers = numpy_helper.to_array(tensor)
            self.data[name] = objects(numbers.reshape(-1).tolist(), numbers.shape)
        elif tensor.data_type in FLOATS:
            self.data[name] = numpy_helper.to_array(tensor).astype(np.float64)

    def _infer_node(self, proto: NodeProto) -> None:
        attributes = {one.name: helper.get_attribute_value(one) for one in proto.attribute}
        if proto.op_type == "Constant" and "value" in attributes:
            self._learn_constant(proto.output[0], attributes["value"])
            return
        node = Node(
            proto,
            attributes,
            [self._tensor(name) for name in proto.input],
            [self.data.get(name) for name in proto.input],
        )
        rule = RULES.get(proto.op_type)
        found = rule(node) if rule is not None and not self._is_function(proto) else None
        types: Iterable[TypeProto | None]
        if found is not None:
            types = [None if one is None else self._proto(one) for one in found]
        elif proto.op_type == "If":
            types = self._infer_if(proto, attributes)
        elif proto.op_type == "Loop":
            types = self._infer_loop(proto, attributes["body"])
        else:
            types = self._infer_by_schema(proto)
        for name, kind in zip(proto.output, types, strict=False):
            if name and kind is not None:
                self._set(name, kind)
        elements = infer_data(node)
        if elements is not None and elements.size <= MOST_ELEMENTS:
            self.data[proto.output[0]] = elements

    def _proto(self, tensor: Tensor) -> TypeProto:
        """The type as ONNX has it; its sizes are found again by their texts."""
        sizes = [size for size in tensor.shape or () if size is not None]
        self.sizes.update((str(size), size) for size in sizes if not isinstance(size, int))
        return to_proto(tensor)

    def _dims(self, kind: TypeProto) -> Shape | None:
        return dims_of(kind.tensor_type, self.sizes)

    def _is_function(self, proto: NodeProto) -> bool:
        return (proto.domain, proto.op_type) in self.functions

    def _set(self, name: str, kind: TypeProto) -> None:
        """Remembers a type, and names the sizes of which nothing is known."""
        mine = TypeProto()
        mine.CopyFrom(kind)
        if mine.HasField("tensor_type") and mine.tensor_type.HasField("shape"):
            for axis, dim in enumerate(mine.tensor_type.shape.dim):
                if dim.WhichOneof("value") is None:
                    dim.dim_param = f"{self.prefix}{name}_dim_{axis}"
        self.types[name] = mine

    def _tensor(self, name: str) -> Tensor | None:
        kind = self.types.get(name) if name else None
        if kind is None or not kind.HasField("tensor_type"):
            return None
        return Tensor(kind.tensor_type.elem_type, self._dims(kind))

    def _infer_by_schema(self, proto: NodeProto) -> list[TypeProto | None]:
        domain = proto.domain or "ai.onnx"
        version = self.opsets.get(domain, onnx.defs.onnx_opset_version())
        try:
            schema = onnx.defs.get_schema(proto.op_type, version, proto.domain)
        except onnx.defs.SchemaError:
            logging.info("nothing is known of %s '%s'", proto.op_type, proto.name)
            return []
        types = {name: self.types[name] for name in proto.input if name in self.types}
        constants = {name: self._constant(name) for name in proto.input}
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                proto,
                types,
                {name: one for name, one in constants.items() if one is not None},
                opset_imports=list(self.model.opset_import),
                ir_version=self.model.ir_version,
            )
        except onnx.shape_inference.InferenceError:
            if not self.auto_merge:
                raise
            return []
        return [found.get(name) for name in proto.output]

    def _constant(self, name: str) -> TensorProto | None:
        """The elements of a value, if all of them are numbers."""
        if name in self.tensors:
            return self.tensors[name]
        elements, kind = self.data.get(name), self.types.get(name)
        if elements is None or kind is None or elements.dtype != object:
            return None
        if not all(isinstance(one, int) for one in elements.reshape(-1)):
            return None
        numbers: Any = elements.astype(helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
        return numpy_helper.from_array(numbers, name)

    def _infer_if(self, proto: NodeProto, attributes: dict[str, Any]) -> list[TypeProto | None]:
        types: list[TypeProto | None] = []
        branches = [self._inner(attributes[name]) for name in ("then_branch", "else_branch")]
        for name, kinds in zip(proto.output, zip(*branches, strict=True), strict=True):
            types.append(self._merged(proto, name, *kinds))
        return types

    def _merged(
        self, proto: NodeProto, name: str, a: TypeProto | None, b: TypeProto | None
    ) -> TypeProto | None:
        """The type of a result that has either type."""
        if a is None or b is None or not (a.HasField("tensor_type") and b.HasField("tensor_type")):
            return a
        kinds = [one.tensor_type.elem_type for one in (a, b)]
        if kinds[0] != kinds[1]:
            texts = " and ".join(map(TensorProto.DataType.Name, kinds))
            raise ValueError(f"{proto.op_type} '{proto.name}': the types of '{name}' are {texts}")
        return to_proto(Tensor(kinds[0], common(self._dims(a), self._dims(b))))

    def _infer_loop(self, proto: NodeProto, body: GraphProto) -> list[TypeProto | None]:
        """The state keeps its type; what is scanned gets an axis."""
        carried = list(proto.input)[2:]
        for value, name in zip(body.input[2:], carried, strict=True):
            kind = self._tensor(name)
            if kind is not None and not value.type.tensor_type.HasField("shape"):
                shape: Shape | None = None  # later iterations may have others
                value.type.CopyFrom(to_proto(Tensor(kind.kind, shape)))
        results = self._inner(body)[1:]
        types = results[: len(carried)]
        for kind in results[len(carried) :]:
            if kind is None or not kind.HasField("tensor_type"):
                types.append(None)
                continue
            dims = self._dims(kind)
            shape = None if dims is None else [None, *dims]
            types.append(self._proto(Tensor(kind.tensor_type.elem_type, shape)))
        return types

    def _inner(self, graph: GraphProto) -> list[TypeProto | None]:
        """The types of a body's outputs; its own values are not seen outside."""
        outer = (dict(self.types), dict(self.data), dict(self.tensors))
        self.infer(graph)
        kinds = [self.types.get(output.name) for output in graph.output]
        self.types, self.data, self.tensors = outer
        return kinds


def common(a: Shape | None, b: Shape | None) -> Shape | None:
    """What is equal in two shapes."""
    if a is None or b is None or len(a) != len(b):
        return None
    return [x if x == y else None for x, y in zip(a, b, strict=True)]


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True, help="the model")
    parser.add_argument("--output", required=True, help="where the result goes")
    parser.add_argument("--auto_merge", action="store_true", help="go on where shapes contradict")
    parser.add_argument("--int_max", type=int, default=2**31 - 1, help="accepted")
    parser.add_argument("--guess_output_rank", action="store_true", help="accepted")
    parser.add_argument("--verbose", type=int, default=0, help="accepted")
    arguments = parser.parse_args()
    model = SymbolicShapeInference.infer_shapes(
        onnx.load(arguments.input), arguments.int_max, arguments.auto_merge
    )
    onnx.save(model, arguments.output)


if __name__ == "__main__":
    main()
