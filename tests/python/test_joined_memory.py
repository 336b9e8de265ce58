"""Concatenations whose inputs are made where the output has their elements."""

import json

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

ROWS = 16  # floats, one aligned line of memory


def session(nodes, inputs, outputs, threads=2, profile=None):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return tenon.InferenceSession(model.SerializeToString(), options)


def concat(inputs, output, axis):
    return helper.make_node("Concat", inputs, [output], axis=axis)


def steps(*names_and_inputs):
    """A node that nothing is fused with for each (output, input): CumSum over axis 1, where the
    output is called b from the last column on."""
    return [
        helper.make_node("CumSum", [x, "one"], [output], reverse=int(output == "b"))
        for output, x in names_and_inputs
    ]


def cum(x):
    return np.cumsum(x, axis=1, dtype=np.float32)


def back(x):
    return cum(x[:, ::-1])[:, ::-1]


RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 4 * ROWS), dtype=np.float32)
ODD = RNG.standard_normal((3, 5), dtype=np.float32)


def cat(*parts, axis=0):
    return np.concatenate(parts, axis)


CASES = {
    "two parts": (
        [*steps(("a", "x"), ("b", "a")), concat(["b", "x"], "c", 0), *steps(("y", "c"))],
        ["y"],
        lambda x: [cum(cat(back(cum(x)), x))],
    ),
    "a part that is read later": (
        [
            *steps(("a", "x"), ("b", "a")),
            concat(["a", "b"], "c", 0),
            helper.make_node("Neg", ["a"], ["n"]),
            helper.make_node("CumSum", ["c", "one"], ["d"]),
            concat(["d", "n"], "y", 0),
        ],
        ["y"],
        lambda x: [cat(cum(cat(cum(x), back(cum(x)))), -cum(x))],
    ),
    "the same value twice": (
        [*steps(("a", "x")), concat(["a", "a"], "c", 0), *steps(("y", "c"))],
        ["y"],
        lambda x: [cum(cat(cum(x), cum(x)))],
    ),
    "in parts of parts": (
        [
            *steps(("a", "x"), ("b", "x")),
            concat(["a", "b"], "ab", 0),
            helper.make_node("Neg", ["x"], ["nx"]),
            *steps(("c", "nx")),
            concat(["ab", "c"], "abc", 0),
            helper.make_node("Neg", ["abc"], ["n"]),
            concat(["n", "x"], "d", 0),
            *steps(("y", "d")),
        ],
        ["y"],
        lambda x: [cum(cat(-cat(cum(x), back(x), cum(-x)), x))],
    ),
    "a fetched part": (
        [*steps(("a", "x"), ("b", "x")), concat(["a", "b"], "c", 0), *steps(("y", "c"))],
        ["y", "a"],
        lambda x: [cum(cat(cum(x), back(x))), cum(x)],
    ),
    "a fetched whole": (
        [*steps(("a", "x"), ("b", "x")), concat(["a", "b"], "y", 0)],
        ["y"],
        lambda x: [cat(cum(x), back(x))],
    ),
    "a whole that is fetched after work in its place": (
        [
            *steps(("a", "x"), ("b", "x")),
            concat(["a", "b"], "c", 0),
            helper.make_node("Neg", ["c"], ["y"]),
        ],
        ["y"],
        lambda x: [-cat(cum(x), back(x))],
    ),
    "parts with work in their place": (
        [
            *steps(("a", "x"), ("b", "x")),
            helper.make_node("Neg", ["a"], ["na"]),
            helper.make_node("Exp", ["b"], ["eb"]),
            concat(["na", "eb"], "c", 0),
            *steps(("y", "c")),
        ],
        ["y"],
        lambda x: [cum(cat(-cum(x), np.exp(back(x))))],
    ),
    "along an inner axis": (
        [*steps(("a", "x"), ("b", "x")), concat(["a", "b"], "c", 1), *steps(("y", "c"))],
        ["y"],
        lambda x: [cum(cat(cum(x), back(x), axis=1))],
    ),
    "through views": (
        [
            *steps(("a", "x"), ("b", "x")),
            helper.make_node("Unsqueeze", ["a", "zero"], ["ua"]),
            helper.make_node("Unsqueeze", ["b", "zero"], ["ub"]),
            concat(["ua", "ub"], "c", 1),
            helper.make_node("Squeeze", ["c", "zero"], ["s"]),
            *steps(("y", "s")),
        ],
        ["y"],
        lambda x: [cum(cat(cum(x), back(x)))],
    ),
}
CONSTANTS = [
    helper.make_node("Constant", [], ["zero"], value_ints=[0]),
    helper.make_node("Constant", [], ["one"], value_int=1),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("x", [X, ODD], ids=["aligned", "odd"])
def test_results_are_those_of_copies(case, x):
    nodes, outputs, expected = CASES[case]
    s = session([*CONSTANTS, *nodes], [("x", x.shape)], outputs)
    for run in range(4):  # the first run is recorded, later ones follow the memory plan
        feed = x * np.float32(run + 1) / 4
        for got, want in zip(s.run(None, {"x": feed}), expected(feed), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6, err_msg=f"run {run}")


@pytest.mark.parametrize("parts", ["ka", "kab", "akb", "abk", "kka", "kakb"])
@pytest.mark.parametrize("x", [X, ODD], ids=["aligned", "odd"])
def test_constants_have_room_among_the_parts(parts, x):
    k = np.arange(x.size, dtype=np.float32).reshape(x.shape) + 1
    nodes = [
        *CONSTANTS,
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(k)),
        *steps(("a", "x"), ("b", "x")),
        concat(list(parts), "y", 0),
    ]
    s = session(nodes, [("x", x.shape)], ["y"])
    for run in range(3):
        feed = x * np.float32(run + 1)
        (got,) = s.run(None, {"x": feed})
        values = {"k": k, "a": cum(feed), "b": back(feed)}
        np.testing.assert_allclose(got, cat(*(values[part] for part in parts)), rtol=2e-6)


def bytes_in_use(tmp_path, axis, shape):
    """The most memory that nodes had in the last of some runs."""
    nodes = [*steps(("a", "x"), ("b", "x")), concat(["a", "b"], "c", axis), *steps(("y", "c"))]
    s = session([*CONSTANTS, *nodes], [("x", shape)], ["y"], profile=tmp_path / f"axis{axis}")
    x = np.ones(shape, np.float32)
    for _ in range(3):
        s.run(None, {"x": x})
    events = json.loads(open(s.end_profiling(), encoding="utf-8").read())
    last = [e for e in events if e.get("cat") == "Node" and "kernel_time" in e["name"]][-4:]
    return max(int(e["args"]["mem_bytes_in_use"]) for e in last)


def test_parts_need_no_memory_of_their_own(tmp_path):
    size = 2 * 1024 * 4
    joined = bytes_in_use(tmp_path, 0, (2, 1024))
    copied = bytes_in_use(tmp_path, 1, (2, 1024))
    assert copied - joined >= size, (joined, copied)


def test_parts_are_not_made_over_a_feed():
    nodes = [*steps(("a", "x"), ("b", "x")), concat(["a", "b"], "y", 0)]
    s = session([*CONSTANTS, *nodes], [("x", X.shape)], ["y"])
    memory = np.empty((2 * X.shape[0], X.shape[1]), np.float32)
    for _ in range(3):
        memory[: X.shape[0]] = X
        binding = s.io_binding()
        binding.bind_input("x", "cpu", 0, np.float32, X.shape, memory.ctypes.data)
        binding.bind_output("y", "cpu", 0, np.float32, memory.shape, memory.ctypes.data)
        s.run_with_iobinding(binding)
        np.testing.assert_allclose(memory, cat(cum(X), back(X)), rtol=2e-6, atol=2e-6)
