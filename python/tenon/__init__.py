"""ONNX inference with the API of onnxruntime: InferenceSession(model).run(outputs, feeds)."""

from ._session import InferenceSession, IOBinding, ModelMetadata
from ._tenon import (
    ExecutionMode,
    GraphOptimizationLevel,
    NodeArg,
    OrtValue,
    RunOptions,
    SessionOptions,
    __version__,
    get_available_providers,
    get_build_info,
    get_version_string,
    set_default_logger_severity,
)

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]


def get_all_providers() -> list[str]:
    """Names of all execution providers, most preferred first."""
    return get_available_providers()


def get_device() -> str:
    """The kind of device that sessions run on by default."""
    return "CPU"


def set_default_logger_verbosity(level: int) -> None:
    """Accepted for compatibility: verbose log lines have one level of detail."""


def set_seed(seed: int) -> None:
    """Accepted for compatibility: random operators take their seed from the model."""


def enable_telemetry_events() -> None:
    """Accepted for compatibility. Tenon sends no telemetry."""


def disable_telemetry_events() -> None:
    """Accepted for compatibility. Tenon sends no telemetry."""
