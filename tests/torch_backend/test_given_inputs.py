"""A backward graph lets go of stashed values while it runs. Nobody else may notice."""

import copy
import sys
import threading

import numpy as np
import pytest
import tenon

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from networks import perceptron  # noqa: E402
from tenon.torch import _region  # noqa: E402
from tenon.torch._graph import GraphBuilder  # noqa: E402
from tenon.torch._order import with_results_early  # noqa: E402
from torch.multiprocessing.reductions import StorageWeakRef  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812


def gradients(model):
    return [each.grad.clone() for each in model.parameters()]


def assert_equal(actual, expected):
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


@pytest.fixture
def model():
    return perceptron()


@pytest.fixture
def loss(model):
    """Computes the loss of the compiled model, or of another one."""
    x, y = torch.randn(16, 12), torch.randint(0, 5, (16,))
    compiled = torch.compile(model, backend="tenon", dynamic=False)
    return lambda of=compiled: F.cross_entropy(of(x), y)


# Which of the stashed values are gone when the gradient of probe() is computed.
_refs = []
_gone = []


@torch.library.custom_op("tenon_test::probe", mutates_args=())
def probe(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("tenon_test::probe_gradient", mutates_args=())
def probe_gradient(dy: torch.Tensor) -> torch.Tensor:
    _gone.extend(ref.expired() for ref in _refs)
    return dy.clone()


probe.register_fake(torch.empty_like)
probe_gradient.register_fake(torch.empty_like)
probe.register_autograd(lambda ctx, dy: probe_gradient(dy))


def test_values_are_gone_after_their_region():
    x = torch.randn(16, 64, requires_grad=True)
    compiled = torch.compile(
        lambda x: torch.tanh(torch.sin(probe(2 * x)) * 3).sum(), backend="tenon", dynamic=False
    )
    for run in range(3):
        result = compiled(x)
        saved = {each.untyped_storage().data_ptr(): each for each in result.grad_fn.saved_tensors}
        _refs[:] = [StorageWeakRef(each.untyped_storage()) for each in saved.values()]
        del saved
        assert [ref.expired() for ref in _refs] == [False, False]  # of sin and tanh
        _gone.clear()
        result.backward()
        assert _gone == [True, True], run


def test_a_run_gives_back_what_it_takes():
    builder = GraphBuilder()
    name = builder.add_input([2, 3], torch.float32)
    builder.add_output(builder.op("Neg", name), [2, 3], torch.float32)
    session = tenon.InferenceSession(builder.model(), providers=["CPUExecutionProvider"])
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.takes_bound_inputs", "1")
    names = [each.name for each in session.get_outputs()]
    for shape in [(2, 3), (3, 2)]:  # the second is an error
        array = np.arange(6, dtype=np.float32).reshape(shape)
        references = sys.getrefcount(array)
        capsules = [array.__dlpack__()]
        assert sys.getrefcount(array) > references
        if shape == (2, 3):
            (value,) = session._sess._run_taking([name], capsules, names, options)
            np.testing.assert_array_equal(value.numpy(), -array)
        else:
            with pytest.raises(tenon.capi.onnxruntime_pybind11_state.InvalidArgument):
                session._sess._run_taking([name], capsules, names, options)
        assert capsules == []
        assert sys.getrefcount(array) == references


@pytest.mark.parametrize("fails", ["forward", "backward"])
def test_a_region_that_fails_is_not_computed_again(model, loss, monkeypatch, fails):
    loss().backward()
    expected = gradients(model)
    model.zero_grad()
    value = loss() if fails == "backward" else None
    with monkeypatch.context() as stopped, pytest.raises(RuntimeError, match="terminate"):
        stopped.setattr(_region._RUN_OPTIONS, "terminate", True)
        loss() if value is None else value.backward()
    assert all(each.grad is None for each in model.parameters())
    loss().backward()
    assert_equal(gradients(model), expected)


def test_the_graph_may_be_retained(model, loss):
    with torch._functorch.config.patch(donated_buffer=False):  # else PyTorch refuses
        for _ in range(3):
            model.zero_grad()
            value = loss()
            value.backward(retain_graph=True)
            first = gradients(model)
            model.zero_grad()
            value.backward(retain_graph=True)
            assert_equal(gradients(model), first)
            model.zero_grad()
            value.backward()
            assert_equal(gradients(model), first)
            with pytest.raises(RuntimeError, match="second time"):
                value.backward()


def test_hooks_of_saved_tensors_keep_what_they_pack(model, loss):
    packed = []

    def pack(tensor):
        packed.append((tensor, tensor.clone()))
        return len(packed) - 1

    for _ in range(3):
        packed.clear()
        model.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: packed[i][0]):
            value = loss()
        value.backward()
        assert packed
        for kept, before in packed:
            assert torch.equal(kept, before)
        actual = gradients(model)
        twin = copy.deepcopy(model)
        twin.zero_grad()
        loss(twin).backward()
        for a, e in zip(actual, gradients(twin), strict=True):
            torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-6)


def test_inputs_and_results_stay(model):
    compiled = torch.compile(lambda x: (torch.tanh(model(x)), x * 2), backend="tenon")
    for _ in range(3):
        x = torch.randn(16, 12, requires_grad=True)
        before = x.detach().clone()
        tanh, double = compiled(x)
        kept = tanh.detach().clone()
        (tanh.sum() + double.sum()).backward()
        assert torch.equal(x, before)
        assert torch.equal(tanh, kept)  # it is stashed, too
        assert torch.equal(double, 2 * before)


def test_threads_do_not_share_stashed_values():
    torch.manual_seed(0)
    models = [perceptron() for _ in range(2)]
    inputs = [torch.randn(16, 12) for _ in range(2)]
    compiled = torch.compile(lambda model, x: model(x).square().mean(), backend="tenon")
    found = [[], []]

    def train(i):
        for _ in range(5):
            models[i].zero_grad()
            compiled(models[i], inputs[i]).backward()
            found[i].append(gradients(models[i]))

    for i in range(2):
        train(i)  # compiles
    threads = [threading.Thread(target=train, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for steps in found:
        assert len(steps) == 10
        for step in steps[1:]:
            assert_equal(step, steps[0])


def test_results_come_before_what_others_read():
    graph = torch.fx.Graph()
    gradient, weight, stashed = (graph.placeholder(name) for name in ("gradient", "weight", "x"))
    call = graph.call_function
    scaled = call(torch.neg, (gradient,))
    of_input = call(torch.mm, (scaled, weight))
    again = call(torch.relu, (stashed,))
    of_weight = call(torch.mm, (scaled, again))
    last = call(torch.tanh, (of_input,))
    graph.output((of_weight, last))
    order = [node for node in with_results_early(graph) if node.op == "call_function"]
    assert order == [scaled, again, of_weight, of_input, last]
