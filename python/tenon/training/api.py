"""Trains a model from artifacts, as ``onnxruntime.training.api`` does::

    state = CheckpointState.load_checkpoint("checkpoint")
    module = Module("training_model.onnx", state, "eval_model.onnx")
    optimizer = Optimizer("optimizer_model.onnx", module)
    for images, labels in batches:
        module.train()
        loss = module(images, labels)
        optimizer.step()
        module.lazy_reset_grad()
    CheckpointState.save_checkpoint(state, "checkpoint", include_optimizer_state=True)

None of the classes is thread-safe.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .. import _tenon
from .._tenon import OrtValue, SessionOptions

__all__ = ["CheckpointState", "LinearLRScheduler", "Module", "Optimizer", "Parameter"]


def _value_of(array: np.ndarray) -> OrtValue:
    """The array as a value; it may have any strides."""
    return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(np.shape(array)))


class Parameter:
    """A tensor of the model that a checkpoint has; ``data`` reads and replaces its elements."""

    def __init__(self, state: CheckpointState, name: str) -> None:
        self._state = state
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def data(self) -> np.ndarray:
        """A copy of the elements."""
        return self._state._native.parameter(self._name).numpy()

    @data.setter
    def data(self, value: np.ndarray) -> None:
        self._state.parameters[self._name] = value

    @property
    def grad(self) -> np.ndarray | None:
        """A copy of the gradient; None if the parameter is not trained, or by no module yet."""
        session = self._state._session
        gradient = None if session is None else session.gradient(self._name)
        return None if gradient is None else gradient.numpy()

    @property
    def requires_grad(self) -> bool:
        return self._state._native.is_trained(self._name)

    def __repr__(self) -> str:
        return f"Parameter(name={self.name}, requires_grad={self.requires_grad})"


class Parameters:
    """The parameters of a checkpoint by name. Iteration gives pairs of name and parameter."""

    def __init__(self, state: CheckpointState) -> None:
        self._state = state

    def _names(self) -> list[str]:
        return self._state._native.parameter_names()

    def __getitem__(self, name: str) -> Parameter:
        if name not in self:
            raise KeyError(f"Parameter {name} not found.")
        return Parameter(self._state, name)

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        """Copies an array of the parameter's type and shape into it."""
        if name not in self:
            raise KeyError(f"Parameter {name} not found.")
        self._state._native.set_parameter(name, _value_of(value))

    def __contains__(self, name: str) -> bool:
        return name in self._names()

    def __iter__(self) -> Iterator[tuple[str, Parameter]]:
        return ((name, Parameter(self._state, name)) for name in self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __repr__(self) -> str:
        return f"Parameters({self._names()})"


class Properties:
    """Numbers and texts that a checkpoint keeps by name. Iteration gives pairs."""

    def __init__(self, state: CheckpointState) -> None:
        self._native = state._native

    def __getitem__(self, name: str) -> int | float | str:
        if name not in self:
            raise KeyError(f"Property {name} not found.")
        return self._native.property(name)

    def __setitem__(self, name: str, value: int | float | str) -> None:
        self._native.set_property(name, value)

    def __contains__(self, name: str) -> bool:
        return name in self._native.property_names()

    def __iter__(self) -> Iterator[tuple[str, int | float | str]]:
        return ((name, self._native.property(name)) for name in self._native.property_names())

    def __len__(self) -> int:
        return len(self._native.property_names())

    def __repr__(self) -> str:
        return f"Properties({self._native.property_names()})"


class CheckpointState:
    """Parameters, the optimizer's state and properties; made by ``load_checkpoint``."""

    def __init__(self, native: _tenon._CheckpointState) -> None:
        self._native = native
        self._session: _tenon._TrainingSession | None = None  # the one that trains the parameters
        self._parameters = Parameters(self)
        self._properties = Properties(self)

    @classmethod
    def from_parameters(
        cls,
        trained: Mapping[str, np.ndarray],
        frozen: Mapping[str, np.ndarray] | None = None,
    ) -> CheckpointState:
        """A checkpoint with copies of these arrays, for models whose artifacts are made by hand.
        Not in onnxruntime."""
        arrays = {**trained, **(frozen or {})}
        values = [_value_of(array) for array in arrays.values()]
        flags = [name in trained for name in arrays]
        return cls(_tenon._CheckpointState.create(list(arrays), values, flags))

    @classmethod
    def nominal(cls, trained: Iterable[str], frozen: Iterable[str] = ()) -> CheckpointState:
        """A checkpoint with the names of parameters, whose values come from
        ``Module.copy_buffer_to_parameters``. Not in onnxruntime."""
        flags = {name: True for name in trained} | {name: False for name in frozen}
        return cls(_tenon._CheckpointState.create_nominal(list(flags), list(flags.values())))

    @classmethod
    def load_checkpoint(cls, checkpoint_uri: str | os.PathLike[str]) -> CheckpointState:
        """Reads a checkpoint, and the file <checkpoint_uri>.data if its tensors are there."""
        return cls(_tenon._CheckpointState.load(os.fspath(checkpoint_uri)))

    @classmethod
    def save_checkpoint(
        cls,
        state: CheckpointState,
        checkpoint_uri: str | os.PathLike[str],
        include_optimizer_state: bool = False,
    ) -> None:
        """Writes the checkpoint. An old one is replaced as a whole, or not at all."""
        state._native.save(os.fspath(checkpoint_uri), include_optimizer_state)

    @property
    def parameters(self) -> Parameters:
        return self._parameters

    @property
    def properties(self) -> Properties:
        return self._properties


class Module:
    """Runs a model's training and evaluation graphs on the parameters of a checkpoint.

    A call takes the model's inputs in order, as arrays or as OrtValues, and returns its outputs as
    the same, one alone or a tuple of several.
    """

    training: bool

    def __init__(
        self,
        train_model_uri: str | os.PathLike[str],
        state: CheckpointState,
        eval_model_uri: str | os.PathLike[str] | None = None,
        device: str = "cpu",
        session_options: SessionOptions | None = None,
    ) -> None:
        if device.split(":", maxsplit=1)[0] != "cpu":
            raise ValueError(f"device {device!r}: training on the device runs on the CPU alone")
        self.training = True
        self._state = state
        self._models = (
            os.fspath(train_model_uri),
            None if eval_model_uri is None else os.fspath(eval_model_uri),
        )
        self._options = SessionOptions() if session_options is None else session_options
        self._open(None)

    def _open(self, optimizer: str | None) -> None:
        self._session = _tenon._TrainingSession(
            self._state._native, *self._models, optimizer, self._options
        )
        self._state._session = self._session

    def __call__(self, *user_inputs: Any) -> Any:
        has_arrays = any(isinstance(value, np.ndarray) for value in user_inputs)
        inputs = [
            value if isinstance(value, OrtValue) else _value_of(value) for value in user_inputs
        ]
        outputs = self._session.step(self.training, inputs)
        results = [value.numpy() for value in outputs] if has_arrays else outputs
        return results[0] if len(results) == 1 else tuple(results)

    def train(self, mode: bool = True) -> Module:
        """Lets calls run the training model, or the evaluation model if not `mode`."""
        if not mode and self._models[1] is None:
            raise RuntimeError("the module was made without an evaluation model")
        self.training = mode
        return self

    def eval(self) -> Module:
        return self.train(False)

    def lazy_reset_grad(self) -> None:
        """Lets the next training step overwrite the gradients instead of adding to them."""
        self._session.reset_gradients()

    def get_parameters_size(self, trainable_only: bool = True) -> int:
        """The number of elements of all parameters, or of those that are trained."""
        return self._session.parameter_count(trainable_only)

    def get_contiguous_parameters(self, trainable_only: bool = False) -> OrtValue:
        """A copy of the parameters in one float tensor, in the order of the training model."""
        size = self.get_parameters_size(trainable_only)
        buffer = OrtValue.ortvalue_from_numpy(np.zeros(size, np.float32))
        self._session.copy_to(buffer, trainable_only)
        return buffer

    def copy_buffer_to_parameters(self, buffer: OrtValue, trainable_only: bool = True) -> None:
        """Copies what ``get_contiguous_parameters`` returned back into the parameters."""
        self._session.copy_from(buffer, trainable_only)

    def export_model_for_inferencing(
        self, inference_model_uri: str | os.PathLike[str], graph_output_names: list[str]
    ) -> None:
        """Writes the part of the evaluation model that makes these outputs, with the parameters."""
        self._session.export(os.fspath(inference_model_uri), graph_output_names)

    def input_names(self) -> list[str]:
        return self._session.input_names(self.training)

    def output_names(self) -> list[str]:
        return self._session.output_names(self.training)


class Optimizer:
    """Changes a module's parameters by their gradients. Made before the first training step: it
    opens the module's session again, with gradients of zero."""

    def __init__(self, optimizer_uri: str | os.PathLike[str], module: Module) -> None:
        self._module = module
        module._open(os.fspath(optimizer_uri))

    def step(self) -> None:
        self._module._session.optimizer_step()

    def set_learning_rate(self, learning_rate: float) -> None:
        self._module._session.set_learning_rate(learning_rate)

    def get_learning_rate(self) -> float:
        return self._module._session.learning_rate()


class LinearLRScheduler:
    """A learning rate that rises from 0 to `initial_lr` in the warm-up, then falls to 0. It is set
    at once, for the number of steps that the optimizer has already done."""

    def __init__(
        self, optimizer: Optimizer, warmup_step_count: int, total_step_count: int, initial_lr: float
    ) -> None:
        self._module = optimizer._module
        self._module._session.set_linear_schedule(warmup_step_count, total_step_count, initial_lr)
        self.step()

    def step(self) -> None:
        """Sets the learning rate by the number of steps that the optimizer has done."""
        self._module._session.schedule_step()
