"""tenon.tools.symbolic_shape_infer: shapes with names, held against shapes of real runs."""

import itertools
import math
from fractions import Fraction

import graphs
import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from tenon.tools import _sizes
from tenon.tools.symbolic_shape_infer import SymbolicShapeInference

BATCHES = (1, 2, 3, 7)


def value_of(text: str | int, **names: int) -> int:
    """What a size is for given values of its names."""
    known = {name: Fraction(number) for name, number in names.items()}
    known |= {"floor": math.floor, "Min": min, "Max": max}
    return int(eval(str(text).replace("floor(", "floor(one*"), known | {"one": Fraction(1)}))


def shapes_of(model: onnx.ModelProto) -> dict[str, list[str | int]]:
    return {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.value_info
    }


def test_arithmetic_of_sizes_is_that_of_numbers() -> None:
    n, m = _sizes.named("N"), _sizes.named("M")
    some = [0, 1, -2, 7, n, m]
    some += [_sizes.add(n, 3), _sizes.subtract(_sizes.multiply(n, 2), m), _sizes.multiply(n, m)]
    some += [_sizes.subtract(1, n), _sizes.subtract(-2, _sizes.multiply(n, 3))]
    operations = {
        _sizes.add: lambda a, b: a + b,
        _sizes.subtract: lambda a, b: a - b,
        _sizes.multiply: lambda a, b: a * b,
        _sizes.divide: lambda a, b: a // b,
        _sizes.smaller: min,
        _sizes.larger: max,
    }
    for a, b in itertools.product(some, some):
        for numbers in itertools.product(BATCHES, BATCHES):
            names = dict(zip("NM", numbers, strict=True))
            left, right = value_of(a, **names), value_of(b, **names)
            for make, expected in operations.items():
                if make is _sizes.divide and (b == 0 or right == 0):
                    continue
                size = make(a, b)
                assert value_of(size, **names) == expected(left, right), (str(a), str(b), str(size))


def ints(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


CHAINS = {
    # Shape, a part of it, and Reshape.
    "flatten": (
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Gather", ["shape", "zero"], ["n"]),
            helper.make_node("Mul", ["n", "four"], ["long"]),
            helper.make_node("Concat", ["long", "minus"], ["target"], axis=0),
            helper.make_node("Reshape", ["x", "target"], ["y"]),
        ],
        ["4*N", 2],
    ),
    "halves": (
        [
            helper.make_node("Concat", ["x", "x", "x"], ["xxx"], axis=0),
            helper.make_node("Slice", ["xxx", "zero", "far", "zero", "two"], ["y"]),
        ],
        ["floor((3*N + 1)/2)", 8],
    ),
    "ends": (
        [
            helper.make_node("Concat", ["x", "x"], ["xx"], axis=0),
            helper.make_node("Shape", ["x"], ["shape"], end=1),
            helper.make_node("Neg", ["shape"], ["back"]),
            helper.make_node("Slice", ["xx", "back", "far"], ["y"]),
        ],
        ["N", 8],
    ),
    "flipped": (
        [helper.make_node("Slice", ["x", "minus", "near", "zero", "minus"], ["y"])],
        ["N", 8],
    ),
    "expanded": (
        [
            helper.make_node("Shape", ["x"], ["shape"]),
            helper.make_node("Concat", ["two", "shape"], ["target"], axis=0),
            helper.make_node("Expand", ["x", "target"], ["y"]),
        ],
        [2, "N", 8],
    ),
    "squared": (
        [
            helper.make_node("Einsum", ["x", "x"], ["square"], equation="ik,jk->ij"),
            helper.make_node("Unsqueeze", ["square", "zero"], ["y"]),
        ],
        [1, "N", "N"],
    ),
}


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_shapes_are_those_of_runs(name: str) -> None:
    nodes, expected = CHAINS[name]
    constants = {"zero": 0, "two": 2, "four": 4, "minus": -1, "far": 2**40, "near": -(2**40)}
    model = onnx.load_from_string(
        graphs.model(
            nodes,
            [graphs.tensor("x", shape=["N", 8])],
            [graphs.tensor("y")],
            initializers=[ints(*item) for item in constants.items()],
        )
    )
    inferred = SymbolicShapeInference.infer_shapes(model)
    shape = shapes_of(inferred)["y"]
    assert shape == expected
    given = [
        dim.dim_param or dim.dim_value
        for dim in inferred.graph.output[0].type.tensor_type.shape.dim
    ]
    assert given == shape
    session = tenon.InferenceSession(model)
    for n in BATCHES:
        (y,) = session.run(None, {"x": np.zeros((n, 8), np.float32)})
        assert list(y.shape) == [value_of(size, N=n) for size in shape]


def test_fractions_of_sizes_are_exact() -> None:
    for kind, factor in (("Mul", 0.5), ("Div", 1.5)):
        graph = helper.make_graph(
            [
                helper.make_node("Shape", ["x"], ["shape"]),
                helper.make_node(kind, ["shape", "factor"], ["sizes"]),
                helper.make_node("Resize", ["x", "", "", "sizes"], ["y"]),
            ],
            "g",
            [graphs.tensor("x", shape=[768])],
            [graphs.tensor("y")],
            [numpy_helper.from_array(np.array([factor], np.float32), "factor")],
        )
        inferred = SymbolicShapeInference.infer_shapes(helper.make_model(graph))
        assert shapes_of(inferred)["y"] == [384 if kind == "Mul" else 512]


def test_knows_operators_of_onnxruntime() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain="com.microsoft"),
        helper.make_node(
            "QLinearAdd",
            ["q", "s", "z", "row", "s", "z", "s", "z"],
            ["sum"],
            domain="com.microsoft",
        ),
        helper.make_node("DequantizeLinear", ["sum", "s", "z"], ["d"], domain="com.microsoft"),
        helper.make_node(
            "MatMulNBits",
            ["d", "w", "s"],
            ["y"],
            domain="com.microsoft",
            K=8,
            N=5,
            bits=4,
            block_size=16,
        ),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [
                graphs.tensor("x", shape=["N", 1, 8]),
                graphs.tensor("s", shape=[]),
                graphs.tensor("z", TensorProto.INT8, []),
                graphs.tensor("row", TensorProto.INT8, [4, 8]),
                graphs.tensor("w", TensorProto.UINT8, [5, 1, 8]),
            ],
            [graphs.tensor("y")],
        )
    )
    shapes = shapes_of(SymbolicShapeInference.infer_shapes(model))
    assert shapes == {"q": ["N", 1, 8], "sum": ["N", 4, 8], "d": ["N", 4, 8], "y": ["N", 4, 5]}


def test_names_what_is_not_known() -> None:
    model = onnx.load_from_string(
        graphs.model(
            [helper.make_node("NonZero", ["x"], ["y"])],
            [graphs.tensor("x", shape=["N"])],
            [graphs.tensor("y", TensorProto.INT64)],
        )
    )
    inferred = SymbolicShapeInference.infer_shapes(model, prefix="some_")
    assert shapes_of(inferred)["y"] == [1, "some_y_dim_1"]


def test_branches_have_one_type() -> None:
    def branch(kind: int) -> onnx.GraphProto:
        value = helper.make_tensor("v", kind, [], [1])
        return helper.make_graph(
            [helper.make_node("Constant", [], ["r"], value=value)],
            "b",
            [],
            [graphs.tensor("r", kind, [])],
        )

    def model(other: int) -> onnx.ModelProto:
        node = helper.make_node(
            "If", ["c"], ["y"], "choice", then_branch=branch(1), else_branch=branch(other)
        )
        return helper.make_model(
            helper.make_graph(
                [node], "g", [graphs.tensor("c", TensorProto.BOOL, [])], [graphs.tensor("y")]
            )
        )

    assert shapes_of(SymbolicShapeInference.infer_shapes(model(1))) == {"y": []}
    with pytest.raises(ValueError, match=r"choice.*FLOAT and DOUBLE"):
        SymbolicShapeInference.infer_shapes(model(TensorProto.DOUBLE))
