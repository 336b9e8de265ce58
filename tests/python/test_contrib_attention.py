"""Operators of attention in com.microsoft, compared with onnxruntime."""

import contrib
import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from contrib import check, floats

HEADS, SIZE, VALUE_SIZE = 4, 8, 6
MHA_OUTPUTS = {"y": np.float32, "present_key": np.float32, "present_value": np.float32}


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def seen(*shape: int) -> np.ndarray:
    """A mask in which each query sees its own key at least."""
    mask = np.random.default_rng(0).integers(0, 2, shape)
    return (mask | np.eye(*shape[-2:], dtype=np.int64)).astype(np.int32)


def mha_inputs(queries: int = 5, keys: int = 7, value_size: int = VALUE_SIZE) -> list:
    """Query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value."""
    return [
        floats(2, queries, HEADS * SIZE),
        floats(2, keys, HEADS * SIZE, seed=1),
        floats(2, keys, HEADS * value_size, seed=2),
        *([None] * 5),
    ]


# The last has several parts of keys for several blocks of queries in a task.
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 7), (1, 40), (33, 33), (500, 1500)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_multi_head_attention(queries: int, keys: int, with_bias: bool) -> None:
    inputs = mha_inputs(queries, keys)
    if with_bias:
        inputs[3] = floats(HEADS * (2 * SIZE + VALUE_SIZE), seed=3)
    check("MultiHeadAttention", inputs, num_heads=HEADS)
    check("MultiHeadAttention", inputs, num_heads=HEADS, scale=0.1)
    check("MultiHeadAttention", inputs, MHA_OUTPUTS, num_heads=HEADS)


@pytest.mark.parametrize("length", [1, 6, 900])
def test_multi_head_attention_is_causal(length: int) -> None:
    inputs = mha_inputs(length, length)
    check("MultiHeadAttention", inputs, num_heads=HEADS, unidirectional=1)


@pytest.mark.parametrize(
    "mask",
    [
        ints(3, 7),
        np.array([[1] * 5 + [0] * 2, [0] + [1] * 6], np.int32),
        seen(2, 5, 7),
    ],
    ids=["lengths", "keys", "scores"],
)
@pytest.mark.parametrize("bias_shape", [None, (2, HEADS, 5, 7), (1, HEADS, 5, 7), (1, 1, 5, 7)])
def test_multi_head_attention_masks(mask: np.ndarray, bias_shape: tuple | None) -> None:
    inputs = mha_inputs()
    inputs[4] = mask
    if bias_shape:
        inputs[5] = floats(*bias_shape, seed=9)
    check("MultiHeadAttention", inputs, num_heads=HEADS, mask_filter_value=-50.0)


def test_multi_head_attention_packed() -> None:
    qkv = floats(2, 5, HEADS, 3, SIZE)
    parts = [np.ascontiguousarray(qkv[:, :, :, i]).reshape(2, 5, HEADS * SIZE) for i in range(3)]
    (expected,) = check("MultiHeadAttention", parts, num_heads=HEADS)
    check("MultiHeadAttention", [qkv], expected=[expected], num_heads=HEADS)
    kv = np.ascontiguousarray(qkv[:, :, :, 1:])
    check("MultiHeadAttention", [parts[0], kv], expected=[expected], num_heads=HEADS)
    heads_first = [x.reshape(2, 5, HEADS, SIZE).transpose(0, 2, 1, 3).copy() for x in parts]
    check("MultiHeadAttention", [parts[0], *heads_first[1:]], num_heads=HEADS)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention_with_past(with_bias: bool, causal: int) -> None:
    inputs = mha_inputs(3, 3, SIZE)
    if with_bias:
        inputs[3] = floats(3 * HEADS * SIZE, seed=3)
    inputs[6] = floats(2, HEADS, 4, SIZE, seed=4)
    inputs[7] = floats(2, HEADS, 4, SIZE, seed=5)
    check("MultiHeadAttention", inputs, MHA_OUTPUTS, num_heads=HEADS, unidirectional=causal)
    content = contrib.model("MultiHeadAttention", inputs, {"y": np.float32}, num_heads=HEADS)
    contrib.run_tenon(content, inputs)


def test_multi_head_attention_gives_scores() -> None:
    outputs = {**MHA_OUTPUTS, "qk": np.float32}
    check("MultiHeadAttention", mha_inputs(), outputs, num_heads=HEADS)


def test_multi_head_attention_in_half() -> None:
    inputs = [x if x is None else x.astype(np.float16) for x in mha_inputs()]
    (y,) = check("MultiHeadAttention", mha_inputs(), num_heads=HEADS)
    expected = [y.astype(np.float16)]
    check(
        "MultiHeadAttention",
        inputs,
        {"y": np.float16},
        expected=expected,
        num_heads=HEADS,
        rtol=2e-2,
        atol=5e-3,
    )


@pytest.mark.parametrize("with_indirection", [False, True])
def test_decoder_masked_multi_head_attention(with_indirection: bool) -> None:
    batch, room, past = 4, 9, 5
    hidden = HEADS * SIZE
    inputs = [
        floats(batch, 1, hidden),
        floats(batch, 1, hidden, seed=1),
        floats(batch, 1, hidden, seed=2),
        None,
        None,
        floats(batch, HEADS, room, SIZE, seed=3),
        floats(batch, HEADS, room, SIZE, seed=4),
        ints(past),
    ]
    if with_indirection:
        beams = np.random.default_rng(0).integers(0, 2, (2, 2, room)).astype(np.int32)
        inputs += [ints(2), beams]
    content = contrib.model(
        "DecoderMaskedMultiHeadAttention",
        inputs,
        MHA_OUTPUTS,
        num_heads=HEADS,
        past_present_share_buffer=1,
    )
    y, key, value = contrib.run_tenon(content, inputs)
    key_in, value_in = inputs[5].copy(), inputs[6].copy()
    for cache, new in ((key_in, inputs[1]), (value_in, inputs[2])):
        cache[:, :, past] = new.reshape(batch, HEADS, SIZE)
    np.testing.assert_array_equal(key, key_in)
    np.testing.assert_array_equal(value, value_in)
    for b in range(batch):
        for h in range(HEADS):
            source = [b] * (past + 1)
            if with_indirection:
                source[:past] = [b // 2 * 2 + inputs[9][b // 2, b % 2, i] for i in range(past)]
            keys = np.stack([key_in[source[i], h, i] for i in range(past + 1)])
            values = np.stack([value_in[source[i], h, i] for i in range(past + 1)])
            query = inputs[0][b, 0].reshape(HEADS, SIZE)[h]
            scores = keys @ query / np.sqrt(SIZE)
            weights = np.exp(scores - scores.max())
            expected = weights / weights.sum() @ values
            np.testing.assert_allclose(
                y[b, 0].reshape(HEADS, SIZE)[h], expected, rtol=1e-4, atol=1e-5
            )


# --- Attention ---


def attention_inputs(batch: int = 2, length: int = 5, hidden: int = 12, columns: int = 0) -> list:
    columns = columns or 3 * HEADS * SIZE
    return [floats(batch, length, hidden), floats(hidden, columns, seed=1), floats(columns, seed=2)]


@pytest.mark.parametrize("constants", [(), (1, 2)])
@pytest.mark.parametrize("length", [1, 5, 40])
def test_attention(length: int, constants: tuple) -> None:
    inputs = attention_inputs(length=length)
    check("Attention", inputs, constants=constants, num_heads=HEADS)
    # onnxruntime 1.31.1 crashes without a bias.
    zeros = [*inputs[:2], np.zeros_like(inputs[2])]
    expected = check("Attention", zeros, constants=constants, num_heads=HEADS, scale=0.2)
    check(
        "Attention",
        inputs[:2],
        constants=constants[:1],
        num_heads=HEADS,
        scale=0.2,
        expected=expected,
    )
    check("Attention", inputs, constants=constants, num_heads=HEADS, unidirectional=1)
    hidden = {"qkv_hidden_sizes": [HEADS * SIZE, HEADS * SIZE, HEADS * VALUE_SIZE]}
    inputs = attention_inputs(length=length, columns=HEADS * (2 * SIZE + VALUE_SIZE))
    check("Attention", inputs, constants=constants, num_heads=HEADS, **hidden)


@pytest.mark.parametrize(
    "mask",
    [
        ints(3, 5),
        ints(3, 5, 1, 0),
        np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], np.int32),
        seen(2, 5, 5),
    ],
    ids=["ends", "ends and beginnings", "keys", "scores"],
)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("with_bias", [False, True])
def test_attention_masks(mask: np.ndarray, causal: int, with_bias: bool) -> None:
    bias = floats(2, HEADS, 5, 5, seed=7) if with_bias else None
    inputs = [*attention_inputs(), mask, None, bias]
    check("Attention", inputs, num_heads=HEADS, unidirectional=causal)


@pytest.mark.parametrize("rows", [1, 2])
def test_attention_takes_a_mask_that_says_nothing(rows: int) -> None:
    inputs = attention_inputs()
    check("Attention", [*inputs, np.zeros((rows, 1), np.int32)], num_heads=HEADS)


@pytest.mark.parametrize("ends", [[3, -1], [-10, 2], [3, -1, 0, 0]])
def test_attention_rejects_negative_ends(ends: list[int]) -> None:
    inputs = [*attention_inputs(), np.array(ends, np.int32)]
    content = contrib.model("Attention", inputs, {"y": np.float32}, num_heads=HEADS)
    with pytest.raises(Exception, match="mask_index: expected lengths >= 0, got -"):
        contrib.run_tenon(content, inputs)


def test_attention_takes_a_square_mask() -> None:
    mask = seen(2, 1, 8, 8)
    inputs = [*attention_inputs(), np.ascontiguousarray(mask[:, 0, :5, :5])]
    expected = check("Attention", inputs, num_heads=HEADS)
    check("Attention", [*inputs[:3], mask], expected=expected, num_heads=HEADS)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("with_present", [False, True])
def test_attention_with_past(causal: int, with_present: bool) -> None:
    past = floats(2, 2, HEADS, 4, SIZE, seed=5)
    inputs = [*attention_inputs(), None, past]
    outputs = {"y": np.float32, "present": np.float32}
    expected = check("Attention", inputs, outputs, num_heads=HEADS, unidirectional=causal)
    if not with_present:
        check("Attention", inputs, num_heads=HEADS, unidirectional=causal, expected=expected[:1])


def test_attention_gives_the_present() -> None:
    outputs = {"y": np.float32, "present": np.float32}
    check("Attention", attention_inputs(), outputs, num_heads=HEADS, unidirectional=1)


def turned(x: np.ndarray, first: int, rotated: int) -> np.ndarray:
    """Heads [batch, heads, length, size] with the rotary embedding of GPT-NeoX."""
    complex_pairs = x[..., : rotated // 2] + 1j * x[..., rotated // 2 : rotated]
    speeds = 10000.0 ** -(np.arange(0, rotated, 2) / rotated)
    angles = np.outer(first + np.arange(x.shape[2]), speeds)
    pairs = complex_pairs * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag, x[..., rotated:]], -1)


def rotary_attention(
    x: np.ndarray,
    past: np.ndarray | None,
    *,
    rotated: int = SIZE,
    heads: int = HEADS,
    causal: bool = False,
    scale: float | None = None,
) -> list[np.ndarray]:
    """Output and present of the projections `x`, in double."""
    q, k, v = (
        part.reshape(*part.shape[:2], heads, -1).swapaxes(1, 2)
        for part in np.split(x.astype(np.float64), 3, -1)
    )
    first = 0 if past is None else past.shape[3]
    q, k = turned(q, first, rotated), turned(k, first, rotated)
    if past is not None:
        k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
    scores = q @ k.swapaxes(2, 3) * (scale or q.shape[-1] ** -0.5)
    if causal:
        hidden = np.arange(k.shape[2]) > first + np.arange(q.shape[2])[:, None]
        scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    y = y.swapaxes(1, 2).reshape(*x.shape[:2], -1)
    return [y.astype(np.float32), np.stack([k, v]).astype(np.float32)]


@pytest.mark.parametrize("past_length", [None, 0, 4, 900])
@pytest.mark.parametrize("length", [1, 5, 40])
@pytest.mark.parametrize("rotated", [0, 2, 6, SIZE])
def test_attention_turns_queries_and_keys(
    length: int, past_length: int | None, rotated: int
) -> None:
    """onnxruntime's CPU provider has no do_rotary."""
    inputs = attention_inputs(length=length)
    past = None if past_length is None else floats(2, 2, HEADS, past_length, SIZE, seed=5)
    projected = inputs[0].astype(np.float64) @ inputs[1] + inputs[2]
    outputs = {"y": np.float32, "present": np.float32}
    sizes = {"rotary_embedding_dim": rotated} if rotated else {}
    for causal, scale in ((0, {}), (1, {"scale": 0.2})):
        expected = rotary_attention(
            projected, past, rotated=rotated or SIZE, causal=bool(causal), **scale
        )
        options = {"num_heads": HEADS, "do_rotary": 1, "unidirectional": causal, **sizes, **scale}
        check("Attention", [*inputs, None, past], outputs, expected, **options)
        y = {"y": np.float32}
        check("Attention", [*inputs, None, past], y, expected[:1], constants=(1, 2), **options)


def test_attention_turns_by_the_length_of_a_shared_past() -> None:
    inputs, past = attention_inputs(length=3), floats(2, 2, HEADS, 4, SIZE, seed=5)
    projected = inputs[0].astype(np.float64) @ inputs[1] + inputs[2]
    y, present = rotary_attention(projected, past)
    buffer = np.zeros((2, 2, HEADS, 9, SIZE), np.float32)
    buffer[:, :, :, :4] = past
    expected = buffer.copy()
    expected[:, :, :, :7] = present
    options = {"num_heads": HEADS, "do_rotary": 1, "past_present_share_buffer": 1}
    outputs = {"y": np.float32, "present": np.float32}
    inputs = [*inputs, None, buffer, None, ints(4)]
    check("Attention", inputs, outputs, [y, expected], **options)


@pytest.mark.parametrize("rotated", [-2, 3, SIZE + 2])
def test_attention_rejects_rotary_sizes(rotated: int) -> None:
    options = {"num_heads": HEADS, "do_rotary": 1, "rotary_embedding_dim": rotated}
    content = contrib.model("Attention", attention_inputs(), {"y": np.float32}, **options)
    with pytest.raises(Exception, match=rf"Attention.*rotary_embedding_dim in \[0, 8\].*{rotated}"):
        contrib.run_tenon(content, attention_inputs())


@pytest.mark.parametrize(
    ("shapes", "attributes"),
    [
        ([(2, 5, 12), (11, 96)], {}),
        ([(2, 5, 12), (12, 95)], {}),
        ([(2, 5, 12), (12, 96), (95,)], {}),
        ([(5, 12), (12, 96)], {}),
        ([(2, 5, 12), (12, 96)], {"qkv_hidden_sizes": [32, 32]}),
        ([(2, 5, 12), (12, 96)], {"qkv_hidden_sizes": [-32, -32, 160]}),
        ([(2, 5, 12), (12, 96)], {"qkv_hidden_sizes": [2**62, 2**62, 96 - 2**63]}),
        ([(2, 5, 12), (12, 96)], {"num_heads": 0}),
        ([(2, 5, 12), (12, 96)], {"num_heads": -(2**63)}),
    ],
)
def test_attention_rejects(shapes: list, attributes: dict) -> None:
    inputs = [floats(*shape) for shape in shapes]
    attributes = {"num_heads": HEADS, **attributes}
    content = contrib.model("Attention", inputs, {"y": np.float32}, **attributes)
    with pytest.raises(Exception, match="expected"):
        contrib.run_tenon(content, inputs)


# --- PackedAttention, PackedMultiHeadAttention ---


def packed(lengths: list[int], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """token_offset and cumulative_sequence_length."""
    places = np.arange(len(lengths) * longest).reshape(-1, longest)
    used = [row[:n] for row, n in zip(places, lengths, strict=True)]
    padding = [row[n:] for row, n in zip(places, lengths, strict=True)]
    offsets = np.concatenate(used + padding).reshape(-1, longest).astype(np.int32)
    return offsets, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


@pytest.mark.parametrize("lengths", [[3, 5], [1, 0, 4], [5]])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("constants", [(), (1, 2)])
def test_packed_attention(lengths: list[int], with_bias: bool, constants: tuple) -> None:
    longest, hidden = 5, HEADS * SIZE
    if 0 in lengths:
        with_bias = False  # next to -10000, the reference rounds the bias of padding
    offsets, sums = packed(lengths, longest)
    x, weights, bias = attention_inputs(len(lengths), longest)
    score_bias = floats(1, HEADS, longest, longest, seed=6) if with_bias else None
    padded = [x, weights, bias, ints(*lengths), None, score_bias]
    (expected,) = check("Attention", padded, num_heads=HEADS)
    used = offsets.ravel()[: sums[-1]]
    expected = expected.reshape(-1, hidden)[used]
    tokens = x.reshape(-1, x.shape[-1])[used]
    inputs = [tokens, weights, bias, offsets, sums, score_bias]
    check("PackedAttention", inputs, expected=[expected], num_heads=HEADS, constants=constants)
    projected = (tokens @ weights + bias).astype(np.float32)
    heads = [np.ascontiguousarray(part) for part in np.split(projected, 3, axis=1)]
    rest = [None, offsets, sums, score_bias]
    check("PackedMultiHeadAttention", [*heads, *rest], expected=[expected], num_heads=HEADS)
    together = np.stack([part.reshape(-1, HEADS, SIZE) for part in heads], axis=2)
    inputs = [together, None, None, *rest]
    check("PackedMultiHeadAttention", inputs, expected=[expected], num_heads=HEADS)
    # The same with the projection's bias left to the operator.
    raw = (tokens @ weights).astype(np.float32)
    heads = [np.ascontiguousarray(part) for part in np.split(raw, 3, axis=1)]
    rest[0] = bias
    check("PackedMultiHeadAttention", [*heads, *rest], expected=[expected], num_heads=HEADS)
    together = np.stack([part.reshape(-1, HEADS, SIZE) for part in heads], axis=2)
    inputs = [together, None, None, *rest]
    check("PackedMultiHeadAttention", inputs, expected=[expected], num_heads=HEADS)


def test_packed_heads_reject_a_bias_of_another_size() -> None:
    offsets, sums = packed([3, 2], 3)
    heads = [floats(5, HEADS * SIZE, seed=i) for i in range(3)]
    inputs = [*heads, floats(3 * HEADS * SIZE - 1), offsets, sums]
    content = contrib.model("PackedMultiHeadAttention", inputs, {"y": np.float32}, num_heads=HEADS)
    with pytest.raises(Exception, match="input 3"):
        contrib.run_tenon(content, inputs)


@pytest.mark.parametrize(
    "sums", [[0, 3, 9], [0, 3, 7], [1, 3, 8], [0, 9, 8], [0, -1, 8], [0, 2**31 - 1, 8]]
)
def test_packed_attention_rejects_sums(sums: list[int]) -> None:
    offsets, _ = packed([3, 5], 5)
    inputs = [*attention_inputs()[1:], offsets, ints(*sums)]
    inputs.insert(0, floats(8, 12))
    content = contrib.model("PackedAttention", inputs, {"y": np.float32}, num_heads=HEADS)
    with pytest.raises(Exception, match="cumulative_sequence_length: expected"):
        contrib.run_tenon(content, inputs)


# --- GroupQueryAttention ---

KV_HEADS, GQA_SIZE = 2, 16  # onnxruntime only rotates heads whose size is a multiple of 16
GQA_OUTPUTS = MHA_OUTPUTS


def angles(rows: int, half: int) -> list[np.ndarray]:
    table = np.arange(rows)[:, None] * 0.3 ** np.arange(half)[None]
    return [np.cos(table).astype(np.float32), np.sin(table).astype(np.float32)]


def gqa_inputs(batch: int, queries: int, past: int, last: list[int], total: int) -> list:
    return [
        floats(batch, queries, HEADS * GQA_SIZE),
        floats(batch, queries, KV_HEADS * GQA_SIZE, seed=1),
        floats(batch, queries, KV_HEADS * GQA_SIZE, seed=2),
        floats(batch, KV_HEADS, past, GQA_SIZE, seed=3),
        floats(batch, KV_HEADS, past, GQA_SIZE, seed=4),
        ints(*last),
        ints(total),
    ]


def check_gqa(inputs: list, **attributes: object) -> list[np.ndarray]:
    """Compares what the operator defines, without the rows of the cache after the keys."""
    attributes = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, **attributes}
    content = contrib.model("GroupQueryAttention", inputs, GQA_OUTPUTS, **attributes)
    y, key, value = contrib.run_tenon(content, inputs)
    expected = contrib.run_onnxruntime(content, inputs)
    np.testing.assert_allclose(y, expected[0], rtol=1e-4, atol=2e-5)
    assert key.shape == expected[1].shape
    for b, last in enumerate(inputs[5]):
        for actual, other in ((key, expected[1]), (value, expected[2])):
            np.testing.assert_allclose(
                actual[b, :, : last + 1], other[b, :, : last + 1], rtol=1e-5, atol=1e-6
            )
    return [y, key, value]


@pytest.mark.parametrize("rotary", [None, 0, 1])
@pytest.mark.parametrize(
    ("batch", "queries", "past", "last", "total"),
    [
        (2, 5, 0, [4, 4], 5),
        (2, 1, 6, [4, 6], 7),
        (1, 3, 9, [6], 7),
        (1, 1, 16, [9], 10),
        (2, 1, 64, [60, 33], 61),
    ],
)
def test_group_query_attention(
    rotary: int | None, batch: int, queries: int, past: int, last: list[int], total: int
) -> None:
    inputs = gqa_inputs(batch, queries, past, last, total)
    attributes = {}
    if rotary is not None:
        inputs += angles(80, GQA_SIZE // 2)
        attributes = {"do_rotary": 1, "rotary_interleaved": rotary}
    check_gqa(inputs, **attributes)
    packed = [np.concatenate(inputs[:3], axis=2), None, None, *inputs[3:]]
    check_gqa(packed, **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"local_window_size": 2},
        {"local_window_size": 4},
        {"softcap": 1.5},
        {"smooth_softmax": 1},
        {"scale": 0.3},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("queries", "past", "total"), [(6, 0, 6), (1, 9, 8), (3, 9, 8), (900, 0, 900)]
)
def test_group_query_attention_attributes(
    attributes: dict, queries: int, past: int, total: int
) -> None:
    check_gqa(gqa_inputs(1, queries, past, [total - 1], total), **attributes)


@pytest.mark.parametrize(("queries", "past", "total"), [(6, 0, 6), (1, 9, 8), (900, 0, 900)])
def test_group_query_attention_bias_and_sinks(queries: int, past: int, total: int) -> None:
    inputs = gqa_inputs(1, queries, past, [total - 1], total) + [None] * 3
    bias = floats(1, HEADS, queries, total, seed=8)
    check_gqa([*inputs, bias])
    check_gqa([*inputs, bias[:, :1].copy()])
    check_gqa([*inputs, None, floats(HEADS, seed=9)])


def test_group_query_attention_begins_caches_of_undeclared_types() -> None:
    inputs = gqa_inputs(1, 3, 0, [2], 3)
    inputs[3:5] = [None, None]
    content = contrib.model(
        "GroupQueryAttention", inputs, GQA_OUTPUTS, num_heads=HEADS, kv_num_heads=KV_HEADS
    )
    undeclared = onnx.load_from_string(content)
    for output in undeclared.graph.output:
        output.ClearField("type")
    expected = contrib.run_tenon(content, inputs)
    actual = contrib.run_tenon(undeclared.SerializeToString(), inputs)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(a, e)


def kept_rows(length: int, capacity: int, window: int) -> int:
    """Of a sequence in a cache that slides."""
    if length <= capacity:
        return length
    dropped = capacity - window + 1
    return length - dropped * -(-(length - capacity) // dropped)


def check_sliding_gqa(inputs: list, window: int, **attributes: object) -> None:
    attributes = {
        "num_heads": HEADS,
        "kv_num_heads": KV_HEADS,
        "sliding_window_cache": 1,
        "local_window_size": window,
        **attributes,
    }
    content = contrib.model("GroupQueryAttention", inputs, GQA_OUTPUTS, **attributes)
    y, *caches = contrib.run_tenon(content, inputs)
    expected, *expected_caches = contrib.run_onnxruntime(content, inputs)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-5)
    for actual, other in zip(caches, expected_caches, strict=True):
        assert actual.shape == other.shape
        for b, last in enumerate(inputs[5]):
            rows = kept_rows(int(last) + 1, inputs[3].shape[2], window)
            np.testing.assert_allclose(actual[b, :, :rows], other[b, :, :rows], 1e-5, 1e-6)
            assert (actual[b, :, rows:] == 0).all()


@pytest.mark.parametrize("attributes", [{}, {"do_rotary": 1}, {"softcap": 1.5}], ids=str)
@pytest.mark.parametrize("window", [1, 3, 4, 6])
@pytest.mark.parametrize(
    ("batch", "queries", "last", "total"),
    [
        (1, 5, [4], 5),
        (2, 9, [8, 8], 9),
        (1, 1, [3], 4),
        (1, 1, [6], 7),
        (3, 1, [9, 5, 40], 41),
        (1, 2, [6], 7),
        (1, 4, [12], 13),
        (1, 15, [30], 31),
    ],
)
def test_group_query_attention_with_a_cache_that_slides(
    attributes: dict, window: int, batch: int, queries: int, last: list[int], total: int
) -> None:
    inputs = gqa_inputs(batch, queries, 6, last, total)
    if attributes.get("do_rotary"):
        inputs += angles(80, GQA_SIZE // 2)
    check_sliding_gqa(inputs, window, **attributes)


def test_group_query_attention_with_a_cache_that_slides_takes_biases_of_all_keys() -> None:
    inputs = gqa_inputs(1, 2, 6, [12], 13) + [None] * 3
    check_sliding_gqa([*inputs, floats(1, HEADS, 2, 13, seed=8)], 3)
    check_sliding_gqa([*inputs, None, floats(HEADS, seed=9)], 3)


@pytest.mark.parametrize("scores", [1, 2])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("options", [{}, {"local_window_size": 3}, {"softcap": 2.0}])
def test_group_query_attention_gives_scores(scores: int, has_bias: bool, options: dict) -> None:
    """Before the softmax, those of keys that a query does not see are 0."""
    inputs = gqa_inputs(1, 4, 8, [7], 8)
    if has_bias:
        inputs += [None, None, None, floats(1, HEADS, 4, 8, seed=8)]
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        {**GQA_OUTPUTS, "qk": np.float32},
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        qk_output=scores,
        **options,
    )
    actual, expected = contrib.run_tenon(content, inputs), contrib.run_onnxruntime(content, inputs)
    np.testing.assert_allclose(actual[3], expected[3], rtol=1e-4, atol=1e-5)
    assert (actual[3][0, :, 0, 5:] == 0).all()


@pytest.mark.parametrize("scores", [0, 1, 2])
@pytest.mark.parametrize("steps", [(4, 1, 1, 1, 1, 1, 1), (9, 5), (2, 3, 1, 6, 2)])
@pytest.mark.parametrize("window", [2, 5])
def test_a_cache_that_slides_gives_what_a_whole_cache_gives(
    scores: int, steps: tuple[int, ...], window: int
) -> None:
    """Step by step, with the scores of all keys, which onnxruntime has not beside such a cache."""
    outputs = {**GQA_OUTPUTS, "qk": np.float32} if scores else GQA_OUTPUTS
    capacity, batch = 5, 2
    whole = [np.zeros((batch, KV_HEADS, 20, GQA_SIZE), np.float32) for _ in range(2)]
    slid = [x[:, :, :capacity] for x in whole]
    done = 0
    for queries in steps:
        done += queries
        found = []
        for caches, slides in ((whole, 0), (slid, 1)):
            inputs = gqa_inputs(batch, queries, 0, [done - 1] * batch, done)
            inputs[:3] = [x + done for x in inputs[:3]]
            inputs[3:5] = caches
            content = contrib.model(
                "GroupQueryAttention",
                inputs,
                outputs,
                num_heads=HEADS,
                kv_num_heads=KV_HEADS,
                local_window_size=window,
                sliding_window_cache=slides,
                qk_output=scores,
                scale=0.1,
            )
            found.append(contrib.run_tenon(content, inputs))
        whole, slid = (caches[1:3] for caches in found)
        for a, e in zip(found[1][::3], found[0][::3], strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-5)
        rows = kept_rows(done, capacity, window)
        for a, e in zip(slid, whole, strict=True):
            assert a.shape[2] == capacity
            np.testing.assert_allclose(a[:, :, :rows], e[:, :, done - rows : done], rtol=1e-6)


@pytest.mark.parametrize(
    ("past", "attributes", "message"),
    [
        (6, {}, "local_window_size above 0"),
        (6, {"local_window_size": 0}, "local_window_size above 0"),
        (6, {"local_window_size": 7}, "rows for a local_window_size of 7"),
        (None, {"local_window_size": 3}, "needs past_key"),
    ],
)
def test_group_query_attention_rejects_caches_that_cannot_slide(
    past: int | None, attributes: dict, message: str
) -> None:
    inputs = gqa_inputs(1, 1, past or 0, [0], 1)
    if past is None:
        inputs[3:5] = [None, None]
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        GQA_OUTPUTS,
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        sliding_window_cache=1,
        **attributes,
    )
    with pytest.raises(Exception, match=message):
        contrib.run_tenon(content, inputs)


@pytest.mark.parametrize("slides", [0, 1])
def test_group_query_attention_may_share_its_cache(slides: int) -> None:
    inputs = gqa_inputs(1, 1, 10 if slides else 16, [19 if slides else 9], 20 if slides else 10)
    content = contrib.model(
        "GroupQueryAttention",
        inputs,
        GQA_OUTPUTS,
        num_heads=HEADS,
        kv_num_heads=KV_HEADS,
        local_window_size=10,
        sliding_window_cache=slides,
    )
    expected = contrib.run_tenon(content, inputs)
    session = tenon.InferenceSession(content)
    caches = [tenon.OrtValue.ortvalue_from_numpy(inputs[i].copy()) for i in (3, 4)]
    binding = session.io_binding()
    for i in (0, 1, 2, 5, 6):
        binding.bind_cpu_input(f"x{i}", inputs[i])
    for i, name in ((0, "present_key"), (1, "present_value")):
        binding.bind_ortvalue_input(f"x{i + 3}", caches[i])
        binding.bind_ortvalue_output(name, caches[i])
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (y,) = (x for x in binding.copy_outputs_to_cpu() if x.shape == expected[0].shape)
    np.testing.assert_allclose(y, expected[0], rtol=1e-5)
    np.testing.assert_allclose(caches[0].numpy()[:, :, :10], expected[1][:, :, :10], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_group_query_attention_writes_new_rows_alone_into_a_bound_cache(kind: type) -> None:
    """Token after token, whose number is fed, over one buffer that is input and output; beside
    onnxruntime in float32."""

    def cast(inputs: list, source: type, target: type) -> list:
        return [x.astype(target) if x.dtype == source else x for x in inputs]

    def model(inputs: list) -> bytes:
        types = dict.fromkeys(GQA_OUTPUTS, inputs[0].dtype.type)
        attributes = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
        return contrib.model("GroupQueryAttention", inputs, types, **attributes)

    starts = cast(gqa_inputs(1, 1, 16, [3], 4), np.float32, kind)
    session = tenon.InferenceSession(model(starts))
    for start in starts[3:5]:
        start[:, :, 3:] = 7  # what a run must leave as it is, apart from its own row
    caches = [tenon.OrtValue.ortvalue_from_numpy(start.copy()) for start in starts[3:5]]
    error = float(ml_dtypes.finfo(kind).eps)
    for past in range(3, 9):
        inputs = cast(gqa_inputs(1, 1, 16, [past], past + 1), np.float32, kind)
        inputs[3:5] = [cache.numpy().copy() for cache in caches]
        wide = cast(inputs, kind, np.float32)
        expected = contrib.run_onnxruntime(model(wide), wide)
        binding = session.io_binding()
        for i in (0, 1, 2, 5, 6):
            binding.bind_cpu_input(f"x{i}", inputs[i])
        for i, name in ((0, "present_key"), (1, "present_value")):
            binding.bind_ortvalue_input(f"x{i + 3}", caches[i])
            binding.bind_ortvalue_output(name, caches[i])
        binding.bind_output("y")
        session.run_with_iobinding(binding)
        y = binding.copy_outputs_to_cpu()[2].astype(np.float32)
        np.testing.assert_allclose(y, expected[0], rtol=error, atol=max(error, 1e-6))
        for i in range(2):
            cache = caches[i].numpy()
            np.testing.assert_array_equal(cache[:, :, :past], inputs[3 + i][:, :, :past])
            np.testing.assert_array_equal(cache[:, :, past], expected[1 + i][:, :, past])
            assert (cache[:, :, past + 1 :] == 7).all()


@pytest.mark.parametrize(
    ("last", "total"),
    [([7], 7), ([-2], 7), ([2**31 - 1], 7), ([6], -1), ([6], 2**31 - 1), ([0], 7), ([6], 0)],
)
def test_group_query_attention_rejects_lengths(last: list[int], total: int) -> None:
    inputs = gqa_inputs(1, 2, 6, last, total)
    content = contrib.model(
        "GroupQueryAttention", inputs, GQA_OUTPUTS, num_heads=HEADS, kv_num_heads=KV_HEADS
    )
    with pytest.raises(Exception, match=r"expected|past|memory"):
        contrib.run_tenon(content, inputs)


# --- RotaryEmbedding ---


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("form", ["last", "first", "partial"])
@pytest.mark.parametrize("positions", ["offset", "each"])
def test_rotary_embedding(interleaved: int, form: str, positions: str) -> None:
    x = floats(2, HEADS, 5, SIZE) if form == "first" else floats(2, 5, HEADS * SIZE)
    ids = (
        np.array([3]) if positions == "offset" else np.random.default_rng(0).integers(0, 9, (2, 5))
    )
    half = SIZE // 4 if form == "partial" else SIZE // 2
    attributes = {"interleaved": interleaved}
    if form == "partial":
        attributes |= {"num_heads": HEADS, "rotary_embedding_dim": 2 * half}
    check("RotaryEmbedding", [x, ids, *angles(9, half)], **attributes)


@pytest.mark.parametrize("position", [-1, 5, 9, 2**63 - 1, -(2**63)])
def test_rotary_embedding_rejects_positions(position: int) -> None:
    inputs = [floats(2, 5, HEADS * SIZE), np.array([position]), *angles(9, SIZE // 2)]
    content = contrib.model("RotaryEmbedding", inputs, {"y": np.float32})
    with pytest.raises(Exception, match=r"expected positions in \[0, 9\)"):
        contrib.run_tenon(content, inputs)


def test_onnxruntime_is_the_reference() -> None:
    assert onnxruntime.__version__ == "1.31.1"


# --- Sparse attention ---


def sparse_layouts(layouts: int, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows and columns of random lower triangles of blocks, with the diagonal."""
    generator = np.random.default_rng(0)
    masks = np.tril(generator.random((layouts, blocks, blocks)) < 0.5) | np.eye(blocks, dtype=bool)
    rows = np.cumsum(np.pad(masks.sum(-1), ((0, 0), (1, 0))), -1).astype(np.int32)
    columns = np.full((layouts, rows[:, -1].max()), -1, np.int32)
    for mask, row in zip(masks, columns, strict=True):
        found = np.nonzero(mask)[1]
        row[: len(found)] = found
    return rows, columns


def sparse_inputs(batch: int, length: int, past: int, is_packed: bool, layouts: int) -> list:
    heads, kv_heads, size, block, capacity = 4, 2, 16, 16, 64
    q = floats(batch, length, heads * size)
    k, v = floats(batch, length, kv_heads * size, seed=1), floats(batch, length, kv_heads * size)
    past_key = floats(batch, kv_heads, capacity, size, seed=3)
    past_value = floats(batch, kv_heads, capacity, size, seed=4)
    if is_packed:
        q, k, v = np.concatenate([q, k, v], -1), None, None
    total = past + length
    lengths = [np.array([total], np.int32), np.full(batch, total, np.int32)]
    angles = [floats(capacity, size // 2, seed=7), floats(capacity, size // 2, seed=8)]
    layout = sparse_layouts(layouts, capacity // block)
    return [q, k, v, past_key, past_value, *layout, *lengths, *angles]


SPARSE = {"num_heads": 4, "kv_num_heads": 2, "sparse_block_size": 16}


@pytest.mark.parametrize(("batch", "length", "past"), [(2, 20, 0), (2, 1, 30), (1, 3, 40)])
@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("layouts", [1, 2, 4])
@pytest.mark.parametrize("do_rotary", [0, 1])
def test_sparse_attention(
    batch: int, length: int, past: int, is_packed: bool, layouts: int, do_rotary: int
) -> None:
    inputs = sparse_inputs(batch, length, past, is_packed, layouts)
    if not do_rotary:
        inputs[9:] = [None, None]
    outputs = dict.fromkeys(("y", "key", "value"), np.float32)
    options = {**SPARSE, "do_rotary": do_rotary}
    content = contrib.model("SparseAttention", inputs, outputs, **options)
    # onnxruntime writes the caches in place.
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {
        f"x{i}": onnxruntime.OrtValue.ortvalue_from_numpy(x.copy())
        for i, x in enumerate(inputs)
        if x is not None
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y")
    binding.bind_ortvalue_output("key", values["x3"])
    binding.bind_ortvalue_output("value", values["x4"])
    session.run_with_iobinding(binding)
    expected = [binding.get_outputs()[0].numpy(), values["x3"].numpy(), values["x4"].numpy()]
    for actual, wanted in zip(contrib.run_tenon(content, inputs), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(
    ("i", "value"),
    [
        (5, np.array([[0, 1, 2**31 - 1, 3, 4]], np.int32)),
        (5, np.array([[0, 2, 1, 3, 4]], np.int32)),
        (5, np.array([[0, -1, 1, 3, 4]], np.int32)),
        (5, np.array([[1, 1, 2, 3, 4]], np.int32)),
        (7, np.array([65], np.int32)),
        (7, np.array([-1], np.int32)),
        (7, np.array([0], np.int32)),
        (8, np.array([32, 31], np.int32)),
        (8, np.array([0, 31], np.int32)),
        (8, np.array([31], np.int32)),
    ],
)
def test_sparse_attention_rejects(i: int, value: np.ndarray) -> None:
    inputs = sparse_inputs(2, 1, 30, False, 1)
    inputs[i] = value
    outputs = dict.fromkeys(("y", "key", "value"), np.float32)
    content = contrib.model("SparseAttention", inputs, outputs, **SPARSE)
    with pytest.raises(Exception, match="SparseAttention"):
        contrib.run_tenon(content, inputs)


@pytest.mark.parametrize("column", [-1, 4, 2**30, -(2**31)])
@pytest.mark.parametrize("layout", [0, 1])
def test_sparse_attention_rejects_columns(column: int, layout: int) -> None:
    inputs = sparse_inputs(1, 3, 30, False, 2)
    inputs[6][layout, 1] = column
    outputs = dict.fromkeys(("y", "key", "value"), np.float32)
    content = contrib.model("SparseAttention", inputs, outputs, **SPARSE)
    with pytest.raises(
        Exception, match=rf"columns in \[0, 4\), got {column} at 1 of layout {layout}"
    ):
        contrib.run_tenon(content, inputs)


def test_sparse_attention_reads_no_columns_after_the_last() -> None:
    inputs = sparse_inputs(1, 3, 30, False, 1)
    outputs = dict.fromkeys(("y", "key", "value"), np.float32)
    content = contrib.model("SparseAttention", inputs, outputs, **SPARSE)
    expected = contrib.run_tenon(content, inputs)
    inputs[6] = np.pad(inputs[6], ((0, 0), (0, 3)), constant_values=99)
    content = contrib.model("SparseAttention", inputs, outputs, **SPARSE)
    for actual, wanted in zip(contrib.run_tenon(content, inputs), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
