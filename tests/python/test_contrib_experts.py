"""QMoE of com.microsoft, compared with onnxruntime and, if that has no kernel, with NumPy."""

import contrib
import ml_dtypes
import numpy as np
import pytest
from contrib import check, floats

TOKENS, HIDDEN, INNER, EXPERTS = 6, 32, 64, 4


def packed(bits: int, *shape: int, seed: int) -> np.ndarray:
    *rows, columns = shape
    generator = np.random.default_rng([seed, bits])
    return generator.integers(0, 256, (*rows, columns * bits // 8)).astype(np.uint8)


def unpacked(x: np.ndarray, bits: int) -> np.ndarray:
    parts = [(x >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*x.shape[:-1], -1).astype(np.float32)


def layer(bits: int, n: int, k: int, block: int, has_zeros: bool, seed: int) -> list:
    """Weights, scales, bias and zero points."""
    blocks = k // block if block else 1
    scales = np.abs(floats(EXPERTS, n, blocks, seed=seed)) / (20 << (bits - 4 if bits > 4 else 0))
    if not block:
        scales = scales[..., 0]
    zeros = None
    if has_zeros:
        count = (blocks if block else n) * bits
        lines = (EXPERTS, n) if block else (EXPERTS,)
        generator = np.random.default_rng(seed)
        zeros = generator.integers(0, 256, (*lines, (count + 7) // 8)).astype(np.uint8)
    weights = packed(bits, EXPERTS, n, k, seed=seed)
    return [weights, np.float32(scales), floats(EXPERTS, n, seed=seed + 1), zeros]


def inputs_of(bits: int, block: int, has_zeros: bool, parts: int, has_fc3: bool) -> list:
    fc1 = layer(bits, parts * INNER, HIDDEN, block, has_zeros, seed=1)
    fc2 = layer(bits, HIDDEN, INNER, block, has_zeros, seed=2)
    fc3 = layer(bits, INNER, HIDDEN, block, has_zeros, seed=3) if has_fc3 else [None] * 4
    x, router = floats(TOKENS, HIDDEN), floats(TOKENS, EXPERTS, seed=9)
    return [x, router, *fc1[:3], *fc2[:3], *fc3[:3], fc1[3], fc2[3], fc3[3]]


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [0, 16, 32])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize(("k", "normalizes"), [(1, 0), (2, 0), (2, 1)])
def test_quantized_experts(bits: int, block: int, has_zeros: bool, k: int, normalizes: int) -> None:
    inputs = inputs_of(bits, block, has_zeros, 2, False)
    options = {
        "k": k,
        "expert_weight_bits": bits,
        "normalize_routing_weights": normalizes,
        "activation_type": "swiglu",
        "swiglu_fusion": 1,
        "activation_alpha": 1.7,
        "activation_beta": 1.0,
        "swiglu_limit": 7.0,
    }
    if block:
        options["block_size"] = block
    # onnxruntime rounds activations to int8 for blocks of 8 bits.
    tolerance = {"rtol": 2e-2, "atol": 0.15} if bits == 8 else {"rtol": 1e-3, "atol": 1e-2}
    check("QMoE", inputs, **tolerance, **options)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("normalizes", [None, 0, 1])
def test_quantized_experts_with_router_weights(activation: str, normalizes: int | None) -> None:
    inputs = inputs_of(4, 32, True, 1, False)
    if normalizes is not None:
        inputs.append(np.abs(floats(TOKENS, EXPERTS, seed=77)))
    options = {"k": 2, "activation_type": activation, "block_size": 32}
    options["normalize_routing_weights"] = normalizes or 0
    check("QMoE", inputs, rtol=1e-3, atol=1e-3, **options)


def reference(inputs: list, bits: int, block: int, fusion: int) -> np.ndarray:
    """One expert for each token, with SwiGLU."""

    def weights(i: int, zeros: int) -> np.ndarray:
        w = unpacked(inputs[i], bits)
        blocks = w.reshape(*w.shape[:2], -1, block)
        zero = np.float32(2 ** (bits - 1))
        if inputs[zeros] is not None:
            zero = unpacked(inputs[zeros], bits)[..., : blocks.shape[2], None]
        return ((blocks - zero) * inputs[i + 1][..., None]).reshape(w.shape)

    x, router = inputs[:2]
    y = np.zeros_like(x)
    fc1, fc2 = weights(2, 11), weights(5, 12)
    for t in range(TOKENS):
        e = int(np.argmax(router[t]))
        h = fc1[e] @ x[t] + inputs[4][e]
        if fusion == 0:
            gate, linear = h, weights(8, 13)[e] @ x[t] + inputs[10][e]
        else:
            gate, linear = h[:INNER], h[INNER:]
        h = gate / (1 + np.exp(-gate)) * linear
        y[t] = fc2[e] @ h + inputs[7][e]
    return y


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("fusion", [0, 2])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_quantized_experts_that_onnxruntime_has_not(
    bits: int, fusion: int, has_zeros: bool
) -> None:
    inputs = inputs_of(bits, 16, has_zeros, 2 if fusion else 1, fusion == 0)
    expected = [reference(inputs, bits, 16, fusion)]
    options = {"activation_type": "swiglu", "swiglu_fusion": fusion, "block_size": 16}
    options["expert_weight_bits"] = bits
    check("QMoE", inputs, expected=expected, rtol=1e-3, atol=1e-2, **options)


# --- Weights of floats in few bits, and the sparse mixer: compared with NumPy ---

FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def float_layer(kind: str, block: int, n: int, k: int, seed: int) -> tuple[list, np.ndarray]:
    """Weights, scales, global scale, and the dequantized weights."""
    rng = np.random.default_rng(seed)
    overall = rng.uniform(0.5, 2, EXPERTS).astype(np.float32)
    if kind == "fp8":
        weights = rng.standard_normal((EXPERTS, n, k)).astype(ml_dtypes.float8_e4m3fn)
        values = weights.astype(np.float32)
        if not block:
            return [weights, None, overall], values * overall[:, None, None]
        shape = (EXPERTS, -(-n // block), -(-k // block))
        scales = rng.uniform(0.1, 0.3, shape).astype(np.float32)
        spread = scales.repeat(block, 1).repeat(block, 2)[:, :n, :k]
        return [weights, scales, None], values * spread
    scale_type = ml_dtypes.float8_e4m3fn if kind == "nvfp4" else ml_dtypes.float8_e8m0fnu
    size = 16 if kind == "nvfp4" else 32
    weights = rng.integers(0, 256, (EXPERTS, n, k // 2)).astype(np.uint8)
    scales = (2.0 ** rng.integers(-4, 0, (EXPERTS, n, k // size))).astype(scale_type)
    values = FLOAT4[np.stack([weights & 15, weights >> 4], -1).reshape(EXPERTS, n, k)]
    spread = scales.astype(np.float32).repeat(size, 2) * overall[:, None, None]
    return [weights, scales, overall], values * spread


def of_chosen(x: np.ndarray, fc1: np.ndarray, fc2: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """relu networks of all experts, weighted by `shares`, [tokens, experts]."""
    y = np.einsum("enk,tk->ten", fc1, x)
    return np.einsum("te,ehn,ten->th", shares, fc2, np.maximum(y, 0)).astype(np.float32)


def top_two(router: np.ndarray) -> np.ndarray:
    powers = np.exp(router) * (router >= np.sort(router, -1)[:, -2:-1])
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("kind", "block"),
    [("fp4", 0), ("nvfp4", 0), ("wfp4afp8", 0), ("fp8", 0), ("fp8", 16), ("fp8", 128)],
)
def test_experts_of_float_bits(kind: str, block: int) -> None:
    first, fc1 = float_layer(kind, block, INNER, HIDDEN, 1)
    second, fc2 = float_layer(kind, block, HIDDEN, INNER, 2)
    x, router = floats(TOKENS, HIDDEN), floats(TOKENS, EXPERTS, seed=9)
    inputs = [x, router, *first[:2], None, *second[:2], None, *[None] * 7, first[2], second[2]]
    options = {"quant_type": kind, "k": 2, "activation_type": "relu"}
    if block:
        options["block_size"] = block
    expected = [of_chosen(x, fc1, fc2, top_two(router))]
    check("QMoE", inputs, expected=expected, rtol=1e-3, atol=1e-3, **options)


def values_of(quantized: list, bits: int) -> np.ndarray:
    """The dequantized weights of a layer of blocks of 16 without zero points."""
    weights, scales = quantized[:2]
    steps = unpacked(weights, bits).reshape(*scales.shape, 16) - 2 ** (bits - 1)
    return (steps * scales[..., None]).reshape(*scales.shape[:2], -1)


def test_quantized_experts_with_a_width_for_each_layer() -> None:
    fc1 = layer(4, INNER, HIDDEN, 16, False, seed=1)
    fc2 = layer(8, HIDDEN, INNER, 16, False, seed=2)
    x, router = floats(TOKENS, HIDDEN), floats(TOKENS, EXPERTS, seed=9)
    best = (router == router.max(-1, keepdims=True)).astype(np.float32)
    options = {"fc2_expert_weight_bits": 8, "block_size": 16, "activation_type": "relu"}
    expected = [of_chosen(x, values_of(fc1, 4), values_of(fc2, 8), best)]
    inputs = [x, router, *fc1[:2], None, *fc2[:2]]
    check("QMoE", inputs, expected=expected, rtol=1e-3, atol=1e-3, **options)


def sparse_shares(router: np.ndarray) -> np.ndarray:
    """SparseMixer: each of the two best against those within 2 % of it, the second without the
    first."""
    shares = np.zeros_like(router)
    for row, share in zip(router.astype(np.float64), shares, strict=True):
        left = row.copy()
        for _ in range(2):
            best = int(np.argmax(left))
            near = (left[best] - row) / np.maximum(np.abs(row), left[best]) <= 0.02
            powers = np.where(near, np.exp(left - left[best]), 0)
            share[best] = 1 / powers.sum()
            left[best] = -np.inf
    return shares


@pytest.mark.parametrize("quantized", [False, True])
def test_sparse_mixer(quantized: bool) -> None:
    x = floats(TOKENS, HIDDEN)
    router = 3 + floats(TOKENS, EXPERTS, seed=9) / 20  # close to each other
    router[0] = [-1, 2, 0.5, 1.99]
    if quantized:
        fc1, fc2 = layer(4, INNER, HIDDEN, 16, False, 1), layer(4, HIDDEN, INNER, 16, False, 2)
        weights = [values_of(fc1, 4), values_of(fc2, 4)]
        inputs = [x, router, *fc1[:2], None, *fc2[:2]]
        options = {"block_size": 16}
    else:
        weights = [floats(EXPERTS, INNER, HIDDEN, seed=1), floats(EXPERTS, HIDDEN, INNER, seed=2)]
        inputs = [x, router, weights[0], None, weights[1]]
        options = {}
    expected = [of_chosen(x, *weights, sparse_shares(router))]
    options |= {"use_sparse_mixer": 1, "k": 2, "activation_type": "relu"}
    name = "QMoE" if quantized else "MoE"
    check(name, inputs, expected=expected, rtol=1e-3, atol=1e-3, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"block_size": 24},
        {"block_size": 2**62},
        {"expert_weight_bits": 3},
        {"expert_weight_bits": 0},
        {"fc1_expert_weight_bits": 8},
        {"k": 5},
        {"quant_type": "none"},
        {"use_sparse_mixer": 1, "k": 1},
    ],
)
def test_quantized_experts_reject(options: dict) -> None:
    inputs = inputs_of(4, 16, False, 1, False)
    options = {"block_size": 16, "activation_type": "relu", **options}
    content = contrib.model("QMoE", inputs, {"y": np.float32}, **options)
    with pytest.raises(Exception, match="QMoE"):
        contrib.run_tenon(content, inputs)
