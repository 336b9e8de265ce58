"""Samples of images at positions that are computed."""

from __future__ import annotations

from typing import Any

import torch

from ._graph import GraphBuilder
from ._lowering import arguments, rule, unless_float, unless_single

aten = torch.ops.aten

# By the numbers that PyTorch gives them.
_MODES = ("linear", "nearest", "cubic")
_PADDINGS = ("zeros", "border", "reflection")


def _settings(mode: int, padding: int, aligns_corners: bool) -> dict[str, Any]:
    return {
        "mode": _MODES[mode],
        "padding_mode": _PADDINGS[padding],
        "align_corners": int(aligns_corners),
    }


@rule(aten.grid_sampler_2d.default, aten.grid_sampler_3d.default, unless=unless_float)
def _samples(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    source, grid, *settings = arguments(node)
    return graph.op("GridSample", graph.value(source), graph.value(grid), **_settings(*settings))


@rule(
    aten.grid_sampler_2d_backward.default,
    aten.grid_sampler_3d_backward.default,
    unless=unless_single,
)
def _samples_gradient(graph: GraphBuilder, node: torch.fx.Node) -> Any:
    upper, source, grid, *settings, wanted = arguments(node)
    names = [graph.value(each) for each in (upper, source, grid)]
    return graph.contrib("GridSampleGrad", *names, outputs=wanted, **_settings(*settings))
