"""Pools whose window is larger than the padded input, as ceil_mode allows it."""

import itertools
import math

import contrib
import numpy as np
import pytest


def steps(size: int, kernel: int, stride: int, begin: int, end: int) -> int:
    free = size + begin + end - kernel
    return min(math.ceil(free / stride) + 1, math.ceil((size + begin) / stride))


def pooled(op_type: str, x: np.ndarray, options: dict) -> np.ndarray:
    """In simple loops over a square image; elements outside the pads do not count."""
    kernel, stride = options["kernel_shape"][0], options["strides"][0]
    top, left, bottom, right = options["pads"]
    size = x.shape[2]
    rows, columns = (
        steps(size, kernel, stride, top, bottom),
        steps(size, kernel, stride, left, right),
    )
    y = np.zeros((1, x.shape[1], rows, columns), np.float32)
    for i, j in itertools.product(range(rows), range(columns)):
        first, second = i * stride - top, j * stride - left
        inside = x[
            :, :, max(0, first) : max(0, first + kernel), max(0, second) : max(0, second + kernel)
        ]
        height = min(first + kernel, size + bottom) - first
        width = min(second + kernel, size + right) - second
        if op_type == "MaxPool":
            y[:, :, i, j] = inside.max((2, 3))
        elif options["count_include_pad"]:
            y[:, :, i, j] = inside.sum((2, 3)) / (height * width)
        else:
            y[:, :, i, j] = inside.mean((2, 3))
    return y


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1]])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_ceil_mode(op_type: str, pads: list, size: int, stride: int) -> None:
    for kernel, channels, counts in itertools.product([2, 3, 4, 5], [1, 16], [0, 1]):
        if kernel - size - min(pads[0] + pads[2], pads[1] + pads[3]) >= 2 * stride:
            continue
        options = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": pads}
        options["ceil_mode"] = 1
        if op_type == "AveragePool":
            options["count_include_pad"] = counts
        x = contrib.floats(1, channels, size, size)
        content = contrib.model(op_type, [x], {"y": np.float32}, domain="", opset=19, **options)
        (y,) = contrib.run_tenon(content, [x])
        np.testing.assert_allclose(y, pooled(op_type, x, options), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kernel", "ceil_mode"), [(3, 0), (9, 1), (2**31 - 1, 1)])
def test_windows_that_have_no_place(kernel: int, ceil_mode: int) -> None:
    x = contrib.floats(1, 1, 2)
    options = {"kernel_shape": [kernel], "strides": [2], "ceil_mode": ceil_mode}
    content = contrib.model("MaxPool", [x], {"y": np.float32}, domain="", opset=19, **options)
    with pytest.raises(Exception, match=rf"kernel spans {kernel} elements"):
        contrib.run_tenon(content, [x])


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 150, 6, 7), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}),
        ((1, 5, 9), {"kernel_shape": [3], "strides": [2], "dilations": [2]}),
        ((1, 3, 5, 6, 4), {"kernel_shape": [2, 2, 2], "strides": [2, 1, 2], "ceil_mode": 1}),
        ((1, 2, 100, 120), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
        ((0, 2, 5, 5), {"kernel_shape": [2, 2]}),
    ],
)
def test_max_pool_of_bytes(dtype: type, shape: tuple, options: dict) -> None:
    """Without indices they are computed as floats, with indices they are not."""
    info = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(info.min, info.max + 1, shape).astype(dtype)
    contrib.check("MaxPool", [x], {"y": dtype}, domain="", opset=12, **options)
    outputs = {"y": dtype, "indices": np.int64}
    contrib.check("MaxPool", [x], outputs, domain="", opset=12, **options)
