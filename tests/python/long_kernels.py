"""Models of one node that take a second or so on one thread, and their inputs."""

import contrib
import numpy as np

floats = contrib.floats
LongRun = tuple[bytes, contrib.Arrays]  # a model and its inputs x0, x1, ...


def matmul() -> LongRun:
    inputs = [floats(4096, 4096), floats(4096, 4096)]
    return contrib.model("MatMul", inputs, {"y": np.float32}, domain=""), inputs


def matmul_of_constant() -> LongRun:
    inputs = [floats(8192, 4096), floats(4096, 2048)]
    return contrib.model("MatMul", inputs, {"y": np.float32}, domain="", constants=(1,)), inputs


def matmul_of_doubles() -> LongRun:
    inputs = [floats(1500, 1500, dtype=np.float64), floats(1500, 1500, dtype=np.float64)]
    return contrib.model("MatMul", inputs, {"y": np.float64}, domain=""), inputs


def matmul_of_integers() -> LongRun:
    inputs = [np.ones((8192, 8192), np.uint8), np.ones((8192, 4096), np.int8)]
    return contrib.model("MatMulInteger", inputs, {"y": np.int32}, domain=""), inputs


def convolution() -> LongRun:
    inputs = [floats(8, 128, 128, 128), floats(256, 128, 3, 3)]
    content = contrib.model(
        "Conv", inputs, {"y": np.float32}, domain="", constants=(1,), pads=[1, 1, 1, 1]
    )
    return content, inputs


def convolution_of_volumes() -> LongRun:
    inputs = [floats(1, 32, 48, 48, 48), floats(64, 32, 5, 5, 5)]
    return contrib.model("Conv", inputs, {"y": np.float32}, domain="", constants=(1,)), inputs


def transposed_convolution() -> LongRun:
    inputs = [floats(1, 256, 96, 96), floats(256, 256, 5, 5)]
    content = contrib.model("ConvTranspose", inputs, {"y": np.float32}, domain="", constants=(1,))
    return content, inputs


def attention() -> LongRun:
    inputs = [floats(1, 8192, 1024), floats(1, 8192, 1024), floats(1, 8192, 1024)]
    return contrib.model("MultiHeadAttention", inputs, {"y": np.float32}, num_heads=16), inputs


def lstm() -> LongRun:
    inputs = [floats(4000, 1, 256), floats(1, 2048, 256), floats(1, 2048, 512)]
    content = contrib.model(
        "LSTM", inputs, {"y": np.float32}, domain="", constants=(1, 2), hidden_size=512
    )
    return content, inputs


def einsum() -> LongRun:
    inputs = [floats(96, 96, 96), floats(96, 96, 96)]
    content = contrib.model(
        "Einsum", inputs, {"y": np.float32}, domain="", equation="abc,dec->abde"
    )
    return content, inputs


def determinant() -> LongRun:
    inputs = [floats(2500, 2500)]
    return contrib.model("Det", inputs, {"y": np.float32}, domain=""), inputs


def resize() -> LongRun:
    inputs = [floats(1, 32, 512, 512), None, np.array([1, 1, 5, 5], np.float32)]
    content = contrib.model(
        "Resize", inputs, {"y": np.float32}, domain="", constants=(2,), mode="cubic"
    )
    return content, inputs


def fourier_transform() -> LongRun:
    inputs = [floats(64, 65537, 1)]
    return contrib.model("DFT", inputs, {"y": np.float32}, domain="", axis=1), inputs


def maximum_of_windows() -> LongRun:
    inputs = [floats(1, 256, 512, 512)]
    content = contrib.model(
        "MaxPool", inputs, {"y": np.float32}, domain="", kernel_shape=[31, 31], pads=[15] * 4
    )
    return content, inputs


def non_maximum_suppression() -> LongRun:
    corners = np.random.default_rng(0).random((1, 60000, 2), np.float32)
    boxes = np.concatenate([corners, corners + 1e-5], 2)
    inputs = [boxes, floats(1, 1, 60000), np.array([60000]), np.array([0.5], np.float32)]
    return contrib.model("NonMaxSuppression", inputs, {"y": np.int64}, domain=""), inputs


def exponentials() -> LongRun:
    inputs = [floats(40_000_000, dtype=np.float64)]
    return contrib.model("Exp", inputs, {"y": np.float64}, domain=""), inputs


def greatest() -> LongRun:
    inputs = [floats(400, 100_000), np.array([50_000])]
    return contrib.model("TopK", inputs, {"v": np.float32, "i": np.int64}, domain=""), inputs


def sort() -> LongRun:
    inputs = [floats(12_000_000), np.array([12_000_000])]
    return contrib.model("TopK", inputs, {"v": np.float32, "i": np.int64}, domain=""), inputs


def unique_numbers() -> LongRun:
    inputs = [np.random.default_rng(0).integers(0, 1 << 62, 8_000_000)]
    return contrib.model("Unique", inputs, {"y": np.int64}, domain=""), inputs


def unique_rows() -> LongRun:
    inputs = [np.random.default_rng(0).integers(0, 8, (1_000_000, 4))]
    return contrib.model("Unique", inputs, {"y": np.int64}, domain="", axis=0), inputs


def regular_expressions() -> LongRun:
    inputs = [np.array(["a" * 60] * 100_000, object)]
    content = contrib.model(
        "RegexFullMatch", inputs, {"y": np.bool_}, domain="", opset=20, pattern="(a|aa)*b"
    )
    return content, inputs


HUGE_REGION = np.array([[0, 0, 3e5, 3e5]], np.float32)  # of 9e10 samples


def aligned_region() -> LongRun:
    inputs = [floats(1, 1, 9, 9), HUGE_REGION, np.zeros(1, np.int64)]
    return contrib.model("RoiAlign", inputs, {"y": np.float32}, domain=""), inputs


def gradient_of_aligned_region() -> LongRun:
    inputs = [floats(1, 1, 1, 1), floats(1, 1, 9, 9), HUGE_REGION, np.zeros(1, np.int64)]
    return contrib.model("RoiAlignGrad", inputs, {"dx": np.float32}), inputs


CASES = [
    matmul,
    matmul_of_constant,
    matmul_of_doubles,
    matmul_of_integers,
    convolution,
    convolution_of_volumes,
    transposed_convolution,
    attention,
    lstm,
    einsum,
    determinant,
    resize,
    fourier_transform,
    maximum_of_windows,
    non_maximum_suppression,
    exponentials,
    greatest,
    sort,
    unique_numbers,
    unique_rows,
    regular_expressions,
    aligned_region,
    gradient_of_aligned_region,
]
