"""Files in ONNX Runtime's format (.ort), exchanged with onnxruntime in both directions."""

from __future__ import annotations

import functools
import gc
import pathlib
import re
import warnings
from types import ModuleType
from typing import Any

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs import InferenceSession

CPU = ["CPUExecutionProvider"]
ENGINES = (onnxruntime, tenon)
# One in so many cases of the onnx package's suite.
STEP = 4


def options(
    engine: ModuleType, level: str = "ORT_ENABLE_ALL", path: pathlib.Path | None = None, **config
) -> Any:
    result = engine.SessionOptions()
    result.intra_op_num_threads = 1
    result.log_severity_level = 3
    result.graph_optimization_level = getattr(engine.GraphOptimizationLevel, level)
    if path is not None:
        result.optimized_model_filepath = str(path)
    for key, value in config.items():
        result.add_session_config_entry(f"session.{key}", value)
    return result


def session(engine: ModuleType, model: pathlib.Path | bytes, **wanted) -> Any:
    source = model if isinstance(model, bytes) else str(model)
    return engine.InferenceSession(source, options(engine, **wanted), providers=CPU)


def run(engine: ModuleType, model: pathlib.Path | bytes, feeds: dict, **wanted) -> list:
    return session(engine, model, **wanted).run(None, feeds)


def write(engine: ModuleType, model: bytes, path: pathlib.Path, level: str, **config) -> bytes:
    """The file that the engine writes when it reads the model."""
    path.unlink(missing_ok=True)
    session(engine, model, level=level, path=path, **config)
    return path.read_bytes()


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, list):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            assert_same(ours, theirs)
    elif isinstance(expected, dict) or not isinstance(expected, np.ndarray):
        assert actual == expected
    elif expected.dtype.kind in "OU":
        np.testing.assert_array_equal(actual, expected)
    else:
        assert actual.dtype == expected.dtype
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        ours, theirs = actual.astype(wide), expected.astype(wide)
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1)  # of sums that cancel
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5 * largest)


@functools.cache
def suite() -> list:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    drawn = re.compile("bernoulli|random|training_dropout|dropout_default_mask")
    return [case for case in cases[::STEP] if not drawn.search(case.name)]


def feeds_of(case: Any) -> dict:
    return {
        info.name: numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
        for info, value in zip(case.model.graph.input, case.data_sets[0][0], strict=False)
    }


def results(engine: ModuleType, model: bytes, feeds: dict) -> list | None:
    """None if the engine does not run the model at all."""
    try:
        return run(engine, model, feeds)
    except Exception:
        return None


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_EXTENDED"])
def test_files_of_onnxruntime_run(level: str, tmp_path: pathlib.Path) -> None:
    count = 0
    for case in suite():
        model, feeds = case.model.SerializeToString(), feeds_of(case)
        expected = results(onnxruntime, model, feeds)
        if expected is None:
            continue
        try:
            file = write(onnxruntime, model, tmp_path / "model.ort", level)
        except Exception:  # optional types
            continue
        assert file[4:8] == b"ORTM"
        assert_same(run(tenon, tmp_path / "model.ort", feeds), expected)
        count += 1
    assert count > 250


# Onnxruntime runs these by bodies that depend on types, which it inlines in ONNX models alone.
WITHOUT_KERNELS = {
    "CausalConvWithState",
    "CenterCropPad",
    "FlexAttention",
    "GroupNormalization",
    "LinearAttention",
    "NegativeLogLikelihoodLoss",
    "SequenceMap",
    "SoftmaxCrossEntropyLoss",
}


def is_without_kernel(error: Exception, model: onnx.ModelProto) -> bool:
    named = re.search(r"Could not find an implementation for (\w+)\(", str(error))
    # It inserts casts for float16 in ONNX models alone.
    types = {info.type.tensor_type.elem_type for info in model.graph.input}
    return named is not None and (named[1] in WITHOUT_KERNELS or TensorProto.FLOAT16 in types)


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_files_of_tenon_run_in_onnxruntime(level: str, tmp_path: pathlib.Path) -> None:
    count = 0
    for case in suite():
        model, feeds = case.model.SerializeToString(), feeds_of(case)
        ours, expected = results(tenon, model, feeds), results(onnxruntime, model, feeds)
        try:
            write(tenon, model, tmp_path / "model.ort", level)
        except Exception as error:
            assert ours is None or "the ORT format has no type optional(" in str(error)
            continue
        assert_same(run(tenon, tmp_path / "model.ort", feeds), ours)
        if expected is None:
            continue
        try:
            actual = run(onnxruntime, tmp_path / "model.ort", feeds)
        except Exception as error:
            assert is_without_kernel(error, case.model), (case.name, error)
            continue
        assert_same(actual, expected)
        count += 1
    assert count > 250


def branches() -> bytes:
    """Branches in branches, which read values of all graphs around them; constants of all sizes."""

    def branch(op_type: str, name: str, *inner: onnx.NodeProto) -> onnx.GraphProto:
        nodes = [helper.make_node(op_type, ["h", "w"], [f"{name}_a"]), *inner]
        nodes.append(helper.make_node("Add", [f"{name}_a", "x"], [f"{name}_o"]))
        return helper.make_graph(nodes, name, [], [graphs.tensor(f"{name}_o", shape=["n", 4])])

    nested = helper.make_node(
        "If",
        ["c"],
        ["inner"],
        then_branch=branch("Sub", "deep_then"),
        else_branch=branch("Div", "deep_else"),
    )
    outer = branch("Mul", "then", nested)
    outer.node[-1].input[1] = "inner"
    table = np.arange(8, dtype=np.int64)
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("If", ["c"], ["i"], then_branch=outer, else_branch=branch("Add", "else")),
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Mul", ["i", "two"], ["y"]),
        helper.make_node("Clip", ["y", "", "two"], ["z"]),
        helper.make_node("Split", ["z"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Gather", ["table", "rows"], ["t"]),
        helper.make_node("HardSwish", ["b"], ["s"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            graphs.tensor("x", shape=["n", 4]),
            graphs.tensor("c", TensorProto.BOOL, []),
            graphs.tensor("rows", TensorProto.INT64, ["m"]),
        ],
        [
            graphs.tensor("a", shape=["n", 2]),
            graphs.tensor("s", shape=["n", 2]),
            graphs.tensor("t", TensorProto.INT64, ["m"]),
            graphs.tensor("x", shape=["n", 4]),
        ],
        [
            numpy_helper.from_array(np.full((1, 4), 0.5, np.float32), "w"),
            numpy_helper.from_array(table, "table"),
        ],
        doc_string="about the graph",
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
        producer_name="someone",
        producer_version="1.2",
        domain="org.example",
        model_version=7,
        doc_string="about the model",
    )
    helper.set_model_props(model, {"key": "value", "empty": ""})
    return model.SerializeToString()


BRANCH_FEEDS = {
    "x": np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4),
    "c": np.array(True),
    "rows": np.array([7, 0], np.int64),
}


@pytest.mark.parametrize("writer", ENGINES)
@pytest.mark.parametrize("reader", ENGINES)
def test_graphs_and_metadata_are_kept(
    writer: ModuleType, reader: ModuleType, tmp_path: pathlib.Path
) -> None:
    model = branches()
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC"):
        file = write(writer, model, tmp_path / "model.ort", level)
        made = session(reader, file)
        for condition in (False, True):
            feeds = BRANCH_FEEDS | {"c": np.array(condition)}
            assert_same(made.run(None, feeds), run(onnxruntime, model, feeds))
        meta = made.get_modelmeta()
        assert (meta.producer_name, meta.domain, meta.version) == ("someone", "org.example", 7)
        assert meta.description == "about the model"
        assert meta.custom_metadata_map == {"key": "value", "empty": ""}
        assert [info.shape for info in made.get_inputs()] == [["n", 4], [], ["m"]]


def operators(file: bytes) -> dict[str, dict[str, set]]:
    """By operator: which inputs and outputs each of its type constraints is for."""
    resolver = InferenceSession.InferenceSession.GetRootAs(file).KernelTypeStrResolver()
    found = {}
    for i in range(resolver.OpKernelTypeStrArgsLength()):
        entry = resolver.OpKernelTypeStrArgs(i)
        constraints = [entry.KernelTypeStrArgs(j) for j in range(entry.KernelTypeStrArgsLength())]
        found[entry.OpId().decode()] = {
            constraint.KernelTypeStr().decode(): {
                (constraint.Args(k).ArgType(), constraint.Args(k).Index())
                for k in range(constraint.ArgsLength())
            }
            for constraint in constraints
        }
    return found


def edges(file: bytes) -> list[tuple]:
    """Of the main graph: the operators at both ends, and the numbers of output and input."""
    graph = InferenceSession.InferenceSession.GetRootAs(file).Model().Graph()
    types = {
        graph.Nodes(i).Index(): graph.Nodes(i).OpType().decode() for i in range(graph.NodesLength())
    }
    found = []

    def add(side: str, source: int, target: int, edge: Any) -> None:
        # What only branches read may be in any order.
        place = None if types[target] == "If" else edge.DstArgIndex()
        found.append((side, types[source], types[target], edge.SrcArgIndex(), place))

    for i in range(graph.NodeEdgesLength()):
        node = graph.NodeEdges(i)
        for edge in map(node.InputEdges, range(node.InputEdgesLength())):
            add("in", edge.NodeIndex(), node.NodeIndex(), edge)
        for edge in map(node.OutputEdges, range(node.OutputEdgesLength())):
            add("out", node.NodeIndex(), edge.NodeIndex(), edge)
    return sorted(found, key=str)


def test_kernels_and_edges_are_those_of_onnxruntime(tmp_path: pathlib.Path) -> None:
    """Which builds of onnxruntime without schemas rely on."""
    both = [write(engine, branches(), tmp_path / "m.ort", "ORT_DISABLE_ALL") for engine in ENGINES]
    theirs, ours = map(operators, both)
    for name in ours.keys() & theirs.keys():
        assert ours[name] == theirs[name]
    assert len(ours.keys() & theirs.keys()) >= 8
    assert list(ours) == sorted(ours)
    assert edges(both[1]) == edges(both[0])
    compared = 0
    for case in suite():
        try:
            files = [
                write(engine, case.model.SerializeToString(), tmp_path / "m.ort", "ORT_DISABLE_ALL")
                for engine in ENGINES
            ]
        except Exception:
            continue
        theirs, ours = map(operators, files)
        for name in ours.keys() & theirs.keys():
            assert ours[name] == theirs[name], name
            compared += 1
    assert compared > 300


def test_the_name_or_the_option_tells_the_format(tmp_path: pathlib.Path) -> None:
    model, feeds = graphs.double([2]), {"x": np.ones(2, np.float32)}
    ort, onnx_file = tmp_path / "model.ORT", tmp_path / "model.onnx"
    assert write(tenon, model, ort, "ORT_ENABLE_ALL")[4:8] == b"ORTM"
    assert write(tenon, model, onnx_file, "ORT_ENABLE_ALL", save_model_format="ORT")[4:8] == b"ORTM"
    assert write(tenon, model, tmp_path / "x", "ORT_ENABLE_ALL")[4:8] != b"ORTM"
    for source in (ort, onnx_file, ort.read_bytes()):
        assert_same(run(tenon, source, feeds), [feeds["x"] * 2])
        assert_same(run(tenon, source, feeds, load_model_format="ORT"), [feeds["x"] * 2])
        with pytest.raises(Exception, match="byte"):
            run(tenon, source, feeds, load_model_format="ONNX")

    protobuf = write(tenon, model, ort, "ORT_ENABLE_ALL", save_model_format="ONNX")
    assert onnx.load_from_string(protobuf).graph.node
    with pytest.raises(Exception, match=r"model\.ORT': expected the identifier ORTM .* at byte 4"):
        session(tenon, ort)
    assert_same(run(tenon, ort, feeds, load_model_format="ONNX"), [feeds["x"] * 2])
    for entry in ("load_model_format", "save_model_format"):
        with pytest.raises(Exception, match=f"'session.{entry}': expected ONNX or ORT, got 'ort'"):
            session(tenon, model, path=tmp_path / "y", **{entry: "ort"})


def test_compiled_models_have_the_format_of_their_name(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source.onnx"
    source.write_bytes(branches())
    file = tmp_path / "compiled.ort"
    tenon.ModelCompiler(tenon.SessionOptions(), str(source)).compile_to_file(str(file))
    expected = run(onnxruntime, source, BRANCH_FEEDS)
    for engine in ENGINES:
        assert_same(run(engine, file, BRANCH_FEEDS), expected)
    outside = tenon.ModelCompiler(
        tenon.SessionOptions(),
        str(source),
        external_initializers_file_path="weights",
        external_initializers_size_threshold=0,
    )
    with pytest.raises(Exception, match="a file in the ORT format cannot have external data"):
        outside.compile_to_file(str(tmp_path / "other.ort"))
    assert not (tmp_path / "other.ort").exists()


def test_weights_stay_in_the_callers_bytes_if_asked(tmp_path: pathlib.Path) -> None:
    weights = np.arange(4096, dtype=np.float32)
    add = helper.make_node("Add", ["x", "w"], ["y"])
    model = graphs.model(
        [add],
        [graphs.tensor("x", shape=[4096])],
        [graphs.tensor("y", shape=[4096])],
        initializers=[numpy_helper.from_array(weights, "w")],
    )
    file = write(tenon, model, tmp_path / "model.ort", "ORT_DISABLE_ALL")
    feeds = {"x": np.zeros(4096, np.float32)}
    for direct in (True, False):
        buffer = np.frombuffer(file, np.uint8).copy()
        flags = dict.fromkeys(
            ("use_ort_model_bytes_directly", "use_ort_model_bytes_for_initializers"), "1"
        )
        source = memoryview(buffer)
        wanted = options(tenon, "ORT_DISABLE_ALL", **(flags if direct else {}))
        made = tenon.InferenceSession(bytes(source) if not direct else source, wanted)
        start = file.index(weights.tobytes())
        buffer[start : start + 4] = np.array([42], np.float32).view(np.uint8)
        gc.collect()
        assert made.run(None, feeds)[0][0] == (42 if direct else 0)


@pytest.mark.parametrize("writer", ENGINES)
@pytest.mark.parametrize("size", [100, 1000, 100_000])  # whose indices are of different types
def test_sparse_initializers_are_read(
    writer: ModuleType, size: int, tmp_path: pathlib.Path
) -> None:
    dense = np.zeros(size, np.float32)
    dense[[0, 7, size - 1]] = 1, -2, 3
    places = np.flatnonzero(dense)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(dense[places], "w"), numpy_helper.from_array(places, "i"), [size]
    )
    model = onnx.load_from_string(
        graphs.model(
            [helper.make_node("Add", ["x", "w"], ["y"])],
            [graphs.tensor("x", shape=[size])],
            [graphs.tensor("y", shape=[size])],
        )
    )
    model.graph.sparse_initializer.append(sparse)
    write(writer, model.SerializeToString(), tmp_path / "model.ort", "ORT_DISABLE_ALL")
    feeds = {"x": np.ones(size, np.float32)}
    for reader in ENGINES:
        assert_same(run(reader, tmp_path / "model.ort", feeds), [dense + 1])


def test_optimized_models_of_onnxruntime_with_quantized_operators(tmp_path: pathlib.Path) -> None:
    """Nodes of com.microsoft that only onnxruntime's optimizer makes."""
    rng = np.random.default_rng(0)
    scale, zero = np.float32(0.02), np.uint8(128)
    constants = {
        "w": rng.integers(-90, 90, (8, 8), np.int8),
        "ws": np.float32(0.01),
        "wz": np.int8(0),
        "s": scale,
        "z": zero,
    }
    pairs = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("MatMul", ["d", "wd"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["mq"]),
        helper.make_node("DequantizeLinear", ["mq", "s", "z"], ["y"]),
    ]
    model = graphs.model(
        pairs,
        [graphs.tensor("x", shape=["n", 8])],
        [graphs.tensor("y", shape=["n", 8])],
        initializers=[
            numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
        ],
    )
    feeds = {"x": rng.uniform(-2, 2, (5, 8)).astype(np.float32)}
    write(onnxruntime, model, tmp_path / "model.ort", "ORT_ENABLE_EXTENDED")
    expected = run(onnxruntime, model, feeds)[0]
    actual = run(tenon, tmp_path / "model.ort", feeds)[0]
    assert np.abs(actual - expected).max() <= scale * 1.01  # one step of the quantization
