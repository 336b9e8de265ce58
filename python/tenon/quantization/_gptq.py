"""Rounding that compensates its errors, one row of a matrix after another.

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._blocks import Blocks

NORM = 2.4  # of errors, where ranges are chosen by them
SHRINKINGS = 80  # of a range, in hundredths


@dataclass
class Gptq:
    """The settings.

    damping      a share of the mean of squared values, added to each
    batch        the number of rows that are rounded before their errors are passed on to the rest
    by_activity  rounds the rows with the largest values first
    by_error     ranges have the least error, and need not include all numbers
    per_channel  each column has its own scale
    """

    bits: int
    group: int
    symmetric: bool
    damping: float = 0.01
    batch: int = 128
    by_activity: bool = False
    by_error: bool = False
    per_channel: bool = True

    def scale_of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scales and zero points of columns, [n]."""
        most = (1 << self.bits) - 1
        numbers = rows if self.per_channel else rows.reshape(-1, 1)
        low, high = numbers.min(0, initial=0), numbers.max(0, initial=0)
        if self.symmetric:
            high = np.maximum(-low, high)
            low = -high
        is_zero = high == low
        low, high = np.where(is_zero, -1, low), np.where(is_zero, 1, high)
        scale, zero = self._line(low, high)
        if self.by_error:
            least = np.full(scale.shape, np.inf)
            for hundredths in range(SHRINKINGS):
                share = 1 - hundredths / 100
                other, other_zero = self._line(share * low, share * high)
                rounded = np.clip(np.round(numbers / other) + other_zero, 0, most)
                errors = np.sum(np.abs((rounded - other_zero) * other - numbers) ** NORM, 0)
                is_better = errors < least
                least = np.where(is_better, errors, least)
                scale = np.where(is_better, other, scale)
                zero = np.where(is_better, other_zero, zero)
        return np.broadcast_to(scale, rows.shape[1:]), np.broadcast_to(zero, rows.shape[1:])

    def _line(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scale = (high - low) / ((1 << self.bits) - 1)
        middle = float(1 << (self.bits - 1))
        return scale, np.full(scale.shape, middle) if self.symmetric else np.round(-low / scale)

    def quantize(self, weight: np.ndarray, squares: np.ndarray) -> Blocks:
        """The blocks of a matrix [k, n].

        squares  [k, k], sums over calibration data of the products of a row's values
        """
        rows, squares = weight.astype(np.float64), squares.astype(np.float64)
        k, n = rows.shape
        dead = np.diag(squares) == 0  # such rows contribute nothing
        squares[dead, dead] = 1
        rows[dead] = 0
        order = np.argsort(-np.diag(squares), kind="stable") if self.by_activity else np.arange(k)
        inverse = self._factor(squares[np.ix_(order, order)])
        count = -(-k // self.group)
        scales, zeros = np.ones((count, n)), np.zeros((count, n))
        if self.by_activity:  # later rows may lie in the same block as the first
            for block in range(count):
                part = rows[block * self.group : (block + 1) * self.group]
                scales[block], zeros[block] = self.scale_of(part)
        rows = rows[order]
        numbers = np.zeros((k, n), np.uint8)
        most = (1 << self.bits) - 1
        for begin in range(0, k, self.batch):
            end = min(begin + self.batch, k)
            errors = np.zeros((end - begin, n))
            for i in range(begin, end):
                block = order[i] // self.group
                if not self.by_activity and i % self.group == 0:
                    # The errors of this batch have not been passed on to later rows yet.
                    part = rows[i : i + self.group].copy()
                    later = max(end - i, 0)
                    told = inverse[begin:i, i + later : i + self.group]
                    part[later:] -= told.T @ errors[: i - begin]
                    scales[block], zeros[block] = self.scale_of(part)
                chosen = np.clip(np.round(rows[i] / scales[block]) + zeros[block], 0, most)
                numbers[order[i]] = chosen
                error = (rows[i] - (chosen - zeros[block]) * scales[block]) / inverse[i, i]
                rows[i:end] -= np.outer(inverse[i, i:end], error)
                errors[i - begin] = error
            rows[end:] -= inverse[begin:end, end:].T @ errors
        padded = np.zeros((n, count * self.group), np.uint8)
        padded[:, :k] = numbers.T
        shaped = padded.reshape(n, count, self.group)
        return Blocks(shaped, scales.T, None if self.symmetric else zeros.T, self.bits)

    def _factor(self, squares: np.ndarray) -> np.ndarray:
        """The upper triangle that passes on an error in one row to later ones."""
        diagonal = np.arange(squares.shape[0])
        squares[diagonal, diagonal] += self.damping * np.mean(np.diag(squares))
        return np.asarray(np.linalg.cholesky(np.linalg.inv(squares)).T)
