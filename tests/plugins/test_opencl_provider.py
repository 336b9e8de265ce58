"""plugins/opencl compared with the CPU: every operator, fusion, placement, memory, traces."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from opencl_cases import (
    CASES,
    LIBRARY,
    PROVIDER,
    check,
    floats,
    graph,
    integers,
    node,
    on_cpu,
    residual,
)
from plugin_runtimes import placement, registered, session_on


@pytest.mark.parametrize("name", CASES)
def test_operator(module, devices: list, name: str) -> None:
    op, inputs, attributes = CASES[name]
    model, feeds = node(op, inputs, **attributes)
    check(module, devices, model, feeds)


def attention(batch: object, length: object) -> bytes:
    """Two heads of self-attention over [batch, length, 16], with shapes computed in the graph."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        helper.make_node("Gather", ["shape", "one"], ["length"], axis=0),
        helper.make_node("Unsqueeze", ["batch", "zero1"], ["batch1"]),
        helper.make_node("Unsqueeze", ["length", "zero1"], ["length1"]),
        helper.make_node("Concat", ["batch1", "length1", "heads"], ["split"], axis=0),
        helper.make_node("Concat", ["batch1", "length1", "width"], ["joined"], axis=0),
    ]
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Add", [f"{name}0", "bias"], [f"{name}1"]),
            helper.make_node("Reshape", [f"{name}1", "split"], [f"{name}2"]),
            helper.make_node("Transpose", [f"{name}2"], [f"{name}3"], perm=order),
        ]
    nodes += [
        helper.make_node("MatMul", ["q3", "k3"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["weights"]),
        helper.make_node("MatMul", ["weights", "v3"], ["context"]),
        helper.make_node("Transpose", ["context"], ["context1"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["context1", "joined"], ["context2"]),
        helper.make_node("Add", ["context2", "x"], ["y"]),
    ]
    constants = {
        "zero": np.array(0), "one": np.array(1), "zero1": integers(0), "heads": integers(2, 8),
        "width": integers(16), "bias": floats(16, seed=9), "scale": np.float32(0.35),
        **{f"w{name}": floats(16, 16, seed=i) for i, name in enumerate("qkv")},
    }  # fmt: skip
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, length, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, length, 16])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(made, opset_imports=opsets, ir_version=9).SerializeToString()


def test_one_compiled_graph_runs_at_every_shape(module, devices: list) -> None:
    model = attention("batch", "length")
    session = session_on(module, devices, model)
    reference = on_cpu(module, model)
    assert list(placement(session)) == [PROVIDER]
    for shape in [(1, 4, 16), (2, 9, 16), (1, 4, 16), (3, 1, 16), (0, 4, 16), (2, 9, 16)]:
        x = floats(*shape)
        got = session.run(None, {"x": x})[0]
        np.testing.assert_allclose(got, reference.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_a_fused_node_may_have_outputs_of_another_type_than_its_inputs(module, devices) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    x = integers(0, 1, 2)
    session = session_on(module, devices, graph(nodes, {"x": x}, ["y"], []))
    got = session.run(None, {"x": x})[0]
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.exp(x.astype(np.float32)), rtol=1e-6)


def test_outputs_that_are_also_read_within_the_graph(module, devices: list) -> None:
    check(module, devices, *residual())


def test_two_sessions_and_a_value_that_outlives_them(module, devices: list) -> None:
    model, feeds = residual()
    sessions = [session_on(module, devices, model) for _ in range(2)]
    expected = on_cpu(module, model).run(None, feeds)
    values = [
        session.run_with_ort_values(["y0"], {"x": module.OrtValue.ortvalue_from_numpy(feeds["x"])})[
            0
        ]
        for session in sessions
    ]
    del sessions
    for value in values:
        np.testing.assert_allclose(value.numpy(), expected[0], rtol=1e-4, atol=1e-4)


def test_unsupported_nodes_split_the_graph(module, devices: list) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"]),
        helper.make_node("Exp", ["a"], ["e"]),
        helper.make_node("Add", ["d", "e"], ["y"]),
    ]
    feeds = {"x": floats(5, 5)}
    model = graph(nodes, feeds, ["y"], [])
    session = session_on(module, devices, model)
    taken = placement(session)
    assert taken.pop(PROVIDER) == ["Add", "Exp", "Relu"]
    assert list(taken.values()) == [["Det"]]
    x = np.maximum(feeds["x"], 0)
    expected = np.linalg.det(x) + np.exp(x)
    np.testing.assert_allclose(session.run(None, feeds)[0], expected, rtol=1e-4)


def test_times_of_the_kernels_are_in_the_trace(module, devices: list, tmp_path: Path) -> None:
    model, feeds = residual()
    session = session_on(
        module, devices, model, enable_profiling=True, profile_file_prefix=str(tmp_path / "trace")
    )
    session.run(None, feeds)
    with open(session.end_profiling(), encoding="utf-8") as file:
        events = json.load(file)
    kernels = [event["name"] for event in events if event["cat"] == "Kernel"]
    assert kernels.count("convolution") == 2
    runs = [event for event in events if event["name"] == "model_run"]
    first, last = runs[0]["ts"], runs[0]["ts"] + runs[0]["dur"]
    # PR-32: the node that each kernel belongs to.
    nodes = {event["name"] for event in events if event["cat"] == "Node"}
    causes = set()
    for event in events:
        if event["cat"] == "Kernel" and event["name"] == "convolution":
            # Clocks are aligned once, with an error of some tens of microseconds.
            assert first - 1000 <= event["ts"] <= last + 1000
            assert event["args"]["parent"] in nodes
            causes.add((event["args"]["parent"], event["args"]["correlation"]))
    assert len(causes) == 1, "both are of the one fused node"


def test_compiled_kernels_are_kept_in_a_folder(module, devices: list, tmp_path: Path) -> None:
    model, feeds = residual()
    folder = tmp_path / "kernels"
    settings = {"ep.openclexecutionprovider.kernel_cache_folder": str(folder)}
    with registered(module, LIBRARY, PROVIDER) as fresh:
        session = session_on(module, fresh[:1], model, **settings)
        expected = session.run(None, feeds)
        del session
    files = sorted(folder.iterdir())
    assert files
    times = [file.stat().st_mtime_ns for file in files]
    with registered(module, LIBRARY, PROVIDER) as fresh:
        session = session_on(module, fresh[:1], model, **settings)
        for got, wanted in zip(session.run(None, feeds), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
        del session
    assert [file.stat().st_mtime_ns for file in files] == times
