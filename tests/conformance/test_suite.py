"""The test suite of the onnx package, every case with the suite's own tolerance."""

import warnings

import suite_cases
import tenon.backend

# How many of the cases passed when this was last raised; it is never lowered.
FLOOR = 2024


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
