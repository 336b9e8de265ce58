"""tenon.quantization beside the genuine package's: the same nodes, numbers and results."""

import collections
import copy
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import onnxruntime.quantization as theirs
import pytest
import tenon
import tenon.quantization as ours
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as genuine
from tenon.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer, quantize_blocks

RANDOM = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(nodes: list, inputs: dict, outputs: dict, constants: dict) -> onnx.ModelProto:
    def values(shapes: dict) -> list:
        return [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]

    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "graph", values(inputs), values(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


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
        "b2": normal(8),
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


KEPT = {"convolutions": convolutions(), "products": products()}


class Models(dict):
    """A copy each time: the genuine package changes what it is given."""

    def __getitem__(self, name: str) -> onnx.ModelProto:
        return copy.deepcopy(super().__getitem__(name))


MODELS = Models(KEPT)


class Reader(ours.CalibrationDataReader):
    """Ten feeds, always the same."""

    def __init__(self, of: onnx.ModelProto) -> None:
        shape = [dim.dim_value for dim in of.graph.input[0].type.tensor_type.shape.dim]
        random = np.random.default_rng(3)
        self._feeds = iter(
            [{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(10)]
        )

    def get_next(self) -> dict | None:
        return next(self._feeds, None)


class TheirReader(Reader, theirs.CalibrationDataReader):
    """The same for the genuine package."""


def op_types(path: pathlib.Path) -> collections.Counter:
    return collections.Counter(one.op_type for one in onnx.load(path).graph.node)


def run(path: pathlib.Path | onnx.ModelProto, feed: dict) -> np.ndarray:
    return tenon.InferenceSession(path).run(None, feed)[0]


def expect_alike(
    ours_path: pathlib.Path, theirs_path: pathlib.Path, source: onnx.ModelProto, steps: float
) -> None:
    """The same operators; numbers of the same name that differ by a step; results alike."""
    assert op_types(ours_path) == op_types(theirs_path)
    mine, other = (
        {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
        for path in (ours_path, theirs_path)
    )
    for name in mine.keys() & other.keys():
        a, b = mine[name], other[name]
        one = (1,)  # which they have for some scalars
        assert (a.dtype, a.shape or one) == (b.dtype, b.shape or one), name
        if a.dtype == np.float32:
            np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=name)
        else:
            np.testing.assert_allclose(a.astype(int), b.astype(int), atol=1, err_msg=name)
    feed = Reader(source).get_next()
    step = np.ptp(run(source, feed)) / 255
    np.testing.assert_allclose(run(ours_path, feed), run(theirs_path, feed), atol=steps * step)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
def test_quantizes_dynamically(
    name: str, per_channel: bool, weights: str, tmp_path: pathlib.Path
) -> None:
    source = MODELS[name]
    for package, file in ((ours, "ours.onnx"), (theirs, "theirs.onnx")):
        package.quantize_dynamic(
            MODELS[name],
            tmp_path / file,
            per_channel=per_channel and name == "products",
            reduce_range=per_channel,
            weight_type=package.QuantType[weights],
        )
    expect_alike(tmp_path / "ours.onnx", tmp_path / "theirs.onnx", source, 1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_quantizes_statically(
    name: str, per_channel: bool, activations: str, form: str, tmp_path: pathlib.Path
) -> None:
    source = MODELS[name]
    for package, file in ((ours, "ours.onnx"), (theirs, "theirs.onnx")):
        package.quantize_static(
            MODELS[name],
            tmp_path / file,
            (Reader if package is ours else TheirReader)(source),
            quant_format=package.QuantFormat[form],
            per_channel=per_channel,
            activation_type=package.QuantType[activations],
            weight_type=package.QuantType.QInt8,
        )
    expect_alike(tmp_path / "ours.onnx", tmp_path / "theirs.onnx", source, 2)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", list(ours.QuantFormat))
def test_quantized_models_give_about_the_same(
    name: str, form: ours.QuantFormat, tmp_path: pathlib.Path
) -> None:
    source, path = MODELS[name], tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), form, activation_type=ours.QuantType.QUInt8)
    feed = Reader(source).get_next()
    expected = run(source, feed)
    np.testing.assert_allclose(run(path, feed), expected, atol=0.1 * np.ptp(expected))


@pytest.mark.parametrize("method", ["MinMax", "Entropy", "Percentile"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_finds_the_same_ranges(method: str, symmetric: bool, tmp_path: pathlib.Path) -> None:
    source = MODELS["convolutions"]
    onnx.save(source, tmp_path / "model.onnx")
    found = []
    for package, reader in ((ours, Reader), (theirs, TheirReader)):
        calibrator = package.create_calibrator(
            tmp_path / "model.onnx",
            ["Conv", "Add", "Gemm"],
            augmented_model_path=str(tmp_path / "augmented.onnx"),
            calibrate_method=package.CalibrationMethod[method],
            extra_options={"symmetric": symmetric},
        )
        if package is theirs:
            calibrator.set_execution_providers(["CPUExecutionProvider"])
        calibrator.collect_data(reader(source))
        found.append(calibrator.compute_data())
    mine, other = found
    assert set(mine) == set(other.keys())
    for name in mine:
        np.testing.assert_allclose(
            np.ravel(mine[name].range_value),
            np.ravel(other[name].range_value),
            rtol=0.02 if method != "MinMax" else 1e-5,
            err_msg=name,
        )


def test_leaves_out_what_is_named(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    ours.quantize_dynamic(source, path, nodes_to_exclude=["n_m2"])
    assert op_types(path)["MatMul"] == 1
    ours.quantize_static(source, path, Reader(source), op_types_to_quantize=["MatMul"])
    assert op_types(path)["QuantizeLinear"] == 4
    ours.quantize_static(source, path, Reader(source), nodes_to_quantize=["n_m1"])
    assert op_types(path)["QuantizeLinear"] == 2


def test_takes_configurations(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    ours.quantize(source, path, ours.DynamicQuantConfig())
    assert op_types(path)["MatMulInteger"] == 2
    ours.quantize(source, path, ours.get_qdq_config(source, Reader(source)))
    assert op_types(path)["DequantizeLinear"] > 4
    with pytest.raises(TypeError, match="Invalid quantization config type"):
        ours.quantize(source, path, 3)
    with pytest.raises(ValueError, match="No data"):
        empty = Reader(source)
        while empty.get_next():
            pass
        ours.quantize_static(source, path, empty)


def test_calibration_is_saved_as_onnxruntime_saves_it(tmp_path: pathlib.Path) -> None:
    lows, highs = np.array([-1, 2], np.float32), np.array([1, 3.5], np.float32)
    ranges = {"x": (lows, highs), "y": (np.float32(-0.25), np.float32(3))}
    for number, (writer, reader) in enumerate([(ours, theirs), (theirs, ours), (ours, ours)]):
        data = writer.TensorsData(writer.CalibrationMethod.MinMax, ranges)
        path = tmp_path / f"{number}.json"
        writer.save_tensors_data(data, path)
        read = reader.load_tensors_data(path)
        assert read.calibration_method == reader.CalibrationMethod.MinMax
        for name, expected in ranges.items():
            for one, other in zip(read[name].range_value, expected, strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.dtype == np.float32
    texts = [(tmp_path / f"{number}.json").read_text() for number in (0, 1)]
    assert texts[0] == texts[1]
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match=r"other\.json holds no calibration data"):
        ours.load_tensors_data(tmp_path / "other.json")


def test_prepares_models_on_a_command_line(tmp_path: pathlib.Path) -> None:
    source, path = tmp_path / "model.onnx", tmp_path / "prepared.onnx"
    onnx.save(MODELS["convolutions"], source)
    command = [sys.executable, "-m", "tenon.quantization.preprocess", "--input", source]
    command += ["--output", path, "--skip_symbolic_shape", "True"]
    subprocess.run(command, check=True)
    made = {name for one in onnx.load(path).graph.node for name in one.output}
    assert made <= {value.name for value in onnx.load(path).graph.value_info} | {"y"}
    feed = Reader(MODELS["convolutions"]).get_next()
    np.testing.assert_allclose(run(path, feed), run(MODELS["convolutions"], feed), rtol=1e-5)
    done = subprocess.run(
        [*command, "--skip_onnx_shape", "perhaps"], capture_output=True, text=True, check=False
    )
    assert "expected true or false, got 'perhaps'" in done.stderr


def test_prepares_models(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "prepared.onnx"
    ours.quant_pre_process(MODELS["convolutions"], path)
    prepared = onnx.load(path)
    known = {value.name for value in prepared.graph.value_info}
    made = {name for one in prepared.graph.node for name in one.output}
    assert made <= known | {"y"}
    feed = Reader(MODELS["convolutions"]).get_next()
    np.testing.assert_allclose(run(path, feed), run(MODELS["convolutions"], feed), rtol=1e-5)


def test_infers_shapes_on_a_command_line(tmp_path: pathlib.Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(MODELS["products"], source)
    command = [sys.executable, "-m", "tenon.tools.symbolic_shape_infer"]
    subprocess.run([*command, "--input", source, "--output", result], check=True)
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in onnx.load(result).graph.value_info
    }
    assert shapes["c"] == [2, 24]


@pytest.mark.parametrize("is_symmetric", [False, True])
@pytest.mark.parametrize(
    ("k", "n", "block"), [(64, 8, 32), (96, 5, 64), (16, 3, 16), (256, 4, 128)]
)
def test_packs_blocks_as_onnxruntime(k: int, n: int, block: int, is_symmetric: bool) -> None:
    weight = normal(k, n)
    packed, scales, zeros = quantize_blocks(weight, block, 4, is_symmetric)
    blocks = -(-k // block)
    expected = np.zeros((n, blocks, block // 2), np.uint8)
    expected_scales = np.zeros(n * blocks, np.float32)
    expected_zeros = np.zeros(n * ((blocks + 1) // 2), np.uint8)
    genuine.quantize_matmul_4bits(
        expected, weight, expected_scales, expected_zeros, block, n, k, is_symmetric
    )
    np.testing.assert_allclose(scales.reshape(-1), expected_scales, rtol=1e-6)
    for shift in (0, 4):
        mine, other = ((one >> shift & 15).astype(int) for one in (packed, expected))
        np.testing.assert_allclose(mine, other, atol=1)
    if zeros is not None:
        low, other = zeros.reshape(-1) & 15, expected_zeros & 15
        np.testing.assert_array_equal(low, other)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_matrices_of_few_bits_give_about_the_same(bits: int, is_symmetric: bool) -> None:
    source = model(
        [node("MatMul", "x w", "y")], {"x": [2, 128]}, {"y": [2, 16]}, {"w": normal(128, 16)}
    )
    quantizer = MatMulNBitsQuantizer(
        source, bits=bits, block_size=32, is_symmetric=is_symmetric, accuracy_level=1
    )
    quantizer.process()
    (only,) = quantizer.model.model.graph.node
    assert only.op_type == "MatMulNBits"
    feed = {"x": normal(2, 128)}
    expected = run(source, feed)
    tolerance = {4: 0.1, 8: 0.01}[bits] * np.ptp(expected)
    np.testing.assert_allclose(run(quantizer.model.model, feed), expected, atol=tolerance)


def test_programs_for_onnxruntime_find_it(tmp_path: pathlib.Path) -> None:
    onnx.save(MODELS["products"], tmp_path / "model.onnx")
    code = (
        "import tenon.as_onnxruntime; tenon.as_onnxruntime.install()\n"
        "from onnxruntime.quantization import quantize_dynamic, QuantType\n"
        "from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer\n"
        "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference\n"
        "quantize_dynamic('model.onnx', 'out.onnx', weight_type=QuantType.QUInt8)\n"
        "print(quantize_dynamic.__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "tenon.quantization.quantize"
    assert op_types(tmp_path / "out.onnx")["MatMulInteger"] == 2
