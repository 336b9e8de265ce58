"""A part of a traced graph that one Tenon session computes."""

from __future__ import annotations

from typing import Any

import torch

import tenon

from ._graph import GraphBuilder
from ._lowering import lower


class Region(torch.nn.Module):
    """Computes what `module` computes. Tensors go in and out without copies."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__()
        graph = GraphBuilder()
        outputs: Any = None
        self._input_names: list[str] = []
        for node in module.graph.nodes:
            if node.op == "placeholder":
                self._input_names.append(graph.add_input(node))
            elif node.op == "output":
                outputs = node.args[0]
            else:
                lower(graph, node)
        self._is_tuple = isinstance(outputs, tuple | list)
        nodes = list(outputs) if self._is_tuple else [outputs]
        self._strides = [_strides_to_give(node.meta["val"]) for node in nodes]
        model, self._output_names = graph.model(nodes)
        options = tenon.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        self._session = tenon.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def forward(self, *inputs: torch.Tensor) -> Any:
        """Runs the session."""
        to_value = tenon.OrtValue.from_dlpack
        feed = {
            name: to_value(tensor.detach().contiguous())
            for name, tensor in zip(self._input_names, inputs, strict=True)
        }
        values = self._session.run_with_ort_values(self._output_names, feed)
        outputs = [
            _with_strides(torch.from_dlpack(value), strides)
            for value, strides in zip(values, self._strides, strict=True)
        ]
        return tuple(outputs) if self._is_tuple else outputs[0]


def _strides_to_give(value: torch.Tensor) -> tuple[int, ...] | None:
    """The strides that PyTorch expects, or None for a contiguous tensor."""
    return None if value.is_contiguous() else tuple(int(stride) for stride in value.stride())


def _with_strides(tensor: torch.Tensor, strides: tuple[int, ...] | None) -> torch.Tensor:
    if strides is None:
        return tensor
    if 0 in strides:
        lasting = tuple(
            slice(0, 1) if stride == 0 else slice(None) for stride in strides
        )
        return tensor[lasting].expand(tensor.shape)
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)
