"""Pad beside NumPy: rows of all lengths, whose ends and neighbours are padded apart."""

from __future__ import annotations

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    "float32": TensorProto.FLOAT,
    "int8": TensorProto.INT8,
    "complex64": TensorProto.COMPLEX64,
    "object": TensorProto.STRING,
}
SHAPES = [(9,), (1, 1), (40, 3), (2, 19, 33), (3, 2, 17, 8), (2, 5, 150), (2, 3, 7, 1)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pads(mode: str, dtype: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    options = tenon.SessionOptions()
    options.intra_op_num_threads = threads
    for shape in SHAPES:
        most = [min(size, 5) if mode == "reflect" else 5 for size in shape]
        pads = [(int(rng.integers(0, n)), int(rng.integers(0, n))) for n in most]
        numbers = rng.integers(-100, 100, shape)
        x = numbers.astype(str).astype(object) if dtype == "object" else numbers.astype(dtype)
        value = np.array("pad" if dtype == "object" else 7, dtype)
        inputs = [helper.make_tensor_value_info("x", TYPES[dtype], shape)]
        inputs.append(helper.make_tensor_value_info("value", TYPES[dtype], []))
        node = helper.make_node("Pad", ["x", "pads", "value"], ["y"], mode=mode)
        output = helper.make_tensor_value_info("y", TYPES[dtype], None)
        ends = np.array(pads).T.ravel()
        constant = numpy_helper.from_array(ends, "pads")
        graph = helper.make_graph([node], "g", inputs, [output], [constant])
        opsets = [helper.make_opsetid("", 19)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        session = tenon.InferenceSession(model.SerializeToString(), options)
        (y,) = session.run(None, {"x": x, "value": value})
        given = {"constant_values": value.item()} if mode == "constant" else {}
        np.testing.assert_array_equal(y, np.pad(x, pads, mode, **given))
