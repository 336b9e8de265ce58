"""Trains PyTorch modules with Tenon, with the names of ``onnxruntime.training.ortmodule``.

``ORTModule(module)`` runs a module as ``torch.compile(module, backend="tenon")`` does, for programs
that were written for onnxruntime. docs/pytorch.md tells more.
"""

from ._module import ORTModule
from .options import DebugOptions, LogLevel

__all__ = ["DebugOptions", "LogLevel", "ORTModule"]
