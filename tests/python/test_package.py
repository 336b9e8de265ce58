"""The package as a whole: names, stubs, import, the stand-in for onnxruntime."""

import ast
import inspect
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tenon
from onnxruntime.capi import onnxruntime_pybind11_state as reference_state
from tenon import _tenon
from tenon.capi import onnxruntime_pybind11_state as state

PACKAGE = pathlib.Path(tenon.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD") or ROOT / "build" / "release")


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


def test_scripts_find_the_modules_beside_them(tmp_path: pathlib.Path) -> None:
    (tmp_path / "beside.py").write_text("name = 'beside'")
    (tmp_path / "user.py").write_text("import beside; print(beside.name)")
    assert run_python("-m", "tenon.as_onnxruntime", str(tmp_path / "user.py")) == "beside\n"


def test_has_the_examples_of_onnxruntime() -> None:
    from onnxruntime.datasets import get_example as theirs  # noqa: PLC0415
    from tenon.datasets import get_example as ours  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for name in ("logreg_iris.onnx", "mul_1.onnx", "sigmoid.onnx"):
        expected = onnxruntime.InferenceSession(theirs(name))
        session = tenon.InferenceSession(ours(name))
        for values in ("get_inputs", "get_outputs"):
            pairs = zip(getattr(session, values)(), getattr(expected, values)(), strict=True)
            for one, other in pairs:
                assert (one.name, one.type, one.shape) == (other.name, other.type, other.shape)
        x = session.get_inputs()[0]
        feeds = {x.name: rng.standard_normal(x.shape, np.float32)}
        if name != "logreg_iris.onnx":  # whose weights are not theirs
            np.testing.assert_allclose(session.run(None, feeds), expected.run(None, feeds), 1e-6)
    session = tenon.InferenceSession(ours("logreg_iris.onnx"))
    irises = np.array([[5.1, 3.5], [5.5, 2.4], [6.9, 3.1]], np.float32)  # one of each kind
    assert list(session.run(["label"], {"float_input": irises})[0]) == [0, 1, 2]
    with pytest.raises(FileNotFoundError, match="none"):
        ours("none.onnx")


@pytest.fixture(scope="module")
def second_package(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The package tenon-onnxruntime, installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("second")
    source = shutil.copytree(ROOT / "python" / "tenon-onnxruntime", folder / "source")
    pip = ["-m", "pip", "install", "-qq", "--no-deps", "--no-build-isolation", "--no-index"]
    run_python(*pip, "--target", str(folder / "installed"), str(source))
    return folder / "installed"


def run_on(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    path = f"{folder}{os.pathsep}{PACKAGE.parent}"
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


SECOND_USER = """
import importlib.util, pathlib
folder = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
(library,) = pathlib.Path(folder).glob("capi/libonnxruntime.so*")  # as onnxruntime-genai finds it
import onnxruntime as ort
import onnxruntime.backend, onnxruntime.tools
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from onnxruntime.datasets import get_example
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference
from onnxruntime.transformers.optimizer import optimize_model
from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed
import tenon, tenon.quantization
assert ort.is_tenon and ort.InferenceSession is tenon.InferenceSession
assert quantize_dynamic is tenon.quantization.quantize_dynamic
assert ort.__file__.startswith(folder) and ort.__version__ == tenon.get_version_string()
session = ort.InferenceSession(get_example("sigmoid.onnx"))
try: session.run(None, {})
except ValueError as error: print(error)
"""


def test_the_second_package_is_tenon_by_the_name_of_onnxruntime(
    second_package: pathlib.Path,
) -> None:
    """What Tenon lacks comes from the real package, which is installed elsewhere."""
    result = run_on(second_package, "-c", SECOND_USER)
    assert "x" in result.stdout, result.stderr
    result = run_on(second_package, "-m", "onnxruntime.quantization.preprocess", "--help")
    assert "--input" in result.stdout, result.stderr


def test_the_second_package_loads_the_library_for_native_programs(
    second_package: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    library = second_package / "onnxruntime" / "capi" / "libonnxruntime.so.1"
    assert library.stat().st_size < 30_000
    (tmp_path / "tenon").mkdir()
    (tmp_path / "tenon" / "libtenon.so.1").symlink_to(BUILD / "src/capi/libtenon.so.1")
    shutil.copytree(second_package / "onnxruntime", tmp_path / "onnxruntime")
    code = (
        "import ctypes, sys; library = ctypes.CDLL(sys.argv[1])\n"
        "library.OrtGetApiBase.restype = ctypes.c_void_p; print(library.OrtGetApiBase() != 0)"
    )
    path = tmp_path / "onnxruntime" / "capi" / library.name
    assert run_python("-c", code, str(path)) == "True\n"


def test_the_second_package_refuses_to_lie_over_the_real_one(
    second_package: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    both = shutil.copytree(second_package / "onnxruntime", tmp_path / "onnxruntime")
    (both / "capi" / "onnxruntime_pybind11_state.cpython-311-x86_64-linux-gnu.so").touch()
    result = run_on(tmp_path, "-c", "import onnxruntime")
    assert "ImportError: tenon-onnxruntime and onnxruntime are both installed" in result.stderr
    assert "pip uninstall onnxruntime tenon-onnxruntime" in result.stderr


def test_does_not_replace_the_real_onnxruntime() -> None:
    code = (
        "import onnxruntime, tenon.as_onnxruntime as t\n"
        "try: t.install()\n"
        "except RuntimeError as error: print(error)"
    )
    assert "already imported" in run_python("-c", code)
