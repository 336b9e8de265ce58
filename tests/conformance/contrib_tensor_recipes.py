"""Recipes of com.microsoft's operators on tensors, tokens and images, and of quantized ones."""

from __future__ import annotations

import numpy as np
from contrib_layer_recipes import int32s, scale, small
from recipes import Call, Maker, ints, quantized

# --- Products ---


def activated_product(t: Maker) -> list[Call]:
    names = {"Relu": {}, "Tanh": {}, "LeakyRelu": {"activation_alpha": 0.25}}
    return [
        Call([t(2, 3), t(3, 4)], {"activation": name, "alpha": 0.5, **more})
        for name, more in names.items()
    ]


def fused_conv(t: Maker) -> list[Call]:
    attributes = {"activation": "Relu", "kernel_shape": [2, 2]}
    inputs = [t(1, 2, 4, 4), t(3, 2, 2, 2), t(3)]
    return [
        Call(inputs, attributes),
        Call([*inputs, t(1, 3, 3, 3)], {"activation": "LeakyRelu", "activation_params": [0.25]}),
    ]


def nhwc_conv(t: Maker) -> list[Call]:
    return [
        Call([t(1, 4, 4, 2), t(3, 2, 2, 2), t(3)]),
        Call([t(1, 4, 4, 2), t(2, 1, 3, 3)], {"group": 2}),
    ]


def nhwc_fused_conv(t: Maker) -> list[Call]:
    inputs = [t(1, 4, 4, 2), t(3, 2, 2, 2), t(3), t(1, 3, 3, 3)]
    return [Call(inputs, {"activation": "Relu"})]


def conv_transpose(t: Maker) -> list[Call]:
    inputs = [t(1, 2, 3, 4), t(2, 3, 3, 3), ints(1, 0, 1, 2)]
    return [Call(inputs, {"strides": [2, 2]}), Call([*inputs, t(3)], {"strides": [2, 2]})]


def gemm_float8(t: Maker) -> list[Call]:
    a, scales = small(t, 2, 4), [scale(value) for value in (0.5, 2, 1.5)]
    return [Call([a, small(u, 4, 3)], {"dtype": 1}) for u in t.others("TB")] + [
        Call([a, small(t, 3, 4), None, *scales], {"transB": 1, "dtype": 1})
    ]


def products_by_few_bits(t: Maker) -> list[Call]:
    """Of MatMulNBitsQkv and MatMulNBitsMlp."""
    sizes = {"K": 32, "block_size": 32, "bits": 4}
    packed = np.random.default_rng(7).integers(0, 256, (4, 1, 16)).astype(np.uint8)
    weights = [packed, t(4, 1, low=0.1, high=1)]
    x, skip, scales = small(t, 2, 32), small(t, 2, 32), small(t, 32)
    if t.schema.name == "MatMulNBitsMlp":
        sizes |= {"N": 4, "activation": "silu"}
        return [
            Call([x, None, None, *weights, None, *weights], sizes),
            Call([x, skip, scales, *weights, t(4), *weights, t(4)], sizes, 2),
        ]
    sizes |= {"Nq": 4, "Nkv": 4}
    return [
        Call([x, None, scales, *weights, None, *weights, None, *weights], sizes, 3),
        Call([x, skip, scales, *[*weights, t(4)] * 3], sizes, 4),
    ]


def matmul_nbits(t: Maker) -> list[Call]:
    random, calls = np.random.default_rng(7), []
    for bits in (2, 4, 8):
        sizes = {"K": 32, "N": 4, "bits": bits, "block_size": 16}
        packed = random.integers(0, 256, (4, 2, 2 * bits)).astype(np.uint8)
        scales = t(4, 2, low=0.1, high=1)
        zeros = random.integers(0, 256, (4, bits * 2 // 8 or 1)).astype(np.uint8)
        x = small(t, 2, 32)
        calls += [Call([x, packed, scales], sizes), Call([x, packed, scales, zeros], sizes)]
    return calls


def matmul_bnb4(t: Maker) -> list[Call]:
    packed = np.random.default_rng(7).integers(0, 256, 64).astype(np.uint8)
    sizes = {"K": 32, "N": 4, "block_size": 16}
    inputs = [small(t, 2, 32), packed, t(8, low=0.1, high=1)]
    return [Call(inputs, {**sizes, "quant_type": kind}) for kind in (0, 1)]


def matmul_fpq4(t: Maker) -> list[Call]:
    blob = np.random.default_rng(1).integers(0, 256, (4, 2, 20)).astype(np.uint8)
    blob[:, :, :4] = small(t, 4, 2).view(np.uint8).reshape(4, 2, 4)
    inputs = [small(t, 2, 40), blob.reshape(-1), ints(40, 4)]
    return [Call(inputs, {"blk_quant_type": 0}, constants=(1, 2))]


# --- Quantized ---


def q_linear_conv(t: Maker) -> list[Call]:
    calls = []
    for w in t.others("T2"):
        for y in t.others("T3"):
            inputs = [quantized(t, 1, 2, 5, 4), scale(0.05), t.scalar(3)]
            inputs += [quantized(w, 3, 2, 3, 2), scale(0.02), w.scalar(2), scale(0.7), y.scalar(5)]
            calls += [Call(inputs), Call([*inputs, int32s(100, -50, 7)], {"pads": [1, 0, 1, 1]})]
            last = [np.moveaxis(inputs[0], 1, -1).copy(), *inputs[1:]]
            calls += [Call(last, {"channels_last": 1})]
    return calls


def q_linear_reduce_mean(t: Maker) -> list[Call]:
    inputs = [quantized(t, 2, 3, 4), scale(0.05), t.scalar(3), scale(0.04), t.scalar(1)]
    return [Call(inputs, {"axes": [1], "keepdims": flag}) for flag in (0, 1)]


def mul_integer(t: Maker) -> list[Call]:
    a, b = quantized(t, 2, 3), quantized(t, 3)
    return [Call([a, None, b]), Call([a, t.scalar(3), b, t.scalar(2)])]


def gather_block_quantized(t: Maker) -> list[Call]:
    calls, options = [], {"gather_axis": 0, "quantize_axis": 1, "block_size": 16}
    data, zeros = t(4, 32, low=-8, high=16), t(4, 2, low=0, high=4)
    for u in t.others("T2"):
        for i in t.others("Tind"):
            rest = [i.of(3, 0, 1, -1).reshape(2, 2), u(4, 2, low=0.1, high=1)]
            if t.name == "uint8":
                for bits in (2, 4, 8):
                    packed = t(4, 4 * bits, low=0, high=256)
                    call = Call([packed, *rest], {**options, "bits": bits}, constants=(0, 2))
                    calls.append(call)
                continue
            calls.append(Call([data, *rest], options, constants=(0, 2)))
            if not t.is_float:
                calls.append(Call([data, *rest, zeros], options, constants=(0, 2, 3)))
    return calls


# cuBLASLt's order of rows.
ROWS = 1


def ordered_matmul(t: Maker) -> list[Call]:
    order = {"order_A": ROWS, "order_B": 0, "order_Y": ROWS}
    inputs = [t(1, 32, 32, low=-20, high=20), scale(0.05), t(32, 32, low=-20, high=20)]
    return [Call([*inputs, scale(0.05), scale(0.5)], order)]


def ordered_attention(t: Maker) -> list[Call]:
    weights, biases = [t(8, 8) for _ in range(3)], [np.full(8, 0.1, np.float32)] * 3
    inputs = [t(2, 4, 8), scale(0.1), *[scale(0.1)] * 3, *weights, *[scale(0.1)] * 3, *biases]
    inputs += [scale(0.1), scale(0.1), scale(0.05)]
    order = {"order_input": ROWS, "order_weight": ROWS, "order_output": ROWS}
    return [Call(inputs, {"num_heads": 2, **order})]


def ordered_longformer_attention(t: Maker) -> list[Call]:
    weights, bias = t(8, 24), np.full(24, 0.1, np.float32)
    mask = np.zeros((1, 8), np.float16)
    mask[0, -1] = -10000
    inputs = [t(1, 8, 8), scale(0.1), weights, scale(0.1), bias, scale(0.1), scale(0.1), mask]
    inputs += [
        weights,
        scale(0.1),
        bias,
        scale(0.1),
        int32s(1, *[0] * 7).reshape(1, 8),
        scale(0.05),
    ]
    order = {"order_input": ROWS, "order_weight": ROWS, "order_output": ROWS}
    return [Call(inputs, {"num_heads": 2, "window": 2, "order_global_weight": ROWS, **order})]


def ordered_layer_norm(t: Maker) -> list[Call]:
    order = {"order_X": ROWS, "order_Y": ROWS}
    return [Call([t(2, 3, 8), scale(0.1), f(8), f(8), scale(0.05)], order) for f in t.others("F")]


def quantize_with_order(t: Maker) -> list[Call]:
    order = {"order_input": ROWS, "order_output": 0}
    return [Call([small(t, 1, 4, 8), scale(0.02)], order)]


def dequantize_with_order(t: Maker) -> list[Call]:
    order = {"order_input": ROWS, "order_output": 0}
    return [Call([t(1, 4, 8), scale(0.02)], {**order, "to": to}) for to in (1, 10)]


# --- Tensors and images ---


def group_norm(t: Maker) -> list[Call]:
    calls = []
    for m in t.others("M"):
        inputs = [t(2, 3, 4, 8), m(8), m(8)]
        calls += [
            Call(inputs, {"groups": 2, "activation": 0}),
            Call([t(2, 8, 3, 4), *inputs[1:]], {"groups": 4, "activation": 1, "channels_last": 0}),
        ]
    return calls


def skip_group_norm(t: Maker) -> list[Call]:
    calls, options = [], {"groups": 2, "activation": 1}
    for m in t.others("M"):
        inputs = [t(2, 3, 4, 8), m(8), m(8)]
        calls += [
            Call([*inputs, t(2, 3, 4, 8)], options),
            Call([*inputs, t(2, 8), t(8)], options, 2),
        ]
    return calls


def grid_sample(t: Maker) -> list[Call]:
    if t.is_string or t.dtype.kind == "c":
        return []  # the grid has the same type, which says no position
    x, grid = t(1, 2, 4, 5), small(t, 1, 3, 2, 2)
    return [
        Call([x, grid], {"mode": mode, "padding_mode": padding, "align_corners": flag})
        for mode in ("bilinear", "nearest", "bicubic")
        for padding, flag in (("zeros", 0), ("border", 1), ("reflection", 0))
    ]


def fourier(t: Maker) -> list[Call]:
    shapes = [(2, 5, 2), (3, 2)] if t.schema.name == "Irfft" else [(2, 8), (5,)]
    attributes = {"onesided": 1, "normalized": 0, "signal_ndim": 1}
    calls = [Call([t(*shape)], attributes) for shape in shapes]
    return [*calls, Call([t(3, *shapes[0])], {**attributes, "signal_ndim": 2})]


def max_pool_with_mask(t: Maker) -> list[Call]:
    mask = (np.arange(20).reshape(1, 1, 4, 5) % 3 > 0).astype(np.int32)
    return [Call([t(1, 1, 4, 5), mask], {"kernel_shape": [2, 2], "pads": [1, 0, 1, 0]})]


def reduce_sum_integer(t: Maker) -> list[Call]:
    return [Call([t(2, 3, 4)], {"axes": [1], "keepdims": flag}) for flag in (0, 1)]


def torch_embedding(t: Maker) -> list[Call]:
    places = ints(0, 3, 1, 1).reshape(2, 2)
    return [Call([t(5, 3), places]), Call([t(5, 3), places, np.array(1), np.array(False)])]


# --- Tokens ---


def ngram_repeat_block(t: Maker) -> list[Call]:
    ids = t.of(1, 2, 3, 1, 2, 3, 4, 4, 4, 4, 4, 4).reshape(2, 6)
    return [
        Call([ids, small(f, 2, 6)], {"ngram_size": size}) for f in t.others("T") for size in (2, 3)
    ]


NGRAMS = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 4}


def ngram_hash(t: Maker) -> list[Call]:
    ids = [t.of(3, 5, 7, 2, 5, 1).reshape(2, 3), t.of(3, 5, 7), t.of(11, 13, 17, 19)]
    return [
        Call(ids, NGRAMS, 2),
        Call([*ids, t.of(8, 9, 1, 1).reshape(2, 2), t.of(1, 2, 3, 4), t.scalar(5)], NGRAMS, 2),
    ]


def varlen_ngram_hash(t: Maker) -> list[Call]:
    ids = [t.of(3, 5, 7, 2, 5), t.of(3, 5, 7), t.of(11, 13, 17, 19), int32s(0, 3, 5)]
    return [
        Call(ids, NGRAMS, 2),
        Call([*ids, t.of(8, 9, 1, 1).reshape(2, 2), t.of(1, 2, 3, 4), t.scalar(5)], NGRAMS, 2),
    ]


def bifurcation(t: Maker) -> list[Call]:
    source, current = t.of(1, 2, 3, 4, 5, 6, 2, 3, 9), t.of(1, 2)
    predicted = t.of(3, 4, 7, 8, 9, 1, 2, 3)
    return [
        Call([source, current, np.array(2), predicted], {}, 2),
        Call([source, current, np.array(0)], {}, 2),
    ]


def tokenizer(t: Maker) -> list[Call]:
    marks = {"mark": 1, "mincharnum": 1, "pad_value": "#"}
    return [
        Call([np.array(["a bc", "d"], object)], {**marks, "separators": [" "]}),
        Call([np.array(["a bc", "d"], object)], {**marks, "tokenexp": "[a-z]"}),
    ]


RECIPES = {
    "BiasAdd": lambda t: [Call([t(2, 3, 4), t(4), t(2, 3, 4)])],
    "BiasDropout": lambda t: [
        Call([t(2, 3, 4), t(4)], {}, 2),
        Call([t(2, 3, 4), t(2, 3, 4), t(2, 3, 4)]),
    ],
    "BiasSoftmax": lambda t: [
        Call([t(2, 3, 4), t(2, 1, 4)], {"axis": 2, "is_inner_broadcast": 1}),
        Call([t(2, 3, 4), t(3, 4)], {"axis": 1, "is_inner_broadcast": 0}),
    ],
    "BiasSplitGelu": lambda t: [Call([t(2, 3, 8), t(8)])],
    "BifurcationDetector": bifurcation,
    "ConvTransposeWithDynamicPads": conv_transpose,
    "DequantizeWithOrder": dequantize_with_order,
    "DynamicTimeWarping": lambda t: [Call([t(3, 5)]), Call([t(1, 4, 4)])],
    "FusedConv": fused_conv,
    "FusedMatMulActivation": activated_product,
    "GatherBlockQuantized": gather_block_quantized,
    "GemmFastGelu": lambda t: [Call([t(2, 3), t(3, 4)]), Call([t(2, 3), t(3, 4), t(4)])],
    "GemmFloat8": gemm_float8,
    "GridSample": grid_sample,
    "IsAllFinite": lambda t: [Call([t(2, 3)]), Call([t(2, 3), t(4)], {"isnan_only": 1})],
    "GroupNorm": group_norm,
    "Irfft": fourier,
    "MatMulBnb4": matmul_bnb4,
    "MatMulFpQ4": matmul_fpq4,
    "MatMulNBits": matmul_nbits,
    "MaxpoolWithMask": max_pool_with_mask,
    "MulInteger": mul_integer,
    "NGramHashMapping": ngram_hash,
    "NGramRepeatBlock": ngram_repeat_block,
    **dict.fromkeys(("MatMulNBitsMlp", "MatMulNBitsQkv"), products_by_few_bits),
    "NhwcConv": nhwc_conv,
    "NhwcFusedConv": nhwc_fused_conv,
    "QLinearConv": q_linear_conv,
    "QLinearReduceMean": q_linear_reduce_mean,
    "QOrderedAttention": ordered_attention,
    "QOrderedGelu": lambda t: [Call([t(2, 8), scale(0.1), scale(0.05)])],
    "QOrderedLayerNormalization": ordered_layer_norm,
    "QOrderedLongformerAttention": ordered_longformer_attention,
    "QOrderedMatMul": ordered_matmul,
    "QuantizeWithOrder": quantize_with_order,
    "ReduceSumInteger": reduce_sum_integer,
    "RemovePadding": lambda t: [Call([t(2, 4, 3), int32s(2, 4)], {}, 4)],
    "RestorePadding": lambda t: [Call([t(5, 3), int32s(0, 1, 4, 5, 6, 2, 3, 7).reshape(2, 4)])],
    "Rfft": fourier,
    "SkipGroupNorm": skip_group_norm,
    "Tokenizer": tokenizer,
    "TorchEmbedding": torch_embedding,
    "VarlenNGramHashMapping": varlen_ngram_hash,
}
