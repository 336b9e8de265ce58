"""Compiles PyTorch models with Tenon: torch.compile(model, backend="tenon"). docs/pytorch.md."""

from ._backend import backend
from ._explain import Explanation, explain

__all__ = ["Explanation", "backend", "explain"]
