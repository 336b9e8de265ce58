"""Models to quantize, their calibration data, and the expected results."""

import collections
import copy
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization as theirs
import tenon
import tenon.quantization as ours
from onnx import TensorProto, helper, numpy_helper
from saturation import exact_session

ELEMENTS = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def model(
    nodes: list, inputs: dict, outputs: dict, constants: dict, opset: int = 17
) -> onnx.ModelProto:
    def values(shapes: dict) -> list:
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]

    tensors = [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "graph", values(inputs), values(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def node(op_type: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(
        op_type, inputs.split(), output.split(), name=f"n_{output}", **attributes
    )


def convolutions() -> onnx.ModelProto:
    """Conv, Relu, Conv, Add, Relu, MaxPool, GlobalAveragePool, Reshape, Gemm."""
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r1"),
        node("Conv", "r1 w2 b2", "c2", pads=[1, 1, 1, 1]),
        node("Add", "c2 r1", "a"),
        node("Relu", "a", "r2"),
        node("MaxPool", "r2", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", "p", "g"),
        node("Reshape", "g s", "f"),
        node("Gemm", "f w3 b3", "y", transB=1),
    ]
    constants = {
        "w1": normal(8, 3, 3, 3),
        "b1": normal(8),
        "w2": normal(8, 8, 3, 3),
        "b2": normal(8, seed=1),
        "s": np.array([1, 8]),
        "w3": normal(5, 8),
        "b3": normal(5),
    }
    return model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 5]}, constants)


def products() -> onnx.ModelProto:
    """Two products with sums, a sigmoid, a concatenation, a softmax."""
    nodes = [
        node("MatMul", "x w1", "m1"),
        node("Add", "m1 b1", "a1"),
        node("Sigmoid", "a1", "s1"),
        node("Concat", "s1 x", "c", axis=1),
        node("MatMul", "c w2", "m2"),
        node("Softmax", "m2", "y", axis=-1),
    ]
    constants = {"w1": normal(16, 8), "b1": normal(8), "w2": normal(24, 4)}
    return model(nodes, {"x": [2, 16]}, {"y": [2, 4]}, constants)


def shapes() -> onnx.ModelProto:
    """Operators that only move values, between some that compute."""
    nodes = [
        node("Conv", "x w1 b1", "c1", pads=[1, 1, 1, 1]),
        node("Clip", "c1 low high", "r1"),
        node("MaxPool", "r1", "mp", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "mp wt bt", "ct", strides=[2, 2]),
        node("LeakyRelu", "ct", "lr"),
        node("AveragePool", "lr", "ap", kernel_shape=[2, 2], strides=[2, 2]),
        node("Transpose", "ap", "t", perm=[0, 2, 3, 1]),
        node("Transpose", "t", "t2", perm=[0, 3, 1, 2]),
        node("Split", "t2", "s1 s2", axis=1),
        node("Mul", "s1 s2", "m"),
        node("Sigmoid", "m", "sg"),
        node("Pad", "sg pads", "pd"),
        node("Concat", "pd pd", "cc", axis=1),
        node("Flatten", "cc", "fl"),
        node("MatMul", "fl wm", "mm"),
        node("Add", "mm bm", "y"),
    ]
    constants = {
        "w1": normal(8, 3, 3, 3),
        "b1": normal(8),
        "low": np.float32(0),
        "high": np.float32(6),
        "wt": normal(8, 4, 2, 2),
        "bt": normal(4),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "wm": normal(4 * 6 * 6, 5),
        "bm": normal(5),
    }
    return model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 5]}, constants)


def tables() -> onnx.ModelProto:
    """A normalization, a table, products, and parts of results."""
    nodes = [
        node("LayerNormalization", "x g b", "ln"),
        node("MatMul", "ln w", "q"),
        node("Gather", "table indices", "ga"),
        node("Add", "q ga", "a"),
        node("Relu", "a", "r"),
        node("MatMul", "r w2", "o"),
        node("Unsqueeze", "o first", "u"),
        node("Squeeze", "u first", "sq"),
        node("Slice", "sq starts ends", "sl"),
        node("Mul", "sl two", "y"),
    ]
    constants = {
        "g": normal(16),
        "b": normal(16, seed=1),
        "w": normal(16, 16),
        "table": normal(10, 16),
        "indices": np.array([1, 3]),
        "w2": normal(16, 12),
        "first": np.array([0]),
        "starts": np.array([0, 0]),
        "ends": np.array([2, 8]),
        "two": np.float32(2),
    }
    return model(nodes, {"x": [2, 16]}, {"y": [2, 8]}, constants)


MODELS_BY_NAME = {made.__name__: made() for made in (convolutions, products, shapes, tables)}


class Models(dict):
    """A new copy each time, because the original package changes its input."""

    def __getitem__(self, name: str) -> onnx.ModelProto:
        return copy.deepcopy(super().__getitem__(name))


MODELS = Models(MODELS_BY_NAME)


class Reader(ours.CalibrationDataReader):
    """Ten feeds, always the same."""

    def __init__(self, of: onnx.ModelProto) -> None:
        given = of.graph.input[0].type.tensor_type
        shape = [dim.dim_value for dim in given.shape.dim]
        random = np.random.default_rng(3)
        self._all = [
            {"x": random.standard_normal(shape).astype(ELEMENTS[given.elem_type])}
            for _ in range(10)
        ]
        self.set_range(0, 10)

    def __len__(self) -> int:
        return len(self._all)

    def set_range(self, start_index: int, end_index: int) -> None:
        self._feeds = iter(self._all[start_index:end_index])

    def get_next(self) -> dict | None:
        return next(self._feeds, None)


class TheirReader(Reader, theirs.CalibrationDataReader):
    """The same for the original package."""


READERS = {ours: Reader, theirs: TheirReader}
Loaded = onnx.ModelProto | pathlib.Path


def load(path: Loaded) -> onnx.ModelProto:
    return path if isinstance(path, onnx.ModelProto) else onnx.load(path)


def op_types(path: Loaded) -> collections.Counter:
    return collections.Counter(one.op_type for one in load(path).graph.node)


def run(path: Loaded, feed: dict) -> np.ndarray:
    return tenon.InferenceSession(path).run(None, feed)[0]


def run_genuine(path: Loaded, feed: dict) -> np.ndarray:
    """By onnxruntime, without rewrites: they make float 8 operators that it lacks."""
    loaded, options = load(path), onnxruntime.SessionOptions()
    if any(one.data_type == TensorProto.FLOAT8E4M3FN for one in loaded.graph.initializer):
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return exact_session(loaded.SerializeToString(), options).run(None, feed)[0]


def constants_of(path: Loaded) -> dict[str, np.ndarray]:
    return {one.name: numpy_helper.to_array(one) for one in load(path).graph.initializer}


def expect_same_constants(mine: Loaded, other: Loaded) -> None:
    """The same names; scales equal except for a few bits, integers except for a step at ties."""
    left, right = constants_of(mine), constants_of(other)
    assert left.keys() == right.keys()
    for name, array in left.items():
        one = (1,)  # which they have for some scalars
        kinds = [(each.dtype, each.shape or one) for each in (array, right[name])]
        assert kinds[0] == kinds[1], name
        a, b = (each.reshape(-1).astype(np.float64) for each in (array, right[name]))
        if array.dtype in (np.float32, np.float16):
            np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=name)
        elif array.dtype == np.int32:  # by scales that differ in their last bit
            np.testing.assert_allclose(a, b, atol=1, rtol=1e-6, err_msg=name)
        else:
            np.testing.assert_allclose(a, b, atol=1, err_msg=name)
            assert np.count_nonzero(a != b) <= max(1, a.size // 50), name


def expect_alike(
    mine: Loaded, other: Loaded, source: onnx.ModelProto, steps: float, most: int = 255
) -> None:
    """The same operators and constants; both runtimes' results differ by a few steps."""
    assert op_types(mine) == op_types(other)
    expect_same_constants(mine, other)
    feed = Reader(source).get_next()
    step = np.ptp(run(source, feed)) / most
    expected = run(other, feed)
    np.testing.assert_allclose(run(mine, feed), expected, atol=steps * step)
    np.testing.assert_allclose(run_genuine(mine, feed), expected, atol=steps * step)


def expect_near(path: Loaded, source: onnx.ModelProto, share: float) -> None:
    """The results are close to those of the original model, by a share of their range."""
    feed = Reader(source).get_next()
    expected = run(source, feed)
    np.testing.assert_allclose(run(path, feed), expected, atol=share * np.ptp(expected))


def quantize_both(
    source: onnx.ModelProto,
    folder: pathlib.Path,
    settings: Callable[[Any], dict] | None = None,
    how: str = "quantize_static",
) -> tuple[pathlib.Path, pathlib.Path]:
    """The results of both packages. `settings` is called with each of them."""
    paths = []
    for package in (ours, theirs):
        path = folder / f"{package.__name__}.onnx"
        given = (READERS[package](source),) if how == "quantize_static" else ()
        options = settings(package) if settings is not None else {}
        getattr(package, how)(copy.deepcopy(source), path, *given, **options)
        paths.append(path)
    return paths[0], paths[1]
