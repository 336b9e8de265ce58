"""Equalizes values with a few large channels; their weights change in return.

Xiao et al., "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language
Models": a product does not change if a channel of its input is divided by a number and the row of
its weight is multiplied by it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper

from .._session import InferenceSession
from ._calibration_data import CalibrationDataReader
from ._graph import Graph
from ._tensors import attributes_of, tensor_of

LEAST = 1e-5  # the least divisor
# Operators whose results have factors, the inputs with the factors, and the axis of channels.
FACTORS = {
    "BatchNormalization": ((1, 2), 1),
    "InstanceNormalization": ((1, 2), 1),
    "LayerNormalization": ((1, 2), -1),
}


@dataclass
class Reader:
    """A product that reads a value, and the channel axes of its weight and input."""

    node: NodeProto
    weight_axis: int
    input_axis: int


def smooth(
    model: ModelProto,
    reader: CalibrationDataReader,
    alpha: float,
    folding: bool,
    excluded: Sequence[str] = (),
) -> list[str]:
    """Equalizes the values of the model. Returns the names of the nodes that this adds.

    alpha    from 0, where weights do not change, to 1, where the channels of values become equal
    folding  if a normalization makes a value, its factors change and no node is added
    """
    graph = Graph(model.graph)
    by_value: dict[str, list[Reader]] = {}
    for node in graph.nodes:
        found = None if node.name in excluded else _reader_of(graph, node)
        if found is not None:
            by_value.setdefault(node.input[0], []).append(found)
    largest = _largest_by_channel(model, by_value, reader)
    added = []
    for name, readers in by_value.items():
        weights = np.max([_weight_sizes(graph, one) for one in readers], axis=0)
        values = largest[name]
        sizes = values**alpha / np.maximum(weights, LEAST) ** (1 - alpha)
        factor = np.where(values > 0, np.maximum(sizes, LEAST), 1).astype(np.float32)
        for one in readers:
            _scale_weight(graph, one, factor)
        if not (folding and _fold(graph, name, readers, factor)):
            added.append(_divide(graph, name, readers, factor))
    graph.finish(graph.nodes)
    return added


def _reader_of(graph: Graph, node: NodeProto) -> Reader | None:
    """The value that a product reads, if its weight is a constant."""
    if node.op_type not in ("MatMul", "Gemm", "Conv"):
        return None
    if not graph.is_float_constant(node.input[1]) or node.input[0] in graph.initializers:
        return None
    attributes, rank = attributes_of(node), len(graph.initializers[node.input[1]].dims)
    if node.op_type == "Conv":
        return Reader(node, 1, 1) if attributes.get("group", 1) == 1 else None
    if rank < 2 or attributes.get("transA", 0):
        return None
    return Reader(node, rank - 1 if attributes.get("transB", 0) else rank - 2, -1)


def _weight_sizes(graph: Graph, reader: Reader) -> np.ndarray:
    weight = graph.constant(reader.node.input[1])
    assert weight is not None
    others = tuple(axis for axis in range(weight.ndim) if axis != reader.weight_axis)
    return np.asarray(np.abs(weight).max(others))


def _largest_by_channel(
    model: ModelProto, by_value: dict[str, list[Reader]], reader: CalibrationDataReader
) -> dict[str, np.ndarray]:
    """The largest numbers of each channel of values, over all data."""
    watched = ModelProto()
    watched.CopyFrom(model)
    present = {one.name for one in (*watched.graph.output, *watched.graph.input)}
    given = {one.name for one in watched.graph.input}
    watched.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in by_value if name not in present
    )
    session = InferenceSession(watched)
    made = [name for name in by_value if name not in given]
    largest: dict[str, np.ndarray] = {}
    while feed := reader.get_next():
        results = dict(zip(made, session.run(made, feed), strict=True)) if made else {}
        for name, readers in by_value.items():
            value = np.abs(np.asarray(results[name] if name in results else feed[name]))
            axis = readers[0].input_axis % value.ndim
            seen = value.max(tuple(i for i in range(value.ndim) if i != axis))
            largest[name] = np.maximum(largest[name], seen) if name in largest else seen
    if by_value and not largest:
        raise ValueError("No data is collected.")
    return largest


def _scale_weight(graph: Graph, reader: Reader, factor: np.ndarray) -> None:
    """Multiplies the rows of a weight, or of a copy if other nodes read it."""
    name = reader.node.input[1]
    weight = graph.constant(name)
    assert weight is not None
    shape = [-1 if axis == reader.weight_axis else 1 for axis in range(weight.ndim)]
    scaled = (weight * factor.reshape(shape)).astype(weight.dtype)
    if len(graph.readers[name]) > 1:
        new = graph.add_constant(tensor_of(scaled, f"{name}_{reader.node.name}_smooth"))
        graph.replace_input(reader.node, name, new)
    else:
        graph.initializers[name] = tensor_of(scaled, name)


def _fold(graph: Graph, name: str, readers: list[Reader], factor: np.ndarray) -> bool:
    """Divides the factors of a value's producer, if no other node reads the value."""
    producer = graph.producers.get(name)
    if producer is None or producer.op_type not in FACTORS or name in graph.outputs:
        return False
    indices, axis = FACTORS[producer.op_type]
    if name in graph.inner_reads or len(graph.readers[name]) != len(readers):
        return False
    if axis != readers[0].input_axis or name != producer.output[0]:
        return False
    inputs = [producer.input[i] for i in indices if i < len(producer.input) and producer.input[i]]
    constants = [graph.constant(one) for one in inputs]
    is_ours = all(one in graph.initializers and len(graph.readers[one]) == 1 for one in inputs)
    if not is_ours or any(one is None or one.shape != factor.shape for one in constants):
        return False
    for one, array in zip(inputs, constants, strict=True):
        assert array is not None
        graph.initializers[one] = tensor_of((array / factor).astype(array.dtype), one)
    return True


def _divide(graph: Graph, name: str, readers: list[Reader], factor: np.ndarray) -> str:
    """Adds a node that divides a value for some of its readers."""
    kind = graph.kind(name) or onnx.TensorProto.FLOAT
    inverse = (1 / factor).astype(helper.tensor_dtype_to_np_dtype(kind))
    if readers[0].input_axis == 1:  # followed by the spatial axes
        weight = graph.initializers[readers[0].node.input[1]]
        inverse = inverse.reshape(-1, *[1] * (len(weight.dims) - 2))
    constant = graph.add_constant(tensor_of(inverse, f"{name}_smooth_scale"))
    result = f"{name}_smooth_output"
    node = helper.make_node("Mul", [name, constant], [result], f"{name}_smooth_mul")
    for one in readers:
        graph.replace_input(one.node, name, result)
    graph.nodes.append(node)
    graph.values[result] = helper.make_tensor_value_info(result, kind, None)
    return node.name


def copied(reader: CalibrationDataReader) -> CalibrationDataReader:
    """A reader with the same data, which are read twice."""
    try:
        return copy.deepcopy(reader)
    except TypeError as error:
        raise TypeError(
            "SmoothQuant reads the data twice: expected a reader that can be copied, such as one "
            f"over a list ({error})"
        ) from error
