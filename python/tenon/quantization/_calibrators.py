"""Runs a model on data and computes the ranges of its values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper

from .._session import InferenceSession
from .._tenon import GraphOptimizationLevel, SessionOptions
from ._calibration_data import CalibrationDataReader, CalibrationMethod, TensorData, TensorsData
from ._loading import ModelLike, get_opset_version, load
from ._saving import save
from ._tensors import tensor_of
from ._types import FLOATS


class CalibraterBase:
    """Makes a model with additional outputs, and a session that runs it."""

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        per_channel: bool = False,
    ) -> None:
        self.model: ModelProto = load(model_path)
        self.op_types_to_calibrate = op_types_to_calibrate
        self.augmented_model_path = augmented_model_path
        self.symmetric = symmetric
        self.use_external_data_format = use_external_data_format
        self.per_channel = per_channel
        self.execution_providers: list[Any] = ["CPUExecutionProvider"]
        self.infer_session: InferenceSession | None = None

    def set_execution_providers(
        self, execution_providers: Sequence[Any] = ("CPUExecutionProvider",)
    ) -> None:
        """The providers that run the model."""
        self.execution_providers = list(execution_providers)
        self.create_inference_session()

    def create_inference_session(self) -> None:
        """Opens the model that augment_graph has written, without optimizing it."""
        options = SessionOptions()
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        self.infer_session = InferenceSession(
            os.fspath(self.augmented_model_path), options, providers=self.execution_providers
        )

    def session(self) -> InferenceSession:
        """That session. It is created at the first use."""
        if self.infer_session is None:
            self.augment_graph()
            self.create_inference_session()
        assert self.infer_session is not None
        return self.infer_session

    def select_tensors_to_calibrate(
        self, model: ModelProto
    ) -> tuple[set[str], dict[str, onnx.ValueInfoProto]]:
        """Inputs and outputs of the chosen operators, without constants; and all values."""
        graph = model.graph
        values = {one.name: one for one in (*graph.value_info, *graph.output, *graph.input)}
        constants = {one.name for one in graph.initializer}
        wanted = self.op_types_to_calibrate
        names = {
            name
            for node in graph.node
            if not wanted or node.op_type in wanted
            for name in (*node.input, *node.output)
            if name in values and name not in constants
        }
        kinds = {name: values[name].type.tensor_type.elem_type for name in names}
        return {name for name, kind in kinds.items() if kind in FLOATS}, values

    def watched(self) -> list[str]:
        """The values to calibrate, in the model's order."""
        names, _ = self.select_tensors_to_calibrate(self.model)
        graph = self.model.graph
        made = [one.name for one in graph.input]
        made += [name for node in graph.node for name in node.output]
        return [name for name in dict.fromkeys(made) if name in names]

    def get_augment_model(self) -> ModelProto:
        """The model that augment_graph has made."""
        return self.model

    def write_augmented(self) -> None:
        """Sets that model, which the session loads."""
        save(self.model, self.augmented_model_path, self.use_external_data_format)

    def augment_graph(self) -> None:
        """To be overridden: adds outputs to the model and writes it."""
        raise NotImplementedError

    def collect_data(self, data_reader: CalibrationDataReader) -> None:
        """To be overridden: runs the model on all feeds. It may be called several times."""
        raise NotImplementedError

    def compute_data(self) -> TensorsData:
        """To be overridden: the ranges."""
        raise NotImplementedError


def merged(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The smallest range that includes some ranges."""
    lows, highs = zip(*parts, strict=True)
    return np.nanmin(lows, axis=0), np.nanmax(highs, axis=0)


def averaged(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The mean of some ranges."""
    lows, highs = zip(*parts, strict=True)
    return np.nanmean(lows, axis=0), np.nanmean(highs, axis=0)


Ranges = dict[str, tuple[np.ndarray, np.ndarray]]


class MinMaxCalibrater(CalibraterBase):
    """From the smallest number to the largest, or moving averages of these.

    moving_average            the mean over the feeds of one reader; the next reader moves it by the
                              share averaging_constant
    max_intermediate_outputs  the number of feeds that are run before their ranges are merged
    per_channel               a range for each index of axis 1
    """

    def __init__(
        self,
        model_path: ModelLike,
        op_types_to_calibrate: Sequence[str] | None = None,
        augmented_model_path: str | os.PathLike[str] = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        moving_average: bool = False,
        averaging_constant: float = 0.01,
        max_intermediate_outputs: int | None = None,
        per_channel: bool = False,
    ) -> None:
        if moving_average and not 0 <= averaging_constant <= 1:
            raise ValueError(
                f"Invalid averaging constant: expected 0 to 1, got {averaging_constant}"
            )
        super().__init__(
            model_path,
            op_types_to_calibrate,
            augmented_model_path,
            symmetric,
            use_external_data_format,
            per_channel,
        )
        self.moving_average = moving_average
        self.averaging_constant = averaging_constant
        self.max_intermediate_outputs = max_intermediate_outputs
        self.intermediate_outputs: list[Ranges] = []
        self._names = self.watched()
        self._ranges: Ranges = {}

    def augment_graph(self) -> None:
        """Adds the least and the largest number of each value to the outputs."""
        graph = self.model.graph
        values = {one.name: one for one in (*graph.value_info, *graph.output, *graph.input)}
        flat = "tenon_calibration_flat"
        graph.initializer.append(tensor_of(np.array([-1], np.int64), flat))
        reductions = {name: self._reductions(name, values[name], flat) for name in self._names}
        nodes = [node for one in graph.input for node in reductions.pop(one.name, [])]
        for node in graph.node:
            nodes.append(node)
            for name in node.output:
                nodes += reductions.pop(name, [])
        del graph.node[:]
        graph.node.extend(nodes)
        for name in self._names:
            kind = values[name].type.tensor_type.elem_type
            for end in ("ReduceMin", "ReduceMax"):
                graph.output.append(helper.make_tensor_value_info(f"{name}_{end}", kind, [None]))
        self.write_augmented()

    def _reductions(self, name: str, value: onnx.ValueInfoProto, flat: str) -> list[onnx.NodeProto]:
        nodes = []
        for op_type in ("ReduceMin", "ReduceMax"):
            result = f"{name}_{op_type}"
            unshaped = f"{result}_Reshape"
            node = helper.make_node(op_type, [name], [unshaped], name=result, keepdims=1)
            if self.per_channel:
                self._keep_channels(node, len(value.type.tensor_type.shape.dim))
            nodes.append(node)
            nodes.append(helper.make_node("Reshape", [unshaped, flat], [result], name=unshaped))
        return nodes

    def _keep_channels(self, node: onnx.NodeProto, rank: int) -> None:
        axes = [axis for axis in range(rank) if axis != 1]
        if get_opset_version(self.model) < 18:
            node.attribute.append(helper.make_attribute("axes", axes))
            return
        node.input.append(f"{node.name}_axes")
        self.model.graph.initializer.append(
            tensor_of(np.array(axes, np.int64), f"{node.name}_axes")
        )

    def clear_collected_data(self) -> None:
        """Forgets the outputs of runs since the ranges were last computed."""
        self.intermediate_outputs = []

    def collect_data(self, data_reader: CalibrationDataReader) -> None:
        """Runs the model on all feeds."""
        session = self.session()
        outputs = [f"{name}_{end}" for name in self._names for end in ("ReduceMin", "ReduceMax")]
        while feed := data_reader.get_next():
            ends = [np.asarray(one) for one in session.run(outputs, feed)] if outputs else []
            pairs = zip(ends[::2], ends[1::2], strict=True)
            self.intermediate_outputs.append(dict(zip(self._names, pairs, strict=True)))
            if len(self.intermediate_outputs) == self.max_intermediate_outputs:
                self._reduce()
        if not self.intermediate_outputs and not self._ranges:
            raise ValueError("No data is collected.")
        self._reduce()

    def _reduce(self) -> None:
        """Merges the ranges of all runs so far."""
        seen, self.intermediate_outputs = self.intermediate_outputs, []
        if not seen:
            return
        combine = averaged if self.moving_average else merged
        for name in self._names:
            low, high = combine(one[name] for one in seen)
            is_empty = low > high  # no data was seen
            low, high = np.where(is_empty, 0, low), np.where(is_empty, 0, high)
            if self.symmetric:
                high = np.maximum(np.abs(low), np.abs(high))
                low = -high
            kind = seen[0][name][0].dtype
            self._merge(name, low.astype(kind), high.astype(kind))

    def _merge(self, name: str, low: np.ndarray, high: np.ndarray) -> None:
        known = self._ranges.get(name)
        if known is None:
            self._ranges[name] = (low, high)
        elif self.moving_average:
            share = self.averaging_constant
            old_low, old_high = known
            moved = (old_low + share * (low - old_low), old_high + share * (high - old_high))
            self._ranges[name] = (moved[0].astype(low.dtype), moved[1].astype(low.dtype))
        else:
            self._ranges[name] = (np.minimum(known[0], low), np.maximum(known[1], high))

    def compute_data(self) -> TensorsData:
        """The ranges."""
        self._reduce()
        ranges = {
            name: TensorData(lowest=low, highest=high) for name, (low, high) in self._ranges.items()
        }
        return TensorsData(CalibrationMethod.MinMax, ranges)
