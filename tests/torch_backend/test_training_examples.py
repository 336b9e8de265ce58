"""The programs of examples/training train in two processes."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "training"


def losses(*arguments):
    """What the processes print at the end."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"(\w+ \d of 2): loss ([0-9.]+)", done.stdout))


def test_data_parallel():
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    found = losses(*launcher, str(EXAMPLES / "data_parallel.py"))
    assert set(found) == {"process 0 of 2", "process 1 of 2"}
    assert len(set(found.values())) == 1 and float(found["process 0 of 2"]) < 0.1


def test_on_ray():
    pytest.importorskip("ray.train", reason="ray[train] is not installed")
    found = losses(str(EXAMPLES / "on_ray.py"))
    assert set(found) == {"worker 0 of 2", "worker 1 of 2"}
    assert len(set(found.values())) == 1 and float(found["worker 0 of 2"]) < 0.1
