"""Writes what train_digits.cpp trains from: artifacts of the network and the data.

Usage: make_artifacts.py FOLDER

The network is that of examples/digits/digits.onnx with random weights. It needs no PyTorch. Writes
to FOLDER:

  checkpoint, training_model.onnx, eval_model.onnx, optimizer_model.onnx
  train_pictures.bin, test_pictures.bin   float32 [n, 1, 8, 8], as they lie in memory
  train_labels.bin, test_labels.bin       int64 [n]
"""

import math
import pathlib
import sys

import numpy as np

try:
    import onnx
    from digits_data import load
    from onnx import numpy_helper
    from tenon.training.artifacts import LossType, OptimType, generate_artifacts
except ImportError as error:
    sys.exit(f"make_artifacts.py: {error}. It needs Tenon, onnx and scikit-learn.")

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits" / "digits.onnx"


def untrained() -> tuple[onnx.ModelProto, list[str]]:
    """The network with random weights and zero biases, and the names of these."""
    model = onnx.load(DIGITS)
    random = np.random.default_rng(0)
    names = []
    for parameter in model.graph.initializer:
        if parameter.data_type != onnx.TensorProto.FLOAT:
            continue  # a shape
        inputs = math.prod(parameter.dims[1:])  # of each output; none of a bias
        deviation = math.sqrt(2 / inputs) if len(parameter.dims) > 1 else 0
        values = random.normal(0, deviation, parameter.dims).astype(np.float32)
        parameter.CopyFrom(numpy_helper.from_array(values, parameter.name))
        names.append(parameter.name)
    return model, names


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    model, names = untrained()
    softmax = model.graph.node[-1]
    generate_artifacts(
        model,
        requires_grad=names,
        loss=LossType.CrossEntropyLoss,
        loss_input_names=[softmax.input[0]],  # the logits
        additional_output_names=[softmax.output[0]],
        optimizer=OptimType.AdamW,
        artifact_directory=folder,
    )
    for name, digits in zip(("train", "test"), load(), strict=True):
        digits.pictures.tofile(folder / f"{name}_pictures.bin")
        digits.labels.astype(np.int64).tofile(folder / f"{name}_labels.bin")


if __name__ == "__main__":
    main()
