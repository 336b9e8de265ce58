"""examples/plugin-ep: claims, compiled chains, its own memory, the life of its objects."""

import ctypes
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from plugin_runtimes import BUILD, RUNTIMES, placement, registered, runtime, session_on

LIBRARY = BUILD / "examples" / "plugin-ep" / "libsample_provider.so"
PROVIDER = "SampleProvider"
SHAPE = [3, 1001]
WEIGHT = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)


def model(nodes: list, element_type: int = TensorProto.FLOAT, shape: list = SHAPE) -> bytes:
    """A model of x -> y with the constants `weight`, of the same shape, and `half`."""
    weight = WEIGHT.astype(helper.tensor_dtype_to_np_dtype(element_type))
    constants = [
        numpy_helper.from_array(weight, "weight"),
        numpy_helper.from_array(np.array([0.5], weight.dtype), "half"),
    ]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, outputs) for op, inputs, outputs in nodes],
        "graph",
        [helper.make_tensor_value_info("x", element_type, shape)],
        [helper.make_tensor_value_info("y", element_type, shape)],
        constants,
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


CHAIN = [("Mul", ["x", "weight"], ["a"]), ("Add", ["half", "a"], ["b"]), ("Relu", ["b"], ["y"])]


@pytest.fixture(params=RUNTIMES)
def module(request: pytest.FixtureRequest):
    return runtime(request.param)


@pytest.fixture
def devices(module) -> Iterator[list]:
    with registered(module, LIBRARY, PROVIDER) as found:
        yield found


def run(session) -> np.ndarray:
    x = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    x[0, :3] = [np.nan, np.inf, -0.0]
    expected = np.maximum(x * WEIGHT + np.float32(0.5), 0)
    for _ in range(3):
        np.testing.assert_array_equal(session.run(["y"], {"x": x})[0], expected)
    return expected


def test_the_library_offers_one_device_per_cpu(devices: list) -> None:
    assert len(devices) == 1
    assert devices[0].ep_vendor == "Sample"
    assert devices[0].ep_metadata["version"] == "1.0.0"


def test_a_chain_runs_on_the_device(module, devices: list) -> None:
    session = session_on(module, devices, model(CHAIN))
    assert placement(session) == {PROVIDER: ["Add", "Mul", "Relu"]}
    run(session)


# PL-48. That no struct of the ABI has grown is checked by tests/capi/abi_layout_test.cpp.
def test_the_extension_keeps_no_runtime_from_loading_the_library(module, devices: list) -> None:
    assert hasattr(ctypes.CDLL(str(LIBRARY)), "TenonGetEpExtension")
    session = session_on(module, devices, model(CHAIN))
    assert PROVIDER in placement(session)
    run(session)


def test_other_nodes_stay_with_other_providers(module, devices: list) -> None:
    nodes = [*CHAIN[:2], ("Neg", ["b"], ["c"]), ("Neg", ["c"], ["d"]), ("Relu", ["d"], ["y"])]
    session = session_on(
        module, devices, model(nodes), graph_optimization_level=module.GraphOptimizationLevel(0)
    )
    taken = placement(session)
    assert taken.pop(PROVIDER) == ["Add", "Mul", "Relu"]
    assert list(taken.values()) == [["Neg", "Neg"]]
    run(session)


@pytest.mark.parametrize(
    ("element_type", "shape"),
    [(TensorProto.DOUBLE, SHAPE), (TensorProto.FLOAT, ["rows", 1001])],
    ids=["double", "unknown size"],
)
def test_what_the_device_lacks_is_not_claimed(module, devices, element_type, shape) -> None:
    session = session_on(module, devices, model(CHAIN, element_type, shape))
    # What follows has a known shape again, that of the weight.
    assert "Mul" not in placement(session).get(PROVIDER, [])


def test_a_value_outlives_its_session(module, devices: list) -> None:
    session = session_on(module, devices, model(CHAIN))
    expected = run(session)
    x = np.random.default_rng(2).standard_normal(SHAPE).astype(np.float32)
    x[0, :3] = [np.nan, np.inf, -0.0]
    value = session.run_with_ort_values(["y"], {"x": module.OrtValue.ortvalue_from_numpy(x)})[0]
    del session
    np.testing.assert_array_equal(value.numpy(), expected)
