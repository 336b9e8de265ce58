"""Attention of com.microsoft with quantized caches: GroupQueryAttention beside onnxruntime,
PagedAttention beside NumPy."""

import contrib
import ml_dtypes
import numpy as np
import pytest
import test_contrib_windows as windows
from contrib import floats

HEADS, KV_HEADS, SIZE, CAPACITY = 4, 2, 16, 12


def stored(kind: str, *shape: int, seed: int) -> np.ndarray:
    """A cache of that shape; its last axis counts values."""
    values = np.random.default_rng(seed).integers(-120, 120, shape)
    if kind == "int8":
        return values.astype(np.int8)
    if kind == "float8e4m3fn":
        return values.astype(ml_dtypes.float8_e4m3fn)
    return (values[..., ::2] & 255).astype(np.uint8)


def scale_of(quantization: str, kind: str, seed: int, size: int = SIZE) -> np.ndarray:
    step = {"int8": 0.02, "int4": 0.3, "float4e2m1": 0.4, "float8e4m3fn": 0.015}[kind]
    if quantization == "PER_TENSOR":
        return np.array([step], np.float32)
    spread = np.random.default_rng(seed).uniform(0.7, 1.3, (KV_HEADS, 1, size))
    return (step * spread).astype(np.float32)


# --- GroupQueryAttention ---


def grouped(kind: str, quantization: str, queries: int, lengths: list, size: int = SIZE) -> list:
    batch = len(lengths)
    q = floats(batch, queries, HEADS * size, seed=1)
    k, v = (floats(batch, queries, KV_HEADS * size, seed=s) for s in (2, 3))
    caches = [stored(kind, batch, KV_HEADS, CAPACITY, size, seed=s) for s in (4, 5)]
    last = np.array(lengths, np.int32) - 1
    total = np.array(max(lengths), np.int32)
    scales = [scale_of(quantization, kind, s, size) for s in (6, 7)]
    return [q, k, v, *caches, last, total, *[None] * 5, *scales]


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("quantization", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize(
    ("queries", "lengths"), [(1, [5]), (1, [12, 3]), (4, [4, 4]), (3, [9]), (1, [1])]
)
@pytest.mark.parametrize("options", [{}, {"local_window_size": 3}, {"softcap": 2.0}])
def test_grouped_attention_with_a_quantized_cache(
    kind: str, quantization: str, queries: int, lengths: list, options: dict
) -> None:
    inputs = grouped(kind, quantization, queries, lengths)
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        {"y": np.float32, "k": inputs[3].dtype, "v": inputs[4].dtype},
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        k_quant_type=quantization,
        v_quant_type=quantization,
        kv_cache_bit_width=8 if kind == "int8" else 4,
        **options,
    )
    expected = contrib.run_onnxruntime(content, inputs)
    actual = contrib.run_tenon(content, inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-4)
    for b, length in enumerate(lengths):  # onnxruntime does not write the rest
        for a, e in zip(actual[1:], expected[1:], strict=True):
            assert a.shape == e.shape
            np.testing.assert_array_equal(a[b, :, :length], e[b, :, :length])


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("window", [1, 9, CAPACITY])
@pytest.mark.parametrize(("queries", "lengths"), [(1, [5]), (1, [12, 30]), (4, [14]), (20, [20])])
def test_grouped_attention_with_a_quantized_cache_that_slides(
    kind: str, window: int, queries: int, lengths: list
) -> None:
    inputs = grouped(kind, "PER_CHANNEL", queries, lengths, 32)  # accepted by onnxruntime
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        {"y": np.float32, "k": inputs[3].dtype, "v": inputs[4].dtype},
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        k_quant_type="PER_CHANNEL",
        v_quant_type="PER_CHANNEL",
        kv_cache_bit_width=8 if kind == "int8" else 4,
        local_window_size=window,
        sliding_window_cache=1,
    )
    expected = contrib.run_onnxruntime(content, inputs)
    actual = contrib.run_tenon(content, inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-4)
    dropped = CAPACITY - window + 1
    for b, length in enumerate(lengths):
        rows = length - dropped * max(0, -(-(length - CAPACITY) // dropped))
        for a, e in zip(actual[1:], expected[1:], strict=True):
            assert a.shape == e.shape
            np.testing.assert_array_equal(a[b, :, :rows], e[b, :, :rows])


@pytest.mark.parametrize(
    ("queries", "lengths"), [(1, [5]), (1, [12, 3]), (4, [4]), (4, [9]), (12, [12])]
)
@pytest.mark.parametrize("options", [{}, {"local_window_size": 3}, {"causal": 0}, {"do_rotary": 1}])
@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_grouped_attention_whose_keys_are_all_in_the_cache(
    kind: str, queries: int, lengths: list, options: dict
) -> None:
    """Layers that share the cache of an earlier one: key and value have no rows."""
    inputs = grouped("int8", "PER_TENSOR", queries, lengths)
    batch = len(lengths)
    inputs[1] = inputs[2] = np.zeros((batch, 0, KV_HEADS * SIZE), np.float32)
    quantization = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}
    quantization["kv_cache_bit_width"] = 8
    if kind == "float32":
        inputs[3:5] = (floats(batch, KV_HEADS, CAPACITY, SIZE, seed=s) for s in (4, 5))
        inputs[12:] = [None, None]
        quantization = {}
    if "do_rotary" in options:
        inputs[7:9] = (floats(CAPACITY, SIZE // 2, seed=s) for s in (8, 9))
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        {"y": np.float32, "k": inputs[3].dtype, "v": inputs[4].dtype},
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        **quantization,
        **options,
    )
    expected = contrib.run_onnxruntime(content, inputs)
    actual = contrib.run_tenon(content, inputs)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-4, atol=1e-4)
    for b, length in enumerate(lengths):
        for a, past in zip(actual[1:], inputs[3:5], strict=True):
            np.testing.assert_array_equal(a[b, :, :length], past[b, :, :length])
            assert not a[b, :, length:].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"causal": 7}, "expected causal to be 0 or 1, got 7"),
        ({"causal": 0, "local_window_size": 3}, "expected -1 if causal is 0, got 3"),
        ({"local_window_size": 3, "sliding_window_cache": 1}, "needs new keys, got none"),
    ],
)
def test_grouped_attention_that_is_rejected(options: dict, message: str) -> None:
    inputs = grouped("int8", "PER_TENSOR", 1, [5])
    inputs[1] = inputs[2] = np.zeros((1, 0, KV_HEADS * SIZE), np.float32)
    inputs[3:5] = (floats(1, KV_HEADS, CAPACITY, SIZE, seed=s) for s in (4, 5))
    content = contrib.model(
        "GroupQueryAttention",
        inputs[:7],
        {"y": np.float32, "k": np.float32, "v": np.float32},
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        **options,
    )
    with pytest.raises(Exception, match=message):
        contrib.run_tenon(content, inputs[:7])


# --- PagedAttention ---

FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def decoded(cache: np.ndarray, kind: str, scale: np.ndarray) -> np.ndarray:
    """[..., heads, values]."""
    steps = cache.astype(np.float32)
    if cache.dtype == np.uint8:
        nibbles = np.stack([cache & 15, cache >> 4], -1).reshape(*cache.shape[:-1], -1)
        steps = FLOAT4[nibbles] if kind == "float4e2m1" else nibbles.astype(np.float32) - 8
    return steps * (scale if scale.size == 1 else scale[:, 0])


def encoded(values: np.ndarray, kind: str, scale: np.ndarray) -> np.ndarray:
    steps = values.astype(np.float32) / (scale if scale.size == 1 else scale[:, 0])
    if kind == "int8":
        return np.clip(np.rint(steps), -128, 127).astype(np.int8)
    if kind == "float8e4m3fn":
        return np.clip(steps, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    if kind == "int4":
        nibbles = (np.clip(np.rint(steps), -8, 7) + 8).astype(np.uint8)
    else:
        nibbles = np.clip(steps, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return nibbles[..., ::2] | nibbles[..., 1::2] << 4


@pytest.mark.parametrize("kind", ["int8", "int4", "float4e2m1", "float8e4m3fn"])
@pytest.mark.parametrize("quantization", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_paged_attention_with_a_quantized_cache(
    kind: str, quantization: str, is_packed: bool
) -> None:
    inputs = windows.paged_inputs([3, 2], [4, 1])
    shape = inputs[3].shape
    caches = [stored(kind, *shape, seed=s) for s in (3, 4)]
    scales = [scale_of(quantization, kind, s) for s in (6, 7)]
    pairs = list(zip(caches, scales, strict=True))
    rounded = [
        decoded(encoded(x.reshape(-1, KV_HEADS, SIZE), kind, scale), kind, scale).reshape(x.shape)
        for x, scale in zip(inputs[1:3], scales, strict=True)
    ]
    floats_of = [decoded(cache, kind, scale) for cache, scale in pairs]
    y, keys, values = windows.paged([inputs[0], *rounded, *floats_of, *inputs[5:]])
    expected = [y]
    for cache, after, before, scale in zip(caches, (keys, values), floats_of, scales, strict=True):
        changed = after != before.astype(np.float16)  # `paged` stores rounded values
        bits = encoded(after, kind, scale).view(np.uint8)
        is_new = changed.any(-1, keepdims=True)
        expected.append(np.where(is_new, bits, cache.view(np.uint8)).view(cache.dtype))
    given = [*inputs[:3], *caches, *inputs[5:], *[None] * 6, *scales]
    if is_packed:
        given[:3] = [np.concatenate(inputs[:3], -1), None, None]
    options = {"k_quant_type": quantization, "v_quant_type": quantization}
    options |= {"k_cache_dtype": kind, "v_cache_dtype": kind} | windows.PAGED
    content = contrib.model(
        "PagedAttention",
        given,
        {"y": np.float16, "k": caches[0].dtype, "v": caches[0].dtype},
        **options,
    )
    actual = contrib.run_tenon(content, given)
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-2, atol=5e-3)
    for a, e in zip(actual[1:], expected[1:], strict=True):
        assert a.shape == e.shape
        np.testing.assert_array_equal(a.view(np.uint8), e.view(np.uint8))


@pytest.mark.parametrize(
    ("kind", "scale", "options"),
    [
        ("int8", [0.1], {"k_quant_type": "NONE"}),
        ("int8", [0.1], {"k_quant_type": "PER_ROW"}),
        ("int8", [0.1], {"k_cache_dtype": "int4"}),
        ("int8", [0.1], {"k_quant_type": "PER_CHANNEL"}),
        ("int8", None, {}),
        ("int8", [0.1, 0.2], {}),
        ("int4", [0.1], {"k_cache_dtype": "int8"}),
        ("float16", [0.1], {}),
    ],
)
def test_quantized_caches_that_are_rejected(kind: str, scale: list | None, options: dict) -> None:
    inputs = windows.paged_inputs([3, 2], [4, 1])
    if kind != "float16":
        inputs[3:5] = (stored(kind, *inputs[3].shape, seed=s) for s in (3, 4))
    k_scale = None if scale is None else np.array(scale, np.float32)
    inputs += [*[None] * 6, k_scale, np.array([0.1], np.float32)]
    options = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"} | options
    outputs = {"y": np.float16, "k": inputs[3].dtype, "v": inputs[3].dtype}
    content = contrib.model("PagedAttention", inputs, outputs, **windows.PAGED, **options)
    with pytest.raises(Exception, match="PagedAttention"):
        contrib.run_tenon(content, inputs)
