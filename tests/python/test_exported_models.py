"""What exporters write, and what the frameworks that they export from compute."""

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

REDUCTIONS = {
    "ReduceSum": lambda x: x,
    "ReduceMean": lambda x: x,
    "ReduceMax": lambda x: x,
    "ReduceMin": lambda x: x,
    "ReduceProd": lambda x: x,
    "ReduceL1": np.abs,
    "ReduceL2": np.abs,
    "ReduceSumSquare": np.square,
    "ReduceLogSumExp": lambda x: x,
}


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("opset", [11, 18])
def test_a_scalar_has_an_axis_to_reduce(op_type: str, axis: int, opset: int) -> None:
    """As in PyTorch and NumPy, where it changes nothing."""
    is_input = opset == 18
    axes = [numpy_helper.from_array(np.array([axis]), "axes")] if is_input else []
    attributes = {} if is_input else {"axes": [axis]}
    node = helper.make_node(op_type, ["x", *(a.name for a in axes)], ["y"], keepdims=1)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    content = graphs.model(
        [node], [graphs.tensor("x", shape=[])], [graphs.tensor("y")], opset=opset, initializers=axes
    )
    x = np.array(-1.5, np.float32)
    [y] = tenon.InferenceSession(content).run(None, {"x": x})
    assert y.shape == ()
    np.testing.assert_allclose(y, REDUCTIONS[op_type](x), rtol=1e-6)


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("axes", [[1], [-2], [0, 0]])
def test_a_scalar_has_no_other_axes(op_type: str, axes: list[int]) -> None:
    content = graphs.model(
        [helper.make_node(op_type, ["x", "axes"], ["y"])],
        [graphs.tensor("x", shape=[])],
        [graphs.tensor("y")],
        opset=18,
        initializers=[numpy_helper.from_array(np.array(axes), "axes")],
    )
    with pytest.raises(Exception, match="rank 0"):
        tenon.InferenceSession(content)


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(("size", "drops"), [(1, True), (2, False), ([1, 1, 1, 1], False)])
def test_pieces_of_one_element_lose_the_axis(is_constant: bool, size: object, drops: bool) -> None:
    """PyTorch's unbind, which is written with a size of 1 and keepdims=0."""
    split = np.array(size)
    inputs = [graphs.tensor("x", shape=[4, 3])]
    if not is_constant:
        inputs.append(graphs.tensor("split", TensorProto.INT64, list(split.shape)))
    content = graphs.model(
        [helper.make_node("SplitToSequence", ["x", "split"], ["y"], axis=0, keepdims=0)],
        inputs,
        [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
        opset=13,
        initializers=[numpy_helper.from_array(split, "split")] if is_constant else [],
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    feeds = {"x": x} if is_constant else {"x": x, "split": split}
    [pieces] = tenon.InferenceSession(content).run(None, feeds)
    expected = list(x) if drops else np.split(x, 4 if split.ndim else 4 // int(split))
    assert [p.tolist() for p in pieces] == [e.tolist() for e in expected]


@pytest.mark.parametrize("opset", [7, 9, 13])
@pytest.mark.parametrize("reads_statistics", [True, False])
@pytest.mark.parametrize("after_conv", [True, False])
def test_outputs_for_statistics_mean_training(
    opset: int, reads_statistics: bool, after_conv: bool
) -> None:
    """Before version 14 of BatchNormalization, also if nothing reads them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5, 3, 4, 4), dtype=np.float32)
    values = {name: rng.random(3, dtype=np.float32) for name in ("scale", "b", "mean", "var")}
    values["w"] = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1) * 2
    outputs = ["y", "new_mean", "new_var", "saved_mean", "saved_var"]
    names = list(values)[:4]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"])] if after_conv else []
    first = "c" if after_conv else "x"
    nodes.append(helper.make_node("BatchNormalization", [first, *names], outputs, momentum=0.8))
    content = graphs.model(
        nodes,
        [graphs.tensor("x", shape=list(x.shape))],
        [graphs.tensor(name) for name in outputs[: 2 if reads_statistics else 1]],
        opset=opset,
        initializers=[numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    y, *statistics = tenon.InferenceSession(content).run(None, {"x": x})
    z = x * (2 if after_conv else 1)
    mean, var = z.mean((0, 2, 3), keepdims=True), z.var((0, 2, 3), keepdims=True)
    scale, b = (values[name].reshape(1, 3, 1, 1) for name in ("scale", "b"))
    np.testing.assert_allclose(y, (z - mean) / np.sqrt(var + 1e-5) * scale + b, atol=2e-6)
    if reads_statistics:
        expected = 0.8 * values["mean"] + 0.2 * mean.ravel()
        np.testing.assert_allclose(statistics[0], expected, rtol=1e-5, atol=1e-6)


ACTIVATIONS = {
    "HardSigmoid": (
        {"alpha": 1 / 6, "beta": 0.5},
        lambda x: np.clip(x * np.float32(1 / 6) + 0.5, 0, 1),
    ),
    "HardSwish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Elu": ({"alpha": 1.1}, lambda x: np.where(x < 0, 1.1 * np.expm1(x), x)),
    "Celu": ({"alpha": 1.1}, lambda x: np.maximum(x, 0) + np.minimum(0, 1.1 * np.expm1(x / 1.1))),
    "Selu": (
        {},
        lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x),
    ),
    "Softplus": ({}, lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)),
    "ThresholdedRelu": ({"alpha": 0.3}, lambda x: np.where(x > np.float32(0.3), x, 0)),
    "LeakyRelu": ({"alpha": 0.3}, lambda x: np.where(x < 0, np.float32(0.3) * x, x)),
    "Mish": ({}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
}


@pytest.mark.parametrize("op_type", ACTIVATIONS)
@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_functions_of_half_precision_round_once(op_type: str, level: str) -> None:
    """Attributes and sums stay floats, as in PyTorch: the result is the nearest half, but for the
    few that the float's own error moves."""
    attributes, function = ACTIVATIONS[op_type]
    content = graphs.model(
        [helper.make_node(op_type, ["x"], ["y"], **attributes)],
        [graphs.tensor("x", TensorProto.FLOAT16, ["n"])],
        [graphs.tensor("y", TensorProto.FLOAT16)],
        opset=18,
    )
    x = np.linspace(-6, 6, 2001).astype(np.float16)
    options = tenon.SessionOptions()
    options.graph_optimization_level = getattr(tenon.GraphOptimizationLevel, level)
    [y] = tenon.InferenceSession(content, options).run(None, {"x": x})
    expected = function(x.astype(np.float64)).astype(np.float16)
    assert (y != expected).sum() <= len(x) // 100
