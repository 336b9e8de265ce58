"""Checks that specifications and tests belong together.

The documents of docs/spec define requirements: list items that begin with an id in bold, such as
**PE-9**. Every id that a file names must exist. Each requirement is named by a test, that is a file
below tests/, or has an item "Not tested: <reason>" below it, but never both. Ranges count, written
PE-83 to PE-95 or PE-83..95. Prints what breaks a rule, and exits with status 1 if anything does.

Usage: check_spec.py [--missing] [--summary] [ROOT]
"""

import argparse
import pathlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

SPEC = "docs/spec"
TESTS = "tests"
# The folders whose files may name requirements.
FOLDERS = (
    *("src", "include", "cli", "python", "web", "plugins", "examples"),
    *("tests", "bench", "fuzz", "scripts", "cmake", "docs"),
)
SUFFIXES = {
    *(".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".inc"),
    *(".js", ".mjs", ".ts", ".py", ".pyi", ".cmake", ".toml", ".txt", ".md"),
}
SKIPPED = {"node_modules", "__pycache__", "build", "dist"}

# Two capitals that are not the end of a longer word: UTF-8, AVX-512 and LRN-13 are not ids.
ID = r"(?<![\w-])([A-Z]{2})-(\d+[a-z]?)(?!\w)"
MENTION = re.compile(ID + r"(?:(?: to \1-|\.\.(?:\1-)?)(\d+)(?!\w))?")
REQUIREMENT = re.compile(r"- \*\*([A-Z]{2}-\d+[a-z]?)\*\*(?: |$)")
REASON = re.compile(r"\s*- Not tested:(.*)")
FENCE = "```"


@dataclass
class Requirement:
    """A requirement, and the tests that name it."""

    name: str
    where: str  # file:line
    reason: str | None = None
    tests: list[str] = field(default_factory=list)  # file:line of those that name it


@dataclass
class Specification:
    """The requirements of each document, by its name, and the errors in the documents."""

    documents: dict[str, list[Requirement]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def by_name(self) -> dict[str, Requirement]:
        """Every requirement by its id."""
        return {each.name: each for known in self.documents.values() for each in known}


def read_document(text: str, path: str) -> tuple[list[Requirement], list[str]]:
    """The requirements of a document, and reasons that belong to no requirement or are empty."""
    requirements: list[Requirement] = []
    problems: list[str] = []
    is_within = False  # whether the line belongs to the last requirement
    is_reason = False  # whether it belongs to its reason
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{path}:{number}"
        is_code ^= line.lstrip().startswith(FENCE)
        if is_code:
            continue
        if found := REQUIREMENT.match(line):
            requirements.append(Requirement(found.group(1), where))
        if line:
            is_within = found is not None or (is_within and line.startswith(" "))
            is_reason = is_reason and line.startswith("    ")
        if reason := REASON.match(line):
            if not is_within:
                problems.append(f"{where}: 'Not tested' is not below a requirement")
            elif requirements[-1].reason is not None:
                problems.append(f"{where}: {requirements[-1].name} has two reasons")
            else:
                requirements[-1].reason = reason.group(1).strip()
                is_reason = True
                if not requirements[-1].reason:
                    problems.append(f"{where}: {requirements[-1].name} has an empty reason")
        elif is_reason:
            requirements[-1].reason = f"{requirements[-1].reason} {line.strip()}".strip()
    return requirements, problems


def read_specification(root: pathlib.Path) -> Specification:
    """All documents; a problem for each id that is defined twice. The first one is kept."""
    specification = Specification()
    first: dict[str, Requirement] = {}
    for page in sorted((root / SPEC).glob("*.md")):
        path = page.relative_to(root).as_posix()
        requirements, problems = read_document(page.read_text(encoding="utf-8"), path)
        specification.problems += problems
        for each in requirements:
            known = first.setdefault(each.name, each)
            if known is each:
                specification.documents.setdefault(page.stem, []).append(each)
            else:
                problem = f"{each.where}: {each.name} is defined at {known.where} already"
                specification.problems.append(problem)
    return specification


def mentions(line: str) -> Iterator[str]:
    """The ids that a line names, including those within ranges."""
    for prefix, first, last in MENTION.findall(line):
        yield f"{prefix}-{first}"
        if last:
            start = int(first.rstrip("abcdefghijklmnopqrstuvwxyz"))
            yield from (f"{prefix}-{number}" for number in range(start + 1, int(last)))
            yield f"{prefix}-{last}"


def sources(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """The files of the project that may name requirements, in order."""
    yield from sorted(root.glob("*.md"))
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            within = file.relative_to(root).parts
            if file.suffix in SUFFIXES and not SKIPPED.intersection(within) and file.is_file():
                yield file


def note_mentions(specification: Specification, root: pathlib.Path) -> Iterator[str]:
    """Records the tests of each requirement. Returns a problem for each id that no document has."""
    known = specification.by_name()
    for file in sources(root):
        path = file.relative_to(root)
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            for name in mentions(line):
                where = f"{path.as_posix()}:{number}"
                if name not in known:
                    yield f"{where}: no document of {SPEC} has {name}"
                elif path.parts[0] == TESTS:
                    known[name].tests.append(where)


def check_tests(specification: Specification) -> Iterator[str]:
    """A problem for each requirement with neither test nor reason, or with both."""
    for requirement in (each for known in specification.documents.values() for each in known):
        where, name = requirement.where, requirement.name
        if requirement.reason is None and not requirement.tests:
            yield f"{where}: no test names {name}, and no 'Not tested' says why"
        elif requirement.reason is not None and requirement.tests:
            yield f"{where}: {name} is 'Not tested', but {requirement.tests[0]} names it"


def check_tree(root: pathlib.Path) -> tuple[Specification, list[str]]:
    """The specification of a tree, and every broken rule as 'file:line: what'."""
    root = root.resolve()
    specification = read_specification(root)
    problems = [*specification.problems, *note_mentions(specification, root)]
    return specification, [*problems, *check_tests(specification)]


def summary(specification: Specification) -> Iterator[str]:
    """A line for each document."""
    for document, requirements in specification.documents.items():
        tested = sum(bool(each.tests) for each in requirements)
        excused = sum(each.reason is not None for each in requirements)
        yield f"{document}: {tested} of {len(requirements)} tested, {excused} with a reason why not"


def missing(specification: Specification) -> Iterator[str]:
    """A line for each requirement that no test names, with the reason."""
    for requirements in specification.documents.values():
        for each in requirements:
            if not each.tests:
                yield f"{each.where}: {each.name}: {each.reason or 'no reason'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path, metavar="ROOT")
    parser.add_argument("--missing", action="store_true", help="list requirements without a test")
    parser.add_argument("--summary", action="store_true", help="count them, by document")
    arguments = parser.parse_args()
    default = pathlib.Path(__file__).resolve().parent.parent
    specification, problems = check_tree(arguments.root or default)
    wanted = [
        *(missing(specification) if arguments.missing else ()),
        *(summary(specification) if arguments.summary else ()),
    ]
    for line in (*wanted, *problems):
        print(line)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
