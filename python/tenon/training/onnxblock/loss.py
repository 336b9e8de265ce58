"""Losses: blocks on top of a model's output that compare it with what it should be.

``build`` of each takes the name of the output and that of the graph input to compare it with, which
is added to the graph unless it is there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import TensorProto, ValueInfoProto, helper

from ._graph import is_value
from .blocks import Block, InputLike
from .model_accessor import current_accessor

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "L1Loss", "MSELoss"]

REDUCTIONS = ("mean", "sum", "none")


class _Loss(Block):
    """A loss that is reduced to its mean or its sum, or not at all."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise RuntimeError(f"reduction: expected one of {REDUCTIONS}, got {reduction!r}")
        self._reduction = reduction

    def _reduce(self, name: str) -> str:
        if self._reduction == "none":
            return name
        op_type = {"mean": "ReduceMean", "sum": "ReduceSum"}[self._reduction]
        return self._node(op_type, [name], keepdims=0)

    def _ensure_target(self, output_name: str, target_name: str) -> None:
        if not is_value(self.base, target_name):
            InputLike(output_name)(target_name)

    def _weights(self, weights: ArrayLike, like: str, token: str) -> str:
        """A constant of the element type of the value `like`."""
        dtype = helper.tensor_dtype_to_np_dtype(self._type_of(like).type.tensor_type.elem_type)
        return self._constant(np.asarray(weights).astype(dtype), token)


class MSELoss(_Loss):
    """The square of the difference."""

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        self._ensure_target(loss_input_name, target_name)
        difference = self._node("Sub", [loss_input_name, target_name])
        return self._reduce(self._node("Mul", [difference, difference]))


class L1Loss(_Loss):
    """The magnitude of the difference."""

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        self._ensure_target(loss_input_name, target_name)
        return self._reduce(self._node("Abs", [self._node("Sub", [loss_input_name, target_name])]))


class BCEWithLogitsLoss(_Loss):
    """The binary cross entropy of sigmoid(x) and the target t, for logits x of any size.

    weight      factors of the losses, broadcast to them
    pos_weight  factors of the part of the losses in which t is 1, broadcast to them
    """

    def __init__(
        self,
        weight: ArrayLike | None = None,
        reduction: str = "mean",
        pos_weight: ArrayLike | None = None,
    ) -> None:
        super().__init__(reduction)
        self._weight = weight
        self._pos_weight = pos_weight

    def build(self, loss_input_name: str, target_name: str = "target") -> str:
        self._ensure_target(loss_input_name, target_name)
        x, t = loss_input_name, target_name
        # With p the weight of positives, -p t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) is
        # x - x t + (1 + (p - 1) t) softplus(-x).
        softplus = self._softplus_of_negative(x)
        if self._pos_weight is not None:
            one = self._weights(1, x, "bceloss.one")
            excess = np.asarray(self._pos_weight, np.float64) - 1
            positives = self._node("Mul", [self._weights(excess, x, "bceloss.pos_weight"), t])
            softplus = self._node("Mul", [self._node("Add", [one, positives]), softplus])
        negatives = self._node("Sub", [x, self._node("Mul", [x, t])])
        loss = self._node("Add", [negatives, softplus])
        if self._weight is not None:
            loss = self._node("Mul", [self._weights(self._weight, x, "bceloss.weight"), loss])
        return self._reduce(loss)

    def _softplus_of_negative(self, x: str) -> str:
        """log(1 + exp(-x)) as m + log(exp(-m) + exp(-x - m)) with m = max(-x, 0): no exponent is
        above 0, and the derivative is right at 0 whatever that of the maximum is there."""
        negative = self._node("Neg", [x])
        m = self._node("Relu", [negative])
        first = self._node("Exp", [self._node("Neg", [m])])
        second = self._node("Exp", [self._node("Sub", [negative, m])])
        return self._node("Add", [m, self._node("Log", [self._node("Add", [first, second])])])


class CrossEntropyLoss(_Loss):
    """The cross entropy of softmax(scores) and a class number for each example.

    weight        factors of the losses by class
    ignore_index  a label whose examples do not count

    If the labels are added to the graph, they are int64, and the scores' last axis is that of the
    classes. If they are there, the axes are those of SoftmaxCrossEntropyLoss: classes on axis 1.
    """

    def __init__(
        self,
        weight: ArrayLike | None = None,
        reduction: str = "mean",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(reduction)
        self._weight = weight
        self._ignore_index = ignore_index

    def build(self, scores_input_name: str, labels_name: str = "labels") -> str:
        scores = scores_input_name
        if not is_value(self.base, labels_name):
            scores = self._add_labels(scores_input_name, labels_name)
        inputs = [scores, labels_name]
        if self._weight is not None:
            inputs.append(self._weights(self._weight, scores_input_name, "celoss.weight"))
        accessor = current_accessor()
        outputs = [accessor.new_name("loss"), accessor.new_name("log_prob")]
        attributes: dict[str, Any] = {"reduction": self._reduction}
        if self._ignore_index is not None:
            attributes["ignore_index"] = self._ignore_index
        name = accessor.new_name("SoftmaxCrossEntropyLoss")
        node = helper.make_node("SoftmaxCrossEntropyLoss", inputs, outputs, name=name, **attributes)
        self.base.graph.node.append(node)
        return outputs[0]

    def _add_labels(self, scores: str, labels: str) -> str:
        """Adds the graph input, and returns the scores with their classes on axis 1."""
        value = ValueInfoProto()
        value.CopyFrom(self._type_of(scores))
        value.name = labels
        type_ = value.type.tensor_type
        type_.elem_type = TensorProto.INT64
        rank = len(type_.shape.dim)
        if type_.HasField("shape"):
            if rank < 2:
                raise RuntimeError(
                    f"CrossEntropyLoss: the scores {scores!r}: expected at least 2 axes, the last "
                    f"of them for the classes, got {rank}"
                )
            del type_.shape.dim[-1]
        self.base.graph.input.append(value)
        if rank <= 2:
            return scores
        return self._node("Transpose", [scores], perm=[0, rank - 1, *range(1, rank - 1)])
