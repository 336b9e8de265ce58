"""Dumps of nodes' inputs and outputs, which the environment requests. Requirements:
partial-execution.
"""

import os
import re
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

PREFIX = "ORT_DEBUG_NODE_IO_"
RNG = np.random.default_rng(3)
X = RNG.standard_normal((3, 4)).astype(np.float32)
W = RNG.standard_normal((4, 5)).astype(np.float32)
MANY = np.arange(1000, dtype=np.float32).reshape(10, 100)

# Runs a model twice on arrays, both given as paths.
RUN = """
import sys
import numpy as np
import tenon

options = tenon.SessionOptions()
options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
session = tenon.InferenceSession(sys.argv[1], options)
feeds = dict(np.load(sys.argv[2]))
for _ in range(2):
    try:
        session.run(None, feeds)
    except Exception as error:
        print(f"failed: {error}")
"""

TRAIN = """
import sys
import numpy as np
import tenon
from tenon.capi._pybind_state import OrtValueVector, PartialGraphExecutionState, TrainingAgent

options = tenon.SessionOptions()
options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
session = tenon.InferenceSession(sys.argv[1], options)
cpu = tenon.OrtDevice.make("cpu", 0)
agent = TrainingAgent(session, ["x"], [cpu], ["dx"], [cpu])
x = tenon.OrtValue.ortvalue_from_numpy(np.load(sys.argv[2])["x"])
for _ in range(2):
    state = PartialGraphExecutionState()
    for run in (agent.run_forward, agent.run_backward):
        feeds = OrtValueVector()
        feeds.extend([x])
        run(feeds, OrtValueVector(), state)
"""


def tensor(name, shape=None, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def save(folder, nodes, inputs, outputs, constants=None):
    initializers = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def layer(folder):
    """z = x w, y = relu(z)"""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z/1:0"], "product"),
        helper.make_node("Relu", ["z/1:0"], ["y"], "relu"),
    ]
    return save(folder, nodes, [tensor("x", ["n", 4])], [tensor("y", ["n", 5])], {"w": W})


def run(folder, model, feeds, script=RUN, **variables):
    """The standard output of the script, with these variables and no others of their kind."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith((PREFIX, "OMPI_"))}
    for name, value in variables.items():
        environment[name if name.startswith("OMPI_") else PREFIX + name] = str(value)
    np.savez(folder / "feeds.npz", **feeds)
    done = subprocess.run(
        [sys.executable, "-c", script, model, folder / "feeds.npz"],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def parse(text):
    """Per node: operator, name, what follows, and (Input|Output, index) -> (value name, lines)."""
    nodes = []
    for block in text.split("-----------\n")[1:]:
        op_type, name = re.match(r"(\S+) node: (.*)\n", block).groups()
        values = {}
        found = re.finditer(
            r"^(Input|Output) (\d+) Name: (.*)\n((?: .*\n)*)", block, flags=re.MULTILINE
        )
        for what, index, value, lines in (match.groups() for match in found):
            values[what, int(index)] = (value, lines)
        nodes.append((op_type, name, block, values))
    return nodes


def array_in(lines):
    """The array in the lines of a value."""
    shape = [int(dim) for dim in re.search(r"Shape: \{(.*)\}", lines)[1].split(",") if dim]
    body = lines.split("}\n", 1)[1].split("Min:")[0]
    numbers = re.findall(r"[-+.\w]+", body)
    return np.array(numbers, dtype=np.float32).reshape(shape)


def test_nothing_is_shown_unless_asked(tmp_path):
    """TX-72"""
    assert run(tmp_path, layer(tmp_path), {"x": X}) == ""
    assert run(tmp_path, layer(tmp_path), {"x": X}, OMPI_COMM_WORLD_RANK=2) == ""


def test_shapes_and_placement_are_the_default(tmp_path):
    """TX-11, TX-73: placement only in the first run"""
    text = run(tmp_path, layer(tmp_path), {"x": X}, DUMP_INPUT_DATA=0)
    product = "-----------\nMatMul node: product\n{}Input 0 Name: x\n Shape: {{3,4}}\n"
    product += "Input 1 Name: w\n Shape: {{4,5}}\nOutput 0 Name: z/1:0\n Shape: {{3,5}}\n"
    relu = "-----------\nRelu node: relu\n{}Input 0 Name: z/1:0\n Shape: {{3,5}}\n"
    relu += "Output 0 Name: y\n Shape: {{3,5}}\n"
    both = product + relu
    placed = "Placement: CPUExecutionProvider\n"
    assert text == both.format(placed, placed) + both.format("", "")


def test_values_are_those_of_numpy(tmp_path):
    """TX-73: every run shows them, also the weights that kernels keep packed"""
    wanted = {"DUMP_INPUT_DATA": 1, "DUMP_OUTPUT_DATA": 1, "DUMP_STATISTICS_DATA": 1}
    nodes = parse(run(tmp_path, layer(tmp_path), {"x": X}, **wanted))
    assert [(op_type, name) for op_type, name, *_ in nodes] == [
        ("MatMul", "product"),
        ("Relu", "relu"),
    ] * 2
    for _, _, _, values in nodes:
        for name, lines in values.values():
            array = array_in(lines)
            expected = {"x": X, "w": W, "z/1:0": X @ W, "y": np.maximum(X @ W, 0)}[name]
            if name in ("x", "w"):
                np.testing.assert_array_equal(array, expected)
            np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)
            shown = re.search(r"Min: (\S+), Max: (\S+), Mean: (\S+), NaN: 0, Inf: 0\n", lines)
            statistics = [array.min(), array.max(), array.mean(dtype=np.float64)]
            np.testing.assert_allclose([float(v) for v in shown.groups()], statistics, rtol=1e-6)


def test_statistics_of_what_is_no_number(tmp_path):
    """TX-73"""
    nodes = [helper.make_node("Sqrt", ["x"], ["y"], "root")]
    model = save(tmp_path, nodes, [tensor("x", [4])], [tensor("y", [4])])
    x = np.array([-1, 4, np.inf, 9], np.float32)
    text = run(tmp_path, model, {"x": x}, DUMP_STATISTICS_DATA=1)
    with np.errstate(invalid="ignore"):
        y = np.sqrt(x)
    expected = f" Min: {np.nanmin(y):g}, Max: {np.nanmax(y):g}, Mean: {np.nanmean(y):g}, "
    assert expected + f"NaN: {np.isnan(y).sum()}, Inf: {np.isinf(y).sum()}\n" in text


@pytest.mark.parametrize(("threshold", "edge"), [(None, None), (50, 2), (0, None), (1000, 1)])
def test_long_values_are_abbreviated_as_numpy_does(tmp_path, threshold, edge):
    """TX-73"""
    nodes = [helper.make_node("Neg", ["x"], ["y"], "minus")]
    model = save(tmp_path, nodes, [tensor("x", [10, 100])], [tensor("y", [10, 100])])
    variables = {"DUMP_INPUT_DATA": 1}
    if threshold is not None:
        variables["SNIPPET_THRESHOLD"] = threshold
    if edge is not None:
        variables["SNIPPET_EDGE_ITEMS"] = edge
    ((name, lines),) = [
        values["Input", 0] for *_, values in parse(run(tmp_path, model, {"x": MANY}, **variables))
    ][:1]
    assert name == "x"
    expected = np.array2string(
        MANY,
        threshold=sys.maxsize if threshold == 0 else threshold or 200,
        edgeitems=edge or 3,
        separator=", ",
        max_line_width=10**6,
        formatter={"float": lambda number: f"{number:g}"},
    )
    assert lines.split("}\n", 1)[1].split() == expected.split()


def test_filters_choose_nodes(tmp_path):
    """TX-72"""
    for variables, names in [
        ({"NAME_FILTER": "relu;other"}, ["relu"]),
        ({"OP_TYPE_FILTER": "MatMul;Relu"}, ["product", "relu"]),
        ({"OP_TYPE_FILTER": "MatMul", "NAME_FILTER": "relu"}, []),
    ]:
        nodes = parse(run(tmp_path, layer(tmp_path), {"x": X}, **variables))
        assert [name for _, name, *_ in nodes] == names * 2, variables


def test_files_hold_tensors(tmp_path):
    """TX-74"""
    folder = tmp_path / "values"
    folder.mkdir()
    wanted = {"DUMP_INPUT_DATA": 1, "DUMP_OUTPUT_DATA": 1, "DUMP_DATA_DESTINATION": "files"}
    wanted["OUTPUT_DIR"] = folder
    filtered = run(tmp_path, layer(tmp_path), {"x": X}, OP_TYPE_FILTER="MatMul", **wanted)
    assert "Output 0 Name: z/1:0\n Shape: {3,5}\n-----" in filtered  # and no data
    expected = {"x": X, "w": W, "z_1_0": X @ W}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{name}.tensorproto" for name in expected
    )
    for name, array in expected.items():
        read = onnx.load_tensor_from_string((folder / f"{name}.tensorproto").read_bytes())
        assert read.name == ("z/1:0" if name == "z_1_0" else name)
        np.testing.assert_allclose(numpy_helper.to_array(read), array, rtol=1e-5, atol=1e-6)
    wanted |= {"APPEND_RANK_TO_FILE_NAME": 1, "NAME_FILTER": "relu"}
    run(tmp_path, layer(tmp_path), {"x": X}, **wanted)
    run(tmp_path, layer(tmp_path), {"x": X}, OMPI_COMM_WORLD_RANK=5, **wanted)
    assert (folder / "y_default_rank_0.tensorproto").is_file()
    assert (folder / "y_rank_5.tensorproto").is_file()


def test_files_of_strings_and_of_the_current_folder(tmp_path, monkeypatch):
    """TX-74"""
    nodes = [helper.make_node("Identity", ["x"], ["y"], "same")]
    kind = TensorProto.STRING
    model = save(tmp_path, nodes, [tensor("x", [2], kind)], [tensor("y", [2], kind)])
    monkeypatch.chdir(tmp_path)
    wanted = {"DUMP_INPUT_DATA": 1, "DUMP_DATA_DESTINATION": "files"}
    wanted["DUMPING_DATA_TO_FILES_FOR_ALL_NODES_IS_OK"] = 1
    run(tmp_path, model, {"x": np.array(["ä", ""])}, **wanted)
    read = onnx.load_tensor_from_string((tmp_path / "x.tensorproto").read_bytes())
    assert list(read.string_data) == ["ä".encode(), b""]


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"DUMP_DATA_DESTINATION": "printer"}, "DUMP_DATA_DESTINATION"),
        ({"DUMP_DATA_DESTINATION": "sqlite"}, "cannot write 'sqlite'"),
        (
            {"DUMP_DATA_DESTINATION": "files", "DUMP_OUTPUT_DATA": 1},
            "DUMPING_DATA_TO_FILES_FOR_ALL_NODES_IS_OK",
        ),
        ({"SNIPPET_THRESHOLD": "few"}, "SNIPPET_THRESHOLD"),
        ({"DUMP_INPUT_DATA": 2}, "DUMP_INPUT_DATA"),
        (
            {
                "DUMP_DATA_DESTINATION": "files",
                "DUMP_INPUT_DATA": 1,
                "NAME_FILTER": "relu",
                "OUTPUT_DIR": "/no such folder",
            },
            "/no such folder/z_1_0.tensorproto",
        ),
    ],
)
def test_mistakes_fail_runs_and_name_the_variable(tmp_path, variables, named):
    """TX-75, TX-76"""
    text = run(tmp_path, layer(tmp_path), {"x": X}, **variables)
    failures = re.findall(r"^failed: .*", text, flags=re.MULTILINE)
    assert len(failures) == 2, text
    assert all(named in failure for failure in failures)


def test_what_is_no_tensor_is_said_so(tmp_path):
    """TX-73"""
    nodes = [
        helper.make_node("Clip", ["x", "", "most"], ["c"], "clip"),
        helper.make_node("SplitToSequence", ["c"], ["s"], "split", axis=0),
        helper.make_node("SequenceLength", ["s"], ["count"], "length"),
        helper.make_node("Optional", [], ["o"], "none", type=helper.make_tensor_type_proto(1, [2])),
        helper.make_node("OptionalHasElement", ["o"], ["has"], "has"),
        helper.make_node("Dropout", ["x"], ["kept", ""], "dropout"),
    ]
    outputs = [tensor("count", [], TensorProto.INT64), tensor("has", [], TensorProto.BOOL)]
    most = {"most": np.float32(1)}
    model = save(tmp_path, nodes, [tensor("x", [2])], [*outputs, tensor("kept", [2])], most)
    x = np.array([0.5, 2], np.float32)
    text = run(tmp_path, model, {"x": x}, DUMP_INPUT_DATA=1, DUMP_OUTPUT_DATA=1)
    assert "Input 1 is optional and left out\nInput 2 Name: most\n Shape: {}\n 1\n" in text
    assert "Output 0 Name: s\n is no tensor but a sequence\n" in text
    assert "Input 0 Name: s\n is no tensor but a sequence\n" in text
    assert "Output 0 Name: o\n is an empty optional\n" in text
    assert "Output 0 Name: count\n Shape: {}\n 2\n" in text
    assert "Output 0 Name: has\n Shape: {}\n false\n" in text


def test_nodes_of_subgraphs_are_shown(tmp_path):
    """TX-72, TX-73: the outputs of the outer node name it again"""
    twice = helper.make_graph(
        [helper.make_node("Add", ["sum_in", "x"], ["sum_out"], "add")],
        "body",
        [
            tensor("i", [], TensorProto.INT64),
            tensor("go_in", [], TensorProto.BOOL),
            tensor("sum_in", [2]),
        ],
        [tensor("go_in", [], TensorProto.BOOL), tensor("sum_out", [2])],
    )
    nodes = [helper.make_node("Loop", ["three", "", "x"], ["y"], "repeat", body=twice)]
    model = save(tmp_path, nodes, [tensor("x", [2])], [tensor("y", [2])], {"three": np.int64(3)})
    x = np.array([1, -2], np.float32)
    nodes = parse(run(tmp_path, model, {"x": x}, DUMP_OUTPUT_DATA=1))
    inside = [node for node in nodes if node[1] == "add"]
    assert [array_in(values["Output", 0][1]).tolist() for *_, values in inside] == [
        ((2 + i) * x).tolist() for i in range(3)
    ] * 2
    outer = [values for _, name, _, values in nodes if name == "repeat"]
    assert [list(values) for values in outer[1::2]] == [[("Output", 0)]] * 2
    np.testing.assert_array_equal(array_in(outer[1]["Output", 0][1]), 4 * x)
    assert [("Placement" in block) for _, _, block, _ in inside] == [True] + [False] * 5


def test_both_halves_of_a_training_run_are_shown(tmp_path):
    """TX-7, TX-11, TX-73: as one run, without the YieldOp"""
    yields = helper.make_node("YieldOp", ["y"], ["dy"], "yield", domain="com.microsoft")
    yields.attribute.append(
        helper.make_attribute("full_shape_outputs", [0], None, AttributeProto.INTS)
    )
    nodes = [
        helper.make_node("Neg", ["x"], ["y"], "forward"),
        yields,
        helper.make_node("Neg", ["dy"], ["dx"], "backward"),
    ]
    model = save(tmp_path, nodes, [tensor("x", [2])], [tensor("dx", [2])])
    x = np.array([1, -2], np.float32)
    shown = parse(run(tmp_path, model, {"x": x}, TRAIN, DUMP_OUTPUT_DATA=1))
    assert [name for _, name, *_ in shown] == ["forward", "backward"] * 2
    assert ["Placement" in block for _, _, block, _ in shown] == [True, True, False, False]
    for *_, values in shown:
        np.testing.assert_array_equal(array_in(values["Output", 0][1]), -x)
