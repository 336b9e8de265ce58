"""How many instructions calls execute, as valgrind's callgrind counts them.

Unlike times they do not depend on what else the machine does. As a program, under callgrind, it
counts those of some calls, which is how `measured` calls it.
"""

from __future__ import annotations

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


def measured(model: bytes, folder: pathlib.Path) -> dict[str, float]:
    """Instructions of one call each, by the names of the measures; `model` has x and y, 4 floats.

    Each is the least of some counts: a thread of the library that wakes up meanwhile counts too.
    """
    (folder / "model.onnx").write_bytes(model)
    library = folder / "requests.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(library)], check=True)
    output = folder / "callgrind"
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
    subprocess.run(
        [*valgrind, f"--callgrind-out-file={output}", sys.executable, __file__, str(folder)],
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


def count(folder: pathlib.Path) -> None:
    """Makes what is measured, and calls it."""
    import numpy as np  # noqa: PLC0415
    import tenon  # noqa: PLC0415

    requests = ctypes.CDLL(str(folder / "requests.so"))

    def measure(name: str, function: Callable[[], Any], calls: int = 100) -> None:
        for _ in range(10):
            function()
        for _ in range(5):
            requests.Begin()
            for _ in range(calls):
                function()
            requests.End(f"{name} {calls}".encode())

    gc.disable()  # a collection would cost as much as a hundred runs, and comes by chance
    model, x = str(folder / "model.onnx"), np.zeros(4, np.float32)
    providers = ["CPUExecutionProvider"]
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 1  # those that wait do so in instructions
    ours = tenon.InferenceSession(model, options, providers)
    binding = ours.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    measure("nothing", lambda: None)
    measure("run", lambda: ours.run(None, {"x": x}))
    measure("bound_run", lambda: ours.run_with_iobinding(binding))
    measure("session", lambda: tenon.InferenceSession(model, options, providers), 10)

    import onnxruntime  # noqa: PLC0415 - last: a thread of it works in the background

    their_options = onnxruntime.SessionOptions()
    their_options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(model, their_options, providers)
    measure("their_run", lambda: theirs.run(None, {"x": x}))


if __name__ == "__main__":
    count(pathlib.Path(sys.argv[1]))
