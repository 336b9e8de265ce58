"""The rules by operator; by default these operators are quantized."""

from ._integer_rules import IntegerOpsRegistry
from ._passing_rules import PASSING_RULES
from ._qdq_rules import QDQRegistry
from ._qlinear_rules import QLinearOpsRegistry

CommonOpsRegistry = {
    name: PASSING_RULES[name] for name in ("Gather", "Transpose", "EmbedLayerNormalization")
}

__all__ = ["CommonOpsRegistry", "IntegerOpsRegistry", "QDQRegistry", "QLinearOpsRegistry"]
