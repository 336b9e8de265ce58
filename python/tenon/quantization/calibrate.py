"""Ranges of a model's values, from runs on data that is like what it will be given."""

from __future__ import annotations

import abc
import enum
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from .._session import InferenceSession
from .._tenon import GraphOptimizationLevel, SessionOptions

FLOATS: tuple[int, ...] = (TensorProto.FLOAT, TensorProto.FLOAT16)


class CalibrationMethod(enum.Enum):
    """How a range follows from the values seen."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Gives feeds, one after another, then None. To be derived from."""

    @abc.abstractmethod
    def get_next(self) -> Mapping[str, Any] | None:
        """The next feed."""

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return self

    def __next__(self) -> Mapping[str, Any]:
        feed = self.get_next()
        if feed is None:
            raise StopIteration
        return feed

    def __len__(self) -> int:
        raise NotImplementedError

    def set_range(self, start_index: int, end_index: int) -> None:
        """To be overridden by readers that can give a part of their feeds."""
        raise NotImplementedError


class TensorData:
    """The range of one value."""

    def __init__(self, lowest: Any, highest: Any) -> None:
        self.lowest = np.asarray(lowest)
        self.highest = np.asarray(highest)

    def to_dict(self) -> dict[str, Any]:
        """The range by name, as save_tensors_data writes it."""
        return {"lowest": self.lowest, "highest": self.highest, "CLS": "TensorData"}

    @property
    def range_value(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest."""
        return self.lowest, self.highest


class TensorsData(dict[str, TensorData]):
    """Ranges by the name of the value."""

    def __init__(self, calibration_method: CalibrationMethod, data: Mapping[str, Any]) -> None:
        self.calibration_method = calibration_method
        super().__init__(
            (name, one if isinstance(one, TensorData) else TensorData(*one))
            for name, one in data.items()
        )

    def to_dict(self) -> dict[str, Any]:
        """The ranges and their method, as save_tensors_data writes them."""
        return {
            "CLS": "TensorsData",
            "data": dict(self),
            "calibration_method": self.calibration_method,
        }


def save_tensors_data(
    tensors_data: TensorsData, path: str | os.PathLike[str], *, smooth_quant: bool = False
) -> None:
    """Writes ranges to a file of JSON, which onnxruntime reads, too."""

    def encode(value: Any) -> Any:
        if isinstance(value, TensorData):
            return value.to_dict()
        if isinstance(value, CalibrationMethod):
            return {"CLS": "CalibrationMethod", "value": str(value)}
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return value.item()
        if isinstance(value, np.ndarray):
            return {"data": value.tolist(), "dtype": str(value.dtype), "CLS": "numpy.array"}
        raise TypeError(f"cannot write a {type(value).__name__}")

    content = {**tensors_data.to_dict(), "smooth_quant": smooth_quant}
    pathlib.Path(path).write_text(json.dumps(content, default=encode), encoding="utf-8")


def load_tensors_data(path: str | os.PathLike[str]) -> TensorsData:
    """The ranges of a file that save_tensors_data wrote, here or in onnxruntime."""

    def decode(value: Any) -> np.ndarray:
        if isinstance(value, dict):
            return np.array(value["data"], dtype=value["dtype"])
        return np.array(value, np.float32)

    content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("CLS") != "TensorsData":
        raise ValueError(f"{os.fspath(path)} holds no calibration data")
    method = content["calibration_method"]["value"].rpartition(".")[2]
    ranges = {
        name: TensorData(decode(one["lowest"]), decode(one["highest"]))
        for name, one in content["data"].items()
    }
    return TensorsData(CalibrationMethod[method], ranges)


class CalibraterBase(abc.ABC):
    """Runs the model with all its values as outputs. Derived classes keep what they need."""

    def __init__(
        self,
        model_path: str | os.PathLike[str] | onnx.ModelProto,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        per_channel: bool = False,
    ) -> None:
        if not isinstance(model_path, onnx.ModelProto):
            model_path = onnx.load(model_path)
        self.model: onnx.ModelProto = model_path
        self.op_types_to_calibrate = op_types_to_calibrate
        self.symmetric = symmetric
        self.execution_providers = ["CPUExecutionProvider"]
        self._names = self._values_to_watch()
        self._session: InferenceSession | None = None

    def set_execution_providers(
        self, execution_providers: Sequence[str] = ("CPUExecutionProvider",)
    ) -> None:
        """Where the model runs."""
        self.execution_providers = list(execution_providers)
        self._session = None

    def _values_to_watch(self) -> list[str]:
        """Inputs and outputs of the operators that are of interest, without constants."""
        graph = onnx.shape_inference.infer_shapes(self.model).graph
        values = [*graph.value_info, *graph.input, *graph.output]
        is_float = {value.name: value.type.tensor_type.elem_type in FLOATS for value in values}
        constants = {one.name for one in graph.initializer}
        names: dict[str, None] = {}
        for node in graph.node:
            if self.op_types_to_calibrate and node.op_type not in self.op_types_to_calibrate:
                continue
            for name in (*node.input, *node.output):
                if is_float.get(name) and name not in constants:
                    names[name] = None
        return list(names)

    def _open(self) -> InferenceSession:
        """The session over the model in which every value is an output."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        present = {value.name for value in (*model.graph.output, *model.graph.input)}
        for name in self._names:
            if name not in present:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
        options = SessionOptions()
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        return InferenceSession(model, options, providers=self.execution_providers)

    def collect_data(self, data_reader: CalibrationDataReader) -> None:
        """Runs the model on all feeds."""
        if self._session is None:
            self._session = self._open()
        outputs = [output.name for output in self._session.get_outputs()]
        wanted = [name for name in self._names if name in outputs]
        count = 0
        while (feed := data_reader.get_next()) is not None:
            count += 1
            results = dict(zip(wanted, self._session.run(wanted, feed), strict=True))
            for name in self._names:
                array = np.asarray(results[name] if name in results else feed[name])
                if array.size:
                    self._see(name, array)
        if count == 0:
            raise ValueError("No data is collected.")
        self._seen_all()

    def _seen_all(self) -> None:  # noqa: B027 - some need nothing of it
        """Called when a reader has no more feeds."""

    @abc.abstractmethod
    def _see(self, name: str, array: np.ndarray) -> None:
        """Keeps what is needed of a value."""

    @abc.abstractmethod
    def compute_data(self) -> TensorsData:
        """The ranges."""


class MinMaxCalibrater(CalibraterBase):
    """From the smallest value to the largest; or their moving averages."""

    def __init__(
        self,
        model_path: str | os.PathLike[str] | onnx.ModelProto,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        moving_average: bool = False,
        averaging_constant: float = 0.01,
        max_intermediate_outputs: int | None = None,
        per_channel: bool = False,
    ) -> None:
        super().__init__(model_path, op_types_to_calibrate, augmented_model_path, symmetric)
        self._moving_average = moving_average
        self._seen: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}

    def _see(self, name: str, array: np.ndarray) -> None:
        self._seen.setdefault(name, []).append((array.min(), array.max()))

    def compute_data(self) -> TensorsData:
        ranges = {}
        for name, seen in self._seen.items():
            lows, highs = (np.array(side) for side in zip(*seen, strict=True))
            low, high = lows.min(), highs.max()
            if self._moving_average:
                low, high = lows.mean(), highs.mean()
            if self.symmetric:
                high = max(abs(low), abs(high))
                low = -high
            ranges[name] = TensorData(low, high)
        return TensorsData(CalibrationMethod.MinMax, ranges)


class Histogram:
    """How often values lie in bins of one width, symmetric around zero."""

    def __init__(self, bins: int) -> None:
        self._bins = bins
        self.counts = np.zeros(0, np.int64)
        self.threshold = np.float64(0)
        self.lowest, self.highest = np.float32(np.inf), np.float32(-np.inf)

    def add(self, values: np.ndarray) -> None:
        """Counts values; the bins become more, not wider, if some lie outside."""
        values = values.reshape(-1)
        self.lowest = min(self.lowest, values.min())
        self.highest = max(self.highest, values.max())
        reach = np.float64(max(abs(values.min()), abs(values.max())))
        if self.counts.size == 0:
            self.threshold = reach or np.float64(1)
            self.counts = self._count(values, self._bins)
            return
        more = 0
        if reach > self.threshold:
            width = 2 * self.threshold / self.counts.size
            more = int((reach - self.threshold) // width + 1)
            self.threshold += more * width
        counts = self._count(values, self.counts.size + 2 * more)
        counts[more : counts.size - more] += self.counts
        self.counts = counts

    def _count(self, values: np.ndarray, bins: int) -> np.ndarray:
        counts, _ = np.histogram(values, bins, range=(-self.threshold, self.threshold))
        return counts

    @property
    def edges(self) -> np.ndarray:
        """Where the bins begin, and the last one ends."""
        return np.linspace(-self.threshold, self.threshold, self.counts.size + 1)

    def clipped(self, low: Any, high: Any) -> TensorData:
        """A range that reaches no farther than the values seen."""
        return TensorData(np.float32(max(low, self.lowest)), np.float32(min(high, self.highest)))


class HistogramCalibrater(CalibraterBase):
    """Ranges that leave out what is rare."""

    method = CalibrationMethod.Percentile

    def __init__(
        self,
        model_path: str | os.PathLike[str] | onnx.ModelProto,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        use_external_data_format: bool = False,
        symmetric: bool = False,
        num_bins: int = 128,
        num_quantized_bins: int = 128,
        percentile: float = 99.999,
    ) -> None:
        super().__init__(model_path, op_types_to_calibrate, augmented_model_path, symmetric)
        self._num_bins = num_bins
        self._num_quantized_bins = num_quantized_bins
        self._percentile = percentile
        self._histograms: dict[str, Histogram] = {}
        self._arrays: dict[str, list[np.ndarray]] = {}

    def _see(self, name: str, array: np.ndarray) -> None:
        self._arrays.setdefault(name, []).append(array.reshape(-1))

    def _seen_all(self) -> None:
        # All at once: the bins are then as wide as all of the data asks for.
        for name, arrays in self._arrays.items():
            histogram = self._histograms.setdefault(name, Histogram(self._num_bins))
            histogram.add(np.concatenate(arrays))
        self._arrays.clear()

    @abc.abstractmethod
    def _range_of(self, histogram: Histogram) -> TensorData:
        """The range of one value."""

    def compute_data(self) -> TensorsData:
        ranges = {name: self._range_of(one) for name, one in self._histograms.items()}
        return TensorsData(self.method, ranges)


class PercentileCalibrater(HistogramCalibrater):
    """Leaves out a share of the values, half of it on either side."""

    def __init__(self, *arguments: Any, num_bins: int = 2048, **keywords: Any) -> None:
        super().__init__(*arguments, **{**keywords, "num_bins": num_bins})
        if not 0 <= self._percentile <= 100:
            raise ValueError("Invalid percentile. Must be in range 0 <= percentile <= 100.")

    def _range_of(self, histogram: Histogram) -> TensorData:
        counts, edges = histogram.counts, histogram.edges
        if self.symmetric:  # the distances from zero
            middle = counts.size // 2
            counts, edges = counts[middle:] + counts[:middle][::-1], edges[middle:]
        below = np.cumsum(counts / counts.sum())
        if self.symmetric:
            right = np.searchsorted(below, self._percentile / 100)
            high = edges[min(int(right), edges.size - 1)]
            return histogram.clipped(-high, high)
        cut = (100 - self._percentile) / 200
        left, right = np.searchsorted(below, cut), np.searchsorted(below, 1 - cut)
        return histogram.clipped(edges[left], edges[min(int(right), edges.size - 1)])


class EntropyCalibrater(HistogramCalibrater):
    """Keeps most of the distribution: the least Kullback-Leibler divergence."""

    method = CalibrationMethod.Entropy

    def _range_of(self, histogram: Histogram) -> TensorData:
        counts, edges = histogram.counts, histogram.edges
        middle, half = counts.size // 2, self._num_quantized_bins // 2
        best, least = (edges[0], edges[-1]), np.inf
        for reach in range(half, middle + 1):
            begin, end = middle - reach, min(middle + reach + 1, counts.size)
            divergence = self._divergence(counts, begin, end)
            if divergence < least:
                least, best = divergence, (edges[begin], edges[end])
        return histogram.clipped(*best)

    def _divergence(self, counts: np.ndarray, begin: int, end: int) -> float:
        """Of what [begin, end) keeps with few numbers from what is there, the rest at its ends."""
        kept = counts[begin:end]
        full = kept.astype(np.float64)
        full[0] += counts[:begin].sum()
        full[-1] += counts[end:].sum()
        present = full != 0
        bins, width = self._num_quantized_bins, kept.size // self._num_quantized_bins
        group = np.minimum(np.arange(kept.size) // width, bins - 1)
        sums = np.bincount(group, weights=kept, minlength=bins)
        in_bins = np.arange(kept.size) < bins * width
        numbers = np.bincount(group, weights=present & in_bins, minlength=bins)
        with np.errstate(divide="ignore", invalid="ignore"):
            coarse = np.where(in_bins & (numbers[group] != 0), sums[group] / numbers[group], 0.0)
        p, q = smooth(full), smooth(coarse)
        if p is None or q is None:
            return np.inf
        p, q = p / p.sum(), q / q.sum()
        return float(np.sum(p * np.log(p / q)))


def smooth(counts: np.ndarray, share: float = 0.0001) -> np.ndarray | None:
    """Takes a little from what is there for what is not. None if nothing is there."""
    zeros = counts == 0
    present = np.count_nonzero(~zeros)
    if present == 0:
        return None
    taken = share * np.count_nonzero(zeros) / present
    smoothed = counts.astype(np.float32) + share * zeros - taken * ~zeros
    return smoothed if (smoothed > 0).all() else None


CALIBRATERS: dict[CalibrationMethod, Any] = {
    CalibrationMethod.MinMax: MinMaxCalibrater,
    CalibrationMethod.Entropy: EntropyCalibrater,
    CalibrationMethod.Percentile: PercentileCalibrater,
}


def create_calibrator(
    model: str | os.PathLike[str] | onnx.ModelProto,
    op_types_to_calibrate: Sequence[str] | None = None,
    augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    use_external_data_format: bool = False,
    providers: Sequence[str] | None = None,
    extra_options: Mapping[str, Any] | None = None,
) -> CalibraterBase:
    """A calibrator of that method. `extra_options` are parameters of its class."""
    if calibrate_method not in CALIBRATERS:
        raise ValueError(f"Unsupported calibration method {calibrate_method}")
    calibrator: CalibraterBase = CALIBRATERS[calibrate_method](
        model, op_types_to_calibrate, augmented_model_path, **dict(extra_options or {})
    )
    if providers:
        calibrator.set_execution_providers(providers)
    return calibrator
