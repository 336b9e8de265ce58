"""plugins/opencl beside the CPU: every operator, fusion, placement, memory, traces."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from plugin_runtimes import BUILD, RUNTIMES, placement, registered, runtime, session_on

LIBRARY = BUILD / "plugins" / "opencl" / "libtenon_opencl.so"
PROVIDER = "OpenCLExecutionProvider"


@pytest.fixture(scope="module", params=RUNTIMES)
def module(request: pytest.FixtureRequest):
    return runtime(request.param)


@pytest.fixture(scope="module")
def devices(module) -> Iterator[list]:
    with registered(module, LIBRARY, PROVIDER) as found:
        if not found:
            pytest.skip("no OpenCL device: Debian has one in pocl-opencl-icd")
        yield found[:1]


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def node(op: str, inputs: list, outputs: int = 1, opset: int = 17, domain: str = "", **attributes):
    """A model of one node. Inputs that are (array,) are constants, None are absent."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    constants = [
        numpy_helper.from_array(x[0], name)
        for name, x in zip(names, inputs, strict=True)
        if isinstance(x, tuple)
    ]
    feeds = {name: x for name, x in zip(names, inputs, strict=True) if isinstance(x, np.ndarray)}
    return graph(
        [helper.make_node(op, names, results, domain=domain, **attributes)],
        feeds,
        results,
        constants,
        opset,
    ), feeds


def graph(nodes: list, feeds: dict, results: list, constants: list, opset: int = 17) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=opsets, ir_version=9).SerializeToString()


def check(module, devices: list, model: bytes, feeds: dict, tolerance: float = 2e-5) -> None:
    """All of the model is claimed, and its results are the CPU's within the tolerance, which is of
    the largest element."""
    session = session_on(module, devices, model, graph_optimization_level=unoptimized(module))
    assert list(placement(session)) == [PROVIDER]
    expected = on_cpu(module, model).run(None, feeds)
    for _ in range(2):
        for got, wanted in zip(session.run(None, feeds), expected, strict=True):
            assert got.dtype == wanted.dtype
            assert got.shape == wanted.shape
            if wanted.dtype == np.float32:
                finite = wanted[np.isfinite(wanted)]
                scale = float(np.abs(finite).max(initial=1))
                np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * scale)
            else:
                np.testing.assert_array_equal(got, wanted)


def on_cpu(module, model: bytes):
    return module.InferenceSession(model, providers=["CPUExecutionProvider"])


def unoptimized(module):
    return module.GraphOptimizationLevel.ORT_DISABLE_ALL


X = floats(2, 3, 5, 7)
ROW = floats(7, seed=1)
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -3, 0.5], np.float32)
IMAGE = floats(2, 6, 9, 11)
MASK = floats(2, 3, 5, 7, seed=5) > 0

CASES = {
    **{
        op: (op, [np.concatenate([SPECIAL, floats(100)])], {})
        for op in "Abs Neg Exp Sqrt Reciprocal Floor Ceil Round Sin Cos Tanh Erf Sigmoid Relu "
        "Softplus Softsign HardSwish LeakyRelu Elu Selu HardSigmoid".split()
    },
    "Log": ("Log", [np.abs(floats(100)) + 0.1], {}),
    **{op: (op, [X, ROW], {}) for op in "Add Sub Mul Div Max Min Greater LessOrEqual".split()},
    "Add both broadcast": ("Add", [floats(3, 1, 7), floats(2, 1, 5, 1)], {}),
    "Add scalar": ("Add", [X, (np.float32(3),)], {}),
    "Add of nothing": ("Add", [floats(0, 3), floats(1, 3)], {}),
    "Add int64": ("Add", [integers(1, 2, 3), integers(4, 5, 1 << 40)], {}),
    "Equal int64": ("Equal", [integers(1, 2, 3), integers(1, 5, 3)], {}),
    "And": ("And", [MASK, MASK[:, :1]], {}),
    "Not": ("Not", [MASK], {}),
    "Pow": ("Pow", [np.abs(X), (np.float32(1.7),)], {}),
    "Pow 2": ("Pow", [X, (np.float32(2),)], {}),
    "PRelu": ("PRelu", [X, floats(3, 1, 1)], {}),
    "Sum": ("Sum", [X, ROW, X], {}),
    "Mean": ("Mean", [X, ROW, X], {}),
    "Where": ("Where", [MASK, X, ROW], {}),
    "Cast to int": ("Cast", [X * 10], {"to": TensorProto.INT64}),
    "Cast to bool": ("Cast", [np.round(X)], {"to": TensorProto.BOOL}),
    "Cast to float": ("Cast", [MASK], {"to": TensorProto.FLOAT}),
    "Clip": ("Clip", [X, (np.float32(-0.5),), (np.float32(0.7),)], {}),
    "Clip above": ("Clip", [X, None, (np.float32(0.7),)], {}),
    "Gelu": ("Gelu", [X], {"opset": 20}),
    "Gelu tanh": ("Gelu", [X], {"opset": 20, "approximate": "tanh"}),
    "FastGelu": ("FastGelu", [X, ROW], {"domain": "com.microsoft"}),
    "BatchNormalization": (
        "BatchNormalization",
        [X, floats(3), floats(3, seed=1), floats(3, seed=2), np.abs(floats(3, seed=3))],
        {},
    ),
    "MatMul": ("MatMul", [floats(37, 70), floats(70, 131, seed=1)], {}),
    "MatMul batches": ("MatMul", [floats(2, 1, 5, 17), floats(3, 17, 6, seed=1)], {}),
    "MatMul vectors": ("MatMul", [floats(17), floats(17, seed=1)], {}),
    "MatMul matrix vector": ("MatMul", [floats(4, 5, 17), floats(17, seed=1)], {}),
    "Gemm": (
        "Gemm",
        [floats(20, 33), (floats(40, 20, seed=1),), (floats(40, seed=2),)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
    "Conv": (
        "Conv",
        [IMAGE, (floats(16, 6, 3, 3, seed=1),), (floats(16, seed=2),)],
        {"pads": [1, 1, 1, 1], "strides": [2, 1]},
    ),
    "Conv 1x1": ("Conv", [IMAGE, (floats(20, 6, 1, 1, seed=1),)], {}),
    "Conv dilated": (
        "Conv",
        [IMAGE, (floats(9, 6, 3, 2, seed=1),)],
        {"dilations": [2, 3], "pads": [0, 2, 1, 0]},
    ),
    "Conv same": (
        "Conv",
        [IMAGE, (floats(9, 6, 4, 3, seed=1),)],
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
    "Conv groups": ("Conv", [IMAGE, (floats(18, 3, 3, 3, seed=1),)], {"group": 2}),
    "Conv depthwise": (
        "Conv",
        [IMAGE, (floats(6, 1, 3, 3, seed=1),), (floats(6, seed=2),)],
        {"group": 6, "pads": [1, 1, 1, 1]},
    ),
    "Conv 1-D": ("Conv", [floats(2, 4, 50), (floats(8, 4, 5, seed=1),)], {"strides": [3]}),
    "MaxPool": ("MaxPool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "MaxPool padded": ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "AveragePool": ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1]}),
    "AveragePool with pads": (
        "AveragePool",
        [IMAGE],
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    "GlobalAveragePool": ("GlobalAveragePool", [IMAGE], {}),
    "GlobalMaxPool": ("GlobalMaxPool", [IMAGE], {}),
    **{
        op: (op, [X], {"axes": [1, -1], "keepdims": 0})
        for op in "ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
        "ReduceLogSumExp".split()
    },
    "ReduceSum": ("ReduceSum", [X, (integers(2),)], {}),
    "ReduceMean all": ("ReduceMean", [X], {}),
    "ArgMax": ("ArgMax", [X], {"axis": 1, "keepdims": 0}),
    "ArgMin last": ("ArgMin", [np.round(X)], {"axis": -1, "select_last_index": 1}),
    "Softmax": ("Softmax", [floats(4, 1000)], {}),
    "Softmax axis 1": ("Softmax", [X], {"axis": 1}),
    "Softmax 11": ("Softmax", [X], {"axis": 2, "opset": 11}),
    "LogSoftmax": ("LogSoftmax", [X], {}),
    "LayerNormalization": ("LayerNormalization", [X, ROW, floats(7, seed=2)], {}),
    "LayerNormalization axis": ("LayerNormalization", [X, floats(5, 7)], {"axis": 2}),
    "InstanceNormalization": ("InstanceNormalization", [X, floats(3), floats(3, seed=1)], {}),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        [floats(2, 5, 8), floats(2, 5, 8, seed=1), floats(8), floats(8, seed=2), floats(8, seed=3)],
        {"domain": "com.microsoft"},
    ),
    "Reshape": ("Reshape", [X, (integers(0, -1, 5),)], {}),
    "Flatten": ("Flatten", [X], {"axis": 2}),
    "Squeeze": ("Squeeze", [floats(1, 3, 1, 2), (integers(0),)], {}),
    "Unsqueeze": ("Unsqueeze", [X, (integers(0, -1),)], {}),
    "Transpose": ("Transpose", [X], {"perm": [2, 0, 3, 1]}),
    "Transpose int64": ("Transpose", [np.arange(12).reshape(3, 4)], {}),
    "Expand": ("Expand", [floats(3, 1), (integers(2, 1, 6),)], {}),
    "Slice": ("Slice", [X, (integers(1, -2),), (integers(100, -6),), (integers(2, 3),),
                        (integers(2, -2),)], {}),
    "Split": ("Split", [X, (integers(2, 5),)], {"axis": 3, "outputs": 2}),
    "Concat": ("Concat", [X, floats(2, 1, 5, 7, seed=1), X], {"axis": 1}),
    "LRN": ("LRN", [IMAGE], {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.5}),
    "LRN across all": ("LRN", [floats(2, 3, 4, 1)], {"size": 9, "alpha": 0.3}),
    **{
        f"Pad {mode}": ("Pad", [X, (integers(0, 1, 2, 0, 0, 0, 1, 3),)], {"mode": mode})
        for mode in ("reflect", "edge")
    },
    "Pad wrap": (
        "Pad", [X, (integers(0, 1, 9, 0, 0, 0, 1, 3),)], {"mode": "wrap", "opset": 19}
    ),
    "Pad int64": ("Pad", [integers(5, 6, 7), (integers(2, 1),)], {"mode": "reflect"}),
    "Pad": ("Pad", [X, (integers(0, 1, 2, 0, 0, 0, 1, 3),), (np.float32(2.5),)], {}),
    "Gather": ("Gather", [(floats(10, 6),), integers(3, -1, 0, 9).reshape(2, 2)], {}),
    "Gather axis 1": ("Gather", [X, np.array([2, 0], np.int32)], {"axis": 1}),
    "ConstantOfShape": ("ConstantOfShape", [(integers(3, 4),)], {}),
}  # fmt: skip


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


def residual() -> tuple[bytes, dict]:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["c"]),
        helper.make_node("Conv", ["c", "w"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "x"], ["e"]),
        helper.make_node("Relu", ["e"], ["y0"]),
        helper.make_node("GlobalAveragePool", ["y0"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y1"]),
    ]
    constants = [
        numpy_helper.from_array(floats(8, 8, 3, 3, seed=1), "w"),
        numpy_helper.from_array(floats(8, seed=2), "b"),
    ]
    feeds = {"x": floats(2, 8, 12, 10)}
    return graph(nodes, feeds, ["y0", "y1"], constants), feeds


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
    # PR-32: which node a kernel is of.
    nodes = {event["name"] for event in events if event["cat"] == "Node"}
    causes = set()
    for event in events:
        if event["cat"] == "Kernel" and event["name"] == "convolution":
            # Clocks are aligned once, to some tens of microseconds.
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
