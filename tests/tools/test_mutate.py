"""mutations.py changes only code; mutate.py detects which mutants the tests kill."""

import pathlib
import re
import signal
import subprocess
import sys
import time

import mutate
import pytest
from mutations import code_of, mutations


def changes(source: str) -> list[str]:
    return [mutation.described_in(source) for mutation in mutations(source)]


CHANGED = {
    "relational": ("if (a < b) c();", ["`<` -> `<=`", "`<` -> `>=`"]),
    "equality": ("return a == b;", ["`==` -> `!=`"]),
    "arithmetic": ("x = a * b;", ["`*` -> `/`"]),
    "compound": ("x += y;", ["`+=` -> `-=`"]),
    "logical": ("return a && !b;", ["`&&` -> `||`", "`!` deleted"]),
    "zero": ("int x = 0;", ["`0` -> `1`"]),
    "whole": ("f(1'023u);", ["`1'023` -> `1024`"]),
    "real": ("f(0.5f);", ["`0.5f` -> `(0.5f * 1.001f)`"]),
    "power of ten": ("f(1e-5);", ["`1e-5` -> `(1e-5 * 1.001)`"]),
    "hexadecimal": ("f(0x1.8p3);", ["`0x1.8p3` -> `(0x1.8p3 * 1.001)`"]),
    "no real": ("f(0.0f, -0.0);", ["`0.0f` -> `1.0f`", "`0.0` -> `1.0`"]),
    "truth": ("f(true);", ["`true` -> `false`"]),
    "minimum": ("std::min(a, b)", ["`std::min` -> `std::max`"]),
    "vector": ("hn::Lt(hn::Add(a, b), c)", ["`hn::Lt` -> `hn::Le`", "`hn::Add` -> `hn::Sub`"]),
    "check": (
        "  TENON_RETURN_IF_ERROR(\n      Check(a));\n",
        ["`TENON_RETURN_IF_ERROR( Check(a));` deleted"],
    ),
    "condition": (
        'if (f("x", a)) {\n  return InvalidArgument(b);\n}',
        ['`f("x", a)` -> `false && (f("x", a))`'],
    ),
}
LEFT = {
    "comment": "// a < b\n/* a + b\n c * d */",
    "text": 'f("a < 1", R"(b + 2)", R"x(c " * ) 3)x", \'4\');',
    "text with quotes": r'f("\" < 1", "\\", "a + b");',
    "preprocessor": "#include <vector>\n  #define X \\\n  (a + 1)\n#if A < 3\n",
    "template": "template <size_t N = 4, class T = A<true, 3>>\nvoid f(B<C<5>, 6> x);",
    "call of a template": "f<1>(g<true>(x));",
    "pointers": "T* p = *q; f(T&& x, const T& y);",
    "names": "int32_t x1 = kMax2;",
    "hexadecimal": "f(0xFF, 0b11);",
    "without effect": "TENON_DCHECK(a < (b + 1));\nx.reserve(n * 2);\nstatic_assert(a == 1);",
    "sign": "f(-x, +y, x++, --y);",
    "member": "a->b();",
    "another return": "if (f(a)) return Other(b);",
}


@pytest.mark.parametrize("source, expected", CHANGED.values(), ids=CHANGED.keys())
def test_changes(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT.keys())
def test_leaves(source: str) -> None:
    assert changes(source) == []


def test_code_keeps_its_place() -> None:
    source = 'a(); // "x\nf("y", 1); /* \n */ b();\n'
    code = code_of(source)
    assert code == "a();      \nf(   , 1);    \n    b();\n"
    assert [m.line_in(source) for m in mutations(source)] == [2]


def test_a_mutant_differs_in_its_place_alone() -> None:
    source = "// 1 < 2\nif (a < 2) b();\n"
    mutants = [mutation.applied_to(source) for mutation in mutations(source)]
    head = "// 1 < 2\nif (a "
    assert mutants == [head + tail for tail in ("<= 2) b();\n", ">= 2) b();\n", "< 3) b();\n")]


SOURCE = """int Least(int a, int b) {
  if (a < b) return a;
  return b;
}
"""
GOOD_TEST = "int Least(int, int); int main() { return Least(1, 2) != 1 || Least(2, 1) != 1; }"
BAD_TEST = "int Least(int, int); int main() { return Least(1, 1) != 1; }"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A function that makes a tree of a source and a test, and its mutants and steps."""

    def make(source: str, test: str = GOOD_TEST) -> tuple[list[mutate.Mutant], list[mutate.Step]]:
        folder: pathlib.Path = tmp_path / "src/toy"
        folder.mkdir(parents=True)
        file, program = folder / "toy.cpp", tmp_path / "program"
        file.write_text(source)
        (tmp_path / "test.cpp").write_text(test)
        monkeypatch.setattr(mutate, "ROOT", tmp_path)
        build = ["c++", str(file), str(tmp_path / "test.cpp"), "-o", str(program)]
        return mutate.mutants_of("src/toy"), [mutate.Step(build, [str(program)], limit=1)]

    return make


def examined(mutants: list[mutate.Mutant], steps: list[mutate.Step]) -> mutate.Count:
    count = mutate.Count("src/toy")
    mutate.examine(count, mutants, 100, steps, mutate.Log(None))
    return count


def test_counts_what_a_test_notices(toy, capsys) -> None:
    count = examined(*toy(SOURCE))
    assert (count.killed, count.discarded) == (1, 0)
    assert count.survivors == ["src/toy/toy.cpp:2: relational: `<` -> `<=`"]
    assert mutate.table([count]).splitlines()[2:] == [
        "| src/toy | 2 | 1 | 1 | 50 % | 0 |",
        "",
        "Survivors:",
        "",
        *count.survivors,
    ]
    said = capsys.readouterr().err.splitlines()
    assert [line.split(": ", 1)[1] for line in said] == [
        f"SURVIVED: {count.survivors[0]}",
        "killed by exit status 1: src/toy/toy.cpp:2: relational: `<` -> `>=`",
    ]


def test_counts_what_a_test_overlooks(toy) -> None:
    count = examined(*toy(SOURCE, BAD_TEST))
    assert (count.killed, len(count.survivors)) == (0, 2)


def test_a_mutant_that_does_not_compile_is_replaced_by_the_next(toy) -> None:
    mutants, steps = toy("struct A {\n  virtual void F() = 0;\n};\n" + SOURCE)
    count = mutate.Count("src/toy")
    mutate.examine(count, mutants, 2, steps, mutate.Log(None))
    assert (count.total, count.discarded) == (2, 1)


def test_a_log_continues_an_interrupted_run(toy, tmp_path) -> None:
    mutants, steps = toy(SOURCE)
    path = tmp_path / "log"

    def counted(sample: int, steps: list[mutate.Step]) -> mutate.Count:
        count = mutate.Count("src/toy")
        mutate.examine(count, mutants, sample, steps, mutate.Log(path))
        return count

    first = counted(1, steps)
    assert (first.total, len(first.survivors)) == (1, 1)
    assert counted(1, []) == first
    # Whatever runs now fails.
    second = counted(2, [mutate.Step(["true"], ["false"])])
    assert (second.survivors, second.killed) == (first.survivors, 1)
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "body, reason",
    [
        ("bool is_done = true;\n  while (!is_done) {\n  }\n  return a < b ? a : b;", "timeout"),
        ("if (false) __builtin_abort();\n  return a < b ? a : b;", "SIGABRT"),
    ],
)
def test_what_does_not_end_well_is_killed(toy, capsys, body: str, reason: str) -> None:
    mutants, steps = toy(f"int Least(int a, int b) {{\n  {body}\n}}\n")
    assert mutate.verdict(mutants[0], steps) == reason


def test_names_the_test_that_failed() -> None:
    google = "[  FAILED  ] A.First (0 ms)\n[  FAILED  ] A.Second, where x\n"
    assert mutate.reason_of(1, google) == "A.First"
    assert (
        mutate.reason_of(1, "..\nFAILED tests/a.py::test_b[c] - assert 1\n")
        == "tests/a.py::test_b[c]"
    )
    assert mutate.reason_of(-6, google) == "SIGABRT"
    assert mutate.reason_of(0, google) == ""


def test_output_may_be_any_bytes() -> None:
    command = ["sh", "-c", r"printf '\200\n[  FAILED  ] A.First (0 ms)\n'; exit 1"]
    assert mutate.run(command, {}, None) == "A.First"


def test_a_seed_repeats_its_sample(toy) -> None:
    mutants, _ = toy(SOURCE * 20)
    samples = [mutate.drawn(mutants, seed, "src/toy") for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert sorted(map(str, samples[2])) == sorted(map(str, mutants))


def test_a_line_is_a_place(toy) -> None:
    toy(SOURCE * 2)
    assert {str(m)[:20] for m in mutate.mutants_of("src/toy/toy.cpp:6")} == {"src/toy/toy.cpp:6: r"}


def test_a_file_is_as_it_was_after_an_interrupt(toy) -> None:
    mutants, _ = toy(SOURCE)
    with pytest.raises(KeyboardInterrupt), mutate.written(mutants[0]):
        assert mutants[0].path.read_text() == SOURCE.replace("<", "<=")
        raise KeyboardInterrupt
    assert mutants[0].path.read_text() == SOURCE


# Examines the mutants of argv[1] with a test that takes a minute.
ENDLESS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import mutate
mutate.ROOT = pathlib.Path(sys.argv[2])
mutate.prepare = lambda *_: [mutate.Step(["true"], ["sleep", "60"], limit=60)]
sys.argv[1:] = ["src/toy"]
sys.exit(mutate.main())
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_file_is_as_it_was_after_a_signal(toy, tmp_path, stop: signal.Signals) -> None:
    file = toy(SOURCE)[0][0].path
    scripts = str(pathlib.Path(mutate.__file__).parent)
    command = [sys.executable, "-c", ENDLESS, scripts, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while file.read_text() == SOURCE and time.monotonic() < deadline:
            time.sleep(0.01)
        assert file.read_text() != SOURCE
        process.send_signal(stop)
        output, _ = process.communicate(timeout=60)
    assert file.read_text() == SOURCE
    assert process.returncode != 0
    assert b"| src/toy | 0 | 0 | 0 | - | 0 |" in output


def test_every_room_has_tests() -> None:
    root = pathlib.Path(mutate.__file__).parents[1]
    rooms = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    assert set(mutate.TESTS) == rooms
    for room, names in mutate.TESTS.items():
        for name in names:
            if name.startswith("tests/"):
                assert (root / name.split()[0]).is_dir(), name
            else:
                folder, _, target = name.rpartition("/")
                known = (root / "tests" / (folder or room) / "CMakeLists.txt").read_text()
                assert re.search(rf"tenon_test\({target}\s", known), name
