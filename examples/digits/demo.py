"""Reads handwritten digits with Tenon: pictures, predictions, confidence and timing.

Usage: demo.py [--model FILE] [PICTURE.png...]

The pictures are 8-bit grey ones of 8 x 8; default: those in samples/. FILE is a model that
examples/train-digits has trained; default: digits.onnx. A picture that is named by its digit, as
the samples are, is marked if the prediction is wrong.
"""

import argparse
import pathlib
import struct
import sys
import time
import zlib

import numpy as np

try:
    import tenon
except ImportError as error:
    sys.exit(f"demo.py: cannot import tenon ({error}). Build it first: ./dev demo does.")

FOLDER = pathlib.Path(__file__).resolve().parent
SIDE = 8
SHADES = " ░▒▓█"
PICTURES_A_ROW = 5
TIMED_RUNS = 1000


def read_png(path: pathlib.Path) -> np.ndarray:
    """A grey 8-bit PNG without filters, as train_digits.py writes them, in [0, 1]."""
    content = path.read_bytes()
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        sys.exit(f"demo.py: {path} is no PNG file")
    position, compressed = 8, b""
    while position < len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        chunk = content[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            if struct.unpack(">IIBB", chunk[:10]) != (SIDE, SIDE, 8, 0):
                sys.exit(f"demo.py: {path}: expected 8 x 8 grey pixels of 8 bits")
        elif kind == b"IDAT":
            compressed += chunk
        position += length + 12  # the chunk's length, kind and checksum
    rows = np.frombuffer(zlib.decompress(compressed), np.uint8).reshape(SIDE, SIDE + 1)
    if rows[:, 0].any():
        sys.exit(f"demo.py: {path}: expected rows without a filter")
    return rows[:, 1:].astype(np.float32) / 255


def drawing(picture: np.ndarray) -> list[str]:
    """One line a row, two characters a pixel."""
    shades = np.round(picture * (len(SHADES) - 1)).astype(int)
    return ["".join(SHADES[shade] * 2 for shade in row) for row in shades]


def print_pictures(pictures: np.ndarray, captions: list[str]) -> None:
    """Side by side, each over its caption."""
    width = 2 * SIDE + 2
    for start in range(0, len(pictures), PICTURES_A_ROW):
        chosen = slice(start, start + PICTURES_A_ROW)
        for line in zip(*map(drawing, pictures[chosen]), strict=True):
            print(" ".join(part.ljust(width) for part in line))
        print(" ".join(caption.center(2 * SIDE).ljust(width) for caption in captions[chosen]))
        print()


def caption(labels: list[str], probabilities: np.ndarray, name: str) -> str:
    """The prediction with its confidence, and the true digit if the name says another one."""
    best = probabilities.argmax()
    miss = f", is {name}" if name in labels and name != labels[best] else ""
    return f"{labels[best]} ({probabilities[best]:.1%}){miss}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Reads handwritten digits with Tenon.")
    parser.add_argument("--model", type=pathlib.Path, default=FOLDER / "digits.onnx")
    parser.add_argument("pictures", type=pathlib.Path, nargs="*", metavar="PICTURE.png")
    options = parser.parse_args()
    paths = options.pictures or sorted(FOLDER.glob("samples/*.png"))
    pictures = np.stack([read_png(path) for path in paths])
    labels = (FOLDER / "labels.txt").read_text().split()

    start = time.perf_counter()
    session = tenon.InferenceSession(options.model)
    created_ms = (time.perf_counter() - start) * 1e3
    feeds = {session.get_inputs()[0].name: pictures[:, None]}
    (probabilities,) = session.run(None, feeds)
    start = time.perf_counter()
    for _ in range(TIMED_RUNS):
        session.run(None, feeds)
    run_us = (time.perf_counter() - start) / TIMED_RUNS * 1e6

    captions = [
        caption(labels, row, path.stem) for row, path in zip(probabilities, paths, strict=True)
    ]
    print_pictures(pictures, captions)
    print(f"session created in {created_ms:.2f} ms; {len(pictures)} pictures in {run_us:.1f} us")


if __name__ == "__main__":
    main()
