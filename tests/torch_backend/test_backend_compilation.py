"""torch.compile with the backend: sizes that vary, broken graphs, options, layouts, bad inputs."""

import copy
import os
import pathlib
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

import tenon.torch  # noqa: E402
from comparison import check_function, check_training, train  # noqa: E402
from networks import Block, convolutional, perceptron  # noqa: E402
from tenon.torch import _region  # noqa: E402
from tenon.torch._region import _Computation  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812
from torch.utils.checkpoint import checkpoint  # noqa: E402

WEIGHT = torch.ones(3, 2, 3, 3, requires_grad=True)
ROOT = pathlib.Path(__file__).resolve().parents[2]


def compiled(function, **arguments):
    return torch.compile(function, backend="tenon", **{"dynamic": False, **arguments})


@pytest.fixture
def runs(monkeypatch):
    """The runs of sessions, each with the shapes of its inputs."""
    found = []
    run = _Computation.run

    def counted(self, inputs):
        found.append([tuple(each.shape) for each in inputs if isinstance(each, torch.Tensor)])
        return run(self, inputs)

    monkeypatch.setattr(_Computation, "run", counted)
    return found


class TestSizes:
    """Sizes that vary."""

    def test_each_batch_size_has_a_session(self, runs):
        model = perceptron()
        twin = copy.deepcopy(model)
        function = compiled(twin, dynamic=True)
        for count in (4, 7, 2, 4, 19):
            x = torch.randn(count, 12)
            expected, actual = model(x), function(x)
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)
            for output in (expected, actual):
                output.square().sum().backward()
            for a, e in zip(twin.parameters(), model.parameters(), strict=True):
                torch.testing.assert_close(a.grad, e.grad, rtol=1e-5, atol=1e-5)
        assert len(runs) == 10

    def test_the_sessions_used_last_are_kept(self, monkeypatch):
        made = []
        create = _Computation.__init__

        def counted(self, graph, settings):
            made.append(graph)
            create(self, graph, settings)

        monkeypatch.setattr(_region, "MOST_SESSIONS", 2)
        monkeypatch.setattr(_Computation, "__init__", counted)
        function = compiled(torch.tanh, dynamic=True)
        for count, expected in [(4, 1), (5, 2), (4, 2), (6, 3), (4, 3), (5, 4), (6, 5)]:
            x = torch.randn(count)
            torch.testing.assert_close(function(x), torch.tanh(x))
            assert len(made) == expected

    def test_the_graph_is_traced_once(self):
        traced = []

        def counting(module, inputs):
            traced.append(module)
            return tenon.torch.backend(module, inputs)

        function = torch.compile(perceptron(), backend=counting, dynamic=True)
        for count in (4, 7, 2, 19):
            function(torch.randn(count, 12))
        assert len(traced) == 1

    def test_a_batch_becomes_dynamic_by_itself(self):
        model = convolutional().eval()
        function = compiled(model, dynamic=None)
        for count in (3, 5, 8, 2):
            x = torch.randn(count, 3, 12, 12)
            torch.testing.assert_close(function(x), model(x), rtol=1e-5, atol=1e-6)

    def test_sequences_of_any_length(self, runs):
        model = Block(0.0, True)
        function = compiled(model, dynamic=True)
        for batch, length in [(2, 9), (3, 5), (4, 12)]:
            tokens = torch.randint(0, 20, (batch, length))
            torch.testing.assert_close(function(tokens), model(tokens), rtol=1e-5, atol=1e-6)
        assert len(runs) >= 3

    def test_no_elements(self, runs):
        model = perceptron()
        x = torch.randn(0, 12, requires_grad=True)
        y = compiled(model, dynamic=True)(x)
        assert y.shape == (0, 5)
        y.sum().backward()
        assert x.grad.shape == (0, 12)

    def test_a_size_that_becomes_0_is_left_to_pytorch(self):
        def cut(x, count):
            return (2 * x)[:count] + 1

        function = compiled(cut, dynamic=True)
        for count in (5, 3, 0, 2):
            x = torch.randn(6, 4)
            torch.testing.assert_close(function(x, count), cut(x, count))

    def test_sizes_that_depend_on_data(self):
        def positive(x):
            return torch.relu(x[x > 0] * 2) + 1

        x = torch.randn(50)
        torch.testing.assert_close(compiled(positive)(x), positive(x))


class TestGraphs:
    """Graphs that are broken, or of which a part stays in PyTorch."""

    def test_a_break(self, runs):
        def broken(x):
            y = torch.tanh(x) * 2
            print(end="")
            return torch.sigmoid(y) + 1

        x = torch.randn(3, 4)
        torch.testing.assert_close(compiled(broken)(x), broken(x))
        assert len(runs) == 2
        assert tenon.torch.explain(broken, x).graphs == 2

    def test_branches_on_data(self):
        def branches(x):
            return x.exp() * 2 if x.sum() > 0 else x.sin() * 3

        function = compiled(branches)
        for x in (torch.ones(3), -torch.ones(3)):
            torch.testing.assert_close(function(x), branches(x))

    def test_what_has_no_rule_stays_in_pytorch(self, runs):
        def function(x):
            return torch.special.bessel_j0(x * 2) + torch.sigmoid(x)

        x = torch.randn(5, 4)
        torch.testing.assert_close(compiled(function)(x), function(x))
        assert len(runs) == 2
        explanation = tenon.torch.explain(function, x)
        assert explanation.left == {
            "aten.special_bessel_j0.default": {"there is no rule for it": 1}
        }
        assert explanation.lowered == {
            "aten.mul.Tensor": 1, "aten.sigmoid.default": 1, "aten.add.Tensor": 1
        }  # fmt: skip
        assert str(explanation) == (
            "graphs: 1, regions: 2\n"
            "operators that Tenon computes: 3\n"
            "operators that stay in PyTorch: 1\n"
            "  1 x aten.special_bessel_j0.default: there is no rule for it"
        )

    @pytest.mark.parametrize(
        ("function", "dtype", "name", "reason"),
        [
            (lambda x: x * 2j, torch.float32, "mul.Tensor", "a tensor is of type torch.complex64"),
            (lambda x: x[..., :0] * 2, torch.float32, "mul.Tensor", "a tensor has no elements"),
            (lambda x: x + torch.rand(8), torch.float32, "rand.default", "it draws random numbers"),
            (lambda x: x[x > 0], torch.float32, "index.Tensor", "a size depends on data"),
            (
                lambda x: torch.index_put(x, (x > 0,), x.new_ones(336)),
                torch.float32,
                "index_put.default",
                "its indices are of type torch.bool",
            ),
            (
                lambda x: F.conv_transpose2d(x, WEIGHT, None, 1, 0, 1, dilation=2),
                torch.float32,
                "convolution_backward.default",
                "the padding of its output reaches its strides",
            ),
            (
                lambda x: F.avg_pool2d(x, 4, 3, 1, ceil_mode=True),
                torch.float32,
                "avg_pool2d.default",
                "it rounds sizes up",
            ),
        ],
    )
    def test_reasons(self, function, dtype, name, reason):
        x = torch.ones(2, 3, 7, 8, dtype=dtype)
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            assert tenon.torch.explain(function, x).left[f"aten.{name}"] == {reason: 1}

    def test_views_alone_get_no_session(self, runs):
        def views(x):
            return x.transpose(0, 1).unsqueeze(0), x[:, 1]

        x = torch.randn(3, 4)
        for a, e in zip(compiled(views)(x), views(x), strict=True):
            torch.testing.assert_close(a, e)
        assert runs == []

    def test_explain_leaves_gradients_alone(self):
        model = perceptron()
        tenon.torch.explain(model, torch.randn(3, 12))
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_random_numbers_come_in_the_same_order(self):
        def function(x):
            x = F.dropout(x.relu(), 0.3) * torch.rand(8)
            return F.dropout(x.tanh(), 0.5) + torch.randn(8)

        x = torch.randn(4, 8)
        torch.manual_seed(1)
        expected = function(x)
        torch.manual_seed(1)
        torch.testing.assert_close(compiled(function)(x), expected, rtol=1e-5, atol=1e-6)

    def test_random_numbers_keep_their_order_behind_those_that_wait_for_a_region(self):
        def function(x):
            mask = torch.bernoulli(torch.sigmoid(x * 2))
            return mask, torch.rand(8), x.tanh()  # of one region with the sigmoid

        x = torch.randn(4, 8)
        torch.manual_seed(1)
        expected = function(x)
        torch.manual_seed(1)
        torch.testing.assert_close(compiled(function)(x), expected, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("draw", [torch.rand_like, torch.randn_like])
    def test_random_numbers_of_a_shape_wait_for_no_values(self, draw, runs):
        def function(x):
            y = x.exp()
            return y * draw(y), draw(y, dtype=torch.float64), draw(x.t())

        x = torch.randn(4, 8)
        torch.manual_seed(1)
        expected = function(x)
        torch.manual_seed(1)
        actual = compiled(function)(x)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-6)
        assert len(runs) == 1

    def test_random_numbers_are_those_of_pytorch(self):
        dropout, x = nn.Dropout(0.3), torch.randn(40, 30)
        function = compiled(dropout)
        for seed in (1, 2):
            torch.manual_seed(seed)
            expected = dropout(x)
            torch.manual_seed(seed)
            assert torch.equal(function(x), expected)


class TestTensors:
    """How tensors go in and out."""

    @pytest.fixture
    def addresses(self, monkeypatch):
        """Where the inputs and the results of the sessions lie."""
        given, taken = [], []
        to_dlpack, run = _region.to_dlpack, tenon._tenon.Session._run_taking

        def lent(tensor):
            given.append(tensor.data_ptr())
            return to_dlpack(tensor)

        def recorded(*arguments):
            values = run(*arguments)
            taken.extend(value.data_ptr() for value in values)
            return values

        monkeypatch.setattr(_region, "to_dlpack", lent)
        monkeypatch.setattr(tenon._tenon.Session, "_run_taking", recorded)
        return given, taken

    def test_nothing_is_copied(self, addresses):
        given, taken = addresses
        x, w = torch.randn(6, 4), torch.randn(4, 5)
        y = compiled(lambda x, w: (x @ w.relu()).tanh())(x.t().contiguous().t(), w)
        assert w.data_ptr() in given
        assert taken == [y.data_ptr()]

    def test_a_transposed_tensor_is_not_copied(self, addresses):
        given, _ = addresses
        x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
        torch.testing.assert_close(compiled(torch.tanh)(x), torch.tanh(x))
        assert given == [x.data_ptr()]

    def test_results_outlive_the_model(self):
        x = torch.randn(100, 100)
        function = compiled(lambda x: x * 2 + 1)
        y = function(x)
        del function
        torch.compiler.reset()
        torch.testing.assert_close(y, x * 2 + 1)

    def test_a_result_shares_no_memory_with_the_input(self):
        x = torch.randn(5)
        y, z = compiled(lambda x: (x.clone(), x * 2))(x)
        expected = x.clone()
        y.add_(1)
        torch.testing.assert_close(x, expected)
        torch.testing.assert_close(z, 2 * expected)

    def test_an_input_that_is_changed(self):
        def function(x):
            x.mul_(2)
            return x + 1

        x = torch.randn(5)
        before = x.clone()
        y = compiled(function)(x)
        torch.testing.assert_close(x, 2 * before)
        torch.testing.assert_close(y, 2 * before + 1)

    def test_double(self):
        x, w = torch.randn(6, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
        b = torch.randn(5, dtype=torch.float64)
        check_function(
            lambda x, w, b: F.gelu(F.linear(x, w, b)).log_softmax(1),
            x, w, b, rtol=1e-12, atol=1e-12,
            left=["aten._log_softmax_backward_data.default", "aten.gelu_backward.default"],
        )  # fmt: skip

    @pytest.mark.parametrize("function", [torch.relu, lambda x: x.clamp(-1, 1), torch.tanh,
                                          lambda x: x.amax(0), lambda x: x.softmax(0),
                                          lambda x: torch.maximum(x, x.flip(0)), torch.sign,
                                          lambda x: x.sum(0), lambda x: x > 0])  # fmt: skip
    def test_special_numbers(self, function):
        x = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 1e-42, 3e38])
        torch.testing.assert_close(compiled(function)(x), function(x), equal_nan=True)

    def test_autocast(self):
        model = perceptron()
        x, y = torch.randn(16, 12), torch.randn(16, 5)

        def cast(each):
            with torch.autocast("cpu", torch.bfloat16):
                return F.mse_loss(each(x), y)

        twin = copy.deepcopy(model)
        expected = train(model, cast, 5)
        actual = train(compiled(twin), cast, 5)
        torch.testing.assert_close(
            torch.tensor(actual), torch.tensor(expected), rtol=1e-2, atol=1e-3
        )


class TestTraining:
    """Loops that are more than forward, backward and step."""

    def test_gradients_accumulate(self):
        x, y = torch.randn(2, 16, 12), torch.randint(0, 5, (2, 16))

        def step(model):
            F.cross_entropy(model(x[0]), y[0]).backward()
            return F.cross_entropy(model(x[1]), y[1])

        check_training(perceptron(), step)

    def test_checkpoints(self):
        class Checkpointed(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Linear(12, 24), perceptron()
                self.last = nn.Linear(24, 12)

            def forward(self, x):
                x = checkpoint(lambda x: torch.tanh(self.first(x)), x, use_reentrant=False)
                return self.second(self.last(x))

        x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
        check_training(Checkpointed(), lambda model: F.cross_entropy(model(x), y))

    def test_adam_and_a_scheduler(self):
        def fit(model):
            torch.manual_seed(3)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
            losses = []
            for _ in range(20):
                x = torch.randn(16, 12)
                loss = F.mse_loss(model(x), x[:, :5].sin())
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                losses.append(loss.item())
            return torch.tensor(losses)

        model = perceptron()
        twin = copy.deepcopy(model)
        torch.testing.assert_close(fit(compiled(twin)), fit(model), rtol=1e-4, atol=1e-6)

    def test_some_parameters_are_fixed(self):
        model = perceptron()
        model[0].requires_grad_(False)
        before = model[0].weight.clone()
        x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
        check_training(model, lambda each: F.cross_entropy(each(x), y))
        assert torch.equal(model[0].weight, before)

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_inference(self, mode):
        model = convolutional().eval()
        x = torch.randn(4, 3, 12, 12)
        with mode():
            torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-5, atol=1e-6)

    def test_training_and_inference_take_turns(self):
        model, x = convolutional(), torch.randn(4, 3, 12, 12)
        function = compiled(model)
        for _ in range(2):
            model.train()
            function(x).sum().backward()
            model.eval()
            twin = copy.deepcopy(model)
            with torch.no_grad():
                torch.testing.assert_close(function(x), twin(x), rtol=1e-5, atol=1e-6)


class TestBadInputs:
    """Errors of the caller."""

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ({"options": {"threads": 2}}, "expected 'intra_op_num_threads', got 'threads'"),
            ({"options": {"intra_op_num_threads": 0}}, "expected a positive number, got 0"),
            ({"options": {"intra_op_num_threads": "2"}}, "expected a positive number, got '2'"),
        ],
    )
    def test_options(self, arguments, text):
        with pytest.raises(Exception, match=text):
            compiled(torch.tanh, **arguments)(torch.randn(3))

    def test_mode(self):
        with pytest.raises(Exception, match="mode: expected None or 'default', got 'max-autotune'"):
            compiled(torch.tanh, mode="max-autotune")(torch.randn(3))

    def test_number_of_threads(self, monkeypatch):
        counts = []
        create = tenon.InferenceSession.__init__

        def recorded(self, model, options, **arguments):
            counts.append(options.intra_op_num_threads)
            create(self, model, options, **arguments)

        monkeypatch.setattr(tenon.InferenceSession, "__init__", recorded)
        compiled(torch.tanh, options={"intra_op_num_threads": 3})(torch.randn(3))
        compiled(torch.sinh)(torch.randn(3))
        assert counts == [3, torch.get_num_threads()]

    @pytest.mark.parametrize("index", [7, -8])
    def test_an_index_out_of_range(self, index):
        function = compiled(lambda x, i: x[i] * 2)
        with pytest.raises(RuntimeError, match=f"index {index} .* out of range"):
            function(torch.randn(7), torch.tensor([0, index]))

    def test_a_class_out_of_range(self):
        with pytest.raises(RuntimeError, match=r"expected classes in \[0, 3\), got 3"):
            compiled(F.cross_entropy)(torch.randn(2, 3), torch.tensor([0, 3]))

    def test_shapes_that_do_not_fit(self):
        with pytest.raises(Exception, match=r"must be equal|same reduction dim"):
            compiled(torch.mm)(torch.randn(2, 3), torch.randn(2, 3))

    def test_a_model_works_after_an_error(self):
        function = compiled(lambda x, i: x[i] * 2)
        x = torch.randn(7)
        with pytest.raises(RuntimeError):
            function(x, torch.tensor([0, 9]))
        torch.testing.assert_close(function(x, torch.tensor([0, 6])), x[[0, 6]] * 2)


def test_second_order_gradients_are_refused():
    x = torch.randn(5, requires_grad=True)
    (first,) = torch.autograd.grad(compiled(lambda x: x.tanh())(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        first.sum().backward()


@pytest.mark.parametrize("program", ["", "import tenon.torch; ", "import tenon; "])
@pytest.mark.parametrize("is_installed", [True, False])
def test_the_name_of_the_backend(tmp_path, program, is_installed):
    tomllib = pytest.importorskip("tomllib")
    if is_installed:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        point = project["entry-points"]["torch_dynamo_backends"]["tenon"]
        folder = tmp_path / "tenon-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tenon\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[torch_dynamo_backends]\ntenon = {point}\n")
    elif "tenon" in entry_points(group="torch_dynamo_backends").names:
        pytest.skip("Tenon is installed")
    program += "import torch; print(torch.compile(torch.square, backend='tenon')(torch.ones(3)))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(tmp_path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    if is_installed or "tenon.torch" in program:
        assert result.stdout == "tensor([1., 1., 1.])\n", result.stderr
    else:
        assert "Invalid backend: 'tenon'" in result.stderr


def test_idle_threads_of_openmp_end() -> None:
    """They would spin on the processors of Tenon's threads."""
    program = """
import pathlib, torch, tenon.torch
torch.set_num_threads(3)
def threads():
    return {task.name for task in pathlib.Path("/proc/self/task").iterdir()}
compiled = torch.compile(lambda x: torch.tanh(x) @ x, backend="tenon")
x = torch.randn(400, 400)
compiled(x)
before = threads()
for _ in range(2):
    x.exp().sum()
    of_openmp = threads() - before
    assert of_openmp, "PyTorch has no threads"
    compiled(x)
    assert not of_openmp & threads()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_compilation_imports_only_what_it_needs():
    """Modules take memory from the training."""
    program = """
import sys
import torch
import tenon.torch
compiled = torch.compile(torch.nn.Linear(2, 2), backend=tenon.torch.backend)
compiled(torch.ones(1, 2)).sum().backward()
names = ("onnx", "torch._inductor.ir", "google.protobuf", "networkx")
print([name for name in names if name in sys.modules])
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_pytorch_finds_the_package_of_graphs_when_it_needs_it():
    """Where a budget of memory is set, PyTorch's own partitioner reads networkx."""
    program = """
import sys
import torch
import tenon.torch
from torch._functorch._activation_checkpointing import graph_info_provider
assert "networkx" not in sys.modules
graph = graph_info_provider.nx.DiGraph([(1, 2)])
assert list(graph.successors(1)) == [2]
import networkx
assert graph_info_provider.nx.DiGraph is networkx.DiGraph
assert sys.modules["networkx"] is networkx
from torch._functorch.aot_autograd import aot_function
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._functorch.config import patch
x = torch.rand(8, 8, requires_grad=True)
def show(module, _):
    return module
with patch(activation_memory_budget=0.5):
    function = aot_function(
        lambda x: (x.sin().cos() @ x).exp().sum(),
        fw_compiler=show,
        bw_compiler=show,
        partition_fn=min_cut_rematerialization_partition,
    )
    function(x).backward()
expected, = torch.autograd.grad((x.sin().cos() @ x).exp().sum(), x)
torch.testing.assert_close(x.grad, expected)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
