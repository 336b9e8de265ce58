"""Training on the device, beside formulas in float64: operators that change their inputs in place,
and tenon.training.api."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper
from tenon.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer

FLOAT = np.float32
SHAPES = [(), (3,), (40, 50), (3, 7000)]
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]


def tensors(*names: str, type_: int = TensorProto.FLOAT, shape: list | None = None) -> list:
    return [helper.make_tensor_value_info(name, type_, shape) for name in names]


def sequences(*names: str) -> list:
    return [helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None) for name in names]


def model(nodes: list, inputs: list, outputs: list) -> bytes:
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=9).SerializeToString()


def training_node(op_type: str, inputs: list, outputs: list, **attributes: object) -> object:
    return helper.make_node(op_type, inputs, outputs, domain="com.microsoft", **attributes)


def draw(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(FLOAT) for shape in SHAPES]


def open_with(content: bytes, threads: int) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    return tenon.InferenceSession(content, options)


# --- Operators ---


def adamw(
    state: list[np.ndarray], rate: float, step: int, mode: int, decay: float, corrects: bool = True
) -> list[np.ndarray]:
    """Weight, gradient, and both moments become weight and moments after a step, in float64."""
    alpha, beta, epsilon, rate, decay = (float(FLOAT(x)) for x in (0.9, 0.999, 1e-8, rate, decay))
    w, g, m, v = (np.asarray(x, np.float64) for x in state)
    first = 1 - alpha**step if corrects else 1.0
    second = 1 - beta**step if corrects else 1.0
    m = alpha * m + (1 - alpha) * g
    v = beta * v + (1 - beta) * g * g
    if mode == 0:
        w = w * (1 - rate * decay)
        w = w - rate / first * m / (np.sqrt(v) / np.sqrt(second) + epsilon)
    else:
        w = w - rate * np.sqrt(second) / first * m / (np.sqrt(v) + epsilon)
        w = w * (1 - rate * decay)
    return [w, m, v]


def adamw_model(**attributes: object) -> bytes:
    states = ["w", "g", "m", "v"]
    node = training_node(
        "AdamWOptimizer",
        ["rate", "step", *states, "signal"],
        ["was_done", "w2", "m2", "v2"],
        **attributes,
    )
    inputs = [
        *tensors("rate", shape=[]),
        *tensors("step", type_=TensorProto.INT64, shape=[1]),
        *sequences(*states),
        *tensors("signal", type_=TensorProto.BOOL, shape=[1]),
    ]
    outputs = tensors("was_done", type_=TensorProto.BOOL, shape=[1]) + sequences("w2", "m2", "v2")
    return model([node], inputs, outputs)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("corrects", [True, False])
def test_adamw(mode: int, corrects: bool) -> None:
    content = adamw_model(adam_mode=mode, weight_decay=0.1, correct_bias=int(corrects))
    w, g, m, v = draw(0), draw(1), draw(2), [x * x for x in draw(3)]
    feed = {"w": w, "g": g, "m": m, "v": v, "rate": np.array(0.01, FLOAT)}
    feed |= {"step": np.array([3]), "signal": np.array([True])}
    expected = [
        adamw(list(state), 0.01, 3, mode, 0.1, corrects) for state in zip(w, g, m, v, strict=True)
    ]
    results = []
    for threads in (1, 2, 3):
        copies = {name: [x.copy() for x in feed[name]] for name in "wgmv"}
        was_done, *states = open_with(content, threads).run(None, feed | copies)
        assert was_done.tolist() == [True]
        results.append([x.tobytes() for state in states for x in state])
        for i, name in enumerate("wmv"):
            for k, tensor in enumerate(states[i]):
                np.testing.assert_allclose(tensor, expected[k][i], 3e-6, 1e-7, err_msg=name)
    assert results[0] == results[1] == results[2]


def test_adamw_without_a_signal_to_update() -> None:
    w, g = draw(0), draw(1)
    zeros = [np.zeros_like(x) for x in w]
    feed = {"w": w, "g": g, "m": zeros, "v": zeros, "rate": np.array(0.01, FLOAT)}
    feed |= {"step": np.array([1]), "signal": np.array([False])}
    was_done, weights, *_ = open_with(adamw_model(), 1).run(None, feed)
    assert was_done.tolist() == [False]
    for before, after in zip(w, weights, strict=True):
        np.testing.assert_array_equal(after, before)


def test_adamw_of_lists_that_do_not_fit() -> None:
    w = draw(0)
    feed = {"w": w, "g": w, "m": w, "v": w, "rate": np.array(0.01, FLOAT)}
    feed |= {"step": np.array([1]), "signal": np.array([True])}
    session = open_with(adamw_model(), 1)
    with pytest.raises(
        Exception, match="input 4 'm': expected 4 tensors, as many as input 2 'w' has, got 3"
    ):
        session.run(None, feed | {"m": w[:3]})
    with pytest.raises(Exception, match=r"tensor 1: expected tensor\(float\) \[3\], got"):
        session.run(None, feed | {"g": [w[0], w[2], w[2], w[3]]})
    with pytest.raises(Exception, match="adam_mode: expected 0 or 1, got 2"):
        open_with(adamw_model(adam_mode=2), 1)


def test_sgd() -> None:
    node = training_node("SGDOptimizerV2", ["rate", "w", "g"], ["was_done", "w2"])
    outputs = tensors("was_done", type_=TensorProto.BOOL, shape=[]) + sequences("w2")
    content = model([node], tensors("rate", shape=[]) + sequences("w", "g"), outputs)
    w, g = draw(0), draw(1)
    feed = {"rate": np.array(0.5, FLOAT), "w": [x.copy() for x in w], "g": g}
    was_done, weights = open_with(content, 2).run(None, feed)
    assert was_done
    for a, b, c in zip(weights, w, g, strict=True):
        np.testing.assert_array_equal(a, b - FLOAT(0.5) * c)


@pytest.mark.parametrize("largest", [0.01, 1.0, 1e9])
def test_clipping_of_gradients(largest: float) -> None:
    node = training_node("InplaceClipGradNorm", ["g"], ["clipped"], max_norm=largest)
    content = model([node], sequences("g"), sequences("clipped"))
    g = draw(1)
    norm = np.sqrt(sum(float((x.astype(np.float64) ** 2).sum()) for x in g))
    factor = min(1.0, largest / (norm + 1e-6))
    bits = []
    for threads in (1, 2, 3):
        (clipped,) = open_with(content, threads).run(None, {"g": [x.copy() for x in g]})
        bits.append([x.tobytes() for x in clipped])
        for a, b in zip(clipped, g, strict=True):
            np.testing.assert_allclose(a, b * factor, 1e-6)
    assert bits[0] == bits[1] == bits[2]


def test_accumulation_in_place() -> None:
    node = training_node("InPlaceAccumulatorV2", ["sum", "x", "overwrites"], ["done", "out"])
    inputs = tensors("sum", "x", shape=["n"]) + tensors("overwrites", type_=TensorProto.BOOL)
    outputs = tensors("done", type_=TensorProto.BOOL) + tensors("out", shape=["n"])
    session = open_with(model([node], inputs, outputs), 2)
    x, total = np.arange(50000, dtype=FLOAT), np.ones(50000, FLOAT)
    done, out = session.run(None, {"sum": total, "x": x, "overwrites": np.array([False])})
    assert done.tolist() == [True]
    np.testing.assert_array_equal(total, x + 1)  # the caller's own array
    np.testing.assert_array_equal(out, x + 1)
    session.run(["done"], {"sum": total, "x": x, "overwrites": np.array([True])})
    np.testing.assert_array_equal(total, x)
    with pytest.raises(Exception, match=r"input 1 'x': expected shape \[3\], that of the buffer"):
        session.run(None, {"sum": total[:3], "x": x, "overwrites": np.array([True])})


# --- Models: a layer with a bias, squared error ---

SIZES = {"w": (5, 3), "b": (3,)}


def gradients_of(name: str) -> tuple[str, str]:
    return f"{name}_grad.accumulation.buffer", f"{name}_grad.accumulation.out"


def forward(loss: str) -> list:
    return [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("Add", ["xw", "b"], ["y"]),
        helper.make_node("Sub", ["y", "target"], ["error"]),
        helper.make_node("ReduceSumSquare", ["error"], [loss], keepdims=0),
    ]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with training.onnx, eval.onnx, adamw.onnx and checkpoint."""
    folder = tmp_path_factory.mktemp("artifacts")
    data = tensors("x", shape=["n", 5]) + tensors("target", shape=["n", 3])
    parameters = [value for name, shape in SIZES.items() for value in tensors(name, shape=shape)]
    backward = [
        helper.make_node("Add", ["error", "error"], ["dy"]),
        helper.make_node("Transpose", ["x"], ["xt"]),
        helper.make_node("MatMul", ["xt", "dy"], ["w_grad"]),
        helper.make_node("ReduceSum", ["dy", "axes"], ["b_grad"], keepdims=0),
        helper.make_node("Constant", [], ["axes"], value_ints=[0]),
    ]
    inputs, outputs = data + parameters, tensors("loss", shape=[])
    for name, shape in SIZES.items():
        buffer, out = gradients_of(name)
        operands = [buffer, f"{name}_grad", "lazy_reset_grad"]
        backward.append(training_node("InPlaceAccumulatorV2", operands, [out]))
        inputs = inputs + tensors(buffer, shape=shape)
        outputs = outputs + tensors(out, type_=TensorProto.BOOL, shape=[1])
    inputs = inputs + tensors("lazy_reset_grad", type_=TensorProto.BOOL, shape=[1])
    backward.sort(key=lambda node: node.op_type != "Constant")
    (folder / "training.onnx").write_bytes(model(forward("loss") + backward, inputs, outputs))
    evaluation = model(forward("loss"), data + parameters, tensors("loss", shape=[]))
    (folder / "eval.onnx").write_bytes(evaluation)
    names = ["params", "gradients", "first_order_moments", "second_order_moments"]
    node = training_node(
        "AdamWOptimizer", ["learning_rate", "step", *names], ["was_done"], weight_decay=0.01
    )
    scalars = tensors("learning_rate", shape=[1]) + tensors(
        "step", type_=TensorProto.INT64, shape=[1]
    )
    done = tensors("was_done", type_=TensorProto.BOOL, shape=[1])
    (folder / "adamw.onnx").write_bytes(model([node], scalars + sequences(*names), done))
    rng = np.random.default_rng(5)
    values = {name: rng.standard_normal(shape).astype(FLOAT) for name, shape in SIZES.items()}
    state = CheckpointState.from_parameters(values)
    CheckpointState.save_checkpoint(state, folder / "checkpoint")
    return folder


def open_all(folder: pathlib.Path, name: str = "checkpoint") -> tuple:
    state = CheckpointState.load_checkpoint(folder / name)
    module = Module(folder / "training.onnx", state, folder / "eval.onnx")
    return state, module, Optimizer(folder / "adamw.onnx", module)


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(7)
    draws = [(rng.standard_normal((8, 5)), rng.standard_normal((8, 3))) for _ in range(count)]
    return [(x.astype(FLOAT), target.astype(FLOAT)) for x, target in draws]


def values_of(state: CheckpointState) -> dict[str, np.ndarray]:
    return {name: parameter.data for name, parameter in state.parameters}


class Reference:
    """The same training in float64."""

    def __init__(self, values: dict[str, np.ndarray]) -> None:
        self.values = {name: value.astype(np.float64) for name, value in values.items()}
        self.moments = {name: (np.zeros(v.shape), np.zeros(v.shape)) for name, v in values.items()}
        self.gradients = {name: np.zeros(v.shape) for name, v in values.items()}
        self.steps = 0

    def train(self, x: np.ndarray, target: np.ndarray, resets: bool) -> float:
        error = x @ self.values["w"] + self.values["b"] - target
        new = {"w": x.T @ (2 * error), "b": (2 * error).sum(axis=0)}
        for name, gradient in new.items():
            self.gradients[name] = gradient + (0 if resets else self.gradients[name])
        return float((error**2).sum())

    def step(self, rate: float) -> None:
        self.steps += 1
        for name, value in self.values.items():
            state = [value, self.gradients[name], *self.moments[name]]
            self.values[name], m, v = adamw(state, rate, self.steps, 0, 0.01)
            self.moments[name] = (m, v)


def test_steps_are_those_of_the_formulas(artifacts: pathlib.Path) -> None:
    state, module, optimizer = open_all(artifacts)
    reference = Reference(values_of(state))
    optimizer.set_learning_rate(0.05)
    assert optimizer.get_learning_rate() == FLOAT(0.05)
    for i, (x, target) in enumerate(batches(12)):
        module.train()
        resets = i % 2 == 0  # two batches add up
        if resets:
            module.lazy_reset_grad()
        loss = module(x, target)
        np.testing.assert_allclose(loss, reference.train(x, target, resets), 1e-5)
        for name, gradient in reference.gradients.items():
            np.testing.assert_allclose(state.parameters[name].grad, gradient, 1e-5, 1e-5)
        if not resets:
            optimizer.step()
            reference.step(0.05)
    for name, value in reference.values.items():
        np.testing.assert_allclose(state.parameters[name].data, value, 1e-5, 1e-6)
    module.eval()
    error = x @ reference.values["w"] + reference.values["b"] - target
    np.testing.assert_allclose(module(x, target), (error**2).sum(), 1e-5)


def test_a_checkpoint_continues_with_the_same_bits(
    artifacts: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    def train(module: Module, optimizer: Optimizer, data: list) -> None:
        for x, target in data:
            module.lazy_reset_grad()
            module(x, target)
            optimizer.step()

    data = batches(10)
    whole, module, optimizer = open_all(artifacts)
    train(module, optimizer, data)
    first, module, optimizer = open_all(artifacts)
    train(module, optimizer, data[:5])
    first.properties["epoch"] = 5
    first.properties["rate"] = 0.5
    first.properties["name"] = "half"
    CheckpointState.save_checkpoint(first, tmp_path / "half", include_optimizer_state=True)
    second = CheckpointState.load_checkpoint(tmp_path / "half")
    assert list(second.properties) == [("epoch", 5), ("name", "half"), ("rate", 0.5)]
    assert second.properties["epoch"] == 5
    assert "none" not in second.properties
    module = Module(artifacts / "training.onnx", second)
    optimizer = Optimizer(artifacts / "adamw.onnx", module)
    train(module, optimizer, data[5:])
    for name, value in values_of(whole).items():
        np.testing.assert_array_equal(second.parameters[name].data, value)


def test_values_may_be_ort_values(artifacts: pathlib.Path) -> None:
    _, module, _ = open_all(artifacts)
    x, target = batches(1)[0]
    loss = module(*(tenon.OrtValue.ortvalue_from_numpy(v) for v in (x, target)))
    assert isinstance(loss, tenon.OrtValue)
    np.testing.assert_array_equal(loss.numpy(), module(x, target))


def test_a_schedule_sets_the_learning_rate(artifacts: pathlib.Path) -> None:
    _, module, optimizer = open_all(artifacts)
    assert optimizer.get_learning_rate() == FLOAT(0.001)
    scheduler = LinearLRScheduler(optimizer, 2, 6, 1.0)
    rates = []
    for x, target in batches(7):
        module(x, target)
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.get_learning_rate())
    assert rates == [0.5, 1, 0.75, 0.5, 0.25, 0, 0]


def test_parameters_are_read_and_written(artifacts: pathlib.Path) -> None:
    state, module, _ = open_all(artifacts)
    assert [name for name, _ in state.parameters] == ["b", "w"]
    assert len(state.parameters) == 2
    assert state.parameters["w"].requires_grad
    assert module.get_parameters_size() == 18
    buffer = module.get_contiguous_parameters()
    expected = np.concatenate([state.parameters[name].data.ravel() for name in SIZES])
    np.testing.assert_array_equal(buffer.numpy(), expected)
    state.parameters["b"] = np.array([1, 2, 3], FLOAT)
    state.parameters["w"].data = np.zeros((3, 5), FLOAT).T  # of any strides
    x, target = batches(1)[0]
    np.testing.assert_allclose(module(x, target), ((np.array([1, 2, 3]) - target) ** 2).sum(), 1e-5)
    module.copy_buffer_to_parameters(buffer)
    np.testing.assert_array_equal(module.get_contiguous_parameters().numpy(), expected)
    with pytest.raises(KeyError, match="none"):
        state.parameters["none"]
    with pytest.raises(Exception, match=r"parameter 'b': a float tensor of shape \[4\] cannot"):
        state.parameters["b"] = np.zeros(4, FLOAT)


def test_parameters_that_are_not_trained_stay(
    artifacts: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    values = values_of(CheckpointState.load_checkpoint(artifacts / "checkpoint"))
    frozen = CheckpointState.from_parameters({"w": values["w"]}, {"b": values["b"]})
    CheckpointState.save_checkpoint(frozen, tmp_path / "frozen")
    state = CheckpointState.load_checkpoint(tmp_path / "frozen")
    assert [p.requires_grad for _, p in state.parameters] == [False, True]
    module = Module(artifacts / "training.onnx", state)
    optimizer = Optimizer(artifacts / "adamw.onnx", module)
    assert module.get_parameters_size(trainable_only=True) == 15
    assert module.get_parameters_size(trainable_only=False) == 18
    module(*batches(1)[0])
    optimizer.step()
    np.testing.assert_array_equal(state.parameters["b"].data, values["b"])
    assert (state.parameters["w"].data != values["w"]).all()


def test_a_model_for_inference_is_exported(artifacts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    state, module, _ = open_all(artifacts)
    module.export_model_for_inferencing(tmp_path / "inference.onnx", ["y"])
    session = tenon.InferenceSession(tmp_path / "inference.onnx")
    assert [value.name for value in session.get_inputs()] == ["x"]
    x, _ = batches(1)[0]
    expected = x @ state.parameters["w"].data + state.parameters["b"].data
    np.testing.assert_allclose(session.run(["y"], {"x": x})[0], expected, 1e-5, 1e-6)


def test_errors_say_what_is_missing(artifacts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    state = CheckpointState.load_checkpoint(artifacts / "checkpoint")
    module = Module(artifacts / "training.onnx", state)
    with pytest.raises(RuntimeError, match="without an evaluation model"):
        module.eval()
    with pytest.raises(Exception, match="expected 2 inputs and 1 outputs, got 1 and 1"):
        module(np.zeros((8, 5), FLOAT))
    with pytest.raises(ValueError, match="CPU alone"):
        Module(artifacts / "training.onnx", state, device="cuda:0")
    with pytest.raises(Exception, match="no input 'lazy_reset_grad'"):
        Module(artifacts / "eval.onnx", state)
    with pytest.raises(Exception, match="none"):
        CheckpointState.load_checkpoint(tmp_path / "none")
    with pytest.raises(TypeError, match="a property is an int, a float or a str"):
        state.properties["list"] = []  # type: ignore[assignment]
    with pytest.raises(Exception, match="no schedule"):
        Optimizer(artifacts / "adamw.onnx", module)._module._session.schedule_step()


def test_programs_of_onnxruntime_find_it(artifacts: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, numpy as np\n"
        "from onnxruntime.training.api import CheckpointState, Module, Optimizer\n"
        "folder = sys.argv[1]\n"
        "state = CheckpointState.load_checkpoint(folder + '/checkpoint')\n"
        "module = Module(folder + '/training.onnx', state)\n"
        "Optimizer(folder + '/adamw.onnx', module)\n"
        "print(module(np.zeros((1, 5), np.float32), np.zeros((1, 3), np.float32)) >= 0)\n"
    )
    command = [sys.executable, "-m", "tenon.as_onnxruntime", str(script), str(artifacts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_inputs_of_optimizer_models_may_have_any_order(
    artifacts: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    turned = onnx.load(artifacts / "adamw.onnx")
    inputs = list(turned.graph.input)
    del turned.graph.input[:]
    turned.graph.input.extend(inputs[4:] + inputs[:4])  # the moments come first
    onnx.save(turned, tmp_path / "adamw.onnx")
    found = []
    for folder in (artifacts, tmp_path):
        state = CheckpointState.load_checkpoint(artifacts / "checkpoint")
        module = Module(artifacts / "training.onnx", state)
        optimizer = Optimizer(folder / "adamw.onnx", module)
        for x, target in batches(3):
            module(x, target)
            optimizer.step()
        found.append(values_of(state))
    for name in SIZES:
        np.testing.assert_array_equal(found[0][name], found[1][name])
