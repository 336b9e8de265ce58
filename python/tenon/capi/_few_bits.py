"""Packs weights of few bits into the caller's arrays, as onnxruntime's module does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..quantization._blocks import Blocks


def _blocks_of(
    src: np.ndarray, bits: int, block_size: int, n: int, k: int, is_symmetric: bool
) -> Blocks:
    from ..quantization._blocks import blocks_of, by_range  # noqa: PLC0415 - needs onnx

    return by_range(blocks_of(src.reshape(-1, n)[:k], block_size), bits, is_symmetric)


def _for_matmul_nbits(bits: int) -> Callable[..., None]:
    def quantize(
        dst: np.ndarray,
        src: np.ndarray,
        scale: np.ndarray,
        zero_points: np.ndarray,
        block_size: int,
        n: int,
        k: int,
        is_symmetric: bool,
    ) -> None:
        """Packs integers of a matrix [k, n] in MatMulNBits' layout."""
        from ..quantization._blocks import packed  # noqa: PLC0415

        blocks = _blocks_of(src, bits, block_size, n, k, is_symmetric)
        numbers, zeros = packed(blocks, k)
        dst.reshape(-1)[:] = numbers.reshape(-1)
        scale.reshape(-1)[:] = blocks.scales.reshape(-1)
        if zeros is not None:
            zero_points.reshape(-1)[:] = zeros.reshape(-1)

    return quantize


def _for_dequantize_linear(bits: int) -> Callable[..., bool]:
    def quantize(
        dst: np.ndarray,
        src: np.ndarray,
        scale: np.ndarray,
        zero_points: np.ndarray,
        block_size: int,
        n: int,
        k: int,
        is_symmetric: bool,
    ) -> bool:
        """Packs integers of a matrix [k, n] for DequantizeLinear; whether they are signed."""
        from ..quantization._blocks import pack  # noqa: PLC0415

        blocks = _blocks_of(src, bits, block_size, n, k, is_symmetric)
        numbers = blocks.numbers.reshape(n, -1)[:, :k].T
        if is_symmetric:
            numbers = (numbers - (1 << (bits - 1))) & ((1 << bits) - 1)
        dst.reshape(-1)[:] = pack(numbers.reshape(-1), bits)
        scale.reshape(-1)[:] = blocks.scales.T.reshape(-1)
        if blocks.zeros is not None:
            zero_points.reshape(-1)[:] = pack(blocks.zeros.T.reshape(-1), bits)
        return is_symmetric

    return quantize


quantize_matmul_2bits = _for_matmul_nbits(2)
quantize_matmul_4bits = _for_matmul_nbits(4)
quantize_matmul_8bits = _for_matmul_nbits(8)
quantize_qdq_matmul_2bits = _for_dequantize_linear(2)
quantize_qdq_matmul_4bits = _for_dequantize_linear(4)


def quantize_matmul_bnb4(
    dst: np.ndarray,
    src: np.ndarray,
    absmax: np.ndarray,
    block_size: int,
    quant_type: int,
    n: int,
    k: int,
) -> None:
    """Packs 4-bit numbers of a transposed matrix [n, k] in MatMulBnb4's layout."""
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
