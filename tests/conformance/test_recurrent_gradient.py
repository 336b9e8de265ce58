"""Gradients of LSTM, GRU and RNN beside those that PyTorch found for the standard's formulas."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import tenon
from recurrent_cases import CASES, differentiated, inputs_of, model_of

# make_recurrent_gradients.py wrote it.
EXPECTED = np.load(pathlib.Path(__file__).with_name("recurrent_gradients.npz"))


def run(name: str, values: dict[str, Any], threads: int = 1) -> list[np.ndarray]:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    session = tenon.InferenceSession(model_of(name, values).SerializeToString(), options)
    return session.run(None, values)


def cast(values: dict[str, Any], dtype: type) -> dict[str, Any]:
    return {key: x if x.dtype == np.int32 else x.astype(dtype) for key, x in values.items()}


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_autograd(name: str, dtype: type, tolerance: float) -> None:
    actual = run(name, cast(inputs_of(name), dtype))
    for x, slope in zip(differentiated(name), actual, strict=True):
        expected = EXPECTED[f"{name}/{x}"]
        scale = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(slope / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_the_number_of_threads_changes_no_bit(name: str, dtype: type) -> None:
    values = cast(inputs_of(name, (7, 9, 33, 70)), dtype)
    first, *more = [run(name, values, threads) for threads in (1, 2, 3)]
    for other in more:
        for a, b in zip(first, other, strict=True):
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", ["LSTM in both directions", "GRU", "GRU of PyTorch", "RNN"])
def test_floats_of_larger_layers(name: str) -> None:
    """The float kernels beside those in double precision, whose products are other loops."""
    values = inputs_of(name, (7, 9, 33, 70))
    for x, slope, expected in zip(
        differentiated(name), run(name, cast(values, np.float32)), run(name, values), strict=True
    ):
        scale = max(1.0, float(np.abs(expected).max()))
        assert np.abs(slope - expected).max() <= 2e-5 * scale, x


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_short_sequences(name: str, steps: int) -> None:
    values = inputs_of(name, (steps, 2, 3, 4))
    slopes = dict(zip(differentiated(name), run(name, values), strict=True))
    assert slopes["X"].shape == (steps, 2, 3)
    assert slopes["W"].any() == (steps > 0)
    assert name == "RNN" or not slopes["R"].any(), "the state before the first step is 0"


def test_what_has_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"activations": ["LeakyRelu"], "activation_alpha": [-1.0]}
    monkeypatch.setitem(CASES, "refused", ("RNN", (), options))
    with pytest.raises(Exception, match=r"RNNGrad.*no gradient through LeakyRelu"):
        run("refused", inputs_of("refused"))
