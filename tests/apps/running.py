"""Runs the programs in programs/ with onnxruntime and with Tenon, and compares their results."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("TENON_BUILD") or ROOT / "build" / "release")
# Of one processor, so that sums of other libraries have the same order in every process.
QUIET = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}

Results = dict[str, np.ndarray]


def need(*packages: str) -> None:
    """Skips the test if a package is missing."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}: ./dev test --apps installs it")


def folder_of(package: str) -> pathlib.Path:
    """Where a package is installed; imports nothing."""
    need(package)
    (folder,) = importlib.util.find_spec(package).submodule_search_locations
    return pathlib.Path(folder)


def install_packages(folder: pathlib.Path) -> pathlib.Path:
    """The packages tenon, of the build tree, and tenon-onnxruntime, as pip installs it."""
    shutil.copytree(BUILD / "python" / "tenon", folder / "tenon")
    # The module of a build tree loads this file; as a copy it would be another library.
    (folder / "tenon" / "libtenon.so.1").symlink_to(BUILD / "src/capi/libtenon.so.1")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--no-build-isolation"]
    source = ROOT / "python" / "tenon-onnxruntime"
    copy = shutil.copytree(source, folder / "source")  # a build leaves nothing in the tree
    subprocess.run([*pip, "--no-index", "--target", folder, copy], check=True, timeout=300)
    return folder


def run(program: str, *arguments: object, path: pathlib.Path | None = None) -> None:
    """Runs a program, with packages of `path` before those that are installed."""
    command = [sys.executable, HERE / "programs" / program, *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    result = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**environment, **QUIET},
    )
    assert result.returncode == 0, f"{program}: {result.stdout[-2000:]}{result.stderr[-4000:]}"


def results(
    into: pathlib.Path, program: str, *arguments: object, path: pathlib.Path | None = None
) -> Results:
    """What the program saves in the file that its first argument names."""
    run(program, into, *arguments, path=path)
    with np.load(into) as file:
        return dict(file)


def compare(
    folder: pathlib.Path, program: str, *arguments: object, path: pathlib.Path, rtol: float = 1e-4
) -> Results:
    """Runs a program with onnxruntime, and with the packages of `path`.

    Its results must be equal, floating-point numbers within `rtol` and 1e-5. Returns Tenon's.
    """
    expected = results(folder / "expected.npz", program, *arguments)
    got = results(folder / "got.npz", program, *arguments, path=path)
    assert (expected.pop("runtime"), got.pop("runtime")) == ("onnxruntime", "tenon")
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        assert value.size, f"{name} is empty"
        if np.issubdtype(value.dtype, np.floating):
            np.testing.assert_allclose(got[name], value, rtol, 1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)
    return got
