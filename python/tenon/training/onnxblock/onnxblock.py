"""Blocks that complete a model: with its outputs alone, or with the gradients of its parameters."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import onnx

from ._chunked_loss import run_in_turn, split_loss
from ._gradients import (
    Parameters,
    evaluation_model,
    move_parameters_to_inputs,
    training_model,
)
from ._graph import set_outputs
from ._recomputation import recompute_activations
from .blocks import Block
from .model_accessor import current_library

__all__ = ["ForwardBlock", "TrainingBlock"]


def _names_of(output: Any) -> list[str]:
    """What ``build`` returned, as a list of names."""
    return [output] if isinstance(output, str) else list(output)


class ForwardBlock(Block):
    """A block whose results become the model's outputs::

    class WithLoss(ForwardBlock):
        def __init__(self):
            super().__init__()
            self.loss = onnxblock.loss.MSELoss()

        def build(self, output_name):
            return self.loss(output_name)
    """

    def __init__(self) -> None:
        super().__init__()
        self._model: onnx.ModelProto | None = None

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the block to ``self.base``, and returns the names of the model's outputs."""

    def to_model_proto(self) -> onnx.ModelProto:
        """The model. Raises RuntimeError before the block was called."""
        if self._model is None:
            raise RuntimeError("the model is not built yet: call the block first")
        return self._model

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(*args, **kwargs)
        self._model = self.infer_shapes_on_base()
        set_outputs(self._model, _names_of(output))
        self.base.CopyFrom(self._model)
        return output


class TrainingBlock(Block):
    """A block whose first result is the loss, of which the gradients are then computed.

    The model becomes a training model: its inputs are the user's, the parameters, for each trained
    parameter `p` the tensor `p_grad.accumulation.buffer`, to which its gradient is added, and
    `lazy_reset_grad`, which says to overwrite instead. Its outputs are those of ``build``, and
    `p_grad.accumulation.out` for each trained parameter.
    """

    # Whether few activations are kept for the gradients, and the others computed again. Not in
    # onnxruntime.
    recomputes: bool = False

    def __init__(self) -> None:
        super().__init__()
        self._trained: dict[str, None] = {}  # sets that keep the order
        self._frozen: dict[str, None] = {}
        self._parameters: Parameters | None = None
        self._models: tuple[onnx.ModelProto, onnx.ModelProto] | None = None

    @abstractmethod
    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the block to ``self.base``, and returns the names of the model's outputs, the
        loss's first."""

    def requires_grad(self, argument_name: str, value: bool = True) -> None:
        """Says that a parameter or an input of the graph is trained, or else that it is frozen: a
        parameter that no gradient is computed of. What is neither stays a constant."""
        chosen, other = (self._trained, self._frozen) if value else (self._frozen, self._trained)
        other.pop(argument_name, None)
        chosen[argument_name] = None

    def parameters(self) -> Parameters:
        """The trained parameters and the frozen ones. Raises RuntimeError before the block was
        called."""
        if self._parameters is None:
            raise RuntimeError(
                # The words that programs look for.
                "Please build the training model first before trying to retrieve the parameters."
            )
        return self._parameters

    def to_model_proto(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """The training model and the evaluation model. Raises RuntimeError before the block was
        called."""
        if self._models is None:
            raise RuntimeError("the models are not built yet: call the block first")
        return self._models

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(*args, **kwargs)
        outputs = _names_of(output)
        model = self.infer_shapes_on_base()
        set_outputs(model, outputs)
        self._parameters = move_parameters_to_inputs(model, self._trained, self._frozen)
        evaluation = evaluation_model(model)
        parts = split_loss(model, outputs[0], outputs, self._trained)
        training = training_model(model, outputs[0], self._trained, current_library())
        if self.recomputes:
            if parts is None:
                recompute_activations(training, outputs)
            else:
                recompute_activations(training, [parts.hidden], end=parts.hidden)
        if parts is not None:
            run_in_turn(training, parts)
        self._models = (training, evaluation)
        self.base.CopyFrom(training)
        return output
