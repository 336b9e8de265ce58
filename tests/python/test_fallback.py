"""Runs the cases of probe_cases.py on a library with providers that fail on request.

That library replaces the package's own in a separate process. Here each case is a test.
"""

import ast
import os
import pathlib
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import tenon

CASES = pathlib.Path(__file__).with_name("probe_cases.py")
BUILD = pathlib.Path(tenon.__file__).parents[2]
LIBRARY = BUILD / "tests/capi/probe/libtenon.so"
NAMES = [
    node.name
    for node in ast.parse(CASES.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The error of each case, "" for none."""
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY}: the C++ tests are not built")
    report = tmp_path_factory.mktemp("probe") / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    environment = {**os.environ, "LD_PRELOAD": str(LIBRARY)}
    done = subprocess.run(
        [*command, f"--junitxml={report}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.exists(), done.stdout + done.stderr
    results: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        problems = [child.text or "" for child in case if child.tag in ("failure", "error")]
        results[name] = results.get(name, "") + "".join(problems)
    return results


@pytest.mark.parametrize("name", NAMES)
def test_with_probes(name: str, outcomes: dict[str, str]) -> None:
    assert outcomes[name] == ""
