"""Splits a traced graph into regions for Tenon and nodes that stay in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ._lowering import why_not
from ._region import Region
from ._rules_shapes import VIEWS


class _Rules(OperatorSupportBase):
    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node
    ) -> bool:
        return not why_not(node)


def partition(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Replaces what Tenon computes by regions. Views alone stay where they cost nothing."""
    partitioner = CapabilityBasedPartitioner(module, _Rules(), allows_single_node_partition=True)
    proposals = [
        proposal
        for proposal in partitioner.propose_partitions()
        if any(node.target not in VIEWS for node in proposal.nodes)
    ]
    fused = partitioner.fuse_partitions(proposals)
    for node in fused.graph.nodes:
        if node.op == "call_module":
            submodule = fused.get_submodule(node.target)
            setattr(fused, node.target, Region(submodule))
    return fused
