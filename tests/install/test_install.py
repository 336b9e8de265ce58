"""Installs the build, moves the tree, and builds and runs programs against it.

TENON_BUILD names the build tree, as everywhere; it has the library and the command.
"""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD") or ROOT / "build" / "release")
MODEL = ROOT / "examples" / "digits" / "digits.onnx"
CXX = os.environ.get("CXX", "c++")
CC = os.environ.get("CC", "cc")

# A library with ONNX Runtime's name with which programs are linked; it does not exist when they
# run.
STUB = "void OrtGetApiBase(void) {}"
STUB_VERSIONS = "VERS_1.17.0 { global: OrtGetApiBase; local: *; };"


def run(*command: object, **environment: str) -> str:
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory() as name:
        yield pathlib.Path(name)


@pytest.fixture(scope="module")
def prefix(folder: pathlib.Path) -> pathlib.Path:
    """The installed tree, in a place that is unknown to the build."""
    run("cmake", "--install", BUILD, "--prefix", folder / "installed", "--strip")
    return (folder / "installed").rename(folder / "moved")


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    image = np.zeros((1, 1, 8, 8), np.float32)
    return ReferenceEvaluator(onnx.load(MODEL)).run(None, {"image": image})[0].ravel()


def check_scores(program: pathlib.Path, expected: np.ndarray, **environment: str) -> None:
    scores = np.array(run(program, MODEL, **environment).split(), np.float32)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)


def text_files(prefix: pathlib.Path) -> list[pathlib.Path]:
    return [path for path in prefix.rglob("*") if path.suffix in (".cmake", ".pc", ".h")]


def test_the_tree_names_no_absolute_path(prefix, folder):
    files = text_files(prefix)
    assert files
    for file in files:
        text = file.read_text()
        for path in (str(folder), str(BUILD.resolve()), str(ROOT)):
            assert path not in text, file
    assert not any(os.path.isabs(os.readlink(p)) for p in prefix.rglob("*") if p.is_symlink())
    for file in (prefix / "bin/tenon", prefix / "lib/libtenon.so"):
        assert str(ROOT) not in run("readelf", "--dynamic", file)


def test_the_library_has_the_number_of_the_interface(prefix):
    assert (prefix / "lib/libtenon.so").resolve() == (prefix / "lib/libtenon.so.1").resolve()
    assert "soname: [libtenon.so.1]" in run("readelf", "--dynamic", prefix / "lib/libtenon.so")


# EXIT-2
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs binutils")
def test_nothing_is_destroyed_when_the_process_ends():
    # A static variable with a destructor registers it with __cxa_atexit.
    objects = sorted((BUILD / "src").rglob("*.o"))
    assert objects
    symbols = run("nm", "--undefined-only", "--print-file-name", *objects)
    assert "__cxa_atexit" not in symbols, re.findall("(.*):.*__cxa_atexit", symbols)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the figure is of x86-64")
def test_the_library_keeps_its_size(prefix):
    assert (prefix / "lib/libtenon.so").stat().st_size <= 9_500_000  # docs/architecture.md, Choices


def test_nothing_else_is_installed(prefix):
    def names(path: str) -> set[str]:
        return {entry.name for entry in (prefix / path).iterdir()}

    assert names(".") == {"bin", "include", "lib"}
    assert names("bin") == {"tenon"}
    assert names("include") == {"onnxruntime", "tenon"}
    assert names("lib") == {
        *("libtenon.so", "libtenon.so.1", "libonnxruntime.so", "libonnxruntime.so.1"),
        *("cmake", "pkgconfig"),
    }
    public = {header.name for header in (ROOT / "include").glob("*.h")}
    assert names("include/tenon") == public - {"tenon_webnn_c_api.h"}


def test_a_component_leaves_onnxruntimes_names_out(folder):
    alone = folder / "alone"
    run("cmake", "--install", BUILD, "--prefix", alone, "--component", "tenon")
    assert (alone / "lib/libtenon.so.1").exists()
    assert not [path for path in alone.rglob("*onnxruntime*") if "include/tenon" not in str(path)]


def test_the_command_runs(prefix, expected):
    output = run(prefix / "bin/tenon", "run", MODEL, "--input", "zeros", "--json")
    first = json.loads(output)["outputs"][0]["first"]
    np.testing.assert_allclose(first, expected[: len(first)], rtol=1e-5)


@pytest.mark.parametrize(
    "package, version",
    [("tenon", ""), ("tenon", "0.1"), ("onnxruntime", ""), ("onnxruntime", "1.17")],
)
def test_find_package(prefix, folder, expected, package, version):
    build = folder / f"{package}{version}"
    options = [
        f"-DPACKAGE={package}",
        f"-DPACKAGE_VERSION={version}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    ]
    run("cmake", "-G", "Ninja", "-S", HERE, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *options)
    run("cmake", "--build", build)
    assert "libtenon.so.1" in run("readelf", "--dynamic", build / "client")
    check_scores(build / "client", expected)


def test_the_training_example_reads_digits(prefix, folder):
    sklearn = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    tenon = pytest.importorskip("tenon", reason="the Python package is not built")
    example = ROOT / "examples" / "train-digits"
    artifacts, build, model = folder / "artifacts", folder / "digits", folder / "digits.onnx"
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"]
    run("cmake", "-G", "Ninja", "-S", example, "-B", build, *options)
    run("cmake", "--build", build)
    run(sys.executable, example / "make_artifacts.py", artifacts)
    output = run(build / "train_digits", artifacts, model)
    right, of = map(int, re.findall(r"(\d+) of (\d+) unseen pictures are right", output)[0])
    assert of == 360 and right >= 0.97 * of

    def count_right(path):
        pictures = np.fromfile(artifacts / "test_pictures.bin", np.float32).reshape(-1, 1, 8, 8)
        scores = tenon.InferenceSession(path).run(["probabilities"], {"image": pictures})[0]
        labels = np.fromfile(artifacts / "test_labels.bin", np.int64)
        return np.count_nonzero(scores.argmax(1) == labels)

    assert count_right(model) == right
    shown = count_right(ROOT / "examples" / "digits" / "digits.onnx")
    assert f"recognizes {shown} of the 360 test" in (ROOT / "README.md").read_text()
    digits = sklearn.load_digits()
    pictures = (digits.images[:, None] / 16).astype(np.float32)
    session = tenon.InferenceSession(model)
    (probabilities,) = session.run(["probabilities"], {"image": pictures})
    assert np.mean(probabilities.argmax(1) == digits.target) >= 0.97


@pytest.mark.parametrize("package, version", [("tenon", "99"), ("onnxruntime", "2.0")])
def test_find_package_refuses_a_version_that_is_not_there(prefix, folder, package, version):
    options = [
        f"-DPACKAGE={package}",
        f"-DPACKAGE_VERSION={version}",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    ]
    command = ["cmake", "-G", "Ninja", "-S", HERE, "-B", folder / f"{package}{version}", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode != 0
    assert f'requested version "{version}"' in result.stderr


@pytest.mark.parametrize("package", ["tenon", "libonnxruntime"])
@pytest.mark.parametrize("compiler, source", [(CC, "client.c"), (CXX, "client.cpp")])
def test_pkg_config(prefix, folder, expected, package, compiler, source):
    if not shutil.which("pkg-config"):
        pytest.skip("needs pkg-config")
    flags = run(
        "pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")
    ).split()
    program = folder / f"{package}_{source}.exe"
    run(compiler, HERE / source, *flags, f"-Wl,-rpath,{prefix}/lib", "-o", program)
    check_scores(program, expected)


def test_include_paths_of_onnxruntime(prefix, folder):
    """The ways to include the header: from its own folder or from the prefix's."""
    source = folder / "includes.cpp"
    for name in (
        "onnxruntime/onnxruntime_cxx_api.h",
        "onnxruntime/core/session/onnxruntime_c_api.h",
    ):
        source.write_text(f"#include <{name}>\n#include <onnxruntime_cxx_api.h>\n")
        include = ["-I", prefix / "include", "-I", prefix / "include/tenon"]
        run(CXX, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *include, source)


def test_a_program_linked_with_onnxruntime_runs_as_it_is(prefix, folder, expected):
    stub = folder / "stub"
    stub.mkdir()
    (stub / "stub.c").write_text(STUB)
    (stub / "stub.map").write_text(STUB_VERSIONS)
    library = stub / "libonnxruntime.so.1"
    names = ["-Wl,-soname,libonnxruntime.so.1", f"-Wl,--version-script={stub}/stub.map"]
    run(CC, "-shared", "-fPIC", *names, stub / "stub.c", "-o", library)
    program = folder / "linked"
    run(CC, HERE / "client.c", "-I", prefix / "include/onnxruntime", library, "-o", program)
    shutil.rmtree(stub)
    assert "VERS_1.17.0" in run("readelf", "--version-info", "--wide", program)
    check_scores(program, expected, LD_LIBRARY_PATH=str(prefix / "lib"))
