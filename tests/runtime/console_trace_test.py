"""PR-17: without files, ending the profile prints the events to the console.

Usage: console_trace_test.py DIGITS_FOLDER COMMAND...

COMMAND is profiled_run and, before it, the program that runs it. Uses only the standard library.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

RUNS = 2
KEYS = ["cat", "pid", "tid", "dur", "ts", "ph", "name", "args"]
# The nodes of the model except Reshape, which moves nothing and has no step.
OPERATORS = ["Conv", "Relu", "MaxPool", "Gemm", "Relu", "Gemm", "Softmax"]
# The results of onnx.reference for the samples 0 to 9; the model misses one of them.
READ = [0, 1, 2, 3, 4, 3, 6, 7, 8, 9]
folder, command = pathlib.Path(sys.argv[1]), sys.argv[2:]


def pixels(path: pathlib.Path) -> bytes:
    """The floats in [0, 1] of a grey 8 x 8 PNG of 8 bits whose rows have no filter."""
    content, position, compressed = path.read_bytes(), 8, b""
    while position < len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind == b"IDAT":
            compressed += content[position + 8 : position + 8 + length]
        position += length + 12
    rows = zlib.decompress(compressed)
    grey = [value for y in range(8) for value in rows[9 * y + 1 : 9 * y + 9]]
    return struct.pack("<64f", *(value / 255 for value in grey))


def run(digit: int) -> list[str]:
    """The output of a profiled run with the sample of a digit."""
    with tempfile.TemporaryDirectory() as made:
        picture = pathlib.Path(made) / "picture"
        picture.write_bytes(pixels(folder / "samples" / f"{digit}.png"))
        model = folder.resolve() / "digits.onnx"
        done = subprocess.run(
            [*command, model, picture], capture_output=True, text=True, cwd=made, check=False
        )
        assert done.returncode == 0, done.stderr
        assert [path.name for path in pathlib.Path(made).iterdir()] == ["picture"]
    return done.stdout.splitlines()


class ConsoleTraceTest(unittest.TestCase):
    """PR-17"""

    def setUp(self):
        self.lines = run(3)
        self.events = [json.loads(line) for line in self.lines if line.startswith('{"cat"')]

    def test_the_end_prints_one_event_a_line(self):
        begin = self.lines.index("before the end")
        end = self.lines.index("after the end ''")
        self.assertEqual(self.lines[:begin], ["digit 3"] * RUNS)
        self.assertEqual(end - begin - 1, len(self.events))
        self.assertEqual(self.lines[end + 1 :], [])
        for event in self.events:
            self.assertEqual(list(event), KEYS)
            self.assertEqual(event["ph"], "X")
        starts = [event["ts"] for event in self.events]
        self.assertEqual(starts, sorted(starts))

    def test_every_node_of_every_run_is_there(self):
        nodes = [event for event in self.events if event["name"].endswith("_kernel_time")]
        self.assertEqual([node["args"]["op_name"] for node in nodes], OPERATORS * RUNS)
        self.assertEqual({node["cat"] for node in nodes}, {"Node"})
        self.assertEqual({node["args"]["provider"] for node in nodes}, {"CPUExecutionProvider"})
        names = [event["name"] for event in self.events if event["cat"] == "Session"]
        self.assertEqual(names.count("model_run"), RUNS)
        self.assertEqual(names.count("session_initialization"), 1)
        self.assertEqual(names.count("SequentialExecutor::Execute"), RUNS)

    def test_profiled_runs_read_digits(self):
        for digit, read in enumerate(READ):
            self.assertEqual(run(digit)[:RUNS], [f"digit {read}"] * RUNS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
