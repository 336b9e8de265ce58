"""tenon.training.artifacts (TR-2, section 3.1 of training.md): a small network is trained from
generated artifacts, beside PyTorch and formulas in float64."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tenon.training import artifacts, onnxblock
from tenon.training.api import CheckpointState, LinearLRScheduler, Module, Optimizer
from tenon.training.artifacts import LossType, OptimType, generate_artifacts

FLOAT = np.float32
SHAPES = {"w1": (5, 6), "b1": (6,), "w2": (3, 6), "b2": (3,)}
BATCH = 8


def draw_parameters() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.standard_normal(shape).astype(FLOAT) for name, shape in SHAPES.items()}


def network(opset: int = 17) -> onnx.ModelProto:
    """scores = relu(x w1 + b1) w2^T + b2"""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w2", "b2"], ["scores"], transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3])
    constants = [numpy_helper.from_array(v, name) for name, v in draw_parameters().items()]
    graph = helper.make_graph(nodes, "network", [x], [scores], constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def draw_batch(loss: LossType, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((BATCH, 5)).astype(FLOAT)
    if loss is LossType.CrossEntropyLoss:
        return x, rng.integers(0, 3, BATCH)
    if loss is LossType.BCEWithLogitsLoss:
        return x, rng.integers(0, 2, (BATCH, 3)).astype(FLOAT)
    return x, rng.standard_normal((BATCH, 3)).astype(FLOAT)


def loss_of(
    loss: LossType, values: dict[str, np.ndarray], x: np.ndarray, target: np.ndarray
) -> float:
    """In float64."""
    w1, b1, w2, b2 = (values[name].astype(np.float64) for name in SHAPES)
    scores = np.maximum(x @ w1 + b1, 0) @ w2.T + b2
    if loss is LossType.MSELoss:
        return float(((scores - target) ** 2).mean())
    if loss is LossType.L1Loss:
        return float(abs(scores - target).mean())
    if loss is LossType.BCEWithLogitsLoss:
        p = 1 / (1 + np.exp(-scores))
        return float(-(target * np.log(p) + (1 - target) * np.log(1 - p)).mean())
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return float(-logs[np.arange(BATCH), target].mean())


def open_all(folder: pathlib.Path, kind: str = "onnx") -> tuple:
    state = CheckpointState.load_checkpoint(folder / "checkpoint")
    module = Module(folder / f"training_model.{kind}", state, folder / f"eval_model.{kind}")
    return state, module, Optimizer(folder / f"optimizer_model.{kind}", module)


def names_of(values: object) -> list[str]:
    return [value.name for value in values]  # type: ignore[attr-defined]


# --- Training ---


@pytest.mark.parametrize("opset", [14, 17, 21])
@pytest.mark.parametrize("loss", list(LossType))
def test_gradients_are_those_of_differences(
    loss: LossType, opset: int, tmp_path: pathlib.Path
) -> None:
    generate_artifacts(network(opset), list(SHAPES), loss=loss, artifact_directory=tmp_path)
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state, tmp_path / "eval_model.onnx")
    x, target = draw_batch(loss)
    values = draw_parameters()
    np.testing.assert_allclose(module(x, target), loss_of(loss, values, x, target), 1e-5)
    module.eval()
    np.testing.assert_allclose(module(x, target), loss_of(loss, values, x, target), 1e-5)
    step = 1e-6
    for name, value in values.items():
        gradient = state.parameters[name].grad
        for index in np.ndindex(value.shape):
            sides = []
            for sign in (1, -1):
                moved = {key: v.astype(np.float64) for key, v in values.items()}
                moved[name][index] += sign * step
                sides.append(loss_of(loss, moved, x, target))
            expected = (sides[0] - sides[1]) / (2 * step)
            np.testing.assert_allclose(gradient[index], expected, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["onnx", "ort"])
@pytest.mark.parametrize("optimizer", list(OptimType))
@pytest.mark.parametrize("loss", list(LossType))
def test_training_is_that_of_torch(
    loss: LossType, optimizer: OptimType, kind: str, tmp_path: pathlib.Path
) -> None:
    torch = pytest.importorskip("torch")
    generate_artifacts(
        network(),
        requires_grad=list(SHAPES),
        loss=loss,
        optimizer=optimizer,
        artifact_directory=tmp_path,
        ort_format=kind == "ort",
    )
    state, module, trainer = open_all(tmp_path, kind)
    trainer.set_learning_rate(0.02)
    tensors = {name: torch.tensor(v, requires_grad=True) for name, v in draw_parameters().items()}
    w1, b1, w2, b2 = tensors.values()
    if optimizer is OptimType.AdamW:
        reference = torch.optim.AdamW(tensors.values(), lr=0.02, weight_decay=0)
    else:
        reference = torch.optim.SGD(tensors.values(), lr=0.02)
    criterion = getattr(torch.nn, loss.name)()
    for seed in range(10):
        x, target = draw_batch(loss, seed)
        module.train()
        module.lazy_reset_grad()
        ours = module(x, target)
        trainer.step()
        scores = torch.relu(torch.tensor(x) @ w1 + b1) @ w2.T + b2
        theirs = criterion(scores, torch.tensor(target))
        reference.zero_grad()
        theirs.backward()
        # The artifacts' AdamW adds its epsilon before the bias is corrected.
        for group in reference.param_groups:
            group["eps"] = 1e-6 / np.sqrt(1 - 0.999 ** (seed + 1))
        reference.step()
        np.testing.assert_allclose(ours, theirs.item(), 1e-5)
    for name, tensor in tensors.items():
        np.testing.assert_allclose(
            state.parameters[name].data, tensor.detach().numpy(), 1e-4, 1e-5, err_msg=name
        )


def test_frozen_parameters_stay(tmp_path: pathlib.Path) -> None:
    generate_artifacts(
        network(),
        requires_grad=["w2", "b2"],
        frozen_params=["w1", "gone"],  # b1 is a constant of the models
        loss=LossType.MSELoss,
        optimizer=OptimType.SGD,
        artifact_directory=tmp_path,
    )
    state, module, optimizer = open_all(tmp_path)
    flags = {name: parameter.requires_grad for name, parameter in state.parameters}
    assert flags == {"b2": True, "w1": False, "w2": True}
    optimizer.set_learning_rate(0.1)
    module(*draw_batch(LossType.MSELoss))
    optimizer.step()
    before = draw_parameters()
    np.testing.assert_array_equal(state.parameters["w1"].data, before["w1"])
    assert not np.array_equal(state.parameters["w2"].data, before["w2"])


def test_a_schedule_holds_from_its_making(tmp_path: pathlib.Path) -> None:
    options = {"loss": LossType.MSELoss, "optimizer": OptimType.SGD}
    generate_artifacts(network(), ["w2"], artifact_directory=tmp_path, **options)  # type: ignore[arg-type]
    _, module, optimizer = open_all(tmp_path)
    scheduler = LinearLRScheduler(optimizer, 1, 3, 0.5)
    rates = [optimizer.get_learning_rate()]
    for _ in range(3):
        module(*draw_batch(LossType.MSELoss))
        optimizer.step()
        scheduler.step()
        rates.append(optimizer.get_learning_rate())
    assert rates == [0, 0.5, 0.25, 0]


# --- The files ---


def test_names_and_order_of_the_models(tmp_path: pathlib.Path) -> None:
    generate_artifacts(
        network(14),
        requires_grad=["b2", "w1"],
        frozen_params=["b1"],
        loss=LossType.CrossEntropyLoss,
        optimizer=OptimType.AdamW,
        artifact_directory=tmp_path / "new" / "folder",
        prefix="net_",
        additional_output_names=["scores", "active"],
        ort_format=True,
    )
    folder = tmp_path / "new" / "folder"
    kinds = [f"net_{name}_model" for name in ("eval", "optimizer", "training")]
    files = [f"{name}.{kind}" for name in kinds for kind in ("onnx", "ort")]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*files, "net_checkpoint"])
    evaluation, optimizer, training = (onnx.load(folder / f"{name}.onnx") for name in kinds)
    inputs = ["x", "labels", "w1", "b1", "b2"]
    buffers = ["w1_grad.accumulation.buffer", "b2_grad.accumulation.buffer", "lazy_reset_grad"]
    assert names_of(training.graph.input) == inputs + buffers
    assert names_of(evaluation.graph.input) == inputs
    loss, *others = names_of(evaluation.graph.output)
    assert others == ["scores", "active"]
    flags = ["w1_grad.accumulation.out", "b2_grad.accumulation.out"]
    assert names_of(training.graph.output) == [loss, *others, *flags]
    assert names_of(evaluation.graph.initializer) == ["w2"]
    assert {node.op_type for node in training.graph.node} >= {"InPlaceAccumulatorV2"}
    moments = ["first_order_moments", "second_order_moments"]
    sequences = ["params", "gradients", *moments]
    assert names_of(optimizer.graph.input) == ["learning_rate", "step", *sequences]
    (node,) = optimizer.graph.node
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    assert attributes["adam_mode"] == 1
    assert attributes["weight_decay"] == 0
    assert attributes["epsilon"] == FLOAT(1e-6)
    for model in (evaluation, optimizer, training):
        opsets = {opset.domain: opset.version for opset in model.opset_import}
        assert opsets[""] == 14
        assert set(opsets) <= {"", "com.microsoft"}
        onnx.checker.check_model(model)


def test_training_models_have_no_dead_nodes(tmp_path: pathlib.Path) -> None:
    generate_artifacts(network(), ["w2"], loss=LossType.MSELoss, artifact_directory=tmp_path)
    graph = onnx.load(tmp_path / "training_model.onnx").graph
    read = {name for node in graph.node for name in node.input} | set(names_of(graph.output))
    for node in graph.node:
        assert read.intersection(node.output), node
    assert set(names_of(graph.initializer)) <= read
    assert "Gradient" not in {node.op_type for node in graph.node}


def test_the_same_files_each_time(tmp_path: pathlib.Path) -> None:
    contents = []
    for name in ("a", "b"):
        generate_artifacts(
            network(),
            list(SHAPES),
            loss=LossType.BCEWithLogitsLoss,
            optimizer=OptimType.SGD,
            artifact_directory=tmp_path / name,
        )
        files = sorted((tmp_path / name).iterdir())
        contents.append({path.name: path.read_bytes() for path in files})
    assert contents[0] == contents[1]


@pytest.mark.parametrize("external", [False, True])
def test_models_of_files(external: bool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "network.onnx"
    onnx.save(network(), path, save_as_external_data=external, size_threshold=0)
    generate_artifacts(str(path), ["w1"], loss=LossType.MSELoss, artifact_directory=bytes(tmp_path))
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    np.testing.assert_array_equal(state.parameters["w1"].data, draw_parameters()["w1"])
    module = Module(tmp_path / "training_model.onnx", state)
    x, target = draw_batch(LossType.MSELoss)
    expected = loss_of(LossType.MSELoss, draw_parameters(), x, target)
    np.testing.assert_allclose(module(x, target), expected, 1e-5)


def test_without_a_loss_the_first_output_is_it(tmp_path: pathlib.Path) -> None:
    model = network()
    model.graph.node.append(helper.make_node("ReduceSum", ["scores"], ["total"], keepdims=0))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("total", TensorProto.FLOAT, []))
    generate_artifacts(model, ["b2"], artifact_directory=tmp_path)
    assert not (tmp_path / "optimizer_model.onnx").exists()
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state)
    module(draw_batch(LossType.MSELoss)[0])
    np.testing.assert_array_equal(state.parameters["b2"].grad, np.full(3, BATCH, FLOAT))


def test_inputs_of_the_loss(tmp_path: pathlib.Path) -> None:
    generate_artifacts(
        network(),
        ["w1"],
        loss=LossType.L1Loss,
        artifact_directory=tmp_path,
        loss_input_names=["active"],
    )
    model = onnx.load(tmp_path / "eval_model.onnx")
    sizes = [d.dim_param or d.dim_value for d in model.graph.input[1].type.tensor_type.shape.dim]
    assert sizes == ["n", 6]


def test_onnxruntime_programs_find_the_modules(tmp_path: pathlib.Path) -> None:
    program = (
        "import tenon.as_onnxruntime; tenon.as_onnxruntime.install()\n"
        "import onnxruntime.training.onnxblock as onnxblock\n"
        "from onnxruntime.training import api, artifacts\n"
        "import tenon.training.artifacts, tenon.training.onnxblock.loss\n"
        "assert artifacts is tenon.training.artifacts\n"
        "assert onnxblock.loss is tenon.training.onnxblock.loss\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def test_the_api_needs_no_onnx(tmp_path: pathlib.Path) -> None:
    program = (
        "import sys; sys.modules['onnx'] = None\n"
        "import tenon.training.api\n"
        "try:\n    import tenon.training.artifacts\n"
        "except ModuleNotFoundError as error:\n    assert 'onnx' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


# --- Errors ---


def without_gradient() -> onnx.ModelProto:
    model = network()
    del model.graph.node[3:]
    model.graph.node.append(helper.make_node("Unique", ["active"], ["scores2"], name="unique"))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("scores2", TensorProto.FLOAT, ["n"]))
    return model


BAD_ARGUMENTS = {
    "both": (
        {"requires_grad": ["w1", "b1"], "frozen_params": ["b1"]},
        RuntimeError,
        "these are in both: 'b1'",
    ),
    "unknown": (
        {"requires_grad": ["w1", "w22"]},
        RuntimeError,
        "trained parameter 'w22': the model has no initializer and no input.*did you mean 'w2'",
    ),
    "loss": ({"loss": "MSELoss"}, RuntimeError, "loss: expected a LossType.*got 'MSELoss'"),
    "optimizer": ({"optimizer": "SGD"}, TypeError, "optimizer: expected an OptimType.*got 'SGD'"),
    "model": ({"model": 3}, RuntimeError, "model: expected an onnx.ModelProto or a path, got int"),
    "text": (
        {"additional_output_names": "scores"},
        RuntimeError,
        "additional_output_names: expected a list of names, got 'scores'",
    ),
    "output": (
        {"additional_output_names": ["actve"]},
        LookupError,
        "output 'actve': the graph has no such value; did you mean 'active'",
    ),
    "not reached": (
        {"requires_grad": ["w1", "w2", "b2"], "loss_input_names": ["active"]},
        RuntimeError,
        "does not depend on the trained parameters 'w2', 'b2'",
    ),
    "nothing to optimize": (
        {"requires_grad": [], "optimizer": OptimType.SGD},
        RuntimeError,
        "expected trained parameters of one element type, got no trained parameters",
    ),
    "library": (
        {"custom_op_library": "absent.so"},
        RuntimeError,
        "the library of custom operators 'absent.so' does not exist",
    ),
    "no gradient": (
        {"model": without_gradient()},
        Exception,
        "Unique-17 .*unique.* has no gradient",
    ),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments_are_named_and_nothing_is_written(case: str, tmp_path: pathlib.Path) -> None:
    changes, error, text = BAD_ARGUMENTS[case]
    arguments = {"model": network(), "requires_grad": ["w1"], "loss": LossType.MSELoss}
    with pytest.raises(error, match=text):
        generate_artifacts(**(arguments | changes), artifact_directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_nominal_checkpoints_have_names_and_get_values_later(tmp_path: pathlib.Path) -> None:
    generate_artifacts(
        network(),
        requires_grad=["w1", "b1", "b2"],
        frozen_params=["w2"],
        loss=LossType.MSELoss,
        optimizer=OptimType.AdamW,
        artifact_directory=tmp_path,
        prefix="net_",
        nominal_checkpoint=True,
    )
    models = [tmp_path / f"net_{name}_model.onnx" for name in ("training", "eval", "optimizer")]
    full = CheckpointState.load_checkpoint(tmp_path / "net_checkpoint")
    source = Module(models[0], full, models[1])
    buffer = source.get_contiguous_parameters()

    nominal = CheckpointState.load_checkpoint(tmp_path / "net_nominal_checkpoint")
    assert {name: p.requires_grad for name, p in nominal.parameters} == {
        name: name != "w2" for name in SHAPES
    }
    with pytest.raises(Exception, match="'w1' has no value yet: the checkpoint is nominal"):
        _ = nominal.parameters["w1"].data
    module = Module(models[0], nominal, models[1])
    trainer = Optimizer(models[2], module)
    x, target = draw_batch(LossType.MSELoss)
    with pytest.raises(Exception, match="parameters of a nominal checkpoint have no values yet"):
        module(x, target)
    with pytest.raises(Exception, match="needs values for all parameters"):
        module.copy_buffer_to_parameters(buffer)
    module.copy_buffer_to_parameters(buffer, trainable_only=False)
    for name, value in draw_parameters().items():
        np.testing.assert_array_equal(nominal.parameters[name].data, value)

    # From here on it is as any other.
    assert module(x, target) == source(x, target)
    trainer.step()
    CheckpointState.save_checkpoint(nominal, tmp_path / "trained", include_optimizer_state=True)
    trained = CheckpointState.load_checkpoint(tmp_path / "trained")
    np.testing.assert_array_equal(trained.parameters["w2"].data, draw_parameters()["w2"])
    assert (trained.parameters["w1"].data != draw_parameters()["w1"]).all()


def test_a_nominal_checkpoint_can_be_made_of_names(tmp_path: pathlib.Path) -> None:
    state = CheckpointState.nominal(["b", "a"], ["c"])
    CheckpointState.save_checkpoint(state, tmp_path / "nominal")
    read = CheckpointState.load_checkpoint(tmp_path / "nominal")
    assert [(name, p.requires_grad) for name, p in read.parameters] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]


def test_integers_cannot_be_trained(tmp_path: pathlib.Path) -> None:
    model = network()
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, 3]), "shape"))
    model.graph.node.append(helper.make_node("Reshape", ["scores", "shape"], ["again"]))
    with pytest.raises(RuntimeError, match="'shape': expected a floating-point type, got INT64"):
        generate_artifacts(model, ["shape"], artifact_directory=tmp_path)


def test_the_surface_is_that_of_onnxruntime() -> None:
    assert [(one.name, one.value) for one in LossType] == [
        ("MSELoss", 1),
        ("CrossEntropyLoss", 2),
        ("BCEWithLogitsLoss", 3),
        ("L1Loss", 4),
    ]
    assert [(one.name, one.value) for one in OptimType] == [("AdamW", 1), ("SGD", 2)]
    assert set(artifacts.__all__) == {"LossType", "OptimType", "generate_artifacts"}
    assert issubclass(onnxblock.ForwardBlock, onnxblock.Block)


@pytest.mark.parametrize("op_type", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_are_trained(op_type: str, tmp_path: pathlib.Path) -> None:
    """They learn the sum of what they have read."""
    hidden = 8
    rows = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type] * hidden
    rng = np.random.default_rng(0)
    shapes = {"w": (1, rows, 3), "r": (1, rows, hidden), "b": (1, 2 * rows), "v": (hidden, 1)}
    weights = {
        name: (0.3 * rng.standard_normal(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node(op_type, ["x", "w", "r", "b"], ["", "h"], hidden_size=hidden),
        helper.make_node("Squeeze", ["h", "axis"], ["last"]),
        helper.make_node("MatMul", ["last", "v"], ["y"]),
    ]
    constants = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    constants.append(numpy_helper.from_array(np.array([0]), "axis"))
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in {"x": ["steps", "n", 3], "y": ["n", 1]}.items()
    )
    graph = helper.make_graph(nodes, "layer", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    generate_artifacts(
        model,
        requires_grad=list(weights),
        loss=LossType.MSELoss,
        optimizer=OptimType.AdamW,
        artifact_directory=tmp_path,
    )
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state)
    optimizer = Optimizer(tmp_path / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(0.01)
    losses = []
    for _ in range(200):
        read = rng.uniform(-1, 1, (6, 32, 3)).astype(np.float32)
        module.train()
        losses.append(float(module(read, read[:, :, 0].sum(0)[:, None])))
        optimizer.step()
        module.lazy_reset_grad()
    assert np.mean(losses[-20:]) < losses[0] / 20
