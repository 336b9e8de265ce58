"""What PyTorch's AOTAutograd gives, without the package networkx.

AOTAutograd imports networkx, for graphs that Tenon's partitioner does not make: 12 MB, of which
it needs the name of one class. The package is loaded when something of it is first used.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class _LaterModule(ModuleType):
    """A module that is imported when an attribute is first read that it does not have yet."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def _later(name: str, **annotations: Any) -> Iterator[None]:
    """Inside, `import name` loads nothing, and gives annotations what is named for them."""
    if name in sys.modules:
        yield
        return
    module = _LaterModule(name)
    vars(module).update(annotations)
    sys.modules[name] = module
    try:
        yield
    finally:
        for annotation in annotations:
            delattr(module, annotation)
        if sys.modules.get(name) is module:
            del sys.modules[name]


with _later("networkx", DiGraph=Any):
    from torch._functorch.aot_autograd import aot_module_simplified
    from torch._functorch.partitioners import default_partition

__all__ = ["aot_module_simplified", "default_partition"]
