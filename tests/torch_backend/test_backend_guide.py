"""docs/pytorch.md is right: its Python blocks run, and it lists the operators that have a rule."""

import contextlib
import io
import pathlib
import re

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

from tenon.torch import _lowering

GUIDE = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text()


def test_python_blocks_run():
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join(blocks), {})
    assert printed.getvalue() in GUIDE
    assert "bessel" in printed.getvalue()


def test_the_table_lists_the_operators():
    table = GUIDE.split("| --- | --- |\n")[1].split("\n\n")[0]
    listed = {
        name for line in table.splitlines() for name in line.split("|")[2].strip().split(", ")
    }
    assert listed == {str(overload).split(".")[1] for overload in _lowering._rules}
