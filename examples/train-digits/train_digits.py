"""Trains the demo's digit classifier from random weights, with PyTorch on Tenon.

Usage: train_digits.py [FOLDER]

The network is a small convolutional one: 3x3 convolution, ReLU, 2x2 max pooling, dense, ReLU,
dense. `torch.compile(network, backend="tenon")` computes it and its gradients; the rest is
PyTorch's.

Writes to FOLDER (default: examples/digits) what the demo shows: digits.onnx, labels.txt and
samples/: for every digit, the first of the test pictures, named by its digit. They are not selected
by whether they are recognized.
"""

import logging
import pathlib
import struct
import sys
import time
import warnings
import zlib

import numpy as np

try:
    import onnx
    import onnxscript  # noqa: F401  torch.onnx.export needs it
    import tenon.torch  # registers the backend
    import torch
    from digits_data import CLASSES, Digits, load
    from torch import Tensor, nn
except ImportError as error:
    sys.exit(f"train_digits.py: {error}. `./dev demo --training` installs what is missing.")

DEMO = pathlib.Path(__file__).resolve().parents[1] / "digits"
EPOCHS = 40
EPOCHS_A_REPORT = 10
BATCH = 32


class Network(nn.Module):
    """image [batch, 1, 8, 8] in [0, 1] to logits [batch, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.hidden = nn.Linear(16 * 4 * 4, 64)
        self.output = nn.Linear(64, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        features = nn.functional.max_pool2d(self.conv(image).relu(), 2)
        logits: Tensor = self.output(self.hidden(features.flatten(1)).relu())
        return logits


def train(network: Network, data: Digits) -> None:
    """Shuffled batches, each shifted sideways by up to a pixel."""
    pictures, labels = map(torch.from_numpy, data)
    compiled = torch.compile(network, backend="tenon")
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    batches = len(pictures) // BATCH  # of an epoch, which leaves fewer pictures than a batch out
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, EPOCHS * batches)
    start = time.perf_counter()
    for epoch in range(1, EPOCHS + 1):
        total = 0.0
        for batch in torch.randperm(len(pictures))[: batches * BATCH].view(batches, BATCH):
            shifted = pictures[batch].roll(int(torch.randint(-1, 2, ())), dims=3)
            loss = nn.functional.cross_entropy(compiled(shifted), labels[batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            total += loss.item()
        if epoch % EPOCHS_A_REPORT == 0:
            rate = EPOCHS_A_REPORT * batches * BATCH / (time.perf_counter() - start)
            print(f"epoch {epoch}: loss {total / batches:.4f}, {rate:.0f} pictures per second")
            start = time.perf_counter()


class Classifier(Network):
    """image [batch, 1, 8, 8] to probabilities [batch, 10]: what the demo runs."""

    def forward(self, image: Tensor) -> Tensor:
        return super().forward(image).softmax(1)


def export(network: Network, path: pathlib.Path) -> None:
    classifier = Classifier().eval()
    classifier.load_state_dict(network.state_dict())
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # else it misses torchvision
    warnings.simplefilter("ignore", FutureWarning)  # of PyTorch about itself
    program = torch.onnx.export(
        classifier,
        (torch.zeros(2, 1, 8, 8),),
        input_names=["image"],
        output_names=["probabilities"],
        dynamic_shapes=({0: "batch"},),
        opset_version=18,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    model = program.model_proto
    model.ir_version = 8  # that of opset 18, which older runtimes read, too
    graph = model.graph
    del graph.value_info[:]  # types that follow from the graph
    for part in (*graph.node, *graph.input, *graph.output):
        part.ClearField("metadata_props")  # the traces of the calls that made it
    onnx.save(model, path)


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
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    training, test = load()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # batches of this size are not worth sharing
    network = Network()
    train(network, training)
    export(network, folder / "digits.onnx")

    session = tenon.InferenceSession(folder / "digits.onnx")
    (probabilities,) = session.run(None, {"image": test.pictures})
    right = int((probabilities.argmax(1) == test.labels).sum())
    print(
        f"{right} of {len(test.labels)} unseen pictures are right: {right / len(test.labels):.2%}"
    )
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in range(CLASSES)))
    for digit in range(CLASSES):
        first = int(np.flatnonzero(test.labels == digit)[0])
        write_png(folder / "samples" / f"{digit}.png", test.pictures[first, 0])


if __name__ == "__main__":
    main()
