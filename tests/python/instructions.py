"""How many instructions calls execute, as valgrind's callgrind counts them.

Unlike times they do not depend on what else the machine does. A program that is run under callgrind
makes what is measured, and counts calls of it with a Recorder.
"""

import ctypes
import gc
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

SOURCE = pathlib.Path(__file__).with_name("callgrind_requests.c")
HEADER = pathlib.Path("/usr/include/valgrind/callgrind.h")


def lacking() -> str:
    """What is missing for counting, if anything."""
    if shutil.which("valgrind") is None or not HEADER.exists():
        return "needs valgrind"
    return "" if shutil.which("cc") else "needs a C compiler"


def measured(program: str, folder: pathlib.Path) -> dict[str, float]:
    """Instructions of one call each, by the names that the program gave its measures.

    `program` is a file beside this one; it gets `folder` as its argument.
    """
    library = folder / "requests.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(library)], check=True)
    output = folder / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
    path = str(pathlib.Path(__file__).with_name(program))
    subprocess.run(
        [*valgrind, f"--callgrind-out-file={output}", sys.executable, path, str(folder)],
        check=True,
        capture_output=True,
    )
    counts: dict[str, float] = {}
    for path in folder.glob("callgrind.*"):
        text = path.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (\w+) (\d+)$", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if name and total:
            one = int(total[1]) / int(name[2])
            counts[name[1]] = min(one, counts.get(name[1], one))
    return {name: counts[name] - counts["nothing"] for name in counts if name != "nothing"}


class Recorder:
    """Counts calls in a program that `measured` runs.

    Garbage is not collected meanwhile: that would cost as much as a hundred runs, and comes by
    chance.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._requests = ctypes.CDLL(str(folder / "requests.so"))
        gc.disable()
        self.measure("nothing", lambda: None)

    def measure(
        self, name: str, function: Callable[[], Any], calls: int = 100, warmup: int = 10
    ) -> None:
        """The least of some counts: a thread of a library that wakes up meanwhile counts too."""
        for _ in range(warmup):
            function()
        for _ in range(5 if calls > 1 else 2):
            self._requests.Begin()
            for _ in range(calls):
                function()
            self._requests.End(f"{name} {calls}".encode())
