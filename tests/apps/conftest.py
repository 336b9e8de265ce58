import pathlib

import pytest
from running import install_packages


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the packages tenon and tenon-onnxruntime."""
    return install_packages(tmp_path_factory.mktemp("packages"))
