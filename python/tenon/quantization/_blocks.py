"""Matrices in blocks of few bits: quantizes numbers to integers, and packs integers into bytes.

A matrix [k, n] is divided into blocks [n, blocks, size], which run along k. The last one is padded
with zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDS = 20  # for a search of better scales or zero points
PART = 1 << 15  # numbers


@dataclass
class Blocks:
    """Unsigned integers, [n, blocks, size]; their scales and zero points, [n, blocks].

    zeros          None: the middle of the integers
    has_fractions  zero points lie between integers
    """

    numbers: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    bits: int
    has_fractions: bool = False


def blocks_of(weight: np.ndarray, size: int) -> np.ndarray:
    """The blocks of a matrix."""
    k, n = weight.shape
    count = -(-k // size)
    padded = np.zeros((n, count * size), np.float32)
    padded[:, :k] = weight.T
    return padded.reshape(n, count, size)


def quantized(values: np.ndarray, scales: np.ndarray, zeros: np.ndarray, bits: int) -> np.ndarray:
    """round(values / scales + zeros), clipped to the bits' range. A scale of 0 gives `zeros`."""
    with np.errstate(divide="ignore"):
        inverse = np.where(scales != 0, 1 / scales, 0).astype(np.float32)
    numbers = values * inverse[..., None]
    numbers += zeros[..., None]
    np.round(numbers, out=numbers)
    return np.clip(numbers, 0, (1 << bits) - 1, out=numbers).astype(np.uint8)


def by_range(values: np.ndarray, bits: int, symmetric: bool) -> Blocks:
    """Quantizes each block by its own range, which holds zero."""
    low, high = values.min(-1), values.max(-1)
    most, middle = (1 << bits) - 1, 1 << (bits - 1)
    if symmetric:
        # The number farthest from zero gets the smallest integer, which is also farthest from zero.
        scales = np.where(np.abs(low) > np.abs(high), low, high) / -middle
        zeros = np.full(scales.shape, middle, np.float32)
        return Blocks(quantized(values, scales, zeros, bits), scales, None, bits)
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    scales = (high - low) / most
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.clip(np.round(np.where(scales != 0, -low / scales, 0)), 0, most)
    return Blocks(quantized(values, scales, zeros, bits), scales, zeros, bits)


def by_rounding(values: np.ndarray, bits: int, symmetric: bool, ratio: float = 1.0) -> Blocks:
    """Rounds to nearest in a share of the range; symmetric ones around the range's middle."""
    low = np.minimum(values.min(-1) * ratio, 0)
    high = np.maximum(values.max(-1) * ratio, 0)
    most, middle = (1 << bits) - 1, 1 << (bits - 1)
    if symmetric:
        high = np.maximum(-low, high)
        low = -high
    scales = np.where(high > low, (high - low).astype(np.float64) / most, 1)
    zeros = np.full(scales.shape, float(middle))
    if not symmetric:
        zeros = np.clip(np.round(-low / scales), 0, most)
    numbers = np.clip(np.round(values / scales[..., None] + zeros[..., None]), 0, most)
    return Blocks(numbers.astype(np.uint8), scales, None if symmetric else zeros, bits)


def by_weighted_squares(values: np.ndarray, bits: int) -> Blocks:
    """The scale and offset with the least weighted squares of errors; large numbers weigh more.

    This is the search of llama.cpp for its k-quants: it rounds with several scales, fits the best
    line to each result, and continues from the best result so far.
    """
    # In parts that stay in the cache over all rounds.
    rows = max(PART // max(values[0].size, 1), 1)
    found = [_search(values[i : i + rows], bits) for i in range(0, values.shape[0], rows)]
    numbers, scales, zeros = (np.concatenate(one) for one in zip(*found, strict=True))
    return Blocks(numbers, scales, zeros, bits)


def _search(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers, scales and zero points."""
    most = (1 << bits) - 1
    weights = np.abs(values) + np.sqrt(np.mean(values**2, -1, keepdims=True))
    # Zero has to be one of the integers.
    low, high = np.minimum(values.min(-1), 0), np.maximum(values.max(-1), 0)
    total, moment = weights.sum(-1), (weights * values).sum(-1)

    def rounded(steps: float) -> np.ndarray:
        inverse = steps / np.where(high > low, high - low, steps)
        return np.asarray(
            np.clip(np.round(inverse[..., None] * (values - low[..., None])), 0, most)
        )

    def error(slope: np.ndarray, offset: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        difference = slope[..., None] * numbers + offset[..., None] - values
        return np.asarray(np.sum(weights * difference**2, -1))

    scales = np.where(high > low, (high - low) / most, 1)
    least = error(scales, low, rounded(most))
    for step in range(ROUNDS):
        numbers = rounded(most - 1 + 0.1 * step)
        weighted = weights * numbers
        first, second = weighted.sum(-1), (weighted * numbers).sum(-1)
        mixed = (weighted * values).sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            determinant = total * second - first**2
            slope = (total * mixed - moment * first) / determinant
            offset = (second * moment - first * mixed) / determinant
            slope = np.where(offset > 0, mixed / second, slope)
            offset = np.minimum(offset, 0)
        found = error(slope, offset, numbers)
        is_better = (found < least) & (slope > 0)
        least, scales = np.where(is_better, found, least), np.where(is_better, slope, scales)
        low = np.where(is_better, offset, low)
    zeros = np.clip(np.round(-low / scales), 0, most)
    return quantized(values, scales, zeros, bits), scales, zeros


def by_half_squares(values: np.ndarray, bits: int) -> Blocks:
    """Half-quadratic quantization: fractional zero points, so that few numbers have large errors.

    Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models".
    """
    most = (1 << bits) - 1
    power, strength, growth = 0.7, 10.0, 1.01  # power: of the norm; the others: its relaxation
    low, high = values.min(-1), values.max(-1)
    span = np.where(high > low, high - low, most)
    steps = np.minimum(most / span, 2e4)[..., None]
    zeros = np.round(-low[..., None] * steps)
    best = np.inf
    for _ in range(ROUNDS):
        numbers = np.clip(np.round(values * steps + zeros), 0, most)
        errors = values - (numbers - zeros) / steps
        distance = np.abs(errors)
        shrunk = np.maximum(distance - (distance + 1e-8) ** (power - 1) / strength, 0)
        zeros = np.mean(numbers - (values - np.sign(errors) * shrunk) * steps, -1, keepdims=True)
        strength *= growth
        if (error := float(distance.mean())) >= best:
            break
        best = error
    numbers = np.clip(np.round(values * steps + zeros), 0, most).astype(np.uint8)
    return Blocks(numbers, 1 / steps[..., 0], zeros[..., 0], bits, has_fractions=True)


def pack(numbers: np.ndarray, bits: int, filler: int = 0) -> np.ndarray:
    """Packs integers along the last axis, the first one in the lowest bits of a byte."""
    each = 8 // bits
    missing = -numbers.shape[-1] % each
    if missing:
        rest = [(0, 0)] * (numbers.ndim - 1)
        numbers = np.pad(numbers, [*rest, (0, missing)], constant_values=filler)
    grouped = numbers.astype(np.uint8).reshape(*numbers.shape[:-1], -1, each)
    shifts = np.arange(each, dtype=np.uint8) * bits
    return np.asarray(np.bitwise_or.reduce(grouped << shifts, axis=-1), np.uint8)


def packed(blocks: Blocks, k: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Packed integers [n, blocks, bytes] and zero points [n, bytes], in MatMulNBits' layout.

    Zero points that are fractions are not packed, and lie in one row.
    """
    numbers = blocks.numbers.copy()
    numbers.reshape(numbers.shape[0], -1)[:, k:] = 0  # they are never read
    zeros = blocks.zeros
    if zeros is None:
        return pack(numbers, blocks.bits), None
    if blocks.has_fractions:
        return pack(numbers, blocks.bits), zeros.reshape(-1)
    middle = 1 << (blocks.bits - 1)
    return pack(numbers, blocks.bits), pack(zeros, blocks.bits, middle)
