"""The option TENON_OPERATOR_FAMILIES, which only the configuration reads.

tests/ops/families_test.cpp has the library of a few families.
"""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def configure(folder: pathlib.Path, families: str) -> tuple[int, str]:
    rooms = "base;tensor;kernels;ir;runtime;ops"
    options = {"ROOMS": rooms, "BUILD_TESTS": "OFF", "OPERATOR_FAMILIES": families}
    result = subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-GNinja"]
        + [f"-DTENON_{name}={value}" for name, value in options.items()],
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, " ".join(result.stderr.split())


def test_selects_families(tmp_path: pathlib.Path) -> None:
    status, errors = configure(tmp_path, "Binary;Conv")
    assert status == 0, errors
    ours = tmp_path / "src/ops/families"
    assert (ours / "ops/framework/families.inc").read_text() == "FAMILY(Binary)\nFAMILY(Conv)\n"
    commands = (tmp_path / "build.ninja").read_text()
    assert f"-I{ours} " in commands


def test_refuses_an_unknown_family(tmp_path: pathlib.Path) -> None:
    status, errors = configure(tmp_path, "Binary;Conv,Gemm;Conv")
    assert status != 0
    assert (
        "TENON_OPERATOR_FAMILIES: src/ops/framework/families.inc has no FAMILY(Conv,Gemm)" in errors
    )
