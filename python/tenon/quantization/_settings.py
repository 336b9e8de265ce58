"""The settings of a quantization."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx

from ._names import DEQUANT_OP_NAME, QUANT_OP_NAME
from ._types import SIGNED

# Every key of extra_options, and its default.
DEFAULTS: dict[str, Any] = {
    "ActivationRestrictedAsymmetric": False,
    "ActivationSymmetric": False,
    "AddQDQPairToWeight": False,
    "BlockSize": 0,
    "CalibMaxIntermediateOutputs": None,
    "CalibMovingAverage": False,
    "CalibMovingAverageConstant": 0.01,
    "CalibNumBins": None,
    "CalibNumQuantizedBins": None,
    "CalibPercentile": None,
    "CalibStridedMinMax": None,
    "CalibTensorRangeSymmetric": False,
    "DedicatedQDQPair": False,
    "DefaultTensorType": None,
    "EnableSubgraph": False,
    "ForceQuantizeNoInputCheck": False,
    "MatMulConstBOnly": False,
    "MinimumRealRange": None,
    "OpTypesToExcludeOutputQuantization": (),
    "QDQDisableWeightAdjustForInt32Bias": False,
    "QDQKeepRemovableActivations": False,
    "QDQOpTypePerChannelSupportToAxis": {},
    "QuantizeBias": True,
    "SmoothQuant": False,
    "SmoothQuantAlpha": 0.5,
    "SmoothQuantFolding": True,
    "TensorQuantOverrides": {},
    "UseQDQContribOps": False,
    "WeightSymmetric": None,
    "extra.Sigmoid.nnapi": False,
}
KINDS: dict[str, type | tuple[type, ...]] = {
    "OpTypesToExcludeOutputQuantization": (list, tuple, set, frozenset),
    "QDQOpTypePerChannelSupportToAxis": Mapping,
    "TensorQuantOverrides": dict,
    "BlockSize": int,
    "SmoothQuantAlpha": (int, float),
    "CalibMovingAverageConstant": (int, float),
}


def checked(extra_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options. Warns of unknown ones; raises TypeError for wrong values."""
    options = dict(extra_options or {})
    for key, value in options.items():
        if key not in DEFAULTS:
            near = difflib.get_close_matches(key, DEFAULTS, 1)
            hint = f": did you mean '{near[0]}'?" if near else ""
            logging.warning("extra_options has no setting '%s'%s", key, hint)
        elif key in KINDS and value is not None and not isinstance(value, KINDS[key]):
            kinds = KINDS[key] if isinstance(KINDS[key], tuple) else (KINDS[key],)
            expected = " or ".join(kind.__name__ for kind in kinds)  # type: ignore[union-attr]
            got = type(value).__name__
            raise TypeError(f"extra_options['{key}']: expected a {expected}, got a {got}")
    return options


@dataclass
class Settings:
    """The types, the nodes, and the options that onnxruntime calls extra_options."""

    weight_type: int  # numbers of ONNX types
    activation_type: int
    per_channel: bool = False
    reduce_range: bool = False
    op_types: Sequence[str] = ()
    nodes: Collection[str] = ()  # names; empty: all
    excluded: Collection[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    def option(self, key: str) -> Any:
        """One of the options."""
        value = self.extra.get(key)
        return DEFAULTS[key] if value is None else value

    def takes(self, node: onnx.NodeProto) -> bool:
        """Whether a node is to be quantized."""
        return (
            node.op_type in self.op_types
            and node.op_type not in (QUANT_OP_NAME, DEQUANT_OP_NAME)
            and (not self.nodes or node.name in self.nodes)
            and node.name not in self.excluded
        )

    def symmetric_weights(self, tensor_type: int) -> bool:
        """Whether the zero point of weights is the middle of their type."""
        chosen = self.option("WeightSymmetric")
        return tensor_type in SIGNED if chosen is None else bool(chosen)

    @property
    def symmetric_activations(self) -> bool:
        """The same for values."""
        return bool(self.option("ActivationSymmetric"))
