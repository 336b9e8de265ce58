"""Steps of on-device training beside PyTorch's: losses, gradients and parameters."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from tenon.training.api import CheckpointState, Module, Optimizer  # noqa: E402
from torch import nn  # noqa: E402

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench/on_device_training.py"


def test_adamw_of_a_perceptron(tmp_path: pathlib.Path) -> None:
    spec = importlib.util.spec_from_file_location("on_device_training", BENCH)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    bench.make_artifacts(tmp_path)
    torch.manual_seed(0)
    reference = nn.Sequential(nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 10))
    parameters = dict(zip(bench.SHAPES, reference.parameters(), strict=True))
    state = CheckpointState.from_parameters({k: v.detach().numpy() for k, v in parameters.items()})
    module = Module(tmp_path / "training.onnx", state)
    optimizer = Optimizer(tmp_path / "adamw.onnx", module)
    adamw = torch.optim.AdamW(reference.parameters())
    for step in range(20):
        x, labels = torch.randn(16, 784), torch.randint(0, 10, (16,))
        loss = nn.functional.cross_entropy(reference(x), labels)
        adamw.zero_grad()
        loss.backward()
        module.lazy_reset_grad()
        ours = module(x.numpy(), labels.numpy())
        np.testing.assert_allclose(ours, loss.item(), 1e-5, err_msg=f"step {step}")
        for name, parameter in parameters.items():
            gradient = parameter.grad
            assert gradient is not None
            np.testing.assert_allclose(state.parameters[name].grad, gradient.numpy(), 1e-3, 1e-5)
        adamw.step()
        optimizer.step()
    for name, parameter in parameters.items():
        np.testing.assert_allclose(state.parameters[name].data, parameter.detach().numpy(), 0, 1e-4)
