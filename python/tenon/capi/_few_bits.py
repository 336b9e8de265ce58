"""Weights of few bits, written into arrays that the caller has, as onnxruntime's module does it."""

from __future__ import annotations

import numpy as np


def _quantize_matmul(
    bits: int,
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    is_symmetric: bool,
) -> None:
    from ..quantization._blocks import blocks_of, by_range, packed  # noqa: PLC0415 - needs onnx

    weight = src.reshape(-1, columns)[:rows]
    blocks = by_range(blocks_of(weight, block_size), bits, is_symmetric)
    numbers, zeros = packed(blocks, rows)
    dst.reshape(-1)[:] = numbers.reshape(-1)
    scale.reshape(-1)[:] = blocks.scales.reshape(-1)
    if zeros is not None:
        zero_points.reshape(-1)[:] = zeros.reshape(-1)


def _quantize_qdq_matmul(
    bits: int,
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    columns: int,
    rows: int,
    is_symmetric: bool,
) -> bool:
    from ..quantization._blocks import blocks_of, by_range, pack  # noqa: PLC0415

    weight = src.reshape(-1, columns)[:rows]
    blocks = by_range(blocks_of(weight, block_size), bits, is_symmetric)
    numbers = blocks.numbers.reshape(columns, -1)[:, :rows].T
    if is_symmetric:
        numbers = (numbers - (1 << (bits - 1))) & ((1 << bits) - 1)
    dst.reshape(-1)[:] = pack(numbers.reshape(-1), bits)
    scale.reshape(-1)[:] = blocks.scales.T.reshape(-1)
    if blocks.zeros is not None:
        zero_points.reshape(-1)[:] = pack(blocks.zeros.T.reshape(-1), bits)
    return is_symmetric


def quantize_matmul_2bits(
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    n: int,
    k: int,
    is_symmetric: bool,
) -> None:
    """Integers of a matrix [k, n] as MatMulNBits takes them."""
    _quantize_matmul(2, dst, src, scale, zero_points, block_size, n, k, is_symmetric)


def quantize_matmul_4bits(
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    n: int,
    k: int,
    is_symmetric: bool,
) -> None:
    """Integers of a matrix [k, n] as MatMulNBits takes them."""
    _quantize_matmul(4, dst, src, scale, zero_points, block_size, n, k, is_symmetric)


def quantize_matmul_8bits(
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    n: int,
    k: int,
    is_symmetric: bool,
) -> None:
    """Integers of a matrix [k, n] as MatMulNBits takes them."""
    _quantize_matmul(8, dst, src, scale, zero_points, block_size, n, k, is_symmetric)


def quantize_qdq_matmul_2bits(
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    n: int,
    k: int,
    is_symmetric: bool,
) -> bool:
    """Integers of a matrix [k, n] as DequantizeLinear takes them, and whether they are signed."""
    return _quantize_qdq_matmul(2, dst, src, scale, zero_points, block_size, n, k, is_symmetric)


def quantize_qdq_matmul_4bits(
    dst: np.ndarray,
    src: np.ndarray,
    scale: np.ndarray,
    zero_points: np.ndarray,
    block_size: int,
    n: int,
    k: int,
    is_symmetric: bool,
) -> bool:
    """Integers of a matrix [k, n] as DequantizeLinear takes them, and whether they are signed."""
    return _quantize_qdq_matmul(4, dst, src, scale, zero_points, block_size, n, k, is_symmetric)


def quantize_matmul_bnb4(
    dst: np.ndarray,
    src: np.ndarray,
    absmax: np.ndarray,
    block_size: int,
    quant_type: int,
    n: int,
    k: int,
) -> None:
    """Numbers of 4 bits of a transposed matrix [n, k], as MatMulBnb4 takes them."""
    from ..quantization.matmul_bnb4_quantizer import (  # noqa: PLC0415
        FP4_NUMBERS,
        NF4_NUMBERS,
        quantize_blocks,
    )

    codes = NF4_NUMBERS if quant_type else FP4_NUMBERS
    numbers = src.reshape(-1)[: n * k].astype(np.float32)
    packed_numbers, largest = quantize_blocks(numbers, block_size, codes)
    dst.reshape(-1)[:] = packed_numbers
    absmax.reshape(-1)[:] = largest
