"""The backend interface of the onnx package, which its test suite runs: needs `onnx`.

import tenon.backend
(y,) = tenon.backend.run_model(model, [x])
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._session import InferenceSession

__all__ = [
    "TenonBackend",
    "TenonBackendRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


class TenonBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        names = [output.name for output in session.get_outputs()]
        self._results = namedtupledict("Outputs", names)

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Runs the model once.

        inputs  values in the order of the model's inputs; one array for a model with one input; or
                a mapping from names. The value of an optional input may be None.
        """
        names = [argument.name for argument in self._session.get_inputs()]
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            values = inputs if isinstance(inputs, list | tuple) else [inputs]
            if len(values) > len(names):
                raise ValueError(f"expected {len(names)} inputs, got {len(values)}")
            feeds = dict(zip(names, values, strict=False))
        return self._results(*self._session.run(None, feeds))


class TenonBackend(Backend):
    """The interface as a class. The functions of this module are its methods."""

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto | bytes | str | os.PathLike[str], device: str = "CPU", **_: Any
    ) -> TenonBackendRep:
        """Loads a model: a ModelProto, its bytes or a file."""
        if not cls.supports_device(device):
            raise ValueError(f"expected the device CPU, got {device}")
        if isinstance(model, onnx.ModelProto):
            model = model.SerializeToString()
        return TenonBackendRep(InferenceSession(model))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one operator on arrays, or on lists of arrays for sequences.

        inputs        one value for each input of the node that is present
        opset_version of the node's domain; the newest one unless told
        """
        del outputs_info
        names = list(dict.fromkeys(name for name in node.input if name))
        values = [inputs[name] for name in names] if isinstance(inputs, dict) else list(inputs)
        if len(values) != len(names):
            raise ValueError(f"expected {len(names)} inputs, got {len(values)}")
        graph = helper.make_graph(
            [node],
            "node",
            [
                helper.make_value_info(name, type_of(value))
                for name, value in zip(names, values, strict=True)
            ],
            [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        newest = {"": onnx.defs.onnx_opset_version()}
        version = kwargs.get("opset_version") or newest.get(node.domain, 1)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.prepare(model, device).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device, e.g. "CPU" or "CUDA:1"."""
        return device.partition(":")[0] == "CPU"


def type_of(value: Any) -> onnx.TypeProto:
    """The ONNX type of an array or of a list of arrays."""
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    array = np.asarray(value)
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run = TenonBackend.run_model  # its name in onnxruntime.backend
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
