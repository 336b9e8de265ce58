"""Adds up the results of `./dev test` and prints them as its last line.

Usage: sum_results.py FOLDER

For every part of the tests FOLDER holds NAME.exit, the part's exit status, and may hold NAME.xml,
its cases as JUnit. A part without cases counts as one test. A part that failed without a failing
case, such as a crash, adds one failure. Exit status 1 if anything failed.
"""

import pathlib
import sys
from typing import NamedTuple
from xml.etree import ElementTree


class Counts(NamedTuple):
    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_cases(junit: pathlib.Path) -> Counts:
    """Counts of a JUnit file, of CTest or pytest; one failure if it cannot be read."""
    try:
        cases = list(ElementTree.parse(junit).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return Counts(0, 1, 0)
    failed = sum(
        case.find("failure") is not None or case.find("error") is not None for case in cases
    )
    # CTest marks a disabled test in its status only.
    skipped = sum(
        case.find("skipped") is not None or case.get("status") == "disabled" for case in cases
    )
    return Counts(len(cases) - failed - skipped, failed, skipped)


def count_part(exit_file: pathlib.Path) -> Counts:
    succeeded = exit_file.read_text().strip() == "0"
    junit = exit_file.with_suffix(".xml")
    if not junit.exists():
        return Counts(int(succeeded), int(not succeeded), 0)
    counts = count_cases(junit)
    if not succeeded and counts.failed == 0:
        return counts._replace(failed=1)
    return counts


def main() -> int:
    parts = {path.stem: count_part(path) for path in pathlib.Path(sys.argv[1]).glob("*.exit")}
    for name in sorted(parts):
        print(f"{name}: {parts[name]}")
    counts = parts.values() or [Counts(0, 1, 0)]  # no results at all, so something went very wrong
    total = Counts(*(sum(column) for column in zip(*counts, strict=True)))
    print(total)
    return int(total.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
