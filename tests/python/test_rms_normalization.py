"""RMSNormalization-23 whose input and scale have different types; the output has the scale's."""

import itertools

import contrib
import numpy as np
import onnx
import pytest
import tenon
from onnx.reference import ReferenceEvaluator

TYPES = (np.float16, np.float32, np.float64)
PAIRS = [(x, scale) for x, scale in itertools.product(TYPES, TYPES) if x is not scale]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of means of nothing
@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize(("x_type", "scale_type"), PAIRS)
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("shape", [(2, 3, 20), (2, 3, 0), (0, 3, 20)])
def test_scales_of_another_type(
    axis: int, x_type: type, scale_type: type, constants: tuple, shape: tuple
) -> None:
    x = contrib.floats(*shape, dtype=x_type)
    scale = contrib.floats(*shape[2:], seed=1, dtype=scale_type)
    content = contrib.model(
        "RMSNormalization",
        [x, scale],
        {"y": scale_type},
        domain="",
        opset=23,
        constants=constants,
        axis=axis,
    )
    # The reference computes in the type of x, and gives its type.
    wide = contrib.model(
        "RMSNormalization",
        [x.astype(np.float64), scale.astype(np.float64)],
        {"y": np.float64},
        domain="",
        opset=23,
        axis=axis,
    )
    feeds = {"x0": x} if constants else {"x0": x, "x1": scale}
    (y,) = tenon.InferenceSession(content).run(None, feeds)
    (expected,) = ReferenceEvaluator(onnx.load_from_string(wide)).run(
        None, {"x0": x.astype(np.float64), "x1": scale.astype(np.float64)}
    )
    assert y.dtype == scale_type
    narrowest = max(np.finfo(scale_type).eps, np.finfo(np.float32).eps)
    np.testing.assert_allclose(y, expected, rtol=4 * narrowest, atol=4 * narrowest)


def test_memory_of_the_input_is_not_written_while_it_is_read() -> None:
    x = contrib.floats(64, 32)
    scale = contrib.floats(32, seed=1, dtype=np.float64)
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Neg", ["x"], ["negative"]),
            onnx.helper.make_node("RMSNormalization", ["negative", "scale"], ["norm"]),
            onnx.helper.make_node("Neg", ["norm"], ["y"]),
        ],
        "graph",
        [
            onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape),
            onnx.helper.make_tensor_value_info("scale", onnx.TensorProto.DOUBLE, scale.shape),
        ],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, x.shape)],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=10
    )
    session = tenon.InferenceSession(model.SerializeToString())
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide * wide).mean(-1, keepdims=True) + 1e-5) * scale
    for _ in range(3):
        np.testing.assert_allclose(
            session.run(None, {"x": x, "scale": scale})[0], expected, rtol=1e-6
        )
