"""The native classes, functions and exceptions, in the module where onnxruntime has them."""

from .._adapter import AdapterFormat  # noqa: F401
from .._compiler import ModelCompiler  # noqa: F401
from .._devices import NativeDevice as OrtDevice  # noqa: F401
from .._devices import (  # noqa: F401
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    OrtEpContextData,
    OrtEpContextDataBuffer,
)
from .._session import ModelMetadata, SessionIOBinding  # noqa: F401
from .._sparse import (  # noqa: F401
    SparseBlockSparseView,
    SparseCooView,
    SparseCsrView,
    SparseTensor,
)
from .._tenon import *  # noqa: F403
from .._tenon import Session as InferenceSession  # noqa: F401
from .._tenon import SessionOptions
from .._training import TrainingAgent  # noqa: F401
from .._vector import OrtValueVector  # noqa: F401
from ._few_bits import (  # noqa: F401
    quantize_matmul_2bits,
    quantize_matmul_4bits,
    quantize_matmul_8bits,
    quantize_matmul_bnb4,
    quantize_qdq_matmul_2bits,
    quantize_qdq_matmul_4bits,
)


def get_default_session_options() -> SessionOptions:
    """The options of sessions that are created without options."""
    return SessionOptions()
