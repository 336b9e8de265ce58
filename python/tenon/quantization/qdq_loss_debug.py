"""Compares a quantized model's values and weights with those of the original."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from .._session import InferenceSession
from .._tenon import GraphOptimizationLevel, SessionOptions
from ._calibration_data import CalibrationDataReader
from ._calibrators import CalibraterBase
from ._graph import Graph
from ._loading import load_model_with_shape_infer
from ._names import (
    DEQUANT_OP_NAME,
    DEQUANT_OUTPUT_SUFFIX,
    QUANT_INPUT_SUFFIX,
    TENSOR_NAME_QUANT_SUFFIX,
)
from ._saving import save
from ._tensors import attributes_of, broadcast_along, spread_blocks, tensor_of

SAVED_SUFFIX = "_ReshapedSavedOutput"
Arrays = Sequence[np.ndarray]


def modify_model_output_intermediate_tensors(
    input_model_path: str | os.PathLike[str],
    output_model_path: str | os.PathLike[str],
    op_types_for_saving: Sequence[str] | None = None,
    save_as_external_data: bool = False,
) -> None:
    """Writes a model that also outputs the inputs and outputs of its operators, each as one row.

    op_types_for_saving  the operators; none: all
    """
    calibrater = CalibraterBase(input_model_path, op_types_for_saving)
    model = calibrater.model
    _, values = calibrater.select_tensors_to_calibrate(model)
    flat = "tenon_flat"
    model.graph.initializer.append(tensor_of(np.array([-1], np.int64), flat))
    for name in calibrater.watched():
        result = name + SAVED_SUFFIX
        model.graph.node.append(helper.make_node("Reshape", [name, flat], [result], result))
        kind = values[name].type.tensor_type.elem_type
        model.graph.output.append(helper.make_tensor_value_info(result, kind, [-1]))
    save(model, output_model_path, save_as_external_data)


def collect_activations(
    augmented_model: str | os.PathLike[str],
    input_reader: CalibrationDataReader,
    session_options: SessionOptions | None = None,
    execution_providers: Sequence[Any] | None = None,
) -> dict[str, list[np.ndarray]]:
    """The outputs of such a model, by the name of the value: an array for each feed.

    session_options  none: the model is not optimized
    """
    if session_options is None:
        session_options = SessionOptions()
        session_options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    providers = list(execution_providers or ["CPUExecutionProvider"])
    session = InferenceSession(os.fspath(augmented_model), session_options, providers=providers)
    names = [one.name for one in session.get_outputs() if one.name.endswith(SAVED_SUFFIX)]
    saved: dict[str, list[np.ndarray]] = {name.removesuffix(SAVED_SUFFIX): [] for name in names}
    while (feed := input_reader.get_next()) is not None:
        for rows, value in zip(saved.values(), session.run(names, feed), strict=True):
            rows.append(np.asarray(value))
    if not any(saved.values()):
        raise RuntimeError("No data is collected while running augmented model!")
    return saved


def create_activation_matching(
    qdq_activations: Mapping[str, Arrays],
    float_activations: Mapping[str, Arrays] | None = None,
) -> dict[str, dict[str, Arrays]]:
    """By value: "pre_qdq" and "post_qdq", before and after a pair, and "float", the original."""
    found: dict[str, dict[str, Arrays]] = {}
    for name, arrays in qdq_activations.items():
        if name.endswith(QUANT_INPUT_SUFFIX):
            value = name.removesuffix(QUANT_INPUT_SUFFIX)
            before, after = arrays, qdq_activations.get(value)
        else:
            # Readers with separate pairs have one each: the first stands for all.
            value = name.removesuffix("_1").removesuffix(DEQUANT_OUTPUT_SUFFIX)
            if value + DEQUANT_OUTPUT_SUFFIX not in (name, name.removesuffix("_1")):
                continue
            before, after = qdq_activations.get(value, ()), arrays
        if before is not None and after is not None and len(before) > 0 and len(after) > 0:
            found[value] = {"pre_qdq": before, "post_qdq": after}
    for value, match in found.items():
        if float_activations and value in float_activations:
            match["float"] = float_activations[value]
    return found


def create_weight_matching(
    float_model_path: str | os.PathLike[str], qdq_model_path: str | os.PathLike[str]
) -> dict[str, dict[str, np.ndarray]]:
    """By constant: "float", the original, and "dequantized"."""
    original = Graph(load_model_with_shape_infer(float_model_path).graph)
    quantized = Graph(load_model_with_shape_infer(qdq_model_path).graph)
    found: dict[str, dict[str, np.ndarray]] = {}
    for node in quantized.nodes:
        if node.op_type != DEQUANT_OP_NAME or node.input[0] not in quantized.initializers:
            continue
        name = node.input[0].removesuffix(TENSOR_NAME_QUANT_SUFFIX)
        numbers = original.constant(name)
        if name == node.input[0] or numbers is None:
            logging.error("'%s': the original has no constant of its name", node.input[0])
            continue
        found[name] = {"float": numbers, "dequantized": _dequantized(quantized, node)}
    return found


def _dequantized(graph: Graph, node: onnx.NodeProto) -> np.ndarray:
    """The output of DequantizeLinear for constants."""
    integers, scale = (numpy_helper.to_array(graph.initializers[name]) for name in node.input[:2])
    zero: np.ndarray = np.zeros(scale.shape)
    if len(node.input) > 2:
        zero = numpy_helper.to_array(graph.initializers[node.input[2]])
    attributes = attributes_of(node)
    axis, size = attributes.get("axis", 1), attributes.get("block_size", 0)

    def spread(one: np.ndarray) -> np.ndarray:
        if size:
            return spread_blocks(one, axis, size, integers.shape[axis])
        one = one.reshape(()) if one.size == 1 else one
        return broadcast_along(one, axis, integers.ndim)

    zero = zero.reshape(scale.shape).astype(np.float32)
    return np.asarray((integers.astype(np.float32) - spread(zero)) * spread(scale))


def compute_signal_to_quantization_noice_ratio(
    x: Arrays | np.ndarray, y: Arrays | np.ndarray
) -> float:
    """The ratio, in decibels, of the numbers `x` to their differences from `y`."""
    left, right = ([one] if isinstance(one, np.ndarray) else list(one) for one in (x, y))
    if len(left) != len(right):
        raise RuntimeError(f"Unequal number of tensors to compare: {len(left)} and {len(right)}")
    numbers, others = (np.concatenate([np.ravel(one) for one in many]) for many in (left, right))
    least = float(np.finfo(np.float64).eps)
    signal = max(float(np.linalg.norm(numbers)), least)
    noise = max(float(np.linalg.norm(numbers - others)), least)
    return 20 * math.log10(signal / noise)


def compute_weight_error(
    weights_match: Mapping[str, Mapping[str, np.ndarray]],
    err_func: Callable[
        [np.ndarray, np.ndarray], float
    ] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, float]:
    """The error of each constant of create_weight_matching."""
    return {
        name: err_func(match["float"], match["dequantized"])
        for name, match in weights_match.items()
    }


def compute_activation_error(
    activations_match: Mapping[str, Mapping[str, Arrays]],
    err_func: Callable[[Arrays, Arrays], float] = compute_signal_to_quantization_noice_ratio,
) -> dict[str, dict[str, float]]:
    """Of each value of create_activation_matching: "qdq_err", and "xmodel_err" to the original."""
    errors = {}
    for name, match in activations_match.items():
        errors[name] = {"qdq_err": err_func(match["pre_qdq"], match["post_qdq"])}
        if match.get("float"):
            errors[name]["xmodel_err"] = err_func(match["float"], match["post_qdq"])
    return errors
