"""Operators of com.microsoft that ONNX Runtime's training build has, beside formulas in float64."""

import math

import contrib
import numpy as np
import pytest
import tenon
from contrib import check, floats
from onnx import parser

FLOAT = np.float32
SHAPES = [(), (7,), (0, 3), (2, 3, 65), (3, 20000)]


def wide(*arrays: np.ndarray) -> list[np.ndarray]:
    return [x.astype(np.float64) for x in arrays]


def run(
    op_type: str,
    inputs: contrib.Arrays,
    outputs: dict[str, type] | None = None,
    threads: int = 1,
    **options: object,
) -> list[np.ndarray]:
    content = contrib.model(op_type, inputs, outputs or {"y": FLOAT}, **options)
    settings = tenon.SessionOptions()
    settings.intra_op_num_threads = threads
    session = tenon.InferenceSession(content, settings)
    wanted = {x.name for x in session.get_inputs()}
    return session.run(None, {f"x{i}": x for i, x in enumerate(inputs) if f"x{i}" in wanted})


def compare(
    op_type: str,
    inputs: contrib.Arrays,
    expected: list[np.ndarray],
    outputs: dict[str, type] | None = None,
    tolerance: float = 2e-5,
    **options: object,
) -> None:
    """Compares with `expected`, and the bits of one thread with those of two and three."""
    expected = [x.astype(FLOAT) for x in expected]
    check(op_type, inputs, outputs, expected, tolerance, tolerance, **options)
    first, *more = [run(op_type, inputs, outputs, n, **options) for n in (1, 2, 3)]
    for other in more:
        for a, b in zip(first, other, strict=True):
            assert a.tobytes() == b.tobytes()


def refuses(op_type: str, inputs: contrib.Arrays, text: str, **options: object) -> None:
    with pytest.raises(Exception, match=text):
        run(op_type, inputs, **options)


# --- Activations ---


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gelu_derivative(x: np.ndarray) -> np.ndarray:
    distribution = 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float64])(x * math.sqrt(0.5)))
    return distribution + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def fast_gelu_derivative(x: np.ndarray) -> np.ndarray:
    factor = math.sqrt(2 / math.pi)
    t = np.tanh(factor * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x)


def quick_gelu_derivative(x: np.ndarray, alpha: float = 1.702) -> np.ndarray:
    s = sigmoid(alpha * x)
    return s + alpha * x * s * (1 - s)


DERIVATIVES = {
    "ReluGrad": lambda x: (x > 0).astype(np.float64),
    "LeakyReluGrad": lambda y: np.where(y > 0, 1, 0.01),
    "SigmoidGrad": lambda y: y * (1 - y),
    "TanhGrad": lambda y: 1 - y * y,
    "GeluGrad": gelu_derivative,
    "FastGeluGrad": fast_gelu_derivative,
    "QuickGeluGrad": quick_gelu_derivative,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op_type", DERIVATIVES)
def test_activation(op_type: str, shape: tuple) -> None:
    dy, x = floats(*shape), 3 * floats(*shape, seed=1)
    x = np.asarray(x, FLOAT)
    wide_dy, wide_x = wide(dy, x)
    compare(op_type, [dy, x], [wide_dy * DERIVATIVES[op_type](wide_x)])


def test_alpha() -> None:
    dy, x = floats(100), floats(100, seed=1)
    wide_dy, wide_x = wide(dy, x)
    compare("LeakyReluGrad", [dy, x], [wide_dy * np.where(wide_x > 0, 1, 0.3)], alpha=0.3)
    compare("QuickGeluGrad", [dy, x], [wide_dy * quick_gelu_derivative(wide_x, 0.7)], alpha=0.7)


@pytest.mark.parametrize("op_type", ["GeluGrad", "FastGeluGrad", "QuickGeluGrad"])
def test_far_from_zero_the_derivative_is_0_or_1(op_type: str) -> None:
    x = np.array([-1e4, -100, 100, 1e4], FLOAT)
    compare(op_type, [np.ones(4, FLOAT), x], [np.array([0, 0, 1, 1])])


@pytest.mark.parametrize("op_type", [*DERIVATIVES, "SoftmaxGrad_13", "LogSoftmaxGrad_13"])
def test_both_inputs_have_one_shape(op_type: str) -> None:
    refuses(op_type, [floats(2, 3), floats(3, 2)], "input 1")


@pytest.mark.parametrize("op_type", DERIVATIVES)
def test_half(op_type: str) -> None:
    dy, x = floats(50, dtype=np.float16), floats(50, seed=1, dtype=np.float16)
    (actual,) = run(op_type, [dy, x], {"y": np.float16})
    wide_dy, wide_x = wide(dy, x)
    expected = wide_dy * DERIVATIVES[op_type](wide_x)
    np.testing.assert_allclose(actual.astype(np.float64), expected, rtol=2e-3, atol=1e-3)


# --- Softmax ---

SOFTMAX_CASES = [
    ((5,), -1),
    ((4, 1), 1),
    ((2, 3, 65), -1),
    ((2, 3, 65), 1),
    ((130, 7), 0),
    ((70, 200, 3), 1),
    ((3, 10000), 1),
    ((0, 3), 1),
]


@pytest.mark.parametrize(("shape", "axis"), SOFTMAX_CASES)
def test_softmax(shape: tuple, axis: int) -> None:
    dy, x = floats(*shape), floats(*shape, seed=1)
    e = np.exp(x.astype(np.float64))
    y = (e / e.sum(axis, keepdims=True)).astype(FLOAT)
    wide_dy, wide_y = wide(dy, y)
    expected = (wide_dy - (wide_dy * wide_y).sum(axis, keepdims=True)) * wide_y
    compare("SoftmaxGrad_13", [dy, y], [expected], axis=axis)


@pytest.mark.parametrize(("shape", "axis"), SOFTMAX_CASES)
def test_log_softmax(shape: tuple, axis: int) -> None:
    dy, x = floats(*shape), floats(*shape, seed=1)
    y = x - np.log(np.exp(x.astype(np.float64)).sum(axis, keepdims=True))
    y = y.astype(FLOAT)
    wide_dy, wide_y = wide(dy, y)
    expected = wide_dy - np.exp(wide_y) * wide_dy.sum(axis, keepdims=True)
    compare("LogSoftmaxGrad_13", [dy, y], [expected], axis=axis)


def test_softmax_of_no_such_axis() -> None:
    refuses("SoftmaxGrad_13", [floats(2, 3), floats(2, 3)], "axis", axis=2)


# --- Layer normalizations ---

LAYER_CASES = [((4, 7), -1), ((2, 3, 5), 1), ((300, 65), 1), ((2, 8), 0), ((5, 3000), 1)]
GRADIENTS = {"dx": FLOAT, "dscale": FLOAT, "dbias": FLOAT}


@pytest.mark.parametrize(("shape", "axis"), LAYER_CASES)
@pytest.mark.parametrize("has_mean", [True, False])
def test_layer_normalization(shape: tuple, axis: int, has_mean: bool) -> None:
    axes = tuple(range(axis % len(shape), len(shape)))
    outer = tuple(range(axes[0]))
    dy, x = floats(*shape), floats(*shape, seed=1) + FLOAT(0.5)
    scale = floats(*shape[axes[0] :], seed=2)
    mean = x.mean(axes, keepdims=True, dtype=np.float64) if has_mean else np.zeros(1)
    inv_std = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5)
    statistics = [x.astype(FLOAT) for x in ([mean, inv_std] if has_mean else [inv_std])]
    mean, inv_std = mean.astype(FLOAT).astype(np.float64), inv_std.astype(FLOAT).astype(np.float64)
    wide_dy, wide_x, wide_scale = wide(dy, x, scale)
    z = (wide_x - mean) * inv_std
    dz = wide_dy * wide_scale
    dx = dz - z * (dz * z).mean(axes, keepdims=True)
    if has_mean:
        dx -= dz.mean(axes, keepdims=True)
    expected = [inv_std * dx, (wide_dy * z).sum(outer), wide_dy.sum(outer)][: 2 + has_mean]
    compare(
        "LayerNormalizationGrad" if has_mean else "SimplifiedLayerNormalizationGrad",
        [dy, x, scale, *statistics],
        expected,
        dict(list(GRADIENTS.items())[: 2 + has_mean]),
        1e-4,
        axis=axis,
    )


def test_layer_normalization_of_wrong_shapes() -> None:
    x, scale, row = floats(2, 3), floats(3), floats(2, 1)
    wrong = floats(4)
    for i in range(5):
        inputs = [x, x, scale, row, row]
        inputs[i] = wrong if i != 1 else floats(2, 5)
        with pytest.raises(Exception, match="expected"):
            run("LayerNormalizationGrad", inputs, GRADIENTS)


@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 7), (3, 2, 65, 67), (5, 3, 2, 3, 1), (0, 3, 4)])
def test_batch_normalization(shape: tuple) -> None:
    dy, x, scale = floats(*shape), floats(*shape), floats(shape[1])
    wide_dy, wide_x, wide_scale = wide(dy, x, scale)
    axes = tuple(axis for axis in range(len(shape)) if axis != 1)
    per_channel = (1, -1, *[1] * (len(shape) - 2))
    mean, inv_std = np.zeros(shape[1]), np.ones(shape[1])
    if x.size:
        mean, inv_std = wide_x.mean(axes), 1 / np.sqrt(wide_x.var(axes) + 1e-5)
    z = (wide_x - mean.reshape(per_channel)) * inv_std.reshape(per_channel)
    d_scale, d_bias = (wide_dy * z).sum(axes), wide_dy.sum(axes)
    count = max(1, x.size // shape[1])
    dz = wide_dy - (d_bias.reshape(per_channel) + z * d_scale.reshape(per_channel)) / count
    dx = dz * (wide_scale * inv_std).reshape(per_channel)
    inputs = [dy, x, scale, mean.astype(FLOAT), inv_std.astype(FLOAT)]
    compare("BatchNormalizationGrad", inputs, [dx, d_scale, d_bias], GRADIENTS, 1e-4)


def test_batch_normalization_of_wrong_shapes() -> None:
    x, channels = floats(2, 3, 4), floats(3)
    for i in range(5):
        inputs = [x, x, channels, channels, channels]
        inputs[i] = floats(4) if i != 1 else floats(2, 5, 4)
        with pytest.raises(Exception, match="expected"):
            run("BatchNormalizationGrad", inputs, GRADIENTS)


def test_batch_normalization_of_wrong_types() -> None:
    x, channels = floats(2, 3, 4), floats(3)
    for i in range(5):
        inputs = [x, x, channels, channels, channels]
        inputs[i] = inputs[i].astype(np.int8)
        with pytest.raises(Exception, match="int8"):
            run("BatchNormalizationGrad", inputs, GRADIENTS)


# --- Attention ---

# queries, keys, heads, heads of keys, size, size of values, mask's shape, attributes
ATTENTION_CASES = [
    (5, 7, 2, 2, 4, 3, None, {}),
    (9, 9, 4, 2, 8, 8, None, {"is_causal": 1}),
    (6, 11, 4, 1, 5, 6, (1, 1, 6, 11), {"scale": 0.3}),
    (6, 11, 2, 2, 5, 6, (2, 2, 1, 11), {}),
    (11, 6, 2, 2, 5, 6, (2, 1, 11, 6), {"is_causal": 1}),
    # Several blocks of queries, and several parts of a head's gradient.
    (700, 900, 1, 1, 16, 8, None, {"is_causal": 1}),
    (700, 300, 2, 1, 16, 24, (1, 2, 700, 300), {}),
    (0, 3, 2, 2, 4, 4, None, {}),
    (3, 0, 2, 2, 4, 4, None, {}),
]


def heads_of(x: np.ndarray, heads: int) -> np.ndarray:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)


def rows_of(x: np.ndarray) -> np.ndarray:
    """The inverse of heads_of."""
    x = x.transpose(0, 2, 1, 3)
    return x.reshape(*x.shape[:2], x.shape[2] * x.shape[3])


def attention_case(case: tuple) -> tuple[list, list[np.ndarray], dict[str, object]]:
    """Inputs, expected results (Y, logsumexp, dQ, dK, dV) and attributes."""
    queries, keys, heads, kv_heads, size, value_size, mask_shape, attributes = case
    q = floats(2, queries, heads * size)
    k = floats(2, keys, kv_heads * size, seed=1)
    v = floats(2, keys, kv_heads * value_size, seed=2)
    dy = floats(2, queries, heads * value_size, seed=3)
    mask = None
    if mask_shape is not None:
        mask = floats(*mask_shape, seed=4)
        mask[floats(*mask_shape, seed=5) > 0.5] = -np.inf
        mask[..., 0, :] = -np.inf  # a query that sees no key, or all of them
        mask[..., -1:, 0] = 0
    group, scale = heads // kv_heads, attributes.get("scale", 1 / math.sqrt(size))
    wide_q, wide_dy = heads_of(*wide(q), heads), heads_of(*wide(dy), heads)
    wide_k, wide_v = (heads_of(*wide(x), kv_heads).repeat(group, 1) for x in (k, v))
    scores = scale * wide_q @ wide_k.swapaxes(2, 3)
    if mask is not None:
        scores = scores + mask
    if attributes.get("is_causal"):
        scores = np.where(np.tri(queries, keys, dtype=bool), scores, -np.inf)
    weights = np.exp(scores)
    total = weights.sum(3, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    slopes = wide_dy @ wide_v.swapaxes(2, 3)
    slopes = scale * weights * (slopes - (weights * slopes).sum(3, keepdims=True))
    of_keys = [slopes.swapaxes(2, 3) @ wide_q, weights.swapaxes(2, 3) @ wide_dy]
    expected = [
        rows_of(weights @ wide_v),
        np.log(np.where(total == 0, 1, total))[..., 0],
        rows_of(slopes @ wide_k),
        *(rows_of(x.reshape(2, kv_heads, group, *x.shape[2:]).sum(2)) for x in of_keys),
    ]
    options = {"q_num_heads": heads, "kv_num_heads": kv_heads} | attributes
    return [dy, q, k, v, *([] if mask is None else [mask])], expected, options


@pytest.mark.parametrize("case", ATTENTION_CASES, ids=str)
def test_attention(case: tuple) -> None:
    inputs, expected, options = attention_case(case)
    outputs = {"y": FLOAT, "l": FLOAT}
    compare("ScaledDotProductAttention", inputs[1:], expected[:2], outputs, **options)
    compare("ScaledDotProductAttention", inputs[1:], expected[:1], **options)


@pytest.mark.parametrize("case", ATTENTION_CASES, ids=str)
def test_gradient_of_attention(case: tuple) -> None:
    inputs, expected, options = attention_case(case)
    outputs = {"dq": FLOAT, "dk": FLOAT, "dv": FLOAT}
    compare("ScaledDotProductAttentionGrad", inputs, expected[2:], outputs, 1e-4, **options)


ATTENTION = {"q_num_heads": 2, "kv_num_heads": 2}


@pytest.mark.parametrize(
    ("changed", "shape", "options"),
    [
        (0, (2, 5, 9), ATTENTION),
        (1, (2, 5, 9), ATTENTION),
        (2, (2, 7, 6), ATTENTION),
        (3, (2, 6, 8), ATTENTION),
        (3, (3, 7, 8), ATTENTION),
        (4, (2, 3, 5, 7), ATTENTION),
        (4, (1, 1, 5, 1), ATTENTION),
        (4, (5, 7), ATTENTION),
        (0, (2, 5, 8), {"q_num_heads": 3, "kv_num_heads": 2}),
        (0, (2, 5, 8), {"q_num_heads": 2, "kv_num_heads": 0}),
    ],
)
def test_attention_of_wrong_shapes(changed: int, shape: tuple, options: dict) -> None:
    inputs = [floats(2, n, 8) for n in (5, 5, 7, 7)] + [floats(1, 1, 5, 7)]
    inputs[changed] = floats(*shape)
    outputs = {"dq": FLOAT, "dk": FLOAT, "dv": FLOAT}
    with pytest.raises(Exception, match="expected"):
        run("ScaledDotProductAttentionGrad", inputs, outputs, **options)


# --- Convolutions ---

CONV_OUTPUTS = {"dx": FLOAT, "dw": FLOAT, "db": FLOAT}
# x, w, attributes
CONV_CASES = [
    ((1, 1, 5), (1, 1, 3), {}),
    ((2, 4, 11), (6, 4, 3), {"strides": [2], "pads": [1, 2], "dilations": [2]}),
    ((2, 3, 8, 9), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 3, 9, 9), (5, 3, 3, 3), {"strides": [2, 2]}),
    ((1, 3, 10, 8), (4, 3, 3, 2), {"strides": [2, 3], "pads": [0, 1, 2, 0]}),
    ((2, 8, 12, 13), (12, 2, 3, 3), {"group": 4, "pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    ((3, 6, 7, 7), (6, 1, 3, 3), {"group": 6, "pads": [1, 1, 1, 1]}),
    ((2, 16, 9, 9), (24, 16, 1, 1), {}),
    ((2, 16, 9, 9), (24, 16, 1, 1), {"strides": [2, 2]}),
    ((1, 5, 40, 30), (33, 5, 7, 7), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((1, 4, 9, 7), (3, 4, 2, 4), {"strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    ((2, 40, 20, 20), (36, 40, 3, 3), {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}),
    # Winograd's filtering, in one round of images and in several, with parts of blocks and tiles.
    ((3, 24, 22, 31), (40, 24, 3, 3), {"pads": [1, 0, 2, 1]}),
    ((9, 64, 58, 58), (64, 64, 3, 3), {}),
    ((4, 32, 300), (32, 32, 3), {"pads": [1, 1]}),
    ((2, 2, 4, 5, 6), (3, 2, 2, 3, 2), {"strides": [1, 2, 1], "pads": [1, 0, 1, 0, 1, 0]}),
    ((2, 3, 6, 1), (4, 3, 3, 1), {"pads": [1, 0, 1, 0]}),
    ((0, 3, 5, 5), (4, 3, 3, 3), {}),
]


def conv_pads(x: tuple, w: tuple, strides: list, dilations: list, attributes: dict) -> list:
    rank = len(x) - 2
    kind = attributes.get("auto_pad", "NOTSET")
    if not kind.startswith("SAME"):
        pads = attributes.get("pads", [0] * (2 * rank))
        return list(zip(pads[:rank], pads[rank:], strict=True))
    result = []
    for size, kernel, stride, dilation in zip(x[2:], w[2:], strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
        low, high = total // 2, total - total // 2
        result.append((low, high) if kind == "SAME_UPPER" else (high, low))
    return result


class ConvReference:
    """Pairs of elements of the padded input and of the output, tap by tap."""

    def __init__(self, x: tuple, w: tuple, attributes: dict) -> None:
        rank = len(x) - 2
        self.x, self.w = x, w
        self.group = attributes.get("group", 1)
        self.strides = attributes.get("strides", [1] * rank)
        self.dilations = attributes.get("dilations", [1] * rank)
        self.pads = conv_pads(x, w, self.strides, self.dilations, attributes)
        self.padded = [n + low + high for n, (low, high) in zip(x[2:], self.pads, strict=True)]
        extents = [(k - 1) * d + 1 for k, d in zip(w[2:], self.dilations, strict=True)]
        self.out = [
            (n - e) // s + 1 for n, e, s in zip(self.padded, extents, self.strides, strict=True)
        ]

    def gradients(self, dy: np.ndarray, x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
        padded = np.pad(x, [(0, 0), (0, 0), *self.pads])
        d_padded, dw = np.zeros_like(padded), np.zeros_like(w)
        outs, ins = self.w[0] // self.group, self.w[1]
        axes = (0, *range(2, dy.ndim))
        for tap in np.ndindex(*self.w[2:]):
            spots = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, self.dilations, self.out, self.strides, strict=True)
            )
            for g in range(self.group):
                m, c = slice(g * outs, (g + 1) * outs), slice(g * ins, (g + 1) * ins)
                at = (slice(None), c, *spots)
                dw[(m, slice(None), *tap)] = np.tensordot(dy[:, m], padded[at], (axes, axes))
                d_padded[at] += np.einsum("nm...,mc->nc...", dy[:, m], w[(m, slice(None), *tap)])
        inside = tuple(
            slice(low, low + n) for n, (low, _) in zip(self.x[2:], self.pads, strict=True)
        )
        return [d_padded[(slice(None), slice(None), *inside)], dw, dy.sum(axes)]


@pytest.mark.parametrize(("x_shape", "w_shape", "attributes"), CONV_CASES)
def test_conv(x_shape: tuple, w_shape: tuple, attributes: dict) -> None:
    reference = ConvReference(x_shape, w_shape, attributes)
    x, w = floats(*x_shape), floats(*w_shape, seed=1)
    dy = floats(x_shape[0], w_shape[0], *reference.out, seed=2)
    dy /= math.sqrt(max(1, dy.size // w_shape[0]))  # of sums of so many terms
    expected = reference.gradients(*wide(dy, x, w))
    compare("ConvGrad", [dy, x, w], expected, CONV_OUTPUTS, 2e-4, **attributes)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_some_gradients_of_conv(wanted: tuple) -> None:
    dy, x, w = floats(2, 5, 6, 6), floats(2, 3, 8, 8), floats(5, 3, 3, 3)
    all_three = run("ConvGrad", [dy, x, w], CONV_OUTPUTS)
    names = [name if i in wanted else "" for i, name in enumerate(CONV_OUTPUTS)]
    outputs = {name or f"absent{i}": FLOAT for i, name in enumerate(names)}
    model = contrib.onnx.load_from_string(contrib.model("ConvGrad", [dy, x, w], outputs))
    model.graph.node[0].output[:] = names
    for value in [v for v in model.graph.output if v.name not in names]:
        model.graph.output.remove(value)
    actual = contrib.run_tenon(model.SerializeToString(), [dy, x, w])
    for a, i in zip(actual, wanted, strict=True):
        np.testing.assert_array_equal(a, all_three[i])


@pytest.mark.parametrize(
    ("dy", "x", "w", "text", "attributes"),
    [
        ((2, 5, 5, 5), (2, 3, 8, 8), (5, 3, 3, 3), "input 0", {}),
        ((2, 5, 6, 6), (2, 4, 8, 8), (5, 3, 3, 3), "input 1.*: expected 3 channels", {}),
        ((2, 5, 6, 6), (2, 3, 8, 8), (5, 3, 3), "input 2", {}),
        ((2, 5, 6, 6), (2, 6, 8, 8), (5, 3, 3, 3), "input 2.*: expected a multiple", {"group": 2}),
    ],
)
def test_conv_of_wrong_shapes(dy: tuple, x: tuple, w: tuple, text: str, attributes: dict) -> None:
    inputs = [floats(*dy), floats(*x), floats(*w)]
    refuses("ConvGrad", inputs, text, outputs=CONV_OUTPUTS, **attributes)


# --- Products of groups of rows ---


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("rows", "k", "n", "ends"),
    [
        (6, 3, 4, [1, 1, 5]),
        (6, 3, 4, [6]),
        (6, 3, 4, []),
        (0, 3, 4, [0, 0]),
        (6, 0, 4, [2, 6]),
        (6, 3, 0, [2, 6]),
        (300, 130, 65, [0, 40, 260, 263, 263, 264, 280, 281, 290, 300]),
        (300, 700, 90, [290, 300]),
    ],
)
def test_products_of_groups(rows: int, k: int, n: int, ends: list, dtype: type) -> None:
    a, b, c = floats(rows, k), floats(len(ends), k, n, seed=1), floats(rows, n, seed=2)
    wide_a, wide_b, wide_c = wide(a, b, c)
    y, products = np.zeros((rows, n)), np.zeros((len(ends), k, n))
    for i, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=False)):
        y[begin:end] = wide_a[begin:end] @ wide_b[i]
        products[i] = wide_a[begin:end].T @ wide_c[begin:end]
    limits = np.array(ends, dtype)
    transposed = np.ascontiguousarray(b.transpose(0, 2, 1))
    compare("GroupedMatMul", [a, b, limits], [y], tolerance=1e-4)
    compare("GroupedMatMul", [a, transposed, limits], [y], tolerance=1e-4, transB=1)
    compare("GroupedMatMul", [a, c, limits], [products], tolerance=1e-4)


def test_groups_of_wrong_inputs() -> None:
    a, b = floats(6, 3), floats(2, 3, 4)
    for ends in ([4, 2], [-1, 2], [2, 7]):
        refuses(
            "GroupedMatMul", [a, b, np.array(ends)], "input 2.*expected ascending ends in .0, 6"
        )
    ends = np.array([2, 6])
    refuses("GroupedMatMul", [a, b, ends[:1]], "input 1")
    refuses("GroupedMatMul", [a, b, ends], "input 1", transB=1)
    refuses("GroupedMatMul", [a, floats(5, 4), ends], "input 1")
    refuses("GroupedMatMul", [a, floats(6, 4), ends], "input 1.*without transB", transB=1)
    refuses("GroupedMatMul", [a[0], b, ends], "input 0")
    refuses("GroupedMatMul", [a, b, ends[None]], "input 2")


# --- Gathers, dropout, broadcasts ---


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((5,), (7,), 0),
        ((50, 33), (4, 60), 0),
        ((3, 4, 5), (), 1),
        ((2, 3, 40), (9, 2), -1),
        ((20, 3, 2), (5,), 1),
        ((4, 0), (3,), 0),
        ((6, 2), (0,), 0),
    ],
)
def test_gather(shape: tuple, indices: tuple, axis: int, dtype: type) -> None:
    size = shape[axis]
    index = np.random.default_rng(3).integers(-size, size, indices).astype(dtype)
    at = axis % len(shape)
    dy = floats(*shape[:at], *indices, *shape[at + 1 :])
    expected = np.zeros(shape)
    rows = np.moveaxis(expected, at, 0)
    flat = dy.astype(np.float64).reshape(*shape[:at], index.size, *shape[at + 1 :])
    np.add.at(rows, index.reshape(-1), np.moveaxis(flat, at, 0))
    for constants in [(), (0,)]:
        compare(
            "GatherGrad",
            [np.array(shape, dtype), index, dy],
            [expected],
            axis=axis,
            constants=constants,
        )


def test_gather_of_wrong_inputs() -> None:
    shape, dy = np.array([4, 3]), floats(2, 3)
    refuses("GatherGrad", [shape, np.array([0, 4]), dy], "expected|range")
    refuses("GatherGrad", [shape, np.array([0, 1, 2]), dy], "input 2")
    refuses("GatherGrad", [shape, np.array([0, 1]), dy], "axis", axis=2)
    refuses("GatherGrad", [np.array([4, -3]), np.array([0, 1]), dy], "input 0.*expected sizes")


@pytest.mark.parametrize("dtype", [FLOAT, np.float64])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((5,), (2, 4)),
        ((1,), (2, 1)),
        ((4, 5), (0, 3, 7, 0)),
        ((30, 20, 17), (0, 2, 1, 0, 1, 3)),
        ((2, 3, 4, 5), (1, 0, 2, 0, 0, 0, 1, 0)),
        ((3, 6), (0, -2, 1, -1)),
        ((0, 3), (0, 1, 0, 1)),
    ],
)
def test_pads(shape: tuple, pads: tuple, mode: str, dtype: type) -> None:
    rank = len(shape)
    kept = tuple(slice(-min(pads[i], 0), n + min(pads[rank + i], 0)) for i, n in enumerate(shape))
    widths = [(max(pads[i], 0), max(pads[rank + i], 0)) for i in range(rank)]
    places = np.arange(math.prod(shape)).reshape(shape)[kept]
    settings = {"constant_values": -1} if mode == "constant" else {}
    places = np.pad(places, widths, mode, **settings).reshape(-1)  # type: ignore[call-overload]
    sizes = [n + pads[i] + pads[rank + i] for i, n in enumerate(shape)]
    dy = floats(*sizes).astype(dtype)
    expected = np.zeros(math.prod(shape))
    np.add.at(expected, places[places >= 0], dy.reshape(-1)[places >= 0])
    inputs = [dy, np.array(shape), np.array(pads)]
    for constants in [(), (1, 2)]:
        found = [
            run("PadGrad", inputs, {"y": dtype}, threads, mode=mode, constants=constants)[0]
            for threads in (1, 2, 3)
        ]
        np.testing.assert_allclose(found[0], expected.reshape(shape), 1e-5, 1e-5)
        assert found[0].dtype == dtype
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_pads_of_some_axes() -> None:
    dy = floats(2, 7, 3)
    inputs = [dy, np.array([2, 4, 3]), np.array([1, 2]), np.array([-2])]
    expected = dy[:, 1:5].astype(float)
    expected[:, 1] += dy[:, 0]
    expected[:, 2] += dy[:, 5]
    expected[:, 1] += dy[:, 6]
    compare("PadGrad", inputs, [expected], mode="reflect")


def test_pads_of_wrong_inputs() -> None:
    shape, pads = np.array([4, 3]), np.array([1, 0, 0, 2])
    refuses("PadGrad", [floats(5, 4), shape, pads], "input 0", mode="edge")
    refuses("PadGrad", [floats(5, 5), shape, pads[:3]], "expected 4 pads", mode="edge")
    refuses("PadGrad", [floats(5, 5), shape, pads], "mode.*around", mode="around")
    refuses("PadGrad", [floats(5, 5), -shape, pads], "input 1.*expected sizes", mode="edge")
    refuses("PadGrad", [floats(1, 2), 0 * shape, pads], "no elements to pad with", mode="edge")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ratio", [None, FLOAT(0), FLOAT(0.3), np.float64(0.9), np.float16(0.25)])
def test_dropout(shape: tuple, ratio: np.floating | None) -> None:
    dy, mask = floats(*shape), np.asarray(floats(*shape, seed=1) > 0)
    inputs = [dy, mask]
    if ratio is not None:
        inputs += [np.array(ratio), np.array(True)]
    kept = 1 - (0.5 if ratio is None else float(ratio))
    compare("DropoutGrad", inputs, [np.where(mask, dy.astype(np.float64) / kept, 0)])


def test_dropout_of_half() -> None:
    dy, mask = floats(9, dtype=np.float16), np.arange(9) % 2 == 0
    (actual,) = run("DropoutGrad", [dy, mask, np.array(FLOAT(0.5))], {"y": np.float16})
    np.testing.assert_array_equal(actual, np.where(mask, 2 * dy, np.float16(0)))


def test_dropout_of_wrong_inputs() -> None:
    dy, mask = floats(3), np.ones(3, bool)
    refuses("DropoutGrad", [dy, mask, np.array(FLOAT(1))], "input 2.*ratio in")
    refuses("DropoutGrad", [dy, mask, floats(2)], "input 2")
    refuses("DropoutGrad", [dy, np.ones(2, bool)], "input 1")


@pytest.mark.parametrize("constants", [(), (0, 1)])
@pytest.mark.parametrize(
    ("a", "b", "a_axes", "b_axes"),
    [
        ([2, 3], [2, 3], [], []),
        ([2, 1], [1, 3], [1], [0]),
        ([3], [4, 5, 3], [1, 0], []),
        ([4, 1, 1, 1], [1, 7], [3], [1, 0]),
        ([], [2, 3], [1, 0], []),
        ([], [], [], []),
        ([2, 0], [1], [], [1, 0]),
    ],
)
def test_broadcast_gradient_args(
    a: list, b: list, a_axes: list, b_axes: list, constants: tuple
) -> None:
    inputs = [np.array(a, np.int64), np.array(b, np.int64)]
    outputs = {"a_axes": np.int64, "b_axes": np.int64}
    expected = [np.array(a_axes, np.int64), np.array(b_axes, np.int64)]
    check("BroadcastGradientArgs", inputs, outputs, expected, constants=constants)
    check("BroadcastGradientArgs", inputs, {"a_axes": np.int64}, expected[:1], constants=constants)


def test_broadcast_of_shapes_that_do_not_fit() -> None:
    inputs = [np.array([2, 3]), np.array([4, 3])]
    refuses("BroadcastGradientArgs", inputs, "cannot be broadcast", outputs={"a": np.int64})


@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [-1, 0], [0, 1, 2], []])
def test_reduce_sum_training(axes: list, keepdims: int, constants: tuple) -> None:
    x = floats(5, 6, 70)
    for noop in (0, 1):
        reduced = tuple(axes) or (() if noop else None)
        expected = x.astype(np.float64).sum(reduced, keepdims=bool(keepdims))
        compare(
            "ReduceSumTraining",
            [x, np.array(axes, np.int64)],
            [expected],
            keepdims=keepdims,
            noop_with_empty_axes=noop,
            constants=constants,
        )


def test_reduce_sum_training_of_integers() -> None:
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    check("ReduceSumTraining", [x, np.array([1])], {"y": np.int64}, [x.sum(1, keepdims=True)])


# --- Pools ---


def pool_model(op_type: str, inputs: contrib.Arrays, declared: list | None, **attributes) -> bytes:
    """The output's declared shape is the size of the gradient."""
    content = contrib.model(op_type, inputs, {"y": inputs[0].dtype.type}, domain="", **attributes)
    model = contrib.onnx.load_from_string(content)
    kind = model.graph.output[0].type.tensor_type.elem_type
    output = contrib.helper.make_tensor_value_info("y", kind, declared)
    model.graph.output[0].CopyFrom(output)
    return model.SerializeToString()


def compare_pool(
    op_type: str, inputs: contrib.Arrays, expected: np.ndarray, declared: list, **attributes
) -> None:
    content = pool_model(op_type, inputs, declared, **attributes)
    results = []
    for threads in (1, 2, 3):
        settings = tenon.SessionOptions()
        settings.intra_op_num_threads = threads
        session = tenon.InferenceSession(content, settings)
        results += session.run(None, {f"x{i}": x for i, x in enumerate(inputs)})
    assert results[0].shape == expected.shape
    np.testing.assert_allclose(results[0], expected, rtol=2e-5, atol=2e-5)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


@pytest.mark.parametrize("batch", ["N", 2])
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 3, 9), {"kernel_shape": [3], "strides": [2]}),
        ((2, 5, 40, 30), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 2, 4, 5, 6), {"kernel_shape": [2, 2, 2]}),
    ],
)
def test_max_pool(shape: tuple, attributes: dict, batch: str | int) -> None:
    x = floats(*shape)
    outputs = {"y": FLOAT, "indices": np.int64}
    y, indices = run("MaxPool", [x], outputs, domain="", **attributes)
    dy = floats(*y.shape, seed=1)
    expected = np.zeros(x.size)
    np.add.at(expected, indices.reshape(-1), dy.astype(np.float64).reshape(-1))
    declared = [batch, *shape[1:]]
    compare_pool("MaxPoolGrad", [dy, indices], expected.reshape(shape), declared)


def test_max_pool_with_indices_of_other_planes() -> None:
    dy, indices = floats(1, 2, 2), np.array([[[7, 0], [1, 7]]])
    expected = np.zeros(8)
    np.add.at(expected, indices.reshape(-1), dy.astype(np.float64).reshape(-1))
    compare_pool("MaxPoolGrad", [dy, indices], expected.reshape(1, 2, 4), [1, 2, 4])


def average_gradient(
    dy: np.ndarray, shape: tuple, kernel: list, strides: list, pads: list, counts_pads: bool
) -> np.ndarray:
    dx = np.zeros(shape)
    rank = len(kernel)
    for step in np.ndindex(*dy.shape[2:]):
        starts = [i * s - p for i, s, p in zip(step, strides, pads[:rank], strict=True)]
        spots = tuple(
            slice(max(0, a), min(n, a + k))
            for a, k, n in zip(starts, kernel, shape[2:], strict=True)
        )
        inside = math.prod(s.stop - s.start for s in spots)
        share = dy[(..., *step)] / (math.prod(kernel) if counts_pads else inside)
        dx[(..., *spots)] += share.reshape(*share.shape, *[1] * rank)
    return dx


@pytest.mark.parametrize("counts_pads", [0, 1])
@pytest.mark.parametrize(
    ("shape", "kernel", "strides", "pads"),
    [
        ((2, 3, 9), [3], [2], [0, 0]),
        ((2, 5, 40, 30), [3, 3], [2, 2], [1, 1, 1, 1]),
        ((1, 2, 10, 7), [4, 2], [1, 3], [2, 1, 0, 1]),
        ((2, 2, 4, 5, 6), [2, 3, 2], [1, 2, 1], [0, 1, 1, 1, 0, 0]),
    ],
)
def test_average_pool(
    shape: tuple, kernel: list, strides: list, pads: list, counts_pads: int
) -> None:
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    (y,) = run("AveragePool", [floats(*shape)], domain="", **attributes)
    dy = floats(*y.shape, seed=1)
    expected = average_gradient(
        dy.astype(np.float64), shape, kernel, strides, pads, bool(counts_pads)
    )
    attributes["count_include_pad"] = counts_pads
    compare_pool("AveragePoolGrad", [dy], expected, list(shape), **attributes)


def test_average_pool_of_half() -> None:
    dy = floats(1, 2, 4, dtype=np.float16)
    content = pool_model("AveragePoolGrad", [dy], [1, 2, 8], kernel_shape=[2], strides=[2])
    (actual,) = contrib.run_tenon(content, [dy])
    np.testing.assert_array_equal(actual, np.repeat(dy, 2, 2) / np.float16(2))


def test_pools_of_wrong_shapes() -> None:
    dy, indices = floats(1, 2, 3), np.zeros((1, 2, 3), np.int64)
    window = {"kernel_shape": [2], "strides": [2]}
    cases = [
        ("MaxPoolGrad", [dy, indices], None, "declared"),
        ("MaxPoolGrad", [dy, indices], [1, 2, "L"], "declared"),
        ("MaxPoolGrad", [dy, indices], [1, 3, 9], "input 0"),
        ("MaxPoolGrad", [dy, indices[..., :2]], [1, 2, 9], "input 1"),
        ("MaxPoolGrad", [dy, indices - 1], [1, 2, 9], "input 1.*indices in"),
        ("AveragePoolGrad", [dy], [1, 2, 9], "input 0"),
    ]
    for op_type, inputs, declared, text in cases:
        attributes = window if op_type == "AveragePoolGrad" else {}
        with pytest.raises(Exception, match=text):
            contrib.run_tenon(pool_model(op_type, inputs, declared, **attributes), inputs)


# --- Regions: gradients are compared in tests/conformance/test_torch_gradient.py ---

REGIONS = [floats(3, 2, 2, 2), floats(1, 2, 5, 5), floats(3, 4), np.zeros(3, np.int64)]


@pytest.mark.parametrize(
    ("changed", "value", "options", "text"),
    [
        (0, floats(3, 2, 2, 3), {}, "input 0 'x0': expected"),
        (0, floats(2, 2, 2, 2), {}, "input 0 'x0': expected"),
        (1, floats(2, 5, 5), {}, "input 1"),
        (2, floats(3, 3), {}, "input 2 'x2': expected regions of 4 numbers"),
        (2, np.full((3, 4), np.nan, FLOAT), {}, "input 2 'x2': expected finite numbers"),
        (3, np.zeros(2, np.int64), {}, "input 3 'x3': expected 3 images"),
        (3, np.ones(3, np.int64), {}, r"input 3 'x3': expected images in \[0, 1\)"),
        (1, floats(1, 2, 5, 5), {"output_height": 0}, "at least 1 x 1"),
        (1, floats(1, 2, 5, 5), {"mode": "sum"}, "mode"),
        (1, floats(1, 2, 5, 5), {"sampling_ratio": -1}, "sampling_ratio"),
    ],
)
def test_aligned_regions_of_wrong_inputs(
    changed: int, value: np.ndarray, options: dict, text: str
) -> None:
    inputs = list(REGIONS)
    inputs[changed] = value
    refuses("RoiAlignGrad", inputs, text, **({"output_height": 2, "output_width": 2} | options))


@pytest.mark.parametrize(
    ("rois", "options", "text"),
    [
        (floats(3, 4), {}, "input 2 'x2': expected regions of 5 numbers"),
        (np.ones((3, 5), FLOAT), {}, r"input 2 'x2': expected images in \[0, 1\)"),
        (np.zeros((3, 5), FLOAT), {"pooled_shape": [2]}, "pooled_shape"),
        (np.zeros((3, 5), FLOAT), {"pooled_shape": [2, 3]}, "input 0 'x0': expected"),
    ],
)
def test_pooled_regions_of_wrong_inputs(rois: np.ndarray, options: dict, text: str) -> None:
    refuses("MaxRoiPoolGrad", [*REGIONS[:2], rois], text, **({"pooled_shape": [2, 2]} | options))


# --- Losses ---

LOSS_GRAD = {"y": FLOAT}


def loss_gradient(
    dy: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray | None,
    ignored: int | None,
    reduction: str,
) -> np.ndarray:
    """Of the loss by `scores` [N, C, ...], in float64."""
    log_prob = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    classes = np.moveaxis(np.exp(log_prob), 1, -1).reshape(-1, scores.shape[1]).copy()
    flat = labels.reshape(-1)
    keep = np.ones(flat.shape, bool) if ignored is None else flat != ignored
    scale = np.where(keep, 1.0 if weight is None else weight[np.where(keep, flat, 0)], 0.0)
    classes[np.arange(len(flat))[keep], flat[keep]] -= 1
    if reduction == "mean":
        total = scale.sum()
        scale = scale / total if total else np.zeros_like(scale)
    classes *= (scale * (dy.reshape(-1) if reduction == "none" else float(dy)))[:, None]
    spatial = (scores.shape[0], *scores.shape[2:])
    return np.moveaxis(classes.reshape(*spatial, -1), -1, 1)


@pytest.mark.parametrize("shape", [(5, 3), (4, 10, 6), (2, 7, 3, 5), (3000, 11)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("is_internal", [False, True])
def test_cross_entropy_gradient(shape: tuple, reduction: str, is_internal: bool) -> None:
    rng = np.random.default_rng(3)
    scores = rng.standard_normal(shape)
    log_prob = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    spatial = (shape[0], *shape[2:])
    labels = rng.integers(0, shape[1], spatial).astype(np.int64 if is_internal else np.int32)
    dy = rng.standard_normal(spatial if reduction == "none" else ())
    for weight in (None, rng.uniform(0.5, 2, shape[1])):
        for ignored in (None, int(labels.flat[0]), -100):
            labels.flat[1] = -100 if ignored == -100 else labels.flat[0]
            expected = loss_gradient(dy, scores, labels, weight, ignored, reduction)
            inputs = [dy.astype(FLOAT), log_prob.astype(FLOAT), labels]
            inputs += [None if weight is None else weight.astype(FLOAT)]
            options: dict[str, object] = {"reduction": reduction}
            if is_internal:
                bias = rng.standard_normal(shape)
                inputs += [None if ignored is None else np.array(ignored), bias.astype(FLOAT)]
                expected = expected + bias
            elif ignored is not None:
                options["ignore_index"] = ignored
            name = "SoftmaxCrossEntropyLoss" + ("Internal" if is_internal else "") + "Grad"
            compare(name, inputs, [expected], **options)


def test_cross_entropy_gradient_where_all_is_ignored() -> None:
    inputs = [np.array(1, FLOAT), np.full((2, 3), -np.inf, FLOAT), np.array([1, 1])]
    (dx,) = run("SoftmaxCrossEntropyLossGrad", inputs, ignore_index=1)
    assert not dx.any()


def test_cross_entropy_gradient_takes_the_memory_of_the_probabilities() -> None:
    rows, classes = 64, 1000
    model = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 20, "com.microsoft": 1]>
        g (float dy, float[{rows}, {classes}] x, int64[{rows}] i) => (float[{classes}] y)
            <int64[1] first = {{0}}> {{
            log_prob = LogSoftmax <axis=1> (x)
            dx = com.microsoft.SoftmaxCrossEntropyLossGrad (dy, log_prob, i)
            y = ReduceMax <keepdims=0> (dx, first)
        }}"""
    )
    x, labels = floats(rows, classes), np.arange(rows) * 7
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.run_report", "1")
    session = tenon.InferenceSession(model.SerializeToString())
    (y,) = session.run(None, {"dy": np.array(2, FLOAT), "x": x, "i": labels}, options)
    expected = loss_gradient(np.array(2), x.astype(np.float64), labels, None, None, "mean")
    np.testing.assert_allclose(y, expected.max(0), rtol=2e-5, atol=1e-7)
    assert options.get_run_report()["memory"][0]["peak_bytes"] < 1.5 * x.nbytes


@pytest.mark.parametrize("shape", [(5, 3), (2, 7, 3, 5)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("has_weight", [False, True])
@pytest.mark.parametrize("ignores", [False, True])
def test_internal_cross_entropy(
    shape: tuple, reduction: str, has_weight: bool, ignores: bool
) -> None:
    rng = np.random.default_rng(3)
    scores = rng.standard_normal(shape).astype(FLOAT)
    wide_scores = scores.astype(np.float64)
    log_prob = wide_scores - np.log(np.exp(wide_scores).sum(axis=1, keepdims=True))
    labels = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    weight = rng.uniform(0.5, 2, shape[1]).astype(FLOAT) if has_weight else None
    scale = np.ones(labels.shape) if weight is None else weight[labels].astype(np.float64)
    loss = -np.take_along_axis(log_prob, labels[:, None], 1)[:, 0]
    inputs = [scores, labels, weight]
    if ignores:
        scale[rng.uniform(size=labels.shape) < 0.4] = 0
        labels[scale == 0] = -100
        inputs.append(np.array(-100))
    loss = loss * scale
    if reduction != "none":
        loss = np.asarray(loss.sum() / (scale.sum() if reduction == "mean" else 1))
    outputs = {"y": FLOAT, "log_prob": FLOAT}
    compare(
        "SoftmaxCrossEntropyLossInternal", inputs, [loss, log_prob], outputs, reduction=reduction
    )


def test_internal_cross_entropy_of_halves() -> None:
    scores, labels = floats(4, 3, dtype=np.float16), np.array([0, 2, 1, 1], np.int32)
    outputs = {"y": FLOAT, "log_prob": np.float16}
    y, log_prob = run("SoftmaxCrossEntropyLossInternal", [scores, labels], outputs, output_type=1)
    assert y.dtype == FLOAT
    np.testing.assert_allclose(y, -log_prob[range(4), labels].mean(dtype=FLOAT), rtol=2e-3)


def test_cross_entropy_gradient_of_wrong_inputs() -> None:
    x, dy = np.zeros((2, 3), FLOAT), np.array(1, FLOAT)
    name = "SoftmaxCrossEntropyLossGrad"
    refuses(name, [dy, x, np.array([0, 3])], r"input 2 'x2': expected classes in \[0, 3\), got 3")
    refuses(name, [dy, x, np.array([0, 1, 2])], "input 2")
    refuses(name, [dy, x, np.array([0, 1])], "reduction", reduction="median")
    name = "SoftmaxCrossEntropyLossInternalGrad"
    refuses(name, [dy, x, np.array([0, 1])], "expected float, got float16", output_type=10)


# --- Recurrent layers: gradients are compared in tests/conformance/test_recurrent_gradient.py ---

X, W, R = floats(5, 2, 3), floats(1, 12, 3, seed=1), floats(1, 12, 4, seed=2)
LENS = np.array([5, 2], np.int32)


@pytest.mark.parametrize("dtype", [FLOAT, np.float64])
@pytest.mark.parametrize("linear", [0, 1])
def test_gru_keeps_its_gates(dtype: type, linear: int) -> None:
    """z, r and the candidate, from which the states follow; 0 after a sequence's end."""
    inputs = [x.astype(dtype) for x in (X, W, R)]
    options = {"hidden_size": 4, "linear_before_reset": linear}
    outputs = {"h": dtype, "last": dtype, "zrh": dtype}
    states, last, gates = run("GRUTraining", [*inputs, None, LENS], outputs, **options)
    assert gates.shape == (5, 1, 2, 12)
    z, _, candidate = np.split(gates, 3, -1)
    before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])
    is_active = np.arange(5)[:, None, None, None] < LENS[:, None]
    expected = np.where(is_active, (1 - z) * candidate + z * before, 0)
    np.testing.assert_allclose(states, expected, rtol=1e-6)
    assert not gates[~is_active[..., 0]].any()
    np.testing.assert_array_equal(last[0], [states[4, 0, 0], states[1, 0, 1]])


@pytest.mark.parametrize("dtype", [FLOAT, np.float64])
def test_lstm_keeps_its_gates_and_cell_states(dtype: type) -> None:
    inputs = [X.astype(dtype), *[np.tile(x, (1, 4, 1))[:, :16].astype(dtype) for x in (W, R)]]
    outputs = {y: dtype for y in ("h", "last", "last_c", "c", "iofc")}
    states, _, last_c, cells, gates = run(
        "LSTMTraining", [*inputs, None, LENS], outputs, hidden_size=4
    )
    i, o, f, c = np.split(gates, 4, -1)
    before = np.concatenate([np.zeros_like(cells[:1]), cells[:-1]])
    np.testing.assert_allclose(cells, f * before + i * c, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(states, o * np.tanh(cells), rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(last_c[0], [cells[4, 0, 0], cells[1, 0, 1]])


@pytest.mark.parametrize(
    ("i", "shape"), [(1, (1, 12, 5)), (6, (5, 1, 1, 4)), (7, (5, 1, 2, 8)), (9, (1, 3, 4))]
)
def test_shapes_of_a_recurrent_gradient(i: int, shape: tuple) -> None:
    inputs = [X, W, R, floats(1, 24), LENS, floats(1, 2, 4), floats(5, 1, 2, 4)]
    inputs += [floats(5, 1, 2, 12), floats(5, 1, 2, 4), floats(1, 2, 4)]
    inputs[i] = floats(*shape)
    refuses("GRUGrad", inputs, f"input {i} .*expected", hidden_size=4)


def test_lengths_of_sequences_in_a_gradient() -> None:
    inputs = [X, W, R, floats(1, 24), np.array([5, 6], np.int32), floats(1, 2, 4)]
    inputs += [floats(5, 1, 2, 4), floats(5, 1, 2, 12), floats(5, 1, 2, 4), floats(1, 2, 4)]
    refuses("GRUGrad", inputs, "input 4 .*expected lengths", hidden_size=4)


# --- Operators that are replaced by simpler ones ---


def test_batch_norm_internal() -> None:
    x, scale, bias = floats(4, 3, 5), 1 + floats(3, seed=1) / 9, floats(3, seed=2)
    mean, variance = floats(3, seed=3), 1 + floats(3, seed=4) ** 2
    wide_x, wide_scale, wide_bias = wide(x, scale, bias)
    own_mean, own = wide_x.mean((0, 2)), wide_x.var((0, 2))
    inverse = 1 / np.sqrt(own + 1e-3)
    column = (slice(None), None)
    y = (wide_x - own_mean[column]) * (inverse * wide_scale)[column] + wide_bias[column]
    expected = [y, 0.8 * mean + 0.2 * own_mean, 0.8 * variance + 0.2 * own, own_mean, inverse]
    outputs = dict.fromkeys(["y", "running_mean", "running_var", "mean", "inverse"], FLOAT)
    inputs = [x, scale, bias, mean, variance]
    compare("BatchNormInternal", inputs, expected, outputs, epsilon=1e-3, momentum=0.8)


def test_gathers() -> None:
    indices = np.array([[0, 2], [2, 2]], np.int64)
    dy = floats(2, 2)
    dx = np.zeros((2, 3))
    for row in range(2):
        for column in range(2):
            dx[row, indices[row, column]] += dy[row, column]
    shape = np.array([2, 3], np.int64)
    compare("GatherElementsGrad", [dy, shape, indices], [dx], axis=1)
    update = floats(2, 3)
    rows = np.array([[1], [1]], np.int64)
    compare("GatherNDGrad", [shape, rows, update], [np.stack([np.zeros(3), update.sum(0)])])


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("dtype", [FLOAT, np.float64])
def test_gathers_in_batches(batches: int, depth: int, dtype: type) -> None:
    shape = (2, 3, 4, 5, 3)
    limits = shape[batches : batches + depth]
    rng = np.random.default_rng(3)
    indices = np.stack([rng.integers(-n, n, (*shape[:batches], 7)) for n in limits], -1)
    dy = floats(*indices.shape[:-1], *shape[batches + depth :], dtype=dtype)
    dx = np.zeros(shape)
    for at in np.ndindex(*indices.shape[:-1]):
        dx[(*at[:batches], *indices[at])] += dy[at]
    inputs = [np.array(shape), indices, dy]
    (actual,) = run("GatherNDGrad", inputs, {"dx": dtype}, batch_dims=batches)
    np.testing.assert_allclose(actual, dx, rtol=1e-5 if dtype == FLOAT else 1e-13, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(0, 255), (-8, 7)])
def test_fake_quantization(low: int, high: int) -> None:
    x, scale, zero_point = 9 * floats(4, 50), np.array(0.7, FLOAT), np.array(3, FLOAT)
    level = np.round(x / scale) + zero_point
    is_inside = (level >= low) & (level <= high)
    assert is_inside.any() and not is_inside.all()
    expected = (np.clip(level, low, high) - zero_point) * scale
    inputs, outputs = [x, scale, zero_point], {"y": FLOAT, "mask": np.bool_}
    y, mask = run("FakeQuant", inputs, outputs, quant_min=low, quant_max=high)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    np.testing.assert_array_equal(mask, is_inside)
    compare("FakeQuantGrad", [x, mask], [np.where(mask, x, 0)])


@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((1,), (2, 3))])
def test_div(shapes: tuple) -> None:
    a, b = floats(*shapes[0]), 2 + floats(*shapes[1], seed=1) ** 2
    dy = floats(2, 3, seed=2)
    wide_dy, wide_a, wide_b = wide(dy, a, b)

    def summed(value: np.ndarray, shape: tuple) -> np.ndarray:
        axes = tuple(range(2 - len(shape))) if shape != (1,) else (0, 1)
        return value.sum(axes).reshape(shape)

    expected = [
        summed(wide_dy / wide_b, shapes[0]),
        summed(-wide_dy * wide_a / wide_b**2, shapes[1]),
    ]
    compare("DivGrad", [dy, a, b], expected, {"da": FLOAT, "db": FLOAT})


@pytest.mark.parametrize(
    ("op_type", "derivative"),
    [("BiasGeluGrad_dX", gelu_derivative), ("BiasFastGeluGrad_dX", fast_gelu_derivative)],
)
def test_bias_gelu(op_type: str, derivative: object) -> None:
    dy, x, bias = floats(4, 6), floats(4, 6, seed=1), floats(6, seed=2)
    wide_dy, wide_x, wide_bias = wide(dy, x, bias)
    compare(op_type, [dy, x, bias], [wide_dy * derivative(wide_x + wide_bias)])


def test_concat_and_split() -> None:
    x, y = floats(2, 3), floats(2, 2, seed=1)
    outputs = {"z": FLOAT, "lengths": np.int64}
    z, lengths = run("ConcatTraining", [x, y], outputs, axis=1)
    np.testing.assert_array_equal(z, np.concatenate([x, y], 1))
    np.testing.assert_array_equal(lengths, [3, 2])
    parts = run("SplitTraining", [z, lengths], {"x": FLOAT, "y": FLOAT}, axis=1)
    np.testing.assert_array_equal(parts[0], x)
    np.testing.assert_array_equal(parts[1], y)


def test_softmax_over_all_last_axes() -> None:
    dy = floats(3, 4, 5)
    y = np.exp(floats(3, 4, 5, seed=1).reshape(3, 20).astype(np.float64))
    y /= y.sum(1, keepdims=True)
    flat = dy.reshape(3, 20).astype(np.float64)
    expected = y * (flat - (flat * y).sum(1, keepdims=True))
    inputs = [dy, y.reshape(3, 4, 5).astype(FLOAT)]
    compare("SoftmaxGrad", inputs, [expected.reshape(3, 4, 5)], axis=1)
    expected = flat - y * flat.sum(1, keepdims=True)
    inputs[1] = np.log(y).reshape(3, 4, 5).astype(FLOAT)
    compare("LogSoftmaxGrad", inputs, [expected.reshape(3, 4, 5)], axis=1)


def test_scales_and_norms() -> None:
    x, y = floats(2, 3), floats(2, 3, seed=1)
    wide_x, wide_y = wide(x, y)
    compare(
        "ReduceAllL2",
        [x, floats(5)],
        [np.sqrt((wide_x**2).sum() + (wide(floats(5))[0] ** 2).sum())],
    )
    compare("ScaledSum", [x, y], [0.5 * wide_x - 2 * wide_y], scale_0=0.5, scale_1=-2.0)
    outputs = {"a": FLOAT, "b": FLOAT}
    compare("BatchScale", [x], [3 * wide_x, wide_x / 4], outputs, scale_0=3.0, scale_1=0.25)
    compare("Scale", [x, np.array(4, FLOAT)], [wide_x / 4], scale_down=1)
    half = {"a": np.float16, "b": np.float16}
    inputs = [np.array(0.5, FLOAT), x, y]
    (joined,) = run("MixedPrecisionScale", inputs, {"a": np.float16}, to=10, fuse_outputs=1)
    np.testing.assert_array_equal(
        joined, np.concatenate([x.ravel(), y.ravel()]).astype(np.float16) * np.float16(0.5)
    )
    a, b = run("MixedPrecisionScale", inputs, half, to=10)
    np.testing.assert_array_equal(a, (x * FLOAT(0.5)).astype(np.float16))
    np.testing.assert_array_equal(b, (y * FLOAT(0.5)).astype(np.float16))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_scales_and_zeros_of_other_types(dtype: type) -> None:
    x, y = floats(2, 3, dtype=dtype), floats(2, 3, seed=1, dtype=dtype)
    outputs = {"a": dtype, "b": dtype}
    (total,) = run("ScaledSum", [x, y], {"a": dtype}, scale_0=0.5, scale_1=-2.0)
    np.testing.assert_allclose(total, x * dtype(0.5) - 2 * y, rtol=2e-3)
    a, b = run("BatchScale", [x], outputs, scale_0=2.0, scale_1=0.25)
    np.testing.assert_array_equal([a, b], [2 * x, x * dtype(0.25)])
    (zeros,) = run("ZeroGradient", [x, np.array([True])], {"a": dtype})
    np.testing.assert_array_equal(zeros, np.zeros_like(x))
    shape, indices = np.array([2, 3]), np.array([[0, 2], [2, 1]])
    (dx,) = run("GatherElementsGrad", [x[:, :2].copy(), shape, indices], {"a": dtype}, axis=1)
    np.testing.assert_array_equal(dx, [[x[0, 0], 0, x[0, 1]], [0, x[1, 1], x[1, 0]]])


@pytest.mark.parametrize("signal", [True, False])
def test_older_accumulators(signal: bool) -> None:
    x, y = floats(2, 3), floats(2, 3, seed=1)
    flag = np.array([signal])
    compare("InPlaceAccumulator", [x, y, flag], [x + y if signal else x])
    compare("ZeroGradient", [x, flag], [np.zeros((2, 3))])
    np.testing.assert_array_equal(run("PassThrough", [x, y], {"a": FLOAT, "b": FLOAT})[1], y)


def test_older_sgd() -> None:
    rate, weights, gradients = np.array([0.1], FLOAT), floats(7), floats(7, seed=1)
    change = -0.1 * wide(gradients)[0]
    outputs = {"weights": FLOAT, "change": FLOAT}
    compare("SGDOptimizer", [rate, weights, gradients], [weights + change, change], outputs)


ADAM = {"alpha": 0.8, "beta": 0.9, "lambda": 0.05, "epsilon": 1e-6}
ADAM_OUTPUTS = {"t": np.int64, "m": FLOAT, "v": FLOAT, "w": FLOAT, "g": FLOAT}


def adam_inputs() -> list[np.ndarray]:
    """Of step 3: rate, step, weights, gradients and moments."""
    moments = [floats(9, seed=2) / 9, floats(9, seed=3) ** 2]
    return [np.array([0.01], FLOAT), np.array(3, np.int64), floats(9), floats(9, seed=1), *moments]


def adam(inputs: list[np.ndarray], mode: int, corrects: int, scale: float = 1) -> list[np.ndarray]:
    """The new moments and weights, and the change, of gradients that are divided by `scale`."""
    w, g, m, v = wide(*inputs[2:6])
    g = g / scale
    m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
    of_m, of_v = (1 - 0.8**3, 1 - 0.9**3) if corrects else (1, 1)
    if mode == 0:
        change = -0.01 * (m / of_m / (np.sqrt(v / of_v) + 1e-6) + 0.05 * w)
    else:
        part = 0.01 * math.sqrt(of_v) / of_m * m / (np.sqrt(v) + 1e-6)
        change = -part - 0.01 * 0.05 * (w - part)
    return [m, v, w + change, change]


def same(actual: list[np.ndarray], expected: list[np.ndarray], tolerance: float = 2e-5) -> None:
    for got, wanted in zip(actual, expected, strict=True):
        np.testing.assert_allclose(
            got.astype(np.float64), wanted, rtol=tolerance, atol=tolerance / 20
        )


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("corrects", [0, 1])
def test_older_adam(mode: int, corrects: int) -> None:
    inputs = adam_inputs()
    options = ADAM | {"weight_decay_mode": mode, "do_bias_correction": corrects}
    actual = run("AdamOptimizer", inputs, ADAM_OUTPUTS, **options)
    assert actual[0] == 4
    same(actual[1:], adam(inputs, mode, corrects))


# The loss's scale, the norm of the scaled gradients, and what gradients are divided by if
# max_norm_clip is 0.5.
SCALES = {
    "scale": (64, None, 64),
    "a small norm": (None, 0.4, 1),
    "a large norm": (None, 4, 8),
    "scale and small norm": (64, 31, 64),
    "scale and large norm": (64, 48, 96),
}


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("case", SCALES)
def test_older_adam_of_a_scaled_loss(case: str, mode: int) -> None:
    scale, norm, divisor = SCALES[case]
    inputs = adam_inputs()
    given = [None if x is None else np.array([x], FLOAT) for x in (scale, norm)]
    options = ADAM | {"weight_decay_mode": mode, "max_norm_clip": 0.5}
    actual = run("AdamOptimizer", [*inputs, None, *given], ADAM_OUTPUTS, **options)
    same(actual[1:], adam(inputs, mode, 1, divisor))


def test_older_adam_of_narrow_types() -> None:
    inputs = adam_inputs()
    inputs[3:] = [x.astype(np.float16) for x in inputs[3:]]
    narrow = inputs[2].astype(np.float16)
    half = np.float16
    outputs = {"t": np.int64, "m": half, "v": half, "w": FLOAT, "g": half, "narrow": half}
    scale = np.array([8], FLOAT)
    actual = run("AdamOptimizer", [*inputs, narrow, scale], outputs, **ADAM)
    *expected, change = adam(inputs, 0, 1, 8)
    same(actual[1:4], expected, 2e-3)
    np.testing.assert_allclose(actual[4].astype(float), change, rtol=2e-3, atol=1e-6)
    np.testing.assert_array_equal(actual[5], actual[3].astype(half))


@pytest.mark.parametrize("signal", [True, False])
def test_older_adam_may_skip_a_step(signal: bool) -> None:
    inputs = adam_inputs()
    given = [*inputs, None, None, None, np.array([signal])]
    actual = run("AdamOptimizer", given, ADAM_OUTPUTS, **ADAM)
    assert actual[0] == 3 + signal
    if signal:
        same(actual[1:], adam(inputs, 0, 1))
    else:
        for got, wanted in zip(actual[1:], [*inputs[4:6], *inputs[2:4]], strict=True):
            np.testing.assert_array_equal(got, wanted)


# --- Samples at positions; their numbers are those of PyTorch in tests/conformance ---

SAMPLED = (floats(2, 3, 5, 6), floats(2, 3, 7, 8), floats(2, 5, 6, 2))
SLOPES = {"dx": FLOAT, "dgrid": FLOAT}


@pytest.mark.parametrize("wanted", [0, 1])
def test_one_gradient_of_samples(wanted: int) -> None:
    both = run("GridSampleGrad", SAMPLED, SLOPES)
    model = contrib.onnx.load_from_string(contrib.model("GridSampleGrad", SAMPLED, SLOPES))
    del model.graph.output[1 - wanted]
    model.graph.node[0].output[1 - wanted] = ""
    (actual,) = contrib.run_tenon(model.SerializeToString(), list(SAMPLED))
    np.testing.assert_array_equal(actual, both[wanted])


def test_gradients_of_no_samples() -> None:
    dx, dgrid = run("GridSampleGrad", [SAMPLED[0][:, :, :0], SAMPLED[1], SAMPLED[2][:, :0]], SLOPES)
    np.testing.assert_array_equal(dx, np.zeros((2, 3, 7, 8)))
    assert dgrid.shape == (2, 0, 6, 2)


@pytest.mark.parametrize(
    ("changed", "shape", "options", "text"),
    [
        (0, (2, 3, 5, 7), {}, "input 0"),
        (0, (2, 4, 5, 6), {}, "input 0"),
        (1, (2, 3, 7), {}, "input 2"),
        (1, (1, 3, 7, 8), {}, "input 2"),
        (2, (2, 5, 6, 3), {}, "input 2"),
        (2, (2, 5, 6), {}, "input 2"),
        (0, (2, 3, 5, 6), {"mode": "cube"}, "mode.*cube"),
        (0, (2, 3, 5, 6), {"padding_mode": "none"}, "padding_mode.*none"),
    ],
)
def test_samples_of_wrong_shapes(changed: int, shape: tuple, options: dict, text: str) -> None:
    inputs = list(SAMPLED)
    inputs[changed] = floats(*shape)
    refuses("GridSampleGrad", inputs, text, outputs=SLOPES, **options)
