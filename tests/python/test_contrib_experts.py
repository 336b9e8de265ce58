"""QMoE of com.microsoft, compared with onnxruntime and, where that has no kernel, with NumPy."""

import contrib
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
    # onnxruntime rounds activations to bytes for blocks of 8 bits.
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
    ],
)
def test_quantized_experts_reject(options: dict) -> None:
    inputs = inputs_of(4, 16, False, 1, False)
    options = {"block_size": 16, "activation_type": "relu", **options}
    content = contrib.model("QMoE", inputs, {"y": np.float32}, **options)
    with pytest.raises(Exception, match="QMoE"):
        contrib.run_tenon(content, inputs)
