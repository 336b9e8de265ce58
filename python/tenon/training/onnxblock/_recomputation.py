"""Lets the backward part of a training model compute activations again instead of keeping them."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable

from onnx import ModelProto, NodeProto, helper

from ._graph import after, nodes_above, reads_of, set_nodes, subgraphs_of

BUFFER = "_grad.accumulation.buffer"
# Of other domains nothing is known.
DOMAINS = ("", "ai.onnx", "com.microsoft")
RANDOM = ("Bernoulli", "Dropout", "Multinomial", "Random")
UNKNOWN_SIZE = 64  # what axes count whose size is not known


def recompute_activations(
    model: ModelProto, results: Iterable[str], end: str | None = None
) -> None:
    """Changes a training model with these forward results so that it keeps few activations.

    Activations are what depends on trained parameters. A cut is one that crosses its place in the
    forward part alone, such as the sum after a layer of a transformer. Some are chosen, such that
    the bytes of these cuts, and those of the activations between two of them that the backward part
    reads, are together fewest. What lies between two of them is computed a second
    time, just before the backward part reads it. What follows the last one is kept, as are results
    of random nodes, of custom operators and of nodes with subgraphs. A model without cuts stays as
    it is.

    end  the only result, if much memory is needed between the forward and the backward part: it is
         the last cut, so that nothing else is kept
    """
    forward = nodes_above(model.graph, results)
    made = {name for node in forward for name in node.output}
    backward = [node for node in model.graph.node if not made.intersection(node.output)]
    recomputation = _Recomputation(model, forward, backward, end)
    nodes = [*forward, *recomputation.backward_nodes()]
    if len(nodes) == len(model.graph.node):
        return
    set_nodes(model, nodes)


def _may_run_again(node: NodeProto) -> bool:
    is_random = any(word in node.op_type for word in RANDOM)
    return node.domain in DOMAINS and not is_random and not any(subgraphs_of(node))


class _Recomputation:
    """Finds the cuts of a forward part, and makes the backward part that computes again."""

    def __init__(
        self,
        model: ModelProto,
        forward: list[NodeProto],
        backward: list[NodeProto],
        end: str | None,
    ) -> None:
        self._forward, self._backward, self._end = forward, backward, end
        self._constants = {tensor.name for tensor in model.graph.initializer}
        self._place = {name: i for i, node in enumerate(forward) for name in node.output if name}
        inputs = {value.name for value in model.graph.input}
        self._active = self._that_depend_on({n for n in inputs if f"{n}{BUFFER}" in inputs})
        again = {
            name
            for node in backward
            if not any(subgraphs_of(node))
            for name in self._active.intersection(node.input)
        }
        self._stashed = sorted(again, key=self._place.__getitem__)
        self._cuts = self._found_cuts()
        self._sizes = _sizes_of(model, {*self._stashed, *self._cuts})

    def _that_depend_on(self, names: set[str]) -> set[str]:
        """The results of forward nodes that depend on these values."""
        found: set[str] = set()
        for node in self._forward:
            if not reads_of(node).isdisjoint(names | found):
                found.update(node.output)
        return found - {""}

    def _found_cuts(self) -> list[str]:
        """In the order of the forward part."""
        last = {name: i for i, node in enumerate(self._forward) for name in reads_of(node)}
        if self._end in self._active:
            last[self._end] = len(self._forward)
        crossing: set[str] = set()
        cuts: list[str] = []
        for i, node in enumerate(self._forward):
            crossing = {name for name in crossing if last[name] > i}
            new = {name for name in self._active.intersection(node.output) if last.get(name, 0) > i}
            crossing |= new
            if crossing == new and len(new) == 1:
                cuts += new
        return cuts

    def _chosen_cuts(self) -> list[str]:
        between = self._bytes_between(self._cuts)
        limits, limit = [], sum(between)
        while limit > max(between):
            limits.append(limit)
            limit = limit * 7 // 8
        choices = [self._chosen_within(between, limit) for limit in [*limits, max(between)]]
        return min(choices, key=self._memory_with)

    def _chosen_within(self, between: list[int], limit: int) -> list[str]:
        """As few cuts as leave at most so many bytes between two of them."""
        chosen, held = [], 0
        for i, cut in enumerate(self._cuts):
            held += between[i]
            if cut == self._end or held + between[i + 1] > limit:
                chosen.append(cut)
                held = 0
        return chosen

    def _memory_with(self, cuts: list[str]) -> int:
        return sum(self._sizes[cut] for cut in cuts) + max(self._bytes_between(cuts))

    def _bytes_between(self, cuts: list[str]) -> list[int]:
        """Of the activations up to each cut, besides cuts, and of those after the last."""
        places = [self._place[cut] for cut in cuts]
        sums = [0] * (len(cuts) + 1)
        for name in set(self._stashed).difference(cuts):
            sums[bisect.bisect_left(places, self._place[name])] += self._sizes[name]
        return sums

    def backward_nodes(self) -> list[NodeProto]:
        """The backward part with the nodes that compute again; its nodes read what these make."""
        inserted: dict[int, list[NodeProto]] = {}
        renamed: dict[str, str] = {}
        begin = 0
        for cut in self._chosen_cuts():
            end = self._place[cut]
            again = self._nodes_again(begin, end, cut)
            begin = end + 1
            made = {name for node in again for name in node.output} & set(self._stashed)
            readers = [i for i, node in enumerate(self._backward) if made.intersection(node.input)]
            if not readers or readers[0] == 0:
                continue
            earlier = next(name for name in self._backward[readers[0] - 1].output if name)
            inserted[readers[0]] = self._copies(again, earlier)
            renamed.update({name: _copy_of(name) for name in made})
        nodes = []
        for i, node in enumerate(self._backward):
            nodes += inserted.get(i, [])
            reader = NodeProto.FromString(node.SerializeToString())
            reader.input[:] = [renamed.get(name, name) for name in node.input]
            nodes.append(reader)
        return nodes

    def _nodes_again(self, begin: int, end: int, cut: str) -> list[NodeProto]:
        """The nodes of [begin, end] that make stashed values besides the cut."""
        wanted, again = set(self._stashed) - {cut}, []
        for node in reversed(self._forward[begin : end + 1]):
            if wanted.intersection(node.output) and cut not in node.output and _may_run_again(node):
                again.append(node)
                wanted |= self._active.intersection(node.input)
        return again[::-1]

    def _copies(self, nodes: list[NodeProto], earlier: str) -> list[NodeProto]:
        """Copies that run after the value `earlier` is there: all they read passes an After."""
        names = {name: _copy_of(name) for node in nodes for name in node.output if name}
        made: list[NodeProto] = []
        for node in nodes:
            for name in node.input:
                if name and name not in names and name not in self._constants:
                    names[name] = f"{_copy_of(name)}_of_{earlier}"
                    made.append(after(name, earlier, names[name]))
            copy = NodeProto.FromString(node.SerializeToString())
            copy.name = _copy_of(node.name)
            copy.input[:] = [names.get(name, name) for name in node.input]
            copy.output[:] = [names.get(name, name) for name in node.output]
            made.append(copy)
        return made


def _sizes_of(model: ModelProto, names: set[str]) -> dict[str, int]:
    """The bytes of these values. If not even the number of axes is known of all, each counts 1."""
    sizes = {}
    for value in (*model.graph.output, *model.graph.value_info):
        if value.name in names and value.type.tensor_type.HasField("shape"):
            sizes[value.name] = helper.tensor_dtype_to_np_dtype(
                value.type.tensor_type.elem_type
            ).itemsize * math.prod(
                dim.dim_value if dim.HasField("dim_value") else UNKNOWN_SIZE
                for dim in value.type.tensor_type.shape.dim
            )
    return sizes if names <= sizes.keys() else dict.fromkeys(names, 1)


def _copy_of(name: str) -> str:
    return f"{name}_recomputed"
