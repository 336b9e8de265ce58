"""check_version.py finds every version that differs, and a changelog that is not ready."""

import pathlib

import pytest
from check_version import errors

TITLE = "# Changelog\n\nWords.\n\n"
# web's version, sections of the changelog, whether it is a release -> what is wrong, in words
CASES = {
    "while one works": (
        "1.2.3",
        "## [Unreleased]\n\n- new\n\n## [1.2.3] - 2026-01-02\n\n- old\n",
        0,
        [],
    ),
    "before the first release": ("1.2.3", "## [1.2.3]\n\n- all\n", 0, []),
    "released": ("1.2.3", "## [1.2.3] - 2026-01-02\n\n- all\n", 1, []),
    "released, with an empty section": (
        "1.2.3",
        "## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n",
        1,
        [],
    ),
    "another package": ("1.2.2", "## [1.2.3]\n", 0, ["web/package.json"]),
    "another changelog": ("1.2.3", "## [1.2.2] - 2026-01-02\n", 0, ["got 1.2.2"]),
    "no section": ("1.2.3", "## [Unreleased]\n", 0, ["got none"]),
    "no date": ("1.2.3", "## [1.2.3]\n", 1, ["YYYY-MM-DD"]),
    "something waits": (
        "1.2.3",
        "## [Unreleased]\n\n- new\n\n## [1.2.3] - 2026-01-02\n",
        1,
        ["belongs"],
    ),
    "all at once": (
        "0",
        "## [Unreleased]\n\n- new\n",
        1,
        ["web/package.json", "got none", "belongs"],
    ),
}


def write_second_package(root: pathlib.Path, version: str, needs: str) -> None:
    folder = root / "python" / "tenon-onnxruntime"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[project]\nversion = "{version}"\ndependencies = ["tenon=={needs}"]\n'
    )


def write_web_package(root: pathlib.Path, version: str, reported: str) -> None:
    (root / "web" / "common").mkdir(parents=True)
    (root / "web" / "package.json").write_text(f'{{"version": "{version}"}}')
    (root / "web" / "common" / "version.ts").write_text(
        f"export const TENON_VERSION = '{reported}';\n"
    )


@pytest.mark.parametrize("web, sections, is_release, expected", CASES.values(), ids=CASES.keys())
def test_versions(tmp_path: pathlib.Path, web, sections, is_release, expected):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(tenon VERSION 1.2.3 LANGUAGES C)\n"
    )
    write_web_package(tmp_path, web, "1.2.3")
    write_second_package(tmp_path, "1.2.3", "1.2.3")
    (tmp_path / "CHANGELOG.md").write_text(TITLE + sections)
    found = list(errors(tmp_path, bool(is_release)))
    assert len(found) == len(expected)
    for words, error in zip(expected, found, strict=True):
        assert words in error


@pytest.mark.parametrize(
    "version, needs, missing",
    [("1.2.2", "1.2.3", 'version = "1.2.3"'), ("1.2.3", "1.2.2", '"tenon==1.2.3"')],
)
def test_the_second_package_has_the_version_twice(
    tmp_path: pathlib.Path, version: str, needs: str, missing: str
) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(tenon VERSION 1.2.3 LANGUAGES C)\n")
    write_web_package(tmp_path, "1.2.3", "1.2.3")
    (tmp_path / "CHANGELOG.md").write_text(TITLE + "## [1.2.3]\n")
    write_second_package(tmp_path, version, needs)
    (error,) = errors(tmp_path, False)
    assert missing in error


def test_the_web_package_reports_its_version(tmp_path: pathlib.Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(tenon VERSION 1.2.3 LANGUAGES C)\n")
    write_web_package(tmp_path, "1.2.3", "1.2.2")
    (tmp_path / "CHANGELOG.md").write_text(TITLE + "## [1.2.3]\n")
    write_second_package(tmp_path, "1.2.3", "1.2.3")
    (error,) = errors(tmp_path, False)
    assert "web/common/version.ts" in error
