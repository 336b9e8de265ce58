"""PyTorch on the CPU with the part of onnxruntime's API that worker.py uses.

    python bench/compare.py --reference torch_session ...            # eager
    python bench/compare.py --reference torch_compile_session ...    # torch.compile (Inductor)

after: pip install -r requirements-torch.txt onnx2torch. onnx2torch makes modules of the operators
that it knows; other models are left out.
"""

from __future__ import annotations

import contextlib
import sys
import types

import numpy as np
import onnx
import torch

# onnx2torch needs torchvision for NonMaxSuppression and RoiAlign alone, and there is none for every
# PyTorch.
with contextlib.suppress(ImportError, RuntimeError):
    import torchvision  # noqa: F401
if "torchvision" not in sys.modules:
    operators = types.ModuleType("torchvision.ops")
    operators.roi_align = None  # type: ignore[attr-defined]
    sys.modules["torchvision"] = types.ModuleType("torchvision")
    sys.modules["torchvision.ops"] = operators

from onnx2torch import convert

__version__ = torch.__version__.split("+")[0]


class SessionOptions:
    intra_op_num_threads = 0
    inter_op_num_threads = 0
    log_severity_level = 2


class InferenceSession:
    def __init__(self, path: str, options: SessionOptions, providers: list[str]) -> None:
        if options.intra_op_num_threads:
            torch.set_num_threads(options.intra_op_num_threads)
        model = onnx.load(path)
        constants = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [x.name for x in model.graph.input if x.name not in constants]
        self._run = self.prepare(convert(model).eval())

    def prepare(self, module: torch.nn.Module) -> torch.nn.Module:
        return module

    def run(self, _names: None, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        with torch.inference_mode():
            results = self._run(*(torch.from_numpy(feeds[name]) for name in self._inputs))
        if isinstance(results, torch.Tensor):
            results = [results]
        return [result.numpy() for result in results]
