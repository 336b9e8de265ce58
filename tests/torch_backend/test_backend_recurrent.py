"""LSTM and GRU through torch.compile's backend, as whole operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from comparison import check_function  # noqa: E402
from tenon.torch import _recurrent  # noqa: E402
from torch import nn  # noqa: E402

LAYERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without bias": {"bias": False},
    "in both directions": {"bidirectional": True},
    "of two layers": {"num_layers": 2, "bidirectional": True},
    "batch first": {"batch_first": True},
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_layers(kind: type, name: str) -> None:
    torch.manual_seed(0)
    has_states = name in ("in both directions", "batch first")
    options = LAYERS[name]
    layer = kind(4, 5, **options)
    parameters = dict(layer.named_parameters())
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [torch.randn(count, 3, 5) for _ in range(2 if kind is nn.LSTM else 1)]
    x = torch.randn((3, 6, 4) if options.get("batch_first") else (6, 3, 4))

    def function(x: Any, *rest: Any) -> Any:
        given, weights = rest[: len(states)], rest[len(states) :]
        start: Any = tuple(given) if kind is nn.LSTM else given[0]
        called = (x, start) if has_states else (x,)
        bound = dict(zip(parameters, weights, strict=True))
        y, last = torch.func.functional_call(layer, bound, called)
        unused = 0 if has_states else sum(each.sum() for each in given)
        return (y + unused, *(last if kind is nn.LSTM else [last]))

    with torch._dynamo.config.patch(allow_rnn=True):
        check_function(function, x, *states, *parameters.values())


def test_one_operator_for_each_direction_pair() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def compiler(module: torch.fx.GraphModule, _: Any) -> Any:
        _recurrent.keep_layers_whole(module)
        graphs.append(module)
        return module.forward

    layer = nn.LSTM(4, 5, 2, bidirectional=True)
    with torch._dynamo.config.patch(allow_rnn=True):
        torch.compile(layer, backend=compiler)(torch.randn(6, 3, 4))
    targets = [node.target for node in graphs[0].graph.nodes]
    assert _recurrent._lstm_layers in targets
    assert torch.lstm not in targets


def test_dropout_between_layers_is_left_to_pytorch() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(4, 5, 2, dropout=0.5)
    x = torch.randn(6, 3, 4)
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(layer, backend="tenon")
        y, _ = compiled(x)
        layer.eval()
        expected, _ = layer(x)
        torch.testing.assert_close(compiled(x)[0], expected)
    y.sum().backward()
    assert (y - expected).abs().max() > 1e-3
    assert layer.weight_ih_l0.grad is not None


@pytest.mark.parametrize("layer", [nn.LSTM(4, 5, proj_size=2), nn.LSTM(4, 5).double()])
def test_others_are_as_before(layer: nn.Module) -> None:
    dtype = next(layer.parameters()).dtype
    x = torch.randn(3, 2, 4, dtype=dtype)
    with torch._dynamo.config.patch(allow_rnn=True):
        actual = torch.compile(layer, backend="tenon")(x)
    torch.testing.assert_close(actual, layer(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_the_operators_by_themselves(kind: type) -> None:
    """What runs where a node is in no region."""
    torch.manual_seed(0)
    layer = kind(4, 5, 2, bidirectional=True)
    x = torch.randn(6, 3, 4, requires_grad=True)
    weights = list(layer.parameters())
    states = [torch.zeros(4, 3, 5) for _ in range(2 if kind is nn.LSTM else 1)]
    whole = _recurrent._lstm_layers if kind is nn.LSTM else _recurrent._gru_layers
    start = states if kind is nn.LSTM else states[0]
    actual = whole(x, start, weights, True, 2, 0.0, True, True, False)
    expected = layer(x)
    torch.testing.assert_close(actual[0], expected[0])
    slopes = torch.autograd.grad(actual[0].square().sum(), [x, *weights])
    wanted = torch.autograd.grad(expected[0].square().sum(), [x, *weights])
    for got, want in zip(slopes, wanted, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
