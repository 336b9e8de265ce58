"""What composed operators are made of, for those that have no rule of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions

from ._special import special_functions

aten = torch.ops.aten

# One operator of the runtime computes each of these, or a few that a rule chooses.
_WHOLE = {
    aten._adaptive_avg_pool2d,
    aten._adaptive_avg_pool2d_backward,
    aten._adaptive_avg_pool3d,
    aten._adaptive_avg_pool3d_backward,
    aten._log_softmax,
    aten._log_softmax_backward_data,
    aten._native_batch_norm_legit_functional,
    aten._native_batch_norm_legit_no_training,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._softmax,
    aten._softmax_backward_data,
    aten.avg_pool2d,
    aten.avg_pool2d_backward,
    aten.avg_pool3d,
    aten.avg_pool3d_backward,
    aten.convolution,
    aten.convolution_backward,
    aten.embedding,
    aten.embedding_dense_backward,
    aten.eye,
    aten.gelu,
    aten.gelu_backward,
    aten.leaky_relu,
    aten.leaky_relu_backward,
    aten.max_pool2d_with_indices,
    aten.max_pool2d_with_indices_backward,
    aten.max_pool3d_with_indices,
    aten.max_pool3d_with_indices_backward,
    aten.native_batch_norm_backward,
    aten.native_dropout_backward,
    aten.native_group_norm,
    aten.native_layer_norm,
    aten.native_layer_norm_backward,
    aten._native_batch_norm_legit,
    aten.nll_loss_backward,
    aten.nll_loss_forward,
    aten.nll_loss2d_backward,
    aten.nll_loss2d_forward,
    aten.reflection_pad1d,
    aten.reflection_pad1d_backward,
    aten.reflection_pad2d,
    aten.reflection_pad2d_backward,
    aten.reflection_pad3d,
    aten.reflection_pad3d_backward,
    aten.replication_pad1d,
    aten.replication_pad2d,
    aten.replication_pad3d,
    aten.roll,
    aten.select_backward,
    aten.select_scatter,
    aten.sigmoid_backward,
    aten.silu,
    aten.silu_backward,
    aten.slice_backward,
    aten.slice_scatter,
    aten.tanh_backward,
    aten.threshold_backward,
    aten.tril,
    aten.triu,
    aten.var,
    aten.var_mean,
}

# Core operators that are made of others with rules.
_TAKEN_APART = [
    aten.linalg_vector_norm,
    aten.addcdiv,
    aten.addcmul,
    aten.elu,
    aten.elu_backward,
    aten.hardtanh,
    aten.hardtanh_backward,
    aten.mse_loss,
    aten.mse_loss_backward,
    aten.native_group_norm_backward,
    aten.smooth_l1_loss,
    aten.smooth_l1_loss_backward,
    aten.t,
]

# Drawn by PyTorch's own operators, random numbers are those that a model gets without compilation.
RANDOM = ("bernoulli", "dropout", "rand", "uniform", "normal_", "normal.", "exponential")


def draws_random_numbers(overload: Any) -> bool:
    """Whether an operator uses PyTorch's generator."""
    name = str(overload).removeprefix("aten.")
    return name.startswith(RANDOM) and not name.endswith("backward.default")


def decompositions() -> dict[Any, Callable[..., Any]]:
    """The table for AOTAutograd."""
    # Without the composed operators of core_aten_decompositions, which AOTAutograd takes apart
    # anyway: their functions take 5 MB.
    table = _core_aten_decompositions_post_autograd() | get_decompositions(_TAKEN_APART)
    kept = {
        overload: function
        for overload, function in table.items()
        if getattr(overload, "overloadpacket", overload) not in _WHOLE
        and not draws_random_numbers(overload)
    }
    kept[aten.native_dropout.default] = _dropout
    kept |= special_functions() | _COMPOSED
    return kept


def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws the mask apart, so that what drops the elements can be lowered."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    # Numbers are drawn in the order of the memory of a tensor like x.
    order = list(range(x.dim()))
    if not x.is_contiguous():
        steps = torch.empty_like(x, device="meta").stride()
        order.sort(key=lambda axis: -steps[axis])
    stored = torch.empty([x.shape[axis] for axis in order], dtype=torch.bool, device=x.device)
    mask = torch.bernoulli(stored, 1 - p)
    if order != sorted(order):
        mask = mask.permute([order.index(axis) for axis in range(x.dim())])
    return torch.where(mask, x * (0.0 if p == 1 else 1 / (1 - p)), 0.0), mask


def _drawn_with_shape(draw: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """Draws numbers that do not wait for the values of the tensor whose shape they get."""

    def composed(x: torch.Tensor, *, dtype: Any = None, device: Any = None, **layout: Any) -> Any:
        has_fixed_sizes = all(isinstance(size, int) for size in x.shape)
        if any(layout.values()) or not has_fixed_sizes or not x.is_contiguous():
            return NotImplemented
        return draw(x.shape, dtype=dtype or x.dtype, device=device or x.device)

    return composed


def _batched_sum(
    c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> torch.Tensor:
    """addbmm: one product of matrices that stand side by side."""
    count, rows, inner = a.shape
    wide = a.permute(1, 0, 2).reshape(rows, count * inner)
    return torch.addmm(c, wide, b.reshape(count * inner, -1), beta=beta, alpha=alpha)


def _distance(x: torch.Tensor, y: torch.Tensor, p: Any = 2) -> torch.Tensor:
    return torch.linalg.vector_norm(x - y, p)


def _greater(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """fmax: of a number and a NaN the number."""
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))


def _less(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))


def _unless_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    def composed(x: torch.Tensor, y: torch.Tensor) -> Any:
        are_floating = x.dtype.is_floating_point and y.dtype == x.dtype
        return function(x, y) if are_floating else NotImplemented

    return composed


def _is_negative(x: torch.Tensor) -> torch.Tensor:
    """Whether a floating number has the sign bit, NaN not."""
    return (x < 0) | ((x == 0) & (torch.reciprocal(x) < 0))


def _signed_like(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    size = torch.abs(x)
    return torch.where(_is_negative(y), -size, size)


def _repeated(repeats: torch.Tensor, *, output_size: int | None = None) -> Any:
    """0 as often as the first number says, then 1, and so on."""
    if not isinstance(output_size, int) or output_size == 0:
        return NotImplemented
    ends = torch.cumsum(repeats, 0)
    # What begins at the end of all, because the last ones are repeated 0 times, is cut off.
    beginnings = torch.zeros(output_size + 1, dtype=ends.dtype, device=ends.device)
    beginnings = beginnings.scatter_add(0, ends, torch.ones_like(ends))
    return torch.cumsum(beginnings, 0)[:output_size].to(repeats.dtype)


_COMPOSED: dict[Any, Callable[..., Any]] = {
    aten.addbmm.default: _batched_sum,
    aten.copysign.Tensor: _unless_integers(_signed_like),
    aten.dist.default: _distance,
    aten.fmax.default: _unless_integers(_greater),
    aten.fmin.default: _unless_integers(_less),
    aten.rand_like.default: _drawn_with_shape(torch.rand),
    aten.randn_like.default: _drawn_with_shape(torch.randn),
    aten.repeat_interleave.Tensor: _repeated,
}
