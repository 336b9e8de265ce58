"""Blocks that make an optimizer model, which changes parameters by their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto, helper

from .blocks import Block
from .onnxblock import ForwardBlock

__all__ = ["SGD", "AdamW", "AdamWOptimizer", "ClipGradNorm", "SGDOptimizer"]

CONTRIB = "com.microsoft"


class ClipGradNorm(Block):
    """Scales all gradients together, in place, so that their norm is at most `max_norm`."""

    def __init__(self, max_norm: float) -> None:
        super().__init__()
        self._max_norm = max_norm

    def build(self, gradients_name: str) -> str:
        output = self._node(
            "InplaceClipGradNorm",
            [gradients_name],
            CONTRIB,
            "clip_grad_norm_output",
            max_norm=float(self._max_norm),
        )
        type_ = helper.make_tensor_sequence_value_info(output, TensorProto.FLOAT, None)
        self.base.graph.value_info.append(type_)
        return output


class SGDOptimizer(Block):
    """The node SGDOptimizerV2; its result says whether it changed the parameters."""

    def build(self, learning_rate_name: str, params_name: str, gradients_name: str) -> str:
        inputs = [learning_rate_name, params_name, gradients_name]
        return self._node("SGDOptimizerV2", inputs, CONTRIB, "update_completed")


class AdamWOptimizer(Block):
    """The node AdamWOptimizer; its result says whether it changed the parameters."""

    def __init__(
        self,
        bias_correction: bool | None = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float | None = 1e-6,
        weight_decay: float | None = 0.0,
    ) -> None:
        super().__init__()
        self._attributes = {
            "alpha": float(betas[0]),
            "beta": float(betas[1]),
            "correct_bias": int(bool(bias_correction)),
            "adam_mode": 1,  # as Hugging Face's AdamW: the decay follows the step
        }
        # The operator's own defaults are others.
        self._attributes |= {"epsilon": float(eps or 0), "weight_decay": float(weight_decay or 0)}

    def build(
        self,
        learning_rate_name: str,
        step_name: str,
        parameter_sequence_name: str,
        gradient_sequence_name: str,
        first_order_moment_sequence_name: str,
        second_order_moment_sequence_name: str,
    ) -> str:
        inputs = [
            learning_rate_name,
            step_name,
            parameter_sequence_name,
            gradient_sequence_name,
            first_order_moment_sequence_name,
            second_order_moment_sequence_name,
        ]
        return self._node(
            "AdamWOptimizer", inputs, CONTRIB, "adamw.updated_flag", **self._attributes
        )


class _Optimizer(ForwardBlock):
    """An optimizer model for the result of ``TrainingBlock.parameters``."""

    moments: Sequence[str] = ()  # the sequences that the optimizer keeps

    def __init__(self, clip_grad: Block | None = None) -> None:
        super().__init__()
        self._clip_grad = clip_grad

    def build(self, parameters: Any) -> str:
        trained, _ = parameters
        types = {tensor.data_type for tensor in trained}
        if len(types) != 1:
            names = [TensorProto.DataType.Name(type_) for type_ in sorted(types)]
            raise RuntimeError(
                "the optimizer model: expected trained parameters of one element type, got "
                f"{' and '.join(names) or 'no trained parameters'}"
            )
        graph = self.base.graph
        graph.input.extend(
            [
                helper.make_tensor_value_info("learning_rate", TensorProto.FLOAT, [1]),
                helper.make_tensor_value_info("step", TensorProto.INT64, [1]),
            ]
        )
        for name in ("params", "gradients", *self.moments):
            sequence = helper.make_tensor_sequence_value_info(name, trained[0].data_type, None)
            graph.input.append(sequence)
        gradients = "gradients" if self._clip_grad is None else self._clip_grad("gradients")
        flag = self._step(gradients)
        graph.output.append(helper.make_tensor_value_info(flag, TensorProto.BOOL, [1]))
        return flag

    def _step(self, gradients: str) -> str:
        raise NotImplementedError


class AdamW(_Optimizer):
    """Adam with decoupled weight decay, as Hugging Face's: the decay follows the step.

    `epsilon` and `weight_decay` are onnxruntime's for artifacts, not those of the operator.
    """

    moments = ("first_order_moments", "second_order_moments")

    def __init__(
        self,
        bias_correction: bool | None = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float | None = 1e-6,
        weight_decay: float | None = 0.0,
        clip_grad: Block | None = None,
    ) -> None:
        super().__init__(clip_grad)
        self._node_block = AdamWOptimizer(bias_correction, betas, eps, weight_decay)

    def _step(self, gradients: str) -> str:
        done: str = self._node_block("learning_rate", "step", "params", gradients, *self.moments)
        return done


class SGD(_Optimizer):
    """Stochastic gradient descent: each parameter less learning_rate times its gradient."""

    def __init__(self, clip_grad: Block | None = None) -> None:
        super().__init__(clip_grad)
        self._node_block = SGDOptimizer()

    def _step(self, gradients: str) -> str:
        done: str = self._node_block("learning_rate", "params", gradients)
        return done
