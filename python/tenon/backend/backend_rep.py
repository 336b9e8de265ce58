"""Prepared models by the name that they have in onnxruntime.backend.backend_rep."""

from . import TenonBackendRep as OnnxRuntimeBackendRep

__all__ = ["OnnxRuntimeBackendRep"]
