"""Unique of so many numbers that their keys are sorted, compared with NumPy."""

import numpy as np
import pytest
from contrib import model, run_tenon

COUNT = 3000
OUTPUTS = {"first": np.int64, "inverse": np.int64, "counts": np.int64}
TYPES = [
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.bool_),
]


def numbers(dtype: type, kinds: int) -> np.ndarray:
    """So many different numbers, including the extremes."""
    rng = np.random.default_rng(kinds)
    if dtype is np.bool_:
        return rng.integers(0, 2, COUNT).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        known = rng.integers(limits.min, limits.max, kinds, dtype, endpoint=True)
        known[:2] = limits.min, limits.max
    else:
        known = (rng.standard_normal(kinds) * 100).astype(dtype)
        tiny = np.finfo(dtype).tiny
        known[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, tiny, -tiny]
    return known[rng.integers(0, kinds, COUNT)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kinds", [9, 200, COUNT])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_unique_numbers(dtype: type, kinds: int, is_sorted: int) -> None:
    x = numbers(dtype, kinds)
    content = model("Unique", [x], {"y": dtype} | OUTPUTS, "", sorted=is_sorted)
    actual = run_tenon(content, [x])
    y, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    if not is_sorted:
        order = np.argsort(first)
        y, first, counts = y[order], first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    for a, e in zip(actual, (y, first, inverse, counts), strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize(
    "categories",
    [
        [3, 4, 7, 5],
        [-(2**63), 2**63 - 1, 0],
        [2**63 - 1, 2**63 - 3],
        [-(2**63), 5 - 2**63],
        [10, 10**6, -5],
        [4, 9, 4],
    ],
)
def test_categories_close_together_and_far_apart(categories: list) -> None:
    near = [c + d for c in categories for d in (-1, 0, 1) if -(2**63) <= c + d < 2**63]
    x = np.array([*near, 0, 2**63 - 1, -(2**63)], np.int64)
    content = model(
        "OneHotEncoder", [x], {"y": np.float32}, "ai.onnx.ml", cats_int64s=categories, zeros=1
    )
    last = {c: i for i, c in enumerate(categories)}
    expected = np.zeros((len(x), len(categories)), np.float32)
    for row, value in enumerate(x.tolist()):
        if value in last:
            expected[row, last[value]] = 1
    np.testing.assert_array_equal(run_tenon(content, [x])[0], expected)
