"""A part of a traced graph that one Tenon session computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

import tenon

from ._graph import GraphBuilder, wide
from ._joint import STASHED
from ._lowering import is_empty, lower, why_not
from ._openmp import end_idle_threads
from ._order import with_results_early

# torch.utils.dlpack.from_dlpack looks for a method first, which a capsule does not have.
_from_capsule: Callable[[Any], torch.Tensor] = torch._C._from_dlpack

# The settings that are options of torch.compile.
_OPTIONS = ("intra_op_num_threads",)
# How many sessions a region keeps where sizes vary: those that were used last.
MOST_SESSIONS = 64


@dataclass(frozen=True)
class Settings:
    """The settings of the sessions."""

    intra_op_num_threads: int | None = None
    # Gets each ONNX model that is made.
    save_model: Callable[[bytes], object] | None = None
    # Gets the error where no session can be made, and PyTorch computes instead. Without it the
    # error is raised.
    report_failure: Callable[[Exception], object] | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Settings:
        """The settings that torch.compile got as `options`. Raises ValueError for others."""
        if unknown := sorted(set(options) - set(_OPTIONS)):
            known = ", ".join(map(repr, _OPTIONS))
            raise ValueError(f"options: expected {known}, got {unknown[0]!r}")
        settings = cls(**options)
        count = settings.intra_op_num_threads
        if count is not None and (not isinstance(count, int) or count < 1):
            raise ValueError(f"intra_op_num_threads: expected a positive number, got {count!r}")
        return settings

    def session_options(self) -> tenon.SessionOptions:
        """The options of a session."""
        options = tenon.SessionOptions()
        options.intra_op_num_threads = self.intra_op_num_threads or torch.get_num_threads()
        # Forward and backward graphs run in turns.
        options.add_session_config_entry("tenon.shares_memory", "1")
        return options


class Region(torch.nn.Module):
    """Computes what `module` computes. Tensors go in and out without copies.

    Where sizes vary, each combination of sizes gets a session of its own. PyTorch computes those
    that the rules exclude, such as a size of 0.
    """

    def __init__(
        self, module: torch.fx.GraphModule, settings: Settings, given: Iterable[int] = ()
    ) -> None:
        """Of the inputs, those with the numbers `given` come each in a list, and are taken out."""
        super().__init__()
        nodes = module.graph.nodes
        self._given = frozenset(given)
        self._operators = [
            str(node.target) for node in nodes if isinstance(node.target, torch._ops.OpOverload)
        ]
        self._settings = settings
        self._sessions: dict[Any, _Computation | None] = {}
        self._varies = _has_varying_sizes(module)
        self._fixed = None if self._varies else self._make(module.graph)
        # Its graph takes memory, and serves no more where one session does for all inputs. In a
        # list, it is no child.
        self._module = [] if self._fixed else [module]

    def forward(self, *inputs: Any) -> Any:
        """Runs the session for the sizes of the inputs."""
        tensors = [each.pop() if i in self._given else each for i, each in enumerate(inputs)]
        computation = self._for_sizes(tensors) if self._varies else self._fixed
        return computation.run(tensors) if computation else self._module[0](*tensors)

    def operators(self) -> list[str]:
        """The operators of PyTorch in the region."""
        return self._operators

    def _for_sizes(self, inputs: Sequence[Any]) -> _Computation | None:
        key = tuple(
            (each.shape, each.stride()) if isinstance(each, torch.Tensor) else each
            for each in inputs
        )
        if key in self._sessions:
            # The dictionary has them in the order of their last use.
            self._sessions[key] = self._sessions.pop(key)
        else:
            graph = _with_sizes_of(self._module[0].graph, inputs)
            is_possible = not any(why_not(n) for n in graph.nodes if n.op == "call_function")
            self._sessions[key] = self._make(graph) if is_possible else None
            if len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return self._sessions[key]

    def _make(self, graph: torch.fx.Graph) -> _Computation | None:
        try:
            return _Computation(graph, self._settings)
        except Exception as error:
            if self._settings.report_failure is None:
                raise
            self._settings.report_failure(error)
            return None


class _Computation:
    """A session for tensors of fixed sizes."""

    def __init__(self, graph: torch.fx.Graph, settings: Settings) -> None:
        builder = GraphBuilder()
        self._inputs: list[tuple[int, str, tuple[int, ...]]] = []
        results: Any = next(iter(graph.find_nodes(op="output"))).args[0]
        self._is_tuple = isinstance(results, tuple | list)
        nodes = list(results) if self._is_tuple else [results]
        self._empty = {
            i: node.meta["val"] for i, node in enumerate(nodes) if is_empty(node.meta["val"])
        }
        places: dict[torch.fx.Node, list[int]] = {}
        for i, node in enumerate(nodes):
            if i not in self._empty:
                places.setdefault(node, []).append(i)
        outputs: dict[int, tuple[str, _Layout]] = {}
        count = 0
        for node in with_results_early(graph):
            if node.op == "placeholder":
                self._add_input(builder, node, count)
                count += 1
            elif node.op != "output":
                lower(builder, node)
            # An output ends where its node is, so that what it is made of need not wait in memory.
            for i in places.get(node, ()):
                outputs[i] = self._add_output(builder, node)
        in_order = [outputs[i] for i in sorted(outputs)]
        self._output_names = [name for name, _ in in_order]
        self._layouts = [(i, each) for i, (_, each) in enumerate(in_order) if not each.is_plain]
        model = builder.model()
        if settings.save_model is not None:
            settings.save_model(model)
        session_options = settings.session_options()
        self._has_threads = session_options.intra_op_num_threads > 1
        self._run_options = _run_options(is_first=True)
        # No other provider could take over, nor a run be repeated, whose inputs are gone.
        self._session = tenon.InferenceSession(
            model, session_options, providers=["CPUExecutionProvider"], enable_fallback=False
        )
        self._input_names = [name for _, name, _ in self._inputs]

    def run(self, inputs: list[Any]) -> Any:
        """Runs the session. Empties the list, and lets go of each tensor after its last reader.

        Raises RuntimeError, as PyTorch's operators do. The session stays usable.
        """
        capsules = [_capsule(inputs[index], order) for index, _, order in self._inputs]
        inputs.clear()
        if self._has_threads:
            end_idle_threads()
        try:
            values = self._session._sess._run_taking(
                self._input_names, capsules, self._output_names, self._run_options
            )
            self._run_options = _RUN_OPTIONS
        except Exception as error:
            raise RuntimeError(str(error)) from error
        outputs = [_from_capsule(value.__dlpack__()) for value in values]
        for i, layout in self._layouts:
            outputs[i] = layout.restore(outputs[i])
        for i, value in self._empty.items():
            outputs.insert(i, torch.empty(value.shape, dtype=value.dtype))
        return tuple(outputs) if self._is_tuple else outputs[0]

    def _add_input(self, builder: GraphBuilder, node: torch.fx.Node, index: int) -> None:
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor) or is_empty(value):
            return
        order = _order(value)
        name = builder.add_input([value.shape[axis] for axis in order], value.dtype)
        back = sorted(range(len(order)), key=order.__getitem__)
        content = builder.cast(name, value.dtype, wide(value.dtype))
        builder.define(node, builder.transpose(content, back))
        is_in_order = order == tuple(range(len(order)))
        self._inputs.append((index, name, () if is_in_order else order))

    @staticmethod
    def _add_output(builder: GraphBuilder, node: torch.fx.Node) -> tuple[str, _Layout]:
        value = node.meta["val"]
        layout = _Layout(value, has_gaps=not node.meta.get(STASHED))
        name = builder.transpose(builder.value(node), layout.order)
        shape = [value.shape[axis] for axis in layout.order]
        return builder.add_output(name, shape, value.dtype), layout


def _capsule(tensor: torch.Tensor, order: tuple[int, ...]) -> Any:
    """The tensor with its axes in this order, for a session."""
    return to_dlpack((tensor.detach().permute(order) if order else tensor).contiguous())


def _run_options(is_first: bool) -> tenon.RunOptions:
    """The options of a run. The first has no memory plan, and later ones no use for its blocks."""
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.takes_bound_inputs", "1")
    if is_first:
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


_RUN_OPTIONS = _run_options(is_first=False)


class _Layout:
    """Where PyTorch expects the elements of an output."""

    def __init__(self, value: torch.Tensor, has_gaps: bool) -> None:
        self.order = _order(value)
        self._back: tuple[int, ...] | None = None
        self._strides: tuple[int, ...] | None = None
        dense = torch.empty([value.shape[a] for a in self.order], device="meta")
        back = tuple(sorted(range(len(self.order)), key=self.order.__getitem__))
        if back != self.order or back != tuple(range(len(back))):
            self._back = back
        if has_gaps and not _same_strides(dense.permute(back), value):
            self._strides = tuple(value.stride())

    @property
    def is_plain(self) -> bool:
        """Whether an output is already as PyTorch expects it."""
        return self._back is None and self._strides is None

    def restore(self, tensor: torch.Tensor) -> torch.Tensor:
        """The output as PyTorch expects it, from one whose axes are in `order`."""
        if self._back is not None:
            tensor = tensor.permute(self._back)
        if self._strides is None:
            return tensor
        if 0 in self._strides:
            single = tuple(slice(0, 1) if s == 0 else slice(None) for s in self._strides)
            return tensor[single].expand(tensor.shape)
        return torch.empty_strided(tensor.shape, self._strides, dtype=tensor.dtype).copy_(tensor)


def _order(value: torch.Tensor) -> tuple[int, ...]:
    """The axes from the one with the largest stride to the one with the smallest."""
    if value.is_contiguous():
        return tuple(range(value.dim()))
    strides = value.stride()
    return tuple(sorted(range(value.dim()), key=lambda axis: -strides[axis]))


def _same_strides(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether strides agree where they matter."""
    return all(n == 1 or a.stride(i) == b.stride(i) for i, n in enumerate(b.shape))


def _has_varying_sizes(module: torch.fx.GraphModule) -> bool:
    return any(
        isinstance(value, torch.SymInt)
        or (
            isinstance(value, torch.Tensor)
            and any(isinstance(n, torch.SymInt) for n in value.shape)
        )
        for value in (node.meta.get("val") for node in module.graph.nodes)
    )


def _with_sizes_of(graph: torch.fx.Graph, inputs: Sequence[Any]) -> torch.fx.Graph:
    """A copy of the graph for the sizes of the inputs. Sizes that are inputs become numbers."""
    result = torch.fx.Graph()
    copies: dict[torch.fx.Node, Any] = {}
    rest = iter(inputs)
    with FakeTensorMode():
        for node in graph.nodes:
            if node.op == "placeholder":
                value = next(rest)
                copy = result.placeholder(node.name)
                if isinstance(value, torch.Tensor):
                    value = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
                    copies[node] = copy
                else:
                    copies[node] = value
                copy.meta["val"] = value
            elif node.op == "output":
                result.node_copy(node, copies.__getitem__)
            else:
                copies[node] = copy = result.node_copy(node, copies.__getitem__)
                copy.meta["val"] = node.target(*_values(copy.args), **_values(copy.kwargs))
    return result


def _values(arguments: Any) -> Any:
    return torch.fx.map_arg(arguments, lambda node: node.meta["val"])
