"""Each rule, forward and backward, beside PyTorch without compilation."""

import contextlib
import importlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from comparison import check_function  # noqa: E402
from tenon.torch import _lowering  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

with contextlib.suppress(ImportError):
    import transformers.integrations.moe  # noqa: F401

INTEGERS = torch.int64
# Operators of the package transformers, if it is there.
HAS_EXPERTS = hasattr(torch.ops.transformers, "grouped_mm_fallback")


def floats(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def inside(*shape, low=-0.9, high=0.9):
    """Numbers between two."""
    generator = torch.Generator().manual_seed(1)
    return low + (high - low) * torch.rand(shape, generator=generator)


def integers(*shape, low=-9, high=10, dtype=INTEGERS):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(2), dtype=dtype)


def small_integers(*shape):
    return integers(*shape, low=-2, high=3, dtype=torch.bfloat16)


def truths(*shape, seed=3):
    return floats(*shape, seed=seed) > 0


def changed_in_part(x):
    y = 2 * x
    y[1:].mul_(x[:-1])
    return y * y


X = floats(3, 5, 7)
HOLES = floats(3, 40).index_fill(1, torch.tensor([7]), torch.nan)
ROW = floats(7, seed=1)
ANY = [X, floats(1), floats(40, 33)]

# Both sides of where series begin, but no poles of gradients.
GAMMA = torch.cat([inside(90, low=-6, high=20), torch.tensor([0.5, 1, 2, 3, 16, 1e-6, 1e6])])
FAR = torch.tensor([torch.inf, torch.nan, -torch.inf, 0.0, 1e-30, 1e4, -1e-3, 8.5, -8.5])

# The function, and the inputs of each call.
UNARY = {
    "acos": (torch.acos, [inside(4, 9)]),
    "acosh": (torch.acosh, [inside(4, 9, low=1.1, high=5)]),
    "asin": (torch.asin, [inside(4, 9)]),
    "asinh": (torch.asinh, ANY),
    "atan": (torch.atan, ANY),
    "atanh": (torch.atanh, [inside(4, 9)]),
    "ceil": (torch.ceil, ANY),
    "cos": (torch.cos, ANY),
    "cosh": (torch.cosh, ANY),
    "erf": (torch.erf, ANY),
    "exp": (torch.exp, ANY),
    "floor": (torch.floor, ANY),
    "trunc": (torch.trunc, ANY),
    "round": (torch.round, [*ANY, torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])]),
    "log": (torch.log, [inside(4, 9, low=0.1, high=5)]),
    "log2": (torch.log2, [inside(4, 9, low=0.1, high=5)]),
    "log10": (torch.log10, [inside(4, 9, low=0.1, high=5)]),
    "log1p": (torch.log1p, [inside(4, 9), 1e-6 * inside(50), torch.tensor([0.0, torch.inf, -1])]),
    "reciprocal": (torch.reciprocal, [inside(4, 9, low=0.3, high=3)]),
    "rsqrt": (torch.rsqrt, [inside(4, 9, low=0.3, high=3)]),
    "sqrt": (torch.sqrt, [inside(4, 9, low=0.3, high=3)]),
    "sin": (torch.sin, ANY),
    "sinh": (torch.sinh, ANY),
    "tan": (torch.tan, [inside(4, 9)]),
    "abs": (torch.abs, [*ANY, integers(9)]),
    "neg": (torch.neg, [*ANY, integers(9)]),
    "sign": (torch.sign, [*ANY, integers(9)]),
    "expm1": (torch.expm1, [inside(4, 9), 1e-6 * inside(50), torch.tensor([0.0, torch.inf, -50])]),
    "relu": (torch.relu, ANY),
    "sigmoid": (torch.sigmoid, ANY),
    "tanh": (torch.tanh, ANY),
    "gelu": (F.gelu, ANY),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), ANY),
    "silu": (F.silu, ANY),
    "leaky_relu": (F.leaky_relu, ANY),
    "leaky_relu_slope": (lambda x: F.leaky_relu(x, 0.3), ANY),
    "elu": (F.elu, ANY),
    "hardtanh": (F.hardtanh, ANY),
    "threshold": (lambda x: F.threshold(x, 0.4, -3.0), ANY),
    "isnan": (torch.isnan, [torch.tensor([0.0, torch.nan, torch.inf])]),
    "isinf": (torch.isinf, [torch.tensor([0.0, torch.nan, torch.inf, -torch.inf])]),
    "logical_not": (torch.logical_not, [truths(9)]),
    "to_integer": (lambda x: (9 * x).to(torch.int64), ANY),
    "to_double": (lambda x: x.double() * 2, ANY),
    "clamp": (lambda x: x.clamp(-0.5, 0.7), [*ANY, torch.tensor([torch.nan, 9.0])]),
    "exp2": (torch.exp2, [floats(4, 5)]),
    "clamp_min": (lambda x: x.clamp_min(0.1), ANY),
    "clamp_max": (lambda x: torch.ops.aten.clamp_max(x, 0.1), ANY),
    "softmax": (lambda x: x.softmax(-1), [X, floats(1), floats(6, 1)]),
    "softmax_first": (lambda x: x.softmax(0), [X]),
    "log_softmax": (lambda x: x.log_softmax(1), [X]),
    "log_softmax_of_one": (lambda x: x.log_softmax(0), [floats(1)]),
    "pow_2": (lambda x: x**2, [*ANY]),
    "pow_3": (lambda x: x**3, [*ANY]),
    "pow_half": (lambda x: x**0.5, [inside(9, low=0.2, high=2)]),
    "pow_base": (lambda x: 2**x, ANY),
    "dropout": (lambda x: F.dropout(x, 0.3), ANY),
    "dropout_permuted": (
        lambda x: F.dropout((2 * x).permute(2, 0, 1), 0.3),
        [X, X.transpose(0, 1), floats(2, 4, 3, 5).to(memory_format=torch.channels_last)[0]],
    ),
    "constant": (lambda x: x * torch.tensor([0.5]), ANY),
    "softplus": (F.softplus, ANY),
    "hardswish": (F.hardswish, ANY),
    "mish": (F.mish, ANY),
    "logsigmoid": (F.logsigmoid, ANY),
    "clone": (lambda x: x.clone() * 1, ANY),
    "changed_in_part": (changed_in_part, [X]),
    "lgamma": (torch.lgamma, [GAMMA, FAR]),
    "digamma": (torch.digamma, [GAMMA, FAR[FAR.isfinite()]]),
    "erfc": (torch.erfc, [*ANY, FAR]),
    "erfcx": (lambda x: torch.special.erfcx(x.detach()), [*ANY, FAR[FAR > -9]]),
    "log_ndtr": (torch.special.log_ndtr, [*ANY, 5 * X]),
    "int_pow": (lambda x: (x**2, x**3), [integers(9), integers(9, dtype=torch.int32)]),
    "sgn": (torch.sgn, ANY),
    "eye": (lambda x: x + torch.eye(3, 4) * torch.eye(4)[0], [floats(3, 4)]),
    "triangles": (
        lambda x: (
            x[torch.tril_indices(4, 5)[0], torch.tril_indices(4, 5)[1]],
            x[tuple(torch.triu_indices(4, 5, 1))],
        ),
        [floats(4, 5)],
    ),
    "repeated": (
        lambda x: x.repeat_interleave(torch.tensor([2, 0, 3, 0]), 0, output_size=5),
        [floats(4, 3)],
    ),
}
BINARY = {
    "add": (torch.add, [(X, ROW), (X, X), (ROW, X), (integers(4), integers(4))]),
    "add_alpha": (lambda a, b: torch.add(a, b, alpha=0.3), [(X, ROW)]),
    "add_types": (torch.add, [(X, integers(7)), (integers(7, dtype=torch.int32), integers(7))]),
    "add_number": (lambda a: a + 2.5, [(X,), (integers(5),)]),
    "sub": (torch.sub, [(X, ROW), (integers(4), integers(4))]),
    "rsub": (lambda a: 3 - a, [(X,), (integers(5),)]),
    "mul": (torch.mul, [(X, ROW), (X, floats(5, 1)), (integers(4), integers(4))]),
    "div": (torch.div, [(X, 2 + ROW.abs()), (integers(4), 1 + integers(4, low=0))]),
    "div_number": (lambda a: a / 7, [(X,), (integers(5),)]),
    "div_floor": (lambda a: torch.div(a, 0.3, rounding_mode="floor"), [(X,)]),
    "div_trunc": (lambda a: torch.div(a, 0.3, rounding_mode="trunc"), [(X,)]),
    "div_integers": (
        lambda a, b: (
            torch.div(a, b, rounding_mode="floor"),
            torch.div(a, b, rounding_mode="trunc"),
            torch.div(a, -3, rounding_mode="floor"),
        ),
        [(integers(50), 1 + integers(50, low=0)), (integers(50), -1 - integers(50, low=0))],
    ),
    "remainder": (
        torch.remainder,
        [(integers(50), 1 + integers(50, low=0)), (X, 0.3 + ROW.abs()), (X, -0.3 - ROW.abs())],
    ),
    "truths": (
        lambda a, b: (a * b, torch.maximum(a, b), torch.minimum(a, b)),
        [(truths(4, 5), truths(5))],
    ),
    "clamp_by_tensors": (
        lambda x, low: (torch.clamp(x, low, low + 1), torch.clamp(x, min=low), x.clamp(max=low)),
        [(X, ROW), (integers(4, 5), integers(5))],
    ),
    "fmod": (torch.fmod, [(integers(50), 1 + integers(50, low=0)), (X, 2 + ROW.abs())]),
    "fmod_number": (lambda a: torch.fmod(a, 2), [(X,), (integers(50),)]),
    "remainder_number": (lambda a: a % -4, [(integers(50),)]),
    "pow": (torch.pow, [(inside(3, 5, low=0.2, high=2), inside(5, low=-2, high=2))]),
    "maximum": (torch.maximum, [(X, floats(3, 5, 7, seed=9)), (X, ROW)]),
    "minimum": (torch.minimum, [(X, floats(3, 5, 7, seed=9)), (X, ROW)]),
    "eq": (torch.eq, [(integers(50), integers(50).flip(0)), (X, ROW)]),
    "ne": (torch.ne, [(integers(50), integers(50).flip(0)), (X, ROW)]),
    "lt": (torch.lt, [(X, ROW), (X, integers(7))]),
    "le": (torch.le, [(X, ROW), (integers(50), integers(50).flip(0))]),
    "gt": (torch.gt, [(X, ROW)]),
    "ge": (torch.ge, [(X, ROW), (integers(50), integers(50).flip(0))]),
    "compare_numbers": (
        lambda a: (a == 2, a != 2, a < 2, a <= 2, a > 2, a >= 2),
        [(integers(50),)],
    ),
    "integer_below_fraction": (lambda a: a < 2.5, [(integers(50),)]),
    "logical": (
        lambda a, b: (a & b, a | b, a ^ b, ~a, a.logical_and(b), a.logical_or(b), a.logical_xor(b)),
        [(truths(30), truths(30, seed=4))],
    ),
    "bits": (
        lambda a, b: (a & b, a | b, a ^ b, ~a, a & 6, a | 1, a ^ 3),
        [(integers(50), integers(50).flip(0))],
    ),
    "bits_of_truths": (lambda a: (a & True, a | False, a ^ True), [(truths(9),)]),
    "copysign": (torch.copysign, [(X, ROW), (X[0], -torch.zeros(7))]),
    "fmax": (torch.fmax, [(X, ROW), (X[0], torch.full([7], torch.nan)), (FAR, FAR.flip(0))]),
    "fmin": (torch.fmin, [(X, ROW), (X[0], torch.full([7], torch.nan)), (FAR, FAR.flip(0))]),
    "dist": (torch.dist, [(X, X.flip(0)), (X, ROW)]),
    "where": (torch.where, [(truths(5, 7), X, ROW), (truths(3, 5, 7), X, floats())]),
    "addcmul": (lambda a, b, c: torch.addcmul(a, b, c, value=0.3), [(X, ROW, X)]),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), [(X, X.flip(0))]),
    "masked_fill": (lambda x, m: x.masked_fill(m, -torch.inf), [(X, truths(5, 7))]),
    "copy": (lambda a, b: (a * 1).copy_(b) * 2, [(X, ROW)]),
}
MASK = floats(9, 11)
PADDING = torch.ones(2, 1, 1, 11, dtype=torch.bool)
PADDING[0, ..., 7:] = PADDING[1, ..., :3] = False
PRODUCTS = {
    "mm": (torch.mm, [(floats(4, 6), floats(6, 5)), (floats(1, 1), floats(1, 9))]),
    "mm_transposed": (lambda a, b: a.t() @ b.t(), [(floats(6, 4), floats(5, 6))]),
    "bmm": (torch.bmm, [(floats(3, 4, 6), floats(3, 6, 5))]),
    "matmul_many": (torch.matmul, [(floats(2, 3, 4, 6), floats(2, 3, 6, 5))]),
    "matmul_broadcast": (
        torch.matmul,
        [(floats(2, 3, 4, 6), floats(6, 5)), (floats(6), floats(6))],
    ),
    "addmm": (torch.addmm, [(floats(5), floats(4, 6), floats(6, 5))]),
    "bilinear": (
        F.bilinear,
        [
            (floats(5, 3), floats(5, 4), floats(2, 3, 4), floats(2)),
            (floats(6, 5, 3), floats(6, 5, 4), floats(2, 3, 4)),
        ],
    ),
    "addmv": (
        lambda c, a, b: torch.addmv(c, a, b, beta=0.5, alpha=2),
        [(floats(4), floats(4, 6), floats(6))],
    ),
    "addbmm": (
        lambda c, a, b: torch.addbmm(c, a, b, beta=0.5, alpha=2),
        [(floats(4, 5), floats(3, 4, 6), floats(3, 6, 5))],
    ),
    "addmm_scales": (
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        [(floats(4, 5), floats(4, 6), floats(6, 5))],
    ),
    "linear": (F.linear, [(floats(2, 3, 6), floats(5, 6), floats(5))]),
    "einsum": (
        lambda a, b: torch.einsum("bij,bkj->bik", a, b),
        [(floats(2, 3, 6), floats(2, 5, 6))],
    ),
    "attention": (
        F.scaled_dot_product_attention,
        [(floats(2, 3, 9, 8), floats(2, 3, 11, 8), floats(2, 3, 11, 8))],
    ),
    "causal_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(floats(2, 3, 9, 8), floats(2, 3, 9, 8), floats(2, 3, 9, 8))],
    ),
    "scaled_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
        [(floats(2, 3, 9, 8), floats(2, 3, 11, 8), floats(2, 3, 11, 8))],
    ),
    "attention_of_transposed": (
        lambda *tensors: F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in tensors)),
        [(floats(2, 9, 3, 8), floats(2, 11, 3, 8), floats(2, 11, 3, 8))],
    ),
    "attention_of_groups": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        [(floats(2, 6, 9, 8), floats(2, 2, 11, 8), floats(2, 2, 11, 8))],
    ),
    "masked_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK),
        [(floats(2, 3, 9, 8), floats(2, 3, 11, 8), floats(2, 3, 11, 8))],
    ),
    "padded_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, PADDING),
        [(floats(2, 3, 9, 8), floats(2, 3, 11, 8), floats(2, 3, 11, 8))],
    ),
    "attention_with_a_trained_mask": (
        F.scaled_dot_product_attention,
        [(floats(2, 3, 9, 8), floats(2, 3, 11, 8), floats(2, 3, 11, 8), floats(9, 11))],
    ),
}
# PyTorch traces products of groups only of bfloat16, in rows of whole 16 bytes. Those of small
# integers are exact.
ENDS = torch.tensor([2, 2, 8], dtype=torch.int32)
PRODUCTS |= {
    "groups_of_rows": (
        lambda x, w: F.grouped_mm(x, w, offs=ENDS),
        [
            (small_integers(8, 16), small_integers(3, 16, 24)),
            (small_integers(8, 16), small_integers(3, 24, 16).mT),
        ],
    ),
    "groups_of_columns": (
        lambda w, x: F.grouped_mm(w, x.t(), offs=ENDS),
        [(small_integers(3, 24, 16), small_integers(8, 16))],
    ),
    "groups_of_both": (
        lambda x, y: F.grouped_mm(x.t(), y, offs=ENDS),
        [(small_integers(8, 16), small_integers(8, 24))],
    ),
    "groups_of_one_size": (F.grouped_mm, [(small_integers(3, 8, 16), small_integers(3, 16, 24))]),
}
if HAS_EXPERTS:
    PRODUCTS |= {
        "experts": (
            lambda x, w: torch.ops.transformers.grouped_mm_fallback(x, w, ENDS),
            [(floats(9, 4), floats(3, 4, 5)), (floats(8, 4), floats(3, 5, 4).mT)],
        ),
        "experts_transposed": (
            lambda x, w: torch.ops.transformers.grouped_mm_fallback(x, 2 * w.mT, ENDS.long()),
            [(floats(9, 4), floats(3, 5, 4))],
        ),
    }
IMAGE = floats(2, 4, 9, 10)
CONVOLUTIONS = {
    "conv1d": (
        lambda x, w, b: F.conv1d(x, w, b, 2, 1),
        [(floats(2, 4, 11), floats(6, 4, 3), floats(6))],
    ),
    "conv2d": (F.conv2d, [(IMAGE, floats(6, 4, 3, 3), floats(6)), (IMAGE, floats(6, 4, 1, 1))]),
    "conv2d_valid": (lambda x, w: F.conv2d(x, w, padding="valid"), [(IMAGE, floats(6, 4, 3, 3))]),
    "conv2d_same": (lambda x, w: F.conv2d(x, w, padding="same"), [(IMAGE, floats(6, 4, 3, 4))]),
    "conv2d_all": (
        lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2),
        [(IMAGE, floats(6, 2, 3, 2), floats(6))],
    ),
    "conv2d_depthwise": (
        lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 4),
        [(IMAGE, floats(4, 1, 3, 3))],
    ),
    "conv2d_channels_last": (
        lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w),
        [(IMAGE, floats(6, 4, 3, 3))],
    ),
    "conv3d": (F.conv3d, [(floats(1, 2, 4, 5, 6), floats(3, 2, 2, 3, 2), floats(3))]),
    "conv_transpose2d": (
        F.conv_transpose2d,
        [(IMAGE, floats(4, 6, 2, 3), floats(6)), (IMAGE, floats(4, 6, 2, 3))],
    ),
    "conv_transpose2d_all": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, (1, 0), 1, 2),
        [(IMAGE, floats(4, 3, 3, 3), floats(6))],
    ),
    "conv_transpose2d_padded": (
        lambda x, w: F.conv_transpose2d(x, w, None, 3, 1, 2),
        [(IMAGE, floats(4, 6, 3, 3))],
    ),
    "conv_transpose2d_dilated": (
        lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 2, dilation=3),
        [(IMAGE, floats(4, 6, 3, 3))],
    ),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [IMAGE, floats(4, 9, 10)]),
    "max_pool2d_all": (lambda x: F.max_pool2d(x, (3, 2), 2, 1, (1, 2)), [IMAGE]),
    "max_pool2d_ceil": (lambda x: F.max_pool2d(x, 2, ceil_mode=True), [IMAGE]),
    "max_pool2d_indices": (lambda x: F.max_pool2d(x, 3, 2, return_indices=True), [IMAGE]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), [floats(2, 3, 11)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [IMAGE, floats(4, 9, 10)]),
    "avg_pool2d_pads": (lambda x: F.avg_pool2d(x, 3, 2, 1), [IMAGE]),
    "avg_pool2d_inside": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGE]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), [IMAGE, floats(4, 9, 10)]),
    "adaptive_max_pool2d": (
        lambda x: F.adaptive_max_pool2d(x, (3, 5), return_indices=True),
        [IMAGE, floats(4, 9, 10)],
    ),
    "adaptive_max_pool3d": (
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)),
        [floats(2, 3, 4, 6, 5)],
    ),
    "avg_pool2d_ceil": (
        lambda x: (F.avg_pool2d(x, 2, None, 0, True), F.avg_pool2d(x, 3, 2, 1, True, False)),
        [floats(2, 3, 9, 9), floats(2, 3, 10, 8)],
    ),
    "avg_pool2d_ceil_even": (
        lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
        [floats(2, 3, 9, 11)],
    ),
    "adaptive_avg_pool2d_uneven": (
        lambda x: F.adaptive_avg_pool2d(x, (4, 7)),
        [IMAGE, floats(4, 9, 10), floats(2, 3, 2, 5)],
    ),
    "avg_pool3d": (
        lambda x: (F.avg_pool3d(x, 2, ceil_mode=True), F.avg_pool3d(x, (1, 3, 2), 2, (0, 1, 1))),
        [floats(2, 3, 4, 5, 7), floats(3, 5, 4, 6)],
    ),
    "max_pool3d": (
        lambda x: F.max_pool3d(x, (2, 3, 2), 2, (1, 1, 0), return_indices=True),
        [floats(2, 3, 4, 5, 7), floats(3, 5, 4, 6)],
    ),
    "adaptive_avg_pool3d": (
        lambda x: F.adaptive_avg_pool3d(x, (2, 5, 3)),
        [floats(2, 3, 4, 5, 6), floats(3, 5, 4, 7)],
    ),
    "adaptive_avg_pool3d_1": (lambda x: F.adaptive_avg_pool3d(x, 1), [floats(2, 3, 4, 5, 6)]),
    "adaptive_avg_pool2d_1": (lambda x: F.adaptive_avg_pool2d(x, 1), [IMAGE]),
    "bicubic": (lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), [IMAGE]),
    "replicated": (
        lambda x: F.pad(x, (2, 1, 0, 3), mode="replicate"),
        [IMAGE, floats(2, 3, 1, 2)],
    ),
    "replicated_1d": (lambda x: F.pad(x, (1, 2), mode="replicate"), [floats(2, 3, 5)]),
    "replicated_3d": (
        lambda x: F.pad(x, (1, 2, 0, 1, 2, 0), mode="replicate"),
        [floats(2, 3, 4, 1, 5)],
    ),
    "reflected": (
        lambda x: F.pad(x, (1, 2, 3, 1), mode="reflect"),
        [IMAGE, IMAGE[0], IMAGE.to(memory_format=torch.channels_last), IMAGE.double()],
    ),
    "reflected_1d": (lambda x: F.pad(x, (4, 3), mode="reflect"), [floats(2, 3, 5), floats(3, 5)]),
    "reflected_3d": (
        lambda x: F.pad(x, (1, 2, 0, 4, 2, 0), mode="reflect"),
        [floats(2, 3, 4, 5, 6), floats(3, 4, 5, 6)],
    ),
    "circular": (
        lambda x: F.pad(x, (1, 2, 9, 1), mode="circular"),
        [IMAGE, IMAGE.to(memory_format=torch.channels_last), IMAGE.double()],
    ),
    "circular_1d": (lambda x: F.pad(x, (5, 3), mode="circular"), [floats(2, 3, 5)]),
    "circular_3d": (
        lambda x: F.pad(x, pad=(1, 2, 0, 4, 2, 0), mode="circular") * 2,
        [floats(2, 3, 4, 5, 6)],
    ),
    "bilinear_means": (
        lambda x: (
            F.interpolate(x, (4, 13), mode="bilinear", antialias=True),
            F.interpolate(x, (12, 5), mode="bilinear", antialias=True, align_corners=True),
            F.interpolate(x, scale_factor=0.4, mode="bilinear", antialias=True),
        ),
        [IMAGE, floats(1, 2, 31, 5)],
    ),
    "bicubic_means": (
        lambda x: F.interpolate(x, (5, 6), mode="bicubic", antialias=True),
        [IMAGE],
    ),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), [IMAGE]),
    "bilinear": (
        lambda x: F.interpolate(x, size=(13, 7), mode="bilinear", align_corners=False),
        [IMAGE],
    ),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [IMAGE]),
}
STATISTICS = (floats(4), 0.5 + floats(4).abs())
NORMALIZATIONS = {
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (7,), w, b),
        [(X, floats(7), floats(7)), (floats(7), floats(7), floats(7))],
    ),
    "layer_norm_no_bias": (lambda x, w: F.layer_norm(x, (5, 7), w), [(X, floats(5, 7))]),
    "layer_norm_plain": (lambda x: F.layer_norm(x, (7,)), [X]),
    "weight_norm": (
        lambda v, g: torch._weight_norm(v, g, 1),
        [(floats(4, 6, 3), floats(1, 6, 1)), (floats(5, 4), floats(1, 4))],
    ),
    "rms_norm": (lambda x, w: F.rms_norm(x, (7,), w, 1e-5), [(X, floats(7))]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(IMAGE, floats(4), floats(4))]),
    "group_norm_plain": (lambda x: F.group_norm(x, 2), [floats(3, 16)]),
    "instance_norm": (F.instance_norm, [IMAGE]),
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, STATISTICS[0] * 1, STATISTICS[1] * 1, w, b, True),
        [(IMAGE, floats(4), floats(4)), (floats(9, 4), floats(4), floats(4))],
    ),
    "batch_norm_plain": (
        lambda x: F.batch_norm(x, STATISTICS[0] * 1, STATISTICS[1] * 1, training=True),
        [IMAGE],
    ),
    "batch_norm_fixed": (
        lambda x, w, b: F.batch_norm(x, *STATISTICS, w, b),
        [(IMAGE, floats(4), floats(4))],
    ),
}
SIGNED = torch.tensor([-torch.inf, -2.0, -0.0, 0.0, 1e-30, 3.0, torch.inf, torch.nan])
ANGLES = {
    "atan2": (torch.atan2, [(X, ROW), (1e30 * X, 1e-30 * ROW)]),
    "atan2_of_zeros": (
        lambda a, b: torch.atan2(a.detach(), b.detach()),
        [(SIGNED[:, None], SIGNED)],
    ),
    "hypot": (torch.hypot, [(X, ROW), (1e30 * X, 1e30 * ROW)]),
    "hypot_of_zeros": (
        lambda a, b: torch.hypot(a.detach(), b.detach()),
        [(SIGNED[:7, None], SIGNED[:7])],
    ),
}
REDUCTIONS = {
    "sum": (torch.sum, [X, integers(4, 5), truths(9), floats()]),
    "sum_axis": (lambda x: x.sum(1), [X, integers(4, 5)]),
    "sum_axes": (lambda x: x.sum((0, -1), keepdim=True), [X]),
    "mean": (torch.mean, [X, floats()]),
    "mean_axes": (lambda x: x.mean((0, 2)), [X]),
    "amax": (lambda x: x.amax(1), [X]),
    "max_all": (lambda x: x.max() - x.min(), [X, integers(4, 5)]),
    "of_a_number": (lambda x: x.sum(0) + x.mean(0) * x.amax(-1), [floats()]),
    "any_of_a_number": (lambda x: x.any(0), [torch.tensor(True)]),
    "amin": (lambda x: x.amin((0, 1), keepdim=True), [X]),
    "prod": (torch.prod, [integers(6, low=1, high=5)]),
    "prod_axis": (lambda x: x.prod(1), [integers(3, 4, low=1, high=4)]),
    "to_bool": (
        lambda x: (x * 1).bool(),
        [torch.tensor([0.0, -0.0, 0.3, -2, float("nan"), float("inf"), 1e-40]), integers(5)],
    ),
    "any": (lambda x: (x.any(), x.any(1), x.any(1, keepdim=True)), [truths(3, 1), integers(3, 2)]),
    "any_axes": (lambda x: x.any((0, 1)), [truths(2, 3, 4)]),
    "all": (lambda x: (x.all(), x.all(0), x.all(0, keepdim=True)), [truths(3, 1), integers(3, 2)]),
    "all_axes": (lambda x: x.all((0, 1)), [truths(2, 3, 4)]),
    "var": (lambda x: x.var(1), [X]),
    "var_all": (lambda x: x.var(correction=0), [X]),
    "var_mean": (lambda x: torch.var_mean(x, (0, 2), keepdim=True), [X]),
    "var_mean_squeezed": (lambda x: torch.var_mean(x, (0, 2), correction=0), [X]),
    "std": (lambda x: x.std(-1), [X]),
    "logsumexp": (lambda x: x.logsumexp(1), [X]),
    "norm": (torch.linalg.vector_norm, [X]),
    "cumsum": (lambda x: x.cumsum(1), [X, integers(3, 6), truths(3, 6)]),
    "cumprod": (lambda x: x.cumprod(-1), [X, integers(3, 6), floats(4)]),
    "cumprod_with_zeros": (lambda x: x.relu().cumprod(1), [X]),
    "argmax": (lambda x: (x.argmax(), x.argmax(1), x.argmax(1, keepdim=True)), [X, integers(4, 9)]),
    "argmin": (lambda x: (x.argmin(), x.argmin(0)), [X]),
    "max": (lambda x: x.max(1), [X, truths(4, 5)]),
    "min": (lambda x: x.min(0, keepdim=True), [X]),
    "topk": (lambda x: x.topk(3, 1), [X]),
    "topk_smallest": (lambda x: x.topk(2, 0, largest=False), [X]),
    "kthvalue": (lambda x: x.kthvalue(2, 1), [floats(3, 40), HOLES]),
    "kthvalue_near_the_largest": (lambda x: x.kthvalue(39, 0, True), [floats(40, 3), HOLES.T]),
    "kthvalue_in_the_middle": (lambda x: x.kthvalue(20), [floats(3, 40)]),
    "sort": (lambda x: x.sort(1), [X, integers(40, 3)]),
    "sort_falling": (lambda x: x.sort(2, descending=True), [X]),
    "sort_stable": (lambda x: torch.sort(x, dim=0, stable=True), [integers(40, 3)]),
}
SHAPES = {
    "view": (lambda x: x.view(15, 7) * 2, [X]),
    "reshape_transposed": (lambda x: x.transpose(0, 1).reshape(-1) * 2, [X]),
    "permute": (lambda x: x.permute(2, 0, 1) * 2, [X]),
    "transposed_result": (lambda x: (2 * x).transpose(0, -1), [X]),
    "strided_input": (lambda x: x * 2, [X[:, ::2, 1:]]),
    "permuted_twice": (
        lambda x: (
            x.permute(1, 2, 0).permute(2, 1, 0) * 2,
            (2 * x).permute(1, 2, 0).permute(2, 0, 1).permute(0, 2, 1),
        ),
        [X],
    ),
    "permuted_input": (lambda x: x @ x.transpose(1, 2), [X.permute(0, 2, 1)]),
    "expanded_input": (lambda x: x * 2, [ROW.expand(4, 7)]),
    "expanded_result": (lambda x: (2 * x).expand(4, 7), [ROW]),
    "t": (lambda x: torch.t(x) * 2, [floats(3, 5)]),
    "squeeze": (lambda x: x.squeeze(1) + x.squeeze(), [floats(4, 1)]),
    "squeeze_axes": (lambda x: x.squeeze((0, 2)) * 2, [floats(1, 4, 1)]),
    "unsqueeze": (lambda x: x.unsqueeze(-1) * x.unsqueeze(1), [floats(3, 5)]),
    "repeat": (lambda x: x.repeat(2, 3, 1, 2), [X]),
    "flip": (lambda x: x.flip((0, 2)), [X]),
    "roll_all": (lambda x: x.roll(-40), [X]),
    "empty": (lambda x: torch.empty_permuted([5, 7], [1, 0]).copy_(x[0]) * 2, [X]),
    "roll": (lambda x: x.roll((2, -3, 3), (1, 2, 0)), [X]),
    "cat": (lambda a, b: torch.cat([a, b, a], 1), [(X, floats(3, 2, 7))]),
    "cat_empty": (lambda x: torch.cat([x[:, :0], x, x.new_zeros(0)], 1) * 2, [X]),
    "cat_types": (lambda a, b: torch.cat([a, b]), [(X, integers(2, 5, 7))]),
    "stack": (lambda a, b: torch.stack([a, b], -1), [(ROW, ROW.flip(0))]),
    "slice": (lambda x: x[:, 1:-1, 2:] * 2, [X]),
    "slice_step": (lambda x: x[:, 1:5:2, ::3] * 2, [X]),
    "slice_step_beyond": (lambda x: x[..., 2::4] * 2, [X]),
    "slice_beyond": (lambda x: x[:, 1:99] * 2, [X]),
    "select": (lambda x: x[:, -2] * 2, [X]),
    "split": (lambda x: [2 * part for part in x.split(2, 1)], [X]),
    "split_once": (lambda x: torch.ops.aten.split_with_sizes(x, [5], 1)[0] * 2, [X]),
    "chunk": (lambda x: [2 * part for part in x.chunk(2, 2)], [X]),
    "unbind": (lambda x: [2 * part for part in x.unbind(0)], [X]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), [X]),
    "pad_negative": (lambda x: F.pad(x, (-1, 2)), [X]),
    "diagonal": (
        lambda x: (x.diagonal() * 2, x.diagonal(1, 2, 1) * 2, x.diagonal(-1, 0, 2) * 2),
        [floats(4, 4, 3), floats(5, 3, 6)],
    ),
    "diag_embed": (lambda x: torch.diag_embed(x, 1), [floats(3, 4)]),
    "tril": (lambda x: x.tril(), [X, truths(4, 4)]),
    "triu": (lambda x: x.triu(1), [X]),
    "slice_assigned": (lambda a, b: torch.slice_scatter(a, b, 1, 1, 3), [(X, floats(3, 2, 7))]),
    "slice_of_all": (lambda a, b: torch.slice_scatter(a, b, 1) * 2, [(X, X.flip(0))]),
    "select_assigned": (lambda a, b: torch.select_scatter(a, b, 1, -2), [(X, floats(3, 7))]),
    "select_first_assigned": (lambda a, b: torch.select_scatter(a, b, 0, 0), [(X, floats(5, 7))]),
    "full": (lambda x: x + torch.full((5, 1), 0.3), [X]),
    "full_like": (lambda x: x * torch.full_like(x, 0.3), [X]),
    "arange": (lambda x: x * torch.arange(1, 8) + torch.arange(7), [X]),
    "arange_fraction": (lambda x: x * torch.arange(0.5, 4, 0.5), [X]),
}
VIEWS = {
    "slice": (lambda x: torch.as_strided(2 * x, (3, 2), (2, 1), 6) * 2, [X]),
    "rows": (lambda x: torch.as_strided(2 * x, (2, 2, 7), (35, 14, 1), 7) * 2, [X]),
    "transposed": (lambda x: torch.as_strided(2 * x, (7, 5), (1, 7)) * 2, [X]),
    "apart": (lambda x: torch.as_strided(2 * x, (4, 3), (10, 3), 1) * 2, [X]),
    "overlapping": (lambda x: torch.as_strided(2 * x, (3, 4, 14), (35, 7, 1)) * 2, [X]),
    "of_permuted": (
        lambda x: torch.as_strided((2 * x).transpose(0, 2), (5, 7), (7, 1), 35) * 2,
        [X],
    ),
    "assigned": (
        lambda x, part: torch.as_strided_scatter(x, part, (2, 7), (14, 1), 7) * 2,
        [(X, floats(2, 7, seed=4))],
    ),
    "unfold": (lambda x: x.unfold(1, 3, 2) * 2, [X]),
    "unfold_last": (lambda x: x.unfold(-1, 2, 1) * 2, [X, ROW]),
}


def positions(*shape):
    """Of samples, inside and outside, none in the middle of two elements."""
    return floats(*shape, seed=6)


def samples(*settings):
    return lambda x, grid: F.grid_sample(x, grid, *settings)


FLAT, SOLID = (
    (floats(2, 3, 5, 4), positions(2, 6, 3, 2)),
    (floats(2, 3, 4, 5, 3), positions(2, 3, 2, 2, 3)),
)
SAMPLES = {
    f"{mode}_{padding}_{aligns}": (
        samples(mode, padding, aligns),
        [FLAT, SOLID][: 1 + (mode != "bicubic")],
    )
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for aligns in (False, True)
} | {
    "many": (
        samples("bilinear", "zeros", False),
        [(floats(1, 9, 5, 6), positions(1, 40, 30, 2))],
    ),
    # No vector of these has a position at the border.
    "inside": (
        samples("bilinear", "zeros", False),
        [
            (floats(2, 3, 9, 8), inside(2, 20, 9, 2, low=-0.7, high=0.7)),
            (floats(1, 2, 6, 5, 7), inside(1, 9, 8, 3, 3, low=-0.6, high=0.6)),
        ],
    ),
    "inside_cubic": (
        samples("bicubic", "zeros", False),
        [(floats(2, 3, 9, 8), inside(2, 20, 9, 2, low=-0.4, high=0.4))],
    ),
    # Positions at elements, and at the border: the derivatives are those of one side.
    "at_elements": (
        lambda x, theta: F.grid_sample(
            x, F.affine_grid(theta, x.shape, align_corners=True), "bilinear", "border", True
        ),
        [(floats(1, 2, 4, 4), torch.eye(2, 3).unsqueeze(0))],
    ),
    "without_gradient_of_positions": (
        lambda x, grid: F.grid_sample(x, grid.detach(), align_corners=False),
        [FLAT],
    ),
}
DISTANCES = {
    f"cdist_{p}": (
        lambda a, b, p=p: torch.cdist(a, b, p),
        [(floats(4, 6), floats(5, 6, seed=1)), (floats(2, 4, 3), floats(1, 5, 3, seed=1))],
    )
    for p in (0, 0.5, 1, 1.5, 2, 3, float("inf"))
} | {"cdist_of_equal_rows": (lambda a: torch.cdist(a, a), [floats(4, 6)])}
INDICES = integers(2, 4, low=0, high=5)
INDEXING = {
    "embedding": (F.embedding, [(INDICES, floats(5, 6)), (INDICES.int(), floats(5, 6))]),
    "embedding_padding": (lambda i, w: F.embedding(i, w, padding_idx=2), [(INDICES, floats(5, 6))]),
    "index_select": (
        lambda x, i: x.index_select(1, i),
        [(X, integers(6, low=0, high=5)), (X, torch.tensor([4, 4], dtype=torch.int32))],
    ),
    "gather": (lambda x, i: x.gather(1, i), [(X, integers(3, 4, 7, low=0, high=5))]),
    "gather_part": (lambda x, i: x.gather(1, i), [(X, integers(2, 4, 3, low=0, high=5))]),
    "scatter": (
        lambda x, i, s: x.scatter(1, i, s),
        [(X, torch.arange(3).view(1, 3, 1), floats(1, 3, 1))],
    ),
    "scatter_number": (lambda x, i: x.scatter(1, i, 0.5), [(X, integers(3, 4, 7, low=0, high=5))]),
    "scatter_add": (
        lambda x, i, s: x.scatter_add(1, i, s),
        [(X, integers(3, 9, 7, low=0, high=5), floats(3, 9, 7))],
    ),
    **{
        f"scatter_{kind}_{keeps}": (
            lambda x, i, s, kind=kind, keeps=keeps: x.scatter_reduce(
                1, i, s, kind, include_self=keeps
            ),
            [
                (X, integers(3, 4, 7, low=0, high=5), floats(3, 4, 7, seed=5)),
                # Some of these are equal.
                (
                    integers(3, 5, low=1, high=4).double(),
                    integers(2, 9, low=0, high=5),
                    integers(2, 9, low=1, high=4).double(),
                ),
            ],
        )
        for kind in ("sum", "prod", "mean", "amax", "amin")
        for keeps in (True, False)
    },
    "histogram": (
        lambda x: torch.histc(x, 6, -1, 2),
        [X, torch.tensor([-1.0, 2, 2.5, -1.5, 0, 1.999])],
    ),
    "scatter_integers": (
        lambda x, i, s: (
            x.scatter_reduce(0, i, s, "amax", include_self=False),
            x.scatter_reduce(0, i, s, "prod"),
        ),
        [(integers(4, 3), integers(6, 3, low=0, high=4), integers(6, 3))],
    ),
    "masked_scatter": (
        lambda x, mask, s: x.masked_scatter(mask, s),
        [
            (X, truths(3, 5, 7), floats(4, 40)),
            (X, truths(5, 1), floats(3 * 5 * 7)),
            (X, torch.zeros(7, dtype=torch.bool), floats(6)),
        ],
    ),
    "index": (
        lambda x, i: x[i],
        [(X, integers(4, 2, low=-3, high=3)), (integers(9), integers(5, low=0, high=9))],
    ),
    "index_inner": (lambda x, i: x[:, i], [(X, integers(4, 2, low=-5, high=5))]),
    "index_pairs": (
        lambda x, i, j: x[i, j],
        [(X, integers(6, low=0, high=3), integers(6, low=-5, high=5))],
    ),
    "index_inner_pairs": (
        lambda x, i, j: x[:, i, j],
        [(X, integers(2, 6, low=0, high=5), integers(6, low=0, high=7))],
    ),
    "index_apart": (
        lambda x, i, j: x[i, :, j],
        [(X, integers(2, 6, low=0, high=3), integers(6, low=0, high=7))],
    ),
    "index_grid": (
        lambda x, i, j: x[:, i, j],
        [(X, integers(6, 1, low=0, high=5), integers(4, low=0, high=7))],
    ),
    "index_put": (
        lambda x, i, s: torch.index_put(x, (i,), s),
        [(X, torch.tensor([2, 0]), floats(2, 5, 7)), (X, torch.tensor([2, 0]), floats(7))],
    ),
    "index_put_integers": (
        lambda x, i, s: torch.index_put(x, (i,), s, accumulate=True),
        [(integers(4, 3), torch.tensor([2, 0, 2]), integers(3, 3))],
    ),
    "index_put_mask": (
        lambda x, s: (
            torch.index_put(x, (s > 0,), x.new_full((), 3)),
            torch.index_put(x, (s[:, 0] > 0,), x.new_zeros(1)),
            torch.index_put(s > 1, (s > 0,), torch.tensor(True)),
        ),
        [(floats(4, 5), floats(4, 5))],
    ),
    "put": (
        lambda x, s: (x.put(torch.tensor([[4, -1]]), s), x.put(torch.tensor([[4, 4]]), s, True)),
        [(X, floats(1, 2))],
    ),
    "take": (lambda x: x.take(torch.tensor([[4, -1, 4]])), [X]),
    "index_put_apart": (
        lambda x, i, j, s: torch.ops.aten.index_put(x, [i, None, j], s),
        [(X, torch.tensor([2, 0]), torch.tensor([3, 3]), floats(2, 5))],
    ),
}
WEIGHTS = inside(5, low=0.1, high=2)
LOGITS, CLASSES = floats(6, 5), integers(6, low=0, high=5)
LOSSES = {
    "mse": (F.mse_loss, [(X, X.flip(0))]),
    "smooth_l1": (F.smooth_l1_loss, [(X, X.flip(0))]),
    "binary_cross_entropy": (
        F.binary_cross_entropy_with_logits,
        [(X, inside(3, 5, 7, low=0, high=1))],
    ),
    "cross_entropy": (
        F.cross_entropy,
        [(LOGITS, CLASSES), (floats(2, 5, 3), integers(2, 3, low=0, high=5))],
    ),
    "cross_entropy_smoothed": (
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1),
        [(LOGITS, CLASSES)],
    ),
    "cross_entropy_ignored": (
        lambda x, t: F.cross_entropy(x, t, ignore_index=2),
        [(LOGITS, CLASSES)],
    ),
    "cross_entropy_weighted": (lambda x, t: F.cross_entropy(x, t, WEIGHTS), [(LOGITS, CLASSES)]),
    "cross_entropy_images": (
        F.cross_entropy,
        [(floats(2, 5, 3, 4), integers(2, 3, 4, low=0, high=5))],
    ),
    "cross_entropy_sum": (lambda x, t: F.cross_entropy(x, t, reduction="sum"), [(LOGITS, CLASSES)]),
    "cross_entropy_each": (
        lambda x, t: F.cross_entropy(x, t, reduction="none"),
        [(LOGITS, CLASSES)],
    ),
    "cross_entropy_of_nothing": (
        lambda x, t: F.cross_entropy(x, t, ignore_index=2),
        [(LOGITS, torch.full((6,), 2))],
    ),
    "kl_div": (
        lambda x, t: F.kl_div(x.log_softmax(1), t.softmax(1), reduction="batchmean"),
        [(LOGITS, LOGITS.flip(0))],
    ),
}
STATE = floats(2, 4, 6)
RECURRENT = {
    "lstm": (
        lambda *inputs: torch.ops.tenon.lstm(*inputs)[:3],
        [(floats(5, 4, 3), floats(2, 24, 3), floats(2, 24, 6), floats(2, 48), STATE, STATE)],
    ),
    "gru": (
        lambda *inputs: torch.ops.tenon.gru(*inputs)[:2],
        [(floats(5, 4, 3), floats(2, 18, 3), floats(2, 18, 6), floats(2, 36), STATE)],
    ),
}
FAMILIES = {
    "unary": UNARY, "binary": BINARY, "products": PRODUCTS, "convolutions": CONVOLUTIONS,
    "normalizations": NORMALIZATIONS, "reductions": REDUCTIONS, "shapes": SHAPES,
    "indexing": INDEXING, "losses": LOSSES, "recurrent": RECURRENT,
    "views": VIEWS, "samples": SAMPLES, "distances": DISTANCES, "angles": ANGLES,
}  # fmt: skip
CASES = [
    (f"{family}-{name}-{i}", function, inputs if isinstance(inputs, tuple) else (inputs,))
    for family, cases in FAMILIES.items()
    for name, (function, calls) in cases.items()
    for i, inputs in enumerate(calls)
]
# What stays in PyTorch, beside the operator that a case is for.
LEFT = {
    "cat_empty": ["aten.full.default", "aten.slice.Tensor", "aten.slice_backward.default"],
    "dropout": ["aten.bernoulli.p", "aten.empty.memory_format"],
    "dropout_permuted": ["aten.bernoulli.p", "aten.empty.memory_format"],
    "kthvalue_in_the_middle": ["aten.kthvalue.default"],
}
lowered = set()
cases_run = set()


@pytest.mark.parametrize(("name", "function", "inputs"), CASES, ids=[name for name, *_ in CASES])
def test_operator(name, function, inputs):
    cases_run.add(name)
    left = LEFT.get(name.split("-")[1], [])
    lowered.update(check_function(function, *inputs, left=left).lowered)


def test_each_rule_has_a_case():
    if cases_run != {name for name, *_ in CASES}:
        pytest.skip("needs the other tests of this file")
    rules = {str(overload) for overload in _lowering._rules}
    if not HAS_EXPERTS:
        rules = {name for name in rules if not name.startswith("transformers.")}
    missing = rules - lowered
    assert not missing, ", ".join(sorted(missing))


# PyTorch's core operators that stay in it.
NOT_LOWERED = {
    "_embedding_bag.default",  # PyTorch is faster
    "_fft_c2r.default",
    "_fft_r2c.default",
    "_local_scalar_dense.default",  # what depends on data
    "nonzero.default",
    "_native_batch_norm_legit.default",  # changes its arguments: there is a functional one
    "atan2.out",
    "div.Scalar_mode",  # another overload is traced
    "empty_strided.default",
    "_pdist_forward.default",
    "resize_.default",  # changes its argument
}


def test_core_operators_are_lowered():
    """Those that PyTorch does not take apart itself have a rule, or are made of others."""
    module = importlib.import_module("tenon.torch._decompositions")
    table = module.decompositions()
    missing = set()
    names = [name.split("::") for name in torch._C._dispatch_get_all_op_names()]
    for name in sorted({name.split(".")[0] for domain, name in names if domain == "aten"}):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads():
            operator = getattr(packet, overload)
            if torch.Tag.core not in operator.tags:
                continue
            is_composed = torch._C._dispatch_has_kernel_for_dispatch_key(
                operator.name(), "CompositeImplicitAutograd"
            )
            if not (operator in _lowering._rules or operator in table or is_composed):
                missing.add(str(operator).removeprefix("aten."))
    assert {name for name in missing if not module.draws_random_numbers(name)} == NOT_LOWERED
