"""Normalizations and activations of com.microsoft, compared with onnxruntime."""

import math

import contrib
import numpy as np
import pytest
from contrib import check, floats

F16 = {"rtol": 5e-3, "atol": 5e-3}


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 8), (2, 5, 67), (3, 1, 256)])
@pytest.mark.parametrize("skip", ["same", "row", "matrix"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_skip_layer_normalization(shape: tuple, skip: str, with_bias: bool) -> None:
    skips = {"same": shape, "row": (1, *shape[1:]), "matrix": shape[1:]}
    n = shape[-1]
    x, s = floats(*shape), floats(*skips[skip], seed=1)
    gamma, beta = floats(n, seed=2), floats(n, seed=3)
    bias = floats(n, seed=4) if with_bias else None
    outputs = {"y": np.float32}
    check("SkipLayerNormalization", [x, s, gamma, beta, bias], outputs, epsilon=1e-5)
    check("SkipLayerNormalization", [x, s, gamma], outputs, epsilon=1e-5)
    check("SkipSimplifiedLayerNormalization", [x, s, gamma, bias], outputs, epsilon=1e-5)


def test_skip_layer_normalization_gives_the_sum() -> None:
    x, s, n = floats(2, 3, 16), floats(2, 3, 16, seed=1), 16
    gamma, beta, bias = floats(n, seed=2), floats(n, seed=3), floats(n, seed=4)
    content = contrib.model(
        "SkipLayerNormalization",
        [x, s, gamma, beta, bias],
        {"y": np.float32, "mean": np.float32, "inv_std": np.float32, "sum": np.float32},
        epsilon=1e-5,
    )
    y, mean, inv_std, total = contrib.run_tenon(content, [x, s, gamma, beta, bias])
    t = x + s + bias
    np.testing.assert_allclose(total, t, rtol=1e-6)
    np.testing.assert_allclose(mean, t.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(inv_std, 1 / np.sqrt(t.var(-1, keepdims=True) + 1e-5), rtol=1e-4)
    np.testing.assert_allclose(y, (t - mean) * inv_std * gamma + beta, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_skip_normalization_in_half(op_type: str) -> None:
    x, s, gamma = (floats(2, 3, 16, seed=i, dtype=np.float16) for i in range(3))
    check(op_type, [x, s, gamma[0, 0]], {"y": np.float16}, epsilon=1e-3, **F16)


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_simplified_layer_normalization(axis: int, dtype: type) -> None:
    x = floats(2, 3, 20, dtype=dtype)
    scale = floats(*x.shape[axis:], seed=1, dtype=dtype)
    tolerance = F16 if dtype is np.float16 else {}
    check(
        "SimplifiedLayerNormalization", [x, scale], {"y": dtype}, domain="", axis=axis, **tolerance
    )


def test_simplified_layer_normalization_gives_the_deviation() -> None:
    x, scale = floats(2, 3, 20), floats(20, seed=1)
    outputs = {"y": np.float32, "inv_std_var": np.float32}
    content = contrib.model("SimplifiedLayerNormalization", [x, scale], outputs, domain="")
    _, inv_std = contrib.run_tenon(content, [x, scale])
    expected = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(inv_std, expected, rtol=1e-5)


@pytest.mark.parametrize("with_segments", [False, True])
@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("positions", [None, (1, 5), (2, 5)])
def test_embed_layer_normalization(
    with_segments: bool, with_mask: bool, positions: tuple | None
) -> None:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 11, (2, 5)).astype(np.int32)
    segments = generator.integers(0, 2, (2, 5)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    position_ids = None
    if positions:
        position_ids = generator.integers(0, 7, positions).astype(np.int32)
    inputs = [
        ids,
        segments if with_segments else None,
        floats(11, 12),
        floats(7, 12, seed=1),
        floats(2, 12, seed=2) if with_segments else None,
        floats(12, seed=3),
        floats(12, seed=4),
        mask if with_mask else None,
        position_ids,
    ]
    outputs = {"y": np.float32, "mask_index": np.int32, "sum": np.float32}
    check("EmbedLayerNormalization", inputs, outputs, epsilon=1e-6)


@pytest.mark.parametrize(("which", "bad"), [(0, 11), (0, -1), (1, 2), (8, 7), (8, -(2**31))])
def test_embed_layer_normalization_rejects_indices(which: int, bad: int) -> None:
    inputs = [np.zeros((1, 3), np.int32)] * 2 + [
        floats(11, 4),
        floats(7, 4),
        floats(2, 4),
        floats(4),
        floats(4),
        None,
        np.zeros((1, 3), np.int32),
    ]
    inputs[which] = np.array([[0, bad, 0]], np.int32)
    content = contrib.model("EmbedLayerNormalization", inputs, {"y": np.float32, "m": np.int32})
    with pytest.raises(Exception, match=f"got {bad}"):
        contrib.run_tenon(content, inputs)


@pytest.mark.parametrize("shape", [(1,), (3, 5), (2, 3, 67), (0, 4)])
@pytest.mark.parametrize("op_type", ["BiasGelu", "FastGelu"])
def test_bias_activation(op_type: str, shape: tuple) -> None:
    check(op_type, [floats(*shape), floats(shape[-1], seed=1)])


def test_activations() -> None:
    x = floats(3, 70)
    check("FastGelu", [x])
    check("Gelu", [x])
    check("QuickGelu", [x])
    check("QuickGelu", [x], alpha=0.5)


def test_bias_gelu_of_halves() -> None:
    x, bias = floats(3, 70), floats(70, seed=1)
    (y,) = check("BiasGelu", [x, bias])
    halves = [x.astype(np.float16), bias.astype(np.float16)]
    check("BiasGelu", halves, {"y": np.float16}, expected=[y.astype(np.float16)], **F16)


def test_bias_gelu_of_doubles() -> None:
    x, bias = floats(3, 7, dtype=np.float64), floats(7, seed=1, dtype=np.float64)
    t = x + bias
    gelu = t / 2 * (1 + np.vectorize(math.erf)(t / math.sqrt(2)))
    check("BiasGelu", [x, bias], {"y": np.float64}, expected=[gelu], rtol=1e-12)


def test_bias_add() -> None:
    x, bias, skip = floats(2, 3, 13), floats(13, seed=1), floats(2, 3, 13, seed=2)
    check("BiasAdd", [x, bias, skip], expected=[x + bias + skip])


def test_bias_split_gelu() -> None:
    x, bias = floats(2, 3, 26), floats(26, seed=1)
    left, right = np.split(x + bias, 2, axis=-1)
    gelu = right / 2 * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))
    check("BiasSplitGelu", [x, bias], expected=[(left * gelu).astype(np.float32)])


@pytest.mark.parametrize(
    ("op_type", "shapes"),
    [
        ("BiasGelu", [(2, 3), (4,)]),
        ("BiasGelu", [(2, 3), (1, 3)]),
        ("BiasAdd", [(2, 3), (3,), (3, 2)]),
        ("BiasSplitGelu", [(2, 3), (3,)]),
        ("SkipLayerNormalization", [(2, 3, 4), (3, 3, 4), (4,)]),
        ("SkipLayerNormalization", [(2, 3, 4), (2, 3, 4), (5,)]),
        ("SkipSimplifiedLayerNormalization", [(2, 3, 4), (4,), (4,)]),
    ],
)
def test_rejects_shapes(op_type: str, shapes: list) -> None:
    inputs = [floats(*shape) for shape in shapes]
    with pytest.raises(Exception, match="expected"):
        contrib.run_tenon(contrib.model(op_type, inputs, {"y": np.float32}), inputs)
