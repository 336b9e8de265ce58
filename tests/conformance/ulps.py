"""Distances between floating-point numbers, in units in the last place (ULP) of their type."""

from __future__ import annotations

import ml_dtypes
import numpy as np

Array = np.ndarray


def is_inexact(dtype: np.dtype) -> bool:
    """Whether it is of floating-point or complex numbers."""
    return dtype.kind in "fc" or dtype.name.startswith(("float", "bfloat"))


def unit(x: Array, dtype: np.dtype) -> Array:
    """The step from each |x| to the next number of the type, within a power of two."""
    known = ml_dtypes.finfo(dtype)
    least = np.longdouble(known.smallest_normal)
    exponent = np.frexp(np.maximum(np.abs(x.astype(np.longdouble)), least))[1]
    return np.ldexp(np.longdouble(known.eps), exponent - 1)


def distances(actual: Array, expected: Array, of_largest: bool = False, least: float = 0) -> Array:
    """|actual - expected| in ULP of the expected numbers, or of the largest of them.

    Of numbers below `least`, in those of `least`. Of complex numbers, those of the larger part.
    Infinite where one number is NaN or infinite and the other something else.
    """
    if expected.dtype.kind == "c":
        parts = [(getattr(actual, part), getattr(expected, part)) for part in ("real", "imag")]
        dtype = parts[0][0].dtype
        size = np.maximum(*(np.abs(theirs) for _, theirs in parts))
    else:
        parts, dtype = [(actual, expected)], actual.dtype
        size = np.abs(expected.astype(np.longdouble))
    size = np.where(np.isfinite(size), size, 0)
    if of_largest:
        size = np.full_like(size, size.max(initial=0))
    size = np.maximum(size, least)
    found = np.zeros(expected.shape, np.longdouble)
    for ours, theirs in parts:
        ours, theirs = (x.astype(np.longdouble) for x in (ours, theirs))  # noqa: PLW2901
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        with np.errstate(invalid="ignore"):
            apart = np.abs(ours - theirs) / unit(size, dtype)
        apart = np.where(np.isfinite(ours) & np.isfinite(theirs), apart, np.inf)
        found = np.maximum(found, np.where(same, 0, apart))
    return found
