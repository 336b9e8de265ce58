"""Runs the command `tenon` in a separate folder for each test."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = Path(os.environ.get("TENON_COMMAND") or ROOT / "build" / "release" / "cli" / "tenon")


class Tenon:
    command = COMMAND
    root = ROOT

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ok(self, *arguments: object) -> str:
        result = self(*arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def json(self, *arguments: object):
        return json.loads(self.ok(*arguments, "--json"))


@pytest.fixture
def tenon(tmp_path: Path) -> Tenon:
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    return Tenon(tmp_path)
