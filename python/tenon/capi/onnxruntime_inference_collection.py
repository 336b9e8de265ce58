"""The session's classes, at the place where onnxruntime has them."""

from .._session import InferenceSession, IOBinding  # noqa: F401
from .._tenon import OrtValue  # noqa: F401
