"""tenon.training.onnxblock (section 3.3 of training.md) beside NumPy and PyTorch."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from tenon.training import onnxblock
from tenon.training.onnxblock import blocks
from tenon.training.onnxblock.loss import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss

FLOAT = np.float32


def tensor(name: str, shape: list | None, type_: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def model_of(
    nodes: list, inputs: list, outputs: list, constants: dict[str, np.ndarray] | None = None
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(v, name) for name, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    opsets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def identity(shape: list, type_: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """y = x + 0, so that the gradient of x is that of y."""
    dtype = helper.tensor_dtype_to_np_dtype(type_)
    node = helper.make_node("Add", ["x", "zero"], ["y"])
    ends = [tensor(name, shape, type_) for name in "xy"]
    return model_of([node], ends[:1], ends[1:], {"zero": np.zeros((), dtype)})


class Forward(onnxblock.ForwardBlock):
    """What a function builds, as the outputs of a model."""

    def __init__(self, build: Any) -> None:
        super().__init__()
        self._build = build

    def build(self, *names: str) -> Any:
        return self._build(*names)


class Training(onnxblock.TrainingBlock):
    """What a function builds, as a loss."""

    def __init__(self, build: Any, *trained: str) -> None:
        super().__init__()
        self._build = build
        for name in trained:
            self.requires_grad(name)

    def build(self, *names: str) -> Any:
        return self._build(*names)


def run(model: onnx.ModelProto, feeds: dict) -> list:
    return tenon.InferenceSession(model.SerializeToString()).run(None, feeds)


def value_and_gradient(
    loss: onnxblock.Block, x: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The loss of x, and its gradient."""
    shape = list(x.shape)
    block = Training(loss, "x")
    with onnxblock.base(identity(shape, helper.np_dtype_to_tensor_dtype(x.dtype))):
        block("y")
    training, evaluation = block.to_model_proto()
    name = evaluation.graph.input[1].name
    (value,) = run(evaluation, {"x": x, name: target})
    buffer = np.zeros_like(x)
    feeds = {"x": x, name: target, "x_grad.accumulation.buffer": buffer}
    again, done = run(training, feeds | {"lazy_reset_grad": np.array([True])})
    assert done.tolist() == [True]
    np.testing.assert_array_equal(value, again)
    return value, buffer


# --- Losses ---

SCORES = np.random.default_rng(1).standard_normal((4, 5)).astype(FLOAT)
CLASSES = np.array([0, 4, 2, 2])
WEIGHTS = np.array([1, 2, 0.5, 3, 0.25])
BINARY = (np.random.default_rng(2).random((4, 5)) > 0.5).astype(FLOAT)
REAL = np.random.default_rng(3).standard_normal((4, 5)).astype(FLOAT)
LOSSES = {
    "mean of squares": (MSELoss, REAL, {}),
    "magnitudes": (L1Loss, REAL, {}),
    "classes": (CrossEntropyLoss, CLASSES, {}),
    "weighted classes": (CrossEntropyLoss, CLASSES, {"weight": WEIGHTS}),
    "ignored classes": (CrossEntropyLoss, CLASSES, {"ignore_index": 2}),
    "binary": (BCEWithLogitsLoss, BINARY, {}),
    "weighted binary": (BCEWithLogitsLoss, BINARY, {"weight": WEIGHTS, "pos_weight": WEIGHTS + 1}),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", LOSSES)
def test_losses_are_those_of_torch(case: str, reduction: str) -> None:
    torch = pytest.importorskip("torch")
    loss, target, options = LOSSES[case]
    value, gradient = value_and_gradient(loss(reduction=reduction, **options), SCORES, target)
    factors = {k: torch.tensor(v.astype(FLOAT)) for k, v in options.items() if k != "ignore_index"}
    scores = torch.tensor(SCORES, requires_grad=True)
    theirs = getattr(torch.nn, loss.__name__)(reduction=reduction, **(options | factors))
    expected = theirs(scores, torch.tensor(target))
    expected.sum().backward()
    np.testing.assert_allclose(value, expected.detach().numpy(), 1e-5, 1e-6)
    np.testing.assert_allclose(gradient, scores.grad.numpy(), 1e-5, 1e-6)


def test_losses_of_doubles() -> None:
    x, target = SCORES.astype(np.float64), BINARY.astype(np.float64)
    block = Forward(BCEWithLogitsLoss(weight=WEIGHTS, pos_weight=WEIGHTS))
    with onnxblock.base(identity([4, 5], TensorProto.DOUBLE)):
        block("y")
    (value,) = run(block.to_model_proto(), {"x": x, "target": target})
    p = 1 / (1 + np.exp(-x))
    losses = -(WEIGHTS * target * np.log(p) + (1 - target) * np.log(1 - p))
    np.testing.assert_allclose(value, (WEIGHTS * losses).mean(), 1e-12)


def test_binary_cross_entropy_of_large_logits_and_of_zero() -> None:
    x = np.array([[1000, -1000, 1000, -1000, 0, 0]], FLOAT)
    target = np.array([[1, 0, 0, 1, 0, 1]], FLOAT)
    value, gradient = value_and_gradient(BCEWithLogitsLoss(reduction="none"), x, target)
    np.testing.assert_allclose(value, [[0, 0, 1000, 1000, np.log(2), np.log(2)]], 1e-6)
    np.testing.assert_allclose(gradient, [[0, 0, 1, -1, 0.5, -0.5]], 1e-6)


def test_classes_are_on_the_last_axis() -> None:
    x = np.random.default_rng(4).standard_normal((2, 3, 4)).astype(FLOAT)
    labels = np.array([[0, 3, 1], [2, 2, 0]])
    value, gradient = value_and_gradient(CrossEntropyLoss(), x, labels)
    exponents = np.exp(x.astype(np.float64))
    p = exponents / exponents.sum(axis=-1, keepdims=True)
    chosen = np.eye(4)[labels]
    np.testing.assert_allclose(value, -np.log((p * chosen).sum(axis=-1)).mean(), 1e-5)
    np.testing.assert_allclose(gradient, (p - chosen) / labels.size, 1e-5, 1e-7)


def test_labels_that_are_there_keep_the_axes_of_the_operator() -> None:
    model = identity([2, 4, 3])
    model.graph.input.append(tensor("classes", [2, 3], TensorProto.INT32))
    block = Forward(lambda name: CrossEntropyLoss(reduction="sum")(name, "classes"))
    with onnxblock.base(model):
        block("y")
    x = np.random.default_rng(5).standard_normal((2, 4, 3)).astype(FLOAT)
    labels = np.array([[0, 3, 1], [2, 2, 0]], np.int32)
    (value,) = run(block.to_model_proto(), {"x": x, "classes": labels})
    logs = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    picked = np.take_along_axis(logs, labels[:, None].astype(int), 1)
    np.testing.assert_allclose(value, -picked.sum(), 1e-5)


def test_a_loss_of_two_outputs() -> None:
    class Weighted(onnxblock.Block):
        def __init__(self) -> None:  # without super().__init__(), as in onnxruntime's guide
            self._losses = (MSELoss(), L1Loss())
            self._shares = (blocks.Constant(0.25), blocks.Constant(4))
            self._add, self._mul = blocks.Add(), blocks.Mul()

        def build(self, first: str, second: str) -> str:
            one = self._mul(self._shares[0](), self._losses[0](first, target_name="t1"))
            return self._add(one, self._mul(self._shares[1](), self._losses[1](second, "t2")))

    block = Training(Weighted(), "x")
    with onnxblock.base(identity([3])):
        block("y", "x")
    evaluation = block.to_model_proto()[1]
    x, t1, t2 = np.array([[1, 2, 3], [1, 1, 1], [0, 2, 9]], FLOAT)
    (value,) = run(evaluation, {"x": x, "t1": t1, "t2": t2})
    np.testing.assert_allclose(value, [0.25 * 5 / 3 + 4 * 7 / 3], 1e-6)


# --- Small blocks ---

A = np.array([[0.5, 2, 3], [4, 5, 0.25]], FLOAT)
SMALL = {
    "Add": (lambda y: blocks.Add()(y, y), A + A),
    "Sub": (lambda y: blocks.Sub()(y, blocks.Constant(2)()), A - 2),
    "Mul": (lambda y: blocks.Mul()(y, y), A * A),
    "Div": (lambda y: blocks.Div()(y, blocks.Constant(2)()), A / 2),
    "Pow": (blocks.Pow(3.0), A**3),
    "ReduceMean": (blocks.ReduceMean(), A.mean(keepdims=True)),
    "ReduceSum": (blocks.ReduceSum(keepdims=False), A.sum()),
    "Sigmoid": (blocks.Sigmoid(), 1 / (1 + np.exp(-A))),
    "Log": (blocks.Log(), np.log(A)),
    "Neg": (blocks.Neg(), -A),
    "Abs": (lambda y: blocks.Abs()(blocks.Neg()(y)), A),
    "Clip": (blocks.Clip(1, 3), A.clip(1, 3)),
    "Clip above": (blocks.Clip(clip_max=3), A.clip(None, 3)),
    "Cast": (blocks.Cast(TensorProto.INT32), A.astype(np.int32)),
    "PassThrough": (blocks.PassThrough(), A),
    "LabelEncoder": (
        blocks.LabelEncoder(-1.0, keys_floats=[2, 3], values_floats=[7, 8]),
        np.array([[-1, 7, 8], [-1, -1, -1]]),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_blocks(name: str) -> None:
    build, expected = SMALL[name]
    block = Forward(build)
    with onnxblock.base(identity([2, 3])) as accessor:
        block("y")
        assert accessor.model == block.to_model_proto()
    (result,) = run(block.to_model_proto(), {"x": A})
    np.testing.assert_allclose(np.reshape(result, np.shape(expected)), expected, 1e-6)


def test_the_norm_of_several_tensors() -> None:
    block = Forward(blocks.ReduceAllL2())
    with onnxblock.base(identity([2, 3])):
        block("y", "x")
    (output,) = block.to_model_proto().graph.output
    assert output.type == tensor("", [1]).type
    node = block.to_model_proto().graph.node[-1]
    assert (node.domain, node.op_type) == ("com.microsoft", "ReduceAllL2")
    assert list(node.input) == ["y", "x"]


def test_a_model_from_nothing() -> None:
    np.random.seed(0)
    dense = blocks.Linear(3, 2)
    like = blocks.InputLike("x")
    block = Forward(lambda x: blocks.SequenceConstruct()(dense(x), dense(like("second"))))
    with onnxblock.empty_base(17) as accessor:
        accessor.model.graph.input.append(tensor("x", [2, 3]))
        block("x")
    model = block.to_model_proto()
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer]
    assert [w.shape for w in weights] == [(3, 2), (2,), (3, 2), (2,)]
    (results,) = run(model, {"x": A, "second": -A})
    np.testing.assert_allclose(results[0], A @ weights[0] + weights[1], 1e-5)
    np.testing.assert_allclose(results[1], -A @ weights[2] + weights[3], 1e-5)


# --- Optimizers ---


def test_clipping_and_the_settings_of_adamw() -> None:
    parameters = ([numpy_helper.from_array(A, "w")], [])
    clip = onnxblock.optim.ClipGradNorm(2.5)
    block = onnxblock.optim.AdamW(False, (0.5, 0.25), 1e-3, 0.1, clip)
    with onnxblock.empty_base(17) as accessor:
        block(parameters)
    assert len(accessor.model.graph.output) == 1
    zeros = [np.zeros_like(A) for _ in range(2)]
    w, g = A.copy(), A.copy()
    feeds = {"learning_rate": np.array([0.5], FLOAT), "step": np.array([1]), "params": [w]}
    feeds |= {"gradients": [g], "first_order_moments": zeros[:1]}
    (done,) = run(accessor.model, feeds | {"second_order_moments": zeros[1:]})
    assert done.tolist() == [True]
    clipped = A * min(1, 2.5 / (np.sqrt((A * A).sum()) + 1e-6))
    m, v = 0.5 * clipped, 0.75 * clipped**2
    expected = (A - 0.5 * m / (np.sqrt(v) + 1e-3)) * (1 - 0.5 * 0.1)
    np.testing.assert_allclose(w, expected, 1e-5, 1e-6)


def test_sgd_of_clipped_gradients() -> None:
    with onnxblock.empty_base(17) as accessor:
        onnxblock.optim.SGD(onnxblock.optim.ClipGradNorm(1))(
            ([numpy_helper.from_array(A, "w")], [])
        )
    names = [value.name for value in accessor.model.graph.input]
    assert names == ["learning_rate", "step", "params", "gradients"]
    w = A.copy()
    feeds = {"learning_rate": np.array([0.5], FLOAT), "step": np.array([1]), "params": [w]}
    run(accessor.model, feeds | {"gradients": [A.copy()]})
    np.testing.assert_allclose(w, A - 0.5 * A / np.sqrt((A * A).sum()), 1e-5)


def test_parameters_of_two_types() -> None:
    parameters = [numpy_helper.from_array(A.astype(t), t.__name__) for t in (FLOAT, np.float64)]
    with (
        onnxblock.empty_base(17),
        pytest.raises(RuntimeError, match="of one element type, got FLOAT and DOUBLE"),
    ):
        onnxblock.optim.SGD()((parameters, []))


# --- Models ---


def test_evaluation_models_leave_the_training_mode() -> None:
    nodes = [
        helper.make_node("Dropout", ["x", "ratio", "trains"], ["dropped"]),
        helper.make_node(
            "BatchNormalization",
            ["dropped", "scale", "bias", "mean", "variance"],
            ["y", "new_mean", "new_variance"],
            training_mode=1,
        ),
    ]
    ones = np.ones(3, FLOAT)
    constants = {"ratio": np.array(0.5, FLOAT), "trains": np.array(True)}
    constants |= {"scale": 2 * ones, "bias": ones, "mean": 3 * ones, "variance": 4 * ones}
    outputs = [tensor("y", ["n", 3]), tensor("new_mean", [3])]
    block = Training(lambda y: (MSELoss()(y), y, "new_mean"))
    with onnxblock.base(model_of(nodes, [tensor("x", ["n", 3])], outputs, constants)):
        block("y")
    evaluation = block.to_model_proto()[1]
    _, y, mean = run(evaluation, {"x": A, "target": A})
    np.testing.assert_allclose(y, 2 * (A - 3) / np.sqrt(4 + 1e-5) + 1, 1e-5, 1e-6)
    np.testing.assert_array_equal(mean, 3 * ones)


def test_parameters_may_be_inputs_already() -> None:
    # Before IR version 4, every initializer was an input, too.
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [tensor("w", [3, 2]), tensor("x", ["n", 3])],
        [tensor("y", ["n", 2])],
        {"w": A.T.copy()},
    )
    block = Training(MSELoss(), "w")
    with onnxblock.base(model):
        block("y")
    names = [value.name for value in block.to_model_proto()[1].graph.input]
    assert names == ["x", "target", "w"]
    (trained,), frozen = block.parameters()
    np.testing.assert_array_equal(numpy_helper.to_array(trained), A.T)
    assert frozen == []


def test_the_last_word_on_a_parameter_counts() -> None:
    model = model_of(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        [tensor("x", ["n", 3])],
        [tensor("y", ["n", 2])],
        {"w": A.T.copy(), "b": np.ones(2, FLOAT)},
    )
    block = Training(MSELoss(), "w", "b")
    block.requires_grad("w", False)
    block.requires_grad("b", False)
    block.requires_grad("b")
    with onnxblock.base(model):
        block("y")
    assert [[one.name for one in group] for group in block.parameters()] == [["b"], ["w"]]


def test_checkpoints_of_parameters(tmp_path: pathlib.Path) -> None:
    values = {"w": A, "half": A.astype(np.float16), "shape": np.array([2, -1])}
    tensors = [numpy_helper.from_array(v, name) for name, v in values.items()]
    onnxblock.save_checkpoint((tensors[:1], tensors[1:]), tmp_path / "checkpoint")
    zeros = {name: np.zeros_like(v) for name, v in values.items()}
    model = model_of([], [], [], zeros | {"other": A})
    onnxblock.load_checkpoint_to_model(tmp_path / "checkpoint", model)
    for one in model.graph.initializer:
        expected = (values | {"other": A})[one.name]
        np.testing.assert_array_equal(numpy_helper.to_array(one), expected)
        assert numpy_helper.to_array(one).dtype == expected.dtype


# --- Errors ---


def test_contexts() -> None:
    with pytest.raises(RuntimeError, match=r"call blocks inside `with onnxblock.base"):
        blocks.Add()("x", "x")
    with (
        onnxblock.empty_base(),
        pytest.raises(RuntimeError, match="a base model is already set"),
        onnxblock.base(identity([2])),
    ):
        pass
    with pytest.raises(RuntimeError, match="the base model is None"), onnxblock.base(None):
        pass
    with onnxblock.base(identity([2])) as accessor:
        assert not accessor.has_path
        with pytest.raises(RuntimeError, match="no path"):
            accessor.path  # noqa: B018
    with onnxblock.base(identity([2]), "model.onnx") as accessor:
        assert accessor.path == "model.onnx"


def test_what_is_not_built_yet() -> None:
    with pytest.raises(RuntimeError, match="Please build the training model first"):
        Training(MSELoss()).parameters()
    with pytest.raises(RuntimeError, match="the models are not built yet"):
        Training(MSELoss()).to_model_proto()
    with pytest.raises(RuntimeError, match="the model is not built yet"):
        Forward(MSELoss()).to_model_proto()


def test_wrong_settings() -> None:
    with pytest.raises(RuntimeError, match=r"expected one of .*, got 'median'"):
        MSELoss("median")
    with onnxblock.base(identity([3])):
        with pytest.raises(RuntimeError, match=r"the scores 'y': expected at least 2 axes.*got 1"):
            CrossEntropyLoss()("y")
        with pytest.raises(LookupError, match="the type of the value 'yy' is not known"):
            blocks.InputLike("yy")()
    with pytest.raises(RuntimeError, match="expected lists of trained and frozen"):
        onnxblock.save_checkpoint(None, "checkpoint")


def test_the_model_is_checked_after_the_outermost_block() -> None:
    class Wrong(onnxblock.Block):
        def build(self, name: str) -> str:
            self.base.graph.node.append(helper.make_node("Abs", ["absent"], ["z"]))
            return blocks.Neg()(name)

    with (
        onnxblock.base(identity([3])),
        pytest.raises(onnx.checker.ValidationError, match="absent"),
    ):
        Wrong()("y")
