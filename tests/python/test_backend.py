"""tenon.backend: the interface of onnx.backend.base."""

import graphs
import numpy as np
import onnx
import pytest
import tenon.backend
from onnx import helper


def test_runs_a_model() -> None:
    model = onnx.load_from_string(graphs.double([3]))
    x = np.array([1, -2, 3], np.float32)
    (y,) = tenon.backend.run_model(model, [x])
    assert tenon.backend.run(model, [x]).y.tolist() == y.tolist()
    np.testing.assert_array_equal(y, x + x)


@pytest.mark.parametrize("form", [lambda x: [x], lambda x: {"x": x}, lambda x: x])
def test_takes_inputs_in_any_form(form) -> None:
    model = tenon.backend.prepare(graphs.double([2]))
    x = np.ones(2, np.float32)
    assert model.run(form(x)).y.tolist() == [2, 2]


def test_refuses_too_many_inputs() -> None:
    model = tenon.backend.prepare(graphs.double([2]))
    with pytest.raises(ValueError, match="expected 1 inputs, got 2"):
        model.run([np.ones(2, np.float32)] * 2)


def test_runs_a_node() -> None:
    node = helper.make_node("Clip", ["x", "", "top"], ["y"])
    x = np.array([1, 5], np.int32)
    (y,) = tenon.backend.run_node(node, [x, np.array(3, np.int32)])
    assert y.tolist() == [1, 3]


def test_runs_a_node_of_an_old_version() -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    (y,) = tenon.backend.run_node(node, [np.ones((1, 2), np.float32)], opset_version=11)
    assert y.shape == (2,)


def test_knows_its_devices() -> None:
    assert tenon.backend.supports_device("CPU")
    assert not tenon.backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="expected the device CPU, got CUDA"):
        tenon.backend.prepare(graphs.double(), "CUDA")


def test_sets_options_that_do_no_harm() -> None:
    x = np.ones(2, np.float32)
    level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    arguments = {"graph_optimization_level": level, "logid": "a", "unknown": 1}
    assert tenon.backend.run_model(graphs.double([2]), [x], **arguments).y.tolist() == [2, 2]


@pytest.mark.parametrize(
    "arguments",
    [{"optimized_model_filepath": "a"}, {"profile_file_prefix": "a"}, {"enable_profiling": True}],
)
def test_refuses_options_that_write_files(arguments: dict) -> None:
    with pytest.raises(
        RuntimeError, match=f"SessionOptions.{next(iter(arguments))} is not permitted"
    ):
        tenon.backend.prepare(graphs.double([2]), **arguments)
    with pytest.raises(RuntimeError, match="is not permitted"):
        tenon.backend.run_model(graphs.double([2]), [np.ones(2, np.float32)], **arguments)


def test_refuses_options_that_end_runs() -> None:
    model = tenon.backend.prepare(graphs.double([2]))
    with pytest.raises(RuntimeError, match=r"RunOptions.terminate is not permitted"):
        model.run([np.ones(2, np.float32)], terminate=True)


def test_has_the_names_of_onnxruntime() -> None:
    from tenon.backend.backend import OnnxRuntimeBackend  # noqa: PLC0415
    from tenon.backend.backend_rep import OnnxRuntimeBackendRep  # noqa: PLC0415

    x = np.ones(2, np.float32)
    assert OnnxRuntimeBackend.run_model(graphs.double([2]), x).y.tolist() == [2, 2]
    assert isinstance(tenon.backend.prepare(graphs.double([2])), OnnxRuntimeBackendRep)


def test_a_dictionary_may_be_the_value_of_the_only_input() -> None:
    kind = helper.make_map_type_proto(
        onnx.TensorProto.INT64, helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [])
    )
    model = graphs.model(
        [helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml")],
        [helper.make_value_info("x", kind)],
        [graphs.tensor("y", shape=[1, None])],
    )
    assert tenon.backend.prepare(model).run({0: 2.0, 1: 3.0}).y.tolist() == [[2, 3]]
