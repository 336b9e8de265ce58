"""Runs an application written for onnxruntime on Tenon, without a change to it.

magika (https://pypi.org/project/magika) detects the content type of a file with its own ONNX model.
It says `import onnxruntime`; tenon.as_onnxruntime.install() makes that import load Tenon.

Usage: magika_on_tenon.py [FILE...]     default: some files of this repository
"""

import pathlib
import sys
import time

try:
    import tenon.as_onnxruntime
except ImportError as error:
    sys.exit(f"magika_on_tenon.py: cannot import tenon ({error}). Build it first: ./dev demo does.")

tenon.as_onnxruntime.install()

try:
    import magika  # after install(), so that its `import onnxruntime` loads Tenon
except ImportError as error:
    sys.exit(f"magika_on_tenon.py: cannot import magika ({error}). Try: pip install magika")

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = (
    "README.md",
    "CMakeLists.txt",
    "CMakePresets.json",
    "dev",
    "src/base/status.cpp",
    "bench/compare.py",
    "examples/digits/digits.onnx",
    "examples/digits/samples/7.png",
)


def main() -> None:
    paths = [pathlib.Path(name) for name in sys.argv[1:]] or [ROOT / name for name in FILES]
    start = time.perf_counter()
    identifier = magika.Magika()
    created_ms = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    results = identifier.identify_paths(paths)
    identified_ms = (time.perf_counter() - start) * 1e3
    for path, result in zip(paths, results, strict=True):
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if result.ok:
            print(f"{name!s:32} {result.output.description} ({result.score:.1%})")
        else:
            print(f"{name!s:32} {result.status}")
    print(
        f"magika {magika.__version__} on tenon {tenon.__version__}: "
        f"ready in {created_ms:.1f} ms, {len(paths)} files in {identified_ms:.1f} ms"
    )


if __name__ == "__main__":
    main()
