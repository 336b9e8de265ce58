"""Encoders and decoders of text, and the vision transformer."""

import math
from dataclasses import dataclass

import numpy as np
import onnx

from .graph import BOOL, FLOAT, INT32, INT64, Dim, GraphBuilder

LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Encoder:
    """Sizes of a BERT-like encoder."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int = 30522
    positions: int = 512
    epsilon: float = 1e-12


BERT_BASE = Encoder(layers=12, width=768, heads=12, inner=3072)
MINILM_L6 = Encoder(layers=6, width=384, heads=12, inner=1536)


def bert(name: str, sizes: Encoder, opset: int, pooler: bool) -> onnx.ModelProto:
    """Inputs input_ids, attention_mask, token_type_ids [batch, sequence]; outputs
    last_hidden_state and, with a pooler, pooler_output."""
    g = GraphBuilder(name, opset)
    ids, mask, types = (
        g.input(value, ["batch", "sequence"], INT64)
        for value in ("input_ids", "attention_mask", "token_type_ids")
    )
    bias = _attention_bias(g, mask)
    x = _bert_embeddings(g, sizes, ids, types)
    for _ in range(sizes.layers):
        attention = _bert_attention(g, sizes, x, bias)
        x = g.layer_norm(g.op("Add", attention, x), sizes.width, sizes.epsilon)
        hidden = g.gelu(g.linear(x, sizes.width, sizes.inner))
        output = g.linear(hidden, sizes.inner, sizes.width)
        x = g.layer_norm(g.op("Add", output, x), sizes.width, sizes.epsilon)
    g.output("last_hidden_state", x, ["batch", "sequence", sizes.width])
    if pooler:
        first = g.op("Gather", x, g.constant(0, np.int64), axis=1)
        g.output(
            "pooler_output",
            g.op("Tanh", g.gemm(first, sizes.width, sizes.width)),
            ["batch", sizes.width],
        )
    return g.model()


def _attention_bias(g: GraphBuilder, mask: str) -> str:
    """0 where the mask is 1, the lowest float where it is 0: [batch, 1, 1, sequence]."""
    wide = g.op("Unsqueeze", g.op("Unsqueeze", mask, g.ints(1)), g.ints(2))
    absent = g.op("Sub", g.constant(1), g.op("Cast", wide, to=FLOAT))
    return g.op("Mul", absent, g.constant(LOWEST))


def _bert_embeddings(g: GraphBuilder, sizes: Encoder, ids: str, types: str) -> str:
    positions = g.initializer(np.arange(sizes.positions, dtype=np.int64)[None])
    end = g.op("Unsqueeze", g.size(ids, 1), g.ints(0))
    used = g.op("Slice", positions, g.ints(0), end, g.ints(1), g.ints(1))
    words = g.op("Gather", g.normal(sizes.vocabulary, sizes.width, std=0.02), ids)
    kinds = g.op("Gather", g.normal(2, sizes.width, std=0.02), types)
    places = g.op("Gather", g.normal(sizes.positions, sizes.width, std=0.02), used)
    total = g.op("Add", g.op("Add", words, kinds), places)
    return g.layer_norm(total, sizes.width, sizes.epsilon)


def _bert_attention(g: GraphBuilder, sizes: Encoder, x: str, bias: str) -> str:
    head = sizes.width // sizes.heads

    def heads_of(value: str, *perm: int) -> str:
        split = g.reshape(value, g.size(value, 0), g.size(value, 1), sizes.heads, head)
        return g.transpose(split, *perm)

    query = g.linear(x, sizes.width, sizes.width)
    key = heads_of(g.linear(x, sizes.width, sizes.width), 0, 2, 3, 1)
    value = heads_of(g.linear(x, sizes.width, sizes.width), 0, 2, 1, 3)
    scores = g.op("MatMul", heads_of(query, 0, 2, 1, 3), key)
    scaled = g.op("Div", scores, g.constant(math.sqrt(head)))
    weights = g.op("Softmax", g.op("Add", scaled, bias), axis=-1)
    context = g.transpose(g.op("MatMul", weights, value), 0, 2, 1, 3)
    joined = g.reshape(context, g.size(context, 0), g.size(context, 1), sizes.width)
    return g.linear(joined, sizes.width, sizes.width)


GPT2_WIDTH, GPT2_HEADS, GPT2_LAYERS, GPT2_POSITIONS, GPT2_VOCABULARY = 768, 12, 12, 1024, 50257
GPT2_HEAD = GPT2_WIDTH // GPT2_HEADS


def gpt2(name: str) -> onnx.ModelProto:
    """GPT-2 of 124 M parameters with a cache of keys and values: sequence 1 and a past is a
    decoding step, a past of 0 is the prefill."""
    g = GraphBuilder(name, 13)
    ids = g.input("input_ids", ["batch", "sequence"], INT64)
    positions = g.input("position_ids", ["batch", "sequence"], INT64)
    cache_dims: list[Dim] = ["batch", GPT2_HEADS, "past", GPT2_HEAD]
    pasts = [
        [g.input(f"past_key_values.{i}.{kind}", cache_dims) for kind in ("key", "value")]
        for i in range(GPT2_LAYERS)
    ]
    words = g.op("Gather", g.normal(GPT2_VOCABULARY, GPT2_WIDTH, std=0.02), ids)
    places = g.op("Gather", g.normal(GPT2_POSITIONS, GPT2_WIDTH, std=0.01), positions)
    x = g.op("Add", words, places)
    triangle = g.initializer(np.tril(np.ones((1, 1, GPT2_POSITIONS, GPT2_POSITIONS), bool)))
    presents = []
    for past in pasts:
        attention, present = _gpt2_attention(g, g.layer_norm(x, GPT2_WIDTH, 1e-5), past, triangle)
        x = g.op("Add", attention, x)
        presents.append(present)
        inner = _conv1d(g, g.layer_norm(x, GPT2_WIDTH, 1e-5), GPT2_WIDTH, 4 * GPT2_WIDTH)
        x = g.op("Add", x, _conv1d(g, _gelu_tanh(g, inner), 4 * GPT2_WIDTH, GPT2_WIDTH, gain=0.3))
    # The exporter writes the tied output matrix a second time, transposed.
    head = g.normal(GPT2_WIDTH, GPT2_VOCABULARY, std=0.02)
    logits = g.op("MatMul", g.layer_norm(x, GPT2_WIDTH, 1e-5), head)
    g.output("logits", logits, ["batch", "sequence", GPT2_VOCABULARY])
    for i, present in enumerate(presents):
        for kind, value in zip(("key", "value"), present, strict=True):
            g.output(f"present.{i}.{kind}", value, ["batch", GPT2_HEADS, "total", GPT2_HEAD])
    return g.model()


def _conv1d(g: GraphBuilder, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
    """The 1-by-1 convolution of GPT-2: a Gemm between two reshapes."""
    batch, sequence = g.size(x, 0), g.size(x, 1)
    weight = g.normal(inputs, outputs, std=gain / math.sqrt(inputs))
    product = g.op("Gemm", g.reshape(x, -1, inputs), weight, g.bias(outputs))
    return g.reshape(product, batch, sequence, outputs)


def _gelu_tanh(g: GraphBuilder, x: str) -> str:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""
    cube = g.op("Mul", g.op("Pow", x, g.constant(3)), g.constant(0.044715))
    inner = g.op("Mul", g.op("Add", x, cube), g.constant(math.sqrt(2 / math.pi)))
    gate = g.op("Add", g.op("Tanh", inner), g.constant(1))
    return g.op("Mul", g.op("Mul", x, g.constant(0.5)), gate)


def _gpt2_attention(
    g: GraphBuilder, x: str, past: list[str], triangle: str
) -> tuple[str, tuple[str, str]]:
    """The attention's output, and the keys and values that this step's cache holds."""

    def heads_of(value: str) -> str:
        split = g.reshape(value, g.size(value, 0), g.size(value, 1), GPT2_HEADS, GPT2_HEAD)
        return g.transpose(split, 0, 2, 1, 3)

    packed = _conv1d(g, x, GPT2_WIDTH, 3 * GPT2_WIDTH)
    query, key, value = map(heads_of, g.ops("Split", 3, packed, g.ints(*[GPT2_WIDTH] * 3), axis=2))
    key = g.op("Concat", past[0], key, axis=-2)
    value = g.op("Concat", past[1], value, axis=-2)
    scores = g.op("MatMul", query, g.transpose(key, 0, 1, 3, 2))
    scaled = g.op("Div", scores, g.constant(math.sqrt(GPT2_HEAD)))
    masked = g.op("Where", _causal(g, query, key, triangle), scaled, g.constant(LOWEST))
    context = g.op("MatMul", g.op("Softmax", masked, axis=-1), value)
    context = g.transpose(context, 0, 2, 1, 3)
    joined = g.reshape(context, g.size(context, 0), g.size(context, 1), GPT2_WIDTH)
    return _conv1d(g, joined, GPT2_WIDTH, GPT2_WIDTH, gain=0.3), (key, value)


def _causal(g: GraphBuilder, query: str, key: str, triangle: str) -> str:
    """triangle[:, :, total - sequence : total, :total]."""
    total = g.size(key, 2)
    start = g.op("Unsqueeze", g.op("Sub", total, g.size(query, 2)), g.ints(0))
    end = g.op("Unsqueeze", total, g.ints(0))
    rows = g.op("Slice", triangle, start, end, g.ints(2), g.ints(1))
    return g.op("Cast", g.op("Slice", rows, g.ints(0), end, g.ints(3), g.ints(1)), to=BOOL)


VIT_WIDTH, VIT_HEADS, VIT_LAYERS, VIT_TOKENS = 768, 12, 12, 197
VIT_HEAD = VIT_WIDTH // VIT_HEADS


def vit_b_16(name: str) -> onnx.ModelProto:
    """torchvision's ViT-B/16 on 224 x 224 pictures."""
    g = GraphBuilder(name, 17)
    picture = g.input("input", ["batch", 3, 224, 224])
    batch = g.size(picture, 0)
    patches = g.conv(picture, 3, VIT_WIDTH, kernel=16, stride=16, padding=0)
    x = g.transpose(g.reshape(patches, batch, VIT_WIDTH, VIT_TOKENS - 1), 0, 2, 1)
    class_token = g.op("Expand", g.normal(1, 1, VIT_WIDTH, std=0.02), g.vector(batch, 1, VIT_WIDTH))
    x = g.op("Concat", class_token, x, axis=1)
    x = g.op("Add", x, g.normal(1, VIT_TOKENS, VIT_WIDTH, std=0.02))
    for _ in range(VIT_LAYERS):
        attention = _vit_attention(g, g.layer_norm(x, VIT_WIDTH, 1e-6), batch)
        x = g.op("Add", attention, x)
        inner = g.gelu(g.linear(g.layer_norm(x, VIT_WIDTH, 1e-6), VIT_WIDTH, 4 * VIT_WIDTH))
        x = g.op("Add", x, g.linear(inner, 4 * VIT_WIDTH, VIT_WIDTH, gain=0.3))
    x = g.layer_norm(x, VIT_WIDTH, 1e-6)
    first = g.op("Gather", x, g.constant(0, np.int64), axis=1)
    g.output("output", g.gemm(first, VIT_WIDTH, 1000), ["batch", 1000])
    return g.model()


def _vit_attention(g: GraphBuilder, x: str, batch: str) -> str:
    """nn.MultiheadAttention with packed weights: tokens first, the scale split over both sides."""
    packed = g.linear(g.transpose(x, 1, 0, 2), VIT_WIDTH, 3 * VIT_WIDTH)
    split = g.op("Unsqueeze", g.reshape(packed, VIT_TOKENS, batch, 3, VIT_WIDTH), g.ints(0))
    split = g.op("Squeeze", g.transpose(split, 3, 1, 2, 0, 4), g.ints(3))
    rows = g.op("Mul", batch, g.constant(VIT_HEADS, np.int64))

    def heads_of(index: int) -> str:
        part = g.op("Gather", split, g.constant(index, np.int64), axis=0)
        part = g.transpose(g.reshape(part, VIT_TOKENS, rows, VIT_HEAD), 1, 0, 2)
        return g.reshape(part, batch, VIT_HEADS, VIT_TOKENS, VIT_HEAD)

    query, key, value = heads_of(0), heads_of(1), heads_of(2)
    half_scale = g.constant(VIT_HEAD**-0.25)
    key = g.op("Mul", g.transpose(key, 0, 1, 3, 2), half_scale)
    scores = g.op("MatMul", g.op("Mul", query, half_scale), key)
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), value)
    flat = g.reshape(g.transpose(context, 2, 0, 1, 3), -1, VIT_WIDTH)
    output = g.gemm(flat, VIT_WIDTH, VIT_WIDTH)
    return g.transpose(g.reshape(output, VIT_TOKENS, batch, VIT_WIDTH), 1, 0, 2)


WHISPER_WIDTH, WHISPER_HEADS, WHISPER_LAYERS, WHISPER_FRAMES = 384, 6, 4, 1500
WHISPER_HEAD = WHISPER_WIDTH // WHISPER_HEADS


def whisper_tiny_encoder(name: str) -> onnx.ModelProto:
    """The encoder of Whisper tiny: 30 seconds as 3000 spectra of 80 bands."""
    g = GraphBuilder(name, 17)
    x = g.input("input", ["batch", 80, 2 * WHISPER_FRAMES])
    for inputs, stride in ((80, 1), (WHISPER_WIDTH, 2)):
        weight = g.normal(WHISPER_WIDTH, inputs, 3, std=math.sqrt(2 / (3 * inputs)))
        attributes = {"kernel_shape": [3], "pads": [1, 1], "strides": [stride]}
        x = g.gelu(g.op("Conv", x, weight, g.bias(WHISPER_WIDTH), **attributes))
    x = g.op("Add", g.transpose(x, 0, 2, 1), g.normal(WHISPER_FRAMES, WHISPER_WIDTH, std=0.02))
    for _ in range(WHISPER_LAYERS):
        x = g.op("Add", x, _whisper_attention(g, g.layer_norm(x, WHISPER_WIDTH, 1e-5)))
        hidden = g.linear(g.layer_norm(x, WHISPER_WIDTH, 1e-5), WHISPER_WIDTH, 4 * WHISPER_WIDTH)
        x = g.op("Add", x, g.linear(g.gelu(hidden), 4 * WHISPER_WIDTH, WHISPER_WIDTH, gain=0.3))
    output = g.layer_norm(x, WHISPER_WIDTH, 1e-5)
    g.output("output", output, ["batch", WHISPER_FRAMES, WHISPER_WIDTH])
    return g.model()


def _whisper_attention(g: GraphBuilder, x: str) -> str:
    def heads_of(value: str, *perm: int) -> str:
        return g.transpose(g.reshape(value, 0, -1, WHISPER_HEADS, WHISPER_HEAD), *perm)

    width = WHISPER_WIDTH
    query = g.op("Mul", g.linear(x, width, width), g.constant(WHISPER_HEAD**-0.5))
    keys = g.op("MatMul", x, g.normal(width, width, std=1 / math.sqrt(width)))
    values = heads_of(g.linear(x, width, width), 0, 2, 1, 3)
    scores = g.op("MatMul", heads_of(query, 0, 2, 1, 3), heads_of(keys, 0, 2, 3, 1))
    context = g.op("MatMul", g.op("Softmax", scores, axis=-1), values)
    return g.linear(g.reshape(g.transpose(context, 0, 2, 1, 3), 0, 0, width), width, width)


@dataclass(frozen=True)
class Llama:
    """Sizes of a decoder with grouped queries."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    head: int = 64
    positions: int = 2048


SMOLLM_135M = Llama(layers=30, width=576, heads=9, kv_heads=3, inner=1536, vocabulary=49152)


def llama_int4(name: str, sizes: Llama, accuracy_level: int) -> onnx.ModelProto:
    """A decoder with 4-bit weights, as onnxruntime-genai's builder writes it for CPUs."""
    g = GraphBuilder(name, 17)
    ids = g.input("input_ids", ["batch", "sequence"], INT64)
    mask = g.input("attention_mask", ["batch", "total"], INT64)
    dims: list[Dim] = ["batch", sizes.kv_heads, "past", sizes.head]
    pasts = [
        [g.input(f"past_key_values.{i}.{kind}", dims) for kind in ("key", "value")]
        for i in range(sizes.layers)
    ]
    lengths = g.op("Sub", g.op("ReduceSum", mask, g.ints(1), keepdims=0), g.ints(1))
    shared = [
        g.op("Cast", lengths, to=INT32),
        g.op("Cast", g.size(mask, 1), to=INT32),
        *_rotary_tables(g, sizes),
    ]

    def linear(value: str, inputs: int, outputs: int) -> str:
        return g.linear_int4(value, inputs, outputs, accuracy_level)

    x = g.op("Gather", g.normal(sizes.vocabulary, sizes.width, std=0.5), ids)
    queries, pairs = sizes.heads * sizes.head, sizes.kv_heads * sizes.head
    presents = []
    for past in pasts:
        h = _rms_norm(g, x, sizes.width)
        projected = [linear(h, sizes.width, width) for width in (queries, pairs, pairs)]
        attended, *present = g.ops(
            "GroupQueryAttention",
            3,
            *projected,
            *past,
            *shared,
            domain="com.microsoft",
            num_heads=sizes.heads,
            kv_num_heads=sizes.kv_heads,
            do_rotary=1,
        )
        presents.append(present)
        x = g.op("Add", x, linear(attended, queries, sizes.width))
        h = _rms_norm(g, x, sizes.width)
        gate = linear(h, sizes.width, sizes.inner)
        gate = g.op("Mul", gate, g.op("Sigmoid", gate))
        hidden = g.op("Mul", gate, linear(h, sizes.width, sizes.inner))
        x = g.op("Add", x, linear(hidden, sizes.inner, sizes.width))
    logits = linear(_rms_norm(g, x, sizes.width), sizes.width, sizes.vocabulary)
    g.output("logits", logits, ["batch", "sequence", sizes.vocabulary])
    for i, present in enumerate(presents):
        for kind, value in zip(("key", "value"), present, strict=True):
            dims = ["batch", sizes.kv_heads, "total", sizes.head]
            g.output(f"present.{i}.{kind}", value, dims)
    return g.model()


def _rotary_tables(g: GraphBuilder, sizes: Llama) -> list[str]:
    half = sizes.head // 2
    angles = np.outer(np.arange(sizes.positions), 10000.0 ** -(np.arange(half) / half))
    return [g.initializer(table.astype(np.float32)) for table in (np.cos(angles), np.sin(angles))]


def _rms_norm(g: GraphBuilder, x: str, width: int) -> str:
    mean = g.op("ReduceMean", g.op("Pow", x, g.constant(2)), axes=[-1])
    deviation = g.op("Sqrt", g.op("Add", mean, g.constant(1e-5)))
    return g.op("Mul", g.near_one(width), g.op("Div", x, deviation))
