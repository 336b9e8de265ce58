"""What a model goes through before it is quantized."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import onnx

from .._session import InferenceSession
from .._tenon import GraphOptimizationLevel, SessionOptions


def quant_pre_process(
    input_model: str | os.PathLike[str] | onnx.ModelProto | None = None,
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
    """Writes the model with its shapes, folded and without what it does not need."""
    input_model = input_model or deprecated_kwargs.pop("input_model_path", None)
    if input_model is None or output_model_path is None:
        raise ValueError("expected a model, and a path for the result")
    is_model = isinstance(input_model, onnx.ModelProto)
    model: Any = input_model if is_model else onnx.load(os.fspath(input_model))
    if not skip_symbolic_shape:
        from ..tools.symbolic_shape_infer import SymbolicShapeInference  # noqa: PLC0415

        model = SymbolicShapeInference.infer_shapes(
            model, int_max, auto_merge, guess_output_rank, verbose
        )
    if not skip_optimization:
        model = optimize(model)
    if not skip_onnx_shape:
        model = onnx.shape_inference.infer_shapes(model)
    model.metadata_props.add(key="onnx.infer", value="onnxruntime.quant")
    onnx.save(
        model,
        os.fspath(output_model_path),
        save_as_external_data=save_as_external_data,
        all_tensors_to_one_file=all_tensors_to_one_file,
        location=external_data_location,
        size_threshold=external_data_size_threshold,
    )


def optimize(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as a session's basic rewrites leave it."""
    options = SessionOptions()
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory(prefix="tenon.quant.") as folder:
        path = os.path.join(folder, "optimized.onnx")
        options.optimized_model_filepath = path
        InferenceSession(model, options, ["CPUExecutionProvider"])
        return onnx.load(path)
