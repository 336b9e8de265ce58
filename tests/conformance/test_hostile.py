"""Hostile values end in an error that names the node, or in what the standard defines."""

import pathlib
import subprocess
import sys

WORKER = pathlib.Path(__file__).with_name("hostile.py")
TIMEOUT_S = 900


def test_hostile_values_end_in_errors() -> None:
    wrong, first = [], 0
    while True:
        done = subprocess.run(
            [sys.executable, str(WORKER), str(first)],
            stdout=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        starts = [line.split(" ", 2) for line in done.stdout.splitlines() if line[:5] == "start"]
        ends = [line[4:] for line in done.stdout.splitlines() if line[:3] == "end"]
        for (_, _, name), outcome in zip(starts, ends, strict=False):
            if outcome not in ("", "runs"):
                wrong.append(f"{name}: {outcome}")
        if len(ends) == len(starts):
            assert done.returncode == 0, "the worker failed between two cases"
            break
        _, position, name = starts[-1]
        wrong.append(f"{name}: the process died with status {done.returncode}")
        first = int(position) + 1
    assert not wrong, "\n".join(wrong)
