"""Times training steps of PyTorch models: as they are, and compiled with Tenon.

They take turns in one process, with the same parameters and batch. A step is forward, backward
and one of fused Adam. Prints medians in milliseconds and their ratio, which is above 1 where Tenon
is faster, and how long the first step took, which compiles, with PyTorch's caches off. With
--memory it prints the peak memory of processes that do each alone, in MB, and with the backend
aot_eager, which shows what PyTorch's tracing needs. With --autocast all of them multiply bfloat16
numbers. Needs PyTorch (requirements-torch.txt).
"""

from __future__ import annotations

import argparse
import copy
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

Step = Callable[[], None]


def perceptron(scale: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A perceptron of 784, 1024, 1024 and 10 units."""
    width = 1024 // scale
    model = nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    return model, torch.randn(64, 784), torch.randint(0, 10, (64,))


class Residual(nn.Module):
    """A basic block of a ResNet."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels != width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.body(x) + self.shortcut(x))


def residual(scale: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A ResNet-18."""
    widths = [64 // scale, 128 // scale, 256 // scale, 512 // scale]
    layers: list[nn.Module] = [
        nn.Conv2d(3, widths[0], 7, 2, 3, bias=False),
        nn.BatchNorm2d(widths[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    before = widths[0]
    for i, width in enumerate(widths):
        layers += [Residual(before, width, 2 if i else 1), Residual(width, width, 1)]
        before = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000)]
    size = 224 // scale
    return nn.Sequential(*layers), torch.randn(8, 3, size, size), torch.randint(0, 1000, (8,))


def convolutional(scale: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network of three convolutions over pictures of 32 x 32 pixels."""
    width = 64 // scale
    layers: list[nn.Module] = []
    for channels, count in [(3, width), (width, width), (width, 2 * width)]:
        layers += [nn.Conv2d(channels, count, 3, padding=1), nn.BatchNorm2d(count), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10)]
    return nn.Sequential(*layers), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))


class Transformer(nn.Module):
    """Layers of attention, as in BERT (`is_causal` false) and GPT, without dropout."""

    def __init__(self, layers: int, width: int, is_causal: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "projection": nn.Linear(width, 3 * width),
                    "output": nn.Linear(width, width),
                    "second_norm": nn.LayerNorm(width),
                    "up": nn.Linear(width, 4 * width),
                    "down": nn.Linear(4 * width, width),
                }
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, 1000)
        self.is_causal = is_causal

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        batch, length, width = x.shape
        for layer in self.layers:
            parts = layer["projection"](layer["norm"](x)).split(width, 2)  # type: ignore[index, operator]
            q, k, v = (part.view(batch, length, 4, width // 4).transpose(1, 2) for part in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
            y = y.transpose(1, 2).reshape(batch, length, width)
            x = x + layer["output"](y)  # type: ignore[index, operator]
            x = x + layer["down"](F.gelu(layer["up"](layer["second_norm"](x))))  # type: ignore[index, operator]
        result: torch.Tensor = self.head(x).flatten(0, 1)
        return result


def transformer(
    layers: int, is_causal: bool, length: int = 128
) -> Callable[[int], tuple[nn.Module, torch.Tensor, torch.Tensor]]:
    def make(scale: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        shape = (1024 // length, length // scale)
        tokens, classes = torch.randint(0, 1000, shape), torch.randint(0, 1000, shape)
        return Transformer(layers, 256 // scale, is_causal), tokens, classes.flatten()

    return make


class Recurrent(nn.Module):
    """A classifier of sequences, by the last step of two recurrent layers."""

    def __init__(self, kind: type[nn.RNNBase], width: int) -> None:
        super().__init__()
        self.layers = kind(width, width, 2, batch_first=True)  # type: ignore[call-arg, arg-type]
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.layers(x)[0][:, -1])
        return result


def recurrent(
    kind: type[nn.RNNBase],
) -> Callable[[int], tuple[nn.Module, torch.Tensor, torch.Tensor]]:
    def make(scale: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
        width = 256 // scale
        return Recurrent(kind, width), torch.randn(32, 64, width), torch.randint(0, 10, (32,))

    return make


MODELS = {
    "MLP": perceptron,
    "CNN": convolutional,
    "ResNet-18": residual,
    "BERT 2 x 256": transformer(2, False),
    "GPT 4 x 256": transformer(4, True),
    "LSTM 2 x 256": recurrent(nn.LSTM),
    "GRU 2 x 256": recurrent(nn.GRU),
}
# Of the same number of tokens, with --long.
LONG_MODELS = {
    f"{name}, {length} tokens": transformer(layers, is_causal, length)
    for name, layers, is_causal in [("BERT 2 x 256", 2, False), ("GPT 4 x 256", 4, True)]
    for length in (512, 1024)
}


def step_of(
    model: Any, forward: Any, x: torch.Tensor, y: torch.Tensor, autocasts: bool = False
) -> Step:
    """A training step of `model`, computed by `forward`."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocasts):
            loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()

    return step


def times_of(steps: list[Step], rounds: int) -> list[list[float]]:
    """The times of the steps, which take turns."""
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for step, found in zip(steps, times, strict=True):
            begin = time.perf_counter()
            step()
            found.append(time.perf_counter() - begin)
    return times


def peak_of(name: str, form: str, options: argparse.Namespace) -> str:
    """The peak memory of a process that does some steps, in MB; "-" where aot_eager cannot."""
    command = [sys.executable, __file__, "--match", name, "--form", form]
    command += ["--threads", str(options.threads), "--scale", str(options.scale)]
    command += ["--autocast"] * options.autocast
    is_checked = form != "aot_eager"  # PyTorch's gradient of a traced LSTM fails
    done = subprocess.run(command, check=is_checked, capture_output=True, text=True)
    return done.stdout.strip() or "-"


def compiled(model: nn.Module, backend: str) -> Any:
    """The model, compiled without caches on disk. A process without Tenon does not import it."""
    torch.compiler.config.force_disable_caches = True
    torch._dynamo.config.allow_rnn = True
    if backend == "tenon":
        import tenon.torch  # noqa: PLC0415

        return torch.compile(model, backend=tenon.torch.backend, dynamic=False)
    return torch.compile(model, backend=backend, dynamic=False)


def print_peak(name: str, form: str, options: argparse.Namespace) -> None:
    """Does some steps, and prints the peak memory of the process, in MB."""
    torch.manual_seed(0)
    model, x, y = (MODELS | LONG_MODELS)[name](options.scale)
    forward: Any = model if form == "eager" else compiled(model, form)
    times_of([step_of(model, forward, x, y, options.autocast)], 5)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="what the names of the models have in them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30, help="steps that are timed")
    parser.add_argument("--scale", type=int, default=1, help="divides the widths of the models")
    parser.add_argument("--inductor", action="store_true", help="time PyTorch's own compiler too")
    parser.add_argument("--long", action="store_true", help="transformers of longer sequences")
    parser.add_argument("--autocast", action="store_true", help="train in bfloat16")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of times")
    parser.add_argument("--form", help=argparse.SUPPRESS)  # of a process for --memory
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.form:
        print_peak(options.match, options.form, options)
        return
    models = {
        name: make
        for name, make in (LONG_MODELS if options.long else MODELS).items()
        if options.match in name
    }
    if options.memory:
        print("| model | eager, MB | tenon, MB | aot_eager, MB |\n| --- | ---: | ---: | ---: |")
        for name in models:
            peaks = [peak_of(name, form, options) for form in ("eager", "tenon", "aot_eager")]
            print(f"| {name} | {' | '.join(peaks)} |", flush=True)
        return
    backends = ["tenon"] + ["inductor"] * options.inductor
    columns = " | ".join(f"{b}, ms | eager / {b} | {b}, first step, s" for b in backends)
    print(f"| model | eager, ms | {columns} |")
    print("| --- |" + " ---: |" * (1 + 3 * len(backends)))
    for name, make in models.items():
        torch.manual_seed(0)
        model, x, y = make(options.scale)
        steps = [step_of(model, model, x, y, options.autocast)]
        first = []
        for backend in backends:
            torch.compiler.reset()
            twin = copy.deepcopy(model)
            steps.append(step_of(twin, compiled(twin, backend), x, y, options.autocast))
            first.append(times_of(steps[-1:], 1)[0][0])
        times_of(steps, 2)
        eager, *ours = (statistics.median(each) * 1e3 for each in times_of(steps, options.rounds))
        cells = " | ".join(
            f"{each:.2f} | {eager / each:.2f} | {seconds:.1f}"
            for each, seconds in zip(ours, first, strict=True)
        )
        print(f"| {name} | {eager:.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
