"""Writes docs/c-api.md: every slot of the C tables, its status, and a test that calls it. A slot is
implemented, as one without a function does not link, or it stands in src/capi/absent_features.cpp.

Runs each test of the given programs with tests/capi/call_recorder.cpp preloaded, which records the
slots that are called. With --check nothing is written; if the page lacks slots, they are named and
the exit status is 1.

Usage: document_c_api.py RECORDER PROGRAM...
       document_c_api.py --check
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/c-api.md"
# In the recorder's order.
TABLES = (
    "OrtApi",
    "OrtModelEditorApi",
    "OrtCompileApi",
    "OrtEpApi",
    "OrtInteropApi",
    "OrtTrainingApi",
)
HEAD = """# The C interface, slot by slot

`include/onnxruntime_c_api.h` and the headers beside it declare the tables and say what each slot
does. `./dev document` writes this page: it runs every test of the interface and records the slots
that the test calls, or that a plugin or a custom operator of the test calls. Calls in other
processes are not recorded: those of the Python tests, onnxruntime-node and the transcripts. A slot
whose status is "absent" belongs to a feature that Tenon lacks: it returns an error that says so, or
a null table.
"""


def slots() -> dict[str, list[str]]:
    """Names of the slots of each table, in order."""
    pattern = re.compile(r"^ABI_SLOT\((\w+), (\w+), (\d+),", re.MULTILINE)
    text = (ROOT / "src/capi/boundary/abi_slots.inc").read_text()
    names: dict[str, list[str]] = {table: [] for table in TABLES}
    for table, name, _ in sorted(pattern.findall(text), key=lambda row: int(row[2])):
        if table in names:
            names[table].append(name)
    return names


def absent() -> set[str]:
    """Names of the slots of features that Tenon lacks."""
    text = (ROOT / "src/capi/absent_features.cpp").read_text()
    return set(re.findall(r"^\w[\w ]*\* (\w+)\(", text, re.MULTILINE))


def status_of(name: str) -> str:
    """The word for a slot on the page."""
    return "absent" if name in absent() else "implemented"


def tests_of(program: str) -> list[str]:
    """Names of a program's tests, without those that read the tables themselves."""
    listing = subprocess.run(
        [program, "--gtest_list_tests"], check=True, capture_output=True, text=True
    ).stdout
    names, suite = [], ""
    for line in listing.splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
        else:
            names.append(suite + line.split("#")[0].strip())
    return [name for name in names if not name.startswith("ApiTableTest.")]


def record(recorder: str, programs: list[str]) -> dict[tuple[int, int], str]:
    """For each slot that is called, by table and number, the first test that calls it."""
    callers: dict[tuple[int, int], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        calls = pathlib.Path(folder) / "calls"
        environment = {**os.environ, "LD_PRELOAD": recorder, "TENON_CALLS": str(calls)}
        for program in programs:
            for test in tests_of(program):
                calls.unlink(missing_ok=True)
                subprocess.run(
                    [program, f"--gtest_filter={test}"],
                    env=environment,
                    check=False,  # some look for files beside the recorder
                    stdout=subprocess.DEVNULL,
                )
                if not calls.exists():
                    continue
                for line in calls.read_text().splitlines():
                    table, slot = map(int, line.split())
                    callers.setdefault((table, slot), test)
    return callers


def write(callers: dict[tuple[int, int], str]) -> None:
    """Writes the page."""
    text = HEAD
    for number, (table, names) in enumerate(slots().items()):
        called = sum((number, i) in callers for i in range(len(names)))
        text += f"## {table}\n\n{len(names)} slots, {called} called by a test.\n\n"
        text += "| slot | name | status | called by |\n| ---: | --- | --- | --- |\n"
        for i, name in enumerate(names):
            test = callers.get((number, i), "-")
            text += f"| {i} | `{name}` | {status_of(name)} | {test} |\n"
        text += "\n"
    PAGE.write_text(text.rstrip() + "\n")


def check() -> int:
    """Compares the page with the sources."""
    sections = re.split(r"^## (\w+)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    pages = dict(zip(sections[::2], sections[1::2], strict=True))
    problems = 0
    for table, names in slots().items():
        row = re.compile(r"^\| \d+ \| `(\w+)` \| (\w+) \|", re.MULTILINE)
        rows = dict(row.findall(pages.get(table, "")))
        for name in names:
            if rows.get(name) != status_of(name):
                said = f"calls {name} {rows[name]}" if name in rows else f"lacks {name}"
                print(f"docs/c-api.md: {table} {said}, expected {status_of(name)}")
                problems += 1
    return min(problems, 1)


def main() -> int:
    """The exit status."""
    if sys.argv[1:] == ["--check"]:
        return check()
    recorder, *programs = sys.argv[1:]
    write(record(recorder, programs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
