"""Divides the traced graph of a model and its gradient into the two graphs that are compiled.

PyTorch's partitioner stashes every value of the forward graph that the backward graph reads. Before
it does, large values that are cheap to compute from other stashed ones get a copy of the nodes that
compute them, in the backward graph, which then reads that.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from ._aot import default_partition
from ._rules_shapes import DENSE_VIEWS

aten = torch.ops.aten

# Stashed values of fewer bytes stay as they are.
_LEAST_BYTES = 1 << 20
# Values of fewer bytes are stashed where a larger one is then computed again.
_SMALL = 1 << 16
# A value is computed again if that moves at most so many bytes for each of its own.
_MOST_MOVED = 4
# All that is computed again takes at most about a fiftieth of the time of the products. A processor
# does some 5 operations of a product in the time in which it moves a byte.
_BYTES_PER_OPERATION = 1 / 50 / 5

# Cheap nodes that are not element-wise, so that they do not become one with others.
_SEPARATE = {
    aten.max_pool2d_with_indices.default,
    aten.max_pool3d_with_indices.default,
    aten.native_layer_norm.default,
}
# Beside the operators that PyTorch tags as element-wise.
_CHEAP = {
    *DENSE_VIEWS,
    *_SEPARATE,
    aten._native_batch_norm_legit_no_training.default,
    aten.full.default,
    aten.scalar_tensor.default,
}

# Products of groups, which PyTorch's count of operations leaves out: how many there are for each
# element of the first operand and column of the second.
_GROUPED = {
    "aten._grouped_mm.default": 2,
    "transformers.grouped_mm_fallback.default": 2,
    "transformers.grouped_mm_fallback_backward.default": 4,
}

# On values that are only stashed: no layout is expected of them.
STASHED = "tenon_is_stashed"


def partition_joint(
    module: torch.fx.GraphModule, inputs: Any, *, num_fwd_outputs: int, **keywords: Any
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """The forward and the backward graph: a partition_fn for AOTAutograd."""
    if all(_has_fixed_sizes(node) for node in module.graph.nodes):
        _apart_from_statistics(module.graph)
        joint = _Joint(module.graph, num_fwd_outputs)
        joint.compute_again()
        joint.view_again()
        joint.mark_stashed()
    return default_partition(module, inputs, num_fwd_outputs=num_fwd_outputs, **keywords)


def _has_fixed_sizes(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return all(isinstance(size, int) for size in value.shape)
    return not isinstance(value, torch.SymInt)


def _apart_from_statistics(graph: torch.fx.Graph) -> None:
    """Takes batch normalizations apart: what finds the statistics, and what normalizes by them.

    The second is cheap, and has the same bits where it is computed again.
    """
    target = aten._native_batch_norm_legit_functional.default
    for node in graph.find_nodes(op="call_function", target=target):
        results = {user.args[1]: user for user in node.users}
        if node.args[5] and {0, 1, 2} <= results.keys():
            _normalize_apart(graph, node, results)


def _normalize_apart(
    graph: torch.fx.Graph, node: torch.fx.Node, results: dict[Any, torch.fx.Node]
) -> None:
    source, weight, bias = node.args[:3]
    result, mean, rstd = (results[i] for i in range(3))

    def add(target: Any, *arguments: Any, **keywords: Any) -> torch.fx.Node:
        added = graph.call_function(target, arguments, keywords)
        added.meta["partitioner_tag"] = node.meta.get("partitioner_tag")
        with rstd.meta["val"].fake_mode:
            added.meta["val"] = target(*_values(arguments), **_values(keywords))
        return added

    last = max(result, mean, rstd)
    if any(user < last for user in result.users):
        return
    statistic = rstd.meta["val"]
    with graph.inserting_before(last.next):
        scale = rstd if weight is None else add(aten.mul.Tensor, rstd, weight)
        ones = add(aten.full.default, list(statistic.shape), 1, dtype=statistic.dtype)
        line = add(
            aten._native_batch_norm_legit_no_training.default,
            source, scale, bias, mean, ones, 0.0, 0.0,
        )  # fmt: skip
        normalized = add(operator.getitem, line, 0)
    result.replace_all_uses_with(normalized)
    graph.erase_node(result)


def _values(arguments: Any) -> Any:
    return torch.fx.map_arg(arguments, lambda node: node.meta["val"])


class _Joint:
    """The graph of a model and its gradient."""

    def __init__(self, graph: torch.fx.Graph, num_fwd_outputs: int) -> None:
        self._graph = graph
        nodes = list(graph.nodes)
        # As PyTorch's partitioner divides them.
        last = max((i for i, node in enumerate(nodes) if _is_forward(node)), default=-1)
        self._forward = {node for node in nodes[: last + 1] if not _is_tangent(node)}
        self._backward = [node for node in nodes[last + 1 :] if node.op == "call_function"]
        outputs: Any = next(iter(graph.find_nodes(op="output"))).args[0]
        results = [node for node in outputs[:num_fwd_outputs] if isinstance(node, torch.fx.Node)]
        self._results = {_base(node) for node in results}
        # Values of the forward graph that the backward graph reads, itself or a view of them.
        self._stashed = {
            _base(read)
            for node in self._backward
            for read in node.all_input_nodes
            if read in self._forward
        }
        self._again: set[torch.fx.Node] = set()  # of these, the ones that are computed again
        self._computing: set[torch.fx.Node] = set()  # what that takes
        self._pinned: set[torch.fx.Node] = set()  # what that reads
        self._copies: dict[torch.fx.Node, torch.fx.Node] = {}
        self._views: dict[torch.fx.Node, torch.fx.Node] = {}

    def compute_again(self) -> None:
        """Lets the backward graph compute values again that are large and cheap."""
        budget = _BYTES_PER_OPERATION * sum(map(_operations, self._graph.nodes))
        for value in sorted(sorted(self._stashed), key=_bytes, reverse=True):
            size = _bytes(value)
            if size < _LEAST_BYTES:
                break
            if value in self._pinned or value in self._results or not _is_cheap(value):
                continue
            nodes, leaves = self._cone(value)
            cost = self._moved(value, nodes, leaves)
            if cost <= min(budget, _MOST_MOVED * size):
                budget -= cost
                self._again.add(value)
                self._computing |= nodes
                self._pinned |= leaves
        for node in self._backward:
            for read in node.all_input_nodes:
                if read in self._forward and _base(read) in self._again:
                    node.replace_input_with(read, self._copy(read, node))

    def view_again(self) -> None:
        """Lets the backward graph make its views of stashed values, which are stashed once."""
        for node in self._backward:
            for read in node.all_input_nodes:
                if read in self._forward and read.target in DENSE_VIEWS:
                    node.replace_input_with(read, self._view(read, node))

    def mark_stashed(self) -> None:
        """Marks the values that only the backward graph gets."""
        for value in self._stashed - self._results:
            value.meta[STASHED] = True

    def _cone(self, value: torch.fx.Node) -> tuple[set[torch.fx.Node], set[torch.fx.Node]]:
        """The nodes that compute the value from others, and these others."""
        nodes, leaves, rest = {value}, set(), [value]
        while rest:
            for read in rest.pop().all_input_nodes:
                base = _base(read)
                is_there = base in self._stashed and not self._may_pass(base)
                if is_there or read.op != "call_function" or not _is_cheap(read):
                    leaves.add(base)
                    if base is not read:
                        nodes.add(read)
                elif read not in nodes:
                    nodes.add(read)
                    rest.append(read)
        return nodes, leaves

    def _may_pass(self, stashed: torch.fx.Node) -> bool:
        """Whether it is computed again for one user, and so may be for this user's result."""
        users = [user for user in _users(stashed) if user in self._forward]
        return stashed in self._again and len(users) == 1

    def _moved(
        self, value: torch.fx.Node, nodes: set[torch.fx.Node], leaves: set[torch.fx.Node]
    ) -> float:
        """How many bytes move when it is computed again; infinite if it cannot be."""
        for leaf in leaves:
            is_there = leaf in self._stashed or leaf.op == "placeholder"
            is_small = isinstance(leaf.meta.get("val"), torch.Tensor) and _bytes(leaf) <= _SMALL
            if leaf in self._again or not (is_there or is_small):
                return math.inf
        # A chain of element-wise nodes is one kernel, which writes its result alone.
        last = value.all_input_nodes[0] if value.target is operator.getitem else value
        written = sum(_bytes(node) for node in nodes if node is last or node.target in _SEPARATE)
        return written + sum(map(_bytes, leaves))

    def _copy(self, node: torch.fx.Node, user: torch.fx.Node) -> torch.fx.Node:
        """The node's copy in the backward graph; a new one stands before `user`."""
        if node not in self._copies:
            reads = {
                read: self._copy(read, user)
                for read in node.all_input_nodes
                if read in self._computing or _base(read) in self._again
            }
            self._copies[node] = self._copy_with(node, reads, user)
        return self._copies[node]

    def _view(self, node: torch.fx.Node, user: torch.fx.Node) -> torch.fx.Node:
        """The same of a view, but its base is that of the forward graph.

        What computes a value again has its own ones, which may stand farther behind.
        """
        if node not in self._views:
            reads = {
                read: self._view(read, user)
                for read in node.all_input_nodes
                if read.target in DENSE_VIEWS
            }
            self._views[node] = self._copy_with(node, reads, user)
        return self._views[node]

    def _copy_with(
        self, node: torch.fx.Node, reads: dict[torch.fx.Node, torch.fx.Node], user: torch.fx.Node
    ) -> torch.fx.Node:
        with self._graph.inserting_before(user):
            copy = self._graph.node_copy(node, lambda read: reads.get(read, read))
        copy.meta = dict(node.meta) | {"partitioner_tag": "is_backward"}
        return copy


def _is_tangent(node: torch.fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def _is_forward(node: torch.fx.Node) -> bool:
    if node.op == "placeholder":
        return not _is_tangent(node)
    return node.meta.get("partitioner_tag") == "is_forward"


def _base(node: torch.fx.Node) -> torch.fx.Node:
    """What the node is a view of."""
    while node.target in DENSE_VIEWS:
        node = node.all_input_nodes[0]
    return node


def _users(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """What reads the node, itself or a view of it."""
    for user in node.users:
        if user.target in DENSE_VIEWS:
            yield from _users(user)
        else:
            yield user


def _is_element_wise(node: torch.fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    is_random = torch.Tag.nondeterministic_seeded in target.tags
    return torch.Tag.pointwise in target.tags and not is_random


def _is_cheap(node: torch.fx.Node) -> bool:
    if node.target is operator.getitem:
        return _is_cheap(node.all_input_nodes[0])
    return node.target in _CHEAP or _is_element_wise(node)


def _bytes(node: torch.fx.Node) -> int:
    value = node.meta.get("val")
    tensors = value if isinstance(value, tuple | list) else [value]
    return sum(
        each.numel() * each.element_size() for each in tensors if isinstance(each, torch.Tensor)
    )


def _operations(node: torch.fx.Node) -> int:
    """How many operations the products of a node have."""
    if (factor := _GROUPED.get(str(node.target))) is not None:
        x, w = (read.meta["val"] for read in node.args[:2])  # type: ignore[union-attr]
        return factor * int(x.numel() * w.shape[-1])
    count = flop_registry.get(getattr(node.target, "overloadpacket", None))
    if count is None:
        return 0
    arguments, keywords = _values(node.args), _values(node.kwargs)
    return int(count(*arguments, **keywords, out_val=node.meta["val"]))
