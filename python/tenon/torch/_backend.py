"""The backend for torch.compile, and what it leaves to PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend
from torch._functorch.aot_autograd import make_boxed_func
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import _rules_elementwise, _rules_products, _rules_reductions, _rules_shapes  # noqa: F401
from ._lowering import why_not
from ._partition import partition

aten = torch.ops.aten

# Drawn by PyTorch's own operators, random numbers are those that a model gets without compilation.
_RANDOM = ("bernoulli", "dropout", "rand", "uniform", "normal", "exponential")


def _decompositions() -> dict[Any, Callable[..., Any]]:
    table = dict(core_aten_decompositions())
    table |= get_decompositions(
        [
            aten._native_batch_norm_legit_functional,
            aten._native_batch_norm_legit_no_training,
            aten.native_batch_norm_backward,
            aten.native_layer_norm_backward,
            aten.gelu_backward,
            aten._log_softmax,
            aten._log_softmax_backward_data,
            aten._softmax_backward_data,
            aten.nll_loss_forward,
            aten.nll_loss_backward,
            aten.embedding_dense_backward,
            aten.threshold_backward,
            aten.tanh_backward,
            aten.sigmoid_backward,
            aten.mse_loss,
            aten.mse_loss_backward,
            aten.addcmul,
            aten.addcdiv,
            aten.silu,
            aten.silu_backward,
            aten.leaky_relu,
            aten.leaky_relu_backward,
            aten.hardtanh,
            aten.hardtanh_backward,
            aten.var_mean,
            aten.t,
        ]
    )

    def is_ours(overload: Any) -> bool:
        name = overload.name().split("::")[-1].split(".")[0]

        return "_norm" in name or not any(word in name for word in _RANDOM)

    return {overload: function for overload, function in table.items() if is_ours(overload)}


def _compile(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    return make_boxed_func(partition(module).forward)


def _backend_with(compiler: Callable[..., Any]) -> Callable[..., Any]:
    compiled = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=_decompositions(),
    )

    def compile_graph(module: torch.fx.GraphModule, inputs: Any, **_: Any) -> Callable[..., Any]:
        with sdpa_kernel(SDPBackend.MATH):
            result: Callable[..., Any] = compiled(module, inputs)
        return result

    return compile_graph


def backend(module: torch.fx.GraphModule, inputs: Any, **options: Any) -> Callable[..., Any]:
    """Compiles a graph that torch.compile traced: torch.compile(model, backend="tenon")."""
    return _backend_with(_compile)(module, inputs, **options)


register_backend(backend, name="tenon")


def explain(model: Callable[..., Any], *inputs: Any) -> dict[str, list[str]]:
    """Runs the model once. Says for each operator that stays in PyTorch why it does."""
    reasons: dict[str, set[str]] = {}

    def compiler(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        for node in module.graph.nodes:
            if node.op == "call_function" and (reason := why_not(node)):
                reasons.setdefault(str(node.target), set()).add(reason)
        return make_boxed_func(module.forward)

    torch._dynamo.reset()
    torch.compile(model, backend=_backend_with(compiler), dynamic=False)(*inputs)
    torch._dynamo.reset()
    return {name: sorted(found) for name, found in sorted(reasons.items())}
