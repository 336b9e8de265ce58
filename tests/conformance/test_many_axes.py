"""Operators with unusually many axes, which onnx.reference supports in part."""

import itertools

import numpy as np
import pytest
import tenon
import ulps
from onnx import helper, parser

WINDOWS = {
    "plain": {"kernel_shape": [2, 2, 2, 2]},
    "everything": {
        "kernel_shape": [2, 3, 1, 2],
        "strides": [2, 1, 2, 1],
        "dilations": [1, 1, 1, 2],
        "pads": [0, 1, 0, 1, 1, 1, 0, 0],
    },
    "five axes": {"kernel_shape": [2, 1, 2, 2, 2], "strides": [1, 2, 1, 1, 2]},
    "thirty axes": {
        "kernel_shape": [2, 1, 2, *[1] * 26, 2],
        "pads": [0, 0, 1, *[0] * 26, 1, *[0] * 30],
    },
}
SIZES = [3, 4, 3, 5, 3, *[1] * 24, 2]


def numbers(*shape: int, seed: int = 3, dtype: type = np.float32) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 4).astype(dtype)


def input_of(window: dict, channels: int = 2, dtype: type = np.float32) -> np.ndarray:
    return numbers(2, channels, *SIZES[: len(window["kernel_shape"])], dtype=dtype)


def windows_of(x: np.ndarray, window: dict, fill: float) -> np.ndarray:
    """[N, C, out..., taps] of x with `fill` in its pads."""
    kernel = window["kernel_shape"]
    rank = len(kernel)
    strides, dilations = (window.get(name, [1] * rank) for name in ("strides", "dilations"))
    pads = window.get("pads", [0] * 2 * rank)
    widths = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.astype(np.float64), widths, constant_values=fill)
    out = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, d, s in zip(padded.shape[2:], kernel, dilations, strides, strict=True)
    ]
    taps = []
    for tap in itertools.product(*map(range, kernel)):
        part = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilations, out, strides, strict=True)
        ]
        taps.append(padded[(slice(None), slice(None), *part)])
    return np.stack(taps, axis=-1)


def check(actual: np.ndarray, expected: np.ndarray, limit: float = 8) -> None:
    """Of sums, to so many units in the last place of the largest number."""
    assert actual.shape == expected.shape
    apart = ulps.distances(actual, expected, of_largest=True).max(initial=0)
    assert apart <= limit, f"{apart} ULP"


def run(
    op_type: str, inputs: list[np.ndarray], outputs: int = 1, domain: str = "", **attributes
) -> list:
    names = [f"x{i}" for i in range(len(inputs))]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs, strict=True)
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
    )
    opsets = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = tenon.InferenceSession(model.SerializeToString())
    return session.run(None, dict(zip(names, inputs, strict=True)))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint8])
def test_max_pool(window: dict, dtype: type) -> None:
    x = np.abs(input_of(window, dtype=np.float32)).astype(dtype)
    y, indices = run("MaxPool", [x], 2, **window)
    np.testing.assert_array_equal(y, windows_of(x, window, -np.inf).max(-1))
    np.testing.assert_array_equal(x.reshape(-1)[indices], y)
    _, indices = run("MaxPool", [x], 2, storage_order=1, **window)
    planes = x.reshape(4, *x.shape[2:])
    columns = np.concatenate([plane.reshape(-1, order="F") for plane in planes])
    np.testing.assert_array_equal(columns[indices], y)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums(window: dict, dtype: type) -> None:
    x = input_of(window, dtype=dtype)
    elements = windows_of(x, window, 0)
    inside = windows_of(np.ones_like(x), window, 0).sum(-1)
    (y,) = run("AveragePool", [x], **window)
    check(y, elements.sum(-1) / inside)
    (y,) = run("AveragePool", [x], count_include_pad=1, **window)
    check(y, elements.mean(-1))
    (y,) = run("LpPool", [x], p=3, **window)
    check(y, (np.abs(elements) ** 3).sum(-1) ** (1 / 3))


def test_global_pools() -> None:
    x = numbers(2, 3, 3, 1, 2, 4, 2)
    axes = tuple(range(2, x.ndim))
    expected = {
        "GlobalMaxPool": x.max(axes, keepdims=True),
        "GlobalAveragePool": x.mean(axes, keepdims=True),
        "GlobalLpPool": np.sqrt((x * x).sum(axes, keepdims=True)),
    }
    for op_type, wanted in expected.items():
        check(run(op_type, [x])[0], wanted)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conv(window: dict, group: int, dtype: type) -> None:
    x = input_of(window, 4, dtype)
    w = numbers(6, 4 // group, *window["kernel_shape"], seed=4, dtype=dtype)
    bias = numbers(6, seed=5, dtype=dtype)
    elements = windows_of(x, window, 0)
    parts = [
        np.einsum("nc...t,mct->nm...", e, k.reshape(*k.shape[:2], -1))
        for e, k in zip(np.split(elements, group, 1), np.split(w, group), strict=True)
    ]
    product = np.concatenate(parts, 1)
    (y,) = run("Conv", [x, w], group=group, **window)
    check(y, product)
    (y,) = run("Conv", [x, w, bias], group=group, **window)
    check(y, product + bias.reshape(-1, *[1] * (x.ndim - 2)))


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conv_transpose(window: dict, group: int, dtype: type) -> None:
    """It is the transpose of Conv: for all x and y, <Conv(x), y> = <x, ConvTranspose(y)>."""
    x = input_of(window, 4, dtype)
    w = numbers(6, 4 // group, *window["kernel_shape"], seed=4, dtype=dtype)
    (y,) = run("Conv", [x, w], group=group, **window)
    other = numbers(*y.shape, seed=6, dtype=dtype)
    bias = numbers(4, seed=5, dtype=dtype)
    # Its own output may be smaller than x, whose last elements no window reached.
    (back,) = run("ConvTranspose", [other, w], group=group, **window)
    reached = tuple(slice(0, size) for size in back.shape)
    np.testing.assert_allclose(
        np.vdot(y.astype(np.float64), other),
        np.vdot(x[reached].astype(np.float64), back),
        rtol=1e-3 if dtype == np.float32 else 1e-12,
    )
    (shifted,) = run("ConvTranspose", [other, w, bias], group=group, **window)
    check(shifted, back + bias.reshape(-1, *[1] * (x.ndim - 2)))


@pytest.mark.parametrize(
    ("activation", "formula"),
    [
        ("Relu", lambda x: np.maximum(x, 0)),
        ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))),
        ("Tanh", np.tanh),
        ("LeakyRelu <alpha=0.25>", lambda x: np.where(x < 0, x / 4, x)),
        ("HardSwish", lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        ("HardSigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    ],
)
def test_what_is_fused_into_conv(activation: str, formula) -> None:
    name, _, attributes = activation.partition(" ")
    text = f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[1,2,3,3,3,3] x, float[2,2,2,2,2,2] w, float[1,2,2,2,2,2] z) => (float y) {{
        c = Conv (x, w)
        s = Add (c, z)
        y = {name} {attributes} (s)
        }}"""
    model = parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x, w, z = numbers(1, 2, 3, 3, 3, 3), numbers(2, 2, 2, 2, 2, 2) / 16, numbers(1, 2, 2, 2, 2, 2)
    feeds = {"x": x, "w": w, "z": z}
    (y,) = tenon.InferenceSession(model.SerializeToString()).run(None, feeds)
    product = np.einsum(
        "nc...t,mct->nm...", windows_of(x, WINDOWS["plain"], 0), w.reshape(2, 2, -1)
    )
    check(y, formula(product + z))


def test_max_unpool_undoes_a_pool() -> None:
    x = numbers(1, 2, 2, 4, 2, 4)
    window = {"kernel_shape": [2, 2, 2, 2], "strides": [2, 2, 2, 2]}
    y, indices = run("MaxPool", [x], 2, **window)
    (back,) = run("MaxUnpool", [y, indices], **window)
    expected = np.zeros_like(x)
    expected.reshape(-1)[indices] = y
    np.testing.assert_array_equal(back, expected)


# --- Up to 32 axes ---


def wide(x: np.ndarray, at: int = 2) -> np.ndarray:
    """x with 32 axes, by axes of one element from axis `at` on."""
    return x.reshape(*x.shape[:at], *[1] * (32 - x.ndim), *x.shape[at:])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_of_32_axes(mode: str) -> None:
    x = numbers(2, 3, 4, 5)
    scales = np.array([1, 1, 2, 1.6], np.float32)
    none = np.empty(0, np.float32)
    (expected,) = run("Resize", [x, none, scales], mode=mode)
    wide_scales = np.array([1, 1, *[1] * 28, *scales[2:]], np.float32)
    (y,) = run("Resize", [wide(x), none, wide_scales], mode=mode)
    np.testing.assert_array_equal(y, wide(expected))


def test_einsum_of_32_axes() -> None:
    x, y = numbers(2, 3, 4, dtype=np.float64), numbers(3, 4, 5, dtype=np.float64)
    for equation in ("z...ab,...bc->...acz", "...xab,xbc->...axc", "Q...q,...qq"):
        left, right = (x[..., None, :], y) if equation[0] != "Q" else (x, numbers(4, 4))
        left, right = wide(left, 1), right.astype(np.float64)
        (actual,) = run("Einsum", [left, right], equation=equation)
        check(actual, np.einsum(equation, left, right))


def test_col2im_of_32_axes() -> None:
    x = numbers(2, 12, 12)
    (expected,) = run("Col2Im", [x, np.array([4, 5]), np.array([2, 2])])
    ones = [1] * 28
    (y,) = run("Col2Im", [x, np.array([4, *ones, 5]), np.array([2, *ones, 2])])
    np.testing.assert_array_equal(y, expected.reshape(2, 3, 4, *ones, 5))


# --- Quantized ---


def bytes_of(*shape: int, dtype: type, seed: int = 5) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def byte_sums(x: np.ndarray, w: np.ndarray, window: dict, x_zero: int, w_zero: int) -> np.ndarray:
    """Of a convolution in two groups: x has 4 channels, w has 2."""
    windows = windows_of(x.astype(np.int64) - x_zero, window, 0)
    weights = (w.astype(np.int64) - w_zero).reshape(*w.shape[:2], -1)
    halves = [
        np.einsum("nc...t,mct->nm...", windows[:, 2 * g : 2 * g + 2], weights[3 * g : 3 * g + 3])
        for g in range(2)
    ]
    return np.concatenate(halves, axis=1)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_convolution_of_bytes(window: dict, dtype: type) -> None:
    x = bytes_of(*input_of(window, 4).shape, dtype=dtype)
    w = bytes_of(6, 2, *window["kernel_shape"], dtype=dtype, seed=6)
    zeros = [np.array(77, dtype), np.array(3, dtype)]
    sums = byte_sums(x, w, window, 77, 3)
    (y,) = run("ConvInteger", [x, w, *zeros], group=2, **window)
    np.testing.assert_array_equal(y, sums)
    x_scale, w_scale, y_scale = (np.array(s, np.float32) for s in (0.05, 0.02, 0.6))
    bias = np.arange(6, dtype=np.int32) * 1000
    inputs = [x, x_scale, zeros[0], w, w_scale, zeros[1], y_scale, np.array(9, dtype), bias]
    (y,) = run("QLinearConv", inputs, group=2, **window)
    scaled = (sums + bias.reshape(6, *[1] * (x.ndim - 2))) * float(x_scale * w_scale / y_scale)
    limits = np.iinfo(dtype)
    expected = np.clip(np.rint(scaled) + 9, limits.min, limits.max)
    assert np.abs(y.astype(int) - expected).max() <= 1
    assert (y == expected).mean() > 0.99


def pool_of_bytes(op_type: str, x: np.ndarray, *more: np.ndarray, **attributes) -> np.ndarray:
    return run(op_type, [x, *more], domain="com.microsoft", **attributes)[0]


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("last", [False, True])
def test_pools_of_bytes(window: dict, dtype: type, last: bool) -> None:
    x = bytes_of(*input_of(window).shape, dtype=dtype)
    given = np.moveaxis(x, 1, -1) if last else x
    scale, zero = np.array(0.5, np.float32), np.array(7, dtype)

    def turned(y: np.ndarray) -> np.ndarray:
        return np.moveaxis(y, 1, -1) if last else y

    if last:
        expected = windows_of(x, window, np.iinfo(dtype).min).max(-1)
        y = pool_of_bytes("NhwcMaxPool", np.ascontiguousarray(given), **window)
        np.testing.assert_array_equal(y, turned(expected))
    window = {name: value for name, value in window.items() if name != "dilations"}
    mean = np.nanmean(windows_of(x, window, np.nan), axis=-1)
    y = pool_of_bytes(
        "QLinearAveragePool",
        np.ascontiguousarray(given),
        *(scale, zero, scale, zero),
        channels_last=int(last),
        **window,
    )
    assert np.abs(y - turned(mean)).max() <= 0.5 + 1e-4
