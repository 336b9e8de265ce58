"""Computes a cross entropy a few rows of scores at a time, forward and backward.

Where the classes are many, such as the tokens of a vocabulary, the scores are the largest values of
a training step. Where they are a product of the hidden state and of weights that are not trained,
parts of the rows are multiplied, compared with their labels and differentiated one after the other,
so that only the scores of one part are in memory.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ._graph import after, find_type, nodes_above, reads_of, set_nodes

PARTS = 8
FEWEST_ROWS = 32  # of a part: fewer take as long to multiply, as the weights are read for each part
# Scores of fewer classes are not large.
FEWEST_CLASSES = 4096
PRODUCTS = ("MatMul", "Gemm", "MatMulNBits")
# Of the scores by numbers, or by one for each class.
ROWWISE = ("Add", "Sub", "Mul", "Div", "Tanh", "Identity")
# What only moves gradients.
MOVES = ("Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten")


@dataclasses.dataclass
class Parts:
    """The parts of a loss."""

    loss: str
    hidden: str  # the rows of all
    rows: list[str]
    log_probabilities: list[str]
    products: list[str]  # the names of the nodes


def split_loss(
    model: ModelProto, loss: str, results: Iterable[str], trained: Iterable[str]
) -> Parts | None:
    """Divides the rows of which the loss is made, if it is a cross entropy of such a product."""
    found = _Head.find(model, loss, set(results), set(trained))
    return found.divided() if found else None


def run_in_turn(model: ModelProto, parts: Parts) -> None:
    """Lets each part begin when the gradient of the one before is there. `model` has gradients."""
    _start_at_once(model, parts.loss)
    _share_transpositions(model)
    nodes = list(model.graph.node)
    readers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def ends(name: str) -> list[str]:
        """What is computed of a value, beside views of it."""
        found: list[str] = []
        for node in readers.get(name, []):
            moves = node.op_type in MOVES
            found += ends(node.output[0]) if moves else [node.output[0]]
        return found

    by_name = {node.name: node for node in nodes}
    for i in range(1, len(parts.rows)):
        gradients = [
            node.output[0]
            for node in readers.get(parts.log_probabilities[i - 1], [])
            if node.op_type == "SoftmaxCrossEntropyLossGrad"
        ]
        last = parts.rows[i]
        product = by_name[parts.products[i]]
        for number, end in enumerate(end for name in gradients for end in ends(name)):
            waiting = f"{parts.rows[i]}_{number}"
            nodes.append(after(last, end, waiting))
            last = waiting
        product.input[0] = last
    set_nodes(model, _in_order(nodes))


def _start_at_once(model: ModelProto, loss: str) -> None:
    """Lets the gradients begin with a constant 1, and not with ones in the shape of the loss, which
    wait for it."""
    graph = model.graph
    shapes = {
        node.output[0] for node in graph.node if node.op_type == "Shape" and loss in node.input
    }
    for node in graph.node:
        if node.op_type == "Expand" and node.input[1] in shapes:
            one = f"{loss}_seed"
            graph.initializer.append(numpy_helper.from_array(np.ones((), np.float32), one))
            node.CopyFrom(helper.make_node("Identity", [one], [node.output[0]], name=node.name))


def _share_transpositions(model: ModelProto) -> None:
    """Lets the gradients of all parts read the same transposed weights."""
    constants = {tensor.name for tensor in model.graph.initializer}
    first: dict[bytes, str] = {}
    names: dict[str, str] = {}
    for node in list(model.graph.node):
        if node.op_type == "Transpose" and node.input[0] in constants:
            alike = NodeProto(input=node.input, attribute=node.attribute).SerializeToString()
            names[node.output[0]] = first.setdefault(alike, node.output[0])
            if names[node.output[0]] != node.output[0]:
                model.graph.node.remove(node)
        node.input[:] = [names.get(name, name) for name in node.input]


def _in_order(nodes: list[NodeProto]) -> list[NodeProto]:
    """The nodes such that what makes a value comes before what reads it; else as they are."""
    maker = {name: node for node in nodes for name in node.output if name}
    done: set[int] = set()
    order: list[NodeProto] = []
    for node in nodes:
        waiting = [node]
        while waiting:
            last = waiting[-1]
            if id(last) in done:
                waiting.pop()
                continue
            needed = [maker[name] for name in sorted(reads_of(last)) if name in maker]
            open_ = [each for each in needed if id(each) not in done]
            if open_:
                waiting += open_
                continue
            waiting.pop()
            done.add(id(last))
            order.append(last)
    return order


@dataclasses.dataclass
class _Head:
    """From the hidden state to the loss."""

    model: ModelProto
    product: NodeProto
    rowwise: list[NodeProto]  # what follows it
    loss: NodeProto
    between: list[NodeProto]  # what moves the classes to axis 1

    @classmethod
    def find(
        cls, model: ModelProto, loss: str, results: set[str], trained: set[str]
    ) -> _Head | None:
        graph = model.graph
        makers = {name: node for node in graph.node for name in node.output if name}
        readers: dict[str, int] = {}
        for node in graph.node:
            for name in reads_of(node):
                readers[name] = readers.get(name, 0) + 1

        def is_inner(name: str) -> bool:
            return readers.get(name) == 1 and name not in results

        node = makers.get(loss)
        if node is None or node.op_type != "SoftmaxCrossEntropyLoss" or node.domain:
            return None
        head = cls(model, node, [], node, [])
        is_number = head._attribute(node, "reduction", b"mean") in (b"mean", b"sum")
        if not is_number or any(name in readers or name in results for name in node.output[1:]):
            return None
        name = node.input[0]
        while is_inner(name) and name in makers:
            node = makers[name]
            if node.op_type in PRODUCTS:
                head.product = node
                return head if head._has_known_types() and head._is_fixed(trained) else None
            if node.op_type == "Transpose" and not head.rowwise and not head.between:
                order = list(head._attribute(node, "perm", []))
                if order != [0, len(order) - 1, *range(1, len(order) - 1)]:
                    return None
                head.between.append(node)
            elif node.op_type in ROWWISE and all(map(head._is_vector, node.input[1:])):
                head.rowwise.insert(0, node)
            else:
                return None
            name = node.input[0]
        return None

    @staticmethod
    def _attribute(node: NodeProto, name: str, default: Any) -> Any:
        found = [each for each in node.attribute if each.name == name]
        return helper.get_attribute_value(found[0]) if found else default

    def _rank(self, name: str) -> int:
        """The number of axes; -1 if it is not known."""
        value = find_type(self.model, name)
        if value is None or not value.type.tensor_type.HasField("shape"):
            return -1
        return len(value.type.tensor_type.shape.dim)

    def _is_vector(self, name: str) -> bool:
        """Whether it is a constant that has one axis at most."""
        constants = {tensor.name for tensor in self.model.graph.initializer}
        return name in constants and self._rank(name) <= 1

    def _has_known_types(self) -> bool:
        """Whether the operators for parts take what there is. The weights tell of the rows."""
        weights = self.product.input[2 if self.product.op_type == "MatMulNBits" else 1]
        labels = self._element_type(self.loss.input[1])
        opsets = [
            each.version for each in self.model.opset_import if each.domain in ("", "ai.onnx")
        ]
        has_sizes = max(opsets, default=1) >= 13  # as an input of Split
        is_float = self._element_type(weights) == TensorProto.FLOAT
        return has_sizes and is_float and labels in (TensorProto.INT64, TensorProto.INT32)

    def _element_type(self, name: str) -> int:
        value = find_type(self.model, name)
        return value.type.tensor_type.elem_type if value else TensorProto.UNDEFINED

    def _is_fixed(self, trained: set[str]) -> bool:
        """Whether the head has one matrix for many classes, which depends on nothing that is
        trained."""
        operands = [name for name in self.product.input[1:] if name]
        graph = self.model.graph
        above = nodes_above(graph, operands)
        reads = {*operands, *(name for node in above for name in reads_of(node))}
        users = {value.name for value in graph.input} - {
            tensor.name for tensor in graph.initializer
        }
        if reads & (trained | users):
            return False
        axes = self._axes()
        is_image = axes > 2 and not self.between  # its classes are on another axis than the last
        if axes < 2 or is_image or self._sides()[1] < FEWEST_CLASSES:
            return False
        if self.product.op_type != "Gemm":
            return True
        is_turned = self._attribute(self.product, "transA", 0)
        return not is_turned and all(self._rank(name) <= 1 for name in operands[1:])

    def _axes(self) -> int:
        """How many the scores have: one more than the labels."""
        return self._rank(self.loss.input[1]) + 1

    def _sides(self) -> tuple[int, int]:
        """How many elements a row has, and how many classes there are; 0 if it is not known."""
        if self.product.op_type == "MatMulNBits":
            rows, classes = (self._attribute(self.product, name, 0) for name in "KN")
            return int(rows), int(classes)
        value = find_type(self.model, self.product.input[1])
        sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim] if value else []
        if len(sizes) != 2:
            return 0, 0
        if self._attribute(self.product, "transB", 0):
            sizes.reverse()
        return sizes[0], sizes[1]

    def divided(self) -> Parts:
        """Replaces the nodes by those of the parts."""
        graph = self.model.graph
        self._nodes: list[NodeProto] = []
        self._prefix, self._numbers = f"{self.loss.output[0]}_parts", itertools.count()
        hidden, labels = self.product.input[0], self.loss.input[1]
        rows = self._add("Flatten", [hidden], axis=self._axes() - 1)
        flat = self._add("Reshape", [labels, self._integers([-1])])
        counts = self._counts(flat)
        of_rows, of_labels = self._split(rows, counts), self._split(flat, counts)
        parts = Parts(self.loss.output[0], hidden, of_rows, [], [])
        pairs = list(zip(of_rows, of_labels, strict=True))
        for part, chosen in pairs:
            sizes: list[int | str] = [f"{part}_count", self._sides()[0]]
            self._declare(part, TensorProto.FLOAT, sizes)
            self._declare(chosen, self._element_type(labels), sizes[:1])
        total = self._add("Sum", [self._loss_of(*each, parts) for each in pairs])
        if self._attribute(self.loss, "reduction", b"mean") == b"mean":
            total = self._mean(total, flat)
        self._nodes.append(helper.make_node("Identity", [total], [self.loss.output[0]]))
        removed = {id(node) for node in (self.product, self.loss, *self.rowwise, *self.between)}
        kept = [node for node in graph.node if id(node) not in removed]
        nodes = [NodeProto.FromString(n.SerializeToString()) for n in (*kept, *self._nodes)]
        del graph.node[:]
        graph.node.extend(nodes)
        return parts

    def _loss_of(self, rows: str, labels: str, parts: Parts) -> str:
        """The sum of the losses of a part, which is added to `parts`."""
        scores = rows
        for node in (self.product, *self.rowwise):
            copy = NodeProto.FromString(node.SerializeToString())
            copy.name, copy.input[0] = self._new_name(), scores
            copy.output[:] = [copy.name]
            scores = copy.name
            self._nodes.append(copy)
            if node is self.product:
                parts.products.append(copy.name)
        loss, log_probabilities = self._new_name(), self._new_name()
        node = helper.make_node(
            "SoftmaxCrossEntropyLoss",
            [scores, labels, *self.loss.input[2:]],
            [loss, log_probabilities],
            name=loss,
            reduction="sum",
        )
        node.attribute.extend(each for each in self.loss.attribute if each.name != "reduction")
        self._nodes.append(node)
        parts.log_probabilities.append(log_probabilities)
        return loss

    def _declare(self, name: str, element_type: int, sizes: list[int | str]) -> None:
        """Says what shape a part has: how its sizes are computed does not show it."""
        value = helper.make_tensor_value_info(name, element_type, sizes)
        self.model.graph.value_info.append(value)

    def _new_name(self) -> str:
        return f"{self._prefix}_{next(self._numbers)}"

    def _add(self, op_type: str, inputs: list[str], **attributes: Any) -> str:
        name = self._new_name()
        self._nodes.append(helper.make_node(op_type, inputs, [name], name=name, **attributes))
        return name

    def _split(self, name: str, sizes: str) -> list[str]:
        names = [self._new_name() for _ in range(PARTS)]
        self._nodes.append(helper.make_node("Split", [name, sizes], names, name=names[0], axis=0))
        return names

    def _constant(self, value: np.ndarray) -> str:
        name = self._new_name()
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def _integers(self, values: list[int]) -> str:
        return self._constant(np.array(values, np.int64))

    def _counts(self, labels: str) -> str:
        """How many rows each part has. The last ones may be empty."""
        count = self._add("Size", [labels])
        rounded = self._add("Add", [count, self._integers([PARTS - 1])])
        most = self._add("Div", [rounded, self._integers([PARTS])])
        most = self._add("Max", [most, self._integers([FEWEST_ROWS])])
        rest = self._add("Sub", [count, self._add("Mul", [most, self._integers([*range(PARTS)])])])
        return self._add("Max", [self._add("Min", [rest, most]), self._integers([0])])

    def _mean(self, total: str, labels: str) -> str:
        """The total divided by the sum of the weights. No gradient comes of nothing but ignored
        labels."""

        def number(value: float) -> str:
            return self._constant(np.array(value, np.float32))

        weights, ignored = self.loss.input[2:3], self._attribute(self.loss, "ignore_index", None)
        each = ""
        if ignored is not None:
            kind = helper.tensor_dtype_to_np_dtype(self._element_type(self.loss.input[1]))
            places = [self._constant(np.array(each, kind)) for each in (ignored, 0)]
            is_ignored = self._add("Equal", [labels, places[0]])
            labels = self._add("Where", [is_ignored, places[1], labels])
            each = self._add("Where", [is_ignored, number(0), number(1)])
        if weights:
            chosen = self._add("Gather", [weights[0], labels])
            each = self._add("Mul", [each, chosen]) if each else chosen
        if each:
            count = self._add("ReduceSum", [each], keepdims=0)
        else:
            count = self._add("Cast", [self._add("Size", [labels])], to=TensorProto.FLOAT)
        is_none = self._add("Equal", [count, number(0)])
        divisor = self._add("Where", [is_none, number(1), count])
        mean = self._add("Div", [total, divisor])
        return self._add("Where", [is_none, number(math.nan), mean])
