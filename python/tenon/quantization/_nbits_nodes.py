"""Nodes that multiply by matrices of few bits, and tables of 4 bits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from ._blocks import Blocks, packed
from ._names import CONTRIB
from ._tensors import attributes_of, tensor_of

# Integers by their bits, from 0 on and around 0.
UNSIGNED = {2: TensorProto.UINT2, 4: TensorProto.UINT4, 8: TensorProto.UINT8}
SIGNED = {2: TensorProto.INT2, 4: TensorProto.INT4, 8: TensorProto.INT8}
FLOATS = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


@dataclass
class Weight:
    """A constant matrix of a product, and the graph that has it."""

    name: str
    array: np.ndarray  # [k, n]
    rank: int  # of the constant, whose leading sizes are 1
    graph: GraphProto

    def add(self, array: np.ndarray, suffix: str) -> str:
        """Adds a constant to the matrix' graph. Returns its name."""
        tensor = tensor_of(array, self.name + suffix)
        add_once(self.graph, tensor)
        return tensor.name


def add_once(graph: GraphProto, tensor: TensorProto) -> None:
    """Adds a constant, unless there is one of its name."""
    if all(one.name != tensor.name for one in graph.initializer):
        graph.initializer.append(tensor)


def find_constant(name: str, graphs: Iterable[GraphProto]) -> tuple[TensorProto, GraphProto] | None:
    """A constant of a graph or of those around it; the innermost graph is last."""
    for graph in reversed(list(graphs)):
        for tensor in graph.initializer:
            if tensor.name == name:
                return tensor, graph
    return None


def weight_of(node: NodeProto, graphs: list[GraphProto]) -> Weight | None:
    """The constant matrix of a product, if there is one."""
    found = find_constant(node.input[1], graphs)
    if found is None:
        return None
    tensor, graph = found
    array = numpy_helper.to_array(tensor)
    if array.dtype not in FLOATS or array.ndim < 2 or any(d != 1 for d in array.shape[:-2]):
        logging.info("MatMul '%s': '%s' is no matrix of numbers", node.name, tensor.name)
        return None
    return Weight(tensor.name, array.reshape(array.shape[-2:]), array.ndim, graph)


def product_nodes(
    node: NodeProto,
    weight: Weight,
    rank: int | None,
    opset: int,
    make: Callable[[str], list[NodeProto]],
) -> list[NodeProto] | None:
    """The nodes that `make` makes for an output of that name, and those that restore its rank.

    rank     of the value that is multiplied by a weight of a higher rank than 2, if it is known
    returns  None: the number of leading ones is unknown
    """
    missing = 0
    if weight.rank > 2:
        if rank is None:
            logging.info("MatMul '%s': the rank of '%s' is not known", node.name, node.input[0])
            return None
        missing = max(weight.rank - max(rank, 2), 0)
    if missing == 0:
        return make(node.output[0])
    result = f"{node.output[0]}_pre_reshape"
    nodes, axes = make(result), list(range(missing))
    inputs, more = [result], dict[str, Any]()
    if opset < 13:
        more = {"axes": axes}
    else:
        inputs.append(weight.add(np.array(axes, np.int64), f"_leading_{missing}"))
    name = f"{node.name}_Unsqueeze" if node.name else ""
    return [*nodes, helper.make_node("Unsqueeze", inputs, list(node.output), name, **more)]


def few_bits(
    node: NodeProto,
    weight: Weight,
    blocks: Blocks,
    names: tuple[str, str, str],
    output: str,
    accuracy_level: int | None,
) -> list[NodeProto]:
    """MatMulNBits. `names`: suffixes of the integers, scales and zero points."""
    k, n = weight.array.shape
    numbers, zeros = packed(blocks, k)
    kind = weight.array.dtype
    scales = blocks.scales.astype(kind)
    inputs = [node.input[0], weight.add(numbers, names[0])]
    inputs.append(weight.add(scales.reshape(-1) if blocks.has_fractions else scales, names[1]))
    if zeros is not None:
        inputs.append(weight.add(zeros.astype(kind) if blocks.has_fractions else zeros, names[2]))
    more: dict[str, Any] = {"accuracy_level": accuracy_level} if accuracy_level else {}
    made = helper.make_node(
        "MatMulNBits",
        inputs,
        [output],
        f"{node.name}_Q{blocks.bits}" if node.name else "",
        domain=CONTRIB,
        K=k,
        N=n,
        bits=blocks.bits,
        block_size=blocks.numbers.shape[-1],
        **more,
    )
    return [made]


def pairs(
    node: NodeProto, weight: Weight, blocks: Blocks, output: str, by_columns: bool
) -> list[NodeProto]:
    """DequantizeLinear before the product. With blocks by columns, the matrix is transposed if
    possible.
    """
    k, n = weight.array.shape
    bits, suffix = blocks.bits, f"_DQ_Q{blocks.bits}"
    is_transposed = by_columns and blocks.zeros is None
    integers = blocks.numbers.reshape(n, -1)[:, :k]
    scales = blocks.scales.astype(weight.array.dtype)
    if not is_transposed:
        integers, scales = integers.T, scales.T
    kind = UNSIGNED[bits]
    if blocks.zeros is None:
        kind = SIGNED[bits]
        integers = integers.astype(np.int16) - (1 << (bits - 1))
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    inputs = [
        weight.add(np.ascontiguousarray(integers).astype(dtype), suffix),
        weight.add(np.ascontiguousarray(scales), "_DQ_scales"),
    ]
    if blocks.zeros is not None:
        zeros = np.ascontiguousarray(blocks.zeros.T).astype(dtype)
        inputs.append(weight.add(zeros, "_DQ_zero_points"))
    right = f"{inputs[0]}_output"
    nodes = [
        helper.make_node(
            "DequantizeLinear",
            inputs,
            [right],
            f"{node.name}{suffix}" if node.name else "",
            axis=1 if is_transposed else 0,
            block_size=blocks.numbers.shape[-1],
        )
    ]
    if is_transposed:
        transposed = f"{right}_transposed"
        name = f"{node.name}_transpose" if node.name else ""
        nodes.append(helper.make_node("Transpose", [right], [transposed], name, perm=[1, 0]))
        right = transposed
    name = f"{node.name}_matmul_Q{bits}" if node.name else ""
    nodes.append(helper.make_node("MatMul", [node.input[0], right], [output], name))
    return nodes


def table_of_4_bits(
    node: NodeProto, graphs: list[GraphProto], axis: int, size: int, symmetric: bool
) -> NodeProto | None:
    """GatherBlockQuantized for Gather from a constant table. Blocks run along an axis."""
    found = find_constant(node.input[0], graphs)
    if found is None:
        return None
    tensor, graph = found
    array = numpy_helper.to_array(tensor)
    if array.dtype not in FLOATS:
        return None
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(
            f"Gather '{node.name}': expected an axis of {list(array.shape)} for blocks, got {axis}"
        )
    axis %= array.ndim
    integers, scales, zeros = _along(array.astype(np.float32), axis, size, symmetric)
    kind = TensorProto.INT4 if symmetric else TensorProto.UINT4
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    constants = [
        tensor_of(integers.astype(dtype), f"{tensor.name}_Q4"),
        tensor_of(scales.astype(array.dtype), f"{tensor.name}_scales"),
    ]
    if not symmetric:
        constants.append(tensor_of(zeros.astype(dtype), f"{tensor.name}_zero_points"))
    for one in constants:
        add_once(graph, one)
    inputs = [constants[0].name, node.input[1], *(one.name for one in constants[1:])]
    return helper.make_node(
        "GatherBlockQuantized",
        inputs,
        list(node.output),
        f"{node.name}_Q4" if node.name else "",
        domain=CONTRIB,
        gather_axis=attributes_of(node).get("axis", 0),
        quantize_axis=axis,
        block_size=size,
    )


def _along(
    array: np.ndarray, axis: int, size: int, symmetric: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers, scales and zero points of blocks along an axis. A block of zeros has 8s."""
    moved = np.moveaxis(array, axis, -1)
    length = moved.shape[-1]
    count = -(-length // size)
    padded = np.zeros((*moved.shape[:-1], count * size), np.float32)
    padded[..., :length] = moved
    values = padded.reshape(*moved.shape[:-1], count, size)
    low, high = values.min(-1), values.max(-1)
    if symmetric:
        scales = np.where(np.abs(high) > np.abs(low), high, low) / -8
        zeros, bottom, top = np.zeros(scales.shape, np.float32), -8, 7
    else:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scales = (high - low) / 15
        with np.errstate(divide="ignore", invalid="ignore"):
            zeros = np.clip(np.round(np.where(scales == 0, 8, -low / scales)), 0, 15)
        bottom, top = 0, 15
    safe = np.where(scales == 0, 1, scales)
    integers = np.clip(np.round(values / safe[..., None] + zeros[..., None]), bottom, top)
    flat = integers.reshape(*moved.shape[:-1], -1)[..., :length]
    return (
        np.ascontiguousarray(np.moveaxis(flat, -1, axis)),
        np.ascontiguousarray(np.moveaxis(scales, -1, axis)),
        np.ascontiguousarray(np.moveaxis(zeros, -1, axis)),
    )
