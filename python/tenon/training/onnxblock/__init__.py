"""Builds training, evaluation and optimizer models of blocks; needs the package `onnx`.

The modules and classes are those of ``onnxruntime.training.onnxblock``::

    class WithLoss(onnxblock.TrainingBlock):
        def __init__(self):
            super().__init__()
            self.loss = onnxblock.loss.CrossEntropyLoss()

        def build(self, output_name):
            return self.loss(output_name)

    block = WithLoss()
    block.requires_grad("weight")
    with onnxblock.base(model):
        block("scores")
    training_model, evaluation_model = block.to_model_proto()
"""

from . import blocks, loss, optim
from .blocks import Block
from .checkpoint_utils import load_checkpoint_to_model, save_checkpoint
from .model_accessor import base, custom_op_library, empty_base
from .onnxblock import ForwardBlock, TrainingBlock

__all__ = [
    "Block",
    "ForwardBlock",
    "TrainingBlock",
    "base",
    "blocks",
    "custom_op_library",
    "empty_base",
    "load_checkpoint_to_model",
    "loss",
    "optim",
    "save_checkpoint",
]
