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

from .._session import InferenceSession
from .._tenon import RunOptions, SessionOptions

__all__ = [
    "TenonBackend",
    "TenonBackendRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]


# The options that keyword arguments may set. Others can write files or end runs, so they are no
# matter for whoever chooses the arguments of a backend.
SESSION_OPTIONS = frozenset(
    {
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "execution_mode",
        "execution_order",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "use_deterministic_compute",
        "use_per_session_threads",
    }
)
RUN_OPTIONS = frozenset(
    {"log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches"}
)


def with_options(options: Any, known: frozenset[str], arguments: dict[str, Any]) -> Any:
    """Sets the options among `arguments`, and returns them. Raises RuntimeError for forbidden ones.

    Names that are no options at all are left alone.
    """
    for name, value in arguments.items():
        if name in known:
            setattr(options, name, value)
        elif hasattr(options, name):
            raise RuntimeError(f"{type(options).__name__}.{name} is not permitted here")
    return options


class TenonBackendRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        names = [output.name for output in session.get_outputs()]
        self._results = namedtupledict("Outputs", names)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model once. Keyword arguments that are options of runs are set.

        inputs  values in the order of the model's inputs; one array for a model with one input; or
                a mapping from names. A dictionary without the name of the only input is its value.
                The value of an optional input may be None.
        """
        names = [argument.name for argument in self._session.get_inputs()]
        if isinstance(inputs, dict) and (len(names) != 1 or names[0] in inputs):
            feeds = inputs
        else:
            values = inputs if isinstance(inputs, list | tuple) else [inputs]
            if len(values) > len(names):
                raise ValueError(f"expected {len(names)} inputs, got {len(values)}")
            feeds = dict(zip(names, values, strict=False))
        options = with_options(RunOptions(), RUN_OPTIONS, kwargs)
        return self._results(*self._session.run(None, feeds, options))


class TenonBackend(Backend):
    """The interface as a class. The functions of this module are its methods."""

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto | bytes | str | os.PathLike[str] | TenonBackendRep,
        device: str = "CPU",
        **kwargs: Any,
    ) -> TenonBackendRep:
        """Loads a model: a ModelProto, its bytes or a file.

        Keyword arguments that are options of sessions are set.
        """
        if isinstance(model, TenonBackendRep):
            return model
        if not cls.supports_device(device):
            raise ValueError(f"expected the device CPU, got {device}")
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        options = with_options(SessionOptions(), SESSION_OPTIONS, kwargs)
        return TenonBackendRep(InferenceSession(source, options))

    @classmethod
    def run_model(
        cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Loads a model and runs it once. Keyword arguments are options of sessions or of runs."""
        of_runs = {name: value for name, value in kwargs.items() if hasattr(RunOptions, name)}
        of_sessions = {
            name: value
            for name, value in kwargs.items()
            if name not in of_runs or name in SESSION_OPTIONS
        }
        return cls.prepare(model, device, **of_sessions).run(inputs, **of_runs)

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
