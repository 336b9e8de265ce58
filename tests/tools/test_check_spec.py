"""check_spec.py finds each requirement without a test, and no false ones."""

import pathlib
import subprocess
import sys

import check_spec
import pytest
from check_spec import check_tree, mentions, missing, read_document, summary

# Composed here, so that the checker does not take the cases of this file for requirements.
Q = "QA"
PAGE = f"docs/spec/{Q.lower()}.md"
TEST = "tests/runtime/a_test.cpp"


def spec(*lines: str) -> dict[str, str]:
    return {PAGE: "# Document\n\n" + "\n".join(lines) + "\n"}


def a_test_of(*ids: str) -> dict[str, str]:
    return {TEST: f"// {', '.join(ids)}: what is tested\n"}


ONE = f"- **{Q}-1** A reader is read."
TWO = f"- **{Q}-2** A writer is\n  written to."
WHY = "  - Not tested: not implemented\n    yet."


@pytest.fixture
def tree(tmp_path):
    """A function that makes a tree of the given files, and checks it."""

    def check(files: dict[str, str]) -> list[str]:
        for name, content in files.items():
            file: pathlib.Path = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return check_tree(tmp_path)[1]

    return check


ACCEPTED = {
    "nothing": {},
    "tested": spec(ONE, TWO) | a_test_of(f"{Q}-1", f"{Q}-2"),
    "tested in Python": spec(ONE) | {"tests/python/test_a.py": f'"""{Q}-1"""\n'},
    "tested on the web": spec(ONE) | {"tests/web/a.test.mjs": f"test('{Q}-1: reads', () => 1);\n"},
    "tested in a plugin": spec(ONE) | {"tests/plugins/test_a.py": f"# {Q}-1\n"},
    "range": spec(ONE, TWO, f"- **{Q}-3** Three.") | a_test_of(f"{Q}-1 to {Q}-3"),
    "short range": spec(ONE, TWO, f"- **{Q}-3** Three.") | a_test_of(f"{Q}-1..3"),
    "reason": spec(ONE, TWO, WHY) | a_test_of(f"{Q}-1"),
    "reason below a table": spec(ONE, "", "  | a |\n  | --- |", WHY),
    "number with a letter": spec(f"- **{Q}-1a** More.") | a_test_of(f"{Q}-1a"),
    "code names what exists": spec(ONE, WHY) | {"src/ir/a.h": f"// Reads once ({Q}-1).\n"},
    "a page names another's": spec(ONE, WHY) | {"docs/a.md": f"See {Q}-1.\n"},
    "sample in a page": spec(ONE, WHY, "", "```", ONE, "  - Not tested: ...", "```"),
    "other names": {"src/a.cpp": "// UTF-8, AVX-512, LRN-13, x_AB-1, a-AB-1, MAB-3, If-16\n"},
    "what is built": {"web/node_modules/x/a.js": f"// {Q}-7\n", "web/dist/b.js": f"// {Q}-8\n"},
}

NO_DOCUMENT = "no document of docs/spec has"
REJECTED = {
    "unknown id in a test": (
        spec(ONE) | a_test_of(f"{Q}-1", f"{Q}-9"),
        TEST,
        f"{NO_DOCUMENT} {Q}-9",
    ),
    "unknown id in code": ({"src/ir/a.h": f"\n// {Q}-9\n"}, "src/ir/a.h:2", f"{NO_DOCUMENT} {Q}-9"),
    "unknown id in a page": ({"docs/a.md": f"As {Q}-9 says"}, "docs/a.md:1", f"{Q}-9"),
    "unknown id in a document": (
        spec(ONE + f" See {Q}-9.") | a_test_of(f"{Q}-1"),
        f"{PAGE}:3",
        f"{NO_DOCUMENT} {Q}-9",
    ),
    "unknown letters": (spec(ONE, WHY) | a_test_of("Z" + f"{Q[0]}-1"), TEST, f"Z{Q[0]}-1"),
    "unknown end of a range": (spec(ONE) | a_test_of(f"{Q}-1..2"), TEST, f"{Q}-2"),
    "neither test nor reason": (spec(ONE, TWO) | a_test_of(f"{Q}-1"), f"{PAGE}:4", f"names {Q}-2"),
    "code is no test": (
        spec(ONE) | {"src/a.cpp": f"// {Q}-1\n"},
        f"{PAGE}:3",
        f"no test names {Q}-1, and no 'Not tested' says why",
    ),
    "another id begins alike": (
        spec(ONE, f"- **{Q}-10** Ten.") | a_test_of(f"{Q}-10"),
        f"{PAGE}:3",
        f"no test names {Q}-1,",
    ),
    "stale reason": (
        spec(ONE, WHY) | a_test_of(f"{Q}-1"),
        f"{PAGE}:3",
        f"{Q}-1 is 'Not tested', but {TEST}:1 names it",
    ),
    "reason of nothing": (spec("Text.", WHY), f"{PAGE}:4", "is not below a requirement"),
    "reason after the list": (
        spec(ONE, "", "Text.", WHY) | a_test_of(f"{Q}-1"),
        f"{PAGE}:6",
        "is not below a requirement",
    ),
    "empty reason": (spec(ONE, "  - Not tested:"), f"{PAGE}:4", f"{Q}-1 has an empty reason"),
    "two reasons": (spec(ONE, WHY, WHY), f"{PAGE}:6", f"{Q}-1 has two reasons"),
    "duplicate": (
        spec(ONE, TWO, ONE) | a_test_of(f"{Q}-1", f"{Q}-2"),
        f"{PAGE}:6",
        f"{Q}-1 is defined at {PAGE}:3 already",
    ),
    "duplicate in another document": (
        spec(ONE, WHY) | {"docs/spec/zz.md": f"{ONE}\n{WHY}\n"},
        "docs/spec/zz.md:1",
        f"{Q}-1 is defined at {PAGE}:3 already",
    ),
}


@pytest.mark.parametrize("files", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepts(tree, files):
    assert tree(files) == []


@pytest.mark.parametrize("files, where, message", REJECTED.values(), ids=REJECTED.keys())
def test_rejects(tree, files, where, message):
    problems = tree(files)
    assert len(problems) == 1
    assert problems[0].startswith(where) and message in problems[0]


def test_ranges_name_what_is_between():
    line = f"// {Q}-8 to {Q}-10, {Q}-3..{Q}-4, {Q}-1; {Q}-20 to 22"
    numbers = [name.removeprefix(f"{Q}-") for name in mentions(line)]
    assert numbers == ["8", "9", "10", "3", "4", "1", "20"]


def test_reasons_are_read_to_their_end():
    requirements, problems = read_document(f"{ONE}\n{WHY}\n{TWO}\n", PAGE)
    assert problems == []
    assert [each.reason for each in requirements] == ["not implemented yet.", None]


def test_counts_and_lists(tree, tmp_path):
    tree(spec(ONE, TWO, WHY, f"- **{Q}-3** Three.") | a_test_of(f"{Q}-1"))
    specification, problems = check_tree(tmp_path)
    assert list(summary(specification)) == ["qa: 1 of 3 tested, 1 with a reason why not"]
    assert list(missing(specification)) == [
        f"{PAGE}:4: {Q}-2: not implemented yet.",
        f"{PAGE}:8: {Q}-3: no reason",
    ]
    assert len(problems) == 1


@pytest.mark.parametrize("page, status", [(f"{ONE}\n{WHY}\n", 0), (f"{ONE}\n", 1)])
def test_exit_status(tmp_path, page, status):
    (tmp_path / "docs/spec").mkdir(parents=True)
    (tmp_path / PAGE).write_text(page)
    arguments = [sys.executable, check_spec.__file__, "--summary", str(tmp_path)]
    run = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (status, "")
    assert run.stdout.startswith(f"qa: 0 of 1 tested, {1 - status} with")
