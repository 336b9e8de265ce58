"""Ranges for NVIDIA's tools. Requirements: partial-execution."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")

TOOL = pathlib.Path(__file__).parent / "nvtx_tool.c"
PROGRAM = """
import sys
import numpy as np
import onnx
import tenon
from onnx import helper

def tensor(name):
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2])

nodes = [
    helper.make_node("Neg", ["x"], ["a"], "first"),
    helper.make_node("Abs", ["a"], ["b"], "second"),
    helper.make_node("Exp", ["b"], ["c"], "third", doc_string="Backward pass"),
    helper.make_node("Gather", ["c", "index"], ["y"], "fourth", doc_string="Backward pass"),
]
index = helper.make_tensor_value_info("index", onnx.TensorProto.INT64, [1])
if sys.argv[1] == "backward":
    for node in nodes:
        node.doc_string = "Backward pass"
graph = helper.make_graph(nodes, "g", [tensor("x"), index], [helper.make_tensor_value_info(
    "y", onnx.TensorProto.FLOAT, None)])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
options = tenon.SessionOptions()
options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
session = tenon.InferenceSession(model.SerializeToString(), options)
run = tenon.RunOptions()
run.logid = sys.argv[3] if len(sys.argv) > 3 else ""
at = 9 if sys.argv[2] == "fails" else 1
try:
    session.run(None, {"x": np.ones(2, np.float32), "index": np.array([at])}, run)
except Exception:
    assert at == 9
else:
    assert at == 1
"""
NODES = ["first", "second", "third", "fourth"]


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    library = tmp_path_factory.mktemp("nvtx") / "libtool.so"
    subprocess.run(["cc", "-shared", "-fPIC", str(TOOL), "-o", str(library)], check=True)
    return library


def ranges_of(tool, folder, *arguments):
    """What the tool hears while the program runs."""
    heard = folder / "heard"
    settings = {"NVTX_INJECTION64_PATH": str(tool), "NVTX_TOOL_FILE": str(heard)}
    subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], check=True, env={**os.environ, **settings}
    )
    return heard.read_text().splitlines()


def node(op_type, index):
    return [f"push ffffff00 {op_type}.{index}({NODES[index]})", "pop"]


def test_ranges_of_a_run(tool, tmp_path):
    """TX-68, TX-69, TX-71"""
    assert ranges_of(tool, tmp_path, "both", "works") == [
        "start ffffffff Batch- Forward",
        *node("Neg", 0),
        *node("Abs", 1),
        "end 1",
        "start ff000000 Batch- Backward",
        *node("Exp", 2),
        *node("Gather", 3),
        "end 2",
    ]


def test_the_runs_tag_is_in_the_names(tool, tmp_path):
    """TX-68"""
    heard = ranges_of(tool, tmp_path, "both", "works", "17")
    assert [line for line in heard if line.startswith("start")] == [
        "start ffffffff Batch-17 Forward",
        "start ff000000 Batch-17 Backward",
    ]


def test_ranges_come_in_pairs(tool, tmp_path):
    """TX-69, TX-70: no node begins a range; both are there at the end."""
    assert ranges_of(tool, tmp_path, "backward", "works")[-4:] == [
        "start ffffffff Batch- Forward",
        "end 1",
        "start ff000000 Batch- Backward",
        "end 2",
    ]


def test_ranges_come_in_pairs_after_a_failure(tool, tmp_path):
    """TX-70"""
    heard = ranges_of(tool, tmp_path, "both", "fails")
    assert heard[-2:] == ["pop", "end 2"]
    assert sum(line.startswith("push") for line in heard) == heard.count("pop") == 4


def test_a_tool_that_is_not_there_changes_nothing(tmp_path):
    settings = {"NVTX_INJECTION64_PATH": str(tmp_path / "absent.so")}
    command = [sys.executable, "-c", PROGRAM, "both", "works"]
    subprocess.run(command, check=True, env={**os.environ, **settings})
