"""The package's types: the stubs match the build; they and the examples are strictly typed."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What nanobind makes other than Python would, though it is used alike: classes and functions of
# types of its own, initializers that take anything until they look at it, constants that mark
# enumerations. And before Python 3.12 the buffer protocol has no method, though type checkers know
# it by one.
OF_NANOBIND = re.compile(
    r" (is inconsistent, metaclass differs"
    r"|is a disjoint base at runtime, but isn't marked with @disjoint_base in the stub"
    r"|is not a function"
    r"|is inconsistent, stub is a staticmethod but runtime is not"
    r"|is inconsistent, stub does not have \*args parameter \"args\""
    r"|is inconsistent, stub does not have \*\*kwargs parameter \"kwargs\")$"
    r"|\.__nb_enum__ is not present in stub$"
    r"|tenon\._tenon\.OrtValue\.__buffer__ is not present at runtime$"
)

# They have no stubs: what is decorated there looks different when it runs. Their types cannot be
# judged where PyTorch is absent.
OF_TORCH = ("tenon.torch", "tenon.training.ortmodule")
WITHOUT_TORCH = importlib.util.find_spec("torch") is None


def mypy(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_stubs_are_what_is_built() -> None:
    done = mypy("mypy.stubtest", "--concise", "--mypy-config-file", "mypy.ini", "tenon")
    assert "tenon._tenon.OrtValue" in done.stdout, done.stdout + done.stderr  # it has looked
    lines = [line for line in done.stdout.splitlines() if not line.startswith(OF_TORCH)]
    assert [line for line in lines if not OF_NANOBIND.search(line)] == []


def test_package_is_strictly_typed() -> None:
    exclude = ["--exclude", "^python/tenon/(torch|training/ortmodule)/"] if WITHOUT_TORCH else []
    done = mypy("mypy", "--strict", *exclude, "python/tenon")
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_are_strictly_typed() -> None:
    programs = sorted((ROOT / "examples").rglob("*.py"))
    if WITHOUT_TORCH:
        programs = [path for path in programs if "import torch" not in path.read_text()]
    assert programs
    done = mypy("mypy", "--strict", "--follow-imports=silent", *map(str, programs))
    assert done.returncode == 0, done.stdout + done.stderr
