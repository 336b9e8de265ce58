"""Fine-tunes a small transformer on Tenon, and draws its loss.

Usage: finetune.py [--steps N] [--picture loss.svg]

A language model of characters first learns English from the language reference of Python, which
Python itself ships for `help()`. The fine-tuning then moves it to other prose: the descriptions of
data sets that scikit-learn ships. A tenth of these is kept aside, and the loss on it is printed
before and after. At the end the model writes a few lines.

Both texts are parts of packages: nothing is downloaded. With its default of 400 steps each,
learning and fine-tuning take a minute on two cores.
"""

import argparse
import importlib.resources
import math
import pathlib
import pydoc_data.topics
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

try:
    import sklearn.datasets.descr
    import tenon.torch  # noqa: F401  registers the backend
    import torch
    from torch import Tensor, nn
except ImportError as error:
    sys.exit(f"finetune.py: {error}. `./dev demo --training` installs what is missing.")

CHARACTERS = "\n" + "".join(map(chr, range(ord(" "), ord("~") + 1)))
CONTEXT = 64  # characters that the model sees
WIDTH = 128
HEADS = 4
LAYERS = 2
BATCH = 16
REPORTS = 4  # of each part of the training


class Block(nn.Module):
    """Attention to what came before, then two dense layers, each added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)
        self.dense = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        mixed = self.query_key_value(self.attention_norm(x))
        query, key, value = mixed.view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        result: Tensor = x + self.dense(x)
        return result


class Transformer(nn.Module):
    """characters [batch, CONTEXT] to scores [batch, CONTEXT, vocabulary] of the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self.characters = nn.Embedding(len(CHARACTERS), WIDTH)
        self.positions = nn.Parameter(torch.empty(CONTEXT, WIDTH))
        for parameter in (self.characters.weight, self.positions):
            nn.init.normal_(parameter, std=0.3)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.scores = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(CHARACTERS)))

    def forward(self, characters: Tensor) -> Tensor:
        result: Tensor = self.scores(self.blocks(self.characters(characters) + self.positions))
        return result


def encode(text: str) -> Tensor:
    """The numbers of the characters, of those that the model knows; indentation is left out."""
    words = re.sub(" +", " ", text)
    return torch.tensor([CHARACTERS.index(each) for each in words if each in CHARACTERS])


def language_reference() -> Tensor:
    return encode("\n".join(pydoc_data.topics.topics.values()))


def descriptions() -> Tensor:
    folder = importlib.resources.files(sklearn.datasets.descr)
    files = sorted(
        (each for each in folder.iterdir() if each.name.endswith(".rst")), key=lambda f: f.name
    )
    return encode("\n".join(file.read_text(encoding="utf-8") for file in files))


def windows(text: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
    """Characters of the text from each start on, and those that follow each of them."""
    cut = text[starts[:, None] + torch.arange(CONTEXT + 1)]
    return cut[:, :-1], cut[:, 1:]


def loss_of(compiled: Callable[[Tensor], Tensor], text: Tensor, starts: Tensor) -> Tensor:
    characters, following = windows(text, starts)
    return nn.functional.cross_entropy(compiled(characters).flatten(0, 1), following.flatten())


@dataclass
class Trainer:
    """Trains on one text after the other, and keeps the loss of every step."""

    model: Transformer
    losses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # what PyTorch still computes is too small to share
        self.compiled = torch.compile(
            self.model,
            backend="tenon",
            options={"intra_op_num_threads": threads},
            dynamic=False,
        )

    def train(self, name: str, text: Tensor, steps: int, learning_rate: float) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=learning_rate, fused=True)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.1, steps)
        report = max(steps // REPORTS, 1)
        start = time.perf_counter()
        for step in range(1, steps + 1):
            loss = loss_of(self.compiled, text, torch.randint(len(text) - CONTEXT, (BATCH,)))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            self.losses.append(loss.item())
            if step % report == 0:
                mean = sum(self.losses[-report:]) / report
                rate = report * BATCH / (time.perf_counter() - start)
                print(f"{name}, step {step}: loss {mean:.3f}, {rate:.0f} samples per second")
                start = time.perf_counter()

    @torch.inference_mode()
    def evaluate(self, text: Tensor) -> float:
        """The mean loss on the text, in batches of the size that the model is compiled for."""
        starts = torch.arange(0, len(text) - CONTEXT, CONTEXT)
        batches = starts[: len(starts) // BATCH * BATCH].view(-1, BATCH)
        losses = [loss_of(self.compiled, text, each).item() for each in batches]
        return sum(losses) / len(losses)

    @torch.inference_mode()
    def write(self, beginning: str, length: int) -> str:
        """Continues a text. Characters after the last one of the window do not matter to it."""
        text = encode(beginning)
        for _ in range(length):
            last = text[-CONTEXT:]
            window = nn.functional.pad(last, (0, CONTEXT - len(last)))
            scores = self.compiled(window[None])[0, len(last) - 1]
            choice = torch.multinomial((scores / 0.6).softmax(0), 1)
            text = torch.cat([text, choice])
        return "".join(CHARACTERS[each] for each in text)


def smooth(losses: list[float]) -> list[float]:
    """The mean over the last twentieth of the steps, at each step."""
    span = max(len(losses) // 20, 1)
    return [
        sum(part) / len(part)
        for part in (losses[max(i - span, 0) : i] for i in range(1, len(losses) + 1))
    ]


def drawing(parts: dict[str, list[float]]) -> str:
    """An SVG of the losses of the parts, one after the other."""
    width, height, margin = 720, 360, 50
    everything = [loss for losses in parts.values() for loss in losses]
    top = math.ceil(max(everything))
    across = (width - 2 * margin) / max(len(everything) - 1, 1)
    up = (height - 2 * margin) / top

    def line(first: int, losses: list[float], style: str) -> str:
        points = " ".join(
            f"{margin + (first + i) * across:.1f},{height - margin - loss * up:.1f}"
            for i, loss in enumerate(losses)
        )
        return f'<polyline fill="none" {style} points="{points}"/>'

    def text(x: float, y: float, what: str, anchor: str = "middle") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{what}</text>'

    shapes = ['<rect width="100%" height="100%" fill="white"/>']
    for loss in range(top + 1):
        y = height - margin - loss * up
        shapes.append(f'<path stroke="#ddd" d="M{margin} {y:.1f}H{width - margin}"/>')
        shapes.append(text(margin - 8, y + 4, str(loss), "end"))
    first = 0
    for (name, losses), colour in zip(parts.items(), ("#1f6fb4", "#c8501e"), strict=True):
        shapes.append(line(first, losses, f'stroke="{colour}" stroke-opacity="0.25"'))
        shapes.append(line(first, smooth(losses), f'stroke="{colour}" stroke-width="2"'))
        shapes.append(text(margin + (first + len(losses) / 2) * across, margin / 2, name))
        first += len(losses)
        shapes.append(text(margin + (first - 1) * across, height - margin + 18, str(first)))
    shapes.append(text(width / 2, height - 8, "step"))
    shapes.append(text(margin, margin / 2, "loss"))
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = 'font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(
        [*shapes, "</svg>\n"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tunes a small transformer on Tenon.")
    parser.add_argument("--steps", type=int, default=400, help="of learning, and of fine-tuning")
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("loss.svg"))
    options = parser.parse_args()

    torch.manual_seed(0)
    trainer = Trainer(Transformer())
    text = descriptions()
    tuning, kept = text[: len(text) * 9 // 10], text[len(text) * 9 // 10 :]
    trainer.train("learning", language_reference(), options.steps, 3e-3)
    before = trainer.evaluate(kept)
    trainer.train("fine-tuning", tuning, options.steps, 1e-3)
    after = trainer.evaluate(kept)
    print(f"loss on descriptions kept aside: {before:.3f} before fine-tuning, {after:.3f} after")

    learned, tuned = trainer.losses[: options.steps], trainer.losses[options.steps :]
    options.picture.write_text(drawing({"learning": learned, "fine-tuning": tuned}))
    print(f"the loss of every step is drawn in {options.picture}\n")
    print(trainer.write("The dataset ", 300))


if __name__ == "__main__":
    main()
