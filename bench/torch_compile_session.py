"""torch.compile with its default backend, as torch_session.py has PyTorch's eager mode."""

from __future__ import annotations

import torch
import torch_session
from torch_session import SessionOptions, __version__

__all__ = ["InferenceSession", "SessionOptions", "__version__"]


class InferenceSession(torch_session.InferenceSession):
    def prepare(self, module: torch.nn.Module) -> torch.nn.Module:
        return torch.compile(module, dynamic=False)  # type: ignore[return-value]
