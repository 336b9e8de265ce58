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
