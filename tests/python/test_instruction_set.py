"""Sessions that use one instruction set on every machine."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tenon

SITE = next(path for path in sys.path if path.endswith("site-packages"))
PACKAGE = str(Path(tenon.__file__).parents[1])

# Prints a hash of the results of products, sums and functions for each size.
PROGRAM = f"""
import hashlib, sys
sys.path += [{SITE!r}, {PACKAGE!r}]
import numpy as np, tenon
from onnx import TensorProto, helper

options = tenon.SessionOptions()
if sys.argv[1] != "-":
    options.add_session_config_entry("tenon.instruction_set", sys.argv[1])
generator = np.random.default_rng(0)
nodes = [
    helper.make_node("Gemm", ["a", "b"], ["c"], transB=1),
    helper.make_node("Softmax", ["c"], ["d"]),
    helper.make_node("ReduceSum", ["c"], ["e"], keepdims=0),
    helper.make_node("Tanh", ["c"], ["f"]),
    helper.make_node("LayerNormalization", ["c", "s"], ["g"]),
]
graph = helper.make_graph(
    nodes,
    "graph",
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "abs"],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "cdefg"],
)
opsets = [helper.make_opsetid("", 17)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
session = tenon.InferenceSession(model, options)
# Tiles of five rows keep several sums, and an odd depth leaves a rest.
for m, k, n in ((1, 257, 512), (5, 257, 8), (5, 257, 257), (64, 300, 100)):
    feeds = {{
        "a": generator.standard_normal((m, k)).astype(np.float32),
        "b": generator.standard_normal((n, k)).astype(np.float32),
        "s": np.ones(n, np.float32),
    }}
    outputs = session.run(None, feeds)
    print(hashlib.sha256(b"".join(value.tobytes() for value in outputs)).hexdigest())
"""


def results(*arguments: str, machine: tuple[str, ...] = ()) -> str:
    command = [*machine, str(Path(sys.executable).resolve()), "-c", PROGRAM, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout


def instruction_sets() -> list[str]:
    """Those of this machine, from the error for one that no machine has."""
    options = tenon.SessionOptions()
    options.add_session_config_entry("tenon.instruction_set", "none")
    with pytest.raises(Exception, match="expected one that this machine has") as error:
        tenon.InferenceSession("examples/digits/digits.onnx", options)
    return str(error.value).split("has, ")[1].split(", got 'none'")[0].replace("'", "").split(", ")


# DET-2
def test_an_instruction_set_fixes_the_bits() -> None:
    names = instruction_sets()
    assert names[0] == "baseline"
    fixed = {name: results(name) for name in names}
    assert results("-") == fixed[names[-1]]  # the best one, unless another is asked for
    if "avx2" in names:
        assert fixed["baseline"] != fixed["avx2"]  # which multiplies and adds without rounding


# DET-2
@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="needs qemu-user")
@pytest.mark.parametrize("vendor", ["GenuineIntel", "AuthenticAMD"])
def test_another_processor_gives_the_same_bits(vendor: str) -> None:
    if "avx2" not in instruction_sets():
        pytest.skip("this machine has no AVX2")
    machine = ("qemu-x86_64", "-cpu", f"Haswell,vendor={vendor}")
    assert results("avx2", machine=machine) == results("avx2")


def test_the_first_session_decides() -> None:
    names = instruction_sets()
    session = tenon.InferenceSession("examples/digits/digits.onnx")  # uses the best one
    assert session.run(None, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    options = tenon.SessionOptions()
    options.add_session_config_entry("tenon.instruction_set", names[-1])
    tenon.InferenceSession("examples/digits/digits.onnx", options)
    if len(names) > 1:
        options.add_session_config_entry("tenon.instruction_set", names[0])
        with pytest.raises(Exception, match=f"use {names[-1]} since the first") as error:
            tenon.InferenceSession("examples/digits/digits.onnx", options)
        assert "got 'baseline'" in str(error.value)
