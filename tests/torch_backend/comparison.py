"""Trains a model twice, with and without compilation, and compares."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

import tenon.torch


def train(model: Any, step: Callable[[Any], Any], count: int) -> list[float]:
    """Trains with plain gradient descent. Returns the losses."""
    parameters = list({id(p): p for p in model.parameters()}.values())
    optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9)
    torch.manual_seed(7)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = step(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check_training(model: Any, step: Callable[[Any], Any], count: int = 20) -> None:
    """Losses agree to 1e-5 of their size, step by step."""
    torch._dynamo.reset()
    twin = copy.deepcopy(model)
    expected = train(model, step, count)
    compiled = torch.compile(twin, backend=tenon.torch.backend, dynamic=False)
    actual = train(compiled, step, count)
    torch.testing.assert_close(torch.tensor(actual), torch.tensor(expected), rtol=1e-5, atol=1e-7)
    assert actual[-1] < actual[0]


def check_function(function: Callable[..., Any], *inputs: Any) -> None:
    """Results and gradients agree."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=tenon.torch.backend, dynamic=False)
    results = []
    for each in (function, compiled):
        leaves = [
            i.detach().clone(memory_format=torch.preserve_format).requires_grad_(
                i.is_floating_point()
            )
            for i in inputs
        ]
        output = each(*leaves)
        output.square().sum().backward()
        results.append([output.detach(), *(leaf.grad for leaf in leaves)])
    for actual, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
