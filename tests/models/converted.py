"""Compares the results of a converted model on Tenon with those of onnxruntime."""

import warnings

import numpy as np
import onnxruntime
import tenon

Feeds = dict[str, np.ndarray]


def run_onnxruntime(model: bytes, feeds: Feeds) -> list:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def run_tenon(model: bytes, feeds: Feeds) -> list:
    return tenon.InferenceSession(model).run(None, feeds)


def check_equal(actual: object, expected: object, atol: float, rtol: float, where: str) -> None:
    """Equal structure, types and shapes; equal elements, within the tolerance for floats."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), where
        assert list(actual) == list(expected), where
        for key, value in expected.items():
            check_equal(actual[key], value, atol, rtol, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(actual, list), where
        assert len(actual) == len(expected), where
        for i, value in enumerate(expected):
            check_equal(actual[i], value, atol, rtol, f"{where}[{i}]")
    elif isinstance(expected, np.ndarray):
        assert isinstance(actual, np.ndarray), where
        assert actual.dtype == expected.dtype, where
        assert actual.shape == expected.shape, where
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=where)
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=where)
    elif isinstance(expected, float):
        np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=where)
    else:
        assert actual == expected, where


def check_model(model: bytes, feeds: Feeds, atol: float = 1e-5, rtol: float = 1e-4) -> list:
    """Compares all outputs with onnxruntime's, whole and row by row; returns them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = run_onnxruntime(model, feeds)
    actual = run_tenon(model, feeds)
    assert len(actual) == len(expected)
    for i, value in enumerate(expected):
        check_equal(actual[i], value, atol, rtol, f"output {i}")
    return actual
