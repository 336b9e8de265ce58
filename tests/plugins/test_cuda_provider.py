"""plugins/cuda: on a GPU compared with the CPU; without one, with a driver that computes nothing.
Then the kernels compile, memory and copies are right, and a lost device ends in the fallback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cuda_cases
import numpy as np
import pytest
from cuda_cases import (
    FAKE_DRIVER,
    GROUP_QUERY,
    LARGE,
    LIBRARY,
    MULTI_HEAD,
    NBITS,
    PROVIDER,
    cuda_session,
)
from onnx import helper, numpy_helper
from opencl_cases import (
    CASES,
    cast_arrays,
    floats,
    graph,
    integers,
    node,
    on_cpu,
    residual,
    unoptimized,
)
from plugin_runtimes import RUNTIMES, placement, registered, runtime

os.environ["TENON_CUDA_LIBRARY_PATH"] = cuda_cases.library_path()


@pytest.fixture(scope="module", params=RUNTIMES)
def module(request: pytest.FixtureRequest):
    return runtime(request.param)


@pytest.fixture(scope="module")
def devices(module) -> Iterator[list]:
    with registered(module, LIBRARY, PROVIDER) as found:
        if not found:
            pytest.skip("neither a CUDA device nor the fake driver")
        yield found[:1]


@pytest.fixture
def gpu(devices: list) -> list:
    if devices[0].ep_metadata["cuda_name"] == "a fake device":
        pytest.skip("no CUDA device")
    return devices


@pytest.fixture
def compiler() -> None:
    if cuda_cases.compiler_folder() is None:
        pytest.skip("PyPI's nvidia-cuda-nvrtc is not installed")


def both_types(name: str, half: bool) -> list:
    inputs = CASES[name][1]
    return cast_arrays(inputs, np.float16) if half else inputs


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_operator(module, gpu: list, name: str, half: bool) -> None:
    op, inputs, attributes = CASES[name]
    cuda_cases.check(module, gpu, op, inputs, attributes, half)


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", NBITS)
def test_products_with_weights_of_four_bits(module, gpu: list, name: str, half: bool) -> None:
    cuda_cases.check(module, gpu, *NBITS[name], half)


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", LARGE)
def test_large_tensors(module, gpu: list, name: str, half: bool) -> None:
    cuda_cases.check(module, gpu, *LARGE[name], half)


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
def test_views_of_large_tensors(module, gpu: list, half: bool) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1, 3]),
        helper.make_node("Slice", ["a", "from", "to", "axis"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["c"]),
        helper.make_node("Mul", ["c", "b"], ["y"]),
    ]
    numbers = {"from": 8, "to": 72, "axis": 3}
    constants = [numpy_helper.from_array(integers(n), name) for name, n in numbers.items()]
    feeds = {"x": floats(4, 12, 60, 80)}
    expected = on_cpu(module, graph(nodes, feeds, ["y"], constants)).run(None, feeds)
    if half:
        feeds = {"x": feeds["x"].astype(np.float16)}
    session = cuda_session(module, gpu, graph(nodes, feeds, ["y"], constants))
    for _ in range(3):
        assert cuda_cases.error(session.run(None, feeds)[0], expected[0]) <= 3e-3


@pytest.mark.parametrize("name", MULTI_HEAD)
def test_multi_head_attention(module, gpu: list, name: str) -> None:
    cuda_cases.check(module, gpu, *MULTI_HEAD[name], half=True)


@pytest.mark.parametrize("name", GROUP_QUERY)
def test_group_query_attention(module, gpu: list, name: str) -> None:
    queries, pasts, capacity, more = GROUP_QUERY[name]
    model, feeds = cuda_cases.group_query(queries, pasts, capacity, **more)
    halves = {name: cast_arrays([x], np.float16)[0] for name, x in feeds.items()}
    full = {name: cast_arrays([x], np.float32)[0] for name, x in halves.items()}
    expected = on_cpu(module, model).run(None, full)
    model = cuda_cases.group_query(queries, pasts, capacity, **more, half=True)[0]
    session = cuda_session(module, gpu, model)
    assert "GroupQueryAttention" in placement(session)[PROVIDER]
    for _ in range(3):
        y, *presents = session.run(None, halves)
        assert cuda_cases.error(y, expected[0]) <= 3e-3
        for batch, past in enumerate(pasts):  # what lies behind is nobody's
            for got, wanted in zip(presents, expected[1:], strict=True):
                end = past + queries
                assert cuda_cases.error(got[batch, :, :end], wanted[batch, :, :end]) <= 2e-3


# As decoders are run: the new cache is the last one, one longer.
def test_a_cache_is_filled_in_place(module, gpu: list) -> None:
    model, feeds = cuda_cases.group_query(1, [40, 12], 128, half=True)
    session = cuda_session(module, gpu, model)
    expected = session.run(None, feeds)
    binding = session.io_binding()
    values = {}
    for name, x in feeds.items():
        values[name] = module.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
        binding.bind_ortvalue_input(name, values[name])
    binding.bind_output("y", "cuda", 0)
    binding.bind_ortvalue_output("present_k", values["past_k"])
    binding.bind_ortvalue_output("present_v", values["past_v"])
    for _ in range(3):
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), expected[0])
    for name, wanted in zip(("past_k", "past_v"), expected[1:], strict=True):
        got = values[name].numpy()
        for batch, end in enumerate((41, 13)):
            np.testing.assert_array_equal(got[batch, :, :end], wanted[batch, :, :end])


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_compile(module, devices: list, compiler, name: str, half: bool) -> None:
    op, _, attributes = CASES[name]
    model, feeds = node(op, both_types(name, half), **attributes)
    session = cuda_session(module, devices, model, graph_optimization_level=unoptimized(module))
    assert list(placement(session)) == [PROVIDER]
    session.run(None, feeds)


@pytest.mark.parametrize("half", [False, True], ids=["float", "float16"])
@pytest.mark.parametrize("name", LARGE)
def test_kernels_for_large_tensors_compile(module, devices, compiler, name: str, half) -> None:
    op, inputs, attributes = LARGE[name]
    model, feeds = node(op, cast_arrays(inputs, np.float16) if half else inputs, **attributes)
    cuda_session(module, devices, model).run(None, feeds)


@pytest.mark.parametrize("name", [*NBITS, *MULTI_HEAD])
def test_kernels_written_by_hand_compile(module, devices: list, compiler, name: str) -> None:
    op, inputs, attributes = {**NBITS, **MULTI_HEAD}[name]
    model, feeds = node(op, cast_arrays(inputs, np.float16), **attributes)
    session = cuda_session(module, devices, model)
    assert list(placement(session)) == [PROVIDER]
    session.run(None, feeds)


@pytest.mark.parametrize("name", GROUP_QUERY)
def test_kernels_of_a_cache_compile(module, devices: list, compiler, name: str) -> None:
    queries, pasts, capacity, more = GROUP_QUERY[name]
    model, feeds = cuda_cases.group_query(queries, pasts, capacity, **more, half=True)
    session = cuda_session(module, devices, model)
    assert "GroupQueryAttention" in placement(session)[PROVIDER]
    session.run(None, feeds)


def test_tensors_go_to_the_device_and_back(module, devices: list) -> None:
    x = floats(37, 5)
    value = module.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    assert value.device_name().lower() == "cuda"
    np.testing.assert_array_equal(value.numpy(), x)


def test_dlpack_lends_memory_of_the_device(module, devices: list) -> None:
    if module.__name__ != "tenon":
        pytest.skip("onnxruntime's package has no DLPack")
    x = floats(3, 4)
    value = module.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    assert value.__dlpack_device__() == (2, 0)
    other = module.OrtValue.from_dlpack(value)
    assert other.data_ptr() == value.data_ptr()
    assert other.device_name() == "cuda"
    del value
    np.testing.assert_array_equal(other.numpy(), x)


def test_tensors_of_pytorch_go_in_and_out(module, gpu: list) -> None:
    torch = pytest.importorskip("torch")
    if module.__name__ != "tenon" or not torch.cuda.is_available():
        pytest.skip("takes Tenon and a PyTorch that has the device")
    model, _ = node("Relu", [floats(4, 5)])
    session = cuda_session(module, gpu, model)
    x = torch.randn(4, 5, device="cuda")
    torch.cuda.synchronize()
    binding = session.io_binding()
    binding.bind_ortvalue_input("x0", module.OrtValue.from_dlpack(x))
    binding.bind_output("y0", "cuda", 0)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    y = torch.from_dlpack(binding.get_outputs()[0])
    assert y.device == x.device
    assert torch.equal(y, torch.relu(x))


# The run that is captured is the whole one: with other contents it is replayed.
def test_whole_runs_are_captured(module, gpu: list) -> None:
    model, feeds = residual()
    settings = {"ep.cudaexecutionprovider.enable_cuda_graph": "1"}
    session = cuda_session(module, gpu, model, **settings)
    reference = on_cpu(module, model)
    binding = session.io_binding()
    value = module.OrtValue.ortvalue_from_numpy(feeds["x"], "cuda", 0)
    binding.bind_ortvalue_input("x", value)
    outputs = session.get_outputs()
    for output in outputs:
        binding.bind_output(output.name, "cuda", 0)
    for seed in range(4):
        x = floats(*feeds["x"].shape, seed=seed)
        value.update_inplace(x)
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()
        wanted = reference.run(None, {"x": x})
        for got, expected in zip(binding.get_outputs(), wanted, strict=True):
            assert cuda_cases.error(got.numpy(), expected) <= 2e-5


def test_bound_tensors_stay_on_the_device(module, devices: list, compiler) -> None:
    model, feeds = node("Relu", [floats(4, 5)])
    session = cuda_session(module, devices, model)
    binding = session.io_binding()
    value = module.OrtValue.ortvalue_from_numpy(feeds["x0"], "cuda", 0)
    binding.bind_ortvalue_input("x0", value)
    binding.bind_output("y0", "cuda", 0)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    (y,) = binding.get_outputs()
    assert y.device_name().lower() == "cuda"
    assert y.shape() == [4, 5]


def test_options_are_checked(module, devices: list) -> None:
    if module.__name__ != "tenon":
        pytest.skip("onnxruntime's class falls back to the CPU when a session cannot be made")
    model, _ = node("Relu", [floats(4, 5)])
    settings = {"ep.cudaexecutionprovider.use_tf32": "perhaps"}
    with pytest.raises(Exception, match="use_tf32: expected 0 or 1, got 'perhaps'"):
        cuda_session(module, devices, model, **settings)


def test_compiled_kernels_are_kept_in_a_folder(module, devices, compiler, tmp_path: Path) -> None:
    model, feeds = residual()
    folder = tmp_path / "kernels"
    settings = {"ep.cudaexecutionprovider.kernel_cache_folder": str(folder)}
    times = []
    for _ in range(2):
        with registered(module, LIBRARY, PROVIDER) as fresh:
            session = cuda_session(module, fresh[:1], model, **settings)
            session.run(None, feeds)
            del session
        files = sorted(folder.iterdir())
        assert files
        times.append([file.stat().st_mtime_ns for file in files])
    assert times[0] == times[1]


def test_times_of_the_kernels_are_in_the_trace(module, devices, compiler, tmp_path: Path) -> None:
    model, feeds = residual()
    session = cuda_session(
        module, devices, model, enable_profiling=True, profile_file_prefix=str(tmp_path / "trace")
    )
    session.run(None, feeds)
    events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    kernels = [event for event in events if event["cat"] == "Kernel"]
    nodes = {event["name"] for event in events if event["cat"] == "Node"}
    assert {event["args"]["provider"] for event in kernels} == {PROVIDER}
    computing = [event for event in kernels if event["name"] != "copy"]
    assert computing
    assert {event["args"]["parent"] for event in computing} <= nodes


def test_unsupported_nodes_split_the_graph(module, devices: list) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Det", ["a"], ["d"]),
        helper.make_node("Exp", ["a"], ["e"]),
        helper.make_node("Add", ["d", "e"], ["y"]),
    ]
    session = cuda_session(module, devices, graph(nodes, {"x": floats(5, 5)}, ["y"], []))
    taken = placement(session)
    assert taken.pop(PROVIDER) == ["Add", "Exp", "Relu"]
    assert list(taken.values()) == [["Det"]]


LOST = """
import sys
import numpy as np
import tenon as rt

rt.register_execution_provider_library("cuda", sys.argv[1])
session = rt.InferenceSession(
    sys.argv[2],
    providers=[("CUDAExecutionProvider", {"kernel_cache_folder": ""}), "CPUExecutionProvider"],
)
x = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
for _ in range(4):
    np.testing.assert_array_equal(session.run(None, {"x0": x})[0], np.maximum(x, 0))
print(session.get_providers())
"""


# FB-1: the run is repeated on the CPU, and gives its results.
@pytest.mark.parametrize("failure", ["cuLaunchKernel 1 700", "cuMemcpyHtoDAsync_v2 1 700"])
def test_a_lost_device_ends_in_the_fallback(compiler, tmp_path: Path, failure: str) -> None:
    if not FAKE_DRIVER.is_dir():
        pytest.skip("the fake driver is not built")
    runtime("tenon")
    model, _ = node("Relu", [floats(2, 3)])
    file = tmp_path / "model.onnx"
    file.write_bytes(model)
    result = subprocess.run(
        [sys.executable, "-c", LOST, str(LIBRARY), str(file)],
        env={**os.environ, "FAKE_CUDA_FAIL": failure},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "['CPUExecutionProvider']"
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in result.stdout + result.stderr
