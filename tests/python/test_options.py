"""SessionOptions and RunOptions."""

import json
import pathlib
import types

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import helper
from tenon.capi import onnxruntime_pybind11_state as state

X = np.ones((2, 3), np.float32)

# Property of SessionOptions, its default, another value.
SESSION_PROPERTIES = (
    ("enable_cpu_mem_arena", True, False),
    ("enable_mem_pattern", True, False),
    ("enable_mem_reuse", True, False),
    ("enable_profiling", False, False),
    ("execution_mode", tenon.ExecutionMode.ORT_SEQUENTIAL, tenon.ExecutionMode.ORT_PARALLEL),
    (
        "graph_optimization_level",
        tenon.GraphOptimizationLevel.ORT_ENABLE_ALL,
        tenon.GraphOptimizationLevel.ORT_DISABLE_ALL,
    ),
    ("inter_op_num_threads", 0, 2),
    ("intra_op_num_threads", 0, 2),
    ("log_severity_level", -1, 3),
    ("log_verbosity_level", 0, 1),
    ("logid", "", "name"),
    ("profile_file_prefix", "onnxruntime_profile_", "trace_"),
    ("use_deterministic_compute", False, True),
)


@pytest.mark.parametrize(("name", "default", "other"), SESSION_PROPERTIES)
def test_session_options_keep_what_is_set(name: str, default: object, other: object) -> None:
    options = tenon.SessionOptions()
    assert getattr(options, name) == default
    setattr(options, name, other)
    assert getattr(options, name) == other
    session = tenon.InferenceSession(graphs.double(), options)
    assert session.get_session_options() is options
    (y,) = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, 2 * X)


def test_config_entries_are_kept_and_missing_ones_raise() -> None:
    for options, suffix in ((tenon.SessionOptions(), "session"), (tenon.RunOptions(), "run")):
        getattr(options, f"add_{suffix}_config_entry")("some.key", "1")
        assert getattr(options, f"get_{suffix}_config_entry")("some.key") == "1"
        with pytest.raises(RuntimeError, match=r"does not have configuration with key: no\.key"):
            getattr(options, f"get_{suffix}_config_entry")("no.key")


def test_free_dimensions_are_overridden() -> None:
    options = tenon.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    session = tenon.InferenceSession(graphs.double(["batch", 3]), options)
    assert session.get_inputs()[0].shape == [2, 3]


def test_writes_the_optimized_model(tmp_path: pathlib.Path) -> None:
    options = tenon.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    tenon.InferenceSession(graphs.double(), options)
    assert onnx.load(tmp_path / "optimized.onnx").graph.output[0].name == "y"


def test_the_optimized_model_is_plain_onnx(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((4, 5), np.float32)
    bias = rng.standard_normal(5, np.float32)
    graph = onnx.parser.parse_graph(
        """agraph (float[n, 4] x, float[4, 5] w, float[5] b) => (float[n, 5] y) {
             product = MatMul (x, w)
             sum = Add (product, b)
             same = Identity (sum)
             y = Relu (same)
           }"""
    )
    for name, value in (("w", weights), ("b", bias)):
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    del graph.input[1:]
    opset = onnx.helper.make_opsetid("", 13)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    options = tenon.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    x = rng.standard_normal((3, 4), np.float32)
    (y,) = tenon.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})
    saved = onnx.load(tmp_path / "optimized.onnx")
    onnx.checker.check_model(saved)
    assert [(node.domain, node.op_type) for node in saved.graph.node] == [
        ("", "MatMul"),
        ("", "Add"),
        ("", "Relu"),
    ]
    (again,) = tenon.InferenceSession(saved.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(y, again)
    np.testing.assert_allclose(y, np.maximum(x @ weights + bias, 0), rtol=1e-5, atol=1e-6)


SHAPE_CHAIN = """
<ir_version: 8, opset_import: ["": 17]>
agraph (float[n, 2, 4] x, float[3, 4] z) => (float[m, k] y, int64[2] known)
    <int64[1] begin = {2}, int64[1] end = {3}, int64[1] rest = {-1}, float root = {8}>
{
    shape = Shape (x)
    last = Slice (shape, begin, end)
    rows = Concat <axis = 0> (rest, last)
    scores = Reshape (x, rows)
    y = Div (scores, root)
    of_z = Shape (z)
    known = Mul (of_z, begin)
}
"""


def test_basic_leaves_what_tools_look_for(tmp_path: pathlib.Path) -> None:
    """Tools of onnxruntime look for them, and for divisions by the root of a head's size; only what
    depends on constants alone is folded."""

    def operators(module: types.ModuleType, level: str) -> set[str]:
        options = module.SessionOptions()
        options.graph_optimization_level = getattr(module.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(tmp_path / f"{module.__name__}.onnx")
        model = onnx.parser.parse_model(SHAPE_CHAIN).SerializeToString()
        session = module.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        feeds = {"x": np.ones((5, 2, 4), np.float32), "z": np.ones((3, 4), np.float32)}
        y, known = session.run(None, feeds)
        assert y.shape == (10, 4)
        assert list(known) == [6, 8]
        saved = onnx.load(options.optimized_model_filepath)
        return {node.op_type for node in saved.graph.node}

    basic = operators(tenon, "ORT_ENABLE_BASIC")
    assert basic >= {"Shape", "Slice", "Concat", "Reshape", "Div"}
    assert basic - {"Mul"} == operators(onnxruntime, "ORT_ENABLE_BASIC") - {"Mul"}
    assert not operators(tenon, "ORT_ENABLE_EXTENDED") & {"Slice", "Concat", "Div"}


EQUAL_SUMS = """
<ir_version: 8, opset_import: ["": 17]>
agraph (float[n] x) => (float[n] y) <float a = {2}, float b = {2}, float c = {3}>
{
    left = Add (x, a)
    right = Add (x, b)
    product = Mul (left, right)
    d = Neg (c)
    y = Div (product, d)
}
"""


@pytest.mark.parametrize("as_argument", [True, False])
@pytest.mark.parametrize(
    ("disabled", "operators"),
    [
        ([], ["Add", "Div", "Mul"]),
        (["ConstantSharing"], ["Add", "Add", "Div", "Mul"]),
        (["Other", "CommonSubexpressionElimination"], ["Add", "Add", "Div", "Mul"]),
        (["ConstantFolding", "ConstantSharing"], ["Add", "Add", "Div", "Mul", "Neg"]),
    ],
)
def test_rewrites_that_are_named_are_left_out(
    disabled: list[str], operators: list[str], as_argument: bool, tmp_path: pathlib.Path
) -> None:
    content = onnx.parser.parse_model(EQUAL_SUMS).SerializeToString()
    for package in (tenon, onnxruntime):
        path = tmp_path / f"{package.__name__}.onnx"
        options = package.SessionOptions()
        options.optimized_model_filepath = str(path)
        options.graph_optimization_level = package.GraphOptimizationLevel.ORT_ENABLE_BASIC
        if not as_argument:
            key = "optimization.disable_specified_optimizers"
            options.add_session_config_entry(key, ";".join(disabled))
        given = {"disabled_optimizers": disabled} if as_argument else {}
        package.InferenceSession(content, options, **given)
        assert sorted(node.op_type for node in onnx.load(path).graph.node) == operators, package


def test_run_options_keep_what_is_set() -> None:
    options = tenon.RunOptions()
    for name, default, other in (
        ("log_severity_level", -1, 3),
        ("log_verbosity_level", 0, 1),
        ("logid", "", "tag"),
        ("only_execute_path_to_fetches", False, True),
    ):
        assert getattr(options, name) == default
        setattr(options, name, other)
        assert getattr(options, name) == other
    (y,) = tenon.InferenceSession(graphs.double()).run(None, {"x": X}, options)
    np.testing.assert_array_equal(y, 2 * X)


def test_terminate_ends_runs_until_it_is_taken_back() -> None:
    session = tenon.InferenceSession(graphs.double())
    options = tenon.RunOptions()
    options.terminate = True
    with pytest.raises(state.Fail, match="terminate"):
        session.run(None, {"x": X}, run_options=options)
    options.terminate = False
    (y,) = session.run(None, {"x": X}, run_options=options)
    np.testing.assert_array_equal(y, 2 * X)


@pytest.mark.parametrize("from_file", [False, True])
def test_models_carry_options(
    from_file: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where the environment asks for them, and in place of the caller's."""
    config = {"intra_op_num_threads": 2, "inter_op_num_threads": 5, "graph_optimization_level": 1}
    model = onnx.load_from_string(graphs.double())
    helper.set_model_props(model, {"a": "b", "ort_config": json.dumps({"session_options": config})})
    source: object = model.SerializeToString()
    if from_file:
        source = tmp_path / "model.onnx"
        onnx.save(model, source)
    given = tenon.SessionOptions()
    given.intra_op_num_threads = 3
    assert tenon.InferenceSession(source, given).get_session_options() is given
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    options = tenon.InferenceSession(source, given).get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 5)
    assert options.graph_optimization_level == tenon.GraphOptimizationLevel.ORT_ENABLE_BASIC
    assert options.execution_mode == tenon.ExecutionMode.ORT_SEQUENTIAL
    bare = tenon.InferenceSession(graphs.double(), given)
    assert bare.get_session_options() is given


def test_options_that_a_model_carries_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    for text, error in (("{", "Expecting"), ("[]", "session_options"), ("{}", "session_options")):
        model = onnx.load_from_string(graphs.double())
        helper.set_model_props(model, {"ort_config": text})
        with pytest.raises(ValueError, match=error):
            tenon.InferenceSession(model.SerializeToString())


def test_a_seed_makes_random_numbers_the_same() -> None:
    def numbers() -> list[list[float]]:
        nodes = [helper.make_node("RandomUniformLike", ["x"], [name]) for name in ("y", "z")]
        model = graphs.model(
            nodes,
            [graphs.tensor("x", shape=[4])],
            [graphs.tensor(name, shape=[4]) for name in ("y", "z")],
        )
        session = tenon.InferenceSession(model)
        x = np.zeros(4, np.float32)
        return [y.tolist() for _ in range(2) for y in session.run(None, {"x": x})]

    tenon.set_seed(7)
    first, second = numbers(), numbers()
    assert len({tuple(one) for one in first + second}) == 8  # all differ
    tenon.set_seed(7)
    assert [numbers(), numbers()] == [first, second]
    tenon.set_seed(8)
    assert numbers() != first
