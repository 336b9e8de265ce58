"""The ONNX models of regions as the package onnx reads them."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")

import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from tenon.torch._graph import CONTRIB, IR_VERSION, OPSET, TYPES, GraphBuilder  # noqa: E402
from tenon.torch._wire import ElementType  # noqa: E402

ATTRIBUTES = {
    "axis": -1,
    "count": 1 << 40,
    "keeps": True,
    "epsilon": 1e-5,
    "direction": "forward\N{GREEK SMALL LETTER ALPHA}",
    "pads": [0, -3, 300],
    "dilations": (1, 2),
}


def test_model_is_the_one_that_onnx_makes():
    builder = GraphBuilder()
    names = [builder.add_input([n, 3], dtype) for n, dtype in enumerate(TYPES, 126)]
    number = builder.constant(1.5, torch.float32)
    assert builder.constant(1.5, torch.float32) == number
    y, none, z = builder.contrib("Any", names[0], "", number, outputs=[True, False, True])
    assert none is None
    w = builder.op("Other", y, **ATTRIBUTES)
    builder.declare(w, [], torch.int32)
    result = builder.add_output(w, [1 << 33], torch.float32)

    expected = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("Any", [names[0], "", number], [y, "", z], domain=CONTRIB),
                helper.make_node("Other", [y], [w], **ATTRIBUTES),
                helper.make_node("Identity", [w], [result]),
            ],
            "region",
            [
                helper.make_tensor_value_info(name, TYPES[dtype], [n, 3])
                for n, (name, dtype) in enumerate(zip(names, TYPES, strict=True), 126)
            ],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1 << 33])],
            [numpy_helper.from_array(np.float32(1.5), number)],
            value_info=[helper.make_tensor_value_info(w, TensorProto.INT32, [])],
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)],
        ir_version=IR_VERSION,
    )
    actual = onnx.load_from_string(builder.model())
    # The order of attributes has no meaning.
    for model in (actual, expected):
        for node in model.graph.node:
            node.attribute.sort(key=lambda attribute: attribute.name)
    assert actual == expected


@pytest.mark.parametrize("kind", ElementType)
def test_types_of_elements(kind):
    assert getattr(TensorProto, kind.name) == kind


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, -2], torch.int64),
        ([[7, 1 << 30]], torch.int32),
        ([True, False], torch.bool),
        (0.1, torch.float64),
        (float("-inf"), torch.float32),
        ([], torch.float32),
    ],
)
def test_constants(value, dtype):
    builder = GraphBuilder()
    builder.constant(value, dtype)
    (constant,) = onnx.load_from_string(builder.model()).graph.initializer
    expected = np.asarray(value, helper.tensor_dtype_to_np_dtype(TYPES[dtype]))
    actual = numpy_helper.to_array(constant)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
