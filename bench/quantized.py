"""Times single quantized operators on Tenon and on onnxruntime, in turns in one process.

    python bench/quantized.py [--match dw] [--threads 1]

Prints, for each case, the least time of a run in microseconds and Tenon's share of onnxruntime's.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper
from turns import print_row

RNG = np.random.default_rng(0)

Case = tuple[bytes, dict[str, np.ndarray]]


def build(node: NodeProto, x: np.ndarray, constants: dict[str, np.ndarray]) -> Case:
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    result = TensorProto.FLOAT if x.dtype == np.float32 else TensorProto.UINT8
    graph.output[0].type.tensor_type.elem_type = result
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return model.SerializeToString(), {"x": x}


def scale(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def conv(channels: int, size: int, out: int, kernel: int, stride: int = 1, group: int = 1) -> Case:
    x = RNG.integers(0, 256, (1, channels, size, size)).astype(np.uint8)
    constants = {
        "xs": scale(0.02),
        "xz": np.array(120, np.uint8),
        "w": RNG.integers(-127, 128, (out, channels // group, kernel, kernel)).astype(np.int8),
        "ws": (np.abs(RNG.standard_normal(out)) * 0.01 + 0.001).astype(np.float32),
        "wz": np.zeros(out, np.int8),
        "ys": scale(0.05),
        "yz": np.array(128, np.uint8),
        "b": RNG.integers(-1000, 1000, out).astype(np.int32),
    }
    node = helper.make_node(
        "QLinearConv",
        ["x", *constants],
        ["y"],
        strides=[stride] * 2,
        pads=[kernel // 2] * 4,
        group=group,
    )
    return build(node, x, constants)


def matmul(m: int, n: int, k: int) -> Case:
    constants = {
        "xs": scale(0.02),
        "xz": np.array(120, np.uint8),
        "w": RNG.integers(-127, 128, (k, n)).astype(np.int8),
        "ws": scale(0.01),
        "wz": np.array(0, np.int8),
        "ys": scale(0.3),
        "yz": np.array(128, np.uint8),
    }
    node = helper.make_node("QLinearMatMul", ["x", *constants], ["y"])
    return build(node, RNG.integers(0, 256, (m, k)).astype(np.uint8), constants)


def nbits(m: int, n: int, k: int, block: int) -> Case:
    constants: dict[str, np.ndarray] = {
        "w": RNG.integers(0, 256, (n, k // block, block // 2)).astype(np.uint8),
        "s": (RNG.standard_normal((n, k // block)) * 0.01).astype(np.float32),
    }
    attributes: dict[str, Any] = {
        "K": k,
        "N": n,
        "bits": 4,
        "block_size": block,
        "accuracy_level": 4,
    }
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", **attributes
    )
    return build(node, RNG.standard_normal((m, k)).astype(np.float32), constants)


CASES = {
    "conv 3x3, 64 of 56 x 56 to 64": lambda: conv(64, 56, 64, 3),
    "conv 3x3, 128 of 28 x 28 to 128": lambda: conv(128, 28, 128, 3),
    "conv 3x3, 512 of 7 x 7 to 512": lambda: conv(512, 7, 512, 3),
    "conv 3x3 by 2, 64 of 56 x 56 to 128": lambda: conv(64, 56, 128, 3, 2),
    "conv 1x1, 64 of 56 x 56 to 256": lambda: conv(64, 56, 256, 1),
    "conv 1x1, 256 of 56 x 56 to 64": lambda: conv(256, 56, 64, 1),
    "conv 1x1, 512 of 14 x 14 to 512": lambda: conv(512, 14, 512, 1),
    "conv 7x7 by 2, 3 of 224 x 224 to 64": lambda: conv(3, 224, 64, 7, 2),
    "depthwise 3x3, 32 of 112 x 112": lambda: conv(32, 112, 32, 3, 1, 32),
    "depthwise 3x3 by 2, 96 of 112 x 112": lambda: conv(96, 112, 96, 3, 2, 96),
    "depthwise 3x3, 144 of 56 x 56": lambda: conv(144, 56, 144, 3, 1, 144),
    "depthwise 3x3, 384 of 14 x 14": lambda: conv(384, 14, 384, 3, 1, 384),
    "depthwise 3x3, 960 of 7 x 7": lambda: conv(960, 7, 960, 3, 1, 960),
    "depthwise 5x5, 240 of 28 x 28": lambda: conv(240, 28, 240, 5, 1, 240),
    "conv 3x3 of 32 groups, 128 of 28 x 28": lambda: conv(128, 28, 128, 3, 1, 32),
    "matmul 128 x 768 x 768": lambda: matmul(128, 768, 768),
    "matmul 1 x 3072 x 768": lambda: matmul(1, 3072, 768),
    "matmul 512 x 512 x 512": lambda: matmul(512, 512, 512),
    "4 bits 1 x 2048 x 2048, blocks of 32": lambda: nbits(1, 2048, 2048, 32),
    "4 bits 1 x 2048 x 2048, blocks of 128": lambda: nbits(1, 2048, 2048, 128),
    "4 bits 16 x 2048 x 2048, blocks of 32": lambda: nbits(16, 2048, 2048, 32),
    "4 bits 128 x 2048 x 2048, blocks of 32": lambda: nbits(128, 2048, 2048, 32),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="only the cases with this in their name")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    print("| operator | tenon, us | onnxruntime, us | share |\n| --- | --- | --- | --- |")
    for name, make in CASES.items():
        if arguments.match not in name:
            continue
        content, feeds = make()
        print_row(name, content, arguments.threads, feeds)


if __name__ == "__main__":
    main()
