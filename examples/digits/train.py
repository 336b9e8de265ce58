"""Trains the digit classifier of this example and writes it as ONNX.

Usage: train.py [FOLDER]

The data is scikit-learn's copy of the UCI handwritten digits: 1797 grey pictures of 8 x 8 pixels
with values from 0 to 16. The network is a small convolutional one in plain NumPy:
3x3 convolution, ReLU, 2x2 max pooling, dense, ReLU, dense, softmax.

Writes to FOLDER (default: beside this script) digits.onnx, labels.txt and samples/: for every
digit, the first of the test pictures, named by its digit. They are not selected by whether they are
recognized: the network misses 3 of the 360 test pictures, and two of these, a 5 and a 9, are the
first of their digit.
"""

import pathlib
import struct
import sys
import zlib

import numpy as np
import onnx
import onnx.reference
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIDE = 8  # of a picture
LEVELS = 16  # the brightest pixel
CHANNELS = 16
HIDDEN = 64
CLASSES = 10
PATCH = 9  # pixels under the 3 x 3 kernel
POOLED = (SIDE // 2) ** 2

Parameters = dict[str, np.ndarray]


def initial_parameters(random: np.random.Generator) -> Parameters:
    def normal(inputs: int, outputs: int) -> np.ndarray:
        return random.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)

    return {
        "conv_weight": normal(PATCH, CHANNELS),
        "conv_bias": np.zeros(CHANNELS, np.float32),
        "hidden_weight": normal(CHANNELS * POOLED, HIDDEN),
        "hidden_bias": np.zeros(HIDDEN, np.float32),
        "output_weight": normal(HIDDEN, CLASSES),
        "output_bias": np.zeros(CLASSES, np.float32),
    }


def patches(pictures: np.ndarray) -> np.ndarray:
    """[n, 8, 8] to [n, 8, 8, 9]: the 3 x 3 neighbourhood of every pixel, zero outside."""
    padded = np.pad(pictures, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return windows.reshape(*pictures.shape, PATCH)


def tiles(feature_maps: np.ndarray) -> np.ndarray:
    """[n, 8, 8, c] to [n, 4, 4, c, 4]: the pixels of every 2 x 2 tile on the last axis."""
    n, half = len(feature_maps), SIDE // 2
    split = feature_maps.reshape(n, half, 2, half, 2, CHANNELS)
    return split.transpose(0, 1, 3, 5, 2, 4).reshape(n, half, half, CHANNELS, 4)


def loss_and_gradients(
    parameters: Parameters, pictures: np.ndarray, labels: np.ndarray
) -> tuple[float, Parameters]:
    """Mean cross entropy of a batch and its gradient for every parameter."""
    n = len(pictures)
    columns = patches(pictures)
    maps = tiles(columns @ parameters["conv_weight"] + parameters["conv_bias"])
    pooled = np.maximum(maps.max(-1), 0)
    # Channels first, as the Flatten of the ONNX graph sees them.
    flat = pooled.transpose(0, 3, 1, 2).reshape(n, -1)
    hidden = np.maximum(flat @ parameters["hidden_weight"] + parameters["hidden_bias"], 0)
    logits = hidden @ parameters["output_weight"] + parameters["output_bias"]
    exponentials = np.exp(logits - logits.max(1, keepdims=True))
    probabilities = exponentials / exponentials.sum(1, keepdims=True)
    loss = -np.log(probabilities[np.arange(n), labels] + 1e-9).mean()

    d_logits = probabilities
    d_logits[np.arange(n), labels] -= 1
    d_logits /= n
    d_hidden = (d_logits @ parameters["output_weight"].T) * (hidden > 0)
    d_flat = (d_hidden @ parameters["hidden_weight"].T) * (flat > 0)
    half = SIDE // 2
    d_pooled = d_flat.reshape(n, CHANNELS, half, half).transpose(0, 2, 3, 1)
    chosen = maps == maps.max(-1, keepdims=True)
    d_tiles = d_pooled[..., None] * chosen
    d_maps = d_tiles.reshape(n, half, half, CHANNELS, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    d_maps = d_maps.reshape(-1, CHANNELS)
    return float(loss), {
        "conv_weight": columns.reshape(-1, PATCH).T @ d_maps,
        "conv_bias": d_maps.sum(0),
        "hidden_weight": flat.T @ d_hidden,
        "hidden_bias": d_hidden.sum(0),
        "output_weight": hidden.T @ d_logits,
        "output_bias": d_logits.sum(0),
    }


def train(pictures: np.ndarray, labels: np.ndarray, epochs: int = 40) -> Parameters:
    """Adam over shuffled batches of 32, every batch shifted sideways by up to a pixel."""
    random = np.random.default_rng(7)
    parameters = initial_parameters(random)
    mean = {name: np.zeros_like(value) for name, value in parameters.items()}
    square = {name: np.zeros_like(value) for name, value in parameters.items()}
    step = 0
    for epoch in range(epochs):
        rate = 2e-3 * (1 - epoch / epochs)
        for batch in np.array_split(random.permutation(len(pictures)), len(pictures) // 32):
            shifted = np.roll(pictures[batch], random.integers(-1, 2), axis=2)
            _, gradients = loss_and_gradients(parameters, shifted, labels[batch])
            step += 1
            for name, gradient in gradients.items():
                mean[name] += 0.1 * (gradient - mean[name])
                square[name] += 0.001 * (gradient**2 - square[name])
                direction = mean[name] / (1 - 0.9**step)
                scale = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
                parameters[name] -= (rate * direction / scale).astype(np.float32)
    return parameters


def to_onnx(parameters: Parameters) -> onnx.ModelProto:
    """The network with softmax: image [batch, 1, 8, 8] in [0, 1] to probabilities [batch, 10]."""
    kernel = parameters["conv_weight"].T.reshape(CHANNELS, 1, 3, 3)
    weights = parameters | {"conv_weight": kernel}
    nodes = [
        helper.make_node(
            "Conv", ["image", "conv_weight", "conv_bias"], ["conv"], pads=[1] * 4, name="conv"
        ),
        helper.make_node("Relu", ["conv"], ["relu"], name="relu"),
        helper.make_node(
            "MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2], name="pool"
        ),
        helper.make_node("Flatten", ["pool"], ["flat"], name="flatten"),
        helper.make_node("Gemm", ["flat", "hidden_weight", "hidden_bias"], ["dense"], name="dense"),
        helper.make_node("Relu", ["dense"], ["hidden"], name="hidden_relu"),
        helper.make_node(
            "Gemm", ["hidden", "output_weight", "output_bias"], ["logits"], name="classify"
        ),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1, name="softmax"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])],
        [
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            for name, value in weights.items()
        ],
    )
    model = helper.make_model(
        graph,
        producer_name="tenon-examples",
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def accuracy(model: onnx.ModelProto, pictures: np.ndarray, labels: np.ndarray) -> float:
    """Uses ONNX's own reference evaluator, to check the file and not the training code."""
    evaluator = onnx.reference.ReferenceEvaluator(model)
    probabilities = np.asarray(evaluator.run(None, {"image": pictures[:, None]}))[0]
    return float((probabilities.argmax(1) == labels).mean())


def write_png(path: pathlib.Path, picture: np.ndarray) -> None:
    """An 8-bit grey PNG of a picture in [0, 1]."""
    pixels = np.round(picture * 255).astype(np.uint8)
    height, width = pixels.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # every row starts with "no filter"
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    pictures = (digits.images / LEVELS).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        pictures, digits.target, test_size=0.2, random_state=7, stratify=digits.target
    )
    model = to_onnx(train(train_x, train_y))
    print(f"accuracy on {len(test_y)} unseen pictures: {accuracy(model, test_x, test_y):.2%}")
    onnx.save(model, folder / "digits.onnx")
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in digits.target_names))
    for digit in range(CLASSES):
        first = int(np.flatnonzero(test_y == digit)[0])
        write_png(folder / "samples" / f"{digit}.png", test_x[first])


if __name__ == "__main__":
    main()
