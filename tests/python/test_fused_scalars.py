"""Scalars that are combined give the results of the operators one by one, in float64."""

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

CHAINS = {
    "pictures": [("Div", 255.0), ("Sub", 0.485), ("Div", 0.229)],
    "reversed inputs": [("Mul", 3.0), ("Add", 0.5), ("Mul", -2.0), ("Add", 0.25)],
    "rounds": [("Add", 8388608.0), ("Sub", 8388608.0)],
    "overflows": [("Mul", 1e30), ("Mul", 1e30), ("Mul", 1e-30)],
    "zero": [("Mul", 2.0), ("Mul", 0.0), ("Add", 1.0)],
}


def chain(steps: list[tuple[str, float]], scalar_first: bool, kind: int) -> bytes:
    """Applies the steps; commutative ones have the scalar as first input if told."""
    nodes, constants = [], []
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    for i, (op, value) in enumerate(steps):
        constants.append(numpy_helper.from_array(np.array(value, dtype), f"c{i}"))
        inputs = [f"x{i}", f"c{i}"]
        if scalar_first and op in ("Add", "Mul"):
            inputs.reverse()
        nodes.append(helper.make_node(op, inputs, [f"x{i + 1}"]))
    x = helper.make_tensor_value_info("x0", kind, [4, 50])
    y = helper.make_tensor_value_info(f"x{len(steps)}", kind, [4, 50])
    graph = helper.make_graph(nodes, "chain", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


@pytest.mark.parametrize("scalar_first", [False, True])
@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_scalars_match_the_reference(name: str, scalar_first: bool) -> None:
    steps = CHAINS[name]
    x = np.random.default_rng(0).uniform(-300, 300, (4, 50)).astype(np.float32)
    model = chain(steps, scalar_first, TensorProto.FLOAT)
    actual = tenon.InferenceSession(model).run(None, {"x0": x})[0]
    with np.errstate(over="ignore"):
        expected = ReferenceEvaluator(model).run(None, {"x0": x})[0]
    if name in ("rounds", "overflows", "zero"):  # computed as they are written
        np.testing.assert_array_equal(actual, expected)
        return
    exact = chain(steps, scalar_first, TensorProto.DOUBLE)
    expected = ReferenceEvaluator(exact).run(None, {"x0": x.astype(np.float64)})[0]
    np.testing.assert_allclose(actual, expected, rtol=0, atol=4e-7 * np.abs(expected).max())
