"""ORTModule stands for the module that it runs, and always runs it."""

import copy
import inspect
import logging
import pickle
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")

from comparison import train  # noqa: E402
from networks import Recurrent, convolutional, perceptron  # noqa: E402
from tenon.torch import _region  # noqa: E402
from tenon.training import ORTModule  # noqa: E402
from tenon.training.ortmodule import DebugOptions, LogLevel, _compilation  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812


class Scaled(nn.Module):
    """A module with what a module can have."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("offset", torch.ones(4), persistent=False)
        self.scale = nn.Parameter(torch.ones(()))
        self.power = 1

    def forward(self, x, factor=1.0):
        return (self.scale * self.norm(self.first(x)) * factor + self.offset) ** self.power

    def loss(self, x):
        return self(x).square().mean()

    def extra_repr(self):
        return f"power={self.power}, {super().extra_repr()}"

    @property
    def width(self):
        return self.first.out_features


class Special(Scaled):
    def loss(self, x):
        return super().loss(x) + 1


@pytest.fixture(autouse=True)
def fresh_backends():
    """Forgets the messages' levels and the names of files."""
    _compilation._backend.cache_clear()


def batch():
    return torch.randn(5, 6)


def messages(caplog, level=logging.WARNING):
    return [record.getMessage() for record in caplog.records if record.levelno >= level]


class TestRuns:
    """What runs on Tenon."""

    @pytest.mark.parametrize(
        ("make", "shape"),
        [
            (perceptron, (16, 12)),
            (convolutional, (8, 3, 12, 12)),
            (lambda: Recurrent(nn.LSTM), (4, 5, 12)),
        ],
    )
    def test_training(self, runs, make, shape):
        x, y = torch.randn(shape), torch.randint(0, 5, shape[:1])
        model = make()
        wrapped = ORTModule(copy.deepcopy(model))
        losses = [
            train(each, lambda each: F.cross_entropy(each(x), y), 3) for each in (wrapped, model)
        ]
        torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-7)
        assert len(runs) == 6
        torch.testing.assert_close(wrapped.state_dict(), model.state_dict(), rtol=1e-4, atol=1e-5)

    def test_inference(self, runs):
        model = convolutional()
        wrapped = ORTModule(model).eval()
        x = torch.randn(2, 3, 12, 12)
        with torch.no_grad():
            torch.testing.assert_close(wrapped(x), model(x), rtol=1e-5, atol=1e-6)
        assert len(runs) == 1

    def test_structures(self, runs):
        class Structures(nn.Module):
            def forward(self, values, *rest, scale=None, **others):
                total = values["a"] + values["b"][0] + sum(rest) + others["last"]
                return {"total": total, "parts": (total * 2, None)}

        x = batch().requires_grad_()
        module = Structures()
        arguments = ({"a": x, "b": [2 * x]}, x, x)
        actual = ORTModule(module)(*arguments, last=torch.ones(6))
        torch.testing.assert_close(actual["total"], 5 * x + 1)
        assert actual["parts"][1] is None
        actual["parts"][0].sum().backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 10))
        assert len(runs) >= 1

    def test_methods_of_the_module(self, runs):
        wrapped = ORTModule(Scaled())
        x = batch()
        wrapped.loss(x).backward()
        assert wrapped.first.weight.grad.shape == (4, 6)
        assert len(runs) == 2
        # A method that calls super() is the module's own.
        special = ORTModule(Special())
        torch.testing.assert_close(special.loss(x), special.module.loss(x))

    def test_sizes_of_a_batch(self):
        model = perceptron()
        wrapped = ORTModule(model)
        for count in (4, 7, 2, 19):
            x = torch.randn(count, 12)
            torch.testing.assert_close(wrapped(x), model(x), rtol=1e-5, atol=1e-6)

    def test_modules_of_one_class(self, runs):
        x = torch.randn(3, 8)
        sizes = range(2, 14)
        for size in sizes:
            ORTModule(nn.Sequential(nn.Linear(8, size), nn.Tanh()))(x)
        assert len(runs) == len(sizes)

    def test_a_state_that_changes(self):
        wrapped = ORTModule(Scaled())
        x = batch()
        for power in (1, 2):
            wrapped.power = power
            twin = copy.deepcopy(wrapped.module)
            torch.testing.assert_close(wrapped(x), twin(x), rtol=1e-5, atol=1e-6)
        wrapped.first.requires_grad_(False)
        wrapped(x).sum().backward()
        assert wrapped.first.weight.grad is None
        assert wrapped.norm.weight.grad is not None

    def test_hooks(self):
        module = Scaled()
        calls = []
        module.first.register_forward_hook(lambda *_: calls.append("inner"))
        module.register_forward_hook(lambda *_: calls.append("module"))
        wrapped = ORTModule(module)
        wrapped.register_forward_hook(lambda *_: calls.append("outer"))
        wrapped.norm.weight.register_hook(lambda _: calls.append("gradient"))
        wrapped(batch()).sum().backward()
        assert calls == ["inner", "module", "outer", "gradient"]


class TestStandsForTheModule:
    """What a program sees."""

    def test_names(self):
        module = Scaled()
        wrapped = ORTModule(module)
        assert wrapped.module is module
        for method in ("named_parameters", "named_buffers", "named_children", "named_modules"):
            ours, its = dict(getattr(wrapped, method)()), dict(getattr(module, method)())
            assert list(ours) == list(its)
            assert all(ours[name] is its[name] for name in its)
        assert [id(each) for each in wrapped.parameters()] == [id(p) for p in module.parameters()]
        assert list(wrapped.state_dict()) == list(module.state_dict())
        assert wrapped.get_parameter("first.weight") is module.first.weight
        assert wrapped.get_submodule("norm") is module.norm
        assert inspect.signature(wrapped.forward) == inspect.signature(module.forward)
        assert "power=1" in repr(module) and "(first): Linear" in repr(wrapped)
        assert {"first", "loss", "width"} <= set(dir(wrapped))

    def test_states(self):
        wrapped, other = ORTModule(Scaled()), Scaled()
        assert str(wrapped.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
        torch.testing.assert_close(wrapped.module.state_dict(), other.state_dict())
        with pytest.raises(RuntimeError, match="Missing key"):
            wrapped.load_state_dict({})
        assert wrapped.load_state_dict({}, strict=False).missing_keys

    def test_in_another_module(self):
        plain = nn.Sequential(Scaled(), nn.Linear(4, 2))
        outer = nn.Sequential(ORTModule(Scaled()), nn.Linear(4, 2))
        assert list(outer.state_dict()) == list(plain.state_dict())
        assert [n for n, _ in outer.named_parameters()] == [n for n, _ in plain.named_parameters()]
        outer.load_state_dict(plain.state_dict())
        x = batch()
        torch.testing.assert_close(outer(x), plain(x), rtol=1e-5, atol=1e-6)
        outer.eval()
        assert not outer[0].module.norm.training
        outer.to(torch.float64)
        assert outer[0].first.weight.dtype == torch.float64

    def test_modes_and_types(self):
        module = Scaled()
        wrapped = ORTModule(module)
        assert wrapped.eval() is wrapped
        assert (wrapped.training, module.training, module.norm.training) == (False, False, False)
        assert wrapped.train() is wrapped
        assert (wrapped.training, module.training, module.norm.training) == (True, True, True)
        assert wrapped.double() is wrapped
        assert module.offset.dtype == torch.float64
        assert wrapped.to("cpu") is wrapped
        wrapped.requires_grad_(False)
        assert not module.scale.requires_grad
        found = []
        assert wrapped.apply(found.append) is wrapped
        assert found[-1] is module
        assert not ORTModule(Scaled().eval()).training

    def test_attributes(self):
        module = Scaled()
        wrapped = ORTModule(module)
        wrapped.power, wrapped.added, wrapped.scale = 3, [1], nn.Parameter(torch.zeros(()))
        assert (module.power, module.added, module.scale.item()) == (3, [1], 0.0)
        wrapped.register_buffer("more", torch.zeros(2))
        wrapped.add_module("last", nn.Tanh())
        assert "more" in module.state_dict() and isinstance(module.last, nn.Tanh)
        assert wrapped.width == 4
        assert wrapped.loss.__func__ is Scaled.loss
        wrapped.loss = "mine"
        assert wrapped.loss == "mine" and module.loss != "mine"
        del wrapped.added
        assert not hasattr(module, "added")
        with pytest.raises(AttributeError, match="'Scaled' object has no attribute 'missing'"):
            _ = wrapped.missing

    def test_names_that_collide(self, caplog):
        class Colliding(nn.Module):
            def __init__(self):
                super().__init__()
                self.module = 1

        ORTModule(Colliding())
        (message,) = messages(caplog)
        assert message == (
            "ORTModule of Colliding: module collides with ORTModule's attribute: use module.module"
        )

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    @pytest.mark.parametrize("has_run", [False, True])
    def test_copies(self, runs, copied, has_run):
        wrapped = ORTModule(Scaled(), DebugOptions(log_level=LogLevel.ERROR))
        x = batch()
        if has_run:
            wrapped(x)
        twin = copied(wrapped)
        assert twin.module is not wrapped.module
        torch.testing.assert_close(twin.state_dict(), wrapped.state_dict())
        before = len(runs)
        torch.testing.assert_close(twin(x), wrapped(x))
        assert len(runs) == before + 2

    def test_data_parallel_is_refused(self):
        with pytest.raises(NotImplementedError, match="DistributedDataParallel"):
            ORTModule(Scaled())._replicate_for_data_parallel()

    def test_names_of_onnxruntime(self):
        program = (
            "import tenon.as_onnxruntime; tenon.as_onnxruntime.install()\n"
            "from onnxruntime.training import ORTModule\n"
            "from onnxruntime.training.ortmodule import DebugOptions, LogLevel, ORTModule as same\n"
            "assert ORTModule is same\n"
            "import torch\n"
            "options = DebugOptions(log_level=LogLevel.ERROR)\n"
            "print(ORTModule(torch.nn.Tanh(), options)(torch.zeros(2)))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.stdout == "tensor([0., 0.])\n", done.stderr


class TestFallback:
    """What PyTorch runs, and what is said about it."""

    def test_an_operator(self, caplog):
        class Bessel(nn.Module):
            def forward(self, x):
                return torch.special.bessel_j0(x) if x.dim() == 1 else torch.tanh(x) * 2

        module = Bessel()
        wrapped = ORTModule(module)
        torch.testing.assert_close(wrapped(torch.ones(3)), module(torch.ones(3)))
        (message,) = messages(caplog)
        assert "1 x aten.special_bessel_j0.default: there is no rule for it" in message
        wrapped(batch())  # says nothing more
        assert len(messages(caplog)) == 1

    def test_a_type(self, caplog):
        module = nn.Linear(6, 4).to(torch.complex64)
        x = batch().to(torch.complex64)
        torch.testing.assert_close(ORTModule(module)(x), module(x))
        assert all("a tensor is of type torch.complex64" in text for text in messages(caplog))
        assert messages(caplog)

    @pytest.mark.parametrize("count", [1, 3])
    def test_a_session_that_cannot_be_made(self, monkeypatch, caplog, count):
        def refuse(graph, node):
            raise ValueError("no such operator")

        monkeypatch.setattr(_region, "lower", refuse)
        module = Scaled()
        twin, wrapped = copy.deepcopy(module), ORTModule(module)
        for size in range(2, 2 + count):
            x = torch.randn(size, 6)
            outputs = wrapped(x), twin(x)
            torch.testing.assert_close(*outputs)
            for each in outputs:
                each.sum().backward()
        torch.testing.assert_close(module.scale.grad, twin.scale.grad)
        assert "PyTorch runs a part that Tenon cannot compile: no such operator" in caplog.text

    def test_a_failing_trace(self, monkeypatch, caplog):
        def refuse(*_):
            raise ValueError("no trace")

        monkeypatch.setattr(_compilation, "compile_with", lambda *_: refuse)
        module = nn.Tanh()
        torch.testing.assert_close(ORTModule(module)(batch()).shape, torch.Size([5, 6]))
        assert "no trace" in caplog.text

    def test_a_failing_compiler(self, monkeypatch, caplog):
        class Failing:
            def __call__(self, graph, inputs):
                raise ValueError("no compiler")

        monkeypatch.setattr(_compilation, "_backend", lambda *_: Failing())
        wrapped = ORTModule(nn.Tanh())
        for _ in range(2):
            torch.testing.assert_close(wrapped(torch.zeros(2)), torch.zeros(2))
        (message,) = messages(caplog)
        assert "torch.compile cannot" in message and "no compiler" in message

    def test_errors_of_the_caller(self):
        wrapped = ORTModule(nn.Linear(6, 4))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            wrapped(torch.randn(5, 7))
        assert wrapped(batch()).shape == (5, 4)

    def test_it_can_be_forbidden(self, monkeypatch):
        def refuse(graph, node):
            raise ValueError("no such operator")

        monkeypatch.setattr(_region, "lower", refuse)
        monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_DISABLE")
        with pytest.raises(Exception, match="no such operator"):
            ORTModule(nn.Tanh())(batch())

    def test_it_can_be_forced(self, monkeypatch, runs, caplog):
        monkeypatch.setenv("ORTMODULE_FALLBACK_POLICY", "FALLBACK_FORCE_TORCH_FORWARD")
        torch.testing.assert_close(ORTModule(nn.Tanh())(torch.zeros(2)), torch.zeros(2))
        assert runs == []
        assert "ORTMODULE_FALLBACK_POLICY" in caplog.text

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_scripted_module(self, caplog):
        module = torch.jit.script(nn.Linear(6, 4))
        x = batch()
        torch.testing.assert_close(ORTModule(module)(x), module(x))
        assert "scripted" in caplog.text


class TestDebugOptions:
    """Messages and saved models."""

    def test_levels(self, caplog, monkeypatch):
        assert DebugOptions().log_level == LogLevel.WARNING
        ORTModule(nn.Tanh())(batch())
        assert messages(caplog, logging.DEBUG) == []
        ORTModule(nn.Sigmoid(), DebugOptions(log_level=LogLevel.INFO))(batch())
        (message,) = messages(caplog, logging.DEBUG)
        assert message.startswith("ORTModule of Sigmoid: a graph is compiled:\ngraphs: 1, regions:")
        monkeypatch.setenv("ORTMODULE_LOG_LEVEL", "ERROR")
        assert DebugOptions(log_level=LogLevel.INFO).log_level == LogLevel.ERROR

    def test_saved_models(self, tmp_path, monkeypatch):
        options = DebugOptions(save_onnx=True, onnx_prefix="net", save_path=str(tmp_path))
        ORTModule(Scaled(), options)(batch()).sum().backward()
        assert sorted(each.name for each in tmp_path.iterdir()) == ["net_0.onnx", "net_1.onnx"]
        for path in tmp_path.iterdir():
            onnx.checker.check_model(onnx.load(path))
        monkeypatch.setenv("ORTMODULE_SAVE_ONNX_PATH", str(tmp_path / "elsewhere"))
        with pytest.raises(OSError, match="elsewhere is not writable"):
            DebugOptions(save_onnx=True, onnx_prefix="net")

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            ({"log_level": 2}, TypeError, "Expected log_level of type LogLevel, got <class 'int'>"),
            ({"save_onnx": True}, ValueError, "onnx_prefix must be provided"),
            ({"save_onnx": True, "onnx_prefix": 3}, TypeError, "expected a str, got 3"),
        ],
    )
    def test_bad_options(self, arguments, error, text):
        with pytest.raises(error, match=text):
            DebugOptions(**arguments)
