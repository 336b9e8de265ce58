"""The threads of OpenMP, with which PyTorch computes."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Callable

_NAMES = ("libgomp", "libiomp5", "libomp")
_SOFT = 1  # omp_pause_soft


def end_idle_threads() -> None:
    """Ends the idle threads that OpenMP keeps for the calling thread.

    They would spin for milliseconds, and share the processors with Tenon's own threads meanwhile.
    OpenMP starts threads again when PyTorch needs some, in tens of microseconds.
    """
    _pause()(_SOFT)


@functools.cache
def _pause() -> Callable[[int], object]:
    """omp_pause_resource_all of the library that is loaded, or nothing that has an effect."""
    try:
        lines = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        path = pathlib.Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(_NAMES):
            library = ctypes.CDLL(str(path))
            if hasattr(library, "omp_pause_resource_all"):
                function: Callable[[int], object] = library.omp_pause_resource_all
                return function
    return lambda _: None
