"""Models that a plugin compiles: written by ModelCompiler, read again by the plugin."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from plugin_runtimes import BUILD, placement, registered, runtime

LIBRARY = BUILD / "tests" / "plugin" / "libmock_plugin.so"
PROVIDER = "MockProvider"


def model() -> bytes:
    """y = Relu(x * x); the plugin compiles the product."""
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["square"]),
            helper.make_node("Relu", ["square"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.fixture
def tenon():
    return runtime("tenon")


@pytest.fixture
def options(tenon) -> Iterator:
    with registered(tenon, LIBRARY, PROVIDER) as devices:
        options = tenon.SessionOptions()
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        options.add_provider_for_devices(devices, {})
        yield options


def check(session) -> None:
    assert placement(session)[PROVIDER] == ["EPContext"]
    (y,) = session.run(None, {"x": np.array([1, -2, 3], np.float32)})
    np.testing.assert_array_equal(y, [1, 4, 9])


@pytest.mark.parametrize("embeds", [False, True])
def test_a_compiled_file_runs(tenon, options, tmp_path: Path, embeds: bool) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(model())
    compiler = tenon.ModelCompiler(options, str(source), embed_compiled_data_into_model=embeds)
    compiler.compile_to_file()
    compiled = tmp_path / "model_ctx.onnx"
    written = onnx.load(compiled)
    onnx.checker.check_model(written)
    nodes = written.graph.node
    assert [node.op_type for node in nodes] == ["EPContext", "Relu"]
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in nodes[0].attribute}
    assert attributes["embed_mode"] == int(embeds)
    assert attributes["source"] == PROVIDER.encode()
    others = set(os.listdir(tmp_path)) - {"model.onnx", "model_ctx.onnx"}
    assert len(others) == (0 if embeds else 1)
    check(tenon.InferenceSession(compiled, options))


def test_compiled_bytes_and_streams_run(tenon, options) -> None:
    compiler = tenon.ModelCompiler(options, model(), embed_compiled_data_into_model=True)
    compiled = compiler.compile_to_bytes()
    pieces: list[bytes] = []
    compiler.compile_to_stream(pieces.append)
    assert b"".join(pieces) == compiled
    check(tenon.InferenceSession(compiled, options))


def test_a_session_without_the_plugin_refuses_it(tenon, options) -> None:
    compiled = tenon.ModelCompiler(
        options, model(), embed_compiled_data_into_model=True
    ).compile_to_bytes()
    with pytest.raises(Exception, match="EPContext"):
        tenon.InferenceSession(compiled)


def test_flags_ask_for_something_compiled(tenon, options) -> None:
    flags = tenon.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED
    tenon.ModelCompiler(options, model(), True, flags=flags).compile_to_bytes()
    with pytest.raises(Exception, match="Unable to compile any nodes"):
        tenon.ModelCompiler(tenon.SessionOptions(), model(), flags=flags).compile_to_bytes()
