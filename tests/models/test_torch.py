"""PyTorch modules through both exporters of torch.onnx."""

import contextlib
import io
import logging
import warnings

import numpy as np
import onnx
import pytest
from converted import check_model

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812


class Function(nn.Module):
    """A function of tensors."""

    def __init__(self, function: object, *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs: torch.Tensor) -> object:
        return self.function(*self.parts, *inputs)


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, groups=2),
            nn.GroupNorm(2, channels),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(x + self.body(x))


class Decoder(nn.Module):
    """A causal block of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(31, 24)
        self.norm = nn.LayerNorm(24)
        self.qkv = nn.Linear(24, 72)
        self.out = nn.Linear(24, 31)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        q, k, v = (
            t.reshape(*ids.shape, 3, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + y.transpose(1, 2).flatten(2))


class Detector(nn.Module):
    """Boxes and scores as detection heads make them, the best first."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scores = x[..., 4:].softmax(-1)
        best, classes = scores.max(-1)
        top, order = best.topk(5, dim=1)
        boxes = x[..., :4].gather(1, order[..., None].expand(-1, -1, 4))
        corners = torch.cat([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2]], -1)
        return top, classes.gather(1, order), corners


def x(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def ids(*shape: int, below: int = 31) -> torch.Tensor:
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(5))


def sequential(*parts: nn.Module) -> nn.Module:
    return nn.Sequential(*parts)


MODULES = {
    "linear": (lambda: sequential(nn.Linear(7, 5), nn.GELU(), nn.Linear(5, 3)), [x(4, 7)]),
    "conv": (
        lambda: sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 8, 3, groups=8)
        ),
        [x(2, 3, 17, 15)],
    ),
    "residual": (lambda: Residual(8), [x(1, 8, 9, 9)]),
    "conv_1d": (
        lambda: sequential(
            nn.Conv1d(3, 6, 5, dilation=2), nn.ELU(), nn.ConvTranspose1d(6, 2, 4, 2)
        ),
        [x(2, 3, 30)],
    ),
    "conv_3d": (
        lambda: sequential(nn.Conv3d(2, 3, 3), nn.Mish(), nn.MaxPool3d(2)),
        [x(1, 2, 8, 9, 8)],
    ),
    "conv_transpose": (
        lambda: sequential(
            nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), nn.InstanceNorm2d(6), nn.LeakyReLU()
        ),
        [x(1, 4, 6, 7)],
    ),
    "pools": (
        lambda: Function(
            lambda x: (
                F.max_pool2d(x, 3, 2, 1),
                F.avg_pool2d(x, 2, ceil_mode=True),
                F.adaptive_avg_pool2d(x, 1),
                F.adaptive_max_pool2d(x, 1),
                F.lp_pool2d(x, 2, 2),
            )
        ),
        [x(2, 3, 11, 13)],
    ),
    "pads": (
        lambda: Function(
            lambda x: (
                F.pad(x, (1, 2, 0, 1), "reflect"),
                F.pad(x, (1, 2, 0, 1), "replicate"),
                F.pad(x, (1, -1), value=3.0),
                F.pad(x, (2, 1, 1, 1), "circular"),
            )
        ),
        [x(1, 2, 5, 6)],
    ),
    "resize": (
        lambda: Function(
            lambda x: (
                F.interpolate(x, scale_factor=2, mode="nearest"),
                F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False),
                F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True),
                F.interpolate(x, scale_factor=1.5, mode="bicubic"),
                F.pixel_shuffle(x, 2),
                F.pixel_unshuffle(x, 2),
            )
        ),
        [x(1, 4, 6, 6)],
    ),
    "grid_sample": (
        lambda: Function(
            lambda x, g: (
                F.grid_sample(x, g, "bilinear", "zeros", align_corners=False),
                F.grid_sample(x, g, "nearest", "border", align_corners=True),
                F.grid_sample(x, g, "bicubic", "reflection", align_corners=False),
            )
        ),
        [x(1, 2, 5, 6), x(1, 4, 4, 2)],
    ),
    "norms": (
        lambda: Function(
            lambda a, b, x: (a(x), b(x), F.normalize(x), torch.linalg.vector_norm(x, dim=1)),
            nn.LayerNorm((6, 5)),
            nn.LocalResponseNorm(3),
        ),
        [x(2, 6, 6, 5)],
    ),
    "activations": (
        lambda: Function(
            lambda x: (
                F.celu(x),
                F.selu(x),
                F.hardswish(x),
                F.hardsigmoid(x),
                F.hardtanh(x),
                F.softplus(x),
                F.softsign(x),
                F.logsigmoid(x),
                F.gelu(x, approximate="tanh"),
                F.glu(x),
                F.softshrink(x),
                F.hardshrink(x),
                F.tanhshrink(x),
                F.log_softmax(x, 1),
                F.softmin(x, -1),
            )
        ),
        [x(3, 8)],
    ),
    "prelu": (lambda: nn.PReLU(4), [x(2, 4, 3)]),
    "lstm": (lambda: nn.LSTM(5, 7, 2, bidirectional=True), [x(9, 3, 5)]),
    "lstm_batch_first": (lambda: nn.LSTM(5, 7, batch_first=True), [x(3, 9, 5)]),
    "lstm_state": (
        lambda: Function(lambda m, x, h, c: m(x, (h, c)), nn.LSTM(5, 7)),
        [x(4, 2, 5), x(1, 2, 7), x(1, 2, 7)],
    ),
    "gru": (lambda: nn.GRU(5, 6, 2, bidirectional=True), [x(8, 2, 5)]),
    "rnn": (lambda: nn.RNN(4, 6, nonlinearity="relu"), [x(6, 2, 4)]),
    "lstm_cell": (lambda: nn.LSTMCell(5, 6), [x(3, 5)]),
    "embedding_bag": (lambda: nn.EmbeddingBag(31, 6, mode="mean"), [ids(3, 4)]),
    "multi_head": (
        lambda: Function(lambda m, q, k: m(q, k, k), nn.MultiheadAttention(12, 3)),
        [x(5, 2, 12), x(7, 2, 12)],
    ),
    "encoder": (
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(12, 3, 20, batch_first=True), 2, enable_nested_tensor=False
        ),
        [x(2, 6, 12)],
    ),
    "transformer": (
        lambda: nn.Transformer(12, 3, 1, 1, 16, batch_first=True),
        [x(2, 5, 12), x(2, 4, 12)],
    ),
    "decoder": (Decoder, [ids(2, 6)]),
    "sdpa": (
        lambda: Function(
            lambda q, k, v, m: (
                F.scaled_dot_product_attention(q, k, v),
                F.scaled_dot_product_attention(q, k, v, attn_mask=m),
                F.scaled_dot_product_attention(q, k, v, attn_mask=m > 0, scale=0.3),
            )
        ),
        [x(2, 3, 5, 8), x(2, 3, 6, 8), x(2, 3, 6, 8), x(5, 6).abs() + 0.1],
    ),
    "detector": (Detector, [x(2, 9, 10)]),
    "indexing": (
        lambda: Function(
            lambda x, i: (
                x[:, 1:-1:2],
                x[..., None, 2],
                x[i],
                x[i, i],
                torch.where(x > 0, x, -1.0),
                x.masked_fill(x < 0, 9.0),
                x.flip(1),
                x.roll(2, 1),
                torch.index_select(x, 1, i),
                x.unfold(1, 2, 1),
                x.repeat(1, 2),
                x.tile(2, 1),
                x.repeat_interleave(2, 0),
            )
        ),
        [x(5, 6), ids(4, below=5)],
    ),
    "scatter": (
        lambda: Function(
            lambda x, i: (
                x.scatter(1, i, 2.0),
                x.scatter_add(1, i, x),
                x.index_add(0, i[:, 0], x[:5]),
                torch.zeros(6, 6).index_put((i[:, 0], i[:, 1]), x[:, 0]),
                x.scatter_reduce(1, i, x[:, :3], "amax"),
            )
        ),
        [x(5, 6), torch.stack([torch.randperm(5) for _ in range(3)], 1)],
    ),
    "reductions": (
        lambda: Function(
            lambda x: (
                x.sum(1),
                x.mean((0, 2), keepdim=True),
                x.amax(1),
                x.argmin(2),
                x.prod(1),
                x.logsumexp(2),
                x.std(1),
                x.var((0, 1), unbiased=False),
                x.cumsum(1),
                x.norm(dim=1),
                (x > 0).any(1),
                (x > -9).all(1),
                x.sort(1)[0],
                x.max(),
            )
        ),
        [x(3, 4, 5)],
    ),
    "arithmetic": (
        lambda: Function(
            lambda a, b: (
                a // b,
                a % b,
                a.fmod(b),
                torch.atan2(a, b),
                a.pow(2),
                a.abs().sqrt(),
                a.abs().rsqrt(),
                torch.erf(a),
                a.round(),
                a.sign(),
                a.sigmoid(),
                torch.expm1(a),
                torch.log1p(a.abs()),
                a.clamp(-0.5, 0.5),
                torch.lerp(a, b, 0.3),
                torch.addcmul(a, a, b),
                a.isnan(),
                torch.maximum(a, b),
                torch.logical_xor(a > 0, b > 0),
                torch.hypot(a, b),
            )
        ),
        [x(4, 5), x(4, 5) + 2],
    ),
    "integers": (
        lambda: Function(
            lambda a, b: (a // b, a % b, a & b, a | b, a ^ b, a << 2, a >> 1, ~a, a.float() / b)
        ),
        [ids(3, 4) - 12, ids(3, 4) + 1],
    ),
    "linear_algebra": (
        lambda: Function(
            lambda a, b: (
                a @ b,
                torch.einsum("bij,bjk->bik", a, b),
                torch.einsum("bij,bik->jk", a, a),
                torch.baddbmm(a @ b, a, b, beta=0.5),
                torch.cdist(a, a),
                a.tril(1),
                b.triu(-1),
                torch.linalg.det(a @ a.transpose(1, 2)),
            )
        ),
        [x(2, 3, 4), x(2, 4, 5)],
    ),
    "fft": (
        lambda: Function(
            lambda x: torch.view_as_real(
                torch.stft(x, 16, 8, window=torch.ones(16), return_complex=True)
            )
        ),
        [x(2, 64)],
    ),
    "one_hot": (lambda: Function(lambda i: F.one_hot(i, 31)), [ids(2, 5)]),
    "arange": (
        lambda: Function(
            lambda x: (
                torch.arange(x.shape[1]) + x,
                torch.full_like(x, 3),
                torch.eye(4) @ x[:4],
                torch.linspace(0, 1, 6) * x,
                torch.meshgrid(x[0], x[1], indexing="ij")[0],
            )
        ),
        [x(5, 6)],
    ),
    "bucketize": (
        lambda: Function(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]))),
        [x(3, 4)],
    ),
    "unique": (
        lambda: Function(lambda i: torch.unique(i, sorted=True, return_inverse=True)),
        [ids(12, below=5)],
    ),
    "nonzero": (lambda: Function(lambda x: x.nonzero()), [x(3, 4).relu()]),
    "half": (lambda: nn.Linear(6, 4).half(), [x(3, 6).half()]),
    "double": (lambda: sequential(nn.Linear(6, 4), nn.Tanh()).double(), [x(3, 6).double()]),
    "weight_norm": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3)),
        [x(1, 3, 9)],
    ),
}


class Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


@torch.jit.script
def powers(x: torch.Tensor, times: int) -> torch.Tensor:
    for i in range(times):
        x = torch.cat([x, x[-1:] * 0.5 + i]) if i % 2 == 0 else x + 1
    return x


@torch.jit.script
def until_small(x: torch.Tensor) -> torch.Tensor:
    while bool(x.abs().max() > 0.01):
        x = x * 0.5
    return x


def export(module: nn.Module, inputs: list, dynamo: bool, **options: object) -> bytes:
    logging.disable(logging.WARNING)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            into = io.BytesIO()
            if dynamo:
                program = torch.onnx.export(module, tuple(inputs), dynamo=True, **options)
                program.save(into)
            else:
                torch.onnx.export(module, tuple(inputs), into, dynamo=False, **options)
            return into.getvalue()
    finally:
        logging.disable(logging.NOTSET)


def check(content: bytes, inputs: list, expected: object = None) -> None:
    names = [i.name for i in onnx.load_from_string(content).graph.input]
    feeds = {name: t.numpy() for name, t in zip(names, inputs, strict=True)}
    atol = 5e-3 if any(t.dtype == torch.float16 for t in inputs) else 2e-5
    try:
        actual = check_model(content, feeds, atol, 1e-3 if atol > 1e-3 else 1e-4)
    except Exception as error:
        if type(error).__module__.startswith("onnxruntime"):
            pytest.skip(f"onnxruntime does not run it: {error}"[:200])
        raise
    if expected is None:
        return
    flat = torch.utils._pytree.tree_leaves(expected)
    assert len(actual) == len(flat)
    for value, tensor in zip(actual, flat, strict=True):
        np.testing.assert_allclose(value, tensor.detach().numpy(), 1e-3, max(atol, 1e-4))


@pytest.mark.parametrize("dynamo", [True, False], ids=["dynamo", "script"])
@pytest.mark.parametrize("name", MODULES)
def test_module(name: str, dynamo: bool) -> None:
    make, inputs = MODULES[name]
    torch.manual_seed(0)
    module = make().eval()
    try:
        content = export(module, inputs, dynamo)
    except Exception as error:
        pytest.skip(f"torch does not export it: {type(error).__name__}: {error}"[:200])
    check(content, inputs, module(*inputs))


@pytest.mark.parametrize("opset", [9, 11, 13, 15, 17])
@pytest.mark.parametrize("name", ["conv", "resize", "lstm", "gru", "multi_head", "decoder", "pads"])
def test_old_opset(name: str, opset: int) -> None:
    make, inputs = MODULES[name]
    torch.manual_seed(0)
    module = make().eval()
    try:
        content = export(module, inputs, False, opset_version=opset)
    except Exception as error:
        pytest.skip(f"torch does not export it: {type(error).__name__}: {error}"[:200])
    check(content, inputs)


@pytest.mark.parametrize("name", ["linear", "lstm", "encoder", "decoder", "residual", "detector"])
def test_dynamic_batch(name: str) -> None:
    make, inputs = MODULES[name]
    torch.manual_seed(0)
    module = make().eval()
    axis = 1 if name == "lstm" else 0
    two = [torch.cat([t, t], axis) for t in inputs]
    try:
        shapes = tuple({axis: torch.export.Dim("batch")} for _ in inputs)
        content = export(module, two, True, dynamic_shapes=shapes)
    except Exception as error:
        pytest.skip(f"torch does not export it: {type(error).__name__}: {error}"[:200])
    check(content, two, module(*two))
    three = [torch.cat([t, t, t], axis) for t in inputs]
    check(content, three, module(*three))


def test_branch() -> None:
    for value in (x(3, 4).abs(), -x(3, 4).abs()):
        check(export(Branch(), [value], True), [value], Branch()(value))


def test_scripted_loops() -> None:
    value = x(2, 3)

    class Times(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return powers(x, 5) + until_small(x).sum()

    check(export(torch.jit.trace(Times(), value), [value], False), [value], Times()(value))
