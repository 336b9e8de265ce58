"""Runs clients on libtenon.so and on ONNX Runtime's library, and compares their output.

Usage: compare_transcripts.py LIBTENON PACKAGES PROGRAM [MODEL...] [-- PROGRAM [MODEL...]]...

ONNX Runtime's libraries are those of the onnxruntime package of Python and of onnxruntime-node in
PACKAGES, which `./dev node` installs. The exit status is 77 if there is neither.
"""

import difflib
import importlib.util
import itertools
import pathlib
import subprocess
import sys

SKIPPED = 77


def find_onnxruntime(packages: pathlib.Path) -> list[pathlib.Path]:
    """ONNX Runtime's C libraries, at most one of each package."""
    found = []
    spec = importlib.util.find_spec("onnxruntime")
    if spec is not None and spec.origin is not None:
        found += sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))[:1]
    of_node = "node_modules/onnxruntime-node/bin/napi-v*/linux/x64/libonnxruntime.so.1"
    return found + sorted(packages.glob(of_node))[:1]


def transcript(command: list[str], library: pathlib.Path) -> list[str]:
    """The output of a client that calls `library`."""
    program, *models = command
    run = subprocess.run(
        [program, library, *models], capture_output=True, text=True, check=True, errors="replace"
    )
    return run.stdout.splitlines()


def main(arguments: list[str]) -> int:
    tenon, packages, *rest = arguments
    groups = itertools.groupby(rest, lambda word: word == "--")
    commands = [list(words) for is_separator, words in groups if not is_separator]
    libraries = find_onnxruntime(pathlib.Path(packages))
    if not libraries:
        print("skipped: neither Python nor Node has onnxruntime")
        return SKIPPED
    differs = False
    for command, library in itertools.product(commands, libraries):
        expected = transcript(command, library)
        got = transcript(command, pathlib.Path(tenon))
        lines = list(difflib.unified_diff(expected, got, str(library), tenon, lineterm="", n=1))
        name = pathlib.Path(command[0]).name
        print(f"{name}, {library.name}: {len(expected)} lines, {len(lines)} of difference")
        print("\n".join(lines))
        differs |= bool(lines) or not expected
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
