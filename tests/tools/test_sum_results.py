"""sum_results.py counts what CTest and pytest report, and never loses a failure."""

import pytest
from sum_results import Counts, count_part

CTEST = """<testsuite tests="4" failures="1" disabled="1" skipped="1">
<testcase name="a" status="run"><system-out>ok</system-out></testcase>
<testcase name="b" status="fail"><failure message="x"/></testcase>
<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>
<testcase name="d" status="disabled"/></testsuite>"""
PYTEST = """<testsuites><testsuite tests="3" errors="1" failures="0" skipped="1">
<testcase name="a"/><testcase name="b"><error message="x"/></testcase>
<testcase name="c"><skipped message="x"/></testcase></testsuite></testsuites>"""
CLEAN = '<testsuite><testcase name="a" status="run"/></testsuite>'

CASES = {
    "ctest": ("8", CTEST, Counts(1, 1, 2)),
    "pytest": ("1", PYTEST, Counts(1, 1, 1)),
    "clean": ("0", CLEAN, Counts(1, 0, 0)),
    "crash after clean cases": ("139", CLEAN, Counts(1, 1, 0)),
    "truncated file": ("0", "<testsuite><testcase", Counts(0, 1, 0)),
    "check without cases": ("0", None, Counts(1, 0, 0)),
    "failed check without cases": ("1", None, Counts(0, 1, 0)),
}


@pytest.mark.parametrize("status, junit, expected", CASES.values(), ids=CASES.keys())
def test_counts(tmp_path, status, junit, expected):
    (tmp_path / "part.exit").write_text(status)
    if junit:
        (tmp_path / "part.xml").write_text(junit)
    assert count_part(tmp_path / "part.exit") == expected
