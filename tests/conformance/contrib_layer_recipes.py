"""Recipes of the layers among com.microsoft's operators: attention, recurrences, gates, experts."""

from __future__ import annotations

import numpy as np
from recipes import Call, Maker, ints, quantized


def small(t: Maker, *shape: int) -> np.ndarray:
    return t(*shape, low=-1, high=1)


def int32s(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


# --- Attention ---


def attention(t: Maker) -> list[Call]:
    inputs = [small(t, 2, 3, 8), small(t, 8, 24), small(t, 24)]
    heads = {"num_heads": 2}
    past, bias = small(t, 2, 2, 2, 2, 4), small(t, 1, 2, 3, 3)
    mask = int32s(1, 1, 0, 1, 1, 1).reshape(2, 3)
    return [
        Call(inputs, heads),
        Call([*inputs, mask, None, bias], {**heads, "unidirectional": 1}),
        Call([*inputs, int32s(2, 3)], heads),
        Call([*inputs, None, past], heads, 2),
        Call([*inputs, None, past], {**heads, "do_rotary": 1, "rotary_embedding_dim": 2}, 2),
    ]


def q_attention(t: Maker) -> list[Call]:
    calls = []
    for u in t.others("T2"):
        for f in t.others("T3"):
            x, w, bias = quantized(t, 2, 3, 8), quantized(u, 8, 24), small(f, 24)
            inputs = [x, w, bias, f.scalar(0.02), f.scalar(0.01)]
            zeros = [t.scalar(3), u.scalar(1)]
            heads = {"num_heads": 2}
            calls += [Call(inputs, heads), Call([*inputs, int32s(2, 3), *zeros], heads)]
            calls += [Call([*inputs, None, *zeros, small(f, 2, 2, 2, 2, 4)], heads, 2)]
    return calls


def multi_head_attention(t: Maker) -> list[Call]:
    q, k, v = small(t, 2, 3, 8), small(t, 2, 5, 8), small(t, 2, 5, 8)
    heads = {"num_heads": 2}
    past = [small(t, 2, 2, 2, 4) for _ in range(2)]
    return [
        Call([q, k, v], heads),
        Call([q, k, v, small(t, 24)], heads),
        Call([q, k, v, None, None, small(t, 1, 2, 3, 5)], {**heads, "scale": 0.25}),
        Call([q, k, v, None, int32s(4, 5)], heads),
        Call([q, k[:, :3], v[:, :3], None, None, None, *past], heads, 3),
        Call([small(t, 2, 3, 2, 3, 4)], heads),
    ]


def decoder_masked_attention(t: Maker) -> list[Call]:
    rows, past = [small(t, 2, 1, 8) for _ in range(3)], [small(t, 2, 2, 6, 4) for _ in range(2)]
    heads = {"num_heads": 2, "past_present_share_buffer": 1}
    inputs = [*rows, None, None, *past, int32s(4)]
    cross = [small(t, 2, 2, 5, 4) for _ in range(2)]
    return [
        Call(inputs, heads, 3),
        Call([*inputs, None, None, small(t, 24)], heads, 3),
        Call([rows[0], *cross], {"num_heads": 2}),
    ]


def group_query_attention(t: Maker) -> list[Call]:
    q, k, v = small(t, 1, 3, 64), small(t, 1, 3, 32), small(t, 1, 3, 32)
    past = [small(t, 1, 2, 4, 16) for _ in range(2)]
    totals = [int32s(2), np.array(3, np.int32)]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    angles = [small(t, 8, 8) for _ in range(2)]
    return [
        Call([q, k, v, *past, *totals], heads, 3),
        Call([q, k, v, None, None, *totals], heads),
        Call([q, k, v, *past, *totals, *angles], {**heads, "do_rotary": 1}, 3),
        Call([small(t, 1, 3, 128), None, None, *past, *totals], {**heads, "softcap": 2.0}, 3),
    ]


def sparse_attention(t: Maker) -> list[Call]:
    rows = [small(t, 1, 4, 64) for _ in range(3)]
    past = [small(t, 1, 2, 32, 32) for _ in range(2)]
    layout = [int32s(0, 1, 2).reshape(1, 3), int32s(0, 1).reshape(1, 2)]
    attributes = {"num_heads": 2, "kv_num_heads": 2, "sparse_block_size": 16}
    return [Call([*rows, *past, *layout, int32s(4), int32s(4)], attributes, 3)]


def longformer_attention(t: Maker) -> list[Call]:
    mask, flags = t.of(*[0] * 7, -10000).reshape(1, 8), int32s(1, *[0] * 7).reshape(1, 8)
    weights = [small(t, 8, 24), small(t, 24)]
    inputs = [small(t, 1, 8, 8), *weights, mask, *weights, flags]
    return [Call(inputs, {"num_heads": 2, "window": 2})]


OFFSETS = int32s(0, 1, 4, 5, 6, 2, 3, 7).reshape(2, 4)
STARTS = int32s(0, 2, 5)


def packed_attention(t: Maker) -> list[Call]:
    inputs = [small(t, 5, 8), small(t, 8, 24), small(t, 24), OFFSETS, STARTS]
    heads = {"num_heads": 2}
    return [Call(inputs, heads), Call([*inputs, small(t, 2, 2, 4, 4)], heads)]


def packed_multi_head_attention(t: Maker) -> list[Call]:
    rows, heads = [small(t, 5, 8) for _ in range(3)], {"num_heads": 2}
    return [
        Call([*rows, None, OFFSETS, STARTS], heads),
        Call([*rows, small(t, 24), OFFSETS, STARTS, small(t, 1, 2, 4, 4)], heads),
        Call([small(t, 5, 2, 3, 4), None, None, None, OFFSETS, STARTS], heads),
    ]


def paged_attention(t: Maker) -> list[Call]:
    rows = [small(t, 5, n) for n in (32, 16, 16)]
    caches = [small(t, 3, 8, 2, 8) for _ in range(2)]
    places = [STARTS, int32s(3, 0), int32s(2, 0).reshape(2, 1)]
    heads = {"num_heads": 4, "kv_num_heads": 2}
    angles = [small(t, 8, 4) for _ in range(2)]
    return [
        Call([*rows, *caches, *places], heads, 3),
        Call([*rows, *caches, *places, *angles], {**heads, "do_rotary": 1}, 3),
    ]


def relative_position_bias(t: Maker) -> list[Call]:
    length = np.array([6], np.int64)
    options = {"max_distance": 18}
    inputs = [small(t, 16, 3), length, length]
    return [Call(inputs, options), Call(inputs, {**options, "is_bidirectional": 1})]


def gated_relative_position_bias(t: Maker) -> list[Call]:
    shapes = [(2, 5, 12), (12,), (1, 3, 5, 5), (4, 8), (8,), (1, 3, 1, 1)]
    return [Call([small(t, *shape) for shape in shapes], {"num_heads": 3})]


# --- Embeddings and positions ---


def rotary_embedding(t: Maker) -> list[Call]:
    caches, places = [small(t, 10, 4) for _ in range(2)], ints(0, 1, 2, 3, 9, 5).reshape(2, 3)
    calls = [
        Call([t(2, 3, 16), places, *caches], {"num_heads": 2, "interleaved": flag})
        for flag in (0, 1)
    ]
    return [*calls, Call([t(2, 2, 3, 8), ints(4), *caches])]


def multimodal_rotary_embedding(t: Maker) -> list[Call]:
    inputs = [t(2, 5, 16), np.arange(30).reshape(3, 2, 5) % 10, small(t, 10, 4), small(t, 10, 4)]
    sections = {"mrope_section": [2, 1, 1], "num_heads": 2}
    return [
        Call(inputs, {**sections, "mrope_layout": layout, "interleaved": flag})
        for layout in (0, 1)
        for flag in (0, 1)
    ]


def embed(t: Maker) -> list[Call]:
    ids, kinds = int32s(0, 3, 1).reshape(1, 3), int32s(0, 1, 1).reshape(1, 3)
    calls = []
    for u in t.others("T"):
        tables, rows = [u(5, 8), u(4, 8), u(2, 8)], [u(8), u(8)]
        calls += [
            Call([ids, kinds, *tables, *rows], {}, 2),
            Call([ids, None, *tables[:2], None, *rows], {}, 2),
            Call([ids, kinds, *tables, *rows, int32s(1, 1, 0).reshape(1, 3)], {}, 2),
        ]
    return calls


def quantized_embed(t: Maker) -> list[Call]:
    ids, kinds = int32s(0, 3, 1).reshape(1, 3), int32s(0, 1, 1).reshape(1, 3)
    scales = [scale(value) for value in (0.02, 0.03, 0.01, 0.05, 0.04)]
    calls = []
    for u in t.others("T2"):
        tables = [quantized(u, *shape) for shape in ((5, 8), (4, 8), (2, 8), (8,), (8,))]
        zeros = [u.scalar(i) for i in range(5)]
        calls += [Call([ids, kinds, *tables, None, *scales, *zeros], {}, 2)]
    return calls


def word_conv_embedding(t: Maker) -> list[Call]:
    words = t.of(1, 2, 3, 0, 4, 5, 0, 0).reshape(2, 4)
    return [
        Call([words, small(u, 5, 1, 2, 4), small(u, 5), small(u, 9, 4)]) for u in t.others("T1")
    ]


# --- Recurrences ---


def attention_lstm(t: Maker) -> list[Call]:
    steps, batch, size, hidden, memory, depth, width = 4, 2, 3, 5, 6, 4, 7
    calls = []
    for directions, name in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        inputs = [
            small(t, steps, batch, size),
            small(t, directions, 4 * hidden, size + 8),
            small(t, directions, 4 * hidden, hidden),
            small(t, directions, 8 * hidden),
            int32s(4, 2),
            small(t, directions, batch, hidden),
            small(t, directions, batch, hidden),
            small(t, directions, 3 * hidden),
            small(t, directions, hidden, width),
            small(t, directions, depth, width),
            small(t, directions, width),
            small(t, batch, memory, depth),
            int32s(6, 3),
            small(t, directions, depth + hidden, 8),
        ]
        calls.append(Call(inputs, {"hidden_size": hidden, "direction": name}, 3))
    return calls


def dynamic_quantize_lstm(t: Maker) -> list[Call]:
    calls, constants = [], (1, 2, 9, 11)
    for u in t.others("T2"):
        weights = [quantized(u, 1, 3, 20), quantized(u, 1, 5, 20), small(t, 1, 40)]
        for scales, zeros in ((t.of(0.01), u.of(3)), (t(1, 20, low=0.01, high=0.02), u(1, 20) * 0)):
            inputs = [small(t, 4, 2, 3), *weights, None, None, None, None]
            inputs += [scales, zeros, scales, zeros]
            calls.append(Call(inputs, {"hidden_size": 5}, 3, constants))
    return calls


def linear_attention(t: Maker) -> list[Call]:
    calls = []
    for s in t.others("S"):
        rows = [small(t, 2, 3, 8), small(t, 2, 3, 8) / t.scalar(2), small(t, 2, 3, 6)]
        state, heads = small(s, 2, 2, 4, 3), {"q_num_heads": 2, "kv_num_heads": 2}
        decay, beta = t(2, 3, 2, low=-1, high=0), t(2, 3, 2, low=0, high=1)
        for rule, more in (
            ("linear", []),
            ("gated", [decay]),
            ("delta", [None, beta]),
            ("gated_delta", [decay, beta]),
        ):
            calls.append(Call([*rows, state, *more], {**heads, "update_rule": rule}, 2))
        calls.append(Call([*rows, None, decay, beta], heads, 2))
    return calls


def linear_attention_gate(t: Maker) -> list[Call]:
    a, b = small(t, 2, 5, 6), small(t, 2, 5, 6)
    return [
        call
        for f in t.others("TF")
        for rows in [[a, small(f, 6), f(6, low=-1, high=0)]]
        for call in (Call(rows), Call([*rows, b], {}, 2))
    ]


def causal_conv(t: Maker) -> list[Call]:
    x, w, b = t(1, 2, 5), t(2, 1, 3), t(2)
    return [
        Call([x, w, b, t(1, 2, 2)], {"activation": "silu"}, 2),
        Call([x, w], {}, 2),
        Call([x, w, b, t(1, 2, 4)], {"dilation": 2}, 2),
        Call([t(1, 5, 2), w, b, t(1, 2, 2)], {"channels_last": 1}, 2),
        Call([t(2, 5, 3, 2), t(6, 1, 3), t(6), t(2, 2, 3, 2)], {"channels_last": 1}, 2),
        Call([t(1, 2, 4, 5), t(2, 1, 3, 3), t(2), t(1, 2, 4, 2)], {"ndim": 2}, 2),
        Call([t(1, 2, 2, 3, 4), t(2, 1, 1, 3, 2)], {"ndim": 3}, 2),
    ]


# --- Gates and streams ---


def gated_rms_norm(t: Maker) -> list[Call]:
    inputs = [t(2, 3, 8), t(4), t(2, 3, 8)]
    return [Call(inputs, {"activation": name}) for name in ("silu", "sigmoid")]


def engram_gate(t: Maker) -> list[Call]:
    inputs = [t(2, 3, 4, 5), t(2, 3, 4, 5), t(2, 3, 5), t(4, 5), t(4, 5)]
    return [Call(inputs), Call([*inputs, t(4, 5)], {}, 2)]


def branchwise_rms_norm(t: Maker) -> list[Call]:
    flat = {"num_branches": 3}
    calls = [Call([t(2, 3, 4)]), Call([t(2, 12)], flat)]
    for m in t.others("M"):
        calls += [Call([t(2, 3, 4), m(3, 4)]), Call([t(2, 12), m(12)], flat)]
    return calls


def pre_mix(t: Maker) -> list[Call]:
    return [
        call
        for m in t.others("M")
        for call in (
            Call([t(2, 3, 4), m(2, 3)], {"reduction_scale": 0.5}),
            Call([t(2, 12), m(2, 3, 4)], {"num_branches": 3}),
        )
    ]


def post_mix(t: Maker) -> list[Call]:
    return [
        call
        for m in t.others("M")
        for call in (
            Call([t(2, 3, 4), t(2, 4), m(2, 3)]),
            Call([t(2, 12), t(2, 4), m(2, 3, 1), m(2, 3, 3)], {"num_branches": 3}),
        )
    ]


def scaled_silu(t: Maker) -> list[Call]:
    scaled = [Call([t(2, 3), m.scalar(0.5)], {"alpha": 0.8}) for m in t.others("M")]
    return [Call([t(2, 3)]), *scaled]


# --- Experts ---


def experts(t: Maker) -> list[Call]:
    matrices = [small(t, 3, 5, 4), small(t, 3, 5), small(t, 3, 4, 5), small(t, 3, 4)]
    return [
        Call(
            [t(6, 4), t(6, 3), *matrices],
            {"k": 2, "activation_type": name, "normalize_routing_weights": 1},
        )
        for name in ("relu", "silu", "gelu")
    ]


def quantized_experts(t: Maker) -> list[Call]:
    calls = []
    for bits in (4, 8):
        random = np.random.default_rng(bits)
        first, second = (
            random.integers(0, 256, (3, rows, columns * bits // 8)).astype(np.uint8)
            for rows, columns in ((16, 8), (8, 16))
        )
        scales = [t(3, n, low=0.01, high=0.02) for n in (16, 8)]
        inputs = [small(t, 6, 8), small(t, 6, 3), first, scales[0], None, second, scales[1]]
        options = {"k": 2, "expert_weight_bits": bits, "activation_type": "silu"}
        calls.append(Call(inputs, options))
    return calls


RECIPES = {
    "Attention": attention,
    "AttnLSTM": attention_lstm,
    "BranchwiseRMSNorm": branchwise_rms_norm,
    "CausalConvWithState": causal_conv,
    "DecoderMaskedMultiHeadAttention": decoder_masked_attention,
    "DynamicQuantizeLSTM": dynamic_quantize_lstm,
    "EmbedLayerNormalization": embed,
    "EngramGate": engram_gate,
    "GatedAdd": lambda t: [Call([t(2, 3, 4), t(2, 3, 4), t(2, 3, 1)])],
    "GatedRMSNorm": gated_rms_norm,
    "GemmaRotaryEmbedding": lambda t: [
        Call([t(2, 3, 8), *(small(h, 2, 2, 3, 8) for _ in range(4))], {}, 2) for h in t.others("T")
    ],
    "GatedRelativePositionBias": gated_relative_position_bias,
    "GroupQueryAttention": group_query_attention,
    "HyperConnectionPostMix": post_mix,
    "HyperConnectionPreMix": pre_mix,
    "LinearAttention": linear_attention,
    "LinearAttentionGate": linear_attention_gate,
    "LongformerAttention": longformer_attention,
    "MRotaryEmbedding": multimodal_rotary_embedding,
    "MoE": experts,
    "MultiHeadAttention": multi_head_attention,
    "PackedAttention": packed_attention,
    "PackedMultiHeadAttention": packed_multi_head_attention,
    "PagedAttention": paged_attention,
    "QAttention": q_attention,
    "QEmbedLayerNormalization": quantized_embed,
    "QMoE": quantized_experts,
    "RelativePositionBias": relative_position_bias,
    "RotaryEmbedding": rotary_embedding,
    "ScaledSiLU": scaled_silu,
    "SparseAttention": sparse_attention,
    "WordConvEmbedding": word_conv_embedding,
}
