"""extra_options, configurations and overrides of single tensors."""

import pathlib
from typing import Any

import numpy as np
import onnx
import onnxruntime.quantization as theirs
import pytest
import tenon.quantization as ours
from onnx import numpy_helper
from quantized_models import (
    MODELS,
    READERS,
    Reader,
    expect_alike,
    expect_near,
    model,
    node,
    normal,
    op_types,
    quantize_both,
    run,
)
from tenon.quantization._smooth import smooth
from tenon.quantization.operators.qdq_base_operator import QDQOperatorBase
from tenon.quantization.registry import QDQRegistry

OPTIONS: list[dict[str, Any]] = [
    {"ActivationSymmetric": True},
    {"ActivationRestrictedAsymmetric": True},
    {"WeightSymmetric": False},
    {"AddQDQPairToWeight": True},
    {"DedicatedQDQPair": True},
    {"OpTypesToExcludeOutputQuantization": ["MatMul", "Conv"]},
    {"QuantizeBias": False},
    {"UseQDQContribOps": True},
    {"MinimumRealRange": 0.5},
    {"QDQKeepRemovableActivations": True},
    {"QDQDisableWeightAdjustForInt32Bias": True},
    {"CalibMovingAverage": True},
    {"CalibMovingAverage": True, "CalibStridedMinMax": 5, "CalibMovingAverageConstant": 0.3},
    {"CalibStridedMinMax": 2},
    {"MatMulConstBOnly": True},
    {"extra.Sigmoid.nnapi": True},
]
FORMS = ["QDQ", "QOperator"]


@pytest.mark.parametrize("name", ["convolutions", "products"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("extra", OPTIONS, ids="+".join)
def test_options_have_the_same_effect(
    name: str, form: str, extra: dict, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        return {
            "quant_format": package.QuantFormat[form],
            "activation_type": package.QuantType.QUInt8,
            "extra_options": dict(extra),
        }

    source = MODELS[name]
    expect_alike(*quantize_both(source, tmp_path, settings), source, 3)


def test_options_change_what_they_are_for(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["convolutions"], tmp_path / "quantized.onnx"

    def quantized(**extra: Any) -> onnx.ModelProto:
        unsigned = ours.QuantType.QUInt8
        ours.quantize_static(
            source, path, Reader(source), activation_type=unsigned, extra_options=extra
        )
        return onnx.load(path)

    plain = op_types(quantized())
    assert plain["Relu"] == 0
    assert op_types(quantized(QDQKeepRemovableActivations=True))["Relu"] == 2
    assert op_types(quantized(ActivationSymmetric=True))["Relu"] == 2
    # Six constants and seven values; without biases there are three constants less.
    assert plain["DequantizeLinear"] - plain["QuantizeLinear"] == 6
    without_biases = op_types(quantized(QuantizeBias=False))
    assert without_biases["DequantizeLinear"] == plain["DequantizeLinear"] - 3
    pairs = op_types(quantized(AddQDQPairToWeight=True))
    assert pairs["QuantizeLinear"] == plain["QuantizeLinear"] + 3
    domains = {one.domain for one in quantized(UseQDQContribOps=True).graph.node}
    assert domains == {"", "com.microsoft"}


@pytest.mark.parametrize("form", FORMS)
def test_saturation_does_not_stand_for_relu_where_ranges_are_symmetric(
    form: str, tmp_path: pathlib.Path
) -> None:
    source, path = MODELS["convolutions"], tmp_path / "quantized.onnx"
    ours.quantize_static(
        source,
        path,
        Reader(source),
        ours.QuantFormat[form],
        activation_type=ours.QuantType.QUInt8,
        extra_options={"CalibTensorRangeSymmetric": True},
    )
    assert op_types(path)["Relu"] == 2
    expect_near(path, source, 0.05)


# From -1 to 1 there are 255 steps: the zero point is rounded by half a step.
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("signed", [True, False])
def test_saturation_stands_for_clip_though_zero_points_are_rounded(
    form: str, signed: bool, tmp_path: pathlib.Path
) -> None:
    constants = {"w": normal(4, 3, 3, 3), "low": np.float32(-1), "high": np.float32(1)}
    nodes = [node("Conv", "x w", "c"), node("Clip", "c low high", "y")]
    source = model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 6, 6]}, constants)

    def settings(package) -> dict:
        kind = package.QuantType.QInt8 if signed else package.QuantType.QUInt8
        return {"quant_format": package.QuantFormat[form], "activation_type": kind}

    mine, other = quantize_both(source, tmp_path, settings)
    assert op_types(mine)["Clip"] == op_types(other)["Clip"] == 0
    expect_alike(mine, other, source, 1)


class Apart(ours.CalibrationDataReader):
    """Two channels that are never large in the same feed."""

    def __init__(self) -> None:
        self.feeds = iter(
            [{"x": np.float32([[[[2]], [[-2]]]])}, {"x": np.float32([[[[-2]], [[2]]]])}]
        )

    def get_next(self) -> dict | None:
        return next(self.feeds, None)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("op_type", ["Relu", "Clip"])
def test_saturation_stands_for_bounds_of_what_was_always_zero(
    form: str, signed: bool, op_type: str, tmp_path: pathlib.Path
) -> None:
    constants = {"w": np.ones((1, 2, 1, 1), np.float32), "b": np.float32([-3])}
    bounds = {"low": np.float32(0), "high": np.float32(0.5)} if op_type == "Clip" else {}
    nodes = [node("Conv", "x w b", "c"), node(op_type, " ".join(["c", *bounds]), "y")]
    source = model(nodes, {"x": [1, 2, 1, 1]}, {"y": [1, 1, 1, 1]}, constants | bounds)
    path = tmp_path / "quantized.onnx"
    kind = ours.QuantType.QInt8 if signed else ours.QuantType.QUInt8
    ours.quantize_static(source, path, Apart(), ours.QuantFormat[form], activation_type=kind)
    assert op_types(path)[op_type] == 0
    for x in (1.6, 2, -2):
        feed = {"x": np.full((1, 2, 1, 1), x, np.float32)}
        step = 0.5 / 255 if op_type == "Clip" else 1
        np.testing.assert_allclose(run(path, feed), run(source, feed), atol=0.03 + step / 2)


def test_forces_operators_that_pass_values_on(tmp_path: pathlib.Path) -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0]),
        node("Where", "c t t", "w"),
        node("Sqrt", "w", "y"),
    ]
    source = model(nodes, {"x": [4, 3]}, {"y": [3, 4]}, {"c": np.eye(3, 4) > 0})
    for form in ours.QuantFormat:
        for forces, count in ((False, 0), (True, 1)):
            path = tmp_path / "quantized.onnx"
            extra = {"ForceQuantizeNoInputCheck": forces}
            ours.quantize_static(source, path, Reader(source), form, extra_options=extra)
            assert (op_types(path)["QuantizeLinear"] >= 1) == bool(count), (form, forces)


def test_warns_of_unknown_options_and_refuses_wrong_ones(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), extra_options={"WeightSymetric": True})
    assert "did you mean 'WeightSymmetric'?" in caplog.text
    with pytest.raises(
        TypeError, match=r"extra_options\['TensorQuantOverrides'\]: expected a dict"
    ):
        ours.quantize_static(
            source, path, Reader(source), extra_options={"TensorQuantOverrides": ["w1"]}
        )
    with pytest.raises(ValueError, match="10 feeds are not divisible by CalibStridedMinMax = 3"):
        ours.quantize_static(source, path, Reader(source), extra_options={"CalibStridedMinMax": 3})


def kinds(package, overrides: Any) -> Any:
    """Overrides whose types are names, with the types of a package."""
    if isinstance(overrides, dict):
        return {key: kinds(package, one) for key, one in overrides.items()}
    if isinstance(overrides, list):
        return [kinds(package, one) for one in overrides]
    is_kind = isinstance(overrides, str) and overrides in package.QuantType.__members__
    return package.QuantType[overrides] if is_kind else overrides


def one(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.array(value, dtype)


OVERRIDES: dict[str, dict[str, list]] = {
    "type of a value": {"m1": [{"quant_type": "QUInt16"}]},
    "type of a weight": {"w1": [{"quant_type": "QUInt8"}]},
    "asymmetric": {"w1": [{"symmetric": False}]},
    "scale of a weight": {"w1": [{"scale": one(0.1), "zero_point": one(3, np.int8)}]},
    "scale of a value": {"a1": [{"scale": one(0.05), "zero_point": one(100, np.uint8)}]},
    "range of a value": {"a1": [{"rmin": one(-3), "rmax": one(9)}]},
    "range of a weight": {"w1": [{"rmin": -3.0, "rmax": 9.0}]},
    "axis": {"w1": [{"axis": 1}]},
    "axis and type": {"w1": [{"axis": 0, "quant_type": "QInt16"}]},
    "range of each": {"w1": [{"axis": 1, "rmin": -1.0 * i, "rmax": 2.0} for i in range(8)]},
    "scale of each": {
        "w1": [
            {"axis": 1, "scale": one(0.1 + i / 100), "zero_point": one(0, np.int8)}
            for i in range(8)
        ]
    },
    "reduced": {"w1": [{"reduce_range": True}]},
    "converted for one": {"s1": [{"convert": {"quant_type": "QUInt16", "recv_nodes": {"n_c"}}}]},
    "converted input": {"x": [{"convert": {"quant_type": "QUInt16", "recv_nodes": {"n_m1"}}}]},
    "converted for all": {"m1": [{"convert": {"quant_type": "QInt16"}}]},
    "converted output": {"y": [{"convert": {"quant_type": "QUInt16"}}]},
    "bias as a weight": {"b1": [{"quant_type": "QInt8"}]},
}


@pytest.mark.parametrize("case", OVERRIDES)
@pytest.mark.parametrize("opset", [17, 21])
def test_overrides_have_the_same_effect(case: str, opset: int, tmp_path: pathlib.Path) -> None:
    def settings(package) -> dict:
        extra = {"TensorQuantOverrides": kinds(package, OVERRIDES[case])}
        return {"activation_type": package.QuantType.QUInt8, "extra_options": extra}

    source = MODELS["products"]
    source.opset_import[0].version = opset
    expect_alike(*quantize_both(source, tmp_path, settings), source, 3)


WRONG: dict[str, tuple[dict, str]] = {
    "unknown tensor": ({"nope": [{}]}, "'nope' in TensorQuantOverrides is not present"),
    "no list": ({"w1": {}}, "'w1' are not in a list"),
    "no dictionary": ({"w1": [3]}, "at index 0 for 'w1' are no dict"),
    "unknown key": ({"w1": [{"scal": 1}]}, "'w1' have unknown keys ['scal']"),
    "scale alone": ({"w1": [{"scale": one(1)}]}, "both 'scale' and 'zero_point'"),
    "scale and range": (
        {"w1": [{"scale": one(1), "zero_point": one(0), "rmin": 0}]},
        "option(s) [rmin] are invalid with 'scale'",
    ),
    "value of channels": ({"s1": [{"axis": 0}]}, "'s1' has per-channel overrides, but is not"),
    "reduced value": ({"s1": [{"reduce_range": True}]}, "'reduce_range' is only supported for"),
    "converted weight": ({"w1": [{"convert": {"quant_type": "QInt16"}}]}, "Cannot use 'convert'"),
    "converted to nothing": ({"s1": [{"convert": {}}]}, "must specify a 'quant_type'"),
    "converted to the same": (
        {"s1": [{"convert": {"quant_type": "QInt8"}}]},
        "'convert' quant_type must differ",
    ),
    "axis": ({"w1": [{"axis": 2}]}, "out-of-bounds for tensor 'w1' [16, 8]"),
    "channels": ({"w1": [{"axis": 1}] * 7}, "(axis 1), expected 8, but found 7"),
    "second is wrong, too": ({"w1": [{}], "w2": [{"axis": 5}]}, "out-of-bounds for tensor 'w2'"),
    "half a range": ({"w1": [{"axis": 1, "rmin": 0.0}]}, "both 'rmin' and 'rmax'"),
    "other symmetry": (
        {"w1": [{"axis": 0, "symmetric": True}] + [{"symmetric": False}] * 15},
        "'symmetric' differs from that of the first channel (tensor 'w1', channel 1)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refuses_overrides(case: str, tmp_path: pathlib.Path) -> None:
    overrides, message = WRONG[case]
    source = MODELS["products"]
    with pytest.raises(ValueError) as raised:
        ours.quantize_static(
            source,
            tmp_path / "quantized.onnx",
            Reader(source),
            extra_options={"TensorQuantOverrides": kinds(ours, overrides)},
        )
    assert message in str(raised.value)


def test_one_dictionary_is_for_all_channels(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    given = {"axis": 1, "scale": one(0.25), "zero_point": one(0, np.int8)}
    extra = {"TensorQuantOverrides": {"w1": [given], "w2": [{"axis": 1, "rmin": -4, "rmax": 4}]}}
    ours.quantize_static(source, path, Reader(source), extra_options=extra)
    constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}
    np.testing.assert_array_equal(constants["w1_scale"], np.full(8, 0.25, np.float32))
    np.testing.assert_allclose(constants["w2_scale"], np.full(4, 4 / 127, np.float32), rtol=1e-6)
    original = numpy_helper.to_array(source.graph.initializer[0])
    expected = np.clip(np.round(original / 0.25), -128, 127)
    np.testing.assert_array_equal(constants["w1_quantized"], expected)


@pytest.mark.parametrize("weights", ["QInt8", "QUInt8", "QInt4", "QInt16"])
@pytest.mark.parametrize("per_channel", [False, True])
def test_blocks_of_weights_have_scales(
    weights: str, per_channel: bool, tmp_path: pathlib.Path
) -> None:
    def settings(package) -> dict:
        return {
            "activation_type": package.QuantType.QUInt16,
            "weight_type": package.QuantType[weights],
            "per_channel": per_channel,
            "extra_options": {"BlockSize": 8},
        }

    source = MODELS["products"]
    source.opset_import[0].version = 21
    expect_alike(*quantize_both(source, tmp_path, settings), source, 2)


def test_quantizes_to_float8(tmp_path: pathlib.Path) -> None:
    def settings(package) -> dict:
        return {
            "activation_type": package.QuantType.QFLOAT8E4M3FN,
            "weight_type": package.QuantType.QFLOAT8E4M3FN,
            "calibrate_method": package.CalibrationMethod.Distribution,
        }

    nodes = [node("MatMul", "x w1", "m"), node("Add", "m b", "a"), node("MatMul", "a w2", "y")]
    constants = {"w1": normal(16, 8), "b": normal(8), "w2": normal(8, 4)}
    source = model(nodes, {"x": [2, 16]}, {"y": [2, 4]}, constants, 19)
    expect_alike(*quantize_both(source, tmp_path, settings), source, 2)
    convolutions, path = MODELS["convolutions"], tmp_path / "quantized.onnx"
    ours.quantize_static(convolutions, path, Reader(convolutions), **settings(ours))
    expect_near(path, convolutions, 0.15)
    with pytest.raises(ValueError, match="Only Distribution calibration"):
        given = {**settings(ours), "calibrate_method": ours.CalibrationMethod.MinMax}
        ours.quantize_static(convolutions, path, Reader(convolutions), **given)


REFUSED = [
    ("QDQ", "QInt8", "QUInt8", "signed values have signed weights"),
    ("QDQ", "QUInt8", "QFLOAT8E4M3FN", "QFLOAT8E4M3FN both or neither"),
    ("QOperator", "QUInt16", "QInt8", "Only QuantFormat.QDQ supports 16-bit"),
    ("QOperator", "QUInt8", "QInt16", "Only QuantFormat.QDQ supports 16-bit"),
]


@pytest.mark.parametrize(("form", "values", "weights", "message"), REFUSED)
def test_refuses_types_that_do_not_go_together(
    form: str, values: str, weights: str, message: str, tmp_path: pathlib.Path
) -> None:
    source = MODELS["products"]
    with pytest.raises(ValueError, match=message):
        ours.quantize_static(
            source,
            tmp_path / "quantized.onnx",
            Reader(source),
            ours.QuantFormat[form],
            activation_type=ours.QuantType[values],
            weight_type=ours.QuantType[weights],
            calibrate_method=ours.CalibrationMethod.Distribution,
        )


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "16 bits": {"activation_type": "QUInt16"},
    "symmetric": {"activation_type": "QInt8", "per_channel": True, "activation_symmetric": True},
    "4 bits": {"weight_type": "QInt4"},
    "4 and 16 bits": {"activation_type": "QInt16", "weight_type": "QInt4"},
    "least range": {"min_real_range": 1e-3},
    "relus": {"keep_removable_activations": True},
    "some operators": {"op_types_to_quantize": ["Conv", "MatMul"]},
    "without some": {"nodes_to_exclude": ["n_m2", "n_c2"]},
    "without what is told": {"nodes_to_exclude": lambda _, one: one.op_type == "Concat"},
    "asymmetric weights": {"weight_symmetric": False},
    "overrides": {"tensor_quant_overrides": {"x": [{"quant_type": "QUInt16"}]}},
}


@pytest.mark.parametrize("name", ["convolutions", "products"])
@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_configurations_quantize_all_operators(
    name: str, case: str, tmp_path: pathlib.Path
) -> None:
    source = MODELS[name]
    paths = []
    for package in (ours, theirs):
        path = tmp_path / f"{package.__name__}.onnx"
        given = kinds(package, CONFIGURATIONS[case])
        config = package.get_qdq_config(MODELS[name], READERS[package](source), **given)
        package.quantize(MODELS[name], path, config)
        paths.append(path)
    expect_alike(*paths, source, 3)


def test_takes_configurations(tmp_path: pathlib.Path) -> None:
    source, path = MODELS["products"], tmp_path / "quantized.onnx"
    ours.quantize(source, path, ours.DynamicQuantConfig())
    assert op_types(path)["MatMulInteger"] == 2
    ours.quantize(source, path, ours.get_qdq_config(source, Reader(source)))
    assert op_types(path)["DequantizeLinear"] > 4
    arguments = {"percentile": 90.0, "symmetric": False}
    config = ours.get_qdq_config(
        source, Reader(source), ours.CalibrationMethod.Percentile, arguments
    )
    assert config.extra_options["CalibPercentile"] == 90.0
    ours.quantize(source, path, config)
    feed = Reader(source).get_next()
    assert run(path, feed).shape == run(source, feed).shape
    with pytest.raises(TypeError, match="Invalid quantization config type"):
        ours.quantize(source, path, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="No data"):
        empty = Reader(source)
        while empty.get_next():
            pass
        ours.quantize_static(source, path, empty)


def with_outliers(op_type: str) -> onnx.ModelProto:
    """A product of values some of whose channels are a hundred times as large as the others."""
    sizes = np.ones(16, np.float32)
    sizes[[3, 11]] = 100
    if op_type == "Conv":
        factor = sizes.reshape(16, 1, 1)
        nodes = [node("Mul", "x f", "v"), node("Conv", "v w", "y")]
        constants = {"f": factor, "w": normal(8, 16, 3, 3)}
        return model(nodes, {"x": [1, 16, 6, 6]}, {"y": [1, 8, 4, 4]}, constants)
    attributes = {"transB": 1} if op_type == "Gemm" else {}
    nodes = [
        node("LayerNormalization", "x g b", "v"),
        node(op_type, "v w", "y1", **attributes),
        node(op_type, "v w2", "y2", **attributes),
        node("Add", "y1 y2", "y"),
    ]
    shape = (8, 16) if op_type == "Gemm" else (16, 8)
    constants = {"g": sizes, "b": sizes * normal(16), "w": normal(*shape)}
    constants["w2"] = normal(*shape, seed=1)
    return model(nodes, {"x": [4, 16]}, {"y": [4, 8]}, constants)


@pytest.mark.parametrize("op_type", ["MatMul", "Gemm", "Conv"])
@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_smooths_channels(op_type: str, folds: bool, form: str, tmp_path: pathlib.Path) -> None:
    source, path = with_outliers(op_type), tmp_path / "quantized.onnx"
    errors, feed = [], Reader(source).get_next()
    expected = run(source, feed)
    for smooths in (False, True):
        extra = {"SmoothQuant": smooths, "SmoothQuantFolding": folds, "SmoothQuantAlpha": 0.6}
        ours.quantize_static(
            source,
            path,
            Reader(source),
            ours.QuantFormat[form],
            op_types_to_quantize=[op_type],
            activation_type=ours.QuantType.QUInt8,
            extra_options=extra,
        )
        errors.append(np.sqrt(np.mean((run(path, feed) - expected) ** 2)))
    assert errors[1] < 0.6 * errors[0]
    is_folded = folds and op_type != "Conv"  # which reads what no normalization makes
    assert op_types(path)["Mul"] == (op_type == "Conv") + (not is_folded)


@pytest.mark.parametrize("op_type", ["MatMul", "Gemm", "Conv"])
@pytest.mark.parametrize("folds", [False, True])
def test_smooth_models_give_the_same(op_type: str, folds: bool) -> None:
    source = with_outliers(op_type)
    made = onnx.ModelProto()
    made.CopyFrom(source)
    smooth(made, Reader(source), 0.5, folds)
    feed = Reader(source).get_next()
    expected = run(source, feed)
    np.testing.assert_allclose(run(made, feed), expected, atol=1e-6 * np.ptp(expected))
    onnx.checker.check_model(made)


def test_smoothing_reads_data_twice(tmp_path: pathlib.Path) -> None:
    class Once(ours.CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = (feed for feed in Reader(MODELS["products"]))

        def get_next(self) -> dict | None:
            return next(self.feeds, None)

    for reader, error in ((Once(), TypeError), (None, ValueError)):
        with pytest.raises(error, match="SmoothQuant"):
            ours.quantize_static(
                MODELS["products"],
                tmp_path / "quantized.onnx",
                reader,
                extra_options={"SmoothQuant": True},
            )


def test_rules_may_be_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """In the form in which programs for onnxruntime register them."""

    class FirstInput(QDQOperatorBase):
        def quantize(self) -> None:
            self.quantizer.quantize_activation_tensor(self.node.input[0])

    monkeypatch.setitem(QDQRegistry, "Tanh", FirstInput)
    monkeypatch.setitem(QDQRegistry, "Sqrt", QDQOperatorBase)
    nodes = [node("Tanh", "x", "t"), node("Abs", "t", "a"), node("Sqrt", "a", "y")]
    source, path = model(nodes, {"x": [2, 3]}, {"y": [2, 3]}, {}), tmp_path / "quantized.onnx"
    ours.quantize_static(source, path, Reader(source), op_types_to_quantize=["Tanh", "Sqrt"])
    made = [one.name for one in onnx.load(path).graph.node if one.op_type == "QuantizeLinear"]
    assert sorted(made) == ["a_QuantizeLinear", "x_QuantizeLinear", "y_QuantizeLinear"]
    expect_near(path, source, 0.05)
