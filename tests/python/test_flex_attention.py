"""FlexAttention, whose result other nodes take as a view or as a part of theirs."""

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

SHAPE = [2, 3, 16, 16]  # of q, k and v
RNG = np.random.default_rng(0)
FEEDS = {name: RNG.standard_normal(SHAPE, dtype=np.float32) for name in "qkv"}


def attention():
    q, k, v = (FEEDS[name].astype(np.float64) for name in "qkv")
    weights = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(SHAPE[-1]))
    return weights / weights.sum(-1, keepdims=True) @ v


READERS = {
    "nothing": ([], attention),
    "a view": (
        [
            helper.make_node("Reshape", ["a", "rows"], ["r"]),
            helper.make_node("CumSum", ["r", "axis"], ["y"]),
        ],
        lambda: np.cumsum(attention().reshape(-1, SHAPE[-1]), axis=0),
    ),
    "a concatenation": (
        [
            helper.make_node("CumSum", ["q", "axis"], ["b"]),
            helper.make_node("Concat", ["a", "b"], ["c"], axis=0),
            helper.make_node("CumSum", ["c", "axis"], ["y"]),
        ],
        lambda: np.cumsum(np.concatenate([attention(), np.cumsum(FEEDS["q"], axis=0)]), axis=0),
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_result_is_where_readers_expect_it(reader) -> None:
    nodes, expected = READERS[reader]
    made = "a" if nodes else "y"
    graph = helper.make_graph(
        [helper.make_node("FlexAttention", list("qkv"), [made], domain="ai.onnx.preview"), *nodes],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "qkv"],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.array([-1, SHAPE[-1]]), "rows"),
            numpy_helper.from_array(np.array(0), "axis"),
        ],
    )
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid("ai.onnx.preview", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=11)
    session = tenon.InferenceSession(model.SerializeToString())
    for _ in range(3):
        np.testing.assert_allclose(session.run(None, FEEDS)[0], expected(), rtol=1e-5, atol=1e-5)
