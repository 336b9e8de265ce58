"""How operators make shapes, where ONNX's own inference lacks names of sizes or the operator.

A rule takes a Node. It returns types of the outputs, in their order, or None if it knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from . import _sizes
from ._sizes import INFINITY, Polynomial, Size

MOST_ELEMENTS = 64  # of values that shape computations may read

Shape = list["Size | None"]
Data = np.ndarray  # of sizes, as objects, or of floating-point numbers


@dataclass
class Tensor:
    """The type of a tensor; without a shape its rank is unknown, too."""

    kind: int
    shape: Shape | None


@dataclass
class Node:
    """A node with what is known of its inputs, which are None where they are left out."""

    proto: NodeProto
    attributes: dict[str, Any]
    types: list[Tensor | None]
    data: list[Data | None]

    def type(self, index: int) -> Tensor | None:
        """The type of an input."""
        return self.types[index] if index < len(self.types) else None

    def shape(self, index: int) -> Shape | None:
        """The shape of an input, if it is known."""
        found = self.type(index)
        return None if found is None else found.shape

    def sizes(self, index: int) -> list[Size] | None:
        """The elements of an input, if they are known, as sizes."""
        found = self.data[index] if index < len(self.data) else None
        return None if found is None else [as_size(one) for one in found.reshape(-1)]


Types = Sequence["Tensor | None"]
Rule = Callable[[Node], "Types | None"]


def as_size(value: Any) -> Size:
    """A size; fractions are rounded down, as Cast does."""
    return value if isinstance(value, Polynomial) else int(value)


def dims_of(tensor: TypeProto.Tensor, known: Mapping[str, Size]) -> Shape | None:
    """The shape of a type. `known`: the sizes that some names of dimensions stand for."""
    if not tensor.HasField("shape"):
        return None
    shape: Shape = []
    for dim in tensor.shape.dim:
        size: Size | None = dim.dim_value if dim.HasField("dim_value") else None
        if dim.dim_param:
            size = known.get(dim.dim_param, _sizes.named(dim.dim_param))
        shape.append(size)
    return shape


def to_proto(tensor: Tensor) -> TypeProto:
    """The type as ONNX has it."""
    shape: list[int | str | None] | None = None
    if tensor.shape is not None:
        shape = [str(size) if isinstance(size, Polynomial) else size for size in tensor.shape]
    return helper.make_tensor_type_proto(tensor.kind, shape)


def broadcast(*shapes: Shape | None) -> Shape | None:
    """The shape of an elementwise result."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max(map(len, known), default=0)
    return [
        _broadcast_axis([shape[axis - rank] for shape in known if len(shape) >= rank - axis])
        for axis in range(rank)
    ]


def _broadcast_axis(sizes: list[Size | None]) -> Size | None:
    """Sizes that are broadcast are 1, or equal."""
    others = [size for size in dict.fromkeys(sizes) if size != 1]
    if not others:
        return 1
    numbers = [size for size in others if isinstance(size, int)]
    if numbers:
        return numbers[0]
    if None in others:
        return None if len(others) > 1 else others[0]
    # Of equal sizes, the one that is the simplest to say.
    return min(others, key=lambda size: len(str(size)))


def elementwise(node: Node) -> Types | None:
    """One element for each of the first input, broadcast with the others."""
    first = node.type(0)
    return (
        None
        if first is None
        else [Tensor(first.kind, broadcast(*(node.shape(i) for i in range(len(node.types)))))]
    )


def comparison(node: Node) -> Types | None:
    """The same, with booleans."""
    shape = broadcast(node.shape(0), node.shape(1))
    return [Tensor(TensorProto.BOOL, shape)]


def like(index: int = 0, outputs: int = 1) -> Rule:
    """Outputs have the type of an input."""

    def rule(node: Node) -> Types | None:
        found = node.type(index)
        return None if found is None else [found] * outputs

    return rule


def concat(node: Node) -> Types | None:
    """Concat."""
    shapes = [node.shape(i) for i in range(len(node.types))]
    first = node.type(0)
    if first is None or any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    axis = node.attributes["axis"]
    result = list(known[0])
    total: Size | None = 0
    for shape in known:
        total = None if total is None or shape[axis] is None else _sizes.add(total, shape[axis])
    for other in known[1:]:
        result = [a if a is not None else b for a, b in zip(result, other, strict=True)]
    result[axis] = total
    return [Tensor(first.kind, result)]


def slice_length(start: Size, end: Size, step: Size, size: Size) -> Size | None:
    """How many elements of an axis a slice takes."""
    direction = _sizes.sign(step)
    if not direction:
        return None
    low, high = (0, size) if direction > 0 else (-1, _sizes.subtract(size, 1))
    bounds = []
    for bound in (start, end):
        if isinstance(bound, int) and abs(bound) >= INFINITY:
            bounds.append(high if bound > 0 else low)
        elif _sizes.sign(bound) == -1:  # from the end, taken to be in the tensor
            moved = _sizes.add(bound, size)
            bounds.append(_sizes.larger(moved, low) if isinstance(moved, int) else moved)
        else:
            bounds.append(_sizes.smaller(bound, high))
    begin, stop = bounds
    span = _sizes.subtract(stop, begin)
    count = _sizes.divide(_sizes.subtract(_sizes.add(span, step), direction), step)
    return max(count, 0) if isinstance(count, int) else count


def slice_(node: Node) -> Types | None:
    """Slice, whose bounds are inputs or attributes."""
    first = node.type(0)
    if first is None or first.shape is None:
        return None
    given = [
        node.attributes.get("starts"),
        node.attributes.get("ends"),
        node.attributes.get("axes"),
        None,
    ]
    starts, ends, axes, steps = (node.sizes(i + 1) or given[i] for i in range(4))
    if axes is None:
        is_unknown = node.type(3) is not None and node.sizes(3) is None
        if is_unknown or starts is None:
            return [Tensor(first.kind, [None] * len(first.shape))]
        axes = list(range(len(starts)))
    shape = list(first.shape)
    for i, axis in enumerate(axes):
        size = shape[axis]
        step = steps[i] if steps else None if node.type(4) is not None else 1
        shape[axis] = None
        if size is not None and starts is not None and ends is not None and step is not None:
            shape[axis] = slice_length(starts[i], ends[i], step, size)
    return [Tensor(first.kind, shape)]


def reshape(node: Node) -> Types | None:
    """Reshape."""
    first, wanted = node.type(0), node.sizes(1)
    if first is None:
        return None
    if wanted is None:
        target = node.shape(1)
        count = target[0] if target else None
        return [Tensor(first.kind, [None] * count if isinstance(count, int) else None)]
    shape: Shape = list(wanted)
    keeps_zero = not node.attributes.get("allowzero", 0)
    for axis, size in enumerate(wanted):
        if size == 0 and keeps_zero:
            shape[axis] = first.shape[axis] if first.shape is not None else None
    if -1 in shape:
        free, others = shape.index(-1), [size for size in shape if size != -1]
        sizes = [size for size in first.shape or [None] if size is not None]
        is_known = first.shape is not None and len(sizes) == len(first.shape)
        rest = [size for size in others if size is not None]
        shape[free] = None
        if is_known and len(rest) == len(others) and _sizes.product(rest) != 0:
            shape[free] = _sizes.divide(_sizes.product(sizes), _sizes.product(rest))
    return [Tensor(first.kind, shape)]


def expand(node: Node) -> Types | None:
    """Expand."""
    first, wanted = node.type(0), node.sizes(1)
    if first is None or wanted is None:
        return None
    return [Tensor(first.kind, broadcast(first.shape, list(wanted)))]


def filled(node: Node) -> Types | None:
    """ConstantOfShape."""
    wanted, value = node.sizes(0), node.attributes.get("value")
    kind = value.data_type if value is not None else TensorProto.FLOAT
    return None if wanted is None else [Tensor(kind, list(wanted))]


def resize(node: Node) -> Types | None:
    """Resize to given sizes of all axes."""
    first, wanted = node.type(0), node.sizes(3)
    if first is None or wanted is None or node.attributes.get("axes") is not None:
        return None
    return [Tensor(first.kind, list(wanted))]


def range_(node: Node) -> Types | None:
    """Range of sizes."""
    first = node.type(0)
    ends = [node.sizes(i) for i in range(3)]
    if first is None or any(end is None for end in ends):
        return None
    start, limit, step = (end[0] for end in ends if end)
    if not _sizes.sign(step):
        return None
    up = _sizes.subtract(_sizes.add(_sizes.subtract(limit, start), step), _sizes.sign(step) or 1)
    return [Tensor(first.kind, [_sizes.divide(up, step)])]


def einsum(node: Node) -> Types | None:
    """Einsum."""
    first = node.type(0)
    left, arrow, right = node.attributes["equation"].decode().replace(" ", "").partition("->")
    sizes: dict[str, Size | None] = {}
    dots: list[Shape | None] = []
    terms = left.split(",")
    for index, term in enumerate(terms):
        shape = node.shape(index)
        if shape is None:
            return None
        before, ellipsis, after = term.partition("...")
        if ellipsis:
            dots.append(shape[len(before) : len(shape) - len(after)])
        axes = [*shape[: len(before)], *(shape[len(shape) - len(after) :] if after else [])]
        for letter, size in zip(before + after, axes, strict=True):
            sizes[letter] = _broadcast_axis([size, sizes.get(letter, 1)])
    if not arrow:
        letters = left.replace(",", "").replace(".", "")
        right = ("..." if dots else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    before, ellipsis, after = right.partition("...")
    middle = (broadcast(*dots) or []) if ellipsis else []
    result = [sizes[x] for x in before] + middle + [sizes[x] for x in after]
    return None if first is None else [Tensor(first.kind, result)]


def matmul(node: Node) -> Types | None:
    """MatMul and its kin, with the transpositions of FusedMatMul."""
    first, a, b = node.type(0), node.shape(0), node.shape(1)
    if first is None or a is None or b is None or min(len(a), len(b)) < 2:
        return None
    if node.attributes.get("transA"):
        a = [*a[:-2], a[-1], a[-2]]
    if node.attributes.get("transB"):
        b = [*b[:-2], b[-1], b[-2]]
    outer = broadcast(a[:-2], b[:-2])
    return None if outer is None else [Tensor(first.kind, [*outer, a[-2], b[-1]])]


# --- com.microsoft ---


def few_bits(node: Node) -> Types | None:
    """MatMulNBits and MatMulBnb4."""
    first, shape = node.type(0), node.shape(0)
    if first is None or shape is None:
        return None
    return [Tensor(first.kind, [*shape[:-1], node.attributes["N"]])]


def quantize(node: Node) -> Types | None:
    """QuantizeLinear: the type of the zero point."""
    zero = node.type(2)
    return [Tensor(zero.kind if zero else TensorProto.UINT8, node.shape(0))]


def dequantize(node: Node) -> Types | None:
    """DequantizeLinear: the type of the scale."""
    scale = node.type(1)
    return None if scale is None else [Tensor(scale.kind, node.shape(0))]


def quantized_binary(node: Node) -> Types | None:
    """QLinearAdd and QLinearMul: the values are inputs 0 and 3."""
    first = node.type(0)
    return None if first is None else [Tensor(first.kind, broadcast(node.shape(0), node.shape(3)))]


def embeddings(node: Node) -> Types | None:
    """EmbedLayerNormalization: embeddings, lengths, and sums."""
    words, table = node.shape(0), node.type(2)
    if words is None or table is None or table.shape is None:
        return None
    rows: Shape = [words[0], words[1], table.shape[1]]
    return [
        Tensor(table.kind, rows),
        Tensor(TensorProto.INT32, [words[0]]),
        Tensor(table.kind, rows),
    ]


def attention(node: Node) -> Types | None:
    """Attention: the values' part of the weights is as wide as the output."""
    first, shape, weights = node.type(0), node.shape(0), node.shape(1)
    if first is None or shape is None or weights is None:
        return None
    widths = node.attributes.get("qkv_hidden_sizes")
    width = widths[2] if widths else weights[1] and _sizes.divide(weights[1], 3)
    return [Tensor(first.kind, [shape[0], shape[1], width])]


def loss(node: Node) -> Types | None:
    """SoftmaxCrossEntropyLoss."""
    first, labels = node.type(0), node.shape(1)
    is_each = node.attributes.get("reduction", b"mean") == b"none"
    return None if first is None else [Tensor(first.kind, labels if is_each else []), first]


# By the names of operators, of ai.onnx and com.microsoft alike: some tools leave out the domain.
RULES: dict[str, Rule] = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum"), elementwise),
    **dict.fromkeys(("And", "Or", "Equal", "Less", "Greater"), comparison),
    **dict.fromkeys(("LessOrEqual", "GreaterOrEqual"), comparison),
    **dict.fromkeys(("BiasGelu", "FastGelu", "QuickGelu", "RotaryEmbedding"), like()),
    **dict.fromkeys(("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"), like()),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), quantized_binary),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), like()),
    "Attention": attention,
    "Concat": concat,
    "ConstantOfShape": filled,
    "DequantizeLinear": dequantize,
    "Einsum": einsum,
    "EmbedLayerNormalization": embeddings,
    "Expand": expand,
    "FusedMatMul": matmul,
    "MatMulBnb4": few_bits,
    "MatMulNBits": few_bits,
    "MultiHeadAttention": like(),
    "QuantizeLinear": quantize,
    "Range": range_,
    "Reshape": reshape,
    "Resize": resize,
    "Slice": slice_,
    "SoftmaxCrossEntropyLoss": loss,
}


# --- The elements of shape computations ---

DataRule = Callable[[Node, list["Data"]], "Data | None"]


def objects(values: Sequence[Any] | np.ndarray, shape: Sequence[int] | None = None) -> Data:
    """An array of sizes."""
    array = np.empty(len(values), object)
    array[:] = list(values)
    return array if shape is None else array.reshape(tuple(shape))


def is_whole(*arrays: Data) -> bool:
    """Whether the arrays hold sizes, not fractions."""
    return all(array.dtype == object for array in arrays)


def _each(function: Callable[[Size, Size], Size], other: Callable[[Any, Any], Any]) -> DataRule:
    def rule(node: Node, inputs: list[Data]) -> Data | None:
        del node
        result = inputs[0]
        for array in inputs[1:]:
            if is_whole(result, array):
                a, b = np.broadcast_arrays(result, array)
                pairs = zip(a.reshape(-1), b.reshape(-1), strict=True)
                result = objects([function(x, y) for x, y in pairs], a.shape)
            elif any(isinstance(one, Polynomial) for x in (result, array) for one in x.reshape(-1)):
                return None  # a fraction of a size
            else:
                result = other(result.astype(np.float64), array.astype(np.float64))
        return result

    return rule


def _quotient(a: Size, b: Size) -> Size:
    return a if b == 0 else _sizes.divide(a, b)


def _gather(node: Node, inputs: list[Data]) -> Data | None:
    data, indices = inputs
    if any(isinstance(one, Polynomial) for one in indices.reshape(-1)):
        return None
    return np.take(data, indices.astype(np.int64), node.attributes.get("axis", 0))


def _slice(node: Node, inputs: list[Data]) -> Data | None:
    del node
    if len(inputs) < 3 or inputs[0].ndim != 1:
        return None
    bounds = [one for array in inputs[1:] for one in array.reshape(-1)]
    if any(isinstance(one, Polynomial) for one in bounds):
        return None
    start, end = (int(array.reshape(-1)[0]) for array in inputs[1:3])
    step = int(inputs[4].reshape(-1)[0]) if len(inputs) > 4 else 1
    if step < 0 and end <= -INFINITY:
        return inputs[0][start::step]
    return inputs[0][start:end:step]


def _axes(node: Node, inputs: list[Data]) -> list[int] | None:
    axes = node.attributes.get("axes")
    if len(inputs) > 1:
        axes = [int(axis) for axis in inputs[1].reshape(-1)]
    return axes


def _squeeze(node: Node, inputs: list[Data]) -> Data | None:
    axes = _axes(node, inputs)
    return np.squeeze(inputs[0], None if axes is None else tuple(axes))


def _unsqueeze(node: Node, inputs: list[Data]) -> Data | None:
    return np.expand_dims(inputs[0], tuple(_axes(node, inputs) or ()))


def _reshape(node: Node, inputs: list[Data]) -> Data | None:
    del node
    if any(isinstance(one, Polynomial) for one in inputs[1].reshape(-1)):
        return None
    return inputs[0].reshape([int(one) for one in inputs[1]])


def _cast(node: Node, inputs: list[Data]) -> Data | None:
    if node.attributes["to"] not in (TensorProto.INT32, TensorProto.INT64):
        return None
    return objects([as_size(one) for one in inputs[0].reshape(-1)], inputs[0].shape)


def _filled(node: Node, inputs: list[Data]) -> Data | None:
    value = node.attributes.get("value")
    shape = [as_size(one) for one in inputs[0].reshape(-1)]
    if value is None or value.data_type not in (TensorProto.INT32, TensorProto.INT64):
        return None
    counts = [size for size in shape if isinstance(size, int)]
    if len(counts) < len(shape) or len(shape) > 1 or np.prod(counts) > MOST_ELEMENTS:
        return None
    number = int(numpy_helper.to_array(value).reshape(-1)[0])
    return objects([number] * int(np.prod(counts)), counts)


DATA_RULES: dict[str, DataRule] = {
    "Add": _each(_sizes.add, np.add),
    "Cast": _cast,
    "Concat": lambda _, inputs: np.concatenate(inputs),
    "Div": _each(_quotient, np.divide),
    "Gather": _gather,
    "Identity": lambda _, inputs: inputs[0],
    "Max": _each(_sizes.larger, np.maximum),
    "Min": _each(_sizes.smaller, np.minimum),
    "Mul": _each(_sizes.multiply, np.multiply),
    "Neg": lambda _, inputs: objects(
        [_sizes.multiply(as_size(one), -1) for one in inputs[0].reshape(-1)], inputs[0].shape
    ),
    "ReduceProd": lambda _, inputs: objects([_sizes.product(list(inputs[0].reshape(-1)))]),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _each(_sizes.subtract, np.subtract),
    "Unsqueeze": _unsqueeze,
}


def infer_data(node: Node) -> Data | None:
    """The elements of the first output, if it is part of a computation of shapes."""
    kind = node.proto.op_type
    shape = node.shape(0)
    if kind in ("Shape", "Size"):
        if shape is None or any(size is None for size in shape):
            return None
        sizes = [size for size in shape if size is not None]
        if kind == "Size":
            return objects([_sizes.product(sizes)], ())
        start, end = node.attributes.get("start", 0), node.attributes.get("end", len(sizes))
        return objects(sizes[start:end])
    rule = DATA_RULES.get(kind)
    inputs = [array for array, name in zip(node.data, node.proto.input, strict=True) if name]
    if rule is None or not inputs or any(array is None for array in inputs):
        return None
    return rule(node, [array for array in inputs if array is not None])
