"""onnxruntime-node with this library gives the same results as onnxruntime in Python."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from test_models import CASES, Case, expect_close, label

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/node"
NODE = shutil.which("node")
sys.path.insert(0, str(ROOT / "tests/node"))

from run_client import copy_package  # noqa: E402

pytestmark = pytest.mark.skipif(
    NODE is None or not (PACKAGES / "node_modules/onnxruntime-node/bin").is_dir(),
    reason="needs Node and onnxruntime-node; ./dev node installs them",
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """onnxruntime-node with this library instead of its own."""
    folder = tmp_path_factory.mktemp("node")
    copy_package(PACKAGES, pathlib.Path(os.environ["TENON_BUILD"]) / "src/capi/libtenon.so", folder)
    return folder


def run(package: pathlib.Path, model: pathlib.Path, feeds: dict, outputs: list[str]) -> dict:
    def packed(x: np.ndarray) -> dict:
        data = base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()
        return {"type": x.dtype.name, "dims": x.shape, "data": data}

    call = {
        "model": str(model),
        "feeds": {name: packed(x) for name, x in feeds.items()},
        "outputs": outputs,
    }
    script = pathlib.Path(__file__).with_name("run_model.mjs")
    done = subprocess.run(
        [str(NODE), str(script), str(package)],
        input=json.dumps(call),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {
        name: np.frombuffer(base64.b64decode(x["data"]), x["type"]).reshape(x["dims"])
        for name, x in json.loads(done.stdout).items()
    }


@pytest.mark.parametrize("case", CASES, ids=label)
def test_gives_what_onnxruntime_gives(
    case: Case, models: pathlib.Path, package: pathlib.Path
) -> None:
    path = models / case.path
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    reference = onnxruntime.InferenceSession(path, options)
    # The package only supports tensors.
    outputs = [x.name for x in reference.get_outputs() if x.type.startswith("tensor")]
    feeds = next(iter(case.feeds(models, np.random.default_rng(1))))
    actual = run(package, path, feeds, outputs)
    for name, expected in zip(outputs, reference.run(outputs, feeds), strict=True):
        expect_close(name, actual[name], expected, case.atol, case.rtol)
