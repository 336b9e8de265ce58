"""Tools for use before and after quantization: preparation, the search for errors, commands."""

import json
import pathlib
import subprocess
import sys

import graphs
import numpy as np
import onnx
import onnxruntime.quantization.onnx_model as their_models
import onnxruntime.quantization.qdq_loss_debug as their_debug
import pytest
import scipy.stats
import tenon.quantization as ours
import tenon.quantization.onnx_model as our_models
import tenon.quantization.qdq_loss_debug as debug
from onnx import TensorProto, helper, numpy_helper
from quantized_models import (
    MODELS,
    Reader,
    expect_near,
    model,
    node,
    normal,
    op_types,
    run,
    run_genuine,
)
from tenon.quantization._graph import Graph
from tenon.quantization._scales import Scale, add_scale
from tenon.quantization.calibrate import entropy
from tenon.quantization.onnx_model import ONNXModel
from tenon.quantization.quant_utils import (
    QUANT_INPUT_SUFFIX,
    load_model_with_shape_infer,
    model_has_infer_metadata,
    model_has_pre_process_metadata,
    optimize_model,
)
from tenon.quantization.quantize import check_static_quant_arguments


def command(
    *arguments: object, check: bool = True, cwd: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, *map(str, arguments)]
    return subprocess.run(program, check=check, capture_output=True, text=True, cwd=cwd)


def test_prepares_models_on_a_command_line(tmp_path: pathlib.Path) -> None:
    source, path = tmp_path / "model.onnx", tmp_path / "prepared.onnx"
    onnx.save(MODELS["convolutions"], source)
    arguments = ["-m", "tenon.quantization.preprocess", "--input", source]
    arguments += ["--output", path, "--skip_symbolic_shape", "True"]
    command(*arguments)
    made = {name for one in onnx.load(path).graph.node for name in one.output}
    assert made <= {value.name for value in onnx.load(path).graph.value_info} | {"y"}
    expect_near(path, MODELS["convolutions"], 1e-5)
    done = command(*arguments, "--skip_onnx_shape", "perhaps", check=False)
    assert "expected true or false, got 'perhaps'" in done.stderr
    rest = ["--skip_onnx_shape", "true", "--skip_optimization", "true"]
    assert "there is nothing to do" in command(*arguments, *rest, check=False).stderr


def test_prepares_models(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "prepared.onnx"
    ours.quant_pre_process(MODELS["convolutions"], path)
    prepared = onnx.load(path)
    known = {value.name for value in prepared.graph.value_info}
    made = {name for one in prepared.graph.node for name in one.output}
    assert made <= known | {"y"}
    assert model_has_pre_process_metadata(prepared)
    assert not model_has_pre_process_metadata(MODELS["convolutions"])
    expect_near(path, MODELS["convolutions"], 1e-5)


def test_prepares_models_with_files_beside_them(tmp_path: pathlib.Path) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Identity", "m", "y")]
    source = model(nodes, {"x": [2, 32]}, {"y": [2, 32]}, {"w": normal(32, 32)})
    path = tmp_path / "prepared.onnx"
    ours.quant_pre_process(
        source,
        path,
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        external_data_location="weights.bin",
        external_data_size_threshold=100,
    )
    assert (tmp_path / "weights.bin").stat().st_size == 32 * 32 * 4
    expect_near(path, source, 1e-5)
    with pytest.raises(ValueError, match="expected a model, and a path"):
        ours.quant_pre_process(source)
    ours.quant_pre_process(input_model_path=source, output_model_path=tmp_path / "other.onnx")
    expect_near(tmp_path / "other.onnx", source, 1e-5)


def test_prepares_what_it_cannot_optimize(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = helper.make_node("Unknown", ["x"], ["y"], domain="nowhere")
    source = model([unknown], {"x": [2]}, {"y": [2]}, {})
    source.opset_import.append(helper.make_opsetid("nowhere", 1))
    ours.quant_pre_process(source, tmp_path / "prepared.onnx", skip_symbolic_shape=True)
    assert "the model is not optimized" in caplog.text
    assert op_types(tmp_path / "prepared.onnx") == {"Unknown": 1}


@pytest.mark.parametrize("opset", [7, 8, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_makes_resize_of_upsample(opset: int, mode: str, tmp_path: pathlib.Path) -> None:
    attributes: dict = {"mode": mode}
    constants = {"scales": np.array([1, 1, 2, 3], np.float32)} if opset > 8 else {}
    if opset < 9:
        attributes["scales"] = [1.0, 1.0, 2.0, 3.0]
    nodes = [
        node("Upsample", "x scales" if constants else "x", "u", **attributes),
        node("Relu", "u", "y"),
    ]
    source = model(nodes, {"x": [1, 2, 4, 4]}, {"y": [1, 2, 8, 12]}, constants, opset)
    path = tmp_path / "prepared.onnx"
    ours.quant_pre_process(source, path)
    assert op_types(path)["Resize"] == 1
    feed = Reader(source).get_next()
    for runtime in (run, run_genuine):
        np.testing.assert_allclose(runtime(path, feed), run_genuine(source, feed), atol=1e-6)


def test_loads_models_with_shapes(tmp_path: pathlib.Path) -> None:
    onnx.save(MODELS["products"], tmp_path / "model.onnx")
    loaded = load_model_with_shape_infer(tmp_path / "model.onnx")
    assert model_has_infer_metadata(loaded)
    shapes = {one.name: one.type.tensor_type.shape for one in loaded.graph.value_info}
    assert [dim.dim_value for dim in shapes["c"].dim] == [2, 24]
    optimize_model(tmp_path / "model.onnx", tmp_path / "optimized.onnx")
    expect_near(tmp_path / "optimized.onnx", MODELS["products"], 1e-5)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.onnx", "optimized.onnx"]


def test_infers_shapes_on_a_command_line(tmp_path: pathlib.Path) -> None:
    source, result = tmp_path / "model.onnx", tmp_path / "result.onnx"
    onnx.save(MODELS["products"], source)
    arguments = ["-m", "tenon.tools.symbolic_shape_infer", "--input", source, "--output", result]
    command(*arguments)
    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in onnx.load(result).graph.value_info
    }
    assert shapes["c"] == [2, 24]


@pytest.mark.parametrize("per_channel", [False, True])
def test_finds_where_accuracy_is_lost(per_channel: bool, tmp_path: pathlib.Path) -> None:
    source = MODELS["convolutions"]
    paths = {name: tmp_path / f"{name}.onnx" for name in ("float", "qdq", "more", "more_qdq")}
    onnx.save(source, paths["float"])
    ours.quantize_static(source, paths["qdq"], Reader(source), per_channel=per_channel)
    for name in ("float", "qdq"):
        more = "more" if name == "float" else "more_qdq"
        debug.modify_model_output_intermediate_tensors(paths[name], paths[more])
    values = {
        name: debug.collect_activations(paths[name], Reader(source))
        for name in paths
        if name.startswith("more")
    }
    assert all(len(rows) == 10 for rows in values["more"].values())
    feeds = [feed["x"].reshape(-1) for feed in Reader(source)]
    np.testing.assert_array_equal(values["more"]["x"], feeds)
    matches = [
        one.create_activation_matching(values["more_qdq"], values["more"])
        for one in (debug, their_debug)
    ]
    assert matches[0].keys() == matches[1].keys()
    assert {"x", "r1", "y"} <= matches[0].keys()
    for name, match in matches[1].items():
        for part, rows in match.items():
            np.testing.assert_array_equal(matches[0][name][part], rows)
    errors, expected = (one.compute_activation_error(matches[0]) for one in (debug, their_debug))
    for name, found in errors.items():
        assert found == pytest.approx(expected[name])
        assert found["xmodel_err"] > 30, name
        # If saturation replaces Relu, the value before it is different.
        assert (found["qdq_err"] > 30) == (name not in ("r1", "r2")), name
    assert errors["y"]["xmodel_err"] < errors["y"]["qdq_err"]
    given = str(paths["float"]), str(paths["qdq"])
    weights = [one.create_weight_matching(*given) for one in (debug, their_debug)]
    assert weights[0].keys() == weights[1].keys() >= {"w1", "w2", "w3", "b1"}
    for name, match in weights[1].items():
        for part, array in match.items():
            np.testing.assert_allclose(weights[0][name][part], array, rtol=1e-6)
    found = debug.compute_weight_error(weights[0])
    assert found == pytest.approx(their_debug.compute_weight_error(weights[1]), rel=1e-4)
    assert all(one > 30 for one in found.values())


def test_measures_noise() -> None:
    ratio = debug.compute_signal_to_quantization_noice_ratio
    assert ratio(np.array([3.0, 4.0]), np.array([3.0, 4.5])) == pytest.approx(20)
    assert ratio([np.ones(4)], [np.ones(4)]) > 300
    with pytest.raises(RuntimeError, match="Unequal number of tensors to compare: 1 and 2"):
        ratio([np.ones(1)], [np.ones(1)] * 2)


def test_saves_what_some_operators_read_and_make(tmp_path: pathlib.Path) -> None:
    onnx.save(MODELS["products"], tmp_path / "model.onnx")
    debug.modify_model_output_intermediate_tensors(
        tmp_path / "model.onnx", tmp_path / "more.onnx", ["Sigmoid"], save_as_external_data=True
    )
    values = debug.collect_activations(tmp_path / "more.onnx", Reader(MODELS["products"]))
    assert set(values) == {"a1", "s1"}
    for a, b in zip(values["a1"], values["s1"], strict=True):
        np.testing.assert_allclose(b, 1 / (1 + np.exp(-a.astype(np.float64))), atol=1e-6)
    empty = Reader(MODELS["products"])
    empty.set_range(0, 0)
    with pytest.raises(RuntimeError, match="No data is collected"):
        debug.collect_activations(tmp_path / "more.onnx", empty)


def test_quantizes_with_the_data_beside_a_model(tmp_path: pathlib.Path) -> None:
    source = MODELS["convolutions"]
    onnx.save(source, tmp_path / "model.onnx")
    arguments = ["-m", "tenon.quantization.static_quantize_runner"]
    arguments += ["-i", tmp_path / "model.onnx", "-o", tmp_path / "quantized.onnx"]
    done = command(*arguments, check=False)
    assert "there are no folders test_data_set_*" in done.stderr
    for number, feed in enumerate(Reader(source)):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        content = numpy_helper.from_array(feed["x"]).SerializeToString()
        (folder / "input_0.pb").write_bytes(content)
    overrides = {"x": [{"quant_type": "QUInt16"}], "w1": [{"scale": 0.05, "zero_point": 0}]}
    (tmp_path / "overrides.json").write_text(json.dumps(overrides))
    arguments += ["--per_channel", "--op_per_channel_axis", "Gemm", "0"]
    command(*arguments)
    expect_near(tmp_path / "quantized.onnx", source, 0.05)
    plain = op_types(tmp_path / "quantized.onnx")
    command(
        *arguments,
        "--disable_quantize_bias",
        "--qdq_keep_removable_activations",
        "--tensor_quant_overrides",
        tmp_path / "overrides.json",
    )
    made = op_types(tmp_path / "quantized.onnx")
    assert (made["Relu"], plain["Relu"]) == (2, 0)
    constants = {
        one.name: numpy_helper.to_array(one)
        for one in onnx.load(tmp_path / "quantized.onnx").graph.initializer
    }
    assert constants["w1_scale"] == np.float32(0.05)
    assert constants["x_zero_point"].dtype == np.uint16


def test_programs_for_onnxruntime_find_it(tmp_path: pathlib.Path) -> None:
    onnx.save(MODELS["products"], tmp_path / "model.onnx")
    code = (
        "import tenon.as_onnxruntime; tenon.as_onnxruntime.install()\n"
        "from onnxruntime.quantization import quantize_dynamic, QuantType, QDQQuantizer\n"
        "from onnxruntime.quantization.calibrate import create_calibrator, TensorsData\n"
        "from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer\n"
        "from onnxruntime.quantization.onnx_quantizer import ONNXQuantizer\n"
        "from onnxruntime.quantization.qdq_loss_debug import compute_weight_error\n"
        "from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry\n"
        "from onnxruntime.quantization.shape_inference import quant_pre_process\n"
        "from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference\n"
        "quantize_dynamic('model.onnx', 'out.onnx', weight_type=QuantType.QUInt8)\n"
        "assert 'Conv' in QDQRegistry and 'Add' in QLinearOpsRegistry\n"
        "print(quantize_dynamic.__module__)"
    )
    done = command("-c", code, cwd=tmp_path)
    assert done.stdout.strip() == "tenon.quantization.quantize"
    assert op_types(tmp_path / "out.onnx")["MatMulInteger"] == 2
    arguments = ["-m", "tenon.as_onnxruntime", "-m", "onnxruntime.quantization.preprocess"]
    command(*arguments, "--input", "model.onnx", "--output", "prepared.onnx", cwd=tmp_path)
    expect_near(tmp_path / "prepared.onnx", MODELS["products"], 1e-5)


def test_models_answer_questions() -> None:
    source = ONNXModel(MODELS["convolutions"])
    assert source.get_initializer_name_set() >= {"w1", "b1"}
    assert source.get_non_initializer_inputs() == {"x"}
    assert source.is_graph_output("y") and not source.is_graph_input("y")
    (first, second) = source.input_name_to_nodes()["r1"]
    assert [first.name, second.name] == ["n_c2", "n_a"]
    assert source.get_children(source.output_name_to_node()["r1"]) == [first, second]
    assert [one.name for one in source.get_parents(second)] == ["n_c2", "n_r1"]
    parent = source.get_parent(second, 1)
    assert parent is not None and parent.name == "n_r1"
    assert source.get_largest_initializer_name_suffix("w") == 3
    assert source.get_largest_node_name_suffix("n_c") == 2
    value = source.get_constant_value("s")
    assert value is not None and value.tolist() == [1, 8]


def test_models_are_changed() -> None:
    source = ONNXModel(MODELS["convolutions"])
    source.replace_gemm_with_matmul()
    source.replace_input_of_nodes("r1", "c1", {"n_c2"})
    unread = numpy_helper.from_array(np.zeros(3, np.float32), "unread")
    source.add_initializer(unread)
    source.add_initializer(unread)
    source.add_node(helper.make_node("Constant", [], ["constant"], value=unread))
    assert [one.name for one in source.initializer()].count("unread") == 1
    source.remove_unused_constant()
    assert "unread" not in source.get_initializer_name_set()
    nodes = list(source.nodes())
    del source.nodes()[:]
    source.nodes().extend(reversed(nodes))
    source.topological_sort()
    _, missing = source.clean_initializers()
    assert missing == set()
    onnx.checker.check_model(source.model)
    assert op_types(source.model) == {
        "Conv": 2,
        "Relu": 2,
        "Add": 2,
        "MaxPool": 1,
        "GlobalAveragePool": 1,
        "Reshape": 1,
        "MatMul": 1,
    }
    source.replace_output_of_all_nodes("y", "z")
    _, missing = source.clean_initializers()
    assert missing == {"y"}


def test_nodes_are_sorted_as_onnxruntime_sorts_them() -> None:
    """First what reads constants and inputs alone, by the last name; others as inputs arrive."""
    nodes = [
        helper.make_node("Add", ["c", "r"], ["y"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Mul", ["b", "b"], ["c"]),
        helper.make_node("Constant", [], ["k"], value_float=1.0),
    ]
    graph = helper.make_graph(
        nodes, "g", [graphs.tensor("x"), graphs.tensor("b")], [graphs.tensor("y")]
    )
    orders = []
    for package in (their_models, our_models):
        model = package.ONNXModel(helper.make_model(graph))
        model.topological_sort()
        orders.append([node.op_type for node in model.nodes()])
    assert orders[0] == orders[1] == ["Constant", "Mul", "Neg", "Relu", "Add"]


def test_values_in_branches_may_have_the_name_of_the_result() -> None:
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["x"], ["y"])], name, [], [graphs.tensor("y", shape=[2])]
        )
        for name, kind in (("then", "Relu"), ("else", "Neg"))
    }
    graph = helper.make_graph(
        [helper.make_node("If", ["c"], ["y"], **branches)],
        "g",
        [graphs.tensor("x", shape=[2]), graphs.tensor("c", TensorProto.BOOL, [])],
        [graphs.tensor("y", shape=[2])],
    )
    model = ONNXModel(helper.make_model(graph))
    model.topological_sort()
    assert [node.op_type for node in model.nodes()] == ["If"]


def test_divergence_is_that_of_scipy() -> None:
    p, q = np.array([1.0, 0, 3, 4]), np.array([2.0, 1, 1, 4])
    for base in (None, 2):
        expected = scipy.stats.entropy(p, q, base)
        assert entropy(p, q, base) == pytest.approx(expected)
    assert entropy(np.array([1, -2]), q[:2]) == np.inf  # no probabilities


def test_zero_points_are_in_the_field_of_their_type() -> None:
    """Tools read them there, and not in raw_data."""
    graph = Graph(helper.make_graph([], "g", [], []))
    scale = Scale(np.array(-3, np.int8), np.array(0.5, np.float32), TensorProto.INT8, None)
    names = add_scale(graph, "w", scale)
    assert names == ("w_scale", "w_zero_point")
    assert list(graph.initializers) == ["w_zero_point", "w_scale"]
    assert list(graph.initializers["w_zero_point"].int32_data) == [-3]
    assert list(graph.initializers["w_scale"].float_data) == [0.5]


def test_types_may_be_numbers_of_onnx() -> None:
    check = check_static_quant_arguments
    check(ours.QuantFormat.QOperator, TensorProto.UINT8, TensorProto.INT8)
    with pytest.raises(ValueError, match="16-bit"):
        check(ours.QuantFormat.QOperator, TensorProto.UINT16, TensorProto.INT8)


def test_activations_are_matched_where_both_are_there() -> None:
    values = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    name = "t" + QUANT_INPUT_SUFFIX
    saved = {name: np.stack(values), "t": values}
    found = debug.create_activation_matching(saved, {"t": values})
    assert list(found) == ["t"]
    assert debug.create_activation_matching({name: values}) == {}
