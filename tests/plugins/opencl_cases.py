"""Shared by the tests of plugins/opencl: a case for every operator, models, comparisons."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from plugin_runtimes import BUILD, placement, session_on

LIBRARY = BUILD / "plugins" / "opencl" / "libtenon_opencl.so"
PROVIDER = "OpenCLExecutionProvider"


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def node(op: str, inputs: list, outputs: int = 1, opset: int = 17, domain: str = "", **attributes):
    """A model of one node. Inputs that are (array,) are constants, None are absent."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    constants = [
        numpy_helper.from_array(x[0], name)
        for name, x in zip(names, inputs, strict=True)
        if isinstance(x, tuple)
    ]
    feeds = {name: x for name, x in zip(names, inputs, strict=True) if isinstance(x, np.ndarray)}
    return graph(
        [helper.make_node(op, names, results, domain=domain, **attributes)],
        feeds,
        results,
        constants,
        opset,
    ), feeds


def graph(nodes: list, feeds: dict, results: list, constants: list, opset: int = 17) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    made = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    return helper.make_model(made, opset_imports=opsets, ir_version=9).SerializeToString()


def check(module, devices: list, model: bytes, feeds: dict, expected: list | None = None) -> None:
    """Claims all of the model; its results are the expected ones, by default the CPU's."""
    session = session_on(module, devices, model, graph_optimization_level=unoptimized(module))
    assert list(placement(session)) == [PROVIDER]
    expected = expected or on_cpu(module, model).run(None, feeds)
    for _ in range(2):
        for got, wanted in zip(session.run(None, feeds), expected, strict=True):
            compare(got, wanted)


def compare(got: np.ndarray, wanted: np.ndarray) -> None:
    """Floats differ by at most 2e-5 of the largest element, those of float16 also by one unit of
    their last place: the expected number may have been close to the middle of two."""
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    if wanted.dtype not in (np.float32, np.float16):
        np.testing.assert_array_equal(got, wanted)
        return
    finite = wanted[np.isfinite(wanted)]
    atol = 2e-5 * float(np.abs(finite).max(initial=1))
    rtol = 2e-5 if wanted.dtype == np.float32 else 2**-10
    np.testing.assert_allclose(
        got.astype(np.float32), wanted.astype(np.float32), rtol=rtol, atol=atol
    )


def cast_arrays(arrays: list, dtype: type) -> list:
    """The inputs of a case, or results, with their floats in another type."""

    def cast(x):
        if isinstance(x, tuple):
            return (cast(x[0]),)
        return x.astype(dtype) if x is not None and x.dtype in (np.float32, np.float16) else x

    return [cast(x) for x in arrays]


def on_cpu(module, model: bytes):
    return module.InferenceSession(model, providers=["CPUExecutionProvider"])


def unoptimized(module):
    return module.GraphOptimizationLevel.ORT_DISABLE_ALL


X = floats(2, 3, 5, 7)
ROW = floats(7, seed=1)
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -3, 0.5], np.float32)
IMAGE = floats(2, 6, 9, 11)
MASK = floats(2, 3, 5, 7, seed=5) > 0

CASES = {
    **{
        op: (op, [np.concatenate([SPECIAL, floats(100)])], {})
        for op in "Abs Neg Exp Sqrt Reciprocal Floor Ceil Round Sin Cos Tanh Erf Sigmoid Relu "
        "Softplus Softsign HardSwish LeakyRelu Elu Selu HardSigmoid".split()
    },
    "Log": ("Log", [np.abs(floats(100)) + 0.1], {}),
    **{op: (op, [X, ROW], {}) for op in "Add Sub Mul Div Max Min Greater LessOrEqual".split()},
    "Add both broadcast": ("Add", [floats(3, 1, 7), floats(2, 1, 5, 1)], {}),
    "Add scalar": ("Add", [X, (np.float32(3),)], {}),
    "Add of nothing": ("Add", [floats(0, 3), floats(1, 3)], {}),
    "Add int64": ("Add", [integers(1, 2, 3), integers(4, 5, 1 << 40)], {}),
    "Equal int64": ("Equal", [integers(1, 2, 3), integers(1, 5, 3)], {}),
    "And": ("And", [MASK, MASK[:, :1]], {}),
    "Not": ("Not", [MASK], {}),
    "Pow": ("Pow", [np.abs(X), (np.float32(1.7),)], {}),
    "Pow 2": ("Pow", [X, (np.float32(2),)], {}),
    "PRelu": ("PRelu", [X, floats(3, 1, 1)], {}),
    "Sum": ("Sum", [X, ROW, X], {}),
    "Mean": ("Mean", [X, ROW, X], {}),
    "Where": ("Where", [MASK, X, ROW], {}),
    "Cast to int": ("Cast", [X * 10], {"to": TensorProto.INT64}),
    "Cast to bool": ("Cast", [np.round(X)], {"to": TensorProto.BOOL}),
    "Cast to float": ("Cast", [MASK], {"to": TensorProto.FLOAT}),
    "Clip": ("Clip", [X, (np.float32(-0.5),), (np.float32(0.7),)], {}),
    "Clip above": ("Clip", [X, None, (np.float32(0.7),)], {}),
    "Gelu": ("Gelu", [X], {"opset": 20}),
    "Gelu tanh": ("Gelu", [X], {"opset": 20, "approximate": "tanh"}),
    "FastGelu": ("FastGelu", [X, ROW], {"domain": "com.microsoft"}),
    "BatchNormalization": (
        "BatchNormalization",
        [X, floats(3), floats(3, seed=1), floats(3, seed=2), np.abs(floats(3, seed=3))],
        {},
    ),
    "MatMul": ("MatMul", [floats(37, 70), floats(70, 131, seed=1)], {}),
    "MatMul batches": ("MatMul", [floats(2, 1, 5, 17), floats(3, 17, 6, seed=1)], {}),
    "MatMul vectors": ("MatMul", [floats(17), floats(17, seed=1)], {}),
    "MatMul matrix vector": ("MatMul", [floats(4, 5, 17), floats(17, seed=1)], {}),
    "Gemm": (
        "Gemm",
        [floats(20, 33), (floats(40, 20, seed=1),), (floats(40, seed=2),)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
    ),
    "Conv": (
        "Conv",
        [IMAGE, (floats(16, 6, 3, 3, seed=1),), (floats(16, seed=2),)],
        {"pads": [1, 1, 1, 1], "strides": [2, 1]},
    ),
    "Conv 1x1": ("Conv", [IMAGE, (floats(20, 6, 1, 1, seed=1),)], {}),
    "Conv dilated": (
        "Conv",
        [IMAGE, (floats(9, 6, 3, 2, seed=1),)],
        {"dilations": [2, 3], "pads": [0, 2, 1, 0]},
    ),
    "Conv same": (
        "Conv",
        [IMAGE, (floats(9, 6, 4, 3, seed=1),)],
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ),
    "Conv groups": ("Conv", [IMAGE, (floats(18, 3, 3, 3, seed=1),)], {"group": 2}),
    "Conv depthwise": (
        "Conv",
        [IMAGE, (floats(6, 1, 3, 3, seed=1),), (floats(6, seed=2),)],
        {"group": 6, "pads": [1, 1, 1, 1]},
    ),
    "Conv 1-D": ("Conv", [floats(2, 4, 50), (floats(8, 4, 5, seed=1),)], {"strides": [3]}),
    "MaxPool": ("MaxPool", [IMAGE], {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}),
    "MaxPool padded": ("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "AveragePool": ("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1]}),
    "AveragePool with pads": (
        "AveragePool",
        [IMAGE],
        {"kernel_shape": [3, 3], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    "GlobalAveragePool": ("GlobalAveragePool", [IMAGE], {}),
    "GlobalMaxPool": ("GlobalMaxPool", [IMAGE], {}),
    **{
        op: (op, [X], {"axes": [1, -1], "keepdims": 0})
        for op in "ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
        "ReduceLogSumExp".split()
    },
    "ReduceSum": ("ReduceSum", [X, (integers(2),)], {}),
    "ReduceSum of int64": (
        "ReduceSum",
        [np.arange(600).reshape(2, 300) << 40, (integers(1),)],
        {"keepdims": 0},
    ),
    "ReduceSum of int32": (
        "ReduceSum",
        [np.arange(600, dtype=np.int32).reshape(2, 300), (integers(0),)],
        {},
    ),
    "ReduceMean all": ("ReduceMean", [X], {}),
    "ArgMax": ("ArgMax", [X], {"axis": 1, "keepdims": 0}),
    "ArgMin last": ("ArgMin", [np.round(X)], {"axis": -1, "select_last_index": 1}),
    "Softmax": ("Softmax", [floats(4, 1000)], {}),
    "Softmax axis 1": ("Softmax", [X], {"axis": 1}),
    "Softmax 11": ("Softmax", [X], {"axis": 2, "opset": 11}),
    "LogSoftmax": ("LogSoftmax", [X], {}),
    "LayerNormalization": ("LayerNormalization", [X, ROW, floats(7, seed=2)], {}),
    "LayerNormalization axis": ("LayerNormalization", [X, floats(5, 7)], {"axis": 2}),
    "InstanceNormalization": ("InstanceNormalization", [X, floats(3), floats(3, seed=1)], {}),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        [floats(2, 5, 8), floats(2, 5, 8, seed=1), floats(8), floats(8, seed=2), floats(8, seed=3)],
        {"domain": "com.microsoft"},
    ),
    "Reshape": ("Reshape", [X, (integers(0, -1, 5),)], {}),
    "Flatten": ("Flatten", [X], {"axis": 2}),
    "Squeeze": ("Squeeze", [floats(1, 3, 1, 2), (integers(0),)], {}),
    "Unsqueeze": ("Unsqueeze", [X, (integers(0, -1),)], {}),
    "Transpose": ("Transpose", [X], {"perm": [2, 0, 3, 1]}),
    "Transpose int64": ("Transpose", [np.arange(12).reshape(3, 4)], {}),
    "Expand": ("Expand", [floats(3, 1), (integers(2, 1, 6),)], {}),
    "Slice": ("Slice", [X, (integers(1, -2),), (integers(100, -6),), (integers(2, 3),),
                        (integers(2, -2),)], {}),
    "Split": ("Split", [X, (integers(2, 5),)], {"axis": 3, "outputs": 2}),
    "Concat": ("Concat", [X, floats(2, 1, 5, 7, seed=1), X], {"axis": 1}),
    "LRN": ("LRN", [IMAGE], {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.5}),
    "LRN across all": ("LRN", [floats(2, 3, 4, 1)], {"size": 9, "alpha": 0.3}),
    **{
        f"Pad {mode}": ("Pad", [X, (integers(0, 1, 2, 0, 0, 0, 1, 3),)], {"mode": mode})
        for mode in ("reflect", "edge")
    },
    "Pad wrap": (
        "Pad", [X, (integers(0, 1, 9, 0, 0, 0, 1, 3),)], {"mode": "wrap", "opset": 19}
    ),
    "Pad int64": ("Pad", [integers(5, 6, 7), (integers(2, 1),)], {"mode": "reflect"}),
    "Pad": ("Pad", [X, (integers(0, 1, 2, 0, 0, 0, 1, 3),), (np.float32(2.5),)], {}),
    "Gather": ("Gather", [(floats(10, 6),), integers(3, -1, 0, 9).reshape(2, 2)], {}),
    "Gather axis 1": ("Gather", [X, np.array([2, 0], np.int32)], {"axis": 1}),
    "ConstantOfShape": ("ConstantOfShape", [(integers(3, 4),)], {}),
    "Concat odd rows": ("Concat", [floats(5, 3), floats(5, 1, seed=1), floats(5, 7)], {"axis": 1}),
    "Slice of one": ("Slice", [floats(7), (integers(3),), (integers(4),)], {}),
    "Relu of nothing": ("Relu", [floats(0, 3)], {}),
}  # fmt: skip


def residual() -> tuple[bytes, dict]:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["c"]),
        helper.make_node("Conv", ["c", "w"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "x"], ["e"]),
        helper.make_node("Relu", ["e"], ["y0"]),
        helper.make_node("GlobalAveragePool", ["y0"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y1"]),
    ]
    constants = [
        numpy_helper.from_array(floats(8, 8, 3, 3, seed=1), "w"),
        numpy_helper.from_array(floats(8, seed=2), "b"),
    ]
    feeds = {"x": floats(2, 8, 12, 10)}
    return graph(nodes, feeds, ["y0", "y1"], constants), feeds
