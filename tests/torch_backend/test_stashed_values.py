"""What the forward graph leaves for the backward graph, and what that computes again."""

import copy
import importlib
import operator

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")

from comparison import check_function  # noqa: E402
from tenon.torch import _joint  # noqa: E402
from tenon.torch._graph import GraphBuilder  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

MIB = 1 << 20
DROPOUT = ["aten.bernoulli.p", "aten.empty.memory_format"]


def stashed(result, parameters=()):
    """The shapes and the bytes of the memory of what a compiled function keeps for its gradient."""
    others = {each.untyped_storage().data_ptr() for each in parameters}
    memory, shapes = {}, set()
    for tensor in result.grad_fn.saved_tensors:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in others:
            memory[storage.data_ptr()] = storage.nbytes()
            shapes.add(tuple(tensor.shape))
    return shapes, sum(memory.values())


class Pictures(nn.Module):
    """Convolutions whose activations are some MiB, with a shortcut and a pool."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.third = nn.Conv2d(16, 512, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(16), nn.BatchNorm2d(16, affine=False)])

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 2)
        return self.third(F.relu(self.norms[1](self.second(x)) + x))


def gradients(model, x):
    """The result, the gradients, and the statistics of batch normalizations after a step."""
    result = torch.compile(model, backend="tenon", dynamic=False)(x)
    shapes_and_bytes = stashed(result, [*model.parameters(), x])
    result.square().mean().backward()
    values = [result.detach(), *(each.grad for each in model.parameters()), *model.buffers()]
    return values, shapes_and_bytes


def test_values_are_computed_again(monkeypatch):
    model, x = Pictures(), torch.randn(4, 3, 160, 160)
    twin = copy.deepcopy(model)
    monkeypatch.setattr(_joint._Joint, "compute_again", lambda self: None)
    expected, (_, all_bytes) = gradients(model, x)
    monkeypatch.undo()
    torch.compiler.reset()
    actual, (shapes, some_bytes) = gradients(twin, x)
    # The results of the first convolution (6.25 MiB), of the pool and of the second convolution
    # (1.56 MiB each) stay. Two ReLUs and the places of the pool (3.12 MiB) do not.
    assert 9.3 * MIB < some_bytes < 9.5 * MIB
    assert all_bytes - some_bytes >= (6.25 + 1.56 + 3.12) * MIB
    assert (4, 16, 160, 160) in shapes
    # What is computed again has the same bits.
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


@pytest.mark.parametrize("affine", [True, False])
def test_gradients_of_what_is_computed_again(affine):
    weight, shape = torch.randn(32, 3, 3, 3), (2, 3, 96, 96)
    bias, factor = (torch.randn(32), torch.rand(32) + 0.5) if affine else (None, None)

    def function(x, weight):
        x = F.batch_norm(F.conv2d(x, weight), None, None, factor, bias, training=True)
        return F.max_pool2d(F.gelu(x) * torch.sigmoid(x), 3, 2, 1)

    check_function(function, torch.randn(shape), weight, rtol=1e-3, atol=1e-3)


def test_normalized_values_are_computed_again(monkeypatch):
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(256), nn.Linear(256, 1024)

        def forward(self, x):
            return self.linear(self.norm(x.sin()))

    model, x = Layer(), torch.randn(1024, 256)
    twin = copy.deepcopy(model)
    monkeypatch.setattr(_joint._Joint, "compute_again", lambda self: None)
    expected, (_, all_bytes) = gradients(model, x)
    monkeypatch.undo()
    torch.compiler.reset()
    actual, (_, some_bytes) = gradients(twin, x)
    assert all_bytes - some_bytes >= MIB
    for a, e in zip(actual, expected, strict=True):
        assert torch.equal(a, e)


def test_operands_of_experts_are_computed_again():
    pytest.importorskip("transformers.integrations.moe")
    ends = torch.tensor([500, 1100, 1500, 2048])
    weights = torch.randn(4, 256, 1024, requires_grad=True)

    def function(x):
        return torch.ops.transformers.grouped_mm_fallback(x.sin().cos(), weights, ends)

    x = torch.randn(2048, 256, requires_grad=True)
    result = torch.compile(function, backend="tenon", dynamic=False)(x)
    shapes, size = stashed(result, [x, weights])
    assert size < MIB, shapes


def test_views_of_stashed_values_are_made_in_the_regions(monkeypatch):
    """Weights and activations are stashed as they are, once, and no view is left to PyTorch."""
    graphs = []
    module = importlib.import_module("tenon.torch._backend")
    partition = module.partition

    def noted(graph, settings):
        graphs.append(partition(graph, settings))
        return graphs[-1]

    monkeypatch.setattr(module, "partition", noted)
    model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 4))
    result = torch.compile(model, backend="tenon", dynamic=False)(torch.randn(3, 8))
    saved = result.grad_fn.saved_tensors
    assert sorted(tuple(each.shape) for each in saved) == [(3, 6), (3, 6), (3, 8), (4, 6), (6, 6)]
    assert len({each.data_ptr() for each in saved}) == 5
    result.sum().backward()
    assert len(graphs) == 2
    nodes = [node for graph in graphs for node in graph.graph.nodes if node.op == "call_function"]
    assert {str(node.target) for node in nodes} == {str(operator.getitem)}


def test_views_of_what_is_computed_again_from():
    """The backward graph reads a view first by itself, then to compute a value again."""

    def function(x, first, second, third):
        turned = (x @ first).t()
        return turned.sin() @ second, turned @ third

    shapes = [(2048, 64), (64, 256), (2048, 256), (2048, 256)]
    check_function(function, *map(torch.randn, shapes), rtol=1e-3, atol=1e-2)


def test_no_value_is_computed_again_where_that_takes_long():
    # Without products, there is no time in which it would not be noticed.
    x = torch.randn(64, 1 << 16, requires_grad=True)
    result = torch.compile(lambda x: (torch.sigmoid(x) * 3).sin(), backend="tenon")(x)
    shapes, size = stashed(result, [x])
    assert shapes == {tuple(x.shape)}
    assert size >= 16 * MIB


def test_results_are_stashed_as_they_are():
    """A result that the caller gets is in memory anyway."""
    x, weight = torch.randn(512, 1024), torch.randn(1024, 1024, requires_grad=True)

    def function(x, weight):
        y = torch.sigmoid(x @ weight)
        return y, (y @ weight).sum()

    y, total = torch.compile(function, backend="tenon", dynamic=False)(x, weight)
    memory = {each.untyped_storage().data_ptr() for each in total.grad_fn.saved_tensors}
    assert y.untyped_storage().data_ptr() in memory


def test_dropout_is_not_drawn_again():
    x = torch.randn(512, 1024)
    weight = torch.randn(1024, 1024) / 32

    def function(x, weight):
        return F.dropout(F.gelu(x @ weight), 0.5) @ weight

    check_function(function, x, weight, rtol=1e-4, atol=1e-4, left=DROPOUT)


def test_parts_of_a_tensor_are_stashed_without_the_others():
    x, weight = torch.randn(4, 64, 32), torch.randn(32, 96) / 6
    weight.requires_grad_()

    def function(x, weight):
        parts = (x @ weight).split(32, 2)
        q, k, v = (part.view(4, 64, 4, 8).transpose(1, 2) for part in parts)
        return F.scaled_dot_product_attention(q, k, v)

    result = torch.compile(function, backend="tenon", dynamic=False)(x, weight)
    _, size = stashed(result, [x, weight])
    part = 4 * 64 * 32 * 4
    assert size == 4 * part + 4 * 4 * 64 * 4  # Q, K, V, the result and its statistics
    check_function(function, x, weight.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_stays_whole(monkeypatch, is_causal):
    make_model, models = GraphBuilder.model, []

    def kept(self):
        models.append(make_model(self))
        return models[-1]

    monkeypatch.setattr(GraphBuilder, "model", kept)
    q, k, v = (torch.randn(1, 2, 512, 16, requires_grad=True) for _ in range(3))
    compiled = torch.compile(F.scaled_dot_product_attention, backend="tenon", dynamic=False)
    result = compiled(q, k, v, is_causal=is_causal)
    shapes, _ = stashed(result, [q, k, v])
    result.sum().backward()
    assert all(shape[-2:] != (512, 512) for shape in shapes)
    nodes = [node.op_type for each in models for node in onnx.load_from_string(each).graph.node]
    assert nodes.count("ScaledDotProductAttention") == 1
    assert nodes.count("ScaledDotProductAttentionGrad") == 1
    assert "Softmax" not in nodes


def test_gradients_of_weights_are_not_left_to_the_end(monkeypatch):
    """What they are computed from need not wait in memory until then."""
    make_model, models = GraphBuilder.model, []

    def kept(self):
        models.append(make_model(self))
        return models[-1]

    monkeypatch.setattr(GraphBuilder, "model", kept)
    layers = [each for _ in range(4) for each in (nn.Linear(8, 8), nn.ReLU())]
    torch.compile(nn.Sequential(*layers), backend="tenon")(torch.randn(4, 8)).sum().backward()
    nodes = [node.op_type for node in onnx.load_from_string(models[-1]).graph.node]
    products = [i for i, op_type in enumerate(nodes) if op_type == "FusedMatMul"]
    activations = [i for i, op_type in enumerate(nodes) if op_type == "ReluGrad"]
    assert len(activations) == len(products) == 4
    assert all(a < p for a, p in zip(activations, products, strict=True))
    assert all(p < a for p, a in zip(products, activations[1:], strict=False))
