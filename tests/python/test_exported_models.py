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
