"""Progress of creations and runs."""

import asyncio
import threading
from pathlib import Path

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper

Events = list[tuple[str, int, int]]
X = {"x": np.ones((2, 8), np.float32)}


def watched(model: bytes | str, events: Events) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.progress = lambda *event: events.append(event)
    return tenon.InferenceSession(model, options)


@pytest.mark.parametrize("from_file", [False, True])
def test_creation_reports_bytes_and_nodes(from_file: bool, tmp_path: Path) -> None:
    model = graphs.weighted_chain(8, 5)
    (tmp_path / "model.onnx").write_bytes(model)
    events: Events = []
    session = watched(str(tmp_path / "model.onnx") if from_file else model, events)
    assert events[:2] == [("read", 0, len(model)), ("read", len(model), len(model))]
    stages = [stage for stage, _, _ in events]
    assert stages == sorted(stages, key=["read", "optimize", "prepare"].index)
    assert "optimize" in stages
    prepared = [event for event in events if event[0] == "prepare"]
    assert prepared == [("prepare", i, 5) for i in range(6)]
    count = len(events)
    session.run(None, X)
    assert len(events) == count  # runs have their own


@pytest.mark.parametrize("plans", [0, 1])
def test_runs_report_nodes(plans: int) -> None:
    session = tenon.InferenceSession(graphs.weighted_chain(8, 5))
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.plans_memory", str(plans))
    events: Events = []
    options.progress = lambda *event: events.append(event)
    for _ in range(3):
        session.run(None, X, options)
        assert events == [("run", i, 5) for i in range(6)]
        events.clear()
    options.progress = None
    session.run(None, X, options)
    assert events == []


def loop() -> bytes:
    """y = x doubled n times."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go_on"], ["go_on_still"]),
            helper.make_node("Add", ["a", "a"], ["b"]),
        ],
        "body",
        [
            graphs.tensor("i", TensorProto.INT64, []),
            graphs.tensor("go_on", TensorProto.BOOL, []),
            graphs.tensor("a"),
        ],
        [graphs.tensor("go_on_still", TensorProto.BOOL, []), graphs.tensor("b")],
    )
    return graphs.model(
        [
            helper.make_node("Loop", ["n", "", "x"], ["z"], body=body),
            helper.make_node("Neg", ["z"], ["y"]),
        ],
        [graphs.tensor("n", TensorProto.INT64, []), graphs.tensor("x", shape=[2])],
        [graphs.tensor("y")],
    )


def test_nodes_of_subgraphs_do_not_count() -> None:
    session = tenon.InferenceSession(loop())
    options = tenon.RunOptions()
    events: Events = []
    options.progress = lambda *event: events.append(event)
    (y,) = session.run(None, {"n": np.int64(4), "x": np.ones(2, np.float32)}, options)
    np.testing.assert_array_equal(y, [-16, -16])
    assert events == [("run", i, 2) for i in range(3)]


class StopError(Exception):
    pass


@pytest.mark.parametrize("stage", ["read", "optimize", "prepare"])
@pytest.mark.parametrize("kind", [None, StopError, ValueError, KeyboardInterrupt])
def test_creation_is_cancelled(stage: str, kind: type[BaseException] | None) -> None:
    def progress(now: str, done: int, total: int) -> bool:
        if now != stage:
            return True
        if kind is not None:
            raise kind("enough")
        return False

    options = tenon.SessionOptions()
    options.progress = progress
    expected = kind or tenon.capi.onnxruntime_pybind11_state.ModelLoadCanceled
    with pytest.raises(expected, match="enough" if kind else "asked to stop"):
        tenon.InferenceSession(graphs.weighted_chain(8, 3), options)
    options.progress = None
    assert tenon.InferenceSession(graphs.weighted_chain(8, 3), options).run(None, X)


@pytest.mark.parametrize("at", [0, 2, 3])
@pytest.mark.parametrize("kind", [None, StopError, KeyboardInterrupt])
def test_a_run_is_cancelled(at: int, kind: type[BaseException] | None) -> None:
    session = tenon.InferenceSession(graphs.weighted_chain(8, 3))
    (expected,) = session.run(None, X)

    def progress(_: str, done: int, total: int) -> bool:
        if done == at and kind is not None:
            raise kind("enough")
        return done != at

    options = tenon.RunOptions()
    options.progress = progress
    error = kind or tenon.capi.onnxruntime_pybind11_state.Fail
    for _ in range(2):
        with pytest.raises(error, match="enough" if kind else "asked to stop"):
            session.run(None, X, options)
    value = tenon.OrtValue.ortvalue_from_numpy(X["x"])
    with pytest.raises(error):
        session.run_with_ort_values(None, {"x": value}, options)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y")
    with pytest.raises(kind or RuntimeError):
        session.run_with_iobinding(binding, options)
    np.testing.assert_array_equal(session.run(None, X)[0], expected)


def test_awaited_runs_report_and_raise() -> None:
    session = tenon.InferenceSession(graphs.weighted_chain(8, 3))
    threads = set()

    def progress(_: str, done: int, total: int) -> None:
        threads.add(threading.get_ident())
        if done == total:
            raise StopError

    options = tenon.RunOptions()
    options.progress = progress

    async def main() -> None:
        with pytest.raises(StopError):
            await session.run_async(None, X, run_options=options)

    asyncio.run(main())
    assert threads and threading.get_ident() not in threads
