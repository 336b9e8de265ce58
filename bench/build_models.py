"""Builds the benchmark models: true architectures and shapes, seeded random weights.

Usage: build_models.py [--folder build/models] [--check] [NAME...]

Writes NAME.onnx for every model, or the named ones, unless the file is there already. --check
also passes each through onnx.checker and one run of onnxruntime.
"""

import argparse
import functools
import pathlib
import sys
from collections.abc import Callable

import cases
import numpy as np
import onnx
import onnxruntime
from models import convolutional, quantized, small, transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent

MODELS: dict[str, Callable[[str], onnx.ModelProto]] = {
    "bert_base": functools.partial(
        transformers.bert, sizes=transformers.BERT_BASE, opset=13, pooler=True
    ),
    "minilm_l6": functools.partial(
        transformers.bert, sizes=transformers.MINILM_L6, opset=13, pooler=False
    ),
    "minilm_l6_op17": functools.partial(
        transformers.bert, sizes=transformers.MINILM_L6, opset=17, pooler=False
    ),
    "gpt2": transformers.gpt2,
    "vit_b_16": transformers.vit_b_16,
    "whisper_tiny_encoder": transformers.whisper_tiny_encoder,
    "resnet18": functools.partial(convolutional.resnet, depths=(2, 2, 2, 2), bottleneck=False),
    "resnet50": functools.partial(convolutional.resnet, depths=(3, 4, 6, 3), bottleneck=True),
    "mobilenet_v2": convolutional.mobilenet_v2,
    "mobilenet_v3_small": functools.partial(
        convolutional.mobilenet_v3, blocks=convolutional.V3_SMALL, last=1024
    ),
    "mobilenet_v3_large": functools.partial(
        convolutional.mobilenet_v3, blocks=convolutional.V3_LARGE, last=1280
    ),
    "efficientnet_b0": convolutional.efficientnet_b0,
    "convnext_tiny": convolutional.convnext_tiny,
    "densenet121": convolutional.densenet121,
    "yolov8n": convolutional.yolov8n,
    "squeezenet": convolutional.squeezenet,
    "vgg11": functools.partial(
        convolutional.vgg, stages=((64,), (128,), (256, 256), (512, 512), (512, 512))
    ),
    "unet": functools.partial(convolutional.unet, widths=(32, 64, 128, 256)),
    "lstm_1_512": functools.partial(
        small.recurrent, op_type="LSTM", inputs=512, hidden=512, layers=1, bidirectional=False
    ),
    "lstm_bi2_256": functools.partial(
        small.recurrent, op_type="LSTM", inputs=128, hidden=256, layers=2, bidirectional=True
    ),
    "gru_2_256": functools.partial(
        small.recurrent, op_type="GRU", inputs=128, hidden=256, layers=2, bidirectional=False
    ),
    "mlp_mnist": functools.partial(small.perceptron, widths=(784, 512, 512, 10)),
    "mlp_tiny": functools.partial(small.perceptron, widths=(8, 64, 64, 4)),
    "identity_tiny": small.identity,
    "chain200_1024": functools.partial(small.chain, length=200, size=1024),
    "chain200_relu_1024": functools.partial(small.chain, length=200, size=1024, rectified=True),
    "chain200_65536": functools.partial(small.chain, length=200, size=65536),
}

# Models that are quantized from these: their names have the form as a suffix.
STATIC = {
    "resnet50": ("qdq", "qdq_s8", "qdq_u8mid"),
    "mobilenet_v2": ("qdq", "qdq_s8"),
    "mobilenet_v3_large": ("qdq",),
    "efficientnet_b0": ("qdq",),
    "yolov8n": ("qdq",),
    "vit_b_16": ("qdq",),
    "minilm_l6": ("qdq",),
}
INPUTS = {"yolov8n": cases.LARGE_PICTURE, "minilm_l6": cases.tokens(1, 128)}
DYNAMIC = ("bert_base", "minilm_l6", "gpt2")
for source, forms in STATIC.items():
    for form in forms:
        MODELS[f"{source}_{form}"] = functools.partial(
            quantized.static,
            make=MODELS[source],
            inputs=INPUTS.get(source, cases.PICTURE),
            form=form,
        )
for source in DYNAMIC:
    MODELS[f"{source}_int8"] = functools.partial(quantized.dynamic, make=MODELS[source])
for source in ("resnet50", "minilm_l6"):
    MODELS[f"{source}_fp16"] = functools.partial(quantized.half, make=MODELS[source])
for level in (0, 4):
    MODELS[f"smollm_135m_int4_acc{level}"] = functools.partial(
        transformers.llama_int4, sizes=transformers.SMOLLM_135M, accuracy_level=level
    )


def build_missing(folder: pathlib.Path, names: list[str]) -> list[pathlib.Path]:
    """Paths of the named models, which are built if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in names:
        path = folder / f"{name}.onnx"
        paths.append(path)
        if not path.exists():
            print(f"building {path}", flush=True)
            partial = path.with_suffix(".partial")
            onnx.save(MODELS[name](name), partial)
            partial.rename(path)  # an interrupted build leaves no partial model
    return paths


def check(path: pathlib.Path) -> None:
    """Raises unless the file is valid ONNX and every case of it gives finite outputs."""
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path)
    for case in cases.GENERATED:
        if case.path == path.name:
            outputs = session.run(None, case.inputs(path.parent))
            shapes = ", ".join(str(list(output.shape)) for output in outputs[:2])
            if not all(np.isfinite(output).all() for output in outputs):
                raise ValueError(f"{case.name}: an output is not finite")
            print(f"{case.name}: valid, outputs {shapes}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "models")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(MODELS)
    if unknown:
        parser.error(f"unknown model {', '.join(sorted(unknown))}; known are {', '.join(MODELS)}")
    paths = build_missing(arguments.folder, arguments.names or list(MODELS))
    if arguments.check:
        for path in paths:
            check(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
