"""Runs programs that say `import onnxruntime` on Tenon, without a change to them.

In a program:        import tenon.as_onnxruntime; tenon.as_onnxruntime.install()
On a command line:   python -m tenon.as_onnxruntime script.py [ARGUMENT...]
                     python -m tenon.as_onnxruntime -m module [ARGUMENT...]
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
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
# Loaded when a program imports them, because most need the package onnx.
LAZY_PARTS = ("backend", "datasets", "quantization", "tools", "training")


def counterpart_of(name: str) -> importlib.machinery.ModuleSpec | None:
    """Tenon's module for a module of onnxruntime."""
    rest = name.partition(".")[2]
    if rest.split(".")[0] not in LAZY_PARTS:
        return None
    try:
        return importlib.util.find_spec(f"tenon.{rest}")
    except ModuleNotFoundError:  # of the package that it would be in
        return None


class LazyParts(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds onnxruntime.quantization and similar modules, and returns Tenon's module for them.

    What Tenon does not have, such as onnxruntime.transformers, is taken from the real package if
    that is installed, too, except native code.
    """

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds the modules that Tenon or the real package has."""
        package, _, rest = name.partition(".")
        if package != "onnxruntime" or not rest or rest.split(".")[0] == "capi":
            return None
        counterpart = counterpart_of(name)
        if counterpart is not None:
            return importlib.machinery.ModuleSpec(
                name,
                self,
                origin=counterpart.origin,
                is_package=counterpart.submodule_search_locations is not None,
            )
        folder = os.path.join("onnxruntime", *rest.split(".")[:-1])
        folders = [os.path.join(entry, folder) for entry in sys.path]
        return importlib.machinery.PathFinder.find_spec(name, folders)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Returns Tenon's module."""
        return importlib.import_module("tenon." + spec.name.partition(".")[2])

    def exec_module(self, module: types.ModuleType) -> None:
        """Does nothing: the module has already run."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        """Returns the code of Tenon's module, for `python -m`."""
        counterpart = counterpart_of(fullname)
        loader = counterpart and counterpart.loader
        return loader.get_code(counterpart.name) if loader else None  # type: ignore[union-attr,attr-defined]

    def get_source(self, fullname: str) -> str | None:
        """Returns the source of Tenon's module."""
        counterpart = counterpart_of(fullname)
        loader = counterpart and counterpart.loader
        return loader.get_source(counterpart.name) if loader else None  # type: ignore[union-attr,attr-defined]


def fill(module: types.ModuleType) -> None:
    """Gives a module of onnxruntime everything that its counterpart in Tenon has."""
    counterpart = importlib.import_module(STAND_INS[module.__name__])
    if hasattr(counterpart, "__getattr__"):  # for names that are loaded at their first use
        module.__getattr__ = counterpart.__getattr__  # type: ignore[method-assign]
    contents = {key: value for key, value in vars(counterpart).items() if key[:2] != "__"}
    vars(module).update(contents, __doc__=counterpart.__doc__)


def stand_in(name: str) -> types.ModuleType:
    """A module named `name` with everything that its counterpart in Tenon has."""
    module = types.ModuleType(name)
    counterpart = importlib.import_module(STAND_INS[name])
    module.__file__ = counterpart.__file__
    is_package = hasattr(counterpart, "__path__")
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=is_package)
    if is_package:
        module.__path__ = []
    fill(module)
    return module


def take_over(onnxruntime: types.ModuleType) -> None:
    """Makes a module named `onnxruntime` Tenon, with all the modules in it."""
    fill(onnxruntime)
    sys.modules["onnxruntime"] = onnxruntime
    for name in STAND_INS:
        parent, _, child = name.rpartition(".")
        if parent:
            sys.modules[name] = stand_in(name)
            setattr(sys.modules[parent], child, sys.modules[name])
    sys.meta_path.insert(0, LazyParts())
    onnxruntime.is_tenon = True  # type: ignore[attr-defined]
    # Programs ask for the version of onnxruntime whose API they need.
    onnxruntime.__version__ = importlib.import_module("tenon").get_version_string()  # type: ignore[attr-defined]


def install() -> None:
    """Makes `import onnxruntime` import Tenon from now on.

    Raises RuntimeError if the process has already imported the real one.
    """
    present = sys.modules.get("onnxruntime")
    if present is None:
        take_over(stand_in("onnxruntime"))
    elif not getattr(present, "is_tenon", False):
        raise RuntimeError("onnxruntime is already imported: call install() before that")


def main(arguments: list[str]) -> None:
    """Runs a script or a module as Python does."""
    if not arguments or (arguments[0] == "-m" and len(arguments) == 1):
        sys.exit(f"usage: {__doc__}")
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))  # as Python itself does
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
