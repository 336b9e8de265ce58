"""Attention of com.microsoft that onnxruntime's CPU provider lacks, compared with NumPy."""

import contrib
import numpy as np
import pytest
from contrib import check, floats


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


# --- LongformerAttention ---


def longformer(inputs: list, heads: int, window: int) -> np.ndarray:
    x, weight, bias, mask, global_weight, global_bias, flags = inputs
    batch, length, hidden = x.shape
    size = hidden // heads

    def projected(w: np.ndarray, b: np.ndarray) -> list:
        parts = np.split(x @ w + b, 3, -1)
        return [p.reshape(batch, length, heads, size).transpose(0, 2, 1, 3) for p in parts]

    q, k, v = projected(weight, bias)
    global_q, global_k, global_v = projected(global_weight, global_bias)
    distance = np.abs(np.arange(length)[:, None] - np.arange(length))
    seen = (distance <= window) | (flags[:, None, :] > 0)
    addends = np.where(seen, mask[:, None, :], -np.inf)[:, None]
    local = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(size) + addends) @ v
    scores = global_q @ global_k.swapaxes(-1, -2) / np.sqrt(size) + mask[:, None, None, :]
    y = np.where(flags[:, None, :, None] > 0, softmax(scores) @ global_v, local)
    return y.transpose(0, 2, 1, 3).reshape(x.shape).astype(np.float32)


def longformer_inputs(batch: int, length: int, hidden: int, globals_at: list) -> list:
    flags = np.zeros((batch, length), np.int32)
    for b, i in globals_at:
        flags[b, i] = 1
    mask = np.zeros((batch, length), np.float32)
    mask[:, length - 3 :] = -10000
    weights = [floats(hidden, 3 * hidden, seed=1), floats(3 * hidden, seed=2)]
    more = [floats(hidden, 3 * hidden, seed=3), floats(3 * hidden, seed=4)]
    return [floats(batch, length, hidden), *weights, mask, *more, flags]


@pytest.mark.parametrize("globals_at", [[], [(0, 0)], [(0, 0), (0, 17), (1, 5)]])
@pytest.mark.parametrize(("length", "window"), [(16, 4), (150, 16), (40, 64)])
def test_longformer_attention(globals_at: list, length: int, window: int) -> None:
    inputs = longformer_inputs(2, length, 16, [(b, i % length) for b, i in globals_at])
    expected = [longformer(inputs, 2, window)]
    options = {"num_heads": 2, "window": window}
    check("LongformerAttention", inputs, expected=expected, rtol=1e-3, atol=1e-4, **options)


# --- PagedAttention ---

HEADS, KV_HEADS, SIZE, BLOCK, BLOCKS = 4, 2, 16, 4, 12
PAGED = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
PAGED_OUTPUTS = dict.fromkeys(("y", "k", "v"), np.float16)


def paged_inputs(lengths: list, past: list, seed: int = 0) -> list:
    tokens = sum(lengths)
    q = floats(tokens, HEADS * SIZE, seed=seed).astype(np.float16)
    k, v = (floats(tokens, KV_HEADS * SIZE, seed=s).astype(np.float16) for s in (1, 2))
    caches = [floats(BLOCKS, BLOCK, KV_HEADS, SIZE, seed=s).astype(np.float16) for s in (3, 4)]
    ends = np.cumsum([0, *lengths]).astype(np.int32)
    table = np.random.default_rng(0).permutation(BLOCKS)[: 4 * len(lengths)]
    table = table.reshape(len(lengths), 4).astype(np.int32)
    return [q, k, v, *caches, ends, np.array(past, np.int32), table]


def rotated(x: np.ndarray, position: int, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    half = cos.shape[1]
    c, s = cos[position].astype(np.float32), sin[position].astype(np.float32)
    a, b = x[..., :half], x[..., half : 2 * half]
    return np.concatenate([a * c - b * s, b * c + a * s, x[..., 2 * half :]], -1)


def paged(inputs: list, window: int = -1, causal: bool = True) -> list:
    q, k, v, key_cache, value_cache, ends, past, table, *more = inputs
    angles = more[:2] if len(more) >= 2 else None
    slots = more[2] if len(more) > 2 else None
    keys, values = key_cache.astype(np.float32), value_cache.astype(np.float32)
    y = np.zeros((len(q), HEADS, SIZE), np.float32)
    queries = q.astype(np.float32).reshape(-1, HEADS, SIZE)
    new_keys = k.astype(np.float32).reshape(-1, KV_HEADS, SIZE)
    new_values = v.astype(np.float32).reshape(-1, KV_HEADS, SIZE)
    flat_keys, flat_values = (x.reshape(-1, KV_HEADS, SIZE) for x in (keys, values))
    spots = [
        [table[b, p // BLOCK] * BLOCK + p % BLOCK for p in range(past[b] + ends[b + 1] - ends[b])]
        for b in range(len(past))
    ]
    for b, rows in enumerate(spots):
        for i, token in enumerate(range(ends[b], ends[b + 1])):
            position = past[b] + i
            slot = rows[position] if slots is None else slots[token]
            if angles is not None:
                queries[token] = rotated(queries[token], position, *angles)
                new_keys[token] = rotated(new_keys[token], position, *angles)
            if slot >= 0:
                flat_keys[slot], flat_values[slot] = new_keys[token], new_values[token]
    for b, rows in enumerate(spots):
        for i, token in enumerate(range(ends[b], ends[b + 1])):
            position = past[b] + i
            end = position + 1 if causal else len(rows)
            begin = max(0, position + 1 - window) if window >= 0 else 0
            seen = rows[begin:end]
            for h in range(HEADS):
                group = h // (HEADS // KV_HEADS)
                scores = flat_keys[seen, group] @ queries[token, h] / np.sqrt(SIZE)
                y[token, h] = softmax(scores) @ flat_values[seen, group]
    return [x.astype(np.float16) for x in (y.reshape(len(q), -1), keys, values)]


@pytest.mark.parametrize(
    ("lengths", "past"), [([3, 5, 1], [0, 0, 0]), ([1, 1], [7, 12]), ([2, 0, 4], [3, 5, 9])]
)
@pytest.mark.parametrize("options", [{}, {"local_window_size": 3}, {"is_causal": 0}])
def test_paged_attention(lengths: list, past: list, options: dict) -> None:
    inputs = paged_inputs(lengths, past)
    window, causal = options.get("local_window_size", -1), bool(options.get("is_causal", 1))
    expected = paged(inputs, window, causal)
    tolerance = {"rtol": 1e-2, "atol": 5e-3}
    check("PagedAttention", inputs, PAGED_OUTPUTS, expected, **tolerance, **PAGED, **options)
    packed = [np.concatenate(inputs[:3], -1), None, None, *inputs[3:]]
    check("PagedAttention", packed, PAGED_OUTPUTS, expected, **tolerance, **PAGED, **options)


@pytest.mark.parametrize("has_slots", [False, True])
def test_paged_attention_with_angles_and_slots(has_slots: bool) -> None:
    inputs = paged_inputs([3, 2], [4, 1])
    inputs += [floats(16, SIZE // 2, seed=s).astype(np.float16) for s in (7, 8)]
    if has_slots:
        inputs.append(np.array([-1, 5, 47, -1, 0], np.int32))
    check(
        *("PagedAttention", inputs, PAGED_OUTPUTS, paged(inputs)),
        **{"rtol": 2e-2, "atol": 1e-2, "do_rotary": 1},
        **PAGED,
    )


def test_paged_attention_keeps_the_last_of_tokens_in_one_slot() -> None:
    # Slots that sequences of the block table share, and slots that are given twice.
    inputs = paged_inputs([16], [0])
    inputs[7] = np.array([[3, 5, 3, 5]], np.int32)
    tolerance = {"rtol": 1e-2, "atol": 5e-3}
    check("PagedAttention", inputs, PAGED_OUTPUTS, paged(inputs), **tolerance, **PAGED)
    inputs = paged_inputs([40], [0])
    inputs[7] = np.arange(BLOCKS, dtype=np.int32)[None]
    inputs += [None, None, np.arange(40, dtype=np.int32) % 3 * 7]
    given = [*inputs[:8], np.ones((40, 0)), np.zeros((40, 0)), inputs[10]]
    expected = paged(given)
    for _ in range(10):
        check("PagedAttention", inputs, PAGED_OUTPUTS, expected, **tolerance, **PAGED)


def test_paged_attention_of_latent_rows() -> None:
    inputs = paged_inputs([3, 1], [4, 2])
    inputs[1] = inputs[1][:, :SIZE].copy()
    inputs[3] = inputs[3][:, :, :1].copy()
    inputs[2] = inputs[4] = None
    as_separate = [*inputs]
    as_separate[1] = np.tile(inputs[1], KV_HEADS)
    as_separate[3] = np.tile(inputs[3], (1, 1, KV_HEADS, 1))
    as_separate[2], as_separate[4] = as_separate[1], as_separate[3]
    y, k, _ = paged(as_separate)
    y = y.reshape(-1, HEADS, SIZE)[..., :8].reshape(len(y), -1)
    options = {"num_heads": HEADS, "kv_num_heads": 1, "kv_cache_layout": "LATENT"}
    options |= {"v_head_size": 8, "scale": SIZE**-0.5}
    outputs = dict.fromkeys(("y", "k"), np.float16)
    expected = [y, k[:, :, :1]]
    check("PagedAttention", inputs, outputs, expected, rtol=1e-2, atol=5e-3, **options)


@pytest.mark.parametrize(
    ("i", "value"),
    [
        (5, [0, 3, 2]),
        (5, [1, 3, 5]),
        (5, [0, -1, 5]),
        (5, [0, 3, 2**31 - 1]),
        (6, [14, 1]),
        (6, [-1, 1]),
        (6, [-(2**31), 2**31 - 1]),
        (7, [[0, BLOCKS, 1, 2], [3, 4, 5, 6]]),
        (7, [[-1, 0, 1, 2], [3, 4, 5, 6]]),
        (10, [0, 1, 2, 3, BLOCKS * BLOCK]),
        (10, [0, 1, -2, 3, 4]),
    ],
)
def test_paged_attention_rejects(i: int, value: list) -> None:
    inputs = [*paged_inputs([3, 2], [4, 1]), None, None, None]
    inputs[i] = np.array(value, np.int32)
    content = contrib.model("PagedAttention", inputs, PAGED_OUTPUTS, **PAGED)
    with pytest.raises(Exception, match="PagedAttention"):
        contrib.run_tenon(content, inputs)
