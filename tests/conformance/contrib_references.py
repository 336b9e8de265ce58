"""Operators of com.microsoft in double, by their formulas: onnxruntime has few of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from recipes import Call

ROOT = math.sqrt(2 / math.pi)


def operands(call: Call) -> list[np.ndarray]:
    return [np.asarray(value, np.float64) for value in call.inputs]


def number(call: Call, name: str, default: float) -> float:
    """An attribute, which is a float of 32 bits."""
    return float(np.float32(call.attributes.get(name, default)))


def gelu(x: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda v: v / 2 * math.erfc(-v / math.sqrt(2)), otypes=[float])(x)


def fast_gelu(x: np.ndarray) -> np.ndarray:
    return x / 2 * (1 + np.tanh(ROOT * (x + 0.044715 * x**3)))


def of_sum(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Call], np.ndarray]:
    """Of x and, if there is one, a bias."""
    return lambda call: function(sum(operands(call)))


def quick_gelu(call: Call) -> np.ndarray:
    (x,) = operands(call)
    return x / (1 + np.exp(-number(call, "alpha", 1.702) * x))


def product(call: Call) -> np.ndarray:
    if call.attributes.get("transBatchA") or call.attributes.get("transBatchB"):
        raise NotImplementedError
    flips = [call.attributes.get(name) for name in ("transA", "transB")]
    pairs = zip(operands(call)[:2], flips, strict=True)
    a, b = (x.swapaxes(-1, -2) if flip and x.ndim > 1 else x for x, flip in pairs)
    return number(call, "alpha", 1) * (a @ b)


def gemm(call: Call) -> np.ndarray:
    y = product(call)
    if len(call.inputs) > 2:
        y = y + number(call, "beta", 1) * operands(call)[2]
    if call.attributes.get("activation") != "Relu":
        raise NotImplementedError
    return np.maximum(y, 0)


FORMULAS: dict[str, Callable[[Call], np.ndarray]] = {
    "BiasGelu": of_sum(gelu),
    "FastGelu": of_sum(fast_gelu),
    "FusedGemm": gemm,
    **dict.fromkeys(("FusedMatMul", "TransposeMatMul"), product),
    "Gelu": of_sum(gelu),
    "QuickGelu": quick_gelu,
    "SampleOp": lambda call: operands(call)[0],
}


def run(name: str, call: Call) -> list[Any]:
    """What an operator gives; raises where this module has no formula of it."""
    return [np.asarray(FORMULAS[name](call)).astype(call.inputs[0].dtype)]
