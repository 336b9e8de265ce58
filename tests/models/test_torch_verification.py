"""PyTorch's own checks of an export, with Tenon in place of onnxruntime."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxscript")

PROGRAM = """
import tenon.as_onnxruntime

tenon.as_onnxruntime.install()
import onnx_ir
import onnxruntime
import tenon
import torch
from torch.onnx import verification

assert onnxruntime.InferenceSession is tenon.InferenceSession


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(),
                                          torch.nn.Linear(8, 3))

    def forward(self, x):
        return torch.softmax(self.layers(x), -1)


torch.manual_seed(0)
x = (torch.randn(4, 6),)
program = torch.onnx.export(Block().eval(), x, dynamo=True, verify=True)
infos = verification.verify_onnx_program(program)
assert infos
print("largest", max(info.max_abs_diff for info in infos))
weight = next(w for w in program.model.graph.initializers.values() if w.shape.rank() == 2)
weight.const_value = onnx_ir.tensor(-3 * weight.const_value.numpy())
program.release()  # its session
print("broken", max(info.max_abs_diff for info in verification.verify_onnx_program(program)))
"""


def test_exports_are_verified_on_tenon() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    figures = dict(line.split() for line in lines if line.startswith(("largest ", "broken ")))
    assert float(figures["largest"]) < 1e-5
    assert float(figures["broken"]) > 1e-3, "the check would not see a wrong weight"
