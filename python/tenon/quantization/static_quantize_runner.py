"""quantize_static on a command line, with the data in the folder of a model.

python -m tenon.quantization.static_quantize_runner -i IN -o OUT

The data are in folders test_data_set_0, test_data_set_1, ... as ONNX's own models have them, with a
file input_0.pb, input_1.pb, ... for each input.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from .calibrate import CalibrationDataReader, CalibrationMethod
from .quant_utils import QuantFormat, QuantType
from .quantize import StaticQuantConfig, quantize

# Options that are flags, and the keys of extra_options that they set.
SWITCHES = {
    "enable_subgraph": "EnableSubgraph",
    "force_quantize_no_input_check": "ForceQuantizeNoInputCheck",
    "matmul_const_b_only": "MatMulConstBOnly",
    "add_qdq_pair_to_weight": "AddQDQPairToWeight",
    "dedicated_qdq_pair": "DedicatedQDQPair",
    "calib_tensor_range_symmetric": "CalibTensorRangeSymmetric",
    "calib_moving_average": "CalibMovingAverage",
    "use_qdq_contrib_ops": "UseQDQContribOps",
    "qdq_keep_removable_activations": "QDQKeepRemovableActivations",
    "qdq_disable_weight_adjust_for_int32_bias": "QDQDisableWeightAdjustForInt32Bias",
}
TYPES = {str(one).lower(): one for one in QuantType}
METHODS = {one.name.lower(): one for one in CalibrationMethod}
FORMATS = {str(one).lower(): one for one in QuantFormat}


class OnnxModelCalibrationDataReader(CalibrationDataReader):
    """The feeds in the folder of a model."""

    def __init__(self, model_path: str | os.PathLike[str]) -> None:
        graph = onnx.load(os.fspath(model_path), load_external_data=False).graph
        constants = {one.name for one in graph.initializer}
        names = [one.name for one in graph.input if one.name not in constants]
        folders = sorted(pathlib.Path(model_path).parent.glob("test_data_set_*"))
        if not folders:
            raise ValueError(f"there are no folders test_data_set_* beside {os.fspath(model_path)}")
        self.calibration_data = iter(
            [
                {name: read(folder / f"input_{i}.pb") for i, name in enumerate(names)}
                for folder in folders
            ]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next feed."""
        return next(self.calibration_data, None)


def read(path: pathlib.Path) -> np.ndarray:
    """The tensor of a file."""
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def get_tensor_quant_overrides(file: str | os.PathLike[str] | None) -> dict[str, Any]:
    """The overrides of a file of JSON, in which types have their names."""
    if not file:
        return {}
    overrides: dict[str, Any] = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    for several in overrides.values():
        for one in several:
            if "scale" in one:
                one["scale"] = np.array(one["scale"], np.float32)
                one["zero_point"] = np.array(one["zero_point"])
            for settings in (one, one.get("convert", {})):
                if isinstance(settings.get("quant_type"), str):
                    settings["quant_type"] = QuantType.from_string(settings["quant_type"])
    return overrides


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("-i", "--input_model_path", required=True, help="the model")
    add("-o", "--output_quantized_model_path", required=True, help="where the result goes")
    add("--activation_type", choices=TYPES, default="quint8", help="of values")
    add("--weight_type", choices=TYPES, default="qint8", help="of weights")
    for switch, key in SWITCHES.items():
        add(f"--{switch}", action="store_true", help=f"sets the option {key}")
    add("--op_types_to_exclude_output_quantization", nargs="+", default=[], help="operators")
    add("--calibration_method", default="minmax", choices=METHODS, help="how ranges are found")
    add("--quant_format", default="qdq", choices=FORMATS, help="pairs, or other operators")
    add("--disable_quantize_bias", action="store_true", help="biases stay")
    add("--minimum_real_range", type=float, default=0.0001, help="ranges are no smaller")
    add("--per_channel", action="store_true", help="a scale for each channel of a weight")
    add("--nodes_to_quantize", nargs="+", help="names")
    add("--nodes_to_exclude", nargs="+", help="names")
    add(
        "--op_per_channel_axis",
        nargs=2,
        action="append",
        metavar=("OP_TYPE", "AXIS"),
        default=[],
        help="the axis of channels of an operator's weight",
    )
    add("--tensor_quant_overrides", help="a file of JSON: what is asked for single tensors")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Quantizes as the command line says."""
    given = parse_arguments(arguments)
    extra = {key: getattr(given, switch) for switch, key in SWITCHES.items()}
    extra |= {
        "OpTypesToExcludeOutputQuantization": given.op_types_to_exclude_output_quantization,
        "QDQOpTypePerChannelSupportToAxis": {
            op_type: int(axis) for op_type, axis in given.op_per_channel_axis
        },
        "QuantizeBias": not given.disable_quantize_bias,
        "MinimumRealRange": given.minimum_real_range,
        "TensorQuantOverrides": get_tensor_quant_overrides(given.tensor_quant_overrides),
    }
    config = StaticQuantConfig(
        OnnxModelCalibrationDataReader(given.input_model_path),
        METHODS[given.calibration_method],
        FORMATS[given.quant_format],
        TYPES[given.activation_type],
        TYPES[given.weight_type],
        nodes_to_quantize=given.nodes_to_quantize,
        nodes_to_exclude=given.nodes_to_exclude,
        per_channel=given.per_channel,
        extra_options=extra,
    )
    quantize(given.input_model_path, given.output_quantized_model_path, config)


if __name__ == "__main__":
    main()
