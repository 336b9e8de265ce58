"""Gamma and error functions, made of arithmetic that is one loop over the elements.

In single precision, to a few units in the last place of what is summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten

Function = Callable[[torch.Tensor], torch.Tensor]

# Arguments of at least a half are moved beyond 4.5, where the series below are exact enough.
_MOVED = 4


def _polynomial(x: torch.Tensor, coefficients: Sequence[float]) -> torch.Tensor:
    """The highest power first."""
    total = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        total = total * x + coefficient
    return total


def _by_reflection(
    x: torch.Tensor, right: Function, left: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """A function of its values from a half on.

    left  the value below a half, of the right one at 1 - x and of what x is beside an integer
    """
    is_left = x < 0.5
    value = right(torch.where(is_left, 1 - x, x))
    return torch.where(is_left, left(value, x - torch.round(x)), value)


def _log_gamma_from_half(x: torch.Tensor) -> torch.Tensor:
    is_small = x < 16
    product = torch.where(is_small, x * (x + 1) * ((x + 2) * (x + 3)), 1.0)
    y = torch.where(is_small, x + _MOVED, x)
    inverse = 1 / y
    series = inverse * _polynomial(inverse * inverse, (-1 / 1680, 1 / 1260, -1 / 360, 1 / 12))
    # Stirling's series; (y - 1) log(y) + (log(y) / 2 - y) would be infinite less infinite.
    value = (y - 0.5) * (torch.log(y) - 1) + series + (0.5 * math.log(2 * math.pi) - 0.5)
    return torch.where(y == math.inf, math.inf, value - torch.log(product))


def log_gamma(x: torch.Tensor) -> torch.Tensor:
    """The logarithm of the size of the gamma function."""

    def left(value: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        return math.log(math.pi) - torch.log(torch.abs(torch.sin(math.pi * rest))) - value

    value = _by_reflection(x, _log_gamma_from_half, left)
    return torch.where(x == -math.inf, math.inf, value)


def _digamma_from_half(x: torch.Tensor) -> torch.Tensor:
    y = x + _MOVED
    inverse = 1 / y
    square = inverse * inverse
    series = square * _polynomial(square, (-1 / 240, 1 / 252, -1 / 120, 1 / 12))
    moved = (1 / x + 1 / (x + 1)) + (1 / (x + 2) + 1 / (x + 3))
    return torch.log(y) - 0.5 * inverse - series - moved


def digamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of the logarithm of the gamma function."""

    def left(value: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        return value - math.pi / torch.tan(math.pi * rest)

    is_pole = (x < 0) & (x == torch.round(x))
    return torch.where(is_pole, math.nan, _by_reflection(x, _digamma_from_half, left))


def _trigamma_from_half(x: torch.Tensor) -> torch.Tensor:
    y = x + _MOVED
    inverse = 1 / y
    square = inverse * inverse
    odd = inverse * (1 + square * _polynomial(square, (-1 / 30, 1 / 42, -1 / 30, 1 / 6)))
    total = odd + 0.5 * square
    for step in range(_MOVED):
        total = total + 1 / ((x + step) * (x + step))
    return total


def trigamma(x: torch.Tensor) -> torch.Tensor:
    """The derivative of the digamma function."""

    def left(value: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
        ratio = math.pi / torch.sin(math.pi * rest)
        return ratio * ratio - value

    return _by_reflection(x, _trigamma_from_half, left)


def _scaled_tail(size: torch.Tensor) -> torch.Tensor:
    """exp(x * x) * erfc(x) of numbers that are not negative: exact to 2e-7 of its value."""
    t = (size - 2) / (size + 2)
    return _polynomial(t, _TAIL) / (1 + 2 * size)


def _error_complement(x: torch.Tensor) -> torch.Tensor:
    size = torch.abs(x)
    # Infinity times zero would be NaN.
    bounded = torch.clamp(size, max=20.0)
    tail = torch.exp(-bounded * bounded) * _scaled_tail(bounded)
    return torch.where(x < 0, 2 - tail, tail)


def _scaled_error_complement(x: torch.Tensor) -> torch.Tensor:
    tail = _scaled_tail(torch.abs(torch.clamp(x, max=1e30)))
    return torch.where(x < 0, 2 * torch.exp(x * x) - tail, tail)


# A Chebyshev series of (1 + 2 x) exp(x * x) erfc(x) as a polynomial of (x - 2) / (x + 2).
_TAIL = (
    1.60803582e-04, -1.83654437e-04, -1.39570695e-03, 1.04314458e-03, 8.68915966e-03,
    -7.9427217e-03, -5.42119585e-02, 1.6403584e-01, -1.66031096e-01, -9.2763082e-02, 1.27697839,
)  # fmt: skip

_FUNCTIONS: dict[Any, Function] = {
    aten.lgamma.default: log_gamma,
    aten.digamma.default: digamma,
    aten.erfc.default: _error_complement,
    aten.special_erfcx.default: _scaled_error_complement,
}


def _in_single(function: Function) -> Function:
    """The function in single precision. In double it is PyTorch's."""

    def computed(x: torch.Tensor) -> Any:
        if x.dtype in (torch.bfloat16, torch.float16):
            return function(x.to(torch.float32)).to(x.dtype)
        return function(x) if x.dtype == torch.float32 else NotImplemented

    return computed


def _polygamma(order: int, x: torch.Tensor) -> Any:
    return _in_single(trigamma)(x) if order == 1 else NotImplemented


def special_functions() -> dict[Any, Callable[..., Any]]:
    """A part of the table for AOTAutograd."""
    table: dict[Any, Callable[..., Any]] = {
        overload: _in_single(function) for overload, function in _FUNCTIONS.items()
    }
    return table | {aten.polygamma.default: _polygamma}
