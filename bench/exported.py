"""Compares Tenon with onnxruntime on models that PyTorch exports from other packages.

    pip install -r requirements-torch.txt torchvision timm
    python bench/exported.py [--models NAME...] [--form FORM] [--threads N...] [--quick]

The models are architectures of torchvision, timm and transformers that the project's benchmark does
not have, with random weights. Each is exported once, to build/exported. Those of a package that
cannot be imported are left out, with a message. Prints the table of compare.py.

The form is float32, or what onnxruntime's tools make of it: float16; qdq, quantized statically with
uint8 activations and int8 weights per channel; dynamic, quantized dynamically; int4, products with
weights of 4 bits in blocks of 32 (needs the package onnx_ir). Models that a tool fails on are left
out, too, with a message.
"""

import argparse
import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Callable

import numpy as np
import onnx
import torch
from cases import Case, uniform
from compare import ROOT, Plan, is_wanted, machine, measure_case, parser_of, progress
from report import markdown

FOLDER = ROOT / "build" / "exported"
OPSET = 17

TORCHVISION = """alexnet googlenet mnasnet1_0 regnet_x_800mf regnet_y_400mf resnext50_32x4d
    efficientnet_v2_s swin_t swin_v2_t inception_v3 video.r3d_18 video.mc3_18""".split()
TIMM = """cait_xxs24_224 coat_lite_tiny cspdarknet53 davit_tiny dla34 dpn68 eca_nfnet_l0
    edgenext_small efficientformer_l1 fastvit_t8 ghostnet_100 gmlp_s16_224 hrnet_w18_small
    levit_128s mixer_s16_224 mobilenetv4_conv_small mobileone_s0 mobilevit_s poolformer_s12
    pvt_v2_b0 repvgg_a0 res2net50_26w_4s resmlp_12_224 rexnet_100 selecsls42b tinynet_a
    vovnet39a""".split()
TRANSFORMERS = """Albert Bart CLIPVision DebertaV2 DistilBert Electra Hubert MobileBert
    MPNet Roberta SqueezeBert""".split()

Size = tuple[int, ...]
Made = tuple[torch.nn.Module, Size]  # a model, and the shape of its input


def of_torchvision(name: str) -> Made:
    kind, _, function = name.rpartition(".")
    module = importlib.import_module(f"torchvision.models.{kind}".rstrip("."))
    model = getattr(module, function)(weights=None)
    if name.startswith("video."):
        return model, (1, 3, 8, 112, 112)
    side = 299 if name == "inception_v3" else 224
    return model, (1, 3, side, side)


def of_timm(name: str) -> Made:
    model = importlib.import_module("timm").create_model(name, pretrained=False)
    return model, (1, *model.default_cfg["input_size"])


class FirstOutput(torch.nn.Module):
    """A model of transformers that takes one tensor and gives its first output."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, return_dict=False)[0]


def of_transformers(name: str) -> Made:
    package = importlib.import_module("transformers")
    config = getattr(package, f"{name}Config")(num_hidden_layers=4)
    config.use_cache = False
    if name == "Bart":
        config.encoder_layers = config.decoder_layers = 2
    model = FirstOutput(getattr(package, f"{name}Model")(config))
    if name == "CLIPVision":
        return model, (1, 3, 224, 224)
    return model, (1, 16000) if name == "Hubert" else (1, 128)


PACKAGES: dict[str, tuple[list[str], Callable[[str], Made]]] = {
    "torchvision": (TORCHVISION, of_torchvision),
    "timm": (TIMM, of_timm),
    "transformers": (TRANSFORMERS, of_transformers),
}


def tokens(*shape: int):
    return lambda _, random: {"x": random.integers(1, 1000, shape)}


def exported(package: str, name: str) -> Case:
    """The case of a model, whose file is there afterwards."""
    torch.manual_seed(0)
    model, shape = PACKAGES[package][1](name)
    takes_tokens = len(shape) == 2 and name != "Hubert"
    path = FOLDER / f"{package}.{name}.onnx"
    if not path.exists():
        example = torch.ones(shape, dtype=torch.int64) if takes_tokens else torch.randn(shape)
        path.parent.mkdir(parents=True, exist_ok=True)
        with torch.no_grad():
            torch.onnx.export(
                model.eval(), (example,), path, input_names=["x"], opset_version=OPSET, dynamo=False
            )
    feeds = tokens(*shape) if takes_tokens else uniform("x", *shape)
    return Case(name, path.name, feeds)


Feeds = dict[str, np.ndarray]


def to_float16(source: pathlib.Path, target: pathlib.Path, _: Feeds) -> None:
    tool = importlib.import_module("onnxruntime.transformers.float16")
    onnx.save(tool.convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


class OneSample:
    """Calibrates with one set of inputs."""

    def __init__(self, feeds: Feeds) -> None:
        self.samples = iter([feeds])

    def get_next(self) -> Feeds | None:
        return next(self.samples, None)


def to_qdq(source: pathlib.Path, target: pathlib.Path, feeds: Feeds) -> None:
    tool = importlib.import_module("onnxruntime.quantization")
    tool.quantize_static(
        source,
        target,
        OneSample(feeds),
        per_channel=True,
        activation_type=tool.QuantType.QUInt8,
        weight_type=tool.QuantType.QInt8,
    )


def to_dynamic(source: pathlib.Path, target: pathlib.Path, _: Feeds) -> None:
    tool = importlib.import_module("onnxruntime.quantization")
    tool.quantize_dynamic(source, target, weight_type=tool.QuantType.QInt8)


def to_int4(source: pathlib.Path, target: pathlib.Path, _: Feeds) -> None:
    tool = importlib.import_module("onnxruntime.quantization.matmul_nbits_quantizer")
    quantizer = tool.MatMulNBitsQuantizer(
        onnx.load(source), 32, is_symmetric=True, accuracy_level=4
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(target))


FORMS: dict[str, Callable[[pathlib.Path, pathlib.Path, Feeds], None]] = {
    "float16": to_float16,
    "qdq": to_qdq,
    "dynamic": to_dynamic,
    "int4": to_int4,
}


def in_form(case: Case, form: str) -> Case:
    """The case in another form, whose file is there afterwards."""
    path = FOLDER / form / case.path
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        FORMS[form](FOLDER / case.path, path, case.inputs(FOLDER))
    return dataclasses.replace(case, path=f"{form}/{case.path}")


def parse_arguments() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--form", choices=["float32", *FORMS], default="float32")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    plan = Plan("tenon", "onnxruntime", *((1, 0.2) if arguments.quick else (3, 1.0)))
    where = machine()
    results = []
    for package, (names, _) in PACKAGES.items():
        try:
            importlib.import_module(package)
        except (ImportError, RuntimeError) as error:
            print(f"skipped: {package} cannot be imported: {error}", file=sys.stderr)
            continue
        for name in names:
            if not is_wanted(name, arguments.models):
                continue
            case = exported(package, name)
            if arguments.form != "float32":
                try:
                    case = in_form(case, arguments.form)
                except (ImportError, RuntimeError, ValueError, TypeError) as error:
                    print(f"skipped: {name} as {arguments.form}: {error}", file=sys.stderr)
                    continue
            for threads in arguments.threads:
                results.append(measure_case(case, pathlib.Path(FOLDER), threads, plan))
                print(progress(results[-1]), flush=True)
    print(f"\n{markdown(results, plan.candidate, plan.reference, where)}")


if __name__ == "__main__":
    main()
