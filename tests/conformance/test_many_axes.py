"""Pools and convolutions over four and five spatial axes, which onnx.reference has in part."""

import itertools

import numpy as np
import pytest
import tenon
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
}


def numbers(*shape: int, seed: int = 3, dtype: type = np.float32) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 4).astype(dtype)


def input_of(window: dict, channels: int = 2, dtype: type = np.float32) -> np.ndarray:
    return numbers(2, channels, *[3, 4, 3, 5, 3][: len(window["kernel_shape"])], dtype=dtype)


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


def run(op_type: str, inputs: list[np.ndarray], outputs: int = 1, **attributes) -> list:
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op_type, names, [f"y{i}" for i in range(outputs)], **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, inputs, strict=True)
        ],
        [helper.make_empty_tensor_value_info(name) for name in node.output],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
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
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-12}
    elements = windows_of(x, window, 0)
    inside = windows_of(np.ones_like(x), window, 0).sum(-1)
    (y,) = run("AveragePool", [x], **window)
    np.testing.assert_allclose(y, elements.sum(-1) / inside, **near)
    (y,) = run("AveragePool", [x], count_include_pad=1, **window)
    np.testing.assert_allclose(y, elements.mean(-1), **near)
    (y,) = run("LpPool", [x], p=3, **window)
    np.testing.assert_allclose(y, (np.abs(elements) ** 3).sum(-1) ** (1 / 3), **near)


def test_global_pools() -> None:
    x = numbers(2, 3, 3, 1, 2, 4, 2)
    axes = tuple(range(2, x.ndim))
    expected = {
        "GlobalMaxPool": x.max(axes, keepdims=True),
        "GlobalAveragePool": x.mean(axes, keepdims=True),
        "GlobalLpPool": np.sqrt((x * x).sum(axes, keepdims=True)),
    }
    for op_type, wanted in expected.items():
        np.testing.assert_allclose(run(op_type, [x])[0], wanted, rtol=1e-5)


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
    near = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    (y,) = run("Conv", [x, w], group=group, **window)
    np.testing.assert_allclose(y, product, **near)
    (y,) = run("Conv", [x, w, bias], group=group, **window)
    np.testing.assert_allclose(y, product + bias.reshape(-1, *[1] * (x.ndim - 2)), **near)


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
        rtol=1e-3 if dtype == np.float32 else 1e-9,
    )
    (shifted,) = run("ConvTranspose", [other, w, bias], group=group, **window)
    near = 1e-2 if dtype == np.float32 else 1e-9
    shift = np.broadcast_to(bias.reshape(-1, *[1] * (x.ndim - 2)), back.shape)
    np.testing.assert_allclose(shifted - back, shift, atol=near)


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
    np.testing.assert_allclose(y, formula(product + z), rtol=1e-4, atol=1e-4)


def test_max_unpool_undoes_a_pool() -> None:
    x = numbers(1, 2, 2, 4, 2, 4)
    window = {"kernel_shape": [2, 2, 2, 2], "strides": [2, 2, 2, 2]}
    y, indices = run("MaxPool", [x], 2, **window)
    (back,) = run("MaxUnpool", [y, indices], **window)
    expected = np.zeros_like(x)
    expected.reshape(-1)[indices] = y
    np.testing.assert_array_equal(back, expected)
