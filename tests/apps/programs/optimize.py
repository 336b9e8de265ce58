"""Optimizes a transformer with onnxruntime.transformers.optimizer, and runs it before and after.

Usage: optimize.py RESULTS MODEL TYPE LEVEL
"""

import collections
import sys

import numpy as np
import onnxruntime
from onnxruntime.transformers import optimizer
from report import save

FUSED = (
    "Attention",
    "BiasGelu",
    "EmbedLayerNormalization",
    "FastGelu",
    "LayerNormalization",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization",
)
model, kind, level = sys.argv[2:]
optimized = optimizer.optimize_model(
    model, model_type=kind, num_heads=4, hidden_size=32, opt_level=int(level)
)
optimized.save_model_to_file(sys.argv[1] + ".onnx")
operators = collections.Counter(node.op_type for node in optimized.model.graph.node)

tokens = np.arange(14, dtype=np.int64).reshape(2, 7) + 3
mask = np.ones_like(tokens)
mask[1, 5:] = 0
feeds = {"input_ids": tokens, "attention_mask": mask, "decoder_input_ids": tokens[:, :4]}


def run(path: str) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {value.name: feeds[value.name] for value in session.get_inputs()})[0]


save(
    original=run(model),
    optimized=run(sys.argv[1] + ".onnx"),
    # What folding leaves of the rest is the runtime's choice.
    fused=[f"{name} {count}" for name, count in sorted(operators.items()) if name in FUSED],
)
