"""./dev, with programs in its way that only write down how they were called."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Writes down the call. Node "builds" the package, and its tests fail if there is a file `broken`.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$CALLS"
case "$1" in
  web/build.mjs) mkdir -p build/web/package/dist
    for name in tenon.wasm ort.min.mjs ort.wasm.min.mjs; do : >build/web/package/dist/$name; done ;;
  --test) [ ! -e broken ] ;;
esac
"""
# Every package that the script names is there.
DPKG_QUERY = "#!/bin/sh\ntr -cs 'a-z0-9.+-' '\\n' <dev | sed 's/^/installed /'\n"
TESTS = {
    "pages.test.mjs": "import {show} from './browser.mjs';\n",
    "session.test.mjs": "import {load} from './package.mjs';\n",
    "threads.test.mjs": "import {load} from './package.mjs';\n",
}


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the script and what it looks for, and programs that do nothing."""
    files = {
        "dev": (ROOT / "dev").read_text(),
        "web/package.json": "{}",
        "web/node_modules/package.json": "{}",
        **{f"tests/web/{name}": text for name, text in TESTS.items()},
        **{f"bin/{name}": STUB for name in ("cmake", "node", "npm", "apt-get", "sudo")},
        "bin/dpkg-query": DPKG_QUERY,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path


def run(tree: pathlib.Path, *arguments: str) -> tuple[int, list[str]]:
    calls = tree / "calls"
    calls.write_text("")
    path = f"{tree / 'bin'}:{os.environ['PATH']}"
    result = subprocess.run(
        [tree / "dev", *arguments],
        env={**os.environ, "PATH": path, "CALLS": str(calls)},
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, calls.read_text().splitlines()


@pytest.mark.parametrize(
    "arguments, tests",
    {
        (): ["tests/web/session.test.mjs", "tests/web/threads.test.mjs"],
        ("--browser",): ["tests/web/pages.test.mjs"],
    }.items(),
    ids=["node", "browser"],
)
def test_web_builds_both_modules_and_the_package_and_tests_them(tree, arguments, tests):  # WB-117
    status, calls = run(tree, "web", *arguments)
    assert status == 0
    configure, build, package, test = calls  # so nothing is installed
    assert configure.startswith("cmake --preset wasm ")
    assert build.startswith("cmake --build build/wasm ") and build.endswith("--target tenon_web")
    modules = "build/wasm/web/tenon.wasm build/wasm/web/tenon.relaxed.wasm"
    assert package == f"node web/build.mjs build/web {modules}"
    assert test == " ".join(["node --test --test-reporter=spec", *tests])


def test_web_fails_where_a_test_fails(tree):  # WB-117
    (tree / "broken").touch()
    status, calls = run(tree, "web")
    assert status != 0
    assert "--test" in calls[-1]


def test_web_refuses_other_options(tree):
    status, calls = run(tree, "web", "--none")
    assert status != 0
    assert calls == []
