"""Models that no exporter writes: an error describes the problem, and nothing crashes."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import graphs
import numpy as np
import onnx
import pytest
import tenon
from onnx import GraphProto, TensorProto, helper, numpy_helper
from tenon.capi.onnxruntime_pybind11_state import InvalidArgument, InvalidGraph

FLOAT = TensorProto.FLOAT
TRAINING = "ai.onnx.preview.training"
MISSING = "is required and missing"


def body(nodes: list, inputs: list, outputs: list) -> GraphProto:
    return helper.make_graph(
        nodes, "body", [graphs.tensor(name) for name in inputs], [graphs.tensor(y) for y in outputs]
    )


def test_a_shape_computation_may_know_no_elements() -> None:
    """The last dimension of a picture, taken of a row."""
    constants = {"from": [3], "to": [4], "block": [2]}
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "from", "to"], ["width"]),
        helper.make_node("Mul", ["width", "block"], ["y"]),
    ]
    model = helper.make_graph(
        nodes,
        "graph",
        [graphs.tensor("x", shape=[2, 3])],
        [graphs.tensor("y", TensorProto.INT64)],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 13)]
    content = helper.make_model(model, opset_imports=opsets, ir_version=8).SerializeToString()
    (y,) = tenon.InferenceSession(content).run(None, {"x": np.zeros((2, 3), np.float32)})
    assert y.shape == (0,)


@pytest.mark.parametrize("op_type", ["Identity", "Relu", "Shape", "Dropout", "NonZero"])
def test_a_call_leaves_out_what_the_function_needs(op_type: str) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    node = helper.make_node(op_type, ["a"], ["b"])
    function = helper.make_function("local", "F", ["a"], ["b"], [node], opsets[:1])
    graph = helper.make_graph(
        [helper.make_node("F", [""], ["y"], domain="local")],
        "graph",
        [graphs.tensor("x")],
        [graphs.tensor("y")],
    )
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=9)
    with pytest.raises(InvalidGraph, match=MISSING):
        tenon.InferenceSession(model.SerializeToString())


CALLS = {
    "Scan": (["", "x"], ["y", "z"], {"num_scan_inputs": 1}, 16),
    "Scan-8": (["", "", "x"], ["y", "z"], {"num_scan_inputs": 1}, 8),
    "SequenceMap": (["xs", ""], ["y"], {}, 17),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_of_many_inputs_is_left_out(name: str) -> None:
    inputs, outputs, attributes, opset = CALLS[name]
    inner = body([helper.make_node("Add", ["a", "b"], ["c"])], ["a", "b"], ["c"])
    if len(outputs) == 2:
        inner.output.append(graphs.tensor("b"))
    nodes = [helper.make_node(name.partition("-")[0], inputs, outputs, body=inner, **attributes)]
    if name == "SequenceMap":
        nodes.insert(0, helper.make_node("SequenceConstruct", ["x"], ["xs"]))
    graph = helper.make_graph(nodes, "graph", [graphs.tensor("x")], [])
    for output in outputs:
        graph.output.append(helper.ValueInfoProto(name=output))
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with pytest.raises(InvalidGraph, match=MISSING):
        tenon.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("left_out", [3, 4])
def test_an_optimizer_has_no_gradient(left_out: int) -> None:
    names = ["rate", "updates", "x", "gradient", "momentum"]
    types = [FLOAT, TensorProto.INT64, FLOAT, FLOAT, FLOAT]
    given = [("" if i == left_out else name) for i, name in enumerate(names)]
    attributes = {"alpha": 0.9, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard"}
    node = helper.make_node("Momentum", given, ["y", "z"], domain=TRAINING, **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [graphs.tensor(name, of) for name, of in zip(names, types, strict=True)],
        [graphs.tensor("y"), graphs.tensor("z")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(TRAINING, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    with pytest.raises(InvalidGraph, match=MISSING):
        tenon.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("shape", [(), (4,), (2, 3, 3), (1, 1, 2, 2)])
def test_a_kernel_checks_a_rank_unknown_before_the_run(shape: tuple[int, ...]) -> None:
    domain = "com.microsoft"
    graph = helper.make_graph(
        [helper.make_node("DynamicTimeWarping", ["x"], ["y"], domain=domain)],
        "graph",
        [graphs.tensor("x")],
        [graphs.tensor("y", TensorProto.INT32)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = tenon.InferenceSession(model.SerializeToString())
    with pytest.raises(InvalidArgument, match=r"expected \[m, n\] or \[1, m, n\]"):
        session.run(None, {"x": np.zeros(shape, np.float32)})


def test_a_normalization_of_bytes_of_unknown_shape() -> None:
    """Its floats were taken for doubles."""
    domain = "com.microsoft"
    inputs = {
        "x": np.arange(-96, 96, dtype=np.int8).reshape(3, 64),
        "x_scale": np.float32(0.5),
        "gamma": np.ones(64, np.float32),
        "beta": np.zeros(64, np.float32),
        "y_scale": np.float32(0.25),
    }
    node = helper.make_node(
        "QOrderedLayerNormalization", list(inputs), ["y"], domain=domain, order_X=1, order_Y=1
    )
    types = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in inputs.items()}
    graph = helper.make_graph(
        [node],
        "graph",
        [graphs.tensor(name, of) for name, of in types.items()],
        [graphs.tensor("y", TensorProto.INT8)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = tenon.InferenceSession(model.SerializeToString())
    (y,) = session.run(None, {name: np.asarray(value) for name, value in inputs.items()})
    x = inputs["x"].astype(np.float64) * 0.5
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    assert np.abs(y - normal / 0.25).max() <= 0.51


@pytest.mark.parametrize(
    ("k", "v"),
    [
        ((1, 3, 4, 8), (1, 3, 4, 8)),
        ((1, 2, 4, 8), (1, 2, 3, 8)),
        ((2, 2, 4, 8), (1, 2, 4, 8)),
        ((1, 2, 4, 4), (1, 2, 4, 4)),
        ((2, 4, 8), (2, 4, 8)),
        ((1, 0, 4, 8), (1, 0, 4, 8)),
    ],
)
def test_flex_attention_checks_shapes_unknown_before_the_run(k: tuple, v: tuple) -> None:
    domain = "ai.onnx.preview"
    graph = helper.make_graph(
        [helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=domain)],
        "graph",
        [graphs.tensor(name) for name in "qkv"],
        [graphs.tensor("y")],
    )
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    session = tenon.InferenceSession(model.SerializeToString())
    shapes = {"q": (1, 4, 4, 8), "k": k, "v": v}
    with pytest.raises(InvalidArgument, match=r"do not fit together|multiple of|rank"):
        session.run(None, {name: np.ones(shape, np.float32) for name, shape in shapes.items()})


def test_an_operator_that_its_opset_lacks_has_no_input() -> None:
    """Attention has no schema before opset 23 that would require one."""
    node = helper.make_node("Attention", ["", "x", "x"], ["y"])
    graph = helper.make_graph([node], "graph", [graphs.tensor("x")], [graphs.tensor("y")])
    opsets = [helper.make_opsetid("", 21)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    with pytest.raises(Exception, match="Attention"):
        tenon.InferenceSession(content)


@pytest.mark.parametrize(("limit", "expected"), [(None, []), ("1000000", ["ConstantOfShape"])])
def test_constants_grow_to_a_limit(
    limit: str | None, expected: list[str], tmp_path: pathlib.Path
) -> None:
    """S-6: the nodes of 4 MB are computed in advance, or left to runs."""
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 19]>
        made () => (float[n, m] y) <int64[2] sizes = {1000, 1000}> {
          zeros = ConstantOfShape(sizes)
          ones = Cos(zeros)
          y = Neg(ones)
        }""")
    options = tenon.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_ENABLE_BASIC
    if limit is not None:
        options.add_session_config_entry("tenon.constant_folding_bytes", limit)
    session = tenon.InferenceSession(model.SerializeToString(), options)
    left = [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert [name for name in left if name == "ConstantOfShape"] == expected
    assert (session.run(None, {})[0] == np.full((1000, 1000), -1, np.float32)).all()


WIDE = "int64[1] s = {225000000}, float v = {1}, float[1] w = {1}"
GROWING = {
    "uniform": (WIDE, "t = ConstantOfShape (s)"),
    "expanded": (WIDE, "t = Expand (v, s)"),
    "tiled": (WIDE, "t = Tile (w, s)"),
    "range": (
        "float a = {0}, float b = {225000000}, float d = {1}",
        "t = Range (a, b, d)",
    ),
    # Each value is no larger than the one before.
    "chain": (
        "int64[1] s = {8000000}",
        "\n".join(
            [
                "z = ConstantOfShape (s)",
                "t0 = Exp (z)",
                *(f"t{i + 1} = {('Sin', 'Cos')[i % 2]} (t{i})" for i in range(100)),
                "t = Tanh (t100)",
            ]
        ),
    ),
    # No value is larger than the one that all are made of.
    "fan": (
        "int64[1] s = {8000000}",
        "\n".join(
            [
                "z = ConstantOfShape (s)",
                "a = Exp (z)",
                *(f"t{i} = Clip (a, z{i})" for i in range(40)),
                f"t = Sum ({', '.join(f't{i}' for i in range(40))})",
            ]
        ),
    ),
    "convolution": (
        "int64[4] s = {1, 1, 2000, 2000}, int64[4] k = {1, 1, 500, 500}",
        "a = ConstantOfShape (s)\nb = ConstantOfShape (k)\n"
        "c = Exp (a)\nd = Exp (b)\nt = Conv (c, d)",
    ),
    "places": (
        "int64[3] s = {200, 200, 200}",
        "a = ConstantOfShape (s)\nb = Exp (a)\nc = NonZero (b)\nt = Cast <to = 1> (c)",
    ),
}

LOAD = """
import sys, time
import tenon

def kilobytes(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))

small, model = sys.argv[1:]
tenon.InferenceSession(small)
before = kilobytes("VmRSS")
begin = time.monotonic()
session = tenon.InferenceSession(model)
print(time.monotonic() - begin, (kilobytes("VmHWM") - before) / 1024)
"""


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs Linux")
@pytest.mark.parametrize("name", GROWING)
def test_a_small_model_takes_little_to_load(name: str, tmp_path: pathlib.Path) -> None:
    """S-6: a model of a kilobyte takes at most 64 MB and a second."""
    constants, nodes = GROWING[name]
    clips = "".join(f", float z{i} = {{{i}}}" for i in range(40)) if name == "fan" else ""
    model = onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["": 19]>
        made () => (float y) <{constants}{clips}> {{
          {nodes}
          n = Neg (t)
          y = ReduceSum <keepdims = 0> (n)
        }}""")
    paths = [tmp_path / "small.onnx", tmp_path / "model.onnx"]
    paths[0].write_bytes(graphs.double())
    paths[1].write_bytes(model.SerializeToString())
    assert paths[1].stat().st_size < 5000
    run = subprocess.run(
        [sys.executable, "-c", LOAD, *map(str, paths)], capture_output=True, text=True, check=True
    )
    seconds, mebibytes = map(float, run.stdout.split())
    assert seconds < 1
    assert mebibytes < 64


SHORTENED = """
import os, sys
import numpy as np
import tenon

options = tenon.SessionOptions()
options.add_session_config_entry("tenon.maps_files", "0")
session = tenon.InferenceSession(sys.argv[1], options)
for path in sys.argv[1:]:
    os.truncate(path, 0)
x = np.ones((1, 512), np.float32)
for _ in range(3):
    assert (session.run(None, {"x": x})[0] == 512 * 3).all()
print("alive")
"""


def test_copied_files_may_be_shortened(tmp_path: pathlib.Path) -> None:
    """S-11: the weights in the model's file, and those beside it."""
    weights = {name: np.full((512, 512), k, np.float32) for name, k in (("w", 1), ("v", 2))}
    model = graphs.model(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("MatMul", ["x", "v"], ["b"]),
            helper.make_node("Add", ["a", "b"], ["y"]),
        ],
        [graphs.tensor("x", shape=["n", 512])],
        [graphs.tensor("y", shape=["n", 512])],
        initializers=[numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    proto = onnx.load_from_string(model)
    onnx.external_data_helper.set_external_data(proto.graph.initializer[1], "weights.bin")
    (tmp_path / "weights.bin").write_bytes(weights["v"].tobytes())
    proto.graph.initializer[1].ClearField("raw_data")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    arguments = [sys.executable, "-c", SHORTENED, str(path), str(tmp_path / "weights.bin")]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert run.stdout == "alive\n", (run.returncode, run.stderr)


@pytest.mark.parametrize("numbers", [(1, 9, 2.5), (0, 3, 0.5), (8, -8, -1)])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_a_range_of_narrow_constants(kind: int, numbers: tuple[float, ...]) -> None:
    """Its shape function read them as floats, with what lay behind them."""
    graph = helper.make_graph(
        [helper.make_node("Range", ["a", "b", "c"], ["y"])],
        "graph",
        [],
        [graphs.tensor("y", kind)],
        [helper.make_tensor(name, kind, [], [x]) for name, x in zip("abc", numbers, strict=True)],
    )
    opsets = [helper.make_opsetid("", 27)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=13).SerializeToString()
    options = tenon.SessionOptions()
    options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = tenon.InferenceSession(content, options)
    assert session.get_outputs()[0].shape == [None]
    (y,) = session.run(None, {})
    np.testing.assert_array_equal(y.astype(np.float32), np.arange(*numbers, dtype=np.float32))
