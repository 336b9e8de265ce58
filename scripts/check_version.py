"""Checks that the version in CMakeLists.txt is the version in the rest of the project.

The library, the plugins and the wheel take it from CMakeLists.txt. web/package.json,
web/common/version.ts, the first section of CHANGELOG.md, and the package tenon-onnxruntime, twice,
repeat it. With --release the
changelog must be ready for a release: the section has a date, and there is no text under
"Unreleased".

Usage: check_version.py [--release] [ROOT]
"""

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Iterator

VERSION = re.compile(r"^project\(tenon VERSION (\d+\.\d+\.\d+)", re.MULTILINE)
SECTION = re.compile(r"^## \[(?P<name>[^]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
UNRELEASED = "Unreleased"
WEB_VERSION = "web/common/version.ts"
SECOND_PACKAGE = "python/tenon-onnxruntime/pyproject.toml"


def version_of(root: pathlib.Path) -> str:
    """The project's version."""
    found = VERSION.search((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    if not found:
        sys.exit("CMakeLists.txt: expected project(tenon VERSION x.y.z")
    return found.group(1)


def errors(root: pathlib.Path, is_release: bool) -> Iterator[str]:
    version = version_of(root)
    package = json.loads((root / "web" / "package.json").read_text(encoding="utf-8"))["version"]
    if package != version:
        yield f"web/package.json: expected version {version}, got {package}"
    line = f"export const TENON_VERSION = '{version}';"
    if line not in (root / WEB_VERSION).read_text(encoding="utf-8").splitlines():
        yield f"{WEB_VERSION}: expected the line {line}"
    second = (root / SECOND_PACKAGE).read_text(encoding="utf-8")
    for line in (f'version = "{version}"', f'dependencies = ["tenon=={version}"]'):
        if line not in second.splitlines():
            yield f"{SECOND_PACKAGE}: expected the line {line}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = list(SECTION.finditer(changelog))
    released = [section for section in sections if section["name"] != UNRELEASED]
    if not released or released[0]["name"] != version:
        got = released[0]["name"] if released else "none"
        yield f"CHANGELOG.md: expected the first section of a version to be {version}, got {got}"
    elif is_release and not released[0]["date"]:
        yield f"CHANGELOG.md: expected '## [{version}] - YYYY-MM-DD'"
    if is_release and sections and sections[0]["name"] == UNRELEASED:
        end = sections[1].start() if len(sections) > 1 else len(changelog)
        if changelog[sections[0].end() : end].strip():
            yield f"CHANGELOG.md: the text under {UNRELEASED} belongs to {version}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--release", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    root = arguments.root or pathlib.Path(__file__).resolve().parents[1]
    found = list(errors(root, arguments.release))
    print("\n".join(found), end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
