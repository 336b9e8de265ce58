"""ONNX inference with the API of onnxruntime: InferenceSession(model).run(outputs, feeds)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._session import InferenceSession, IOBinding, ModelMetadata, SessionIOBinding
from ._tenon import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    LoraAdapter,
    NodeArg,
    OrtAllocatorType,
    OrtArenaCfg,
    OrtCompileApiFlags,
    OrtDeviceMemoryType,
    OrtEpDevice,
    OrtExecutionProviderDevicePolicy,
    OrtExternalInitializerInfo,
    OrtHardwareDevice,
    OrtHardwareDeviceType,
    OrtMemoryInfo,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
    OrtSyncStream,
    OrtValue,
    RunOptions,
    SessionOptions,
    __version__,
    copy_tensors,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_available_providers,
    get_build_info,
    get_ep_devices,
    get_version_string,
    register_execution_provider_library,
    set_default_logger_severity,
    unregister_execution_provider_library,
)

if TYPE_CHECKING:
    from ._adapter import AdapterFormat
    from ._batcher import Batcher
    from ._compiler import ModelCompiler
    from ._devices import (
        OrtDevice,
        OrtDeviceVendorId,
        OrtEpAssignedNode,
        OrtEpAssignedSubgraph,
        OrtEpContextData,
        OrtEpContextDataBuffer,
    )
    from ._sparse import SparseTensor

# Loaded at their first use, so that `import tenon` is fast.
LAZY = {
    "AdapterFormat": "._adapter",
    "Batcher": "._batcher",
    "ModelCompiler": "._compiler",
    "OrtDevice": "._devices",
    "OrtDeviceVendorId": "._devices",
    "OrtEpAssignedNode": "._devices",
    "OrtEpAssignedSubgraph": "._devices",
    "OrtEpContextData": "._devices",
    "OrtEpContextDataBuffer": "._devices",
    "SparseTensor": "._sparse",
}

__all__ = [
    "AdapterFormat",
    "Batcher",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "register_execution_provider_library",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "unregister_execution_provider_library",
]


def __getattr__(name: str) -> Any:
    if name == "capi":
        return importlib.import_module(".capi", __name__)
    if name not in LAZY:
        raise AttributeError(f"module 'tenon' has no attribute '{name}'")
    value = getattr(importlib.import_module(LAZY[name], __name__), name)
    globals()[name] = value
    return value


def get_all_providers() -> list[str]:
    """Names of all execution providers, most preferred first."""
    return get_available_providers()


def get_device() -> str:
    """The kind of device that sessions run on by default."""
    return "CPU"


def has_collective_ops() -> bool:
    """Whether operators can work across machines."""
    return False


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Accepted for compatibility: this build needs no other libraries."""


def print_debug_info() -> None:
    """Prints the facts that a bug report should have."""
    import platform  # noqa: PLC0415 - most programs never need it
    import sys  # noqa: PLC0415

    print(f"tenon {__version__}, as onnxruntime {get_version_string()}: {get_build_info()}")
    print(f"Python {sys.version}")
    print(f"{platform.platform()} {platform.machine()}")
    print(f"providers: {', '.join(get_available_providers())}")


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Sets the sizes of the pool that sessions share. Call it before creating a session."""
    from . import _tenon  # noqa: PLC0415

    _tenon._set_global_threads(intra_op_num_threads)


def set_default_logger_verbosity(level: int) -> None:
    """Accepted for compatibility: verbose log lines have one level of detail."""


def set_seed(seed: int) -> None:
    """Sets the seed of random operators whose model gives none, in sessions created from now on."""
    from . import _tenon  # noqa: PLC0415

    _tenon._set_seed(seed)


def enable_telemetry_events() -> None:
    """Accepted for compatibility. Tenon sends no telemetry."""


def disable_telemetry_events() -> None:
    """Accepted for compatibility. Tenon sends no telemetry."""
