import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))


@pytest.fixture(scope="session")
def models() -> pathlib.Path:
    """The folder of real models, from TENON_MODELS or beside the repository."""
    folder = pathlib.Path(os.environ.get("TENON_MODELS", ROOT.parent / "shared/models"))
    if not folder.is_dir():
        pytest.skip(f"no models in {folder}: set TENON_MODELS")
    return folder
