"""The test suite of the onnx package, every case with the suite's own tolerance."""

import warnings

import numpy as np
import suite_cases
import tenon.backend
from onnx.backend.test.loader import load_model_tests

# How many of the cases passed when this was last raised; it is never lowered.
FLOOR = 2026


def test_no_case_is_lost(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    failed = []
    suite = suite_cases.load(tenon.backend.TenonBackend)
    for case in suite:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.run()
        except Exception as error:
            failed.append(f"{case.name}: {error}"[:200])
    passed = len(suite) - len(failed)
    assert passed >= FLOOR, f"{passed} of {len(suite)} cases pass; fails:\n" + "\n".join(failed)


def test_a_sequence_of_scalars_which_the_runner_cannot_compare() -> None:
    (case,) = (
        case for case in load_model_tests(kind="node") if case.name == "test_loop16_seq_none"
    )
    ((inputs, (expected,)),) = case.data_sets
    for first in (inputs[2], None):  # the loop begins with [0.0] if it is given nothing
        (actual,) = tenon.backend.run_model(case.model, [*inputs[:2], first])
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_array_equal(ours, theirs)
