"""Runs functions and models twice, with and without compilation, and compares."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import tenon.torch
import torch


def results(function: Callable[..., Any], inputs: Sequence[Any], seed: int) -> list[Any]:
    """The outputs of a function, and the gradients of its inputs for random ones of its outputs."""
    leaves = [
        each.detach().clone(memory_format=torch.preserve_format).requires_grad_()
        if isinstance(each, torch.Tensor) and each.is_floating_point()
        else each
        for each in inputs
    ]
    torch.manual_seed(seed)
    outputs = function(*leaves)
    outputs = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    differentiable = [each for each in outputs if each.requires_grad]
    if differentiable:
        torch.manual_seed(seed + 1)
        torch.autograd.backward(differentiable, [torch.randn_like(each) for each in differentiable])
    gradients = [each.grad for each in leaves if isinstance(each, torch.Tensor)]
    return [each.detach() for each in outputs] + gradients


def check_function(
    function: Callable[..., Any],
    *inputs: Any,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    left: Sequence[str] = (),
) -> tenon.torch.Explanation:
    """Results, gradients and strides agree, and only the operators `left` stay in PyTorch."""
    seed = zlib.crc32(repr([getattr(each, "shape", each) for each in inputs]).encode())
    expected = results(function, inputs, seed)
    torch.compiler.reset()
    actual = results(torch.compile(function, backend="tenon", dynamic=False), inputs, seed)
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=rtol, atol=atol, equal_nan=True)
        assert a is None or a.stride() == e.stride()
    explanation = tenon.torch.explain(function, *(_leaf(each) for each in inputs))
    assert explanation.graphs == 1
    assert sorted(explanation.left) == sorted(left), str(explanation)
    return explanation


def _leaf(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.detach().clone().requires_grad_() if is_float else value


def train(model: Any, step: Callable[[Any], Any], count: int) -> list[float]:
    """Trains with gradient descent. Returns the losses."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
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
    """Losses agree to 1e-5 of their size, step by step, and fall. Buffers agree at the end."""
    twin = copy.deepcopy(model)
    expected = train(model, step, count)
    actual = train(torch.compile(twin, backend="tenon", dynamic=False), step, count)
    torch.testing.assert_close(torch.tensor(actual), torch.tensor(expected), rtol=1e-5, atol=1e-7)
    assert actual[-1] < actual[0]
    for (name, a), (_, e) in zip(twin.named_buffers(), model.named_buffers(), strict=True):
        torch.testing.assert_close(a, e, rtol=1e-4, atol=1e-5, msg=name)
