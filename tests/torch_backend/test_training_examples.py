"""The programs of the examples train."""

import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import tenon

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnx", reason="the onnx package is not installed")

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def printed(*arguments):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(*arguments):
    """What the processes of a program print at the end."""
    return dict(re.findall(r"(\w+ \d of 2): loss ([0-9.]+)", printed(*arguments)))


def test_data_parallel():
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    found = losses(*launcher, EXAMPLES / "training" / "data_parallel.py")
    assert set(found) == {"process 0 of 2", "process 1 of 2"}
    assert len(set(found.values())) == 1 and float(found["process 0 of 2"]) < 0.1


def test_on_ray():
    pytest.importorskip("ray.train", reason="ray[train] is not installed")
    found = losses(EXAMPLES / "training" / "on_ray.py")
    assert set(found) == {"worker 0 of 2", "worker 1 of 2"}
    assert len(set(found.values())) == 1 and float(found["worker 0 of 2"]) < 0.1


def test_digits_from_random_weights(tmp_path):
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    output = printed(EXAMPLES / "train-digits" / "train_digits.py", tmp_path)
    right, of = map(int, re.findall(r"(\d+) of (\d+) unseen pictures are right", output)[0])
    assert of == 360 and right >= 0.97 * of

    session, shown = [
        tenon.InferenceSession(folder / "digits.onnx") for folder in (tmp_path, EXAMPLES / "digits")
    ]
    for get in ("get_inputs", "get_outputs"):
        described = [
            [(value.name, value.type, value.shape) for value in getattr(each, get)()]
            for each in (session, shown)
        ]
        assert described[0] == described[1]
    digits = datasets.load_digits()
    pictures = (digits.images[:, None] / 16).astype(np.float32)
    (probabilities,) = session.run(None, {"image": pictures})
    assert np.mean(probabilities.argmax(1) == digits.target) >= 0.97

    for file in ("labels.txt", *(f"samples/{digit}.png" for digit in range(10))):
        assert (tmp_path / file).read_bytes() == (EXAMPLES / "digits" / file).read_bytes()
    demo = printed(EXAMPLES / "digits" / "demo.py", "--model", tmp_path / "digits.onnx")
    assert demo.count("%") == 10


def test_fine_tuning(tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    picture = tmp_path / "loss.svg"
    output = printed(EXAMPLES / "finetune" / "finetune.py", "--steps", "20", "--picture", picture)
    assert len(re.findall(r"loss [0-9.]+, [0-9]+ samples per second", output)) == 8
    before, after = re.findall(r"([0-9.]+) before fine-tuning, ([0-9.]+) after", output)[0]
    assert float(after) < float(before)
    assert "The dataset " in output

    lines = ET.parse(picture).findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [20] * 4
