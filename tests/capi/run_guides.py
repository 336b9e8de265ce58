"""Compiles and runs the C++ programs of the guides, from the root of the project.

Usage: run_guides.py COMPILER LIBRARY
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GUIDES = ["README.md", "docs/cpp.md"]


def main() -> int:
    compiler, library = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "guide.cpp", pathlib.Path(folder) / "guide"
        for guide in GUIDES:
            text = (ROOT / guide).read_text()
            blocks = re.findall(r"^```cpp\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
            if not blocks:
                print(f"{guide}: no program")
                return 1
            for number, block in enumerate(blocks, 1):
                source.write_text(block)
                warnings = ["-Wall", "-Wextra", "-Werror"]
                build = [compiler, "-std=c++20", *warnings, "-I", str(ROOT / "include")]
                rpath = f"-Wl,-rpath,{library.parent}"
                subprocess.run(
                    [*build, str(source), str(library), rpath, "-o", str(program)], check=True
                )
                subprocess.run([str(program)], cwd=ROOT, check=True)
                print(f"{guide}: program {number} ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
