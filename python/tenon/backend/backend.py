"""The backend by the name that it has in onnxruntime.backend.backend."""

from . import TenonBackend as OnnxRuntimeBackend

__all__ = ["OnnxRuntimeBackend"]
