"""The order in which the nodes of a graph are computed."""

from __future__ import annotations

from collections import Counter

import torch


def with_results_early(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The nodes, inputs first, in an order in which results come as soon as they can.

    In a backward graph, the gradient of a weight then comes before that of the layer's input. So
    what only the first one reads, such as a stashed value, or one that is computed again from it,
    is not in memory together with the second one.
    """
    nodes = sorted(graph.nodes, key=lambda node: node.op != "placeholder")
    results = _sole_results(nodes)
    members: dict[torch.fx.Node, list[torch.fx.Node]] = {
        node: [] for node in nodes if node in results and results[node] is node
    }
    for node in nodes:
        if node in results:
            members[results[node]].append(node)
    # How many values that others read, too, a result waits for; and which results wait for a value.
    missing: Counter[torch.fx.Node] = Counter()
    waiting: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for result, group in members.items():
        for read in {read for node in group for read in node.all_input_nodes}:
            if read.op != "placeholder" and results.get(read) is not result:
                missing[result] += 1
                waiting.setdefault(read, []).append(result)
    order: dict[torch.fx.Node, None] = {}
    for node in nodes:
        order[node] = None
        for result in waiting.get(node, ()):
            missing[result] -= 1
            if missing[result] == 0:
                order.update(dict.fromkeys(members[result]))
    return list(order)


def _sole_results(nodes: list[torch.fx.Node]) -> dict[torch.fx.Node, torch.fx.Node]:
    """For each node that serves one result of the graph alone, this result."""
    results: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in reversed(nodes):
        if node.op in ("placeholder", "output"):
            continue
        if all(user.op == "output" for user in node.users):
            results[node] = node
            continue
        served = {results.get(user) for user in node.users}
        if len(served) == 1 and None not in served:
            results[node] = served.pop()  # type: ignore[assignment]
    return results
