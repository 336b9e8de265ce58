"""Training, with the names of ``onnxruntime.training``.

``tenon.training.api`` trains models from artifacts: a training model, an evaluation model, an
optimizer model and a checkpoint. ``tenon.training.artifacts`` makes them of a model, and
``tenon.training.onnxblock`` the parts of them; these two need the package `onnx`.

``tenon.training.ORTModule`` trains a PyTorch module; ``tenon.training.ortmodule`` has its options.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("api", "artifacts", "onnxblock", "ortmodule")


def __getattr__(name: str) -> Any:
    """Imports a module at its first use."""
    if name == "ORTModule":
        return importlib.import_module(f"{__name__}.ortmodule").ORTModule
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
