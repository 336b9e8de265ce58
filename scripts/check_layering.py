"""Checks which room includes which, and what no file may include.

The rooms of src/ form layers; docs/architecture.md draws them and ALLOWED below is that drawing as
data. Within a room no two files may include each other, not by way of others either; a header and
its source are one there. Folders outside src/ that users could have written (bindings, plugins,
examples) see include/ and themselves. Exits with status 1 after naming every line that breaks a
rule, and every circle.

Usage: check_layering.py [ROOT]
"""

import pathlib
import re
import sys
from collections.abc import Iterator

# Room of src/ -> other rooms that it may include; "include" stands for the public headers.
ALLOWED = {
    "base": set(),
    "tensor": {"base", "include"},
    "kernels": {"base"},
    "ir": {"tensor", "base"},
    "runtime": {"ir", "tensor", "base", "include"},
    "ops": {"runtime", "kernels", "ir", "tensor", "base"},
    "training": {"runtime", "ir", "tensor", "base", "include"},
    "capi": {"training", "ops", "runtime", "ir", "tensor", "base", "include"},
    "plugin": {"capi", "runtime", "ir", "tensor", "base", "include"},
    "webnn": {"capi", "ops", "runtime", "ir", "tensor", "base", "include"},
}

# The same for the folders of a room; "" stands for the files in the room itself.
ALLOWED_FOLDERS = {
    "ops": {
        "": {"framework", "conv", "elementwise", "fusion", "quantized"},
        "framework": set(),
        "attention": {"framework", "linear"},
        "control": {"framework"},
        "conv": {"framework"},
        "elementwise": {"framework"},
        "fusion": {"framework", "conv"},
        "generation": {"framework", "control"},
        "image": {"framework"},
        "linear": {"framework"},
        "ml": {"framework"},
        "quantized": {"framework", "conv", "linear"},
        "recurrent": {"framework", "linear", "quantized"},
        "reduction": {"framework"},
        "tensor": {"framework"},
        "text": {"framework"},
        "training": {"framework", "conv"},
    },
    "kernels": {
        "": set(),
        "conv": {"", "elementwise", "gemm"},
        "elementwise": {""},
        "gemm": {"", "elementwise"},
    },
    "capi": {
        "": {"session", "training", "graph", "env", "options", "value", "boundary"},
        "training": {"session", "env", "options", "value", "boundary"},
        "session": {"kernel", "graph", "env", "options", "value", "boundary"},
        "kernel": {"options", "value", "boundary"},
        "graph": {"options", "value", "boundary"},
        "env": {"options", "value", "boundary"},
        "options": {"value", "boundary"},
        "value": {"boundary"},
        "boundary": set(),
    },
}

# Folders that use only the public headers.
PUBLIC_FOLDERS = ("include", "cli", "python", "web", "plugins", "examples")
OTHER_FOLDERS = ("tests", "bench", "fuzz")

# Streams and locales cost start-up time, size and the WebAssembly build.
BANNED_HEADERS = {"iostream", "locale"}

# Only base uses threads, so that a build without threads replaces one folder.
THREAD_HOME = "base"
THREADS = re.compile(
    r"\bstd::(thread|jthread|async|future|promise|mutex|recursive_mutex|timed_mutex|shared_mutex"
    r"|shared_timed_mutex|condition_variable|condition_variable_any|call_once)\b"
)

# The library of the WebAssembly toolchain lacks them, and a native build would not notice.
WASM_FOLDERS = ("src", "web", "tests")
RANGES = re.compile(r"\bstd::(ranges|views)::")

SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def strip_comments(text: str) -> str:
    """The text with blank comments and the same line numbers. `//` in a string is not a comment."""

    def blank(match: re.Match) -> str:
        found = match.group()
        return found if found.startswith('"') else "\n" * found.count("\n")

    return COMMENT.sub(blank, text)


def owner_of(path: pathlib.Path, root: pathlib.Path) -> str | None:
    """The room of a file of src/, else its top folder; None for a file outside the project."""
    if not path.is_relative_to(root):
        return None
    parts = path.relative_to(root).parts
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else "src"
    return parts[0]


def find_header(file: pathlib.Path, header: str, root: pathlib.Path) -> pathlib.Path | None:
    """The header that `file` includes; None if it is no file of the project."""
    top = root / file.relative_to(root).parts[0]
    for folder in (file.parent, top, root / "include", root / "src"):
        candidate = (folder / header).resolve()
        if candidate.is_file():
            return candidate
    return None


def included_owner(file: pathlib.Path, header: str, root: pathlib.Path) -> str | None:
    """Who owns the header that `file` includes; None for a library's."""
    found = find_header(file, header, root)
    if found is not None:
        return owner_of(found, root)
    first = header.partition("/")[0]
    return first if first in ALLOWED else None  # a generated header of that room


def folder_of(path: pathlib.Path, root: pathlib.Path) -> str:
    """The folder of a room that has the file; "" if the file lies in the room itself."""
    parts = path.relative_to(root / "src").parts
    return parts[1] if len(parts) > 2 else ""


def check_folders(file: pathlib.Path, header: str, root: pathlib.Path) -> str | None:
    """The error of an include within a room, if there is one."""
    room = owner_of(file, root) or ""
    target = root / "src" / header
    if room not in ALLOWED_FOLDERS or not target.is_file():
        return None
    mine, other = folder_of(file, root), folder_of(target, root)
    allowed = ALLOWED_FOLDERS[room].get(mine)
    if allowed is None:
        return f"'{mine}' is no folder of ALLOWED_FOLDERS in scripts/check_layering.py"
    if other != mine and other not in allowed:
        return f"{room}/{mine} may not include {room}/{other} ('{header}')"
    return None


def check_file(file: pathlib.Path, root: pathlib.Path) -> Iterator[str]:
    me = owner_of(file, root) or ""
    in_source = file.is_relative_to(root / "src")
    in_wasm = file.relative_to(root).parts[0] in WASM_FOLDERS
    if in_source and me not in ALLOWED:
        yield f"{file.relative_to(root)}: '{me}' is no room of ALLOWED in scripts/check_layering.py"
        return
    lines = strip_comments(file.read_text(encoding="utf-8")).splitlines()
    for number, line in enumerate(lines, start=1):
        where = f"{file.relative_to(root)}:{number}"
        if in_source and me != THREAD_HOME and (found := THREADS.search(line)):
            yield f"{where}: std::{found.group(1)} outside src/{THREAD_HOME}"
        if in_wasm and (found := RANGES.search(line)):
            yield f"{where}: std::{found.group(1)} does not compile for WebAssembly"
        include = INCLUDE.match(line)
        if not include:
            continue
        header = include.group(1)
        if header in BANNED_HEADERS:
            yield f"{where}: <{header}> is banned"
        owner = included_owner(file, header, root)
        if in_source and owner == me and (problem := check_folders(file, header, root)):
            yield f"{where}: {problem}"
        if owner is None or owner == me:
            continue
        if in_source and owner not in ALLOWED[me]:
            yield f"{where}: {me} may not include {owner} ('{header}')"
        elif me in PUBLIC_FOLDERS and owner != "include":
            yield f"{where}: {me} sees include/ alone, not {owner} ('{header}')"


def unit_of(file: pathlib.Path) -> pathlib.Path:
    """What stands for a header and its source: x for x.h and x.cpp."""
    return file.with_suffix("") if file.suffix in SUFFIXES else file


def includes_in_room(room: pathlib.Path, root: pathlib.Path) -> dict[pathlib.Path, set]:
    """For each unit of a room the other units of the room that it includes."""
    graph: dict[pathlib.Path, set] = {}
    for file in sorted(room.rglob("*")):
        if file.suffix not in SUFFIXES and file.suffix != ".inc":
            continue
        included = graph.setdefault(unit_of(file), set())
        for line in strip_comments(file.read_text(encoding="utf-8")).splitlines():
            include = INCLUDE.match(line)
            header = find_header(file, include.group(1), root) if include else None
            if header is not None and header.is_relative_to(room):
                included.add(unit_of(header))
        included.discard(unit_of(file))
    return graph


def circles(graph: dict[pathlib.Path, set]) -> list[list[pathlib.Path]]:
    """The groups of nodes that reach each other, each sorted (Tarjan's algorithm)."""
    found: list[list[pathlib.Path]] = []
    order: dict[pathlib.Path, int] = {}
    lowest: dict[pathlib.Path, int] = {}
    open_nodes: list[pathlib.Path] = []

    def visit(node: pathlib.Path) -> None:
        order[node] = lowest[node] = len(order)
        open_nodes.append(node)
        for reached in sorted(graph.get(node, ())):
            if reached not in order:
                visit(reached)
                lowest[node] = min(lowest[node], lowest[reached])
            elif reached in open_nodes:
                lowest[node] = min(lowest[node], order[reached])
        if lowest[node] == order[node]:
            start = open_nodes.index(node)
            if len(open_nodes) - start > 1:
                found.append(sorted(open_nodes[start:]))
            del open_nodes[start:]

    for node in graph:
        if node not in order:
            visit(node)
    return found


def check_circles(root: pathlib.Path) -> Iterator[str]:
    for room in sorted(path for path in (root / "src").glob("*") if path.is_dir()):
        for circle in circles(includes_in_room(room, root)):
            names = ", ".join(str(unit.relative_to(root)) for unit in circle)
            yield f"{names}: include each other"


def check_tree(root: pathlib.Path) -> list[str]:
    """Every broken rule: 'file:line: what', and for a circle 'file, file: what'."""
    root = root.resolve()
    problems = [
        problem
        for folder in ("src", *PUBLIC_FOLDERS, *OTHER_FOLDERS)
        for file in sorted((root / folder).rglob("*"))
        if file.suffix in SUFFIXES and file.is_file()
        for problem in check_file(file, root)
    ]
    return problems + list(check_circles(root))


def main() -> int:
    default = pathlib.Path(__file__).resolve().parent.parent
    problems = check_tree(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
