"""The runtimes in which plugins are tested: Tenon, and onnxruntime from PyPI if it is installed."""

import importlib
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

BUILD = Path(
    os.environ.get("TENON_BUILD") or Path(__file__).resolve().parents[2] / "build" / "release"
)
NUMBERS = itertools.count()
RUNTIMES = ("onnxruntime", "tenon")


def runtime(name: str) -> ModuleType:
    """The runtime's module; skips the test if it does not support plugins."""
    module = pytest.importorskip(name)
    if not hasattr(module, "register_execution_provider_library"):
        pytest.skip(f"{name} takes no plugin providers")
    return importlib.import_module(name)


@contextmanager
def registered(module: ModuleType, library: Path, provider: str) -> Iterator[list]:
    """Registers a library of the build; yields the devices that this adds."""
    if not library.exists():
        pytest.skip(f"{library.name} is not built")
    known = sum(device.ep_name == provider for device in module.get_ep_devices())
    name = f"{provider} for test {next(NUMBERS)}"
    module.register_execution_provider_library(name, str(library))
    try:
        found = [device for device in module.get_ep_devices() if device.ep_name == provider]
        yield found[known:]
    finally:
        module.unregister_execution_provider_library(name)


def session_on(module: ModuleType, devices: list, model: bytes, **settings: object):
    """A session with the provider's devices. Settings go to attributes of the options, those whose
    name has a dot to its configuration."""
    options = module.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in settings.items():
        if "." in key:
            options.add_session_config_entry(key, value)
        else:
            setattr(options, key, value)
    options.add_provider_for_devices(devices, {})
    return module.InferenceSession(model, options)


def placement(session) -> dict[str, list[str]]:
    """Provider -> types of its operators, sorted."""
    taken: dict[str, list[str]] = {}
    for part in session.get_provider_graph_assignment_info():
        taken.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
    return {name: sorted(operators) for name, operators in taken.items()}
