"""The package as a whole: names, stubs, import, the stand-in for onnxruntime."""

import ast
import inspect
import pathlib
import subprocess
import sys

import onnxruntime
import pytest
import tenon
from onnxruntime.capi import onnxruntime_pybind11_state as reference_state
from tenon import _tenon
from tenon.capi import onnxruntime_pybind11_state as state

PACKAGE = pathlib.Path(tenon.__file__).parent


def run_python(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_has_the_functions_of_onnxruntime() -> None:
    assert "CPUExecutionProvider" in tenon.get_available_providers()
    assert tenon.get_all_providers() == tenon.get_available_providers()
    assert tenon.get_device() == "CPU"
    assert tenon.get_version_string().startswith("1.")
    assert tenon.get_build_info()
    assert tenon.__version__ == _tenon.__version__
    tenon.set_default_logger_severity(2)
    tenon.set_default_logger_verbosity(0)
    tenon.set_seed(1)
    with pytest.raises(ValueError, match="0"):
        tenon.set_default_logger_severity(9)


def test_the_modules_of_onnxruntime_are_there_without_an_import() -> None:
    for module in ("onnxruntime", "tenon"):
        script = f"import {module} as ort; print(ort.capi.onnxruntime_pybind11_state.Fail.__name__)"
        assert run_python("-c", script) == "Fail\n"


@pytest.mark.parametrize("name", ["InferenceSession", "IOBinding", "NodeArg", "RunOptions"])
def test_classes_have_the_common_members_of_onnxruntime(name: str) -> None:
    later = {
        "create_ortvalue_from_shape_and_type",
        "get_input_epdevices",
        "get_input_memory_infos",
        "get_output_memory_infos",
        "get_outputs_as_ortvaluevector",
        "get_provider_graph_assignment_info",
        "get_tuning_results",
        "release_captured_graph",
        "run_with_ortvaluevector",
        "set_ep_dynamic_options",
        "set_providers",
        "set_tuning_results",
        "add_active_adapter",
    }
    expected = {member for member in dir(getattr(onnxruntime, name)) if member[0] != "_"}
    assert expected - later <= set(dir(getattr(tenon, name)))


def test_has_the_exceptions_of_onnxruntime() -> None:
    for name, value in vars(reference_state).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(getattr(state, name), Exception), name


def members_of_stub() -> dict[str, set[str]]:
    """Public names of each class in the stub, and of the module under ""."""
    tree = ast.parse((PACKAGE / "_tenon.pyi").read_text())
    members: dict[str, set[str]] = {"": set()}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            members[node.name] = names_in(node.body)
        members[""] |= names_in([node])
    return members


def names_in(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign):
            names.update(ast.unparse(target) for target in node.targets)
    return {name for name in names if name[:1] != "_"}


def test_stub_names_what_the_module_has() -> None:
    stub = members_of_stub()
    assert stub[""] == {name for name in vars(_tenon) if name[0] != "_"}
    for name in stub[""] & stub.keys():
        if not issubclass(getattr(_tenon, name), Exception):
            present = {member for member in vars(getattr(_tenon, name)) if member[0] != "_"}
            assert stub[name] == present, name


def test_import_is_quick_and_loads_little() -> None:
    """At most 30 ms more than NumPy, whose import the session does when it needs it."""
    seconds = (
        "import time, numpy; t = time.perf_counter(); import tenon; print(time.perf_counter() - t)"
    )
    assert min(float(run_python("-c", seconds)) for _ in range(5)) < 0.03
    loaded = run_python("-c", "import tenon, sys; print('ml_dtypes' in sys.modules)")
    assert loaded.strip() == "False"


USER = """
import onnxruntime as ort
from onnxruntime import InferenceSession
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.capi import _pybind_state
import onnxruntime.capi.onnxruntime_inference_collection
import tenon, sys
assert InferenceSession is tenon.InferenceSession
assert _pybind_state.InvalidArgument is InvalidArgument
assert ort.__version__ == tenon.get_version_string()
assert ort.__file__ == tenon.__file__
print(sys.argv[1:], __name__)
"""


def test_stands_in_for_onnxruntime(tmp_path: pathlib.Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    script = str(tmp_path / "user.py")
    as_script = run_python("-m", "tenon.as_onnxruntime", script, "a", "-b")
    assert as_script.strip() == "['a', '-b'] __main__"
    code = (
        f"import tenon.as_onnxruntime as t; t.install(); t.install(); exec(open({script!r}).read())"
    )
    assert "__main__" in run_python("-c", code)


def test_does_not_replace_the_real_onnxruntime() -> None:
    code = (
        "import onnxruntime, tenon.as_onnxruntime as t\n"
        "try: t.install()\n"
        "except RuntimeError as error: print(error)"
    )
    assert "already imported" in run_python("-c", code)
