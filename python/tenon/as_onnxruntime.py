"""Runs programs that say `import onnxruntime` on Tenon, without a change to them.

In a program:        import tenon.as_onnxruntime; tenon.as_onnxruntime.install()
On a command line:   python -m tenon.as_onnxruntime script.py [ARGUMENT...]
                     python -m tenon.as_onnxruntime -m module [ARGUMENT...]
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
import types

# The module of Tenon that replaces each module of onnxruntime.
STAND_INS = {
    "onnxruntime": "tenon",
    "onnxruntime.capi": "tenon.capi",
    "onnxruntime.capi._pybind_state": "tenon.capi._pybind_state",
    "onnxruntime.capi.onnxruntime_inference_collection": (
        "tenon.capi.onnxruntime_inference_collection"
    ),
    "onnxruntime.capi.onnxruntime_pybind11_state": "tenon.capi.onnxruntime_pybind11_state",
}
# Loaded when a program imports them, because they need the package onnx.
LAZY_PARTS = ("backend", "quantization", "tools")


class LazyParts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds onnxruntime.quantization and similar modules, and returns Tenon's module for them."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds the modules that Tenon has."""
        package, _, rest = name.partition(".")
        if package != "onnxruntime" or rest.split(".")[0] not in LAZY_PARTS:
            return None
        if importlib.util.find_spec(f"tenon.{rest}") is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns Tenon's module."""
        return importlib.import_module("tenon." + spec.name.partition(".")[2])

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: the module has already run."""


def stand_in(name: str) -> types.ModuleType:
    """A module named `name` with everything that its counterpart in Tenon has."""
    module = types.ModuleType(name)
    counterpart = importlib.import_module(STAND_INS[name])
    if hasattr(counterpart, "__getattr__"):  # for names that are loaded at their first use
        module.__getattr__ = counterpart.__getattr__  # type: ignore[method-assign]
    contents = {key: value for key, value in vars(counterpart).items() if key[:2] != "__"}
    vars(module).update(contents, __doc__=counterpart.__doc__, __file__=counterpart.__file__)
    is_package = hasattr(counterpart, "__path__")
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=is_package)
    if is_package:
        module.__path__ = []
    return module


def install() -> None:
    """Makes `import onnxruntime` import Tenon from now on.

    Raises RuntimeError if the process has already imported the real one.
    """
    present = sys.modules.get("onnxruntime")
    if present is not None:
        if getattr(present, "is_tenon", False):
            return
        raise RuntimeError("onnxruntime is already imported: call install() before that")
    for name in STAND_INS:
        module = stand_in(name)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    sys.meta_path.insert(0, LazyParts())
    onnxruntime = sys.modules["onnxruntime"]
    onnxruntime.is_tenon = True  # type: ignore[attr-defined]
    # Programs ask for the version of onnxruntime whose API they need.
    onnxruntime.__version__ = importlib.import_module("tenon").get_version_string()  # type: ignore[attr-defined]


def main(arguments: list[str]) -> None:
    """Runs a script or a module as Python does."""
    if not arguments or (arguments[0] == "-m" and len(arguments) == 1):
        sys.exit(f"usage: {__doc__}")
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        package, _, rest = arguments[1].partition(".")
        is_ours = package == "onnxruntime" and rest.split(".")[0] in LAZY_PARTS
        module = f"tenon.{rest}" if is_ours else arguments[1]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
