"""Runs capi_transcript on libtenon.so and on ONNX Runtime's library and compares the lines.

Usage: compare_transcripts.py TRANSCRIPT LIBTENON [MODEL...]

The exit status is 77 if Python has no onnxruntime with a C library.
"""

import difflib
import importlib.util
import pathlib
import subprocess
import sys

SKIPPED = 77


def find_onnxruntime() -> pathlib.Path | None:
    """The C library in the onnxruntime package, if there is one."""
    spec = importlib.util.find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return None
    libraries = sorted(pathlib.Path(spec.origin).parent.glob("capi/libonnxruntime.so*"))
    return libraries[0] if libraries else None


def transcript(program: str, library: str, models: list[str]) -> list[str]:
    """What `program` prints when it calls `library`."""
    run = subprocess.run([program, library, *models], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def main(arguments: list[str]) -> int:
    program, tenon, *models = arguments
    onnxruntime = find_onnxruntime()
    if onnxruntime is None:
        print("skipped: Python has no onnxruntime with a C library")
        return SKIPPED
    expected = transcript(program, str(onnxruntime), models)
    got = transcript(program, tenon, models)
    differences = list(
        difflib.unified_diff(expected, got, "onnxruntime", "tenon", lineterm="", n=1)
    )
    print("\n".join(differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
