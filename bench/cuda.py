"""Times networks on a CUDA device: Tenon with plugins/cuda, onnxruntime-gpu and PyTorch.

    python bench/cuda.py --library build/release/plugins/cuda/libtenon_cuda.so [--runtimes ...]

Each network is timed by each runtime in a process of its own. Inputs and outputs stay on the
device; a run includes waiting for it. Prints a table: medians of a run in milliseconds, how many
times as long onnxruntime takes, the seconds from making the session to the first result, and the
greatest difference from the CPU's float32 results (batch 1), of the largest element.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from models import convolutional, decoders
from models import transformers as encoders
from onnx import TensorProto, numpy_helper

# Network, batch or tokens of the step, type.
CASES = [
    ("resnet50", 1, "float16"),
    ("resnet50", 32, "float16"),
    ("resnet50", 1, "float32"),
    ("bert", 1, "float16"),
    ("bert", 32, "float16"),
    ("bert", 1, "float32"),
    ("vit", 1, "float16"),
    ("vit", 32, "float16"),
    ("gpt2", 1, "float16"),
    ("decoder", 1, "float16"),
    ("decoder", 512, "float16"),
    ("decoder", 1, "int4"),
    ("decoder", 512, "int4"),
]
RUNTIMES = ["tenon", "onnxruntime", "torch", "torch.compile"]
NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet50": lambda: convolutional.resnet("resnet50", (3, 4, 6, 3), True),
    "bert": lambda: encoders.bert("bert", encoders.BERT_BASE, 17, True),
    "vit": lambda: encoders.vit_b_16("vit"),
    "gpt2": lambda: encoders.gpt2("gpt2"),
}
TOKENS = 128
PAST = 127
CAPACITY, FILLED = 2048, 1023  # of the decoder's caches


def in_float16(model: onnx.ModelProto) -> onnx.ModelProto:
    """All float32 as float16: weights, constants, inputs and outputs."""

    def convert(tensor: TensorProto) -> None:
        if tensor.data_type == TensorProto.FLOAT:
            values = np.clip(numpy_helper.to_array(tensor), -65504, 65504)
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), tensor.name))

    for tensor in model.graph.initializer:
        convert(tensor)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                convert(attribute.t)
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def feeds_of(name: str, batch: int, kind: str) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    dtype = np.float32 if kind == "float32" else np.float16
    if name in ("resnet50", "vit"):
        return {"input": random.standard_normal((batch, 3, 224, 224)).astype(dtype)}
    if name == "bert":
        ids = random.integers(0, 30000, (batch, TOKENS))
        return {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
    if name == "gpt2":
        feeds = {
            "input_ids": random.integers(0, 50000, (batch, 1)),
            "position_ids": np.full((batch, 1), PAST),
        }
        for i in range(12):
            for part in ("key", "value"):
                cache = random.standard_normal((batch, 12, PAST, 64)).astype(dtype)
                feeds[f"past_key_values.{i}.{part}"] = cache
        return feeds
    filled = FILLED if batch == 1 else 0
    feeds = {
        "input_ids": random.integers(0, 32000, (1, batch)),
        "attention_mask": np.ones((1, filled + batch), np.int64),
    }
    cache = random.standard_normal((1, 8, CAPACITY, 64)).astype(np.float16)
    for i in range(decoders.Decoder().layers):
        for part in ("key", "value"):
            feeds[f"past_key_values.{i}.{part}"] = cache
    return feeds


def prepare(folder: Path, wanted: list[str]) -> None:
    """Writes the networks, and the CPU's results of their float32 forms."""
    tenon = importlib.import_module("tenon")
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in NETWORKS.items():
        if name not in wanted or (folder / f"{name}.npz").exists():
            continue
        model = build()
        full = model.SerializeToString()
        (folder / f"{name}.float32.onnx").write_bytes(full)
        (folder / f"{name}.float16.onnx").write_bytes(in_float16(model).SerializeToString())
        session = tenon.InferenceSession(full)
        np.savez(folder / f"{name}.npz", session.run(None, feeds_of(name, 1, "float32"))[0])
    if "decoder" in wanted:
        for kind in ("float16", "int4"):
            path = folder / f"decoder.{kind}.onnx"
            if not path.exists():
                decoders.write_decoder(path, four_bits=kind == "int4")


def timed(run: Callable[[], None], rounds: int = 50) -> float:
    """Milliseconds of a run, a median."""
    for _ in range(10):
        run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


def work_onnx(runtime: str, library: str, folder: Path, name: str, batch: int, kind: str) -> dict:
    rt = importlib.import_module(runtime)
    if runtime == "tenon":
        rt.register_execution_provider_library("cuda", library)
    feeds = feeds_of(name, batch, kind)
    start = time.perf_counter()
    options = rt.SessionOptions()
    options.log_severity_level = 3
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    path = folder / f"{name}.{kind}.onnx"
    session = rt.InferenceSession(str(path), options, providers=providers)
    binding = session.io_binding()
    values = {n: rt.OrtValue.ortvalue_from_numpy(x, "cuda", 0) for n, x in feeds.items()}
    for n, value in values.items():
        binding.bind_ortvalue_input(n, value)
    for output in session.get_outputs():
        cache = output.name.replace("present", "past_key_values")
        if name == "decoder" and cache in values:  # the caches are filled in place
            binding.bind_ortvalue_output(output.name, values[cache])
        else:
            binding.bind_output(output.name, "cuda", 0)

    def run() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    run()
    first = time.perf_counter() - start
    result = {"first": first, "ms": timed(run)}
    y = binding.get_outputs()[0].numpy().astype(np.float64)
    reference = folder / (f"{name}.npz" if name != "decoder" else f"{name}.{kind}.{batch}.npz")
    if not reference.exists():
        np.savez(reference, y)  # the first runtime's, for the others
    elif batch == 1 or name == "decoder":
        wanted = np.load(reference)["arr_0"].astype(np.float64)
        result["error"] = float(np.abs(y - wanted).max() / np.abs(wanted).max())
    if not np.isfinite(y).all():
        raise ValueError("the results are not finite")
    return result


def work_torch(compiled: bool, name: str, batch: int, kind: str) -> dict:
    """The same architecture by torchvision or transformers, with random weights."""
    torch = importlib.import_module("torch")
    dtype = torch.float16 if kind == "float16" else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    if name in ("resnet50", "vit"):
        torchvision = importlib.import_module("torchvision")
        kinds = {"resnet50": torchvision.models.resnet50, "vit": torchvision.models.vit_b_16}
        model = kinds[name]().to("cuda", dtype).eval()
        x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype)
        if name == "resnet50":
            model = model.to(memory_format=torch.channels_last)
            x = x.to(memory_format=torch.channels_last)
        arguments = {"x": x}
    elif name == "bert":
        transformers = importlib.import_module("transformers")
        model = transformers.BertModel(transformers.BertConfig()).to("cuda", dtype).eval()
        ids = torch.randint(0, 30000, (batch, TOKENS), device="cuda")
        arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    else:
        raise NotImplementedError(f"{name} is not timed with PyTorch")
    start = time.perf_counter()
    forward = torch.compile(model, mode="reduce-overhead") if compiled else model

    def run() -> None:
        with torch.no_grad():
            forward(*arguments.values()) if "x" in arguments else forward(**arguments)
        torch.cuda.synchronize()

    run()
    return {"first": time.perf_counter() - start, "ms": timed(run)}


def measure(arguments: argparse.Namespace, runtime: str, case: tuple) -> dict:
    command = [
        sys.executable,
        __file__,
        "--library",
        arguments.library,
        "--folder",
        str(arguments.folder),
        "--work",
        runtime,
        *map(str, case),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"failure": (done.stderr.strip().splitlines() or ["nothing"])[-1][:200]}


def print_table(arguments: argparse.Namespace) -> None:
    runtimes = arguments.runtimes
    heads = ["network", "batch", "type", *(f"{r} ms" for r in runtimes), "onnxruntime / Tenon"]
    heads += ["first result s", "difference"]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|", flush=True)
    ratios = []
    for case in CASES:
        if arguments.match and not any(m in " ".join(map(str, case)) for m in arguments.match):
            continue
        found = {runtime: measure(arguments, runtime, case) for runtime in runtimes}
        cells = [*map(str, case)]
        for result in found.values():
            cells.append(f"{result['ms']:.3f}" if "ms" in result else "")
        tenon, other = found.get("tenon", {}), found.get("onnxruntime", {})
        ratio = other["ms"] / tenon["ms"] if "ms" in tenon and "ms" in other else None
        cells.append(f"{ratio:.2f}" if ratio else "")
        ratios += [ratio] if ratio else []
        firsts = [f"{r['first']:.2f}" for r in (tenon, other) if "first" in r]
        cells.append(" / ".join(firsts))
        errors = [f"{r['error']:.1e}" for r in (tenon, other) if "error" in r]
        cells.append(" / ".join(errors))
        print("| " + " | ".join(cells) + " |", flush=True)
        for runtime, result in found.items():
            if "failure" in result:
                print(f"{runtime} {case}: {result['failure']}", file=sys.stderr, flush=True)
    if ratios:
        print(f"\ngeometric mean of onnxruntime / Tenon: {np.exp(np.mean(np.log(ratios))):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--runtimes", nargs="+", choices=RUNTIMES, default=RUNTIMES[:2])
    parser.add_argument("--match", nargs="*", help="parts of a case, such as 'bert 32'")
    parser.add_argument("--folder", type=Path, default=Path("build/bench_cuda"))
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.work:
        prepare(arguments.folder, [case[0] for case in CASES])
        print_table(arguments)
        return
    runtime, name, batch, kind = arguments.work
    if runtime.startswith("torch"):
        result = work_torch(runtime == "torch.compile", name, int(batch), kind)
    else:
        result = work_onnx(runtime, arguments.library, arguments.folder, name, int(batch), kind)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
