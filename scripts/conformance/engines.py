"""The engines that run the suite, as backends of the onnx package."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.base import Backend, BackendRep

ENGINES = ("tenon", "onnxruntime")


def load(engine: str) -> type[Backend]:
    """The backend of an engine."""
    if engine == "tenon":
        from tenon.backend import TenonBackend  # noqa: PLC0415 - each process loads one engine

        return TenonBackend
    return OnnxRuntimeBackend


class OnnxRuntimeBackend(Backend):
    """onnxruntime. Its own backend refuses arrays of ml_dtypes; this one passes them on."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> BackendRep:
        import onnxruntime  # noqa: PLC0415

        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return OnnxRuntimeModel(session)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


class OnnxRuntimeModel(BackendRep):
    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, inputs: Any, **_: Any) -> list[Any]:
        names = [argument.name for argument in self._session.get_inputs()]
        feeds = dict(zip(names, inputs, strict=False))
        types = [argument.type for argument in self._session.get_outputs()]
        if not any(map(is_foreign, inputs)) and not any(map(is_foreign_name, types)):
            return self._session.run(None, feeds)
        values = {name: to_value(value) for name, value in feeds.items()}
        return [from_value(value) for value in self._session.run_with_ort_values(None, values)]


FOREIGN_TYPES = {
    f"tensor({name})": getattr(onnx.TensorProto, name.upper())
    for name in (
        "bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz float8e8m0 "
        "float4e2m1 int4 uint4 int2 uint2"
    ).split()
}


def is_foreign_name(type_name: str) -> bool:
    return type_name in FOREIGN_TYPES


def is_foreign(value: Any) -> bool:
    """Whether it is an array of an ml_dtypes type."""
    return isinstance(value, np.ndarray) and value.dtype.isbuiltin != 1


def to_value(array: np.ndarray) -> Any:
    import onnxruntime  # noqa: PLC0415

    if not is_foreign(array):
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    element_type = helper.np_dtype_to_tensor_dtype(array.dtype)
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, element_type)
    memory = numpy_helper.from_array(array).raw_data
    ctypes.memmove(value.data_ptr(), memory, len(memory))
    return value


def from_value(value: Any) -> Any:
    if not is_foreign_name(value.data_type()):
        return value.numpy()
    tensor = onnx.TensorProto(data_type=FOREIGN_TYPES[value.data_type()], dims=value.shape())
    tensor.raw_data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return numpy_helper.to_array(tensor)
