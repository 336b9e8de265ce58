"""The native classes, functions and exceptions, at the place where onnxruntime has them."""

from .._tenon import *  # noqa: F403
from .._tenon import Session as InferenceSession  # noqa: F401
