"""The committed schema table is the one that generate_schemas.py makes of the onnx package."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("schema_data.inc", "schema_functions.inc", "schema_table.inc")

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemas")
    script = ROOT / "scripts" / "generate_schemas.py"
    subprocess.run([sys.executable, script, "--output", folder], check=True)
    return folder


@pytest.mark.parametrize("name", FILES)
def test_committed_file_is_up_to_date(generated, name):
    assert (ROOT / "src" / "ir" / name).read_text() == (generated / name).read_text()


def test_table_holds_every_schema_of_the_package(generated):
    rows = (generated / "schema_table.inc").read_text().count("{.name = ")
    assert rows == len(onnx.defs.get_all_schemas_with_history())
