"""Compiles PyTorch models with Tenon: torch.compile(model, backend="tenon"). docs/pytorch.md."""

from ._backend import backend, explain

__all__ = ["backend", "explain"]
