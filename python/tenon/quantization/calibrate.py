"""Ranges of a model's values, from runs on typical data."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._calibration_data import (
    CalibrationCacheEncoder,
    CalibrationDataReader,
    CalibrationMethod,
    TensorData,
    TensorsData,
    load_tensors_data,
    save_tensors_data,
)
from ._calibrators import CalibraterBase, MinMaxCalibrater
from ._histogram_calibrators import (
    DistributionCalibrater,
    EntropyCalibrater,
    HistogramCalibrater,
    PercentileCalibrater,
)
from ._histograms import HistogramCollector, entropy
from ._loading import ModelLike

__all__ = [
    "CalibraterBase",
    "CalibrationCacheEncoder",
    "CalibrationDataReader",
    "CalibrationMethod",
    "DistributionCalibrater",
    "EntropyCalibrater",
    "HistogramCalibrater",
    "HistogramCollector",
    "MinMaxCalibrater",
    "PercentileCalibrater",
    "TensorData",
    "TensorsData",
    "create_calibrator",
    "entropy",
    "load_tensors_data",
    "save_tensors_data",
]


@dataclass(frozen=True)
class Method:
    """A class, the options that it knows, and the defaults that differ from its own."""

    calibrater: Callable[..., CalibraterBase]
    options: tuple[str, ...]
    defaults: Mapping[str, Any]


METHODS = {
    CalibrationMethod.MinMax: Method(
        MinMaxCalibrater,
        (
            "symmetric",
            "moving_average",
            "averaging_constant",
            "max_intermediate_outputs",
            "per_channel",
        ),
        {},
    ),
    CalibrationMethod.Entropy: Method(
        EntropyCalibrater, ("symmetric", "num_bins", "num_quantized_bins"), {}
    ),
    CalibrationMethod.Percentile: Method(
        PercentileCalibrater, ("symmetric", "num_bins", "percentile"), {"symmetric": True}
    ),
    CalibrationMethod.Distribution: Method(
        DistributionCalibrater, ("num_bins", "scenario"), {"num_bins": 2048}
    ),
}
OPTIONS = {name for method in METHODS.values() for name in method.options}


def create_calibrator(
    model: ModelLike,
    op_types_to_calibrate: Sequence[str] | None = None,
    augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    use_external_data_format: bool = False,
    providers: Sequence[Any] | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> CalibraterBase:
    """A calibrator of that method, ready for collect_data.

    extra_options  parameters of its class. Those of other methods have no effect.
    """
    if calibrate_method not in METHODS:
        raise ValueError(f"Unsupported calibration method {calibrate_method}")
    method = METHODS[calibrate_method]
    given = dict(extra_options or {})
    if unknown := sorted(given.keys() - OPTIONS):
        known = ", ".join(sorted(OPTIONS))
        logging.warning("no calibrator has the options %s: known are %s", unknown, known)
    options = {name: given[name] for name in method.options if name in given}
    calibrator = method.calibrater(
        model,
        op_types_to_calibrate,
        augmented_model_path,
        use_external_data_format=use_external_data_format,
        **{**method.defaults, **options},
    )
    calibrator.augment_graph()
    if providers:
        calibrator.execution_providers = list(providers)
    calibrator.create_inference_session()
    return calibrator
