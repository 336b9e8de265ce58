"""The data and the results of calibration."""

from __future__ import annotations

import abc
import enum
import json
import os
import pathlib
import tempfile
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

import numpy as np


class CalibrationMethod(enum.Enum):
    """How a range follows from the recorded values."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class CalibrationDataReader(abc.ABC):
    """Base class of readers. Returns feeds one after another, then None."""

    @classmethod
    def __subclasshook__(cls, subclass: type) -> bool:
        return callable(getattr(subclass, "get_next", None)) or NotImplemented

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
        """Overridden by readers that can return a part of their feeds."""
        raise NotImplementedError


class TensorData:
    """The statistics of one value, by name: see FLOATS and COUNTS."""

    FLOATS = frozenset(("avg", "std", "lowest", "highest", "hist_edges"))
    COUNTS = frozenset(("hist", "bins"))

    def __init__(self, **known: Any) -> None:
        for name, value in known.items():
            if name not in self.FLOATS | self.COUNTS:
                expected = ", ".join(sorted(self.FLOATS | self.COUNTS))
                raise ValueError(f"Unexpected value {name!r}: expected one of {expected}")
            if name in self.FLOATS and getattr(value, "dtype", None) not in (
                np.float16,
                np.float32,
            ):
                kind = getattr(value, "dtype", type(value).__name__)
                raise ValueError(f"{name}: expected an array of float16 or float32, got {kind}")
        self._names = tuple(known)
        vars(self).update(known)

    def _both(self, one: str, other: str) -> tuple[Any, Any]:
        missing = [name for name in (one, other) if name not in self._names]
        if missing:
            raise AttributeError(f"this range has no {' and no '.join(missing)}")
        return getattr(self, one), getattr(self, other)

    @property
    def range_value(self) -> tuple[Any, Any]:
        """Lowest and highest."""
        return self._both("lowest", "highest")

    @property
    def avg_std(self) -> tuple[Any, Any]:
        """Mean and deviation."""
        return self._both("avg", "std")

    def to_dict(self) -> dict[str, Any]:
        """The statistics by name, as save_tensors_data writes them."""
        return {**{name: getattr(self, name) for name in self._names}, "CLS": "TensorData"}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorData:
        """Reads the result of to_dict, directly or from JSON."""

        def value(name: str, one: Any) -> Any:
            if isinstance(one, Mapping):
                return np.array(one["data"], dtype=one["dtype"])
            is_number = name in cls.FLOATS and isinstance(one, int | float)
            return np.array(one, np.float32) if is_number else one

        return cls(**{name: value(name, one) for name, one in d.items() if name != "CLS"})


class TensorsData:
    """The statistics of values, by name."""

    def __init__(
        self,
        calibration_method: CalibrationMethod,
        data: Mapping[str, TensorData | tuple[Any, ...]],
    ) -> None:
        self.calibration_method = calibration_method
        self.data: dict[str, TensorData] = {}
        for name, one in data.items():
            if not isinstance(name, str):
                raise TypeError(f"Keys must be strings not {type(name)}.")
            self.data[name] = self._data_of(name, one)

    def _data_of(self, name: str, one: Any) -> TensorData:
        """Tuples have the lowest and the highest number, and counts and edges of histograms."""
        if isinstance(one, TensorData):
            return one
        if not isinstance(one, tuple):
            raise TypeError(f"'{name}': expected TensorData, got {type(one).__name__}")
        if len(one) == 2 and self.calibration_method == CalibrationMethod.MinMax:
            return TensorData(lowest=one[0], highest=one[1])
        if len(one) == 4:
            return TensorData(lowest=one[0], highest=one[1], hist=one[2], bins=one[3])
        raise TypeError(f"'{name}': expected 2 or 4 values, got {len(one)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key: object) -> bool:
        return key in self.data

    def __getitem__(self, key: str) -> TensorData:
        return self.data[key]

    def __setitem__(self, key: str, value: TensorData) -> None:
        if key not in self.data:
            raise RuntimeError(f"Only an existing tensor can be modified, {key!r} is not.")
        self.data[key] = value

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.data.keys()

    def values(self) -> ValuesView[TensorData]:
        """The statistics."""
        return self.data.values()

    def items(self) -> ItemsView[str, TensorData]:
        """Pairs of name and statistics."""
        return self.data.items()

    def to_dict(self) -> dict[str, Any]:
        """The statistics and their method, as save_tensors_data writes them."""
        method = self.calibration_method
        return {"CLS": "TensorsData", "data": self.data, "calibration_method": method}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> TensorsData:
        """Reads the result of to_dict, directly or from JSON."""
        method = d["calibration_method"]
        if isinstance(method, Mapping):
            method = CalibrationMethod[method["value"].rpartition(".")[2]]
        ranges = {
            name: one if isinstance(one, TensorData) else TensorData.from_dict(one)
            for name, one in d["data"].items()
        }
        return cls(method, ranges)


class CalibrationCacheEncoder(json.JSONEncoder):
    """Encodes ranges and their parts as JSON."""

    def default(self, obj: Any) -> Any:
        """The JSON representation of an object."""
        if isinstance(obj, TensorData | TensorsData):
            return obj.to_dict()
        if isinstance(obj, CalibrationMethod):
            return {"CLS": "CalibrationMethod", "value": str(obj)}
        if isinstance(obj, np.ndarray):
            return {"data": obj.tolist(), "dtype": str(obj.dtype), "CLS": "numpy.array"}
        return obj.item() if isinstance(obj, np.generic) else super().default(obj)


def save_tensors_data(
    tensors_data: TensorsData, path: str | os.PathLike[str], *, smooth_quant: bool = False
) -> None:
    """Writes ranges to a file of JSON, which onnxruntime reads, too.

    A reader of that path sees the old content or the new, never a part.
    """
    content = {**tensors_data.to_dict(), "smooth_quant": smooth_quant}
    text = json.dumps(content, cls=CalibrationCacheEncoder)
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".calibration", dir=target.parent) as folder:
        written = pathlib.Path(folder) / target.name
        written.write_text(text, encoding="utf-8")
        os.replace(written, target)


def load_tensors_data(path: str | os.PathLike[str]) -> TensorsData:
    """The ranges of a file that save_tensors_data wrote, here or in onnxruntime."""
    return TensorsData.from_dict(read_calibration(path))


def read_calibration(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of such a file, as parsed JSON."""
    source = pathlib.Path(path)
    if not source.exists():
        raise FileNotFoundError(f"Calibration cache not found: {source}")
    if not source.is_file():
        raise ValueError(f"Calibration cache path is not a file: {source}")
    content = json.loads(source.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("CLS") != "TensorsData":
        raise ValueError(f"{source} holds no calibration data")
    return content
