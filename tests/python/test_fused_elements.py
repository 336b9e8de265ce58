"""Element-wise nodes that become one pass: the results have the bits of the nodes one by one."""

from __future__ import annotations

import json
import pathlib

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tenon.capi import onnxruntime_pybind11_state as state

SHAPE = [3, 40, 64]
# What is broadcast to it: the last one, and the first, are no neighbouring dimensions of it.
SHAPES = [SHAPE, SHAPE, [64], [40, 64], [40, 1], [3, 1, 1], [1, 1, 64], [], [1], [3, 1, 64]]
UNARY = ["Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Softplus", "HardSwish", "Elu", "Clip", "Floor"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min", "Div", "PRelu", "Sum"]


def random_graph(seed: int, dimensions: list) -> bytes:
    """A dozen element-wise nodes that read earlier values; the last ones are outputs."""
    random = np.random.default_rng(seed)
    nodes, constants = [], []
    values = ["x0", "x1"]
    for i in range(12):
        name = f"v{i}"
        # Mostly what was made last, so that chains arise.
        operands = [values[-1 - min(int(random.exponential(1)), len(values) - 1)]]
        if random.random() < 0.5:
            op = str(random.choice(UNARY))
            if op == "Clip":
                operands += ["low", "high"]
        else:
            op = str(random.choice(BINARY))
            if random.random() < 0.5:
                shape = SHAPES[random.integers(len(SHAPES))]
                constant = random.uniform(0.5, 2, shape).astype(np.float32)
                constants.append(numpy_helper.from_array(constant, f"c{i}"))
                operands.append(f"c{i}")
            else:
                operands.append(str(random.choice(values)))
            if random.random() < 0.3 and op != "PRelu":
                operands.reverse()
        nodes.append(helper.make_node(op, operands, [name], name=f"node{i}"))
        values.append(name)
    for name, bound in (("low", -0.7), ("high", 1.5)):
        constants.append(numpy_helper.from_array(np.float32(bound), name))
    read = {name for node in nodes for name in node.input}
    ends = [name for name in values[2:] if name not in read]
    return graphs.model(
        nodes,
        [graphs.tensor(name, shape=dimensions) for name in ("x0", "x1")],
        [graphs.tensor(name) for name in ends],
        initializers=constants,
    )


def session(model: bytes, threads: int = 1, **fields: object) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    for name, value in fields.items():
        setattr(options, name, value)
    return tenon.InferenceSession(model, options)


def operators(model: bytes, feeds: dict, folder: pathlib.Path) -> list[str]:
    """Of the nodes that a session runs."""
    run = session(model, enable_profiling=True, profile_file_prefix=str(folder / "profile"))
    run.run(None, feeds)
    events = json.loads(pathlib.Path(run.end_profiling()).read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    return [e["args"]["op_name"] for e in events if e["name"].endswith("_kernel_time")]


@pytest.mark.parametrize("dimensions", [SHAPE, ["n", 40, 64], ["n", "c", "w"]], ids=str)
@pytest.mark.parametrize("seed", range(24))
def test_results_have_the_bits_of_the_nodes_alone(seed: int, dimensions: list) -> None:
    model = random_graph(seed, dimensions)
    random = np.random.default_rng(seed)
    feeds = {name: random.normal(0, 2, SHAPE).astype(np.float32) for name in ("x0", "x1")}
    feeds["x0"].ravel()[:4] = [np.nan, np.inf, -np.inf, -0.0]
    level = tenon.GraphOptimizationLevel.ORT_ENABLE_BASIC
    alone = session(model, graph_optimization_level=level).run(None, feeds)
    for threads in (1, 2, 3):
        fused = session(model, threads)
        for _ in range(3):  # the first one has no plan of the memory
            for expected, actual in zip(alone, fused.run(None, feeds), strict=True):
                np.testing.assert_array_equal(actual.view(np.int32), expected.view(np.int32))
    with np.errstate(all="ignore"):
        reference = ReferenceEvaluator(model).run(None, feeds)
    for expected, actual in zip(reference, alone, strict=True):
        known = np.isfinite(expected)  # its Softplus, for one, overflows
        np.testing.assert_allclose(actual[known], expected[known], rtol=1e-4, atol=1e-4)


def test_a_chain_is_one_node(tmp_path: pathlib.Path) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["a"], name="scale it"),
        helper.make_node("Tanh", ["a"], ["b"], name="bend it"),
        helper.make_node("Add", ["b", "x"], ["c"], name="add it"),
        helper.make_node("Relu", ["c"], ["y"], name="cut it"),
    ]
    scale = numpy_helper.from_array(np.linspace(1, 2, 64, dtype=np.float32), "scale")
    ends = [[graphs.tensor(name, shape=["n", 64])] for name in "xy"]
    model = graphs.model(nodes, *ends, initializers=[scale])
    for n in (0, 1, 5, 700):
        x = np.random.default_rng(n).normal(size=(n, 64)).astype(np.float32)
        assert operators(model, {"x": x}, tmp_path) == ["FusedElements"]
        expected = np.maximum(np.tanh(x * np.linspace(1, 2, 64, dtype=np.float32)) + x, 0)
        actual = session(model, 2).run(None, {"x": x})[0]
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [[], [1], [3], [3, 33, 40]], ids=str)
def test_squares_have_the_bits_of_products(shape: list) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Pow", ["a", "two"], ["b"]),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    # Runs of 40 elements, which Pow alone gathers into tiles.
    two = np.full([33, 1] if len(shape) > 1 else [], 2, np.float32)
    ends = [[graphs.tensor(name, shape=shape)] for name in "xy"]
    model = graphs.model(nodes, *ends, initializers=[numpy_helper.from_array(two, "two")])
    for level in tenon.GraphOptimizationLevel.__members__.values():
        run = session(model, graph_optimization_level=level)
        for seed in range(40):
            x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
            np.testing.assert_array_equal(run.run(None, {"x": x})[0], -(x * x))


def test_models_may_not_name_the_operator() -> None:
    node = helper.make_node("FusedElements", ["x", "y"], ["z"], domain="com.tenon", name="it")
    inputs = [graphs.tensor("x", shape=[2]), graphs.tensor("y", TensorProto.INT8, [2])]
    graph = helper.make_graph([node], "fused", inputs, [graphs.tensor("z")])
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.tenon", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    with pytest.raises(state.Fail, match=r"'it'.*com.tenon:FusedElements.* not a registered"):
        session(model.SerializeToString())


def test_the_assignment_names_the_nodes_of_the_model() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="cut it"),
        helper.make_node("Sigmoid", ["a"], ["y"], name="bend it"),
    ]
    model = graphs.model(nodes, *[[graphs.tensor(name, shape=["n", 64])] for name in "xy"])
    options = tenon.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    groups = tenon.InferenceSession(model, options).get_provider_graph_assignment_info()
    assert {group.ep_name for group in groups} == {"CPUExecutionProvider"}
    assert [[(node.op_type, node.name) for node in group.get_nodes()] for group in groups] == [
        [("Relu", "cut it")],
        [("Sigmoid", "bend it")],
    ]
