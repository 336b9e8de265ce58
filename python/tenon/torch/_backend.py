"""The backend for torch.compile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

import torch
from torch._dynamo.backends.registry import register_backend
from torch._dynamo.utils import counters

from ._aot import aot_module_simplified
from ._circular import keep_pads_whole
from ._decompositions import decompositions
from ._joint import partition_joint
from ._partition import boxed, partition
from ._recurrent import keep_layers_whole
from ._region import Settings

Compiler = Callable[[torch.fx.GraphModule, Any], Callable[..., Any]]


def compile_with(forward: Compiler, backward: Compiler) -> Callable[..., Any]:
    """A backend that gives graphs of core operators to two compilers."""

    def compile_backward(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        # It may be compiled, and is run, where the caller's code is traced.
        return _untraced(_untraced(backward)(module, inputs))

    settings: dict[str, Any] = {
        "fw_compiler": forward,
        "bw_compiler": compile_backward,
        "inference_compiler": forward,
        "decompositions": decompositions(),
        "partition_fn": partition_joint,
    }

    def compile_graph(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        keep_layers_whole(module)
        keep_pads_whole(module)
        is_trained = torch.is_grad_enabled()
        with _without_onednn() if is_trained else contextlib.nullcontext():
            # What torch._dynamo.backends.common.aot_autograd does, without Inductor's logging: its
            # modules take 8 MB. PyTorch looks at the counter where it splits a model for
            # DistributedDataParallel.
            counters["aot_autograd"]["total"] += 1
            compiled = aot_module_simplified(module, inputs, **settings)
        return _untraced(compiled)

    return compile_graph


def _untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which torch.compile does not trace."""
    disabled: Callable[..., Any] = torch._dynamo.disable(function)  # type: ignore[no-untyped-call]
    return disabled


@contextlib.contextmanager
def _without_onednn() -> Iterator[None]:
    """Keeps PyTorch from tracing oneDNN's LSTM, which has no gradient in a traced graph."""
    was_enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was_enabled)


def backend(
    module: torch.fx.GraphModule,
    inputs: Any,
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph that torch.compile traced: torch.compile(model, backend="tenon").

    options  "intra_op_num_threads": as in SessionOptions; without it PyTorch's number of threads.
    mode     has no meaning for this backend, only None and "default" are valid.
    Raises ValueError for other options and modes.
    """
    if mode not in (None, "default"):
        raise ValueError(f"mode: expected None or 'default', got {mode!r}")
    settings = Settings.from_options(options or {})

    def compiler(graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        return boxed(partition(graph, settings))

    compiled: Callable[..., Any] = compile_with(compiler, compiler)(module, inputs)
    return compiled


# The entry point of an installed package registers the backend when it is asked for, and PyTorch
# takes a name only once.
if "tenon" not in entry_points(group="torch_dynamo_backends").names:
    register_backend(backend, name="tenon")
