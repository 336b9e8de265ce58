"""The session's classes, in the module where onnxruntime has them."""

from .._adapter import AdapterFormat  # noqa: F401
from .._compiler import ModelCompiler  # noqa: F401
from .._devices import OrtDevice, OrtDeviceVendorId, get_ort_device_type  # noqa: F401
from .._session import (  # noqa: F401
    InferenceSession,
    IOBinding,
    Session,
    check_and_normalize_provider_args,
)
from .._sparse import SparseTensor  # noqa: F401
from .._tenon import OrtValue, copy_tensors  # noqa: F401
