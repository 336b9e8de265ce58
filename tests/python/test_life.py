"""The life of sessions: pickle, copy, fork, threads, compilation, adapters, devices."""

import asyncio
import copy
import os
import pathlib
import pickle
import threading
import time

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

X = np.array([1, 2], np.float32)


def run(session: tenon.InferenceSession) -> list[float]:
    return session.run(None, {"x": X})[0].tolist()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))]
)
@pytest.mark.parametrize("is_file", [False, True])
def test_sessions_are_copied(duplicate: object, is_file: bool, tmp_path: pathlib.Path) -> None:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 2
    options.execution_mode = tenon.ExecutionMode.ORT_PARALLEL
    options.add_session_config_entry("session.memory_limit", "1000000")
    options.add_free_dimension_override_by_name("n", 2)
    model = graphs.double(["n"])
    if is_file:
        path = tmp_path / "model.onnx"
        path.write_bytes(model)
        model = path
    session = tenon.InferenceSession(model, options, enable_fallback=False)
    other = duplicate(session)
    assert other is not session
    assert run(other) == [2, 4]
    assert other.get_inputs()[0].shape == [2]
    assert not other._enable_fallback
    kept = other.get_session_options()
    assert kept.intra_op_num_threads == 2
    assert kept.execution_mode == tenon.ExecutionMode.ORT_PARALLEL
    assert kept.get_session_config_entry("session.memory_limit") == "1000000"


@pytest.mark.parametrize("threads", [1, 2])
def test_sessions_work_after_a_fork(threads: int) -> None:
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    session = tenon.InferenceSession(graphs.product_chain(128, 8), options)
    x = np.full((128, 128), 1 / 128, np.float32)
    (expected,) = session.run(None, {"x": x})
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                (y,) = session.run(None, {"x": x})
                status = 0 if np.array_equal(y, expected) else 2
            finally:
                os._exit(status)
        children.append(child)
    deadline = time.monotonic() + 20
    for child in children:
        status = None
        while status is None and time.monotonic() < deadline:
            done, code = os.waitpid(child, os.WNOHANG)
            status = os.waitstatus_to_exitcode(code) if done else None
            time.sleep(0.01)
        if status is None:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert status == 0


def test_runs_are_awaited() -> None:
    session = tenon.InferenceSession(graphs.double())

    async def wait() -> list[np.ndarray]:
        results = await asyncio.gather(*(session.run_async(None, {"x": X}) for _ in range(4)))
        with pytest.raises(ValueError, match="Required inputs"):
            await session.run_async(None, {})
        return [result[0] for result in results]

    for y in asyncio.run(wait()):
        assert y.tolist() == [2, 4]


@pytest.mark.parametrize("is_awaited", [False, True])
def test_asynchronous_runs_keep_their_feeds(
    is_awaited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller drops and replaces what it passed before the other thread looks at it."""
    changed = threading.Event()

    class LateThread(threading.Thread):
        def run(self) -> None:
            changed.wait()
            super().run()

    session = tenon.InferenceSession(graphs.double())
    monkeypatch.setattr(threading, "Thread", LateThread)
    feed, names = {"x": X.copy()}, ["y"]

    def change() -> None:
        feed["x"] = np.zeros_like(X)
        names[0] = "none"
        changed.set()

    async def wait() -> list[np.ndarray]:
        pending = session.run_async(names, feed)
        change()
        return await pending

    if is_awaited:
        outputs = asyncio.run(wait())
    else:
        done, results = threading.Event(), []

        def callback(*arguments: object) -> None:
            results.append(arguments)
            done.set()

        session.run_async(names, feed, callback, None)
        change()
        done.wait()
        ((outputs, _, error),) = results
        assert error == ""
    assert outputs[0].tolist() == [2, 4]


def endless() -> bytes:
    """A loop that runs until it is stopped."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [
            graphs.tensor("i", TensorProto.INT64, []),
            graphs.tensor("c", TensorProto.BOOL, []),
            graphs.tensor("v"),
        ],
        [graphs.tensor("d", TensorProto.BOOL, []), graphs.tensor("w")],
    )
    yes = numpy_helper.from_array(np.array(True), "yes")
    return graphs.model(
        [helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)],
        [graphs.tensor("x")],
        [graphs.tensor("y")],
        initializers=[yes],
    )


def test_cancelling_an_awaited_run_ends_it() -> None:
    options = tenon.RunOptions()

    async def cancel() -> None:
        session = tenon.InferenceSession(endless())
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(session.run_async(None, {"x": X}, run_options=options), 0.1)

    begin = time.monotonic()
    asyncio.run(cancel())
    assert time.monotonic() - begin < 5


def test_callbacks_are_called_once() -> None:
    import threading  # noqa: PLC0415

    session = tenon.InferenceSession(graphs.double())
    calls, done = [], threading.Event()

    def callback(outputs: list, data: object, error: str) -> None:
        calls.append((outputs[0].tolist(), data, error))
        done.set()

    session.run_async(["y"], {"x": X}, callback, "data")
    assert done.wait(10)
    assert calls == [([2, 4], "data", "")]


def weighted() -> bytes:
    weight = numpy_helper.from_array(np.arange(1024, dtype=np.float32), "w")
    return graphs.model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [graphs.tensor("x", shape=[1024])],
        [graphs.tensor("y", shape=[1024])],
        initializers=[weight],
    )


def test_models_are_compiled(tmp_path: pathlib.Path) -> None:
    options, x = tenon.SessionOptions(), np.ones(1024, np.float32)
    expected = np.arange(1024) + 1
    path = tmp_path / "model.onnx"
    path.write_bytes(weighted())
    compiler = tenon.ModelCompiler(options, str(path))
    compiler.compile_to_file(str(tmp_path / "out.onnx"))
    compiler.compile_to_file()
    pieces: list[bytes] = []
    compiler.compile_to_stream(pieces.append)
    for model in (
        tmp_path / "out.onnx",
        tmp_path / "model_ctx.onnx",
        b"".join(pieces),
        tenon.ModelCompiler(options, weighted()).compile_to_bytes(),
    ):
        (y,) = tenon.InferenceSession(model).run(None, {"x": x})
        np.testing.assert_array_equal(y, expected)


def test_compiled_models_place_their_weights(tmp_path: pathlib.Path) -> None:
    external = tmp_path / "weights.bin"
    seen = []

    def place(name: str, value: tenon.OrtValue, _: object) -> tenon.OrtExternalInitializerInfo:
        seen.append(name)
        external.write_bytes(value.numpy().tobytes())
        return tenon.OrtExternalInitializerInfo("weights.bin", 0, value.tensor_size_in_bytes())

    compiler = tenon.ModelCompiler(
        tenon.SessionOptions(), weighted(), get_initializer_location_func=place
    )
    compiler.compile_to_file(str(tmp_path / "out.onnx"))
    assert seen == ["w"]
    assert (tmp_path / "out.onnx").stat().st_size < 1000
    (y,) = tenon.InferenceSession(tmp_path / "out.onnx").run(None, {"x": np.ones(1024, np.float32)})
    np.testing.assert_array_equal(y, np.arange(1024) + 1)
    flags = tenon.OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS
    again = tenon.ModelCompiler(tenon.SessionOptions(), weighted(), flags=flags)
    with pytest.raises(Exception, match="exists already"):
        again.compile_to_file(str(tmp_path / "out.onnx"))
    with pytest.raises(ValueError, match="does not exist"):
        tenon.ModelCompiler(tenon.SessionOptions(), "missing.onnx")


@pytest.mark.parametrize(("write", "read"), [(tenon, onnxruntime), (onnxruntime, tenon)])
def test_adapters_are_exchanged(write: object, read: object, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "adapter.onnx_adapter")
    parameters = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([1, 2, 3], np.int64),
        "empty": np.zeros((0, 2), np.float16),
    }
    adapter = write.AdapterFormat()
    adapter.set_adapter_version(3)
    adapter.set_model_version(7)
    adapter.set_parameters(
        {name: write.OrtValue.ortvalue_from_numpy(array) for name, array in parameters.items()}
    )
    adapter.export_adapter(path)
    there = read.AdapterFormat.read_adapter(path)
    assert (there.get_format_version(), there.get_adapter_version()) == (1, 3)
    assert there.get_model_version() == 7
    values = there.get_parameters()
    assert set(values) == set(parameters)
    for name, array in parameters.items():
        np.testing.assert_array_equal(values[name].numpy(), array)


def test_adapters_replace_parameters(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "adapter.onnx_adapter")
    model = graphs.model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [graphs.tensor("x"), graphs.tensor("w", shape=[2])],
        [graphs.tensor("y")],
        initializers=[numpy_helper.from_array(np.zeros(2, np.float32), "w")],
    )
    adapter = tenon.AdapterFormat()
    w = np.array([10, 20], np.float32)
    adapter.set_parameters({"w": tenon.OrtValue.ortvalue_from_numpy(w)})
    adapter.export_adapter(path)
    active = tenon.LoraAdapter()
    active.Load(path)
    options = tenon.RunOptions()
    options.add_active_adapter(active)
    session = tenon.InferenceSession(model)
    assert session.run(None, {"x": X}, options)[0].tolist() == [11, 22]
    assert session.run(None, {"x": X})[0].tolist() == [1, 2]


def test_no_adapter_is_said_to_be_none(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "adapter"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="no LoRA adapter"):
        tenon.AdapterFormat.read_adapter(path)
    path.write_bytes(b"\xff\xff\0\0TORT" + bytes(4))
    with pytest.raises(ValueError, match="damaged"):
        tenon.AdapterFormat.read_adapter(path)


def test_describes_devices() -> None:
    (device,) = tenon.get_ep_devices()
    assert (device.ep_name, device.device.type.name) == ("CPUExecutionProvider", "CPU")
    options = tenon.SessionOptions()
    options.add_provider_for_devices([device], {})
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = tenon.InferenceSession(graphs.double(), options)
    (assigned,) = session.get_provider_graph_assignment_info()
    assert assigned.ep_name == "CPUExecutionProvider"
    assert [node.op_type for node in assigned.get_nodes()] == ["Add"]
    assert [info.name for info in session.get_input_memory_infos()] == ["Cpu"]
    assert [info.name for info in session.get_output_memory_infos()] == ["Cpu"]
    assert [one.ep_name for one in session.get_input_epdevices()] == ["CPUExecutionProvider"]
    session.set_ep_dynamic_options({"ep.dynamic.workload_type": "Efficient"})
    assert session.get_tuning_results() == []


@pytest.mark.parametrize("runtime", [tenon, onnxruntime])
def test_assignments_leave_out_casts_around_narrow_nodes(runtime: object) -> None:
    half = TensorProto.FLOAT16
    model = graphs.model(
        [helper.make_node("HardSigmoid", ["x"], ["y"])],
        [graphs.tensor("x", half, [2])],
        [graphs.tensor("y", half, [2])],
    )
    options = runtime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (assigned,) = session.get_provider_graph_assignment_info()
    assert [node.op_type for node in assigned.get_nodes()] == ["HardSigmoid"]


def test_a_function_selects_devices() -> None:
    seen = []

    def select(devices: list, model: dict, _: dict, most: int) -> list:
        seen.append((len(devices), model["graph_name"], most > 0))
        return devices

    options = tenon.SessionOptions()
    options.set_provider_selection_policy_delegate(select)
    assert run(tenon.InferenceSession(graphs.double(), options)) == [2, 4]
    assert seen == [(1, "graph", True)]
    options = tenon.SessionOptions()
    options.set_provider_selection_policy(tenon.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    assert run(tenon.InferenceSession(graphs.double(), options)) == [2, 4]


def test_memory_is_described() -> None:
    info = tenon.OrtMemoryInfo(
        "Cpu", tenon.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, tenon.OrtMemType.DEFAULT
    )
    assert (info.name, info.device_id) == ("Cpu", 0)
    assert info.allocator_type == tenon.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    assert info.device_mem_type == tenon.OrtDeviceMemoryType.DEFAULT
    config = tenon.OrtArenaCfg({"max_mem": 1 << 24, "arena_extend_strategy": 1})
    assert config.max_mem == 1 << 24
    tenon.create_and_register_allocator(info, config)


def test_plugin_libraries_that_are_not_there_are_named() -> None:
    with pytest.raises(Exception, match=r"missing.so|RegisterExecutionProviderLibrary"):
        tenon.register_execution_provider_library("missing", "/nowhere/missing.so")


def test_onnx_takes_compiled_models() -> None:
    model = tenon.ModelCompiler(tenon.SessionOptions(), weighted()).compile_to_bytes()
    onnx.checker.check_model(onnx.load_from_string(model))
