"""Loads models with the shapes of their values, and converts them to opsets with the types."""

from __future__ import annotations

import copy
import logging
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import ModelProto, TensorProto, version_converter

from ._names import ONNX_DOMAINS
from ._types import SIXTEEN_BITS, tensor_type_of

ModelLike = str | os.PathLike[str] | ModelProto

MODEL_SIZE_THRESHOLD = 2**31  # more bytes than any Protocol Buffers message may have
KEPT_BYTES = 1024  # constants whose values shape inference may read
BY_US = "onnxruntime.quant"  # by which onnxruntime's tools recognize prepared models
INFERRED, PREPARED = "onnx.infer", "onnx.quant.pre_process"


def infer_shapes(model: ModelProto) -> ModelProto:
    """A copy of the model with the types and shapes of its values, however large it is."""
    skeleton = ModelProto()
    skeleton.CopyFrom(model)
    large = {}
    for one, source in zip(skeleton.graph.initializer, model.graph.initializer, strict=True):
        if len(one.raw_data) > KEPT_BYTES:  # inference would write and read them for no use
            large[one.name] = source
            one.ClearField("raw_data")
            one.data_location = TensorProto.EXTERNAL
    inferred = onnx.shape_inference.infer_shapes(skeleton)
    for one in inferred.graph.initializer:
        if one.name in large:
            one.CopyFrom(large[one.name])
    return inferred


def load_model_with_shape_infer(model_path: str | os.PathLike[str]) -> ModelProto:
    """The model of a file, with its external data and its shapes."""
    path = os.fspath(model_path)
    model = infer_shapes(onnx.load(path, load_external_data=False))
    onnx.external_data_helper.load_external_data_for_model(model, os.path.dirname(path))
    add_infer_metadata(model)
    return model


def save_and_reload_model_with_shape_infer(model: ModelProto) -> ModelProto:
    """A copy of the model, with its shapes."""
    inferred = infer_shapes(model)
    add_infer_metadata(inferred)
    return inferred


def load(model: ModelLike) -> ModelProto:
    """A copy of a model, with its shapes."""
    if isinstance(model, ModelProto):
        return save_and_reload_model_with_shape_infer(model)
    return load_model_with_shape_infer(model)


def _tag(model: ModelProto, key: str) -> None:
    if all(one.key != key for one in model.metadata_props):
        model.metadata_props.add(key=key, value=BY_US)


def _is_tagged(model: ModelProto, key: str) -> bool:
    return any(one.key == key and one.value == BY_US for one in model.metadata_props)


def add_infer_metadata(model: ModelProto) -> None:
    """Marks the model as having inferred shapes."""
    _tag(model, INFERRED)


def model_has_infer_metadata(model: ModelProto) -> bool:
    """Whether the model is marked as having inferred shapes."""
    return _is_tagged(model, INFERRED)


def add_pre_process_metadata(model: ModelProto) -> None:
    """Marks the model as prepared for quantization."""
    _tag(model, PREPARED)


def model_has_pre_process_metadata(model: ModelProto) -> bool:
    """Whether the model is marked as prepared for quantization."""
    return _is_tagged(model, PREPARED)


def model_has_external_data(model_path: str | os.PathLike[str]) -> bool:
    """Whether the model of a file has constants in other files."""
    graph = onnx.load(os.fspath(model_path), load_external_data=False).graph
    return any(onnx.external_data_helper.uses_external_data(one) for one in graph.initializer)


def generate_identified_filename(filename: pathlib.Path, identifier: str) -> pathlib.Path:
    """A path in the same folder: 'a/b.onnx' and '-c' give 'a/b-c.onnx'."""
    return filename.with_name(filename.stem + identifier + filename.suffix)


def get_opset_version(model: ModelProto) -> int:
    """The model's opset of ONNX's own domain."""
    versions = {one.version for one in model.opset_import if one.domain in ONNX_DOMAINS}
    if len(versions) != 1:
        raise ValueError(f"expected one version of the domain ai.onnx, got {sorted(versions)}")
    return int(versions.pop())


def _override_types(overrides: Mapping[str, Any] | None) -> set[int]:
    """The types that TensorQuantOverrides names. They are validated elsewhere."""
    types = set()
    for several in (overrides or {}).values():
        for one in several if isinstance(several, Sequence) else ():
            for settings in (one, one.get("convert")) if isinstance(one, Mapping) else ():
                if isinstance(settings, Mapping) and settings.get("quant_type") is not None:
                    types.add(tensor_type_of(settings["quant_type"]))
    return types


def update_opset_version(
    model: ModelProto,
    weight_type: Any,
    activation_type: Any = None,
    tensor_quant_overrides: Mapping[str, Any] | None = None,
    block_size: int = 0,
    *,
    least: int = 0,
) -> ModelProto:
    """The model, or one converted to an opset whose QuantizeLinear has these types.

    least  an opset that is needed for other reasons
    """
    present = get_opset_version(model)
    types = {tensor_type_of(one) for one in (weight_type, activation_type) if one is not None}
    needed = max(11 if present < 10 else present, least)
    if TensorProto.FLOAT8E4M3FN in types:
        needed = max(needed, 19)
    if (types | _override_types(tensor_quant_overrides)) & SIXTEEN_BITS or block_size > 0:
        needed = max(needed, 21)
    if needed == present:
        return model
    logging.warning(
        "opset %d cannot say how this is to be quantized: the model is converted to opset %d. "
        "Please verify the quantized model.",
        present,
        needed,
    )
    converted = version_converter.convert_version(model, needed)
    return save_and_reload_model_with_shape_infer(converted)


def copy_of(model: ModelLike) -> ModelProto:
    """A model that may be changed."""
    return copy.deepcopy(model) if isinstance(model, ModelProto) else onnx.load(os.fspath(model))


def has_float16(model: ModelProto) -> bool:
    """Whether a model has float16 numbers."""
    graph = model.graph
    values = (*graph.input, *graph.output, *graph.value_info)
    kinds = {one.type.tensor_type.elem_type for one in values}
    kinds |= {one.data_type for one in graph.initializer}
    return TensorProto.FLOAT16 in kinds
