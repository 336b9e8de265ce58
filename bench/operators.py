"""Times single operators on Tenon and on onnxruntime, in turns, that have no other benchmark.

    python bench/operators.py [--match pad] [--threads 1]

Prints, for each case, the least time of a run in microseconds and Tenon's share of onnxruntime's.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from onnx import helper, numpy_helper
from turns import print_row

RNG = np.random.default_rng(0)

Case = tuple[bytes, dict[str, np.ndarray]]


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape).astype(np.uint8)


def case(op_type: str, feeds: list[np.ndarray], *constants: Any, **attributes: Any) -> Case:
    """A model with one node. Inputs are fed, then constants; None is an absent input.

    `opset` and the number of `outputs` are told like attributes.
    """
    opset, outputs = attributes.pop("opset", 21), attributes.pop("outputs", 1)
    domain = "com.microsoft" if op_type.startswith("QLinear") else ""
    fed = {f"x{i}": x for i, x in enumerate(feeds)}
    named = {f"c{i}": np.asarray(x) for i, x in enumerate(constants) if x is not None}
    names = [*fed, *("" if x is None else f"c{i}" for i, x in enumerate(constants))]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, results, domain=domain, **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in fed.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(x, name) for name, x in named.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString(), fed


def average_pool(shape: tuple[int, ...], kernel: int, stride: int, pad: int) -> Case:
    quantization = [np.float32(0.02), np.uint8(3), np.float32(0.03), np.uint8(5)]
    options = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    return case("QLinearAveragePool", [bytes_(*shape)], *quantization, **options)


def max_pool(channels: int, size: int, kernel: int, stride: int, pad: int) -> Case:
    options = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    return case("MaxPool", [bytes_(1, channels, size, size)], **options)


def col2im(channels: int, size: int, kernel: int, stride: int, pad: int) -> Case:
    blocks = ((size + 2 * pad - kernel) // stride + 1) ** 2
    x = floats(1, channels * kernel**2, blocks)
    options = {"strides": [stride] * 2, "pads": [pad] * 4}
    return case("Col2Im", [x], [size] * 2, [kernel] * 2, **options)


def grid_sample(channels: int, size: int) -> Case:
    line = np.linspace(-1, 1, size)
    grid = np.stack(np.meshgrid(line, line), -1)[None] + floats(1, size, size, 2) / 10
    inputs = [floats(1, channels, size, size), grid.astype(np.float32)]
    return case("GridSample", inputs, mode="linear", padding_mode="zeros")


def shift(dtype: type, amounts: tuple[int, ...], direction: str) -> Case:
    x: np.ndarray = RNG.integers(0, 2**7, 1_000_000).astype(dtype)
    by: np.ndarray = RNG.integers(0, 8, amounts).astype(dtype)
    return case("BitShift", [x, by], direction=direction)


def pad(x: np.ndarray, size: int) -> Case:
    return case("Pad", [x], [0, 0, size, size, 0, 0, size, size], mode="reflect")


def resize(channels: int, mode: str) -> Case:
    scales = np.array([1, 2, 2, 1], np.float32)
    return case("Resize", [floats(1, 64, 64, channels)], None, scales, mode=mode)


CASES = {
    "uint8 average 2x2 by 2, 64 of 56 x 56": lambda: average_pool((1, 64, 56, 56), 2, 2, 0),
    "uint8 average 3x3, 64 of 56 x 56": lambda: average_pool((1, 64, 56, 56), 3, 1, 1),
    "uint8 average 7x7, 512 of 7 x 7": lambda: average_pool((1, 512, 7, 7), 7, 1, 0),
    "uint8 maximum 3x3 by 2, 64 of 112 x 112": lambda: max_pool(64, 112, 3, 2, 1),
    "uint8 maximum 5x5, 64 of 20 x 20": lambda: max_pool(64, 20, 5, 1, 2),
    "Col2Im 3x3, 64 of 8 x 8": lambda: col2im(64, 8, 3, 1, 1),
    "Col2Im 3x3, 64 of 28 x 28": lambda: col2im(64, 28, 3, 1, 1),
    "Col2Im 4x4 by 2, 64 of 16 x 16": lambda: col2im(64, 16, 4, 2, 1),
    "Col2Im 5x5, 64 of 14 x 14": lambda: col2im(64, 14, 5, 1, 2),
    "GridSample linear, 3 of 224 x 224": lambda: grid_sample(3, 224),
    "GridSample linear, 32 of 64 x 64": lambda: grid_sample(32, 64),
    "BitShift left, a million uint8 by as many": lambda: shift(np.uint8, (1_000_000,), "LEFT"),
    "BitShift right, a million uint32 by as many": lambda: shift(np.uint32, (1_000_000,), "RIGHT"),
    "BitShift left, a million uint32 by one": lambda: shift(np.uint32, (), "LEFT"),
    "Pad reflect, 3 of 224 x 224 uint8": lambda: pad(bytes_(1, 3, 224, 224), 3),
    "Pad reflect, 64 of 56 x 56 uint8": lambda: pad(bytes_(1, 64, 56, 56), 1),
    "Pad reflect, 64 of 56 x 56 floats": lambda: pad(floats(1, 64, 56, 56), 1),
    "Resize cubic, 64 x 64 of 3 channels, channels last": lambda: resize(3, "cubic"),
    "Resize cubic, 64 x 64 of 12 channels, channels last": lambda: resize(12, "cubic"),
    "Resize linear, 64 x 64 of 24 channels, channels last": lambda: resize(24, "linear"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="only the cases with this in their name")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print("| operator | tenon, us | onnxruntime, us | share |\n| --- | --- | --- | --- |")
    for name, make in CASES.items():
        if arguments.match in name:
            content, feeds = make()
            print_row(name, content, arguments.threads, feeds)


if __name__ == "__main__":
    main()
