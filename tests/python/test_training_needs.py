"""What users of on-device training ask for: low-rank adapters over weights of few bits (TR-3),
training without the packages torch and onnx (TR-4), and federated learning (TR-5)."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from tenon.training.api import CheckpointState, Module, Optimizer
from tenon.training.artifacts import LossType, OptimType, generate_artifacts
from tenon.training.onnxblock import loss

FLOAT = np.float32
MICROSOFT, TRAINING = "com.microsoft", "ai.onnx.preview.training"


class Packed:
    """Random weights [n, k] of few bits: the inputs of MatMulNBits, and the same in float64."""

    def __init__(self, n: int, k: int, bits: int = 4, block_size: int = 32, zeros: str = "none"):
        rng = np.random.default_rng([n, k, bits])
        blocks = -(-k // block_size)
        levels = rng.integers(0, 1 << bits, (n, blocks * block_size))
        self.scales = rng.uniform(1, 3, (n, blocks)).astype(FLOAT) / FLOAT(2**bits * k**0.5)
        self.inputs: dict[str, np.ndarray] = {"B": self._packed(levels, bits)}
        self.inputs["B"] = self.inputs["B"].reshape(n, blocks, -1)
        self.inputs["scales"] = self.scales
        zero = np.full((n, blocks), 2.0 ** (bits - 1))
        if zeros == "packed":
            zero = rng.integers(0, 1 << bits, (n, blocks)).astype(float)
            padded = np.pad(zero.astype(int), ((0, 0), (0, -blocks % (8 // bits))))
            self.inputs["zero_points"] = self._packed(padded, bits)
        elif zeros == "floats":
            zero = rng.uniform(0, 2**bits, (n, blocks)).astype(FLOAT).astype(float)
            self.inputs["zero_points"] = zero.astype(FLOAT)
        self.groups = np.arange(k, dtype=np.int32) // block_size
        if zeros == "groups":
            self.groups = rng.integers(0, blocks, k).astype(np.int32)
            self.inputs["g_idx"] = self.groups
        self.weights = (levels[:, :k] - zero[:, self.groups]) * self.scales[:, self.groups]
        self.attributes = {"K": k, "N": n, "bits": bits, "block_size": block_size}
        self.attributes["accuracy_level"] = 1

    @staticmethod
    def _packed(levels: np.ndarray, bits: int) -> np.ndarray:
        parts = levels.reshape(len(levels), -1, 8 // bits) << np.arange(0, 8, bits)
        return parts.sum(-1).astype(np.uint8)

    def node(self, name: str, a: str, y: str, bias: str = "") -> onnx.NodeProto:
        """A MatMulNBits whose constants have names that begin with `name`."""
        names = [f"{name}.{i}" if i in self.inputs else "" for i in
                 ("B", "scales", "zero_points", "g_idx")]  # fmt: skip
        return helper.make_node(
            "MatMulNBits", [a, *names, bias], [y], domain=MICROSOFT, **self.attributes
        )

    def constants(self, name: str) -> list[TensorProto]:
        return [numpy_helper.from_array(v, f"{name}.{i}") for i, v in self.inputs.items()]


def floats(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(graph: onnx.GraphProto) -> onnx.ModelProto:
    domains = {"": 21, MICROSOFT: 1, TRAINING: 1}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def gradient(xs: list[str]) -> onnx.NodeProto:
    outputs = [f"d{x}" for x in xs]
    return helper.make_node("Gradient", xs, outputs, domain=TRAINING, xs=xs, y="y")


# --- TR-3 ---


@pytest.mark.parametrize("zeros", ["none", "packed", "floats", "groups"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("rows", "n", "k"), [((3,), 5, 64), ((2, 9), 300, 70), ((0, 4), 7, 32)])
def test_gradient_of_few_bits(rows: tuple, n: int, k: int, bits: int, zeros: str) -> None:
    """TR-3: of what is multiplied by packed weights, and of the bias."""
    packed = Packed(n, k, bits, 32, zeros)
    nodes = [
        packed.node("w", "a", "product", "bias"),
        helper.make_node("Mul", ["product", "slope"], ["y"]),
        gradient(["a", "bias"]),
    ]
    inputs = [floats("a", *rows, k), floats("bias", n), floats("slope", *rows, n)]
    outputs = [floats("y", *rows, n), floats("da", *rows, k), floats("dbias", n)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, packed.constants("w"))
    session = tenon.InferenceSession(model_of(graph).SerializeToString())
    rng = np.random.default_rng(1)
    a, bias, slope = (rng.standard_normal(s).astype(FLOAT) for s in ((*rows, k), (n,), (*rows, n)))
    y, da, dbias = session.run(None, {"a": a, "bias": bias, "slope": slope})
    tolerance = {"rtol": 1e-4, "atol": 1e-4 * np.sqrt(k) * abs(packed.weights).max()}
    np.testing.assert_allclose(y, (a @ packed.weights.T + bias) * slope, **tolerance)
    tolerance["atol"] = 1e-6 * np.sqrt(n) * abs(packed.weights).max()
    np.testing.assert_allclose(da, slope @ packed.weights, **tolerance)
    np.testing.assert_allclose(
        dbias, slope.reshape(-1, n).sum(0, dtype=float), rtol=1e-5, atol=1e-5
    )


def test_scales_have_no_gradient() -> None:
    """TR-3: an error says so."""
    packed = Packed(4, 32)
    nodes = [packed.node("w", "a", "y"), gradient(["a", "w.scales"])]
    inputs = [floats("a", 2, 32), floats("w.scales", 4, 1)]
    outputs = [floats("da", 2, 32), floats("dw.scales", 4, 1)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, packed.constants("w")[:1])
    with pytest.raises(Exception, match=r"MatMulNBits.* has no gradient yet for its input 2"):
        tenon.InferenceSession(model_of(graph).SerializeToString())


LAYERS, WIDTH, RANK, TOKENS = 6, 64, 4, 50
CLASSES = 4100  # so many that their scores are divided


def adapted(
    width: int = WIDTH, layers: int = LAYERS, inner: int = 2, tokens: int = TOKENS
) -> tuple[onnx.ModelProto, list[Packed]]:
    """Layers x + W2 silu(W1 norm(x) + B A norm(x)) over weights of 4 bits, and then scores. As in
    quantized language models, most norms are by the root of the mean square. What is between W1 and
    W2 is `inner` times as wide as x."""
    rng = np.random.default_rng(5)
    nodes, constants, all_packed = [], [], []

    def constant(name: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value.astype(FLOAT), name))
        return name

    def op(op_type: str, *inputs: str, **attributes: object) -> str:
        output = f"{op_type}{len(nodes)}"
        nodes.append(helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def packed(name: str, n: int, k: int, a: str) -> str:
        all_packed.append(Packed(n, k, zeros="packed"))
        constants.extend(all_packed[-1].constants(name))
        nodes.append(all_packed[-1].node(name, a, f"{name}.y"))
        return f"{name}.y"

    half = numpy_helper.from_array(np.array([0.5], FLOAT))
    shift = op("ConstantOfShape", op("Shape", "x"), value=half)  # known as soon as shapes are
    x = op("Identity", "x")
    for i in range(layers):
        scale = constant(f"norm{i}", np.ones(width))
        kind = "SimplifiedLayerNormalization" if i else "LayerNormalization"
        normed = op("Add", op(kind, x, scale), shift)
        a = constant(f"lora{i}.a", rng.standard_normal((width, RANK)) / np.sqrt(width))
        b = constant(f"lora{i}.b", rng.standard_normal((RANK, inner * width)) / RANK)
        low = op("MatMul", op("MatMul", normed, a), b)
        up = op("Add", packed(f"up{i}", inner * width, width, normed), low)
        gated = op("Mul", up, op("Sigmoid", up))
        x = op("Add", x, packed(f"down{i}", width, inner * width, gated))
    scores = packed("head", tokens, width, x)
    graph = helper.make_graph(
        nodes, "g", [floats("x", "n", width)], [floats(scores, "n", tokens)], constants
    )
    return model_of(graph), all_packed


def adapters(layers: int = LAYERS) -> list[str]:
    return [f"lora{i}.{side}" for i in range(layers) for side in "ab"]


@pytest.mark.parametrize("recompute", [False, True])
def test_adapters_over_weights_of_4_bits(recompute: bool, tmp_path: pathlib.Path) -> None:
    """TR-3: losses and adapters after some steps are those of PyTorch in float64."""
    torch = pytest.importorskip("torch")
    model, all_packed = adapted()
    generate_artifacts(
        model,
        requires_grad=adapters(),
        loss=LossType.CrossEntropyLoss,
        optimizer=OptimType.SGD,
        artifact_directory=tmp_path,
        recompute=recompute,
    )
    trained = onnx.load(tmp_path / "training_model.onnx")
    kinds = [node.op_type for node in trained.graph.node]
    assert kinds.count("MatMulNBitsGrad") == 2 * LAYERS  # one reads x alone
    assert (kinds.count("MatMulNBits") > 2 * LAYERS + 1) == recompute
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state)
    optimizer = Optimizer(tmp_path / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(0.05)

    values = {t.name: numpy_helper.to_array(t).astype(float) for t in model.graph.initializer}
    leaves = {name: torch.tensor(values[name], requires_grad=True) for name in adapters()}
    weights = [torch.tensor(packed.weights) for packed in all_packed]

    def loss_of(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        for i in range(LAYERS):
            norm = torch.nn.functional.rms_norm if i else torch.nn.functional.layer_norm
            inner = norm(x, (WIDTH,), eps=1e-5) + 0.5
            up = inner @ weights[2 * i].T + inner @ leaves[f"lora{i}.a"] @ leaves[f"lora{i}.b"]
            x = x + torch.nn.functional.silu(up) @ weights[2 * i + 1].T
        return torch.nn.functional.cross_entropy(x @ weights[-1].T, labels)

    rng = np.random.default_rng(2)
    for _ in range(5):
        x, labels = rng.standard_normal((8, WIDTH)).astype(FLOAT), rng.integers(0, TOKENS, 8)
        ours = module(x, labels)
        theirs = loss_of(torch.tensor(x).double(), torch.tensor(labels))
        np.testing.assert_allclose(ours, theirs.item(), 1e-4)
        optimizer.step()
        module.lazy_reset_grad()
        for leaf, slope in zip(
            leaves.values(), torch.autograd.grad(theirs, list(leaves.values())), strict=True
        ):
            leaf.data -= 0.05 * slope
    for name, leaf in leaves.items():
        np.testing.assert_allclose(
            state.parameters[name].data, leaf.detach().numpy(), 1e-3, 1e-4, err_msg=name
        )


STEPS_OF_MODULE = """
import pathlib, sys
import numpy as np
from tenon.training.api import CheckpointState, Module

def peak():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

state = CheckpointState.load_checkpoint(sys.argv[1] + "/checkpoint")
module = Module(sys.argv[1] + "/training_model.onnx", state)
width, rows = int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(0)
x, labels = rng.standard_normal((rows, width)).astype(np.float32), rng.integers(0, 50, rows)
before = peak()
losses = [float(module(x, labels)) for _ in range(2)]
after = peak()
gradients = [parameter.grad.sum() for _, parameter in state.parameters]
print((after - before) / 1024, *losses, *gradients)
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_recomputation_saves_memory(tmp_path: pathlib.Path) -> None:
    """TR-3: of 32 layers whose activations take 4 MB or more each, few are in memory at a time. The
    losses and gradients are the same."""
    width, rows, layers = 128, 1024, 32
    model, _ = adapted(width, layers)
    found = {}
    for recompute in (False, True):
        folder = tmp_path / str(recompute)
        generate_artifacts(
            model,
            requires_grad=adapters(layers),
            loss=LossType.CrossEntropyLoss,
            artifact_directory=folder,
            recompute=recompute,
        )
        arguments = [sys.executable, "-c", STEPS_OF_MODULE, folder, str(width), str(rows)]
        run = subprocess.run(arguments, check=True, capture_output=True, text=True)
        found[recompute] = np.array(run.stdout.split(), float)
    np.testing.assert_allclose(found[True][1:], found[False][1:], rtol=1e-5, atol=1e-6)
    assert found[True][0] < 0.45 * found[False][0], found


def test_wide_values_are_kept_of_one_layer(tmp_path: pathlib.Path) -> None:
    """TR-3: where activations differ in size, those that are kept are the narrow ones between two
    layers. While the scores are compared, nothing wide is kept but the product of the first layer,
    which depends on nothing that is trained."""
    width, layers, inner, rows = 64, 24, 8, 256
    for tokens in (TOKENS, CLASSES):  # the scores of the second are divided
        model, _ = adapted(width, layers, inner, tokens)
        generate_artifacts(
            model,
            requires_grad=adapters(layers),
            loss=LossType.CrossEntropyLoss,
            artifact_directory=tmp_path,
            recompute=True,
        )
        session = tenon.InferenceSession(tmp_path / "training_model.onnx")
        kinds = {"tensor(float)": FLOAT, "tensor(int64)": np.int64, "tensor(bool)": bool}
        feeds = {
            value.name: np.zeros(
                [rows if isinstance(size, str) else size for size in value.shape], kinds[value.type]
            )
            for value in session.get_inputs()
        }
        options = tenon.RunOptions()
        options.add_run_config_entry("tenon.run_report", "1")
        session.run(None, feeds, options)
        peak = options.get_run_report()["memory"][0]["peak_bytes"] / (4 * rows * width)
        assert peak < layers + 7.5 * inner, (tokens, peak)

    graph = onnx.load(tmp_path / "training_model.onnx").graph
    losses = [i for i, n in enumerate(graph.node) if n.op_type == "SoftmaxCrossEntropyLoss"]
    sizes = {value.name: value.type.tensor_type.shape.dim for value in graph.value_info}
    before = {name for node in graph.node[: losses[0]] for name in node.output}
    later = {name for node in graph.node[losses[-1] :] for name in node.input}
    kept = {name for name in before & later if sizes[name][-1].dim_value > width}
    assert kept == {"up0.y"}


def test_random_numbers_are_not_drawn_again(tmp_path: pathlib.Path) -> None:
    """TR-3: the gradients are those of the elements that the loss had dropped."""
    rng = np.random.default_rng(4)
    constants = [numpy_helper.from_array(np.array(0.5, FLOAT), "ratio")]
    constants.append(numpy_helper.from_array(np.array(True), "trains"))
    nodes, x = [], "x"
    for i in range(8):
        weights = rng.standard_normal((6, 6)).astype(FLOAT) / 2
        constants.append(numpy_helper.from_array(weights, f"w{i}"))
        nodes += [
            helper.make_node("MatMul", [x, f"w{i}"], [f"product{i}"]),
            helper.make_node("Dropout", [f"product{i}", "ratio", "trains"], [f"drop{i}"], seed=i),
            helper.make_node("Tanh", [f"drop{i}"], [f"tanh{i}"]),
            helper.make_node("Add", [x, f"tanh{i}"], [f"sum{i}"]),
        ]
        x = f"sum{i}"
    graph = helper.make_graph(nodes, "g", [floats("x", "n", 6)], [floats(x, "n", 6)], constants)
    feeds = [rng.standard_normal((5, 6)).astype(FLOAT) for _ in range(2)]
    found = []
    for recompute in (False, True):
        generate_artifacts(
            model_of(graph),
            requires_grad=[f"w{i}" for i in range(8)],
            loss=LossType.MSELoss,
            artifact_directory=tmp_path,
            recompute=recompute,
        )
        kinds = [n.op_type for n in onnx.load(tmp_path / "training_model.onnx").graph.node]
        assert kinds.count("Dropout") == 8
        assert (kinds.count("Tanh") > 8) == recompute
        state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
        module = Module(tmp_path / "training_model.onnx", state)
        losses = [module(*feeds) for _ in range(2)]
        found.append([*losses, *(parameter.grad for _, parameter in state.parameters)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


def headed(form: str, width: int, classes: int) -> tuple[onnx.ModelProto, np.ndarray]:
    """An adapter x + x a b, and scores of it. Returns the weights of the scores, and their bias."""
    rng = np.random.default_rng(6)
    weights = rng.standard_normal((width, classes)) / width**0.5
    bias = rng.standard_normal(classes) if form in ("bias", "gemm") else np.zeros(classes)
    values = {"a": rng.standard_normal((width, 2)), "b": rng.standard_normal((2, width))}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["low"]),
        helper.make_node("MatMul", ["low", "b"], ["part"]),
        helper.make_node("Add", ["x", "part"], ["hidden"]),
    ]
    constants = []
    if form == "packed":
        packed = Packed(classes, width)
        weights = packed.weights.T
        constants = packed.constants("head")
        nodes.append(packed.node("head", "hidden", "scores"))
    elif form == "gemm":
        values |= {"head": weights.T, "bias": bias}
        nodes.append(helper.make_node("Gemm", ["hidden", "head", "bias"], ["scores"], transB=1))
    else:
        values["head"] = weights
        product = "scores" if form == "matrix" else "product"
        nodes.append(helper.make_node("MatMul", ["hidden", "head"], [product]))
        if form == "bias":
            values["bias"] = bias
            nodes.append(helper.make_node("Add", ["product", "bias"], ["scores"]))
    constants += [numpy_helper.from_array(v.astype(FLOAT), name) for name, v in values.items()]
    axes = ["n"] if form == "gemm" else ["batch", "n"]
    x, y = floats("x", *axes, width), floats("scores", *axes, classes)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    return model_of(graph), np.vstack([weights, bias])


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(
    ("form", "settings"),
    [
        ("matrix", {}),
        ("bias", {"ignore_index": -100}),
        ("gemm", {"weight": np.linspace(0.5, 2, CLASSES), "ignore_index": 5}),
        ("packed", {"weight": np.linspace(0.5, 2, CLASSES)}),
        ("matrix", {"reduction": "sum", "ignore_index": 5}),
    ],
)
def test_scores_of_many_classes(
    form: str, settings: dict[str, Any], recompute: bool, tmp_path: pathlib.Path
) -> None:
    """TR-3: parts of the rows are compared with their labels in turn. Losses and gradients are
    those of all rows, in float64."""
    width = 6
    model, head = headed(form, width, CLASSES)
    generate_artifacts(
        model,
        requires_grad=["a", "b"],
        loss=loss.CrossEntropyLoss(**settings),
        artifact_directory=tmp_path,
        recompute=recompute,
    )
    graph = onnx.load(tmp_path / "training_model.onnx").graph
    assert [n.op_type for n in graph.node].count("SoftmaxCrossEntropyLoss") == 8
    graph = onnx.load(tmp_path / "eval_model.onnx").graph
    assert [n.op_type for n in graph.node].count("SoftmaxCrossEntropyLoss") == 1
    state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
    module = Module(tmp_path / "training_model.onnx", state, tmp_path / "eval_model.onnx")
    a, b = (state.parameters[name].data.astype(float) for name in "ab")
    rng = np.random.default_rng(7)
    for count in (3, 45, 150, 1):
        shape = (count,) if form == "gemm" else (2, count)
        x = rng.standard_normal((*shape, width)).astype(FLOAT)
        labels = rng.integers(0, CLASSES, shape)
        if "ignore_index" in settings:
            labels.flat[-1:] = settings["ignore_index"]
            labels.flat[0] = 7
        flat, chosen = x.reshape(-1, width).astype(float), labels.ravel()
        factor = np.where(chosen == settings.get("ignore_index"), 0, 1.0)
        chosen = np.where(factor == 0, 0, chosen)
        factor = factor * settings.get("weight", np.ones(CLASSES)).astype(FLOAT)[chosen]
        divisor = 1 if settings.get("reduction") == "sum" else factor.sum()
        scores = (flat + flat @ a @ b) @ head[:-1] + head[-1]
        scores -= scores.max(1, keepdims=True)
        chances = np.exp(scores)
        chances /= chances.sum(1, keepdims=True)
        rows = np.arange(len(flat))
        expected = -(np.log(chances[rows, chosen]) * factor).sum() / divisor
        chances[rows, chosen] -= 1
        slope = (chances * factor[:, None] / divisor) @ head[:-1].T
        module.train()
        np.testing.assert_allclose(module(x, labels), expected, 1e-5)
        for name, wanted in (("a", flat.T @ slope @ b.T), ("b", (flat @ a).T @ slope)):
            found = state.parameters[name].grad
            scale = np.abs(wanted).max()
            np.testing.assert_allclose(found / scale, wanted / scale, 0, 1e-5)
        module.lazy_reset_grad()
        module.eval()
        np.testing.assert_allclose(module(x, labels), expected, 1e-5)


def test_nothing_but_ignored_labels(tmp_path: pathlib.Path) -> None:
    """As where the scores are not divided: the loss is no number, and no gradient comes of it."""
    for classes in (CLASSES, 50):
        model, _ = headed("matrix", 6, classes)
        generate_artifacts(
            model,
            requires_grad=["a", "b"],
            loss=loss.CrossEntropyLoss(ignore_index=1),
            artifact_directory=tmp_path,
        )
        state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
        module = Module(tmp_path / "training_model.onnx", state)
        assert np.isnan(module(np.ones((1, 9, 6), FLOAT), np.ones((1, 9), np.int64)))
        assert not any(parameter.grad.any() for _, parameter in state.parameters)


def test_scores_that_are_read_elsewhere_stay_whole(tmp_path: pathlib.Path) -> None:
    model, _ = headed("matrix", 6, CLASSES)
    for trained, more in (("a", ["scores"]), ("head", [])):
        generate_artifacts(
            model,
            requires_grad=[trained],
            loss=LossType.CrossEntropyLoss,
            artifact_directory=tmp_path,
            additional_output_names=more,
        )
        graph = onnx.load(tmp_path / "training_model.onnx").graph
        assert [n.op_type for n in graph.node].count("SoftmaxCrossEntropyLoss") == 1


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_scores_are_in_memory_in_part(tmp_path: pathlib.Path) -> None:
    """TR-3: of 63 MiB of scores an eighth, and as much again of their gradients."""
    width, rows, classes = 16, 1000, 1 << 14
    model, _ = headed("gemm", width, classes)
    generate_artifacts(
        model,
        requires_grad=["a", "b"],
        loss=LossType.CrossEntropyLoss,
        artifact_directory=tmp_path,
    )
    arguments = [sys.executable, "-c", STEPS_OF_MODULE, tmp_path, str(width), str(rows)]
    run = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert float(run.stdout.split()[0]) < 40, run.stdout


# --- TR-4 ---

WITHOUT_PACKAGES = """
import sys
sys.modules["onnx"] = sys.modules["torch"] = None
import numpy as np
from tenon.training.api import CheckpointState, Module, Optimizer

folder = sys.argv[1]
state = CheckpointState.load_checkpoint(folder + "/checkpoint")
module = Module(folder + "/training_model.onnx", state, folder + "/eval_model.onnx")
optimizer = Optimizer(folder + "/optimizer_model.onnx", module)
optimizer.set_learning_rate(0.1)
rng = np.random.default_rng(0)
target = np.arange(8, dtype=np.float32).reshape(4, 2)
for _ in range(300):
    x = rng.standard_normal((16, 4)).astype(np.float32)
    module(x, x @ target)
    optimizer.step()
    module.lazy_reset_grad()
print(abs(state.parameters["w"].data - target).max())
CheckpointState.save_checkpoint(state, folder + "/checkpoint", include_optimizer_state=True)
module.export_model_for_inferencing(folder + "/model.onnx", ["y"])
"""


def linear(folder: pathlib.Path, optimizer: OptimType = OptimType.SGD) -> None:
    """Artifacts of y = x w."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weights = numpy_helper.from_array(np.zeros((4, 2), FLOAT), "w")
    inputs, outputs = [floats("x", "n", 4)], [floats("y", "n", 2)]
    generate_artifacts(
        model_of(helper.make_graph([node], "layer", inputs, outputs, [weights])),
        requires_grad=["w"],
        loss=LossType.MSELoss,
        optimizer=optimizer,
        artifact_directory=folder,
    )


def test_training_needs_neither_torch_nor_onnx(tmp_path: pathlib.Path) -> None:
    """TR-4: the artifacts alone."""
    linear(tmp_path)
    arguments = [sys.executable, "-c", WITHOUT_PACKAGES, str(tmp_path)]
    run = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert float(run.stdout) < 1e-3
    session = tenon.InferenceSession(tmp_path / "model.onnx")
    (y,) = session.run(None, {"x": np.eye(4, dtype=FLOAT)})
    np.testing.assert_allclose(y, np.arange(8).reshape(4, 2), atol=1e-3)


# --- TR-5 ---


def test_federated_averaging(tmp_path: pathlib.Path) -> None:
    """TR-5: two clients with data of their own learn, and only flat parameters travel."""
    linear(tmp_path)
    target = np.arange(8, dtype=FLOAT).reshape(4, 2)
    rng = np.random.default_rng(0)
    clients = []
    for _ in range(2):
        state = CheckpointState.load_checkpoint(tmp_path / "checkpoint")
        module = Module(tmp_path / "training_model.onnx", state)
        optimizer = Optimizer(tmp_path / "optimizer_model.onnx", module)
        optimizer.set_learning_rate(0.1)
        clients.append((state, module, optimizer))
    shared = np.zeros(8, FLOAT)
    for _ in range(100):
        received = []
        for side, (state, module, optimizer) in enumerate(clients):
            module.copy_buffer_to_parameters(tenon.OrtValue.ortvalue_from_numpy(shared))
            np.testing.assert_array_equal(state.parameters["w"].data.ravel(), shared)
            x = rng.standard_normal((16, 4)).astype(FLOAT)
            x[:, 2 * side : 2 * side + 2] *= 0.1  # each client sees half of the inputs well
            for _ in range(3):
                module(x, x @ target)
                optimizer.step()
                module.lazy_reset_grad()
            received.append(module.get_contiguous_parameters(trainable_only=True).numpy())
        shared = np.mean(received, axis=0)
    np.testing.assert_allclose(shared.reshape(4, 2), target, atol=0.05)
