"""Makes the files that ``tenon.training.api`` trains a model from; needs the package `onnx`.

::

    artifacts.generate_artifacts(
        "model.onnx",
        requires_grad=["fc.weight", "fc.bias"],
        loss=artifacts.LossType.CrossEntropyLoss,
        optimizer=artifacts.OptimType.AdamW,
        artifact_directory="artifacts",
    )
"""

from __future__ import annotations

import contextlib
import enum
import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import onnx

from . import onnxblock
from .onnxblock._gradients import save_as_opened

__all__ = ["LossType", "OptimType", "generate_artifacts"]


class LossType(enum.Enum):
    """The losses of ``onnxblock.loss`` with their defaults."""

    MSELoss = 1
    CrossEntropyLoss = 2
    BCEWithLogitsLoss = 3
    L1Loss = 4


class OptimType(enum.Enum):
    """The optimizers of ``onnxblock.optim`` with their defaults."""

    AdamW = 1
    SGD = 2


class _WithLoss(onnxblock.TrainingBlock):
    """The model with a loss of its outputs."""

    def __init__(
        self, loss: onnxblock.Block, loss_inputs: list[str], more_outputs: list[str]
    ) -> None:
        super().__init__()
        self._loss = loss
        self._loss_inputs = loss_inputs
        self._more_outputs = more_outputs

    def build(self, *outputs: str) -> Any:
        result = self._loss(*(self._loss_inputs or outputs))
        names = [result] if isinstance(result, str) else list(result)
        return (*names, *self._more_outputs)


def generate_artifacts(
    model: onnx.ModelProto | str | os.PathLike[str],
    requires_grad: list[str] | None = None,
    frozen_params: list[str] | None = None,
    loss: LossType | onnxblock.Block | None = None,
    optimizer: OptimType | onnxblock.Block | None = None,
    artifact_directory: str | bytes | os.PathLike[Any] | None = None,
    prefix: str = "",
    ort_format: bool = False,
    custom_op_library: str | bytes | os.PathLike[Any] | None = None,
    additional_output_names: list[str] | None = None,
    nominal_checkpoint: bool = False,
    loss_input_names: list[str] | None = None,
    recompute: bool = False,
) -> None:
    """Writes training_model.onnx, eval_model.onnx, checkpoint and optimizer_model.onnx.

    model            the model, or the path of its file
    requires_grad    names of the parameters to train
    frozen_params    names of parameters that the checkpoint has, too, but that stay as they are;
                     what is in neither list is a constant of the models
    loss             a block gets the names of the model's outputs, and returns that of the loss, or
                     several with the loss's first; None: the model's first output is the loss
    optimizer        None: no optimizer model is written
    artifact_directory  is made if it is not there; None: the current one
    prefix           begins the name of each file
    ort_format       writes each model as .ort, too
    custom_op_library   with the model's custom operators
    additional_output_names  values that are outputs of the models, too
    nominal_checkpoint  writes nominal_checkpoint, too, which has no values
    loss_input_names    what the loss gets instead of the model's outputs
    recompute        lets the gradients compute most activations again instead of keeping them: less
                     memory for about a third more time. Not in onnxruntime

    Nothing is written if an argument is wrong. Raises TypeError for an unknown kind of optimizer,
    RuntimeError for other wrong arguments, LookupError for names of outputs that are not there, and
    the errors of sessions for models that cannot run or have operators without a gradient.
    """
    loss_block = _loss_block(loss)
    optimizer_block = _optimizer_block(optimizer)
    trained = _names("requires_grad", requires_grad)
    frozen = _names("frozen_params", frozen_params)
    more_outputs = _names("additional_output_names", additional_output_names)
    loss_inputs = _names("loss_input_names", loss_input_names)
    both = set(trained) & set(frozen)
    if both:
        raise RuntimeError(
            "a parameter is either in requires_grad or in frozen_params, but these are in both: "
            + ", ".join(map(repr, sorted(both)))
        )
    loaded, path = _load(model)
    block = _WithLoss(loss_block, loss_inputs, more_outputs)
    block.recomputes = recompute
    for name in trained:
        block.requires_grad(name)
    for name in frozen:
        block.requires_grad(name, False)

    library = None if custom_op_library is None else os.fsdecode(custom_op_library)
    with (
        contextlib.nullcontext() if library is None else onnxblock.custom_op_library(library),
        onnxblock.base(loaded, path),
    ):
        block(*[output.name for output in loaded.graph.output])
    models = dict(zip(("training_model", "eval_model"), block.to_model_proto(), strict=True))
    if optimizer_block is not None:
        with onnxblock.empty_base(_opset_of(loaded)) as accessor:
            optimizer_block(block.parameters())
            models["optimizer_model"] = accessor.model

    folder = pathlib.Path(os.fsdecode(artifact_directory or "."))
    folder.mkdir(parents=True, exist_ok=True)
    if nominal_checkpoint:
        onnxblock.save_checkpoint(
            block.parameters(), folder / f"{prefix}nominal_checkpoint", nominal_checkpoint=True
        )
    onnxblock.save_checkpoint(block.parameters(), folder / f"{prefix}checkpoint")
    for name, content in models.items():
        file = folder / f"{prefix}{name}.onnx"
        onnx.save(content, file)
        if ort_format:
            save_as_opened(file, os.fspath(file.with_suffix(".ort")), library)


def _loss_block(loss: LossType | onnxblock.Block | None) -> onnxblock.Block:
    if loss is None:
        return onnxblock.blocks.PassThrough()
    if isinstance(loss, LossType):
        block: onnxblock.Block = getattr(onnxblock.loss, loss.name)()
        return block
    if not isinstance(loss, onnxblock.Block):
        raise RuntimeError(f"loss: expected a LossType, an onnxblock.Block or None, got {loss!r}")
    return loss


def _optimizer_block(optimizer: OptimType | onnxblock.Block | None) -> Callable[[Any], Any] | None:
    if isinstance(optimizer, OptimType):
        block: Callable[[Any], Any] = getattr(onnxblock.optim, optimizer.name)()
        return block
    if optimizer is not None and not isinstance(optimizer, onnxblock.Block):
        raise TypeError(
            f"optimizer: expected an OptimType, an onnxblock.Block or None, got {optimizer!r}"
        )
    return optimizer


def _names(argument: str, names: Iterable[str] | None) -> list[str]:
    """The names in a list of its own."""
    result = [] if names is None or isinstance(names, str) else list(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in result):
        raise RuntimeError(f"{argument}: expected a list of names, got {names!r}")
    return result


def _load(model: Any) -> tuple[onnx.ModelProto, str | None]:
    """The model, and the path of its file if it was given one."""
    if isinstance(model, onnx.ModelProto):
        return model, None
    if isinstance(model, str | os.PathLike):
        return onnx.load(model), os.fspath(model)
    raise RuntimeError(f"model: expected an onnx.ModelProto or a path, got {type(model).__name__}")


def _opset_of(model: onnx.ModelProto) -> int | None:
    versions = [opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")]
    return versions[0] if versions else None
