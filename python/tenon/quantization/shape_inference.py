"""Prepares a model for quantization."""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper, version_converter

from .._session import InferenceSession
from .._tenon import GraphOptimizationLevel, SessionOptions
from ._graph import replace
from ._loading import (
    MODEL_SIZE_THRESHOLD,
    add_pre_process_metadata,
    get_opset_version,
    infer_shapes,
)
from ._saving import save
from ._tensors import attributes_of, tensor_of

FIRST_WITH_RESIZE = 11  # in its present form
PLACE_HOLDER = "tenon.upsample"


def quant_pre_process(
    input_model: str | os.PathLike[str] | ModelProto | None = None,
    output_model_path: str | os.PathLike[str] | None = None,
    skip_optimization: bool = False,
    skip_onnx_shape: bool = False,
    skip_symbolic_shape: bool = False,
    auto_merge: bool = False,
    int_max: int = 2**31 - 1,
    guess_output_rank: bool = False,
    verbose: int = 0,
    save_as_external_data: bool = False,
    all_tensors_to_one_file: bool = False,
    external_data_location: str | None = None,
    external_data_size_threshold: int = 1024,
    **deprecated_kwargs: Any,
) -> None:
    """Writes the model with inferred shapes, folded constants, and without unused parts.

    A model that cannot be optimized is written without that, with a warning.
    """
    if input_model is None:
        input_model = deprecated_kwargs.pop("input_model_path", None)
    if input_model is None or output_model_path is None:
        raise ValueError("expected a model, and a path for the result")
    is_model = isinstance(input_model, ModelProto)
    model: Any = input_model if is_model else onnx.load(os.fspath(input_model))
    if get_opset_version(model) < FIRST_WITH_RESIZE:
        model = with_resize(model)
    if not skip_symbolic_shape:
        from ..tools.symbolic_shape_infer import SymbolicShapeInference  # noqa: PLC0415

        model = SymbolicShapeInference.infer_shapes(
            model, int_max, auto_merge, guess_output_rank, verbose
        )
    if not skip_optimization:
        try:
            model = optimize(model)
        except Exception as error:
            logging.warning("the model is not optimized: %s", error)
    if not skip_onnx_shape:
        model = infer_shapes(model)
    result = ModelProto()
    result.CopyFrom(model)
    add_pre_process_metadata(result)
    onnx.save(
        result,
        os.fspath(output_model_path),
        save_as_external_data=save_as_external_data,
        all_tensors_to_one_file=all_tensors_to_one_file,
        location=external_data_location,
        size_threshold=external_data_size_threshold,
    )


def optimize(model: ModelProto) -> ModelProto:
    """The model after a session's basic rewrites."""
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(prefix="tenon.quant.") as folder:
        path = os.path.join(folder, "optimized.onnx")
        source: Any = model
        if model.ByteSize() >= MODEL_SIZE_THRESHOLD:
            source = os.path.join(folder, "model.onnx")
            save(model, source)
        options.optimized_model_filepath = path
        InferenceSession(source, options, ["CPUExecutionProvider"])
        return onnx.load(path)


def with_resize(model: ModelProto) -> ModelProto:
    """The model in the first opset with the present form of Resize, without Upsample."""
    copy = ModelProto()
    copy.CopyFrom(model)
    scales = {}
    for node in copy.graph.node:
        if node.op_type == "Upsample":
            scales[node.output[0]] = _scales(node)
            node.domain = PLACE_HOLDER  # whose operators no conversion changes
            del node.input[1:]
    copy.opset_import.append(helper.make_opsetid(PLACE_HOLDER, 1))
    converted = version_converter.convert_version(copy, FIRST_WITH_RESIZE)
    replace(converted.opset_import, lambda one: one.domain != PLACE_HOLDER)
    for node in converted.graph.node:
        if node.domain == PLACE_HOLDER:
            _resize(node, scales[node.output[0]], converted.graph)
    return converted


def _resize(node: onnx.NodeProto, scales: str | np.ndarray, graph: onnx.GraphProto) -> None:
    """Replaces Upsample by Resize."""
    if not isinstance(scales, str):
        name = f"{node.output[0]}_scales"
        graph.initializer.append(tensor_of(scales, name))
        scales = name
    roi = f"{node.output[0]}_roi"
    graph.initializer.append(tensor_of(np.zeros(0, np.float32), roi))
    mode = attributes_of(node).get("mode", b"nearest").decode()
    inputs = [node.input[0], roi, scales]
    made = helper.make_node(
        "Resize",
        inputs,
        list(node.output),
        node.name,
        mode=mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )
    node.CopyFrom(made)


def _scales(node: onnx.NodeProto) -> str | np.ndarray:
    """The name of the scales of Upsample, or the scales themselves."""
    if len(node.input) > 1:
        return str(node.input[1])
    attributes = attributes_of(node)
    if "scales" in attributes:
        return np.array(attributes["scales"], np.float32)
    sides = (attributes["height_scale"], attributes["width_scale"])
    return np.array([1, 1, *sides], np.float32)
