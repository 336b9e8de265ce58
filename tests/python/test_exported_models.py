"""What exporters write, and what the frameworks that they export from compute."""

import graphs
import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

REDUCTIONS = {
    "ReduceSum": lambda x: x,
    "ReduceMean": lambda x: x,
    "ReduceMax": lambda x: x,
    "ReduceMin": lambda x: x,
    "ReduceProd": lambda x: x,
    "ReduceL1": np.abs,
    "ReduceL2": np.abs,
    "ReduceSumSquare": np.square,
    "ReduceLogSumExp": lambda x: x,
}


@pytest.mark.parametrize("op_type", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("opset", [11, 18])
def test_a_scalar_has_an_axis_to_reduce(op_type: str, axis: int, opset: int) -> None:
    """As in PyTorch and NumPy, where it changes nothing."""
    is_input = opset == 18
    axes = [numpy_helper.from_array(np.array([axis]), "axes")] if is_input else []
    attributes = {} if is_input else {"axes": [axis]}
    node = helper.make_node(op_type, ["x", *(a.name for a in axes)], ["y"], keepdims=1)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    content = graphs.model(
        [node], [graphs.tensor("x", shape=[])], [graphs.tensor("y")], opset=opset, initializers=axes
    )
    x = np.array(-1.5, np.float32)
    [y] = tenon.InferenceSession(content).run(None, {"x": x})
    assert y.shape == ()
    np.testing.assert_allclose(y, REDUCTIONS[op_type](x), rtol=1e-6)


@pytest.mark.parametrize("op_type", ["ReduceSum", "ReduceMax"])
@pytest.mark.parametrize("axes", [[1], [-2], [0, 0]])
def test_a_scalar_has_no_other_axes(op_type: str, axes: list[int]) -> None:
    content = graphs.model(
        [helper.make_node(op_type, ["x", "axes"], ["y"])],
        [graphs.tensor("x", shape=[])],
        [graphs.tensor("y")],
        opset=18,
        initializers=[numpy_helper.from_array(np.array(axes), "axes")],
    )
    with pytest.raises(Exception, match="rank 0"):
        tenon.InferenceSession(content)


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(("size", "drops"), [(1, True), (2, False), ([1, 1, 1, 1], False)])
def test_pieces_of_one_element_lose_the_axis(is_constant: bool, size: object, drops: bool) -> None:
    """PyTorch's unbind, which is written with a size of 1 and keepdims=0."""
    split = np.array(size)
    inputs = [graphs.tensor("x", shape=[4, 3])]
    if not is_constant:
        inputs.append(graphs.tensor("split", TensorProto.INT64, list(split.shape)))
    content = graphs.model(
        [helper.make_node("SplitToSequence", ["x", "split"], ["y"], axis=0, keepdims=0)],
        inputs,
        [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
        opset=13,
        initializers=[numpy_helper.from_array(split, "split")] if is_constant else [],
    )
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    feeds = {"x": x} if is_constant else {"x": x, "split": split}
    [pieces] = tenon.InferenceSession(content).run(None, feeds)
    expected = list(x) if drops else np.split(x, 4 if split.ndim else 4 // int(split))
    assert [p.tolist() for p in pieces] == [e.tolist() for e in expected]
