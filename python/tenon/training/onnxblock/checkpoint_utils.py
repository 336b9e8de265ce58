"""Checkpoints of the parameters of models."""

from __future__ import annotations

import os

import onnx
from onnx import numpy_helper

from ..api import CheckpointState
from ._gradients import Parameters

__all__ = ["load_checkpoint_to_model", "save_checkpoint"]


def save_checkpoint(
    parameters: Parameters,
    path_to_checkpoint: str | os.PathLike[str],
    nominal_checkpoint: bool = False,
) -> None:
    """Writes a checkpoint of parameters, the trained ones and the frozen ones.

    A nominal checkpoint has their names alone.
    """
    if parameters is None:
        raise RuntimeError("save_checkpoint: expected lists of trained and frozen parameters")
    if nominal_checkpoint:
        names = ([tensor.name for tensor in tensors] for tensors in parameters)
        CheckpointState.save_checkpoint(CheckpointState.nominal(*names), path_to_checkpoint)
        return
    trained, frozen = (
        {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors} for tensors in parameters
    )
    state = CheckpointState.from_parameters(trained, frozen)
    CheckpointState.save_checkpoint(state, path_to_checkpoint)


def load_checkpoint_to_model(
    path_to_checkpoint: str | os.PathLike[str], model: onnx.ModelProto
) -> None:
    """Gives a model's initializers the values of the checkpoint's parameters of the same names."""
    parameters = CheckpointState.load_checkpoint(path_to_checkpoint).parameters
    for tensor in model.graph.initializer:
        if tensor.name in parameters:
            value = parameters[tensor.name].data
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
