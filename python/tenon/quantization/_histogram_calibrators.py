"""Calibrators that make histograms."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ._calibration_data import CalibrationDataReader, CalibrationMethod, TensorsData
from ._calibrators import CalibraterBase
from ._histograms import HistogramCollector
from ._loading import ModelLike


class HistogramCalibrater(CalibraterBase):
    """Ranges that leave out rare numbers.

    num_bins            of a value's first histogram; it grows if later numbers lie outside
    num_quantized_bins  of the coarser histogram with which "entropy" compares it
    percentile          the share of numbers, in per cent, that "percentile" keeps
    scenario            of "distribution": "same" or "p3"
    """

    calibration_method: CalibrationMethod | None = None

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 2048,
        percentile: float = 99.999,
        scenario: str = "same",
    ) -> None:
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            symmetric,
            use_external_data_format,
        )
        self.method = method
        self.num_bins = num_bins
        self.num_quantized_bins = num_quantized_bins
        self.percentile = percentile
        self.scenario = scenario
        self.collector = HistogramCollector(
            method, symmetric, num_bins, num_quantized_bins, percentile, scenario
        )
        self.tensors_to_calibrate = self.watched()
        self.intermediate_outputs: list[dict[str, np.ndarray]] = []

    def augment_graph(self) -> None:
        """Adds the values to the outputs."""
        graph = self.model.graph
        values = {one.name: one for one in graph.value_info}
        present = {one.name for one in (*graph.output, *graph.input)}
        graph.output.extend(
            values[name] for name in self.tensors_to_calibrate if name not in present
        )
        self.write_augmented()

    def clear_collected_data(self) -> None:
        """Forgets the values that were not counted yet."""
        self.intermediate_outputs = []

    def collect_data(self, data_reader: CalibrationDataReader) -> None:
        """Runs the model on all feeds, and counts the values."""
        session = self.session()
        made = {one.name for one in session.get_outputs()}
        outputs = [name for name in self.tensors_to_calibrate if name in made]
        while feed := data_reader.get_next():
            results = dict(zip(outputs, session.run(outputs, feed) if outputs else (), strict=True))
            self.intermediate_outputs.append(
                {
                    name: np.asarray(results[name] if name in results else feed[name])
                    for name in self.tensors_to_calibrate
                }
            )
        if not self.intermediate_outputs:
            raise ValueError("No data is collected.")
        # All arrays at once, so that the bins are as wide as all of the data requires.
        seen, self.intermediate_outputs = self.intermediate_outputs, []
        for name in self.tensors_to_calibrate:
            self.collector.collect({name: [one[name] for one in seen]})

    def compute_data(self) -> TensorsData:
        """The ranges."""
        if self.calibration_method is None:
            raise TypeError(f"{type(self).__name__} names no method of calibration")
        if not self.tensors_to_calibrate:
            return TensorsData(self.calibration_method, {})
        result = self.collector.compute_collection_result()
        return TensorsData(self.calibration_method, result)


class EntropyCalibrater(HistogramCalibrater):
    """Keeps most of the distribution."""

    calibration_method = CalibrationMethod.Entropy

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "entropy",
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 128,
    ) -> None:
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            symmetric,
            num_bins,
            num_quantized_bins,
        )


class PercentileCalibrater(HistogramCalibrater):
    """Leaves out a share of the numbers."""

    calibration_method = CalibrationMethod.Percentile

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "percentile",
        symmetric: bool = False,
        num_bins: int = 2048,
        percentile: float = 99.999,
    ) -> None:
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            symmetric,
            num_bins,
            percentile=percentile,
        )


class DistributionCalibrater(HistogramCalibrater):
    """Mean and deviation, by which float 8 is scaled."""

    calibration_method = CalibrationMethod.Distribution

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        method: str = "distribution",
        num_bins: int = 128,
        scenario: str = "same",
    ) -> None:
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            use_external_data_format,
            method,
            num_bins=num_bins,
            scenario=scenario,
        )
