"""Blocks that add one node, one constant or one input to the model."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ._graph import find_type, type_of
from .model_accessor import current_accessor

__all__ = [
    "Abs",
    "Add",
    "Block",
    "Cast",
    "Clip",
    "Constant",
    "Div",
    "InputLike",
    "LabelEncoder",
    "Linear",
    "Log",
    "Mul",
    "Neg",
    "PassThrough",
    "Pow",
    "ReduceAllL2",
    "ReduceMean",
    "ReduceSum",
    "SequenceConstruct",
    "Sigmoid",
    "Sub",
]


def _check(model: onnx.ModelProto) -> None:
    """Checks the model. Its nodes of onnxruntime's one operator in the standard's domain that
    exporters write, which the package onnx does not know, are left to sessions."""
    added = [node for node in model.graph.node if node.op_type == "SimplifiedLayerNormalization"]
    domains = [node.domain for node in added]
    for node in added:
        node.domain = "com.microsoft"
    imports = onnx.ModelProto(opset_import=model.opset_import)
    if added and all(opset.domain != "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    try:
        onnx.checker.check_model(model, full_check=True)
    finally:
        for node, domain in zip(added, domains, strict=True):
            node.domain = domain
        del model.opset_import[:]
        model.opset_import.extend(imports.opset_import)


class Block(ABC):
    """A part of a model. A subclass says in ``build`` what a call adds.

    ``build`` gets names of values and returns those of its results. It calls other blocks, or
    changes ``self.base``, the model under construction.
    """

    base: onnx.ModelProto

    def __init__(self, temp_file_name: str = "temp.onnx") -> None:
        # onnxruntime keeps large models in a file of this name; blocks here write no files.
        if os.path.isabs(temp_file_name):
            raise RuntimeError(f"temp_file_name: expected a relative path, got {temp_file_name!r}")

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the block to ``self.base``, and returns the names of its results."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Builds the block. The model is checked when the outermost block is complete."""
        accessor = current_accessor()
        self.base = accessor.model
        accessor.depth += 1
        try:
            output = self.build(*args, **kwargs)
            if accessor.depth == 1:
                _check(self.base)
        finally:
            accessor.depth -= 1
        return output

    def infer_shapes_on_base(self) -> onnx.ModelProto:
        """A copy of the model with the types and shapes of its values."""
        return onnx.shape_inference.infer_shapes(self.base)

    def _type_of(self, name: str) -> onnx.ValueInfoProto:
        """A value's type. Raises LookupError if it is not known."""
        known = find_type(self.base, name)
        return known or type_of(self.infer_shapes_on_base(), name)

    def _node(
        self,
        op_type: str,
        inputs: Sequence[str],
        domain: str = "",
        token: str | None = None,
        **attributes: Any,
    ) -> str:
        """Adds a node, and returns the name of its output: `token` with a number."""
        accessor = current_accessor()
        output = accessor.new_name(token or f"{op_type.lower()}_output")
        node = helper.make_node(
            op_type,
            inputs,
            [output],
            name=accessor.new_name(op_type),
            domain=domain,
            **attributes,
        )
        self.base.graph.node.append(node)
        return output

    def _constant(self, array: np.ndarray, token: str) -> str:
        """Adds an initializer, and returns its name."""
        name = current_accessor().new_name(token)
        self.base.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name


class _BinaryOp(Block):
    op_type: str

    def build(self, input_name1: str, input_name2: str) -> str:
        return self._node(self.op_type, [input_name1, input_name2])


class Add(_BinaryOp):
    """The sum of two values."""

    op_type = "Add"


class Sub(_BinaryOp):
    """The first value less the second."""

    op_type = "Sub"


class Mul(_BinaryOp):
    """The product of two values."""

    op_type = "Mul"


class Div(_BinaryOp):
    """The first value divided by the second."""

    op_type = "Div"


class Pow(Block):
    """A value to the power of a number."""

    def __init__(self, exponent: float) -> None:
        super().__init__()
        self._exponent = exponent

    def build(self, pow_input_name: str) -> str:
        exponent = self._constant(np.array([self._exponent], np.float32), "pow_exponent")
        return self._node("Pow", [pow_input_name, exponent])


class _UnaryOp(Block):
    op_type: str

    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self._attributes = attributes

    def build(self, input_name: str) -> str:
        return self._node(self.op_type, [input_name], **self._attributes)


class _Reduction(_UnaryOp):
    def __init__(self, keepdims: bool = True) -> None:
        super().__init__(keepdims=int(keepdims))


class ReduceMean(_Reduction):
    """The mean of all elements."""

    op_type = "ReduceMean"


class ReduceSum(_Reduction):
    """The sum of all elements."""

    op_type = "ReduceSum"


class Sigmoid(_UnaryOp):
    """The logistic function of each element."""

    op_type = "Sigmoid"


class Log(_UnaryOp):
    """The logarithm of each element."""

    op_type = "Log"


class Neg(_UnaryOp):
    """Each element with the other sign."""

    op_type = "Neg"


class Abs(_UnaryOp):
    """The magnitude of each element."""

    op_type = "Abs"


class Constant(Block):
    """A float constant of shape [1]."""

    def __init__(self, value_float: float) -> None:
        super().__init__()
        self._value = value_float

    def build(self) -> str:
        return self._constant(np.array([self._value], np.float32), "initializer")


class SequenceConstruct(Block):
    """A sequence of tensors."""

    def build(self, *sequence_input_names: str) -> str:
        return self._node("SequenceConstruct", sequence_input_names)


class ReduceAllL2(Block):
    """The Euclidean norm of several tensors together: ReduceAllL2 of com.microsoft."""

    def build(self, *reduce_node_input_names: str) -> str:
        output = self._node("ReduceAllL2", reduce_node_input_names, "com.microsoft")
        type_ = helper.make_tensor_value_info(output, TensorProto.FLOAT, [1])
        self.base.graph.value_info.append(type_)
        return output


class Clip(Block):
    """Each element, at least `clip_min` and at most `clip_max`; None is no bound."""

    def __init__(self, clip_min: float | None = None, clip_max: float | None = None) -> None:
        super().__init__()
        self._bounds = {"clip_min": clip_min, "clip_max": clip_max}

    def build(self, clip_input_name: str) -> str:
        bounds = [
            "" if bound is None else self._constant(np.array(bound, np.float32), token)
            for token, bound in self._bounds.items()
        ]
        return self._node("Clip", [clip_input_name, *bounds])


class PassThrough(Block):
    """Adds nothing, and returns the names as they are."""

    def build(self, *input_names: str) -> tuple[str, ...]:
        return input_names


class InputLike(Block):
    """A new graph input with the type of the value `like`."""

    def __init__(self, like: str) -> None:
        super().__init__()
        self._like = like

    def build(self, input_name: str | None = None) -> str:
        like = self._type_of(self._like)
        name = input_name or current_accessor().new_name("input")
        value = self.base.graph.input.add()
        value.CopyFrom(like)
        value.name = name
        return name


class LabelEncoder(Block):
    """Each element's value by its key: LabelEncoder of ai.onnx.ml. The model must import that."""

    def __init__(
        self,
        default_float: float = 0.0,
        default_int64: int = -1,
        default_string: str = "_Unused",
        keys_floats: list[float] | None = None,
        keys_int64s: list[int] | None = None,
        keys_strings: list[str] | None = None,
        values_floats: list[float] | None = None,
        values_int64s: list[int] | None = None,
        values_strings: list[str] | None = None,
    ) -> None:
        super().__init__()
        self._attributes = {
            "default_float": float(default_float),
            "default_int64": default_int64,
            "default_string": default_string,
            "keys_floats": keys_floats and [float(key) for key in keys_floats],
            "keys_int64s": keys_int64s,
            "keys_strings": keys_strings,
            "values_floats": values_floats and [float(value) for value in values_floats],
            "values_int64s": values_int64s,
            "values_strings": values_strings,
        }

    def build(self, label_encoder_input_name: str) -> str:
        return self._node(
            "LabelEncoder",
            [label_encoder_input_name],
            "ai.onnx.ml",
            "label_encoder.output",
            **self._attributes,
        )


class Cast(Block):
    """Each element in another type, a number of ``onnx.TensorProto.DataType``."""

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    def build(self, cast_input_name: str) -> str:
        return self._node("Cast", [cast_input_name], token="cast.output", to=self._to)


class Linear(Block):
    """A dense layer, alpha x W + beta b, of random float weights [in_features, out_features]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        alpha: float = 1.0,
        beta: float = 1.0,
    ) -> None:
        super().__init__()
        self._sizes = (in_features, out_features)
        self._has_bias = bias
        self._factors: dict[str, Any] = {"alpha": alpha, "beta": beta}

    def build(self, linear_input_name: str) -> str:
        weight = np.random.randn(*self._sizes).astype(np.float32)
        inputs = [linear_input_name, self._constant(weight, "linear.weight")]
        if self._has_bias:
            bias = np.random.randn(self._sizes[1]).astype(np.float32)
            inputs.append(self._constant(bias, "linear.bias"))
        return self._node("Gemm", inputs, token="linear.output", **self._factors)
