"""Traces of sessions and of runs, and reports of runs. Requirements: profiling."""

import collections
import json
import pathlib
import re
import time

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper

X = np.arange(6, dtype=np.float32).reshape(2, 3)
KERNEL_ARGS = [
    "op_name",
    "provider",
    "graph_index",
    "exec_plan_index",
    "node_index",
    "activation_size",
    "parameter_size",
    "output_size",
    "input_type_shape",
    "output_type_shape",
    "thread_scheduling_stats",
    "program_counter",
]
MEMORY_ARGS = [
    "mem_bytes_requested_in_use",
    "mem_requested_in_use_delta",
    "mem_bytes_in_use",
    "mem_in_use_delta",
    "mem_in_use_peak",
    "mem_arena_held",
    "mem_arena_held_delta",
]


def options(folder: pathlib.Path, **fields: object) -> tenon.SessionOptions:
    made = tenon.SessionOptions()
    made.enable_profiling = True
    made.profile_file_prefix = str(folder / "trace")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def traced(model: bytes, folder: pathlib.Path, feeds: dict, **fields: object) -> list[dict]:
    """The trace of one run."""
    session = tenon.InferenceSession(model, options(folder, **fields))
    session.run(None, feeds)
    return json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8"))


def test_profiling_begins_at_a_time_of_day(tmp_path: pathlib.Path) -> None:
    """PR-4"""
    before = time.time_ns()
    session = tenon.InferenceSession(graphs.double(), options(tmp_path))
    after = time.time_ns()
    start = session.get_profiling_start_time_ns()
    assert before <= start <= after
    session.run(None, {"x": X})
    assert session.get_profiling_start_time_ns() == start
    other = tenon.InferenceSession(graphs.double(), options(tmp_path))
    assert after <= other.get_profiling_start_time_ns() <= time.time_ns()


def test_ending_gives_the_path_of_a_whole_file(tmp_path: pathlib.Path) -> None:
    """PR-5 (the caller's allocator: tests/capi/profiling_test.cpp)"""
    session = tenon.InferenceSession(graphs.double(), options(tmp_path))
    session.run(None, {"x": X})
    path = session.end_profiling()
    assert isinstance(path, str)
    assert re.fullmatch(
        r"trace_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d+)?\.json", pathlib.Path(path).name
    )
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert any(event["name"] == "model_run" for event in json.loads(text))
    session.run(None, {"x": X})
    assert session.end_profiling() == ""
    assert pathlib.Path(path).read_text(encoding="utf-8") == text, "profiling is off"


def test_nodes_tell_the_memory_that_they_take(tmp_path: pathlib.Path) -> None:
    """TX-65a: an output of a size that only the kernel knows is in the changes."""
    graph = graphs.model(
        [helper.make_node("NonZero", ["x"], ["y"])],
        [graphs.tensor("x", shape=["n"])],
        [graphs.tensor("y", TensorProto.INT64, [1, "m"])],
    )
    values = np.ones(100_000, np.float32)
    args = next(
        event["args"]
        for event in traced(graph, tmp_path, {"x": values})
        if event["name"].endswith("_kernel_time")
    )
    memory = {name: int(args[name]) for name in MEMORY_ARGS}
    made = values.size * np.dtype(np.int64).itemsize
    assert made <= memory["mem_requested_in_use_delta"] <= memory["mem_bytes_requested_in_use"]
    assert memory["mem_requested_in_use_delta"] <= memory["mem_in_use_delta"]
    assert memory["mem_bytes_in_use"] <= memory["mem_in_use_peak"] <= memory["mem_arena_held"]
    assert memory["mem_arena_held_delta"] >= made, "the first run's memory comes from the system"


@pytest.mark.parametrize("mode", ["ORT_SEQUENTIAL", "ORT_PARALLEL"])
def test_nodes_have_three_events_with_their_arguments(mode: str, tmp_path: pathlib.Path) -> None:
    """PR-26 (parts of runs: tests/runtime/partial_run_test.cpp)"""
    mode = getattr(tenon.ExecutionMode, mode)
    model = graphs.product_chain(4, 3)
    feeds = {"x": np.ones((4, 4), np.float32)}
    nodes = [
        event
        for event in traced(model, tmp_path, feeds, execution_mode=mode)
        if event["cat"] == "Node"
    ]
    assert len(nodes) % 3 == 0
    assert nodes
    by_node = collections.defaultdict(dict)
    for event in nodes:
        name, what = re.fullmatch(
            r"(.*)_(fence_before|kernel_time|fence_after)", event["name"]
        ).groups()
        by_node[name][what] = event
    for events in by_node.values():
        before, kernel, after = (
            events[what] for what in ("fence_before", "kernel_time", "fence_after")
        )
        assert list(before["args"]) == list(after["args"]) == ["op_name"]
        assert list(kernel["args"]) == KERNEL_ARGS + MEMORY_ARGS
        assert before["ts"] + before["dur"] <= kernel["ts"] + 1
        assert kernel["ts"] + kernel["dur"] <= after["ts"] + 1


def branch(name: str, nodes: list, outputs: list[str], inputs: list = ()) -> object:
    return helper.make_graph(
        nodes, name, list(inputs), [graphs.tensor(output) for output in outputs]
    )


def conditional() -> tuple[bytes, dict, str]:
    then = branch("then", [helper.make_node("Exp", ["x"], ["t"], name="inner")], ["t"])
    otherwise = branch("else", [helper.make_node("Neg", ["x"], ["e"], name="other")], ["e"])
    node = helper.make_node(
        "If", ["c"], ["y"], name="outer", then_branch=then, else_branch=otherwise
    )
    inputs = [graphs.tensor("x", shape=[2, 3]), graphs.tensor("c", TensorProto.BOOL, [])]
    return graphs.model([node], inputs, [graphs.tensor("y")]), {"x": X, "c": np.array(True)}, "If"


def loop() -> tuple[bytes, dict, str]:
    body = branch(
        "body",
        [
            helper.make_node("Identity", ["go"], ["on"], name="keep"),
            helper.make_node("Exp", ["v"], ["w"], name="inner"),
        ],
        ["on", "w"],
        [
            graphs.tensor("i", TensorProto.INT64, []),
            graphs.tensor("go", TensorProto.BOOL, []),
            graphs.tensor("v"),
        ],
    )
    body.output[0].CopyFrom(graphs.tensor("on", TensorProto.BOOL, []))
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], name="outer", body=body)
    inputs = [graphs.tensor("x", shape=[2, 3]), graphs.tensor("n", TensorProto.INT64, [])]
    feeds = {"x": -X, "n": np.array(3)}
    return graphs.model([node], inputs, [graphs.tensor("y")]), feeds, "Loop"


def scan() -> tuple[bytes, dict, str]:
    body = branch(
        "body",
        [
            helper.make_node("Add", ["s", "v"], ["t"], name="sum"),
            helper.make_node("Exp", ["v"], ["w"], name="inner"),
        ],
        ["t", "w"],
        [graphs.tensor("s", shape=[3]), graphs.tensor("v", shape=[3])],
    )
    node = helper.make_node(
        "Scan", ["z", "x"], ["last", "y"], name="outer", body=body, num_scan_inputs=1
    )
    inputs = [graphs.tensor("z", shape=[3]), graphs.tensor("x", shape=[2, 3])]
    outputs = [graphs.tensor("last"), graphs.tensor("y")]
    return graphs.model([node], inputs, outputs), {"x": X, "z": np.zeros(3, np.float32)}, "Scan"


@pytest.mark.parametrize("make", [conditional, loop, scan])
def test_nodes_of_inner_graphs_are_within_the_outer_node(make, tmp_path: pathlib.Path) -> None:
    """PR-29"""
    model, feeds, operator = make()
    events = traced(model, tmp_path, feeds)
    (outer,) = [event for event in events if event["name"] == "outer_kernel_time"]
    assert outer["args"]["op_name"] == operator
    inner = [event for event in events if event["name"] == "inner_kernel_time"]
    assert len(inner) == {"If": 1, "Loop": 3, "Scan": 2}[operator]
    for event in inner:
        assert outer["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= outer["ts"] + outer["dur"]
        assert event["tid"] == outer["tid"]
    assert not any(event["name"].startswith("other_") for event in events), "it was not taken"
    executions = [event for event in events if event["name"] == "SequentialExecutor::Execute"]
    assert len(executions) == 1 + len(inner)


def test_runs_have_files_of_their_own(tmp_path: pathlib.Path) -> None:
    session = tenon.InferenceSession(graphs.double())
    run = tenon.RunOptions()
    run.enable_profiling = True
    run.profile_file_prefix = str(tmp_path / "run")
    session.run(None, {"x": X}, run)
    run.enable_profiling = False
    session.run(None, {"x": X}, run)
    (file,) = tmp_path.iterdir()
    assert any(event["name"] == "model_run" for event in json.loads(file.read_text()))


def report_of(session: tenon.InferenceSession, feeds: dict) -> dict:
    run = tenon.RunOptions()
    run.add_run_config_entry("tenon.run_report", "1")
    session.run(None, feeds, run)
    return run.get_run_report()


def test_a_run_reports_on_itself() -> None:
    """PR-51: the nodes that ran, their time, and their memory."""
    session = tenon.InferenceSession(graphs.product_chain(64, 5))
    feeds = {"x": np.full((64, 64), 0.01, np.float32)}
    for run_id in (1, 2, 3):
        report = report_of(session, feeds)
        assert report["run_id"] == run_id
        assert (report["attempts"], report["fallback"], report["reason"]) == (1, False, "")
        assert report["nodes"] == 5
        (provider,) = report["providers"]
        assert provider["name"] == "CPUExecutionProvider"
        assert provider["nodes"] == 5
        assert 0 < provider["time_us"] <= report["duration_us"]
        (place,) = report["memory"]
        matrix = 64 * 64 * 4
        assert place["peak_bytes"] >= 2 * matrix, "one product while the next is made"
        assert matrix <= place["static_bytes"] <= 4 * matrix
        assert matrix <= place["dynamic_bytes"] < 5 * matrix, "only the output"
        assert place["peak_bytes"] <= place["static_bytes"] + place["dynamic_bytes"]


def test_a_run_may_go_without_a_memory_plan() -> None:
    """Each value then has memory of its own, which the events of allocators tell apart."""
    session = tenon.InferenceSession(graphs.product_chain(64, 5))
    feeds = {"x": np.full((64, 64), 0.01, np.float32)}
    (planned,) = report_of(session, feeds)["memory"]
    run = tenon.RunOptions()
    run.add_run_config_entry("tenon.run_report", "1")
    run.add_run_config_entry("tenon.plans_memory", "0")
    (y,) = session.run(None, feeds, run)
    (unplanned,) = run.get_run_report()["memory"]
    assert planned["static_bytes"] > 0
    assert unplanned["static_bytes"] == 0
    assert unplanned["dynamic_bytes"] >= 5 * y.nbytes


def test_a_report_counts_nodes_of_inner_graphs_once() -> None:
    model, feeds, _ = loop()
    session = tenon.InferenceSession(model)
    report = report_of(session, feeds)
    assert report["nodes"] in (4, 7), "the loop and what it runs three times"
    (provider,) = report["providers"]
    assert provider["time_us"] <= report["duration_us"]


def test_other_runs_have_no_report() -> None:
    session = tenon.InferenceSession(graphs.double())
    run = tenon.RunOptions()
    session.run(None, {"x": X}, run)
    with pytest.raises(Exception, match=r"tenon\.run_report"):
        run.get_run_report()
