"""Modules at the places where onnxruntime's users look for them."""

from __future__ import annotations

import importlib
from types import ModuleType

MODULES = ("_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state")


def __getattr__(name: str) -> ModuleType:
    """Whoever has imported onnxruntime finds them, also without importing them."""
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(f".{name}", __name__)
