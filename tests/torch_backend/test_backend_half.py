"""torch.compile with the backend, in 16 bits: autocast, and models of such numbers.

PyTorch rounds every value. Tenon rounds what is multiplied in bfloat16, and what leaves a region.
Both are compared with the same in float64: Tenon may be as far from it as PyTorch, and a bit more.
"""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

import tenon.torch  # noqa: E402
from networks import Block, convolutional, perceptron, residual  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

BF16 = torch.bfloat16


def compiled(function):
    torch.compiler.reset()
    return torch.compile(function, backend="tenon", dynamic=False)


def distance(actual, exact):
    """The difference, relative to the size of the exact values."""
    return ((actual.double() - exact).norm() / (exact.norm() + 1e-12)).item()


def gradients(model, function, x):
    model.zero_grad()
    y = function(x)
    torch.manual_seed(5)
    y.backward(torch.randn(y.shape).to(y.dtype))
    return [y.detach(), *(each.grad.clone() for each in model.parameters())]


def check(model, x, dtype, cast):
    """Outputs and gradients of the model, under autocast to the type or as it is.

    cast  whether the model is of float32 and runs under autocast
    """
    exact_model = copy.deepcopy(model).double()
    exact_input = x.double() if x.is_floating_point() else x
    exact = gradients(exact_model, exact_model, exact_input)

    def under_autocast(function):
        def run(x):
            with torch.autocast("cpu", dtype, enabled=cast):
                return function(x)

        return run

    expected = gradients(model, under_autocast(model), x)
    actual = gradients(model, under_autocast(compiled(model)), x)
    for a, e, exactly in zip(actual, expected, exact, strict=True):
        assert a.dtype == e.dtype
        assert a.shape == e.shape
        assert distance(a, exactly) <= 1.25 * distance(e, exactly) + 2e-3
    return actual


def left(model, x, dtype, cast):
    """The operators that stay in PyTorch."""

    def run(x):
        with torch.autocast("cpu", dtype, enabled=cast):
            return model(x)

    return sorted(tenon.torch.explain(run, x).left)


def strided():
    """Convolutions that Winograd's filtering does not serve."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 7, 2, 3),
        nn.ReLU(),
        nn.Conv2d(32, 48, 3, 2, 1, bias=False),
        nn.ReLU(),
        nn.Conv2d(48, 64, 1),
        nn.Conv2d(64, 20, 1, 2),
        nn.Flatten(),
        nn.Linear(320, 7),
    )


MODELS = {
    "perceptron": (perceptron, lambda: torch.randn(32, 12)),
    "convolutional": (convolutional, lambda: torch.randn(4, 3, 16, 16)),
    # So many pixels that it matters little where a ReLU's input is rounded across zero.
    "residual": (residual, lambda: torch.randn(8, 3, 64, 64)),
    "strided": (strided, lambda: torch.randn(3, 3, 32, 32)),
    "BERT": (lambda: Block(0.0, False), lambda: torch.randint(0, 20, (3, 20))),
    "GPT": (lambda: Block(0.0, True), lambda: torch.randint(0, 20, (3, 20))),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [BF16, torch.float16])
@pytest.mark.parametrize("cast", [True, False])
def test_models_are_as_exact_as_in_pytorch(name, dtype, cast):
    make, make_input = MODELS[name]
    torch.manual_seed(3)
    model, x = make().eval(), make_input()
    if not cast:
        model = model.to(dtype)
        x = x.to(dtype) if x.is_floating_point() else x
    check(model, x, dtype, cast)
    assert left(model, x, dtype, cast) == []


@pytest.mark.skipif(
    not torch.cpu._is_avx512_bf16_supported(), reason="no products of bfloat16 here"
)
def test_products_are_of_bfloat16():
    """1 + 2^-9 is rounded to 1 before the product, whose sum is not rounded."""
    x, w = torch.full((32, 64), 1 + 2.0**-9), torch.ones(64, 32)

    def multiply(x, w):
        with torch.autocast("cpu", BF16):
            return (x @ w).float()

    expected = torch.full((32, 32), 64.0)
    assert torch.equal(multiply(x, w), expected)
    assert torch.equal(compiled(multiply)(x, w), expected)  # 64.125 in float32


@pytest.mark.skipif(
    not torch.cpu._is_avx512_bf16_supported(), reason="no products of bfloat16 here"
)
def test_convolutions_and_their_gradients_are_of_bfloat16():
    x = torch.full((2, 16, 17, 17), 1 + 2.0**-9, requires_grad=True)
    w = torch.full((16, 16, 3, 3), 1 + 2.0**-9, requires_grad=True)

    def convolve(x, w):
        with torch.autocast("cpu", BF16):
            return F.conv2d(x, w, stride=2, padding=1)

    def results(function):
        y = function(x, w)
        return [y.float(), *torch.autograd.grad(y, [x, w], torch.ones_like(y))]

    # Sums of ones, which float32 numbers that are not rounded would exceed.
    for a, e in zip(results(compiled(convolve)), results(convolve), strict=True):
        assert torch.equal(a, e)
        assert torch.equal(a, a.round())


def test_no_grad_and_inputs_that_are_not_contiguous():
    x, w = torch.randn(40, 24).to(BF16).t(), torch.randn(24, 40).to(BF16)

    def function(x, w):
        return F.gelu(x @ w.t()) + x.sum(1, keepdim=True)

    with torch.no_grad():
        actual, expected = compiled(function)(x, w), function(x, w)
    assert actual.dtype == BF16
    exact = function(x.double(), w.double())
    assert distance(actual, exact) <= 1.25 * distance(expected, exact) + 2e-3


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_have_the_types_of_autocast(kind):
    torch.manual_seed(4)
    model, x = kind(12, 16, 2, batch_first=True), torch.randn(3, 5, 12)
    exact = copy.deepcopy(model).double()(x.double())[0]
    # oneDNN has an LSTM of bfloat16 for processors with AVX-512 alone. On others, PyTorch fails if
    # oneDNN is on, and else has other types.
    has_types = kind is nn.GRU or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with torch._dynamo.config.patch(allow_rnn=True), torch.autocast("cpu", BF16):
        with torch.backends.mkldnn.flags(enabled=has_types):
            expected, expected_states = model(x)
        actual, states = compiled(model)(x)
    assert actual.dtype == (expected.dtype if has_types else BF16)
    for a, e in zip(states, expected_states, strict=True):
        assert a.dtype == (e.dtype if has_types else BF16)
    assert distance(actual, exact) <= 1.25 * distance(expected, exact) + 2e-3


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.float(),
        lambda x: x * 2 + 1,
        lambda x: x.softmax(-1),
        lambda x: x.relu().cumsum(0),
        lambda x: torch.where(x > 0, x, -x),
        lambda x: x.amax(1),
        lambda x: x[:, 1:3],
        lambda x: x.t().contiguous(),
        lambda x: x > 0.5,
        lambda x: torch.cat([x, x.neg()]),
        lambda x: x.masked_fill(x < 0, float("-inf")).exp(),
        lambda x: x.to(torch.int32),
    ],
)
@pytest.mark.parametrize("dtype", [BF16, torch.float16])
def test_single_operators_round_once(function, dtype):
    """Each equals the float32 result, rounded; special numbers pass through."""
    x = torch.randn(6, 5).to(dtype)
    x[0, 0], x[1, 1], x[2, 2] = torch.inf, -torch.inf, 0
    expected = function(x)
    wide = function(x.float())
    wide = wide.to(expected.dtype)
    actual = compiled(function)(x)
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, wide, rtol=2**-8, atol=0, equal_nan=True)


def test_training_in_bfloat16_falls_like_in_pytorch():
    torch.manual_seed(1)
    model = Block(0.0, True)
    twin = copy.deepcopy(model)
    tokens = torch.randint(0, 20, (4, 20))
    losses = []
    for each, forward in ((model, model), (twin, compiled(twin))):
        optimizer = torch.optim.AdamW(each.parameters(), lr=3e-3)
        own = []
        for _ in range(15):
            optimizer.zero_grad()
            with torch.autocast("cpu", BF16):
                y = forward(tokens)
                loss = F.cross_entropy(
                    y.flatten(0, -2), tokens.flatten()[: y.flatten(0, -2).shape[0]]
                )
            loss.backward()
            optimizer.step()
            own.append(loss.item())
        losses.append(own)
    torch.testing.assert_close(
        torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=2e-2, atol=1e-2
    )
    assert losses[1][-1] < 0.8 * losses[1][0]


def test_statistics_of_batch_normalization_stay_in_float32():
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    twin = copy.deepcopy(model)
    x = torch.randn(4, 3, 12, 12)
    with torch.autocast("cpu", BF16):
        model(x)
        compiled(twin)(x)
    for name in ("running_mean", "running_var"):
        actual, expected = getattr(twin[1], name), getattr(model[1], name)
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-3)
