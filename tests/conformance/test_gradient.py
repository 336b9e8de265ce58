"""Compares Gradient of ai.onnx.preview.training with the differences of the function itself."""

import numpy as np
import pytest
import tenon
from onnx import parser

TRAINING = "ai.onnx.preview.training"
HEADER = (
    '<ir_version: 8, opset_import: ["": {opset}, "com.microsoft": 1,'
    ' "ai.onnx.preview.training": 1]>\n'
)

# A function of a and b in ONNX's text form, and their shapes.
CASES = {
    "Abs": ("y = Abs (a)", [2, 3], [1]),
    "Add broadcasts both": ("y = Add (a, b)", [3, 1], [2, 1, 4]),
    "Add to a scalar": ("y = Add (a, b)", [2, 3], []),
    "Sub": ("y = Sub (a, b)", [3], [2, 3]),
    "Mul": ("y = Mul (a, b)", [2, 1, 3], [4, 1]),
    "Mul by itself": ("y = Mul (a, a)", [3], [1]),
    "Div": ("y = Div (a, b)", [2, 3], [3]),
    "Pow": ("y = Pow (a, b)", [2, 3], [3]),
    "Neg, Exp": ("c = Neg (a)\n y = Exp (c)", [2, 3], [1]),
    "Log, Sqrt": ("c = Log (a)\n d = Sqrt (b)\n y = Mul (c, d)", [2, 3], [2, 3]),
    "Reciprocal": ("y = Reciprocal (a)", [4], [1]),
    "Sin, Cos": ("c = Sin (a)\n d = Cos (b)\n y = Mul (c, d)", [4], [4]),
    "Relu": ("c = Sub (a, b)\n y = Relu (c)", [5], [5]),
    "Sigmoid, Tanh": ("c = Sigmoid (a)\n d = Tanh (c)\n y = Mul (d, b)", [5], [5]),
    "Sum": ("y = Sum (a, b, a)", [2, 3], [3]),
    "Identity": ("c = Identity (a)\n y = Mul (c, b)", [2], [2]),
    "Where": ("c = Greater (a, b)\n y = Where (c, a, b)", [2, 3], [3]),
    "Cast": ("c = Cast <to=11> (a)\n y = Mul (c, b)", [2, 3], [3]),
    "Reshape": (
        "s = Constant <value_ints=[3, 2]> ()\n c = Reshape (a, s)\n y = Mul (c, b)",
        [2, 3],
        [2],
    ),
    "Flatten": ("c = Flatten (a)\n y = Mul (c, b)", [2, 3, 2], [6]),
    "Transpose": ("c = Transpose <perm=[2, 0, 1]> (a)\n y = Mul (c, b)", [2, 3, 4], [2, 3]),
    "Transpose all": ("c = Transpose (a)\n y = Mul (c, b)", [2, 3], [2]),
    "Squeeze, Unsqueeze": (
        "s = Constant <value_ints=[1]> ()\n c = Squeeze (a, s)\n"
        "d = Unsqueeze (c, s)\n y = Mul (d, b)",
        [2, 1, 3],
        [2, 2, 3],
    ),
    "Expand": (
        "s = Constant <value_ints=[4, 2, 3]> ()\n c = Expand (a, s)\n y = Mul (c, b)",
        [2, 1],
        [3],
    ),
    "ReduceSum": (
        "s = Constant <value_ints=[-1]> ()\n c = ReduceSum (a, s)\n y = Mul (c, b)",
        [2, 3],
        [2, 1],
    ),
    "ReduceSum drops": (
        "s = Constant <value_ints=[0, 2]> ()\nc = ReduceSum <keepdims=0> (a, s)\n y = Mul (c, b)",
        [2, 3, 4],
        [3],
    ),
    "ReduceSum of all": ("c = ReduceSum <keepdims=0> (a)\n y = Mul (c, b)", [2, 3], [3]),
    "ReduceMean": ("c = ReduceMean <axes=[1]> (a)\n y = Mul (c, b)", [2, 3], [2, 1]),
    "ReduceMean drops": ("c = ReduceMean <axes=[0], keepdims=0> (a)\n y = Mul (c, b)", [2, 3], [3]),
    "Softmax": ("c = Softmax (a)\n y = Mul (c, b)", [2, 3], [2, 3]),
    "LogSoftmax": ("c = LogSoftmax <axis=0> (a)\n y = Mul (c, b)", [2, 3], [2, 3]),
    "MatMul": ("y = MatMul (a, b)", [2, 3], [3, 4]),
    "MatMul in batches": ("y = MatMul (a, b)", [5, 1, 2, 3], [4, 3, 2]),
    "MatMul of vectors": ("y = MatMul (a, b)", [3], [3]),
    "MatMul of a row": ("y = MatMul (a, b)", [3], [2, 3, 4]),
    "MatMul by a column": ("y = MatMul (a, b)", [2, 2, 3], [3]),
    "Gemm": ("y = Gemm <alpha=0.5, beta=2.0> (a, b, a)", [3, 3], [3, 3]),
    "Gemm with bias": ("w = Exp (a)\n c = Gemm (a, w, b)\n y = Mul (c, c)", [3, 3], [3]),
    "Gemm of a'": ("y = Gemm <transA=1> (a, b)", [3, 2], [3, 4]),
    "Gemm of b'": ("y = Gemm <transB=1> (a, b)", [2, 3], [4, 3]),
    "Gemm of both": ("y = Gemm <transA=1, transB=1> (a, b)", [3, 2], [4, 3]),
    "no way from b": ("y = Exp (a)", [2], [3]),
    "no way through integers": ("c = Shape (b)\n d = Cast <to=11> (c)\n y = Mul (a, d)", [2], [2]),
    # The values keep away from the integers, where these functions jump.
    "Cast to integers and back": (
        "c = Cast <to=7> (b)\n d = Cast <to=11> (c)\n y = Mul (a, d)",
        [4],
        [4],
    ),
    "Cast to booleans and back": (
        "c = Cast <to=9> (b)\n d = CastLike (c, a)\n y = Mul (a, d)",
        [4],
        [4],
    ),
    "a fraction": (
        "c = Cast <to=7> (b)\n d = Cast <to=11> (c)\n e = Sub (b, d)\n y = Mul (a, e)",
        [4],
        [4],
    ),
    "operators of integers without a gradient": (
        "c = Cast <to=7> (b)\n d = Max (c, c)\n e = Cast <to=11> (d)\n f = Erf (e)\ny = Mul (a, f)",
        [4],
        [4],
    ),
    "an integer exponent": ("c = Cast <to=7> (b)\n y = Pow (a, c)", [4], [4]),
    "Tan, Atan": ("c = Tan (a)\n d = Atan (b)\n y = Mul (c, d)", [4], [4]),
    "Sinh, Cosh": ("c = Sinh (a)\n d = Cosh (b)\n y = Mul (c, d)", [4], [4]),
    "Asinh, Erf": ("c = Asinh (a)\n d = Erf (b)\n y = Mul (c, d)", [4], [4]),
    "Asin, Acos, Atanh, Acosh": (
        "one = Constant <value_float=2.5> ()\n two = CastLike (one, a)\n c = Div (a, two)\n"
        "d = Asin (c)\n e = Acos (c)\n f = Mul (d, e)\n g = Atanh (c)\n h = Add (b, two)\n"
        "i = Acosh (h)\n j = Mul (f, g)\n y = Mul (i, j)",
        [4],
        [4],
    ),
    "Max, Min": ("c = Max (a, b)\n d = Min (b, a, c)\n y = Mul (c, d)", [4, 3], [3]),
    "Mean": ("y = Mean (a, b, a)", [2, 3], [3]),
    "Mod": ("y = Mod <fmod=1> (a, b)", [6], [6]),
    "Clip": (
        "one = Constant <value_float=1.25> ()\n high = CastLike (one, a)\n"
        "low = ReduceMin <keepdims=0> (b)\n c = Clip (a, low, high)\n y = Mul (c, c)",
        [9],
        [2],
    ),
    "Clip without bounds": ("c = Clip (a)\n y = Mul (c, b)", [4], [4]),
    "Concat": ("c = Concat <axis=-1> (a, b, a)\n y = Mul (c, c)", [2, 3], [2, 1]),
    "Split": (
        "s = Constant <value_ints=[1, 2]> ()\n c, d = Split <axis=1> (a, s)\n y = Mul (c, b)",
        [2, 3],
        [2, 1],
    ),
    "Tile": (
        "s = Constant <value_ints=[2, 3]> ()\n c = Tile (a, s)\n y = Mul (c, b)",
        [2, 3],
        [4, 9],
    ),
    "Pad": (
        "p = Constant <value_ints=[1, -1, 0, 2]> ()\n v = ReduceSum <keepdims=0> (b)\n"
        "c = Pad (a, p, v)\n y = Mul (c, c)",
        [2, 3],
        [2],
    ),
    **{
        f"Pad by {mode}": (
            f"p = Constant <value_ints=[1, 2, 0, 2, 1, -1]> ()\n"
            f'c = Pad <mode="{mode}"> (a, p)\n y = Mul (c, b)',
            [3, 4, 3],
            [7, 1],
        )
        for mode in ["edge", "reflect"]
    },
    "SpaceToDepth": ("c = SpaceToDepth <blocksize=2> (a)\n y = Mul (c, b)", [1, 2, 4, 6], [2, 3]),
    "DepthToSpace": ("c = DepthToSpace <blocksize=2> (a)\n y = Mul (c, b)", [1, 8, 2, 3], [4, 6]),
    "DepthToSpace CRD": (
        'c = DepthToSpace <blocksize=2, mode="CRD"> (a)\n y = Mul (c, b)',
        [1, 8, 2, 3],
        [4, 6],
    ),
    "Trilu": (
        "k = Constant <value_int=1> ()\n c = Trilu <upper=0> (a, k)\n y = Mul (c, b)",
        [3, 4],
        [4],
    ),
    "CumSum": (
        "k = Constant <value_int=1> ()\n c = CumSum <exclusive=1> (a, k)\n"
        "d = CumSum <reverse=1> (c, k)\n y = Mul (d, b)",
        [2, 4],
        [4],
    ),
    "Gather": (
        "i = Constant <value_ints=[2, 0, 2, -1]> ()\n c = Gather <axis=1> (a, i)\n y = Mul (c, b)",
        [2, 3],
        [4],
    ),
    "ReverseSequence": (
        "n = Constant <value_ints=[2, 3, 1]> ()\n"
        "c = ReverseSequence <time_axis=0, batch_axis=1> (a, n)\n y = Mul (c, b)",
        [4, 3, 2],
        [4, 1, 1],
    ),
    "GatherElements": (
        "h = Constant <value_ints=[0, 1, 1, 0, 0, -1]> ()\n s = Constant <value_ints=[2, 3]> ()\n"
        "i = Reshape (h, s)\n c = GatherElements (a, i)\n y = Mul (c, b)",
        [2, 3],
        [3],
    ),
    "GatherND": (
        "h = Constant <value_ints=[0, 1, 1, 0, 0, 1]> ()\n s = Constant <value_ints=[3, 2]> ()\n"
        "i = Reshape (h, s)\n c = GatherND (a, i)\n y = Mul (c, b)",
        [2, 3],
        [3],
    ),
    "Slice": (
        "f = Constant <value_ints=[1, -1]> ()\n t = Constant <value_ints=[3, -9]> ()\n"
        "x = Constant <value_ints=[0, 1]> ()\n p = Constant <value_ints=[1, -2]> ()\n"
        "c = Slice (a, f, t, x, p)\n y = Mul (c, b)",
        [4, 5],
        [3],
    ),
    "TopK": (
        "k = Constant <value_ints=[2]> ()\n c, i = TopK <axis=0> (a, k)\n y = Mul (c, b)",
        [4, 3],
        [3],
    ),
    "Compress": (
        "h = Constant <value_ints=[1, 0, 1]> ()\n m = Cast <to=9> (h)\n"
        "c = Compress <axis=1> (a, m)\n y = Mul (c, b)",
        [2, 3],
        [2],
    ),
    "ScatterElements": (
        "h = Constant <value_ints=[1, 0, 1]> ()\n s = Constant <value_ints=[1, 3]> ()\n"
        "i = Reshape (h, s)\n c = ScatterElements (a, i, b)\n y = Mul (c, c)",
        [2, 3],
        [1, 3],
    ),
    "ScatterElements that adds": (
        "h = Constant <value_ints=[1, 1, 1]> ()\n s = Constant <value_ints=[3, 1]> ()\n"
        'i = Reshape (h, s)\n c = ScatterElements <reduction="add"> (a, i, b)\n y = Mul (c, c)',
        [3, 2],
        [3, 1],
    ),
    "ScatterND": (
        "h = Constant <value_ints=[2, 0]> ()\n s = Constant <value_ints=[2, 1]> ()\n"
        "i = Reshape (h, s)\n c = ScatterND (a, i, b)\n y = Mul (c, c)",
        [3, 2],
        [2, 2],
    ),
    "ReduceMax": ("c = ReduceMax <axes=[1]> (a)\n y = Mul (c, b)", [3, 4], [3, 1]),
    "ReduceMin drops": ("c = ReduceMin <axes=[0], keepdims=0> (a)\n y = Mul (c, b)", [3, 4], [4]),
    "ReduceL1": ("c = Sub (a, b)\n y = ReduceL1 <axes=[0]> (c)", [3, 4], [4]),
    "ReduceL2": ("c = Sub (a, b)\n y = ReduceL2 <axes=[1], keepdims=0> (c)", [3, 4], [4]),
    "ReduceSumSquare": ("y = ReduceSumSquare <axes=[1]> (a)", [3, 4], [1]),
    "ReduceLogSum": ("c = ReduceLogSum <axes=[1]> (a)\n y = Mul (c, b)", [3, 4], [3, 1]),
    "ReduceLogSumExp": ("c = ReduceLogSumExp <keepdims=0> (a)\n y = Mul (c, b)", [3, 4], [2]),
    "Einsum": ('y = Einsum <equation="bij, bjk -> ki"> (a, b)', [2, 3, 4], [2, 4, 2]),
    "Einsum in batches": ('y = Einsum <equation="...ij,...j->...i"> (a, b)', [5, 3, 4], [2, 1, 4]),
    "Einsum of diagonals beside other axes": (
        'y = Einsum <equation="i...i,i->..."> (a, b)',
        [3, 2, 4, 3],
        [3],
    ),
    "Einsum that sums all axes": ('y = Einsum <equation="...i,j->j"> (a, b)', [3, 2, 4], [5]),
    "Einsum that sums beside other axes": (
        'y = Einsum <equation="i...j,...k->...k"> (a, b)',
        [3, 2, 4],
        [2, 5],
    ),
    "Einsum without an output": ('y = Einsum <equation="...b,...ba"> (a, b)', [3], [4, 3, 2]),
    "Einsum that sums one operand": (
        'c = Einsum <equation="ij,k->k"> (a, b)\n y = Mul (c, c)',
        [2, 3],
        [4],
    ),
    "GlobalAveragePool": ("c = GlobalAveragePool (a)\n y = Mul (c, b)", [2, 3, 4, 2], [3, 1, 1]),
    "GlobalMaxPool": ("c = GlobalMaxPool (a)\n y = Mul (c, b)", [2, 3, 4, 2], [3, 1, 1]),
    "MaxPool": (
        "c = MaxPool <kernel_shape=[2, 3], strides=[1, 2], pads=[1, 0, 0, 1]> (a)\n y = Mul (c, b)",
        [2, 3, 4, 5],
        [3, 1, 1],
    ),
    "LayerNormalization": (
        "one = Constant <value_float=0.5> ()\n h = CastLike (one, a)\n s = Pow (b, h)\n"
        "c = LayerNormalization <axis=-2> (a, s, b)\n y = Mul (c, c)",
        [3, 2, 4],
        [2, 4],
    ),
    "LayerNormalization with a broadcast scale": (
        "c = LayerNormalization <axis=1> (a, b)\n y = Mul (c, c)",
        [3, 2, 4],
        [4],
    ),
    "BatchNormalization": (
        "m = Exp (b)\n v = Mul (b, b)\n c = BatchNormalization (a, b, m, m, v)\n y = Mul (c, c)",
        [2, 3, 2],
        [3],
    ),
    "BatchNormalization in training": (
        "z = Sub (b, b)\n c, m, v = BatchNormalization <training_mode=1> (a, b, b, z, z)\n"
        "d = Mul (c, c)\n y = Mul (d, c)",
        [2, 3, 4],
        [3],
    ),
    "InstanceNormalization": (
        "e = Exp (b)\n c = InstanceNormalization (a, b, e)\n d = Mul (c, c)\n y = Mul (d, c)",
        [2, 3, 4],
        [3],
    ),
    "LpNormalization": ("c = LpNormalization <axis=1> (a)\n y = Mul (c, b)", [2, 4], [4]),
    "LpNormalization of sums": ("c = LpNormalization <p=1> (a)\n y = Mul (c, b)", [2, 4], [4]),
    "Dropout": ("c = Dropout (a)\n y = Mul (c, b)", [2, 4], [4]),
    "NegativeLogLikelihoodLoss": (
        "h = Constant <value_ints=[2, 0, 1, 3]> ()\n"
        "c = NegativeLogLikelihoodLoss <ignore_index=1> (a, h)\n y = Mul (c, b)",
        [4, 4],
        [2],
    ),
    "SoftmaxCrossEntropyLoss": (
        "h = Constant <value_ints=[2, 0, 1, 1, 0, 2]> ()\n s = Constant <value_ints=[2, 3]> ()\n"
        "i = Reshape (h, s)\n w = Constant <value_floats=[1.0, 0.5, 2.0]> ()\n"
        "v = CastLike (w, a)\n"
        "c, l = SoftmaxCrossEntropyLoss (a, i, v)\n y = Mul (c, b)",
        [2, 3, 3],
        [2],
    ),
    "SoftmaxCrossEntropyLoss of each": (
        "h = Constant <value_ints=[2, 0, 1]> ()\n"
        'c = SoftmaxCrossEntropyLoss <reduction="none", ignore_index=0> (a, h)\n y = Mul (c, b)',
        [3, 4],
        [3],
    ),
    "SoftmaxCrossEntropyLoss as a sum": (
        "h = Constant <value_ints=[2, 0, 1]> ()\n"
        'c = SoftmaxCrossEntropyLoss <reduction="sum"> (a, h)\n y = Mul (c, b)',
        [3, 4],
        [3],
    ),
    "MeanVarianceNormalization, by its body": (
        "c = MeanVarianceNormalization <axes=[0, 2]> (a)\n y = Mul (c, b)",
        [2, 3, 4],
        [3, 1],
    ),
}
# Functions that bend at 0, and their arguments around it.
ACTIVATIONS = {
    "Celu": "<alpha=1.5>",
    "Elu": "<alpha=0.5>",
    "HardSigmoid": "<alpha=0.3>",
    "HardSwish": "",
    "LeakyRelu": "<alpha=0.2>",
    "Mish": "",
    "Relu": "",
    "Selu": "",
    "Shrink": "<lambd=0.5, bias=0.25>",
    "Softplus": "",
    "Softsign": "",
    "ThresholdedRelu": "<alpha=0.75>",
}
BENT = [-4.25, -2.5, -1.1, -0.3, 0.2, 0.6, 1.3, 3.5]
GRADIENT = f'da, db = {TRAINING}.Gradient <xs=["a", "b"], y="y"> (a, b)'


def make_model(nodes: str, shapes: list, outputs: list[str], opset: int):
    def text(name: str, shape: list) -> str:
        dims = f"[{', '.join(map(str, shape))}]" if shape else ""
        return f"double{dims} {name}"

    inputs = ", ".join(text(name, shape) for name, shape in zip("ab", shapes, strict=False))
    signature = f"g ({inputs}) => ({', '.join(f'double {name}' for name in outputs)})"
    model = parser.parse_model(HEADER.format(opset=opset) + signature + " {\n" + nodes + "\n}")
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return tenon.InferenceSession(model.SerializeToString())


# Of the central difference of sixth order, for steps of 1, 2 and 3.
WEIGHTS = (3 / 4, -3 / 20, 1 / 60)
STEP = 2e-3


def differences(run, values: list[np.ndarray]) -> list[np.ndarray]:
    """The derivatives of the sum of what `run` gives, by central differences."""
    found = []
    for i, value in enumerate(values):
        slopes = np.zeros(value.size)
        for k in range(value.size):
            for steps, weight in enumerate(WEIGHTS, 1):
                for sign in (1, -1):
                    changed = [v.copy() for v in values]
                    changed[i].reshape(-1)[k] += sign * steps * STEP
                    slopes[k] += sign * weight * run(changed).sum() / STEP
        found.append(slopes.reshape(value.shape))
    return found


# Functions that choose among elements: none may be near another.
CHOOSING = {"GlobalMaxPool", "Max, Min", "MaxPool", "Mod", "ReduceMax", "ReduceMin drops", "TopK"}
# The first versions that have what the case needs.
OPSETS = {"ScatterElements that adds": 16}


def values_for(name: str, shapes: list) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    if name not in CHOOSING:
        return [numbers.uniform(0.5, 2, shape) for shape in shapes]
    ends = zip((0.5, 0.53), (2, 2.03), shapes, strict=True)
    return [
        numbers.permutation(np.linspace(low, high, int(np.prod(shape)))).reshape(shape)
        for low, high, shape in ends
    ]


def check_derivatives(
    nodes: str, values: list[np.ndarray], opset: int, declared: list | None = None
) -> None:
    shapes = declared or [list(value.shape) for value in values]
    session = make_model(f"{nodes}\n{GRADIENT}", shapes, ["y", "da", "db"], opset)

    def run(arguments: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip("ab", arguments, strict=True)))

    expected = differences(lambda arguments: run(arguments)[0], values)
    for actual, wanted in zip(run(values)[1:], expected, strict=True):
        assert actual.shape == wanted.shape
        np.testing.assert_allclose(actual, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_first_derivatives(name: str, is_dynamic: bool) -> None:
    nodes, *shapes = CASES[name]
    values = values_for(name, shapes)
    declared = [[f"{n}{i}" for i in range(len(s))] for n, s in zip("ab", shapes, strict=True)]
    check_derivatives(nodes, values, OPSETS.get(name, 15), declared if is_dynamic else None)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    nodes = f"c = {name} {ACTIVATIONS[name]} (a)\n y = Mul (c, b)"
    check_derivatives(nodes, [np.array(BENT), np.arange(1.0, 9)], 18)


@pytest.mark.parametrize(
    "nodes",
    [
        "c = Gelu (a)\n y = Mul (c, b)",
        'c = Gelu <approximate="tanh"> (a)\n y = Mul (c, b)',
        "y = PRelu (a, b)",
        "c = com.microsoft.QuickGelu <alpha=1.5> (a)\n y = Mul (c, b)",
        "c = com.microsoft.FastGelu (a, b)\n y = Mul (c, c)",
        "c = com.microsoft.BiasGelu (a, b)\n y = Mul (c, c)",
        "c = Swish <alpha=1.5> (a)\n y = Mul (c, b)",
        "c = RMSNormalization (a, b)\n y = Mul (c, b)",
    ],
)
def test_activations_of_later_opsets(nodes: str) -> None:
    check_derivatives(nodes, [np.array(BENT), np.arange(1.0, 9)], 24)


@pytest.mark.parametrize("spatial", [1, 3])
def test_windows_over_other_numbers_of_axes(spatial: int) -> None:
    sizes = [2, 1, 5, 4, 3][: spatial + 2]
    values = [np.random.default_rng(5).uniform(0.5, 2, sizes), np.array([2.0])]
    window = f"kernel_shape={[2] * spatial}, strides={[2] * spatial}, pads={[1] * 2 * spatial}"
    check_derivatives(f"c = LpPool <{window}, p=3> (a)\n y = Mul (c, b)", values, 18)


EMPTY = {
    "LpPool": ("c = LpPool <kernel_shape=[2, 2]> (a)", [0, 2, 4, 3]),
    "AveragePool": ("c = AveragePool <kernel_shape=[2, 2]> (a)", [0, 2, 4, 3]),
    "Col2Im": (
        "i = Constant <value_ints=[4, 3]> ()\n k = Constant <value_ints=[2, 2]> ()\n"
        "c = Col2Im (a, i, k)",
        [0, 8, 6],
    ),
    "RoiAlign": (
        "r = Constant <value = double[1, 4] {0, 0, 2, 2}> ()\n i = Constant <value_ints=[0]> ()\n"
        "s = Slice (r, i, i)\n t = Slice (i, i, i)\n c = RoiAlign (a, s, t)",
        [1, 2, 4, 3],
    ),
    "MaxRoiPool": (
        "r = Constant <value = double[1, 5] {0, 0, 0, 2, 2}> ()\n"
        "i = Constant <value_ints=[0]> ()\n s = Slice (r, i, i)\n"
        "c = MaxRoiPool <pooled_shape=[1, 1]> (a, s)",
        [1, 2, 4, 3],
    ),
    "GridSample": (
        "g = Constant <value = double[1, 1, 1, 2] {0, 0}> ()\n"
        "i = Constant <value_ints=[0]> ()\n s = Slice (g, i, i)\n"
        'c = GridSample <mode="cubic"> (a, s)',
        [0, 2, 4, 3],
    ),
    "DFT": ("c = DFT (a)", [0, 4, 2]),
    "CumProd": ("k = Constant <value_int=0> ()\n c = CumProd (a, k)", [0, 3]),
    "GatherND": (
        "i = Constant <value_ints=[0]> ()\n j = Unsqueeze (i, i)\n k = Slice (j, i, i)\n"
        "c = GatherND (a, k)",
        [3, 2],
    ),
    "Det": ("c = Det (a)", [0, 3, 3]),
}


@pytest.mark.parametrize("name", EMPTY)
def test_empty_tensors(name: str) -> None:
    """Also where the batch, the regions or the indices are none."""
    nodes, shape = EMPTY[name]
    values = [np.full(shape, 0.5), np.array([2.0])]
    session = make_model(f"{nodes}\n y = Mul (c, b)\n{GRADIENT}", [shape, [1]], ["da"], 26)
    (slope,) = session.run(["da"], dict(zip("ab", values, strict=True)))
    assert slope.shape == tuple(shape)
    assert not slope.any()


@pytest.mark.parametrize("opset", [9, 10])
def test_scatter_by_its_former_name(opset: int) -> None:
    nodes = (
        "i = Constant <value = int64[1, 3] {1, 0, 1}> ()\n c = Scatter (a, i, b)\n y = Mul (c, c)"
    )
    values = [np.random.default_rng(5).uniform(0.5, 2, shape) for shape in ([2, 3], [1, 3])]
    check_derivatives(nodes, values, opset)


@pytest.mark.parametrize("opset", [17, 20])
def test_transforms_along_the_default_axis(opset: int) -> None:
    values = [np.random.default_rng(5).uniform(0.5, 2, [2, 4, 1]), np.array([2.0])]
    check_derivatives("c = DFT (a)\n y = Mul (c, b)", values, opset)


@pytest.mark.parametrize("opset", [2, 11])
def test_norm_pools_of_earlier_opsets(opset: int) -> None:
    values = [np.random.default_rng(5).uniform(0.5, 2, [1, 2, 4, 3])] * 2
    check_derivatives("y = LpPool <kernel_shape=[2, 2], pads=[1, 0, 0, 1]> (a)", values, opset)


def test_group_normalization() -> None:
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(0.5, 2, shape) for shape in ([2, 4, 3], [4])]
    nodes = """e = Exp (b)
        c = GroupNormalization <num_groups=2> (a, b, e)
        y = Mul (c, c)"""
    check_derivatives(nodes, values, 21)


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("attributes", ["", "<axis=0>", "<axis=2>", "<axis=-2>"])
def test_softmax_before_opset_13_adds_up_all_axes_from_its_own(
    op_type: str, attributes: str
) -> None:
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(0.5, 2, (2, 3, 4)) for _ in "ab"]
    check_derivatives(f"c = {op_type} {attributes} (a)\n y = Mul (c, b)", values, 11)


RESIZED = [1, 2, 5, 4]
CROPPED_PAIR = [0.2, -0.3, 0.9, 0.8]
CROPPED = [0.0, 0.0, *CROPPED_PAIR[:2], 1.0, 1.0, *CROPPED_PAIR[2:]]
# Attributes, and the sizes or scales of Resize.
RESIZES = {
    "nearest": ('mode="nearest"', "scales", [1, 1, 2, 2]),
    "nearest down": ('mode="nearest", nearest_mode="floor"', "sizes", [1, 2, 3, 7]),
    "linear": ('mode="linear"', "scales", [1, 1, 2, 1.6]),
    "linear to sizes": ('mode="linear"', "sizes", [1, 2, 3, 9]),
    "linear between corners": (
        'mode="linear", coordinate_transformation_mode="align_corners"',
        "sizes",
        [1, 2, 8, 3],
    ),
    "linear along the channels": ('mode="linear"', "sizes", [1, 3, 5, 6]),
    "two axes": ('mode="linear", axes=[3, -2]', "scales", [2, 0.7]),
    "antialias": ('mode="linear", antialias=1', "sizes", [1, 2, 2, 2]),
    "cubic": ('mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1', "sizes", [1, 2, 7, 3]),
    "cropped": (
        'mode="linear", coordinate_transformation_mode="tf_crop_and_resize", '
        "extrapolation_value=3.5",
        "sizes",
        [1, 2, 4, 6],
    ),
}


# The same with sizes that are limits. They are rounded, to 5 x 3, 6 x 5 and so on, by scales that
# they do not tell. The last ones keep an axis as long as it is.
RESIZES |= {
    f"{name}, {policy}": (
        f'{attributes}, axes=[2, 3], keep_aspect_ratio_policy="{policy}"',
        "sizes",
        sizes,
    )
    for policy in ("not_larger", "not_smaller")
    for name, attributes, sizes in [
        ("nearest", 'mode="nearest", nearest_mode="floor"', [6, 7]),
        ("linear", 'mode="linear"', [7, 3]),
        ("linear between corners", f"{RESIZES['linear between corners'][0]}", [8, 5]),
        (
            "symmetric",
            'mode="linear", coordinate_transformation_mode="half_pixel_symmetric"',
            [8, 5],
        ),
        ("antialias", 'mode="linear", antialias=1', [3, 3]),
        ("cubic", 'mode="cubic", exclude_outside=1', [7, 9]),
        ("cropped", RESIZES["cropped"][0], [7, 3]),
        ("nearly as it is", 'mode="linear"', [5, 5]),
    ]
}


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", RESIZES)
def test_resize(name: str, is_dynamic: bool) -> None:
    attributes, kind, numbers = RESIZES[name]
    if kind == "scales":
        text = f"value_floats={[float(x) for x in numbers]}"
    else:
        text = f"value_ints={numbers}"
    nodes = f"""n = Constant <{text}> ()
        r = Constant <value_floats={CROPPED_PAIR if "axes" in attributes else CROPPED}> ()
        c = Resize <{attributes}> (a, {"r" if name.startswith("cropped") else ""},
          {"n" if kind == "scales" else ", n"})
        y = Mul (c, b)"""
    values = [np.random.default_rng(5).uniform(0.5, 2, shape) for shape in (RESIZED, [1])]
    declared = [[f"a{i}" for i in range(4)], [1]] if is_dynamic else None
    check_derivatives(nodes, values, 18, declared)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize(("op_type", "opset"), [("Upsample", 7), ("Upsample", 9), ("Resize", 10)])
def test_resize_of_earlier_opsets(op_type: str, opset: int, mode: str) -> None:
    scales = "[1.0, 1.0, 2.0, 1.5]"
    nodes = "n = Constant <value = float[4] {1, 1, 2, 1.5}> ()"
    if opset < 9:
        nodes = f'c = Upsample <mode="{mode}", scales={scales}> (a)'
    else:
        nodes += f'\nc = {op_type} <mode="{mode}"> (a, n)'
    values = [np.random.default_rng(5).uniform(0.5, 2, shape) for shape in (RESIZED, [1])]
    check_derivatives(f"{nodes}\ny = Mul (c, b)", values, opset)


@pytest.mark.parametrize("zeros", [0, 1, 2])
@pytest.mark.parametrize("attributes", ["axes=[1]", "axes=[-1], keepdims=0", "keepdims=0"])
def test_products_with_zeros(attributes: str, zeros: int) -> None:
    a = np.arange(1.0, 9).reshape(2, 4) / 3
    a[1, :zeros] = 0
    nodes = f"c = ReduceProd <{attributes}> (a)\n y = Mul (c, b)"
    check_derivatives(nodes, [a, np.array([2.0])], 15)


def test_powers_of_zero() -> None:
    session = make_model(f"y = Pow (a, b)\n{GRADIENT}", [[3], [3]], ["da", "db"], 15)
    feeds = {"a": np.zeros(3), "b": np.array([0.0, 1, 2])}
    np.testing.assert_array_equal(session.run(["da"], feeds)[0], [0, 1, 0])


def test_exponents_of_zero_and_of_negative_numbers() -> None:
    session = make_model(f"y = Pow (a, b)\n{GRADIENT}", [[4], [4]], ["db"], 15)
    feeds = {"a": np.array([0.0, 0, 0, -2]), "b": np.array([0.0, 2, -1, 2])}
    np.testing.assert_array_equal(session.run(None, feeds)[0], [0, 0, -np.inf, np.nan])


def test_elsewhere_through_integers() -> None:
    """The nodes are copied for the other values, also those that give no gradient."""
    nodes = f"""c = Cast <to=7> (a)
        d = Cast <to=11> (c)
        y = Mul (a, d)
        db = {TRAINING}.Gradient <xs=["a"], y="y"> (b)"""
    session = make_model(nodes, [[2], [3]], ["y", "db"], 15)
    y, db = session.run(None, {"a": np.array([1.5, 2.5]), "b": np.array([3.5, 4.5, 5.5])})
    np.testing.assert_array_equal(y, [1.5, 5])
    np.testing.assert_array_equal(db, [3, 4, 5])


def test_mean_of_more_than_a_half_counts() -> None:
    nodes = f"""h = Cast <to=10> (a)
        y = ReduceMean <keepdims=0> (h)
        da = {TRAINING}.Gradient <xs=["h"], y="y"> (h)
        db = Cast <to=11> (da)"""
    session = make_model(nodes, [[70000], [1]], ["db"], 15)
    (slope,) = session.run(None, {"a": np.ones(70000), "b": np.ones(1)})
    np.testing.assert_array_equal(slope, np.full(70000, float(np.float16(1 / 70000))))


def test_second_derivatives() -> None:
    nodes = f"""c = Mul (a, a)
        d = MatMul (c, b)
        y = Tanh (d)
        da = {TRAINING}.Gradient <xs=["a"], zs=["b"], y="y"> (a, b)
        daa, dab = {TRAINING}.Gradient <xs=["a", "b"], y="da"> (a, b)"""
    session = make_model(nodes, [[2, 3], [3, 2]], ["da", "daa", "dab"], 15)
    numbers = np.random.default_rng(5)
    values = [numbers.uniform(0.2, 1, shape) for shape in ([2, 3], [3, 2])]

    def run(arguments: list[np.ndarray]) -> list[np.ndarray]:
        return session.run(None, dict(zip("ab", arguments, strict=True)))

    expected = differences(lambda arguments: run(arguments)[0], values)
    for actual, wanted in zip(run(values)[1:], expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-9)


def test_at_another_place_than_the_graph_was_run() -> None:
    nodes = f"""c = Exp (a)
        y = Mul (c, c)
        dc = {TRAINING}.Gradient <xs=["c"], y="y"> (c)
        db = {TRAINING}.Gradient <xs=["a"], y="y"> (b)"""
    session = make_model(nodes, [[2], [3]], ["y", "dc", "db"], 12)
    a, b = np.array([0.0, 1.0]), np.array([0.5, 0.25, 2.0])
    y, dc, db = session.run(None, {"a": a, "b": b})
    np.testing.assert_allclose(y, np.exp(2 * a), rtol=2e-15)
    np.testing.assert_allclose(dc, 2 * np.exp(a), rtol=2e-15)
    np.testing.assert_allclose(db, 2 * np.exp(2 * b), rtol=2e-15)


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ("y = Unique (a)", "Unique-15 (Unique node #0) has no gradient yet"),
        (
            "s = Unique (a)\nx = Constant <value_ints=[0]> ()\nm = Unsqueeze (s, x)\n"
            "t = com.microsoft.CDist (m, m)\ny = Unique (t)",
            "Unique-15 (Unique node #4) has no gradient yet; nor have CDist-1",
        ),
        (
            "i = Constant <value_ints=[0, 1]> ()\ns = Constant <value_ints=[0]> ()\n"
            "c = Unsqueeze (a, s)\nd = Concat <axis=0> (c, c)\n"
            "y = NegativeLogLikelihoodLoss (d, i, a)",
            "(NegativeLogLikelihoodLoss node #4) has no gradient yet for its input 2",
        ),
        ("z = Exp (a)", "no value 'y'"),
        ("y = Exp (da)", "differentiates its own outputs"),
    ],
)
def test_errors_name_the_operator(nodes: str, text: str) -> None:
    with pytest.raises(Exception, match="Gradient") as caught:
        make_model(f"{nodes}\n{GRADIENT}", [[2], [3]], ["da"], 15)
    assert text in str(caught.value)
