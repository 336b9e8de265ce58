"""Runs that are compared with runs without optimizations (tenon.verify): user need OPT-2."""

import pathlib

import graphs
import numpy as np
import onnx.parser
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

CONVOLUTION = """<ir_version: 9, opset_import: ["" : 19]>
g (float[1, 3, 8, 8] x, float[1, 3, 8, 8] z) => (float[1, 3, 8, 8] same, float[1, 3, 8, 8] y)
{
  same = Add (x, z)
  [first] c = Conv <pads = [1, 1, 1, 1]> (x, w)
  [second] n = BatchNormalization (c, s, b, b, s)
  [third] y = Relu (n)
}
"""


def convolution() -> bytes:
    model = onnx.parser.parse_model(CONVOLUTION)
    generator = np.random.default_rng(1)
    for name, shape in (("w", (3, 3, 3, 3)), ("s", (3,)), ("b", (3,))):
        value = generator.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    return model.SerializeToString()


FEEDS = {
    name: np.random.default_rng(seed).standard_normal((1, 3, 8, 8)).astype(np.float32)
    for seed, name in enumerate("xz")
}


def verified(model: bytes | str, **entries: str) -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.add_session_config_entry("tenon.verify", "1")
    for name, value in entries.items():
        options.add_session_config_entry(f"tenon.{name}", value)
    return tenon.InferenceSession(model, options)


def test_good_optimizations_pass() -> None:
    session = verified(convolution())
    expected = tenon.InferenceSession(convolution()).run(None, FEEDS)
    for _ in range(3):
        for got, wanted in zip(session.run(None, FEEDS), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_the_first_difference_is_named(tmp_path: pathlib.Path) -> None:
    """A normalization that goes into weights rounds otherwise."""
    path = tmp_path / "model.onnx"
    path.write_bytes(convolution())
    for model in (convolution(), str(path)):
        session = verified(model, **{"verify.tolerance": "0"})
        with pytest.raises(Exception, match=r"tenon\.verify") as caught:
            session.run(None, FEEDS)
        text = str(caught.value)
        assert "output 'y' differs from that without optimizations by " in text
        assert "of its greatest element, which float may by 0; " in text
        assert "the first optimization with which it differs is " in text
        assert "at BatchNormalization-15 node 'second'" in text
        (same,) = session.run(["same"], FEEDS)
        np.testing.assert_array_equal(same, FEEDS["x"] + FEEDS["z"])


def test_a_pass_that_is_left_out_makes_no_difference() -> None:
    options = tenon.SessionOptions()
    options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("tenon.verify", "1")
    options.add_session_config_entry("tenon.verify.tolerance", "0")
    tenon.InferenceSession(convolution(), options).run(None, FEEDS)


def test_random_outputs_are_told_apart() -> None:
    model = graphs.model(
        [helper.make_node("RandomUniformLike", ["x"], ["y"])],
        [graphs.tensor("x", shape=[64])],
        [graphs.tensor("y", shape=[64])],
    )
    session = verified(model)
    with pytest.raises(Exception, match="the model's outputs differ from run to run"):
        session.run(None, {"x": np.zeros(64, np.float32)})


def test_outputs_that_lie_over_feeds_are_compared() -> None:
    """The run writes over the memory that the other run reads."""
    session = verified(graphs.double(shape=[4]))
    x = np.arange(4, dtype=np.float32)
    binding = session.io_binding()
    value = tenon.OrtValue.ortvalue_from_numpy(x)
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output("y", value)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), 2 * np.arange(4, dtype=np.float32))


def test_texts_and_integers_are_equal() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING),
        helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        helper.make_node("IsNaN", ["x"], ["b"]),
        helper.make_node("Log", ["x"], ["l"]),
    ]
    outputs = [
        graphs.tensor("s", TensorProto.STRING),
        graphs.tensor("i", TensorProto.INT64),
        graphs.tensor("b", TensorProto.BOOL),
        graphs.tensor("l"),
    ]
    session = verified(graphs.model(nodes, [graphs.tensor("x", shape=["n"])], outputs, opset=20))
    s, i, b, logarithms = session.run(None, {"x": np.array([-1, 0, 1.5], np.float32)})
    assert list(i) == [-1, 0, 1]
    assert len(s) == len(b) == 3
    assert np.isnan(logarithms[0])
    assert np.isinf(logarithms[1])


def test_failures_are_those_of_the_run() -> None:
    session = verified(graphs.double(shape=[4]))
    with pytest.raises(Exception, match="x") as caught:
        session.run(None, {"x": np.zeros(5, np.float32)})
    assert "tenon.verify" not in str(caught.value)


@pytest.mark.parametrize("tolerance", ["much", "-1", ""])
def test_a_bad_tolerance_is_named(tolerance: str) -> None:
    with pytest.raises(Exception, match=r"tenon\.verify\.tolerance.*at least 0, got"):
        verified(graphs.double(), **{"verify.tolerance": tolerance})
