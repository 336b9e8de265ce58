"""Models in smaller types, made by onnxruntime's tools, as they are deployed."""

import pathlib
import tempfile
from collections.abc import Callable

import cases
import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16

# Arguments of quantize_static. uint8 activations with any zero point, int8 with zero point 0, uint8
# with zero point 128.
FORMS = {
    "qdq": {"activation_type": quantization.QuantType.QUInt8},
    "qdq_s8": {
        "activation_type": quantization.QuantType.QInt8,
        "extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True},
    },
    "qdq_u8mid": {
        "activation_type": quantization.QuantType.QUInt8,
        "extra_options": {"ActivationSymmetric": True, "WeightSymmetric": True},
    },
}


class Reader(quantization.CalibrationDataReader):
    """A few random inputs."""

    def __init__(self, inputs: cases.MakeFeeds) -> None:
        self.feeds = iter([inputs(pathlib.Path(), np.random.default_rng(i)) for i in range(4)])

    def get_next(self) -> dict | None:  # type: ignore[override]
        return next(self.feeds, None)


def static(
    name: str, make: Callable[[str], onnx.ModelProto], inputs: cases.MakeFeeds, form: str
) -> onnx.ModelProto:
    """The model of `make` in QDQ format, weights as int8 with a scale for each channel."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        onnx.save(make(name), folder / "float.onnx")
        quant_pre_process(folder / "float.onnx", folder / "prepared.onnx", skip_symbolic_shape=True)
        quantization.quantize_static(
            folder / "prepared.onnx",
            folder / "quantized.onnx",
            Reader(inputs),
            quantization.QuantFormat.QDQ,
            per_channel=True,
            **FORMS[form],
        )
        return onnx.load(folder / "quantized.onnx")


def dynamic(name: str, make: Callable[[str], onnx.ModelProto]) -> onnx.ModelProto:
    """The model of `make` with products whose left sides are quantized when it runs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        onnx.save(make(name), folder / "float.onnx")
        quantization.quantize_dynamic(folder / "float.onnx", folder / "quantized.onnx")
        return onnx.load(folder / "quantized.onnx")


def half(name: str, make: Callable[[str], onnx.ModelProto]) -> onnx.ModelProto:
    """The model of `make` in float16, with inputs and outputs of floats."""
    return convert_float_to_float16(make(name), keep_io_types=True)
