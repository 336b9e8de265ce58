"""Splits a traced graph into regions for Tenon and nodes that stay in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

# Each registers its rules.
from . import (  # noqa: F401
    _rules_activations,
    _rules_angles,
    _rules_attention,
    _rules_convolutions,
    _rules_distances,
    _rules_elementwise,
    _rules_indices,
    _rules_losses,
    _rules_normalizations,
    _rules_pads,
    _rules_pools,
    _rules_products,
    _rules_recurrent,
    _rules_reductions,
    _rules_resizing,
    _rules_sampling,
    _rules_shapes,
    _rules_views,
)
from ._lowering import why_not
from ._region import Region, Settings
from ._rules_shapes import DENSE_VIEWS, FREE, RESHAPES

aten = torch.ops.aten

# The argument by which a node reads the one that draws random numbers before it.
_AFTER = "after"


class _Rules(OperatorSupportBase):
    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node
    ) -> bool:
        return not why_not(node)


def partition(module: torch.fx.GraphModule, settings: Settings) -> torch.fx.GraphModule:
    """Replaces what Tenon computes by regions."""
    _simplify_views(module.graph)
    _chain_draws(module.graph)
    partitioner = CapabilityBasedPartitioner(module, _Rules(), allows_single_node_partition=True)
    proposals = []
    for proposal in partitioner.propose_partitions():
        _move_views_out(module.graph, proposal)
        if any(node.target not in FREE for node in proposal.nodes):
            proposals.append(proposal)
    fused = partitioner.fuse_partitions(proposals)
    _unchain_draws(fused)
    for node in fused.graph.nodes:
        if node.op == "call_module":
            submodule: Any = fused.get_submodule(node.target)
            given = [i for i, read in enumerate(node.args) if _is_only_for(read, node)]
            setattr(fused, node.target, Region(submodule, settings, given))
    return fused


def boxed(module: torch.fx.GraphModule) -> Callable[[list[Any]], Any]:
    """A function for a module that `partition` returned, which empties its list of inputs.

    A region lets go of the inputs that nothing else reads while it runs.
    """
    placeholders = module.graph.find_nodes(op="placeholder")
    is_given = [any(_is_only_for(node, user) for user in node.users) for node in placeholders]

    def run(inputs: list[Any]) -> Any:
        held = [[each] if is_one else each for each, is_one in zip(inputs, is_given, strict=True)]
        inputs.clear()
        return module.forward(*held)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _is_only_for(node: Any, region: torch.fx.Node) -> bool:
    """Whether an input of the graph is for this region alone."""
    is_input = isinstance(node, torch.fx.Node) and node.op == "placeholder"
    is_alone = is_input and list(node.users) == [region] and region.args.count(node) == 1
    return is_alone and region.op == "call_module"


def regions_of(module: torch.fx.GraphModule) -> list[Region]:
    """The regions of a module that `partition` returned."""
    return [child for child in module.children() if isinstance(child, Region)]


def _simplify_views(graph: torch.fx.Graph) -> None:
    """Makes a permutation of a permuted tensor one of the tensor, or nothing."""
    for node in graph.find_nodes(op="call_function", target=aten.permute.default):
        source, axes = node.args
        if source.target is not aten.permute.default:
            continue
        base, inner = source.args
        order = [inner[axis] % len(inner) for axis in axes]
        if order == sorted(order):
            node.replace_all_uses_with(base)
            graph.erase_node(node)
        else:
            node.args = (base, order)
        if not source.users:
            graph.erase_node(source)


def _chain_draws(graph: torch.fx.Graph) -> None:
    """Keeps what draws random numbers in its order, in which others get theirs, too."""
    draws = [node for node in graph.nodes if _is_random(node) and why_not(node)]
    for before, node in pairwise(draws):
        node.kwargs = {**node.kwargs, _AFTER: before}


def _unchain_draws(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if _is_random(node) and _AFTER in node.kwargs:
            node.kwargs = {name: node.kwargs[name] for name in node.kwargs if name != _AFTER}
    module.recompile()


def _is_random(node: torch.fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    return torch.Tag.nondeterministic_seeded in target.tags


def _move_views_out(graph: torch.fx.Graph, proposal: Any) -> None:
    """Lets PyTorch make the views that others than the region use. They cost nothing there."""
    for node in reversed([each for each in graph.nodes if each in proposal.nodes]):
        others = [user for user in node.users if user not in proposal.nodes]
        if node.target not in DENSE_VIEWS or not others or _is_sole_form(node, proposal):
            continue
        with graph.inserting_after(node):
            view = graph.node_copy(node)
        for user in others:
            user.replace_input_with(node, view)
        if not node.users:
            proposal.remove_node(node)
            graph.erase_node(node)


def _is_sole_form(node: torch.fx.Node, proposal: Any) -> bool:
    """Whether a value of the region leaves it in this shape alone."""
    if node.target not in RESHAPES:
        return False
    source = node.all_input_nodes[0]
    is_inner = source in proposal.nodes and source.target not in DENSE_VIEWS
    return is_inner and all(user in proposal.nodes for user in source.users)
