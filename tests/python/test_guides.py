"""The guides are right: their Python blocks run, in order, from the root of the project."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = [
    "README.md",
    "docs/python.md",
    "docs/debugging.md",
    "docs/profiling.md",
    "docs/quantization.md",
    "docs/training.md",
]


def blocks_of(guide: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", guide.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES)
def test_python_blocks_run(guide):
    blocks = blocks_of(ROOT / guide)
    assert blocks
    program = [sys.executable, "-c", "\n".join(blocks)]
    result = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
