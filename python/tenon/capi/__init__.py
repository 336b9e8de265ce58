"""Modules with the names under which onnxruntime's users import them."""

from __future__ import annotations

import importlib
from types import ModuleType

MODULES = ("_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state")


def __getattr__(name: str) -> ModuleType:
    """A program that imports onnxruntime finds these modules, even without importing them."""
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return importlib.import_module(f".{name}", __name__)
