"""The ranges of a model's values: from a file, or from runs."""

from __future__ import annotations

import logging
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from ._calibration_data import (
    CalibrationDataReader,
    CalibrationMethod,
    TensorsData,
    read_calibration,
    save_tensors_data,
)
from ._configuration import CALIBRATION
from .calibrate import create_calibrator


def ranges_of(
    model: onnx.ModelProto,
    reader: CalibrationDataReader | None,
    method: CalibrationMethod,
    op_types: Sequence[str],
    providers: Sequence[Any] | None,
    extra: Mapping[str, Any],
    cache: str | os.PathLike[str] | None,
) -> TensorsData:
    """The ranges of the model's values, from the cache if it has them."""
    is_smooth = bool(extra.get("SmoothQuant", False))
    if cache is not None and pathlib.Path(cache).exists():
        known = read_calibration(cache)
        ranges = TensorsData.from_dict(known)
        if bool(known.get("smooth_quant", False)) == is_smooth:
            if ranges.calibration_method != method:
                raise ValueError(
                    f"Calibration cache at {os.fspath(cache)} was produced with "
                    f"{ranges.calibration_method}, but quantize_static was called with "
                    f"calibrate_method={method}. Delete the cache or pass a matching method."
                )
            return ranges
        logging.warning(
            "%s was made with another smooth_quant, and is written anew", os.fspath(cache)
        )
    if reader is None:
        raise ValueError(
            "Either calibration_data_reader or an existing calibration_cache_path must be provided."
        )
    ranges = _calibrate(model, reader, method, op_types, providers, extra)
    if cache is not None:
        save_tensors_data(ranges, cache, smooth_quant=is_smooth)
    return ranges


def _calibrate(
    model: onnx.ModelProto,
    reader: CalibrationDataReader,
    method: CalibrationMethod,
    op_types: Sequence[str],
    providers: Sequence[Any] | None,
    extra: Mapping[str, Any],
) -> TensorsData:
    options = {name: extra[key] for key, name in CALIBRATION.items() if extra.get(key) is not None}
    with tempfile.TemporaryDirectory(prefix="tenon.quant.") as folder:
        calibrator = create_calibrator(
            model,
            op_types,
            os.path.join(folder, "augmented.onnx"),
            method,
            providers=providers,
            extra_options=options,
        )
        stride = extra.get("CalibStridedMinMax")
        if not stride:
            calibrator.collect_data(reader)
            return calibrator.compute_data()
        count = len(reader)
        if count % stride != 0:
            raise ValueError(f"{count} feeds are not divisible by CalibStridedMinMax = {stride}")
        for start in range(0, count, stride):
            reader.set_range(start, start + stride)
            calibrator.collect_data(reader)
        return calibrator.compute_data()
