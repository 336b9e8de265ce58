"""tenon.quantization, compared with the original package: the same nodes, numbers and results."""

import copy
import pathlib

import numpy as np
import onnx
import pytest
import sklearn.datasets
import tenon
import tenon.quantization as ours
from onnx import TensorProto, helper, numpy_helper
from quantized_models import (
    MODELS,
    Reader,
    constants_of,
    expect_alike,
    expect_near,
    model,
    node,
    normal,
    op_types,
    quantize_both,
    run,
    run_genuine,
)

NAMES = sorted(MODELS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weights", ["QInt8", "QUInt8"])
def test_quantizes_dynamically(
    name: str, per_channel: bool, weights: str, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        return {
            "per_channel": per_channel,
            "reduce_range": per_channel,
            "weight_type": package.QuantType[weights],
        }

    paths = quantize_both(MODELS[name], tmp_path, settings, "quantize_dynamic")
    expect_alike(*paths, MODELS[name], 1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("activations", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_quantizes_statically(
    name: str, per_channel: bool, activations: str, form: str, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        return {
            "quant_format": package.QuantFormat[form],
            "per_channel": per_channel,
            "activation_type": package.QuantType[activations],
            "weight_type": package.QuantType.QInt8,
        }

    expect_alike(*quantize_both(MODELS[name], tmp_path, settings), MODELS[name], 3)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("values", "weights"),
    [
        ("QInt16", "QInt8"),
        ("QUInt16", "QUInt8"),
        ("QUInt8", "QInt16"),
        ("QUInt8", "QInt4"),
        ("QUInt8", "QUInt4"),
    ],
)
def test_quantizes_to_types_of_other_sizes(
    name: str, values: str, weights: str, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        return {
            "activation_type": package.QuantType[values],
            "weight_type": package.QuantType[weights],
        }

    expect_alike(*quantize_both(MODELS[name], tmp_path, settings), MODELS[name], 6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", list(ours.QuantFormat))
@pytest.mark.parametrize("opset", [17, 21])
def test_quantized_models_give_about_the_same(
    name: str, form: ours.QuantFormat, opset: int, tmp_path: pathlib.Path
) -> None:
    source, path = MODELS[name], tmp_path / "quantized.onnx"
    source.opset_import[0].version = opset
    ours.quantize_static(source, path, Reader(source), form, activation_type=ours.QuantType.QUInt8)
    expect_near(path, source, 0.1)


def test_leaves_out_what_is_named(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    ours.quantize_dynamic(source, path, nodes_to_exclude=["n_m2"])
    assert op_types(path)["MatMul"] == 1
    ours.quantize_static(source, path, Reader(source), op_types_to_quantize=["MatMul"])
    assert op_types(path)["QuantizeLinear"] == 4
    ours.quantize_static(source, path, Reader(source), nodes_to_quantize=["n_m1"])
    assert op_types(path)["QuantizeLinear"] == 2


@pytest.mark.parametrize("form", list(ours.QuantFormat))
def test_keeps_relu_where_others_read_what_it_reads(
    form: ours.QuantFormat, tmp_path: pathlib.Path
) -> None:
    nodes = [
        node("Conv", "x w1 b", "c1", pads=[1, 1, 1, 1]),
        node("Relu", "c1", "r"),
        node("Conv", "c1 w2 b", "c2", pads=[1, 1, 1, 1]),
        node("Add", "r c2", "y"),
    ]
    constants = {"w1": normal(4, 4, 3, 3), "w2": normal(4, 4, 3, 3, seed=1), "b": normal(4)}
    source = model(nodes, {"x": [1, 4, 6, 6]}, {"y": [1, 4, 6, 6]}, constants)
    path = tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), form, activation_type=ours.QuantType.QUInt8)
    assert op_types(path)["Relu"] == 1
    expect_near(path, source, 0.03)


@pytest.mark.parametrize("form", list(ours.QuantFormat))
@pytest.mark.parametrize("per_channel", [False, True])
def test_scales_the_bias_of_gemm(
    form: ours.QuantFormat, per_channel: bool, tmp_path: pathlib.Path
) -> None:
    nodes = [node("Gemm", "x w b", "y", alpha=2.0, beta=0.5, transB=1)]
    constants = {"w": normal(8, 16), "b": 20 * normal(8)}
    source = model(nodes, {"x": [4, 16]}, {"y": [4, 8]}, constants)
    path = tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), form, per_channel=per_channel)
    expect_near(path, source, 0.03)


@pytest.mark.parametrize("where", ["value_info", "input"])
def test_constants_whose_shapes_are_declared(where: str, tmp_path: pathlib.Path) -> None:
    """As PyTorch's exporter declares them, and models before IR 4. onnxruntime's tool fails."""
    nodes = [node("Gemm", "x w b", "y", transB=1)]
    source = model(nodes, {"x": [4, 16]}, {"y": [4, 8]}, {"w": normal(8, 16), "b": normal(8)})
    declared = onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [8, 16])
    getattr(source.graph, where).append(declared)
    path = tmp_path / "quantized.onnx"
    ours.quantize_dynamic(source, path)
    assert op_types(path)["MatMulInteger"] == 1
    quantized = tenon.InferenceSession(path)
    x = normal(4, 16, seed=3)
    (expected,) = tenon.InferenceSession(source.SerializeToString()).run(None, {"x": x})
    (actual,) = quantized.run(None, {"x": x})
    np.testing.assert_allclose(actual, expected, atol=0.05 * np.abs(expected).max())


def test_gives_each_group_of_channels_its_bias(tmp_path: pathlib.Path) -> None:
    nodes = [node("ConvTranspose", "x w b", "y", group=2, strides=[2, 2])]
    constants = {"w": normal(4, 3, 2, 2), "b": 5 * normal(6)}
    source = model(nodes, {"x": [1, 4, 5, 5]}, {"y": [1, 6, 10, 10]}, constants)
    path = tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), per_channel=True)
    expect_near(path, source, 0.03)


def test_widens_scales_of_weights_for_large_biases(tmp_path: pathlib.Path) -> None:
    nodes = [node("Conv", "x w b", "y")]
    constants = {"w": 1e-6 * normal(4, 3, 3, 3), "b": 1e4 * normal(4)}
    source = model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 6, 6]}, constants)
    for per_channel in (False, True):
        paths = quantize_both(
            source,
            tmp_path,
            lambda package, per_channel=per_channel: {
                "per_channel": per_channel,
                "activation_type": package.QuantType.QUInt8,
            },
        )
        expect_alike(*paths, source, 1)
        expect_near(paths[0], source, 0.01)


def as_float16(source: onnx.ModelProto) -> onnx.ModelProto:
    for one in source.graph.initializer:
        if one.data_type == TensorProto.FLOAT:
            narrow = numpy_helper.to_array(one).astype(np.float16)
            one.CopyFrom(numpy_helper.from_array(narrow, one.name))
    for value in (*source.graph.input, *source.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return source


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["QDQ", "QOperator", None])
def test_quantizes_models_of_float16(name: str, form: str | None, tmp_path: pathlib.Path) -> None:
    source, path = as_float16(MODELS[name]), tmp_path / "quantized.onnx"
    if form is None:
        ours.quantize_dynamic(source, path)
    else:
        quant_format = ours.QuantFormat[form]
        ours.quantize_static(
            source, path, Reader(source), quant_format, activation_type=ours.QuantType.QUInt8
        )
    assert op_types(path).keys() & {"QuantizeLinear", "DynamicQuantizeLinear"}
    expect_near(path, source, 0.1)


@pytest.mark.parametrize("opset", [9, 10, 12])
def test_converts_old_models(opset: int, tmp_path: pathlib.Path) -> None:
    nodes = [
        node("Conv", "x w1 b1", "c"),
        node("Relu", "c", "r"),
        node("Flatten", "r", "f"),
        node("Gemm", "f w b", "y"),
    ]
    constants = {"w1": normal(4, 3, 3, 3), "b1": normal(4), "w": normal(144, 5), "b": normal(5)}
    source = model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 5]}, constants, opset)
    path = tmp_path / "quantized.onnx"
    ours.quantize_dynamic(source, path)
    expect_near(path, source, 0.05)
    ours.quantize_static(source, path, Reader(source), per_channel=True)
    expect_near(path, source, 0.05)
    feed = Reader(source).get_next()
    np.testing.assert_allclose(run_genuine(path, feed), run(path, feed), atol=0.5)


def branches() -> onnx.ModelProto:
    """Products in both branches of an If: with constants of the branch, and of the graph."""

    def branch(name: str, nodes: list, constants: dict) -> onnx.GraphProto:
        result = [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [2, 8])]
        tensors = [numpy_helper.from_array(array, one) for one, array in constants.items()]
        return helper.make_graph(nodes, name, [], result, tensors)

    then = [node("MatMul", "x w1", "t1"), node("Add", "t1 b1", "t2")]
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s zero", "c"),
        helper.make_node(
            "If",
            ["c"],
            ["z"],
            name="n_if",
            then_branch=branch("then", then, {"b1": normal(8)}),
            else_branch=branch("else", [node("MatMul", "x wi", "e1")], {"wi": normal(16, 8)}),
        ),
        node("MatMul", "z w3", "y"),
    ]
    constants = {"w1": normal(16, 8, seed=1), "w3": normal(8, 4), "zero": np.float32(0)}
    return model(nodes, {"x": [2, 16]}, {"y": [2, 4]}, constants)


def test_quantizes_inner_graphs(tmp_path: pathlib.Path) -> None:
    source = branches()
    extra = {"extra_options": {"EnableSubgraph": True, "DefaultTensorType": TensorProto.FLOAT}}
    paths = quantize_both(source, tmp_path, lambda _: extra, "quantize_dynamic")
    expect_alike(*paths, source, 2)
    (choice,) = (one for one in onnx.load(paths[0]).graph.node if one.op_type == "If")
    for attribute in choice.attribute:
        assert "MatMulInteger" in {one.op_type for one in attribute.g.node}


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("per_channel", [False, True])
def test_quantizes_lstm(directions: int, per_channel: bool, tmp_path: pathlib.Path) -> None:
    direction = ["forward", "bidirectional"][directions - 1]
    nodes = [
        node("LSTM", "x w r b", "l h c", hidden_size=8, direction=direction),
        node("Reshape", "l shape", "y"),
    ]
    constants = {
        "w": normal(directions, 32, 6),
        "r": normal(directions, 32, 8),
        "b": normal(directions, 64),
        "shape": np.array([5, 2, 8 * directions]),
    }
    source = model(nodes, {"x": [5, 2, 6]}, {"y": [5, 2, 8 * directions]}, constants)
    settings = {"per_channel": per_channel}
    paths = quantize_both(source, tmp_path, lambda _: settings, "quantize_dynamic")
    assert op_types(paths[0])["DynamicQuantizeLSTM"] == 1
    expect_alike(*paths, source, 6)  # each step quantizes the result of the last one
    expect_near(paths[0], source, 0.05)


def shared_weight(is_read_first: bool, opset: int = 17) -> onnx.ModelProto:
    """A product, its weight as an output, and operators that read it and are not quantized."""
    others = [node("Identity", "w", "z"), node("Sqrt", "w", "s")]
    product = [node("MatMul", "x w", "m")]
    nodes = [*others, *product] if is_read_first else [*product, *others]
    nodes.append(node("Add", "m s", "y"))
    outputs = {"y": [16, 16], "z": [16, 16], "w": [16, 16]}
    return model(nodes, {"x": [16, 16]}, outputs, {"w": np.abs(normal(16, 16))}, opset)


@pytest.mark.parametrize("how", ["quantize_dynamic", "quantize_static"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("is_read_first", [False, True])
def test_stores_weights_once(
    how: str, per_channel: bool, is_read_first: bool, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        form = {"quant_format": package.QuantFormat.QOperator} if how == "quantize_static" else {}
        kind = package.QuantType.QInt8
        return {"weight_type": kind, "per_channel": per_channel, **form}

    source = shared_weight(is_read_first)
    paths = quantize_both(source, tmp_path, settings, how)
    expect_alike(*paths, source, 3)
    constants = constants_of(paths[0])
    assert "w" not in constants
    (made,) = (one for one in onnx.load(paths[0]).graph.node if "w" in one.output)
    assert made.op_type == "DequantizeLinear"
    assert [one.i for one in made.attribute] == ([-1] if per_channel else [])
    outputs = tenon.InferenceSession(paths[0]).run(["z", "w"], Reader(source).get_next())
    for one in outputs:
        np.testing.assert_allclose(one, constants["w_quantized"] * constants["w_scale"], 1e-6)


def test_keeps_weights_that_no_operator_makes_numbers_of(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "quantized.onnx"
    for opset, is_stored_once in ((12, False), (13, True)):  # 13: DequantizeLinear has an axis
        source = shared_weight(True, opset)
        ours.quantize_dynamic(source, path, per_channel=True)
        assert ("w" not in constants_of(path)) == is_stored_once
        expect_near(path, source, 0.05)

    # DynamicQuantizeLSTM takes weights whose axes change places.
    nodes = [node("LSTM", "x w r", "l", hidden_size=4), node("Mul", "l w", "y")]
    constants = {"w": normal(1, 16, 4), "r": normal(1, 16, 4)}
    source = model(nodes, {"x": [16, 1, 4]}, {"y": [16, 1, 16, 4]}, constants)
    for per_channel in (False, True):
        ours.quantize_dynamic(source, path, per_channel=per_channel)
        assert op_types(path) == {"DynamicQuantizeLSTM": 1, "Mul": 1}
        np.testing.assert_array_equal(constants_of(path)["w"], constants["w"])
        expect_near(path, source, 0.05)


@pytest.mark.parametrize("per_channel", [False, True])
def test_quantizes_attention(per_channel: bool, tmp_path: pathlib.Path) -> None:
    attention = helper.make_node(
        "Attention", ["x", "w", "b"], ["a"], name="n_a", domain="com.microsoft", num_heads=2
    )
    constants = {"w": normal(16, 48), "b": normal(48), "w2": normal(16, 4)}
    nodes = [attention, node("MatMul", "a w2", "y")]
    source = model(nodes, {"x": [2, 5, 16]}, {"y": [2, 5, 4]}, constants)
    source.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    settings = {"per_channel": per_channel}
    paths = quantize_both(source, tmp_path, lambda _: settings, "quantize_dynamic")
    assert op_types(paths[0])["QAttention"] == 1
    expect_alike(*paths, source, 3)
    expect_near(paths[0], source, 0.1)


def test_quantizes_embeddings(tmp_path: pathlib.Path) -> None:
    inputs = ["ids", "segments", "words", "positions", "kinds", "gamma", "beta"]
    embedding = helper.make_node(
        "EmbedLayerNormalization", inputs, ["e", "m"], name="n_e", domain="com.microsoft"
    )
    constants = {
        "ids": np.array([[1, 5, 2, 0], [3, 3, 9, 1]], np.int32),
        "segments": np.array([[0, 0, 1, 1], [0, 1, 1, 1]], np.int32),
        "words": normal(10, 16),
        "positions": normal(4, 16),
        "kinds": normal(2, 16),
        "gamma": normal(16),
        "beta": normal(16),
    }
    nodes = [embedding, node("Add", "e x", "y")]
    source = model(nodes, {"x": [2, 4, 16]}, {"y": [2, 4, 16]}, constants)
    source.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    paths = quantize_both(source, tmp_path, None, "quantize_dynamic")
    assert op_types(paths[0])["QEmbedLayerNormalization"] == 1
    expect_alike(*paths, source, 1)


def test_quantizes_values_of_each_run_to_signed_integers(tmp_path: pathlib.Path) -> None:
    source = MODELS["products"]
    quantizer = ours.ONNXQuantizer(
        source,
        False,
        False,
        ours.QuantizationMode.IntegerOps,
        False,
        ours.QuantType.QInt8,
        ours.QuantType.QInt8,
        None,
        None,
        None,
        ["MatMul"],
    )
    quantized = quantizer.quantize_model()
    assert op_types(quantized)["MatMulInteger"] == 2
    expect_near(quantized, source, 0.03)
    feed = Reader(source).get_next()
    np.testing.assert_allclose(run(quantized, feed), run_genuine(quantized, feed), atol=1e-4)


def test_keeps_models_and_takes_nodes_without_names(tmp_path: pathlib.Path) -> None:
    source = MODELS["convolutions"]
    for one in source.graph.node:
        one.name = ""
    before = source.SerializeToString(deterministic=True)
    path = tmp_path / "quantized.onnx"
    for form in ours.QuantFormat:
        ours.quantize_static(source, path, Reader(source), form)
        expect_near(path, source, 0.1)
    ours.quantize_dynamic(source, path)
    expect_near(path, source, 0.1)
    assert source.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("form", list(ours.QuantFormat))
def test_tells_nodes_of_one_name_apart(form: ours.QuantFormat, tmp_path: pathlib.Path) -> None:
    nodes = [node("Conv", "x w b", "c"), node("Conv", "c w2 b", "d"), node("Abs", "d", "y")]
    for one in nodes[:2]:
        one.name = "same"
    constants = {"w": normal(4, 4, 3, 3), "w2": normal(4, 4, 1, 1), "b": 3 * normal(4)}
    # A possible name of a copy of the bias.
    constants |= {"b0": np.float32(1)}
    source = model(nodes, {"x": [1, 4, 6, 6]}, {"y": [1, 4, 4, 4]}, constants)
    path = tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), form)
    expect_near(path, source, 0.05)
    ours.quantize_static(source, path, Reader(source), form, nodes_to_exclude=["same"])
    assert op_types(path) == {"Conv": 2, "Abs": 1}


def test_quantizes_weights_that_a_run_computes(tmp_path: pathlib.Path) -> None:
    nodes = [
        node("Mul", "w two", "v"),
        node("Conv", "x v b", "c"),
        node("Reshape", "c shape", "r"),
        node("Transpose", "r", "t", perm=[1, 0]),
        node("MatMul", "r t", "y"),
    ]
    constants = {"two": np.float32(2), "w": normal(4, 3, 3, 3), "b": normal(4)}
    constants["shape"] = np.array([4, 16])
    source = model(nodes, {"x": [1, 3, 6, 6]}, {"y": [4, 4]}, constants)
    path = tmp_path / "quantized.onnx"
    ours.quantize_dynamic(source, path, extra_options={"MatMulConstBOnly": False})
    assert op_types(path)["ConvInteger"] == op_types(path)["MatMulInteger"] == 1
    expect_near(path, source, 0.05)


def test_quantizes_nothing_where_there_is_nothing(tmp_path: pathlib.Path) -> None:
    source = model([node("Abs", "x", "y")], {"x": [2, 3]}, {"y": [2, 3]}, {})
    source.opset_import.append(helper.make_opsetid("ai.onnx", 17))  # said twice
    for method in ours.CalibrationMethod:
        path = tmp_path / "quantized.onnx"
        ours.quantize_static(source, path, Reader(source), calibrate_method=method)
        assert op_types(path) == {"Abs": 1}


def test_writes_constants_beside_the_model(tmp_path: pathlib.Path) -> None:
    nodes = [node("MatMul", "x w", "y")]
    source = model(nodes, {"x": [2, 64]}, {"y": [2, 64]}, {"w": normal(64, 64)})
    onnx.save(copy.deepcopy(source), tmp_path / "model.onnx", save_as_external_data=True)
    path = tmp_path / "quantized.onnx"
    for _ in range(2):  # what was there before does not stay
        ours.quantize_static(
            tmp_path / "model.onnx", path, Reader(source), use_external_data_format=True
        )
        size = (tmp_path / "quantized.onnx.data").stat().st_size
        assert size == 64 * 64
    expect_near(path, source, 0.1)


DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"


class Pictures(ours.CalibrationDataReader):
    def __init__(self, pictures: np.ndarray) -> None:
        self.feeds = iter([{"image": one[None]} for one in pictures[:100]])

    def get_next(self) -> dict | None:
        return next(self.feeds, None)


@pytest.mark.parametrize("way", ["dynamic", "QDQ", "QOperator", "16 bits", "float 8", "channels"])
def test_quantized_models_read_digits(way: str, tmp_path: pathlib.Path) -> None:
    """1797 handwritten digits: almost all results are those of the original model."""
    images = sklearn.datasets.load_digits().images
    pictures = (images / 16).astype(np.float32)[:, None]
    path = tmp_path / "quantized.onnx"
    if way == "dynamic":
        ours.quantize_dynamic(DIGITS, path)
    else:
        settings: dict = {
            "activation_type": ours.QuantType.QUInt8,
            "per_channel": way == "channels",
        }
        if way == "QOperator":
            settings["quant_format"] = ours.QuantFormat.QOperator
        elif way == "16 bits":
            settings["activation_type"] = ours.QuantType.QUInt16
        elif way == "float 8":
            float8 = ours.QuantType.QFLOAT8E4M3FN
            settings |= {"activation_type": float8, "weight_type": float8}
            settings["calibrate_method"] = ours.CalibrationMethod.Distribution
        ours.quantize_static(DIGITS, path, Pictures(pictures), **settings)
    expected = run(DIGITS, {"image": pictures})
    for runtime in (run, run_genuine):
        actual = runtime(path, {"image": pictures})
        assert 0 < np.abs(actual - expected).max()
        assert np.mean(actual.argmax(-1) == expected.argmax(-1)) > 0.995
    assert path.stat().st_size < 0.5 * DIGITS.stat().st_size
