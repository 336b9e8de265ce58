"""InferenceSession: creation, its information about the model, runs, wrong feeds."""

import os
import pathlib
import re

import graphs
import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from tenon.capi import onnxruntime_pybind11_state as state

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("kind", [str, pathlib.Path, bytes, bytearray, memoryview])
def test_loads_files_and_bytes(kind: type, tmp_path: pathlib.Path) -> None:
    content = graphs.double()
    source: object = tmp_path / "model.onnx"
    if kind in (str, pathlib.Path):
        (tmp_path / "model.onnx").write_bytes(content)
        source = kind(source)
    else:
        source = kind(content)
    (y,) = tenon.InferenceSession(source).run(None, {"x": X})
    np.testing.assert_array_equal(y, X + X)


def test_says_what_the_model_takes_and_gives() -> None:
    session = tenon.InferenceSession(graphs.double(["batch", None, 3]))
    (x,) = session.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["batch", None, 3])
    assert repr(x) == "NodeArg(name='x', type='tensor(float)', shape=['batch', None, 3])"
    (y,) = session.get_outputs()
    assert (y.name, y.type) == ("y", "tensor(float)")
    assert session.get_overridable_initializers() == []


def test_takes_overridable_initializers() -> None:
    content = graphs.model(
        [helper.make_node("Add", ["x", "b"], ["y"])],
        [graphs.tensor("x"), graphs.tensor("b", shape=[1])],
        [graphs.tensor("y")],
        initializers=[helper.make_tensor("b", TensorProto.FLOAT, [1], [10])],
    )
    session = tenon.InferenceSession(content)
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    assert [arg.name for arg in session.get_overridable_initializers()] == ["b"]
    (y,) = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, X + 10)
    (y,) = session.run(None, {"x": X, "b": np.array([1], np.float32)})
    np.testing.assert_array_equal(y, X + 1)


def test_gives_the_metadata() -> None:
    content = graphs.model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [graphs.tensor("x")],
        [graphs.tensor("y")],
        producer_name="maker",
        domain="org.example",
        doc_string="doubles",
        model_version=7,
    )
    meta = tenon.InferenceSession(content).get_modelmeta()
    assert (meta.producer_name, meta.domain, meta.description) == (
        "maker",
        "org.example",
        "doubles",
    )
    assert (meta.graph_name, meta.version, meta.custom_metadata_map) == ("graph", 7, {})


def test_chooses_outputs_by_name() -> None:
    content = graphs.model(
        [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Abs", ["n"], ["a"])],
        [graphs.tensor("x")],
        [graphs.tensor("n"), graphs.tensor("a")],
    )
    session = tenon.InferenceSession(content)
    a, n = session.run(["a", "n"], {"x": X})
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(n, -X)
    assert len(session.run([], {"x": X})) == 2
    (n,) = session.run(("n",), {"x": X})
    np.testing.assert_array_equal(n, -X)


def test_asks_for_missing_inputs_as_onnxruntime_does() -> None:
    session = tenon.InferenceSession(graphs.double())
    text = re.escape("Required inputs (['x']) are missing from input feed ([]).")
    with pytest.raises(ValueError, match=text):
        session.run(None, {})


def test_names_unknown_inputs_as_the_c_interface_does() -> None:
    session = tenon.InferenceSession(graphs.double())
    with pytest.raises(ValueError) as raised:
        session.run(None, {"xx": X})
    text = "Invalid input name: 'xx' (did you mean 'x'?); the model's inputs are: x"
    assert str(raised.value) == text
    with pytest.raises(state.InvalidArgument, match=re.escape("Invalid input name: 'z'; the")):
        session.run(None, {"x": X, "z": X})


# Feeds, output names, words of the error.
WRONG_RUNS = (
    ({"x": X, "z": X}, None, "z"),
    ({"x": X}, ["q"], "q"),
    (
        {"x": X.astype(np.float64)},
        None,
        r"Actual: \(tensor\(double\)\) , expected: \(tensor\(float\)\)$",
    ),
    ({"x": X[0]}, None, "x"),
    ({"x": np.zeros((2, 4), np.float32)}, None, "4"),
)


@pytest.mark.parametrize(("feeds", "names", "words"), WRONG_RUNS)
def test_says_what_is_wrong_with_a_run(feeds: dict, names: list | None, words: str) -> None:
    session = tenon.InferenceSession(graphs.double([2, 3]))
    with pytest.raises(state.InvalidArgument, match=words) as raised:
        session.run(names, feeds)
    assert str(raised.value).startswith("[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : ")
    (y,) = session.run(None, {"x": X})  # still usable
    np.testing.assert_array_equal(y, X + X)


# Arguments of InferenceSession, the exception, words of it.
WRONG_MODELS = (
    ("no/such/file.onnx", state.NoSuchFile, "no/such/file.onnx"),
    (b"\xff\xff\xff\xff", state.InvalidProtobuf, "INVALID_PROTOBUF"),
    (3, TypeError, "int"),
)


@pytest.mark.parametrize(("model", "exception", "words"), WRONG_MODELS)
def test_says_what_is_wrong_with_a_model(model: object, exception: type, words: str) -> None:
    with pytest.raises(exception, match=words):
        tenon.InferenceSession(model)


def test_names_the_operator_that_is_unknown() -> None:
    content = graphs.model(
        [helper.make_node("NoSuchOperator", ["x"], ["y"])],
        [graphs.tensor("x")],
        [graphs.tensor("y")],
    )
    with pytest.raises(Exception, match="NoSuchOperator"):
        tenon.InferenceSession(content)


def test_warns_of_unknown_providers_and_runs_on_the_cpu() -> None:
    with pytest.warns(UserWarning, match="NoSuchExecutionProvider"):
        session = tenon.InferenceSession(
            graphs.double(), providers=["NoSuchExecutionProvider", ("CPUExecutionProvider", {})]
        )
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}


@pytest.mark.parametrize(
    "arguments",
    [
        {"providers": [3]},
        {"providers": ["CPUExecutionProvider"], "provider_options": []},
        {"providers": [("CPUExecutionProvider", {})], "provider_options": [{}]},
    ],
)
def test_refuses_wrong_providers(arguments: dict) -> None:
    with pytest.raises(ValueError, match="provider"):
        tenon.InferenceSession(graphs.double(), **arguments, enable_fallback=False)


def test_runs_with_values() -> None:
    session = tenon.InferenceSession(graphs.double())
    x = tenon.OrtValue.ortvalue_from_numpy(X)
    (y,) = session.run_with_ort_values(None, {"x": x})
    np.testing.assert_array_equal(y.numpy(), X + X)
    (z,) = session.run_with_ort_values(["y"], {"x": y})
    np.testing.assert_array_equal(z.numpy(), 4 * X)
    (array,) = session.run(None, {"x": z})
    np.testing.assert_array_equal(array, 8 * X)


def test_runs_with_a_binding() -> None:
    session = tenon.InferenceSession(graphs.double())
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    out = np.zeros_like(X)
    binding.bind_ortvalue_output("y", tenon.OrtValue.ortvalue_from_numpy(out))
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out, X + X)  # written in place
    binding.clear_binding_outputs()
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (y,) = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(y, X + X)
    binding.bind_input("x", "cpu", 0, np.float32, X.shape, out.ctypes.data)
    session.run_with_iobinding(binding)
    (y,) = binding.get_outputs()
    np.testing.assert_array_equal(y.numpy(), 4 * X)


def test_a_value_may_be_bound_as_input_and_output() -> None:
    """y = x + -exp(-x): nothing is written to y while x is still needed."""
    model = graphs.model(
        [
            helper.make_node("Neg", ["x"], ["a"]),
            helper.make_node("Exp", ["a"], ["b"]),
            helper.make_node("Neg", ["b"], ["c"]),
            helper.make_node("Add", ["c", "x"], ["y"]),
        ],
        [graphs.tensor("x", shape=["n"])],
        [graphs.tensor("y", shape=["n"])],
    )
    session = tenon.InferenceSession(model)
    value = tenon.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    x = np.array([0, 1, 2], np.float32)
    for _ in range(3):
        value.update_inplace(x)
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(value.numpy(), x - np.exp(-x), rtol=1e-6)


def test_arrays_of_a_binding_stay_as_they_are_in_later_runs() -> None:
    session = tenon.InferenceSession(graphs.double())
    for make in (None, lambda: tenon.OrtValue.ortvalue_from_numpy(np.zeros_like(X))):
        binding = session.io_binding()
        if make is None:
            binding.bind_output("y")
        else:
            binding.bind_ortvalue_output("y", make())
        binding.bind_cpu_input("x", X)
        session.run_with_iobinding(binding)
        (first,) = binding.copy_outputs_to_cpu()
        binding.bind_cpu_input("x", 3 * X)
        session.run_with_iobinding(binding)
        (second,) = binding.copy_outputs_to_cpu()
        np.testing.assert_array_equal(first, 2 * X)
        np.testing.assert_array_equal(second, 6 * X)


@pytest.mark.parametrize("through_view", [False, True])
def test_a_feed_is_read_before_an_output_bound_to_it_is_written(through_view: bool) -> None:
    """y may not take x's place while z is still to be made from x, or from a view of it."""
    nodes = [
        helper.make_node("Expand", ["one", "shape"], ["ones"]),  # a shape known only in the run
        helper.make_node("Add", ["x", "ones"], ["y"]),
    ]
    if through_view:
        nodes.insert(0, helper.make_node("Unsqueeze", ["x", "zero"], ["column"]))
        nodes.append(helper.make_node("Mul", ["y", "column"], ["z"]))
    else:
        nodes.append(helper.make_node("Mul", ["y", "x"], ["z"]))
    model = graphs.model(
        nodes,
        [graphs.tensor("x", shape=["n"]), graphs.tensor("shape", TensorProto.INT64, [1])],
        [graphs.tensor("y", shape=["m"]), graphs.tensor("z", shape=["k"])],
        initializers=[
            numpy_helper.from_array(np.ones(1, np.float32), "one"),
            numpy_helper.from_array(np.array([0]), "zero"),
        ],
    )
    session = tenon.InferenceSession(model)
    x = np.array([1, 2, 3], np.float32)
    value = tenon.OrtValue.ortvalue_from_numpy(x.copy())
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", value)
    binding.bind_cpu_input("shape", np.array([3]))
    binding.bind_ortvalue_output("y", value)
    binding.bind_output("z")
    for _ in range(3):
        value.update_inplace(x)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(value.numpy(), x + 1)
        z = binding.get_outputs()[1].numpy()
        np.testing.assert_array_equal(z.reshape(-1), x * (x + 1))


def test_a_constant_result_in_the_callers_memory_is_made_in_each_run() -> None:
    """The caller may change it between two runs."""
    model = graphs.model(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Neg", ["shape"], ["y"]),
            helper.make_node("Neg", ["y"], ["z"]),
        ],
        [graphs.tensor("x", shape=["n"])],
        [graphs.tensor("y", TensorProto.INT64, [1]), graphs.tensor("z", TensorProto.INT64, [1])],
    )
    session = tenon.InferenceSession(model)
    value = tenon.OrtValue.ortvalue_from_numpy(np.array([0]))
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.zeros(5, np.float32))
    binding.bind_ortvalue_output("y", value)
    binding.bind_output("z")
    for _ in range(3):
        session.run_with_iobinding(binding)
        assert value.numpy().tolist() == [-5]
        assert binding.get_outputs()[1].numpy().tolist() == [5]
        value.update_inplace(np.array([1]))
    assert session.run(["y"], {"x": np.zeros(5, np.float32)})[0].tolist() == [-5]


def test_results_that_are_views_of_constants_come_in_every_run() -> None:
    model = graphs.model(
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Reshape", ["table", "shape"], ["y"]),
        ],
        [graphs.tensor("x", shape=["n", "m"])],
        [graphs.tensor("y", shape=["n", "m"])],
        initializers=[numpy_helper.from_array(np.arange(6, dtype=np.float32), "table")],
    )
    session = tenon.InferenceSession(model)
    value = tenon.OrtValue.ortvalue_from_numpy(np.zeros((3, 2), np.float32))
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.zeros((3, 2), np.float32))
    binding.bind_ortvalue_output("y", value)
    for _ in range(3):
        assert session.run(None, {"x": np.zeros((2, 3), np.float32)})[0].tolist() == [
            [0, 1, 2],
            [3, 4, 5],
        ]
        session.run_with_iobinding(binding)
        assert value.numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
        value.update_inplace(np.zeros((3, 2), np.float32))


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_inner_graphs_read_what_follows_from_shapes(level: str) -> None:
    """Later runs with the same shapes do not compute `n` again; only the branch reads it."""
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 19]>
        counted (float[n] x, bool counts) => (float y)
        {
          n = Shape(x)
          y = If(counts) <
            then_branch = all () => (float all) {
              float = Cast<to = 1>(n)
              all = Squeeze(float)
            },
            else_branch = sum () => (float sum) { sum = ReduceSum<keepdims = 0>(x) }
          >
        }""")
    options = tenon.SessionOptions()
    options.graph_optimization_level = getattr(tenon.GraphOptimizationLevel, level)
    session = tenon.InferenceSession(model.SerializeToString(), options)
    for size in (3, 3, 3, 5, 3, 5):
        feeds = {"x": np.full(size, 2, np.float32), "counts": np.array(True)}
        assert session.run(None, feeds)[0] == size
        assert session.run(None, feeds | {"counts": np.array(False)})[0] == 2 * size


def test_a_model_may_resize_to_nothing_in_nodes_that_no_run_reaches() -> None:
    """Old models have empty tensors in place of scales and sizes."""
    model = graphs.model(
        [
            helper.make_node("Resize", ["x", "none", "none"], ["z"]),
            helper.make_node("Neg", ["x"], ["y"]),
        ],
        [graphs.tensor("x", shape=[1, 1, 2, 2])],
        [graphs.tensor("y", shape=[1, 1, 2, 2]), graphs.tensor("z")],
        initializers=[numpy_helper.from_array(np.zeros(0, np.float32), "none")],
    )
    session = tenon.InferenceSession(model)
    x = np.ones((1, 1, 2, 2), np.float32)
    options = tenon.RunOptions()
    with pytest.raises(Exception, match="Resize"):
        session.run(["z"], {"x": x}, options)


def test_session_outlives_the_bytes_and_file_it_came_from(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.double())
    session = tenon.InferenceSession(path)
    os.remove(path)
    (y,) = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, X + X)


def test_errors_of_bindings_are_runtime_errors() -> None:
    session = tenon.InferenceSession(graphs.identity(shape=[2]))
    binding = session.io_binding()
    with pytest.raises(RuntimeError, match=r"Error in execution: .*missing"):
        session.run_with_iobinding(binding)
    binding.bind_cpu_input("x", np.zeros(3, np.float32))
    binding.bind_output("y")
    with pytest.raises(RuntimeError, match=r"Error in execution: .*expected size 2"):
        session.run_with_iobinding(binding)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ([X], "expected the inputs as a dict, by name; got list"),
        ({1: X}, "expected the name of a value as a str, got int"),
    ],
)
def test_says_what_feeds_are_made_of(feeds: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tenon.InferenceSession(graphs.identity()).run(None, feeds)


def test_levels_and_modes_are_integers() -> None:
    assert int(tenon.GraphOptimizationLevel.ORT_ENABLE_ALL) == 99
    assert tenon.ExecutionMode.ORT_PARALLEL == 1
    assert str(tenon.ExecutionMode.ORT_PARALLEL) == "ExecutionMode.ORT_PARALLEL"


def test_native_devices() -> None:
    native = state.OrtDevice(state.OrtDevice.cuda(), state.OrtDevice.default_memory(), 3)
    device = tenon.OrtDevice(native)
    assert (device.device_type(), device.device_mem_type(), device.device_id()) == (1, 0, 3)
    assert state.OrtDevice(1, 0, 0x10DE, 3).vendor_id() == 0x10DE
    assert tenon.OrtDevice.make("cuda", 1)._get_c_device().vendor_id() == 0x10DE
    with pytest.raises(TypeError, match="expected 3 or 4 numbers, got 2"):
        state.OrtDevice(0, 0)
