import importlib
import logging

import pytest


@pytest.fixture(autouse=True)
def fresh_compiler():
    """Forgets what was compiled. PyTorch's trace, which pytest would collect, is off."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("onnx", reason="the onnx package is not installed")
    logging.getLogger("torch.__trace").setLevel(logging.ERROR)
    torch.compiler.reset()
    torch.manual_seed(0)


@pytest.fixture
def runs(monkeypatch):
    """Grows with the runs of sessions."""
    computation = importlib.import_module("tenon.torch._region")._Computation  # needs PyTorch
    found = []
    run = computation.run

    def counted(self, inputs):
        found.append(self)
        return run(self, inputs)

    monkeypatch.setattr(computation, "run", counted)
    return found
