"""Gradients of random cases of operators beside those that PyTorch found."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tenon
import torch_attention_cases  # noqa: F401 - adds its cases
from torch_cases import Case, case_of, model_of, names

# make_torch_gradients.py wrote it.
EXPECTED = np.load(pathlib.Path(__file__).with_name("torch_gradients.npz"))
SECOND = [name for name in names() if case_of(name).has_second]


def run(
    case: Case, dtype: str = "float64", is_dynamic: bool = False, order: int = 1, threads: int = 1
) -> dict[str, np.ndarray]:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    model = model_of(case, dtype, is_dynamic, order)
    session = tenon.InferenceSession(model.SerializeToString(), options)
    feeds = {
        name: value.astype(dtype) if value.dtype == np.float64 else value
        for name, value in case.inputs.items()
    }
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, feeds), strict=True))


def compare(name: str, actual: dict[str, np.ndarray], tolerance: float) -> None:
    for key, value in actual.items():
        expected = EXPECTED[f"{name}/{key}"]
        assert value.shape == expected.shape
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(value / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", names())
def test_gradients_are_those_of_autograd(name: str, is_dynamic: bool) -> None:
    case = case_of(name)
    for dtype in case.types:
        tolerance = case.tolerance if dtype == "float64" else 1e-4
        compare(name, run(case, dtype, is_dynamic), tolerance)


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_those_of_autograd(name: str) -> None:
    case = case_of(name)
    dtype = case.types[0]
    tolerance = 10 * case.tolerance if dtype == "float64" else 1e-4
    compare(name, run(case, dtype, order=2), tolerance)


@pytest.mark.parametrize("name", names())
def test_the_number_of_threads_changes_no_bit(name: str) -> None:
    case = case_of(name, factor=7)
    first, *more = [run(case, "float32", threads=threads) for threads in (1, 2, 3)]
    for other in more:
        for key, value in first.items():
            assert value.tobytes() == other[key].tobytes()
