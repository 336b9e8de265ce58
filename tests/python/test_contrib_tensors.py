"""Operators of com.microsoft on tensors, tokens and sequences, compared with onnxruntime."""

import contrib
import numpy as np
import onnx
import onnx.parser
import pytest
import scipy.spatial
import scipy.special
import tenon
from contrib import check, floats, run_tenon
from onnx import helper, numpy_helper


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


# --- Matrix products ---


@pytest.mark.parametrize("op_type", ["FusedMatMul", "TransposeMatMul"])
@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(op_type: str, left: int, right: int) -> None:
    a = floats(2, 6, 5) if left else floats(2, 5, 6)
    b = floats(7, 6, seed=1) if right else floats(6, 7, seed=1)
    check(op_type, [a, b], transA=left, transB=right, alpha=0.5)
    check(op_type, [a, b], constants=(1,), transA=left, transB=right)


@pytest.mark.parametrize(
    ("activation", "parameters"),
    [
        ("Relu", {}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    ],
)
def test_matmul_with_activation(activation: str, parameters: dict) -> None:
    a, b, c = floats(3, 6), floats(6, 7, seed=1), floats(7, seed=2)
    check("FusedGemm", [a, b, c], activation=activation, **parameters)
    (product,) = check("FusedMatMul", [a, b], alpha=0.5)
    (expected,) = check("FusedGemm", [a, b], activation=activation, alpha=0.5, **parameters)
    assert product.shape == expected.shape
    options = {"activation": activation, "alpha": 0.5, **parameters}
    check("FusedMatMulActivation", [a, b], expected=[expected], **options)


@pytest.mark.parametrize("activation", ["Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"])
def test_fused_conv(activation: str) -> None:
    x, w, b = floats(1, 4, 7, 7), floats(6, 4, 3, 3, seed=1), floats(6, seed=2)
    parameters = {"LeakyRelu": [0.2], "HardSigmoid": [0.3, 0.4]}.get(activation)
    options = {"activation_params": parameters} if parameters else {}
    check("FusedConv", [x, w, b], activation=activation, kernel_shape=[3, 3], **options)
    z = floats(1, 6, 5, 5, seed=3)
    check("FusedConv", [x, w, b, z], activation="Relu", kernel_shape=[3, 3])


ACTIVATIONS = {
    "": (lambda x: x, []),
    "Relu": (lambda x: np.maximum(x, 0), []),
    "Tanh": (np.tanh, []),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), []),
    "LeakyRelu": (lambda x: np.where(x < 0, 0.25 * x, x), [0.25]),
    "HardSigmoid": (lambda x: np.clip(0.25 * x + 0.5, 0, 1), [0.25, 0.5]),
}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_products_of_doubles(activation: str) -> None:
    function, parameters = ACTIVATIONS[activation]
    names = dict(zip(("activation_alpha", "activation_beta"), parameters, strict=False))
    a, b = floats(2, 3, 6, dtype=np.float64), floats(6, 7, seed=1, dtype=np.float64)
    y, c = {"y": np.float64}, floats(7, seed=2, dtype=np.float64)
    expected = [function(0.5 * (a @ b))]
    options = {"alpha": 0.5, "activation": activation, **names, **EXACT}
    check("FusedMatMulActivation", [a, b], y, expected, **options)
    check("FusedGemm", [a[0], b, c], y, [function(0.5 * (a[0] @ b) + c)], **options)
    x, w = floats(1, 4, 7, 7, dtype=np.float64), floats(6, 4, 1, 1, seed=1, dtype=np.float64)
    z, bias = floats(1, 6, 7, 7, seed=3, dtype=np.float64), floats(6, seed=2, dtype=np.float64)
    expected = [function(np.einsum("nchw,oc->nohw", x, w[..., 0, 0]) + bias[:, None, None] + z)]
    options = {"activation_params": parameters} if parameters else {}
    options = {"activation": activation, **options, **EXACT}
    check("FusedConv", [x, w, bias, z], y, expected, **options)


def test_bounds_of_doubles_stay_doubles() -> None:
    """A fused Clip has floats for bounds; no float is -0.1."""
    x, w = floats(1, 2, 5, 5, dtype=np.float64), floats(3, 2, 3, 3, seed=1, dtype=np.float64)
    bounds = {"low": np.array(-0.1), "high": np.array(0.7)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["filtered"]),
        helper.make_node("Clip", ["filtered", *bounds], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, x.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(value, name) for name, value in {"w": w, **bounds}.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (y,) = tenon.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    assert (y.min(), y.max()) == (-0.1, 0.7)


def test_grid_sample_gives_its_inputs_type() -> None:
    """The schema does not say so: a model cannot declare another type."""
    inputs = [floats(1, 2, 4, 4, dtype=np.float64), floats(1, 3, 3, 2, dtype=np.float64)]
    with pytest.raises(Exception, match=r"GridSample.*declares, got tensor.double"):
        run_tenon(contrib.model("GridSample", inputs, {"y": np.float32}), inputs)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_fused_gemm_of_integers(dtype: type) -> None:
    """A linear activation does not change integers that a double cannot represent."""
    large = 2**62 + 1 if np.iinfo(dtype).bits == 64 else 3
    a, c = np.array([[large, 5]]).astype(dtype), np.array([2, 1]).astype(dtype)
    b = np.array([[1, 0], [0, -1]]).astype(dtype)
    expected = a @ b + c
    expected[expected < 0] = 0
    y = {"y": dtype}
    check("FusedGemm", [a, b, c], y, [expected], activation="Relu")


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_gemm_of_integers_that_no_double_holds(dtype: type) -> None:
    """A beta without C has no effect."""
    a, b = np.array([[2**53 + 1, 5]]).astype(dtype), np.array([[1, 0], [0, 1]]).astype(dtype)
    y = {"y": dtype}
    check("FusedGemm", [a, b], y, [a @ b], activation="Relu", beta=0.0)


# Activations as separate nodes, with numbers that are not floats: x, the constants, the result.
PARTS = {
    "swish": (
        "m = Mul(x, s) g = Sigmoid(m) y = Mul(x, g)",
        {"s": 1.702},
        lambda x: x / (1 + np.exp(-1.702 * x)),
    ),
    "hard sigmoid": (
        "m = Add(x, t) g = Clip(m, o, s) y = Div(g, s)",
        {"t": 3.0, "o": 0.0, "s": 6.0},
        lambda x: np.clip(x + 3, 0, 6) / 6,
    ),
    "hard swish": (
        "g = HardSigmoid<alpha = 0.16666667>(x) y = Mul(x, g)",
        {},
        lambda x: x * np.clip(float(np.float32(1 / 6)) * x + 0.5, 0, 1),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_activations_in_parts_keep_the_digits_of_doubles(name: str) -> None:
    body, constants, function = PARTS[name]
    numbers = ", ".join(f"double {name} = {{{value}}}" for name, value in constants.items())
    content = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22]>\n'
        f"g (double[3, 40] x) => (double[3, 40] y) <{numbers}> {{ {body} }}"
    ).SerializeToString()
    x = floats(3, 40, dtype=np.float64) * 3
    (actual,) = tenon.InferenceSession(content).run(None, {"x": x})
    np.testing.assert_allclose(actual, function(x), rtol=1e-12, atol=1e-14)


def test_activations_of_doubles() -> None:
    x, bias = floats(3, 40, dtype=np.float64), floats(40, seed=1, dtype=np.float64)
    root = np.sqrt(2 / np.pi)

    def gelu(x: np.ndarray) -> np.ndarray:
        return x / 2 * (1 + np.tanh(root * (x + 0.044715 * x**3)))

    check("FastGelu", [x, bias], {"y": np.float64}, [gelu(x + bias)], **EXACT)
    check("FastGelu", [x], {"y": np.float64}, [gelu(x)], **EXACT)


BIASES = [(), (1,), (1, 4), (3, 1), (3, 4), (1, 1, 1), (2, 1, 4), (2, 3, 4)]


@pytest.mark.parametrize("shape", BIASES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fast_gelu_broadcasts_its_bias(dtype: type, shape: tuple) -> None:
    """Like the schema's function, which onnxruntime runs for all types but float."""
    x, bias = floats(2, 3, 4), np.asarray(floats(*shape, seed=1), np.float32)
    inputs = [x.astype(dtype), bias.astype(dtype)]
    other = np.float16 if dtype == np.float16 else np.float64
    content = contrib.model("FastGelu", [y.astype(other) for y in inputs], {"y": other})
    (expected,) = contrib.run_onnxruntime(content, [y.astype(other) for y in inputs])
    tolerance = {"rtol": 1e-2, "atol": 5e-3} if dtype == np.float16 else {}
    check("FastGelu", inputs, {"y": dtype}, [expected.astype(dtype)], **tolerance)


@pytest.mark.parametrize("op_type", ["FusedGemm", "FusedConv"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unknown_activations_are_errors_of_loading(op_type: str, dtype: type) -> None:
    shape = (2, 2) if op_type == "FusedGemm" else (1, 1, 2, 2)
    inputs = [floats(*shape, dtype=dtype)] * 2
    content = contrib.model(op_type, inputs, {"y": dtype}, activation="Softmin")
    with pytest.raises(Exception, match=r"expected one that can be fused, got 'Softmin'"):
        tenon.InferenceSession(content)


# --- Tensors ---


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_expand_dims(axis: int) -> None:
    check("ExpandDims", [floats(2, 3), np.array(axis, np.int32)])


@pytest.mark.parametrize("axis", [3, -4, 2**31 - 1, -(2**31)])
def test_expand_dims_rejects_axes(axis: int) -> None:
    inputs = [floats(2, 3), np.array(axis, np.int32)]
    with pytest.raises(Exception, match=str(axis)):
        run_tenon(contrib.model("ExpandDims", inputs, {"y": np.float32}), inputs)


def test_sample_op() -> None:
    check("SampleOp", [floats(2, 3)])


METRICS = (
    "braycurtis canberra chebyshev cityblock correlation cosine euclidean hamming jensenshannon "
    "matching minkowski seuclidean sqeuclidean"
).split()
BOOLEAN_METRICS = "dice jaccard rogerstanimoto russellrao sokalsneath yule".split()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 5, 8, 16, 43])
def test_cdist(n: int, metric: str, dtype: type) -> None:
    """Close rows, too, of which onnxruntime's sums of squares and products keep few digits."""
    a, b = floats(700, n, dtype=dtype), floats(3, n, seed=1, dtype=dtype)
    check("CDist", [a, b], {"y": dtype}, metric=metric, atol=1e-3)
    expected = scipy.spatial.distance.cdist(a, b, metric).astype(dtype)
    exact = 1e-6 if dtype == np.float32 else 1e-14
    check("CDist", [a, b], {"y": dtype}, [expected], metric=metric, rtol=exact, atol=0)


@pytest.mark.parametrize("metric", METRICS + BOOLEAN_METRICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cdist_has_the_metrics_of_scipy(metric: str, dtype: type) -> None:
    a, b = (np.abs(floats(n, 12, seed=n, dtype=dtype)) for n in (4, 3))
    a[:, 3], b[:, 3], a[1], b[2, :9] = 0, 0, b[0], 0
    rows = [a != 0, b != 0] if metric in BOOLEAN_METRICS else [a, b]
    expected = scipy.spatial.distance.cdist(*rows, metric).astype(dtype)
    check("CDist", [a, b], {"y": dtype}, [expected], metric=metric)


# Rows without a length or a distribution, and rows whose squares or their product overflow a
# double.
ODD_ROWS = {
    "huge": [1e100, 2e100, 3e100],
    "tiny": [1e-100, 2e-100, 3e-100],
    "zero": [0, 0, 0],
    "negative": [-1, 2, 3],
    "infinite": [np.inf, 1, 2],
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", ODD_ROWS)
def test_cdist_of_odd_rows(name: str, metric: str) -> None:
    a = np.array([ODD_ROWS[name], [0.1, 0.2, 0.4]])
    b = np.array([[3.0, 1, 2], [1e100, 1, 1], [1e-100, 0, 0]])
    with np.errstate(all="ignore"):
        expected = scipy.spatial.distance.cdist(a, b, metric)
    check("CDist", [a, b], {"y": np.float64}, [expected], metric=metric, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("metric", ["mahalanobis", "seuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "n"), [((1, 1), 1), ((4, 3), 6), ((200, 30), 43)])
def test_cdist_by_the_statistics_of_all_rows(rows: tuple, n: int, dtype: type, metric: str) -> None:
    """Columns far from 0, which depend on each other, of which one is a thousandth of the rest."""
    mix = floats(n, n, seed=3) + 2 * np.eye(n)
    a, b = ((floats(m, n, seed=i) @ mix * 2 + 50).astype(dtype) for i, m in enumerate(rows))
    a[:, 0] /= 1000
    b[:, 0] /= 1000
    expected = scipy.spatial.distance.cdist(a, b, metric).astype(dtype)
    rtol = 1e-6 if dtype == np.float32 else 1e-9
    check("CDist", [a, b], {"y": dtype}, [expected], metric=metric, rtol=rtol, atol=0)


def test_cdist_weighs_all_columns_alike() -> None:
    """The metric wminkowski, which SciPy has dropped: the same as minkowski without weights."""
    a, b = floats(4, 5), floats(3, 5, seed=1)
    expected = scipy.spatial.distance.cdist(a, b, "minkowski").astype(np.float32)
    check("CDist", [a, b], {"y": np.float32}, [expected], metric="wminkowski")


@pytest.mark.parametrize(
    ("a", "metric", "message"),
    [
        (floats(2, 5), "mahalanobis", r"more than 5 rows .* got 5"),
        (np.ones((9, 5), np.float32), "mahalanobis", "covariance has an inverse"),
        (floats(4, 5), "manhattan", "'metric'.*'manhattan'"),
    ],
)
def test_cdist_rejects(a: np.ndarray, metric: str, message: str) -> None:
    b = np.repeat(floats(3, 1), 5, axis=1)
    with pytest.raises(Exception, match=f"CDist.*{message}"):
        run_tenon(contrib.model("CDist", [a, b], {"y": np.float32}, metric=metric), [a, b])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inverse(dtype: type) -> None:
    x = floats(2, 3, 6, 6, dtype=dtype) + 3 * np.eye(6, dtype=dtype)
    check("Inverse", [x], {"y": dtype}, rtol=1e-3)


def test_inverse_rejects_singular_matrices() -> None:
    x = np.ones((2, 2), np.float32)
    with pytest.raises(Exception, match="has no inverse"):
        run_tenon(contrib.model("Inverse", [x], {"y": np.float32}), [x])


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (9, 2)])
def test_crop_and_resize(mode: str, size: tuple) -> None:
    boxes = np.array(
        [[0, 0, 1, 1], [0.1, 0.2, 0.72, 0.91], [0.8, 0.9, 0.2, 0.1], [-0.5, 0, 1.5, 1]], np.float32
    )
    inputs = [floats(2, 3, 6, 7), boxes, ints(0, 1, 1, 0), ints(*size)]
    check("CropAndResize", inputs, mode=mode, extrapolation_value=-3.0)


@pytest.mark.parametrize(
    ("images", "size", "message"),
    [
        ([0, 2], [3, 3], r"\[0, 2\), got 2"),
        ([-1, 0], [3, 3], "got -1"),
        ([0, 0], [0, 3], "got 0"),
        ([0, 0], [-(2**31), 3], "got -2147483648"),
    ],
)
def test_crop_and_resize_rejects(images: list, size: list, message: str) -> None:
    inputs = [floats(2, 1, 4, 4), floats(2, 4), ints(*images), ints(*size)]
    with pytest.raises(Exception, match=message):
        run_tenon(contrib.model("CropAndResize", inputs, {"y": np.float32}), inputs)


# --- Sequences ---


def test_padding_is_removed_and_restored() -> None:
    x, counts = floats(3, 4, 5), ints(2, 0, 4)
    outputs = {"y": np.float32, "offset": np.int32, "sums": np.int32, "longest": np.int32}
    content = contrib.model("RemovePadding", [x, counts], outputs)
    y, offset, sums, longest = run_tenon(content, [x, counts])
    rows = x.reshape(12, 5)
    np.testing.assert_array_equal(y, rows[[0, 1, 8, 9, 10, 11]])
    np.testing.assert_array_equal(offset.ravel(), [0, 1, 8, 9, 10, 11, 2, 3, 4, 5, 6, 7])
    np.testing.assert_array_equal(sums, [0, 2, 2, 6])
    assert longest == [4]
    content = contrib.model("RestorePadding", [y, offset], {"y": np.float32})
    (restored,) = run_tenon(content, [y, offset])
    expected = x.copy()
    expected[0, 2:] = 0
    expected[1] = 0
    np.testing.assert_array_equal(restored, expected)


@pytest.mark.parametrize("count", [-1, 5, 2**31 - 1, -(2**31)])
def test_remove_padding_rejects_counts(count: int) -> None:
    inputs = [floats(1, 4, 5), ints(count)]
    outputs = {"y": np.float32, "offset": np.int32, "sums": np.int32, "longest": np.int32}
    with pytest.raises(Exception, match=f"got {count}"):
        run_tenon(contrib.model("RemovePadding", inputs, outputs), inputs)


@pytest.mark.parametrize("bidirectional", [0, 1])
@pytest.mark.parametrize("length", [1, 7, 40])
@pytest.mark.parametrize("max_distance", [18, 20])
def test_relative_position_bias(bidirectional: int, length: int, max_distance: int) -> None:
    inputs = [floats(16, 3), np.array([length]), np.array([length])]
    distance = np.arange(length)[None] - np.arange(length)[:, None]
    buckets = 16
    first = np.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        first = np.where(distance > 0, buckets, 0)
        far = np.abs(distance)
    else:
        far = np.maximum(-distance, 0)
    exact = buckets // 2
    octaves = np.log(np.maximum(far, 1) / exact) / np.log(max_distance / exact)
    wide = np.minimum(exact + (octaves * (buckets - exact)).astype(int), buckets - 1)
    bucket = first + np.where(far < exact, far, wide)
    expected = inputs[0][bucket].transpose(2, 0, 1)[None]
    options = {"max_distance": max_distance, "is_bidirectional": bidirectional}
    check("RelativePositionBias", inputs, expected=[expected], **options)


def test_gated_relative_position_bias() -> None:
    batch, length, heads, size, columns = 2, 5, 3, 4, 8
    inputs = [
        floats(batch, length, heads * size),
        floats(heads * size, seed=1),
        floats(1, heads, length, length, seed=2),
        floats(size, columns, seed=3),
        floats(columns, seed=4),
        floats(1, heads, 1, 1, seed=5),
    ]
    q = (inputs[0] + inputs[1]).reshape(batch, length, heads, size).transpose(0, 2, 1, 3)
    gates = (q @ inputs[3] + inputs[4]).reshape(batch, heads, length, 2, columns // 2).sum(-1)
    gates = 1 / (1 + np.exp(-gates))
    gate = gates[..., :1] * (gates[..., 1:] * inputs[5] - 1) + 2
    check(
        "GatedRelativePositionBias", inputs, expected=[gate * inputs[2]], num_heads=heads, rtol=1e-4
    )


def test_gated_relative_position_bias_of_tokens_without_padding() -> None:
    batch, length, heads, size = 2, 4, 3, 4
    padded = floats(batch, length, heads * size)
    padded[0, 3:] = padded[1, 1:3] = 0
    places = np.array([[0, 1, 2, 4], [7, 3, 5, 6]], np.int32)
    rest = [
        floats(heads * size, seed=1),
        floats(1, heads, length, length, seed=2),
        floats(size, 8, seed=3),
        floats(8, seed=4),
        floats(1, heads, 1, 1, seed=5),
    ]

    def run(inputs: list) -> np.ndarray:
        content = contrib.model(
            "GatedRelativePositionBias", inputs, {"y": np.float32}, num_heads=heads
        )
        return run_tenon(content, inputs)[0]

    tokens = padded.reshape(-1, heads * size)[places.ravel()[:5]]
    np.testing.assert_array_equal(run([tokens, *rest, places]), run([padded, *rest]))
    for wrong in (-1, 8):
        bad = places.copy()
        bad[1, 0] = wrong
        with pytest.raises(Exception, match=rf"places in \[0, 8\), got {wrong}"):
            run([tokens, *rest, bad])
    with pytest.raises(Exception, match="at most 8 tokens, got 9"):
        run([floats(9, heads * size), *rest, places])


# --- Tokens ---


@pytest.mark.parametrize("seed", [0, 42])
@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize(
    "x",
    [
        np.array([0, 1, -1, 2**31 - 1], np.int32),
        np.array([0, 1, 2**40], np.int64),
        np.array([0.5, -1], np.float32),
        np.array([0.5, -1], np.float64),
    ],
    ids=lambda x: x.dtype.name,
)
def test_murmur_hash(x: np.ndarray, seed: int, positive: int) -> None:
    outputs = {"y": np.uint32 if positive else np.int32}
    check("MurmurHash3", [x], outputs, seed=seed, positive=positive)


def test_ngram_repeat_block() -> None:
    ids = np.array([[1, 2, 3, 1, 2, 3], [4, 4, 4, 4, 4, 4], [0, 1, 2, 3, 4, 5]])
    for size in (1, 2, 3, 6, 7):
        check("NGramRepeatBlock", [ids, floats(3, 6)], {"y": np.float32}, ngram_size=size)


@pytest.mark.parametrize("token", [6, -1, 2**63 - 1, -(2**63)])
def test_ngram_repeat_block_rejects_tokens(token: int) -> None:
    inputs = [np.array([[1, 2, token, 1, 2]]), floats(1, 6)]
    content = contrib.model("NGramRepeatBlock", inputs, {"y": np.float32}, ngram_size=3)
    with pytest.raises(Exception, match=f"got {token}"):
        run_tenon(content, inputs)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_word_conv_embedding(width: int) -> None:
    words = np.random.default_rng(0).integers(1, 9, (4, 6)).astype(np.int32)
    words[0, 3:] = 0
    words[1, 2] = 0
    words[2, 5:] = 0
    inputs = [words, floats(5, 1, width, 4), floats(5, seed=1), floats(9, 4, seed=2)]
    check("WordConvEmbedding", inputs)


def test_word_conv_embedding_of_no_characters() -> None:
    """Words without content are not read, which the sanitizers check."""
    inputs = [np.zeros((3, 0), np.int32), floats(5, 1, 0, 4), floats(5), floats(9, 4)]
    check("WordConvEmbedding", inputs, expected=[np.zeros((3, 5), np.float32)])


# --- Recurrences ---


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize(("q_heads", "kv_heads"), [(2, 2), (4, 2)])
@pytest.mark.parametrize("length", [1, 5])
def test_linear_attention(rule: str, q_heads: int, kv_heads: int, length: int) -> None:
    size, value_size = 4, 3
    decay, beta = None, None
    if "gated" in rule:
        decay = -np.abs(floats(2, length, kv_heads * size, seed=3))
    if "delta" in rule:
        beta = np.abs(floats(2, length, kv_heads, seed=4))
    inputs = [
        floats(2, length, q_heads * size),
        floats(2, length, kv_heads * size, seed=1) / 2,
        floats(2, length, kv_heads * value_size, seed=2),
        floats(2, kv_heads, size, value_size, seed=5),
        decay,
        beta,
    ]
    outputs = {"y": np.float32, "state": np.float32}
    options = {"q_num_heads": q_heads, "kv_num_heads": kv_heads, "update_rule": rule}
    check("LinearAttention", inputs, outputs, rtol=1e-3, **options)
    if "gated" in rule:
        inputs[4] = -np.abs(floats(2, length, kv_heads, seed=6))
        check("LinearAttention", inputs, outputs, rtol=1e-3, **options)


@pytest.mark.parametrize("activation", ["none", "silu"])
@pytest.mark.parametrize("with_past", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_conv_with_state(activation: str, with_past: bool, length: int) -> None:
    past = floats(2, 5, 3, seed=3) if with_past else None
    inputs = [floats(2, 5, length), floats(5, 1, 4, seed=1), floats(5, seed=2), past]
    outputs = {"y": np.float32, "state": np.float32}
    check("CausalConvWithState", inputs, outputs, activation=activation)


@pytest.mark.parametrize("with_past", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("options", [{}, {"dilation": 2}, {"state_window": 3}], ids=str)
def test_causal_conv_with_the_channels_last(with_past: bool, length: int, options: dict) -> None:
    rows = 3 * options.get("dilation", 1)
    window = [options["state_window"]] if options.get("state_window") else []
    past = floats(*window, 2, rows, 5, seed=3) if with_past else None
    inputs = [floats(2, length, 5), floats(5, 1, 4, seed=1), floats(5, seed=2), past]
    outputs = {"y": np.float32, "state": np.float32}
    if "state_window" not in options:  # which onnxruntime only has on GPUs
        check("CausalConvWithState", inputs, outputs, channels_last=1, **options)
    filters = [inputs[0].swapaxes(1, 2).copy(), *inputs[1:3]]
    filters.append(past.swapaxes(-1, -2).copy() if with_past else None)
    expected = run_tenon(contrib.model("CausalConvWithState", filters, outputs, **options), filters)
    expected = [x.swapaxes(-1, -2) for x in expected]
    check("CausalConvWithState", inputs, outputs, expected, channels_last=1, **options)


def causal_conv_of_several_axes(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, past: np.ndarray | None, dilation: int
) -> list[np.ndarray]:
    """Output and state, tap by tap: a Conv with the past, or zeros, before the last axis."""
    rows = (w.shape[-1] - 1) * dilation
    if past is None:
        past = np.zeros((*x.shape[:-1], rows), np.float32)
    seen = np.concatenate([past, x], -1)
    kernel = w.shape[2:-1]
    pads = [((k - 1) // 2, k // 2) for k in kernel]
    padded = np.pad(seen.astype(np.float64), [(0, 0), (0, 0), *pads, (0, 0)])
    y = np.zeros(x.shape)
    if bias is not None:
        y += bias.reshape(-1, *[1] * (x.ndim - 2))
    for tap in np.ndindex(*w.shape[2:]):
        starts = [*tap[:-1], tap[-1] * dilation]
        part = [slice(i, i + n) for i, n in zip(starts, x.shape[2:], strict=True)]
        y += padded[(slice(None), slice(None), *part)] * w[(slice(None), 0, *tap)].reshape(
            -1, *[1] * (x.ndim - 2)
        )
    return [y.astype(np.float32), seen[..., seen.shape[-1] - rows :]]


@pytest.mark.parametrize("with_past", [False, True])
@pytest.mark.parametrize(
    ("shape", "kernel"),
    [
        ((4, 6), (3, 4)),
        ((4, 1), (2, 3)),
        ((2, 7), (5, 1)),
        ((3, 4, 5), (3, 1, 3)),
        ((2, 5, 9), (2, 4, 2)),
        ((0, 5), (3, 2)),
    ],
)
@pytest.mark.parametrize("dilation", [1, 3])
def test_causal_conv_over_several_axes(
    shape: tuple, kernel: tuple, with_past: bool, dilation: int
) -> None:
    """onnxruntime does not run it."""
    rows = (kernel[-1] - 1) * dilation
    x, w, bias = floats(2, 5, *shape), floats(5, 1, *kernel, seed=1), floats(5, seed=2)
    past = floats(2, 5, *shape[:-1], rows, seed=3) if with_past else None
    outputs = {"y": np.float32, "state": np.float32}
    options = {"ndim": len(shape), "dilation": dilation}
    expected = causal_conv_of_several_axes(x, w, bias, past, dilation)
    check("CausalConvWithState", [x, w, bias, past], outputs, expected, **options)
    y, state = causal_conv_of_several_axes(x, w, None, past, dilation)
    expected = [y / (1 + np.exp(-y)), state]
    options["activation"] = "silu"
    check("CausalConvWithState", [x, w, None, past], outputs, expected, **options)


def test_causal_conv_over_several_axes_is_that_of_conv() -> None:
    x, w, bias = floats(2, 3, 4, 6, 7), floats(3, 1, 3, 5, 4, seed=1), floats(3, seed=2)
    outputs = {"y": np.float32, "state": np.float32}
    (y,) = check("Conv", [x, w, bias], domain="", group=3, pads=[1, 2, 3, 1, 2, 0])
    check("CausalConvWithState", [x, w, bias], outputs, [y, x[..., -3:]], ndim=3)


def test_causal_conv_over_several_axes_keeps_a_window_of_states() -> None:
    """Whole lines, and the same after the first three columns as after them alone."""
    x, w, past = floats(2, 3, 4, 5), floats(3, 1, 3, 3, seed=1), floats(4, 2, 3, 4, 2, seed=2)
    outputs, options = {"y": np.float32, "state": np.float32}, {"ndim": 2, "state_window": 4}
    y, _ = causal_conv_of_several_axes(x, w, None, past[-1], 1)
    seen = np.concatenate([past[-1], x], -1)
    states = np.stack([seen[..., n : n + 2] for n in (2, 3, 4, 5)])
    check("CausalConvWithState", [x, w, None, past], outputs, [y, states], **options)
    states = np.stack([np.zeros_like(past[0])] * 2 + [seen[..., n : n + 2] for n in (1, 2)])
    x = x[..., :2].copy()
    check("CausalConvWithState", [x, w, None, past], outputs, [y[..., :2], states], **options)


@pytest.mark.parametrize(
    ("x", "w", "attributes", "message"),
    [
        ((1, 2, 4, 5), (2, 1, 3, 3), {"ndim": 4}, r"ndim in \[1, 3\].*got 4"),
        ((1, 2, 4, 5), (2, 1, 3, 3), {"ndim": 0}, r"ndim in \[1, 3\].*got 0"),
        ((1, 2, 4, 5), (2, 1, 3, 3), {"ndim": 3}, r"input 0.*expected rank 5, got \[1, 2, 4, 5\]"),
        ((1, 2, 4, 5), (2, 1, 3), {"ndim": 2}, "input 1.*rank 4"),
        ((1, 2, 4, 5), (2, 1, 0, 3), {"ndim": 2}, r"input 1.*taps.*got \[2, 1, 0, 3\]"),
        ((1, 2, 4, 5), (2, 1, 3, 3), {"ndim": 2, "channels_last": 1}, "1 for channels_last, got 2"),
        ((1, 2, 5), (2, 1, 4), {"dilation": 2**61 - 1}, "overflows"),
    ],
)
def test_causal_conv_rejects(x: tuple, w: tuple, attributes: dict, message: str) -> None:
    inputs, op_type = [floats(*x), floats(*w)], "CausalConvWithState"
    outputs = {"y": np.float32, "state": np.float32}
    with pytest.raises(Exception, match=f"{op_type}.*{message}"):
        run_tenon(contrib.model(op_type, inputs, outputs, **attributes), inputs)


# --- Experts and groups ---


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize(("chosen", "normalize"), [(1, 0), (2, 0), (2, 1)])
def test_mixture_of_experts(activation: str, chosen: int, normalize: int) -> None:
    tokens, hidden, inner, experts = 6, 8, 12, 4
    inputs = [
        floats(tokens, hidden),
        floats(tokens, experts, seed=1),
        floats(experts, inner, hidden, seed=2),
        floats(experts, inner, seed=3),
        floats(experts, hidden, inner, seed=4),
        floats(experts, hidden, seed=5),
    ]
    options = {"k": chosen, "normalize_routing_weights": normalize, "activation_type": activation}
    probabilities = np.exp(inputs[1]) / np.exp(inputs[1]).sum(-1, keepdims=True)
    expected = np.zeros_like(inputs[0])
    for t in range(tokens):
        best = np.argsort(-probabilities[t])[:chosen]
        weights = probabilities[t][best]
        if normalize:
            weights = weights / weights.sum()
        for weight, e in zip(weights, best, strict=True):
            h = inputs[2][e] @ inputs[0][t] + inputs[3][e]
            h = {
                "relu": np.maximum(h, 0),
                "gelu": contrib_gelu(h),
                "silu": h / (1 + np.exp(-h)),
                "identity": h,
            }[activation]
            expected[t] += weight * (inputs[4][e] @ h + inputs[5][e])
    check("MoE", inputs, expected=[expected], rtol=1e-3, atol=1e-4, **options)
    check("MoE", inputs, rtol=1e-3, atol=1e-4, **options)


def contrib_gelu(x: np.ndarray) -> np.ndarray:
    """The approximation, as onnxruntime has it here."""
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("fusion", [1, 2])
def test_mixture_of_experts_with_swiglu(fusion: int) -> None:
    tokens, hidden, inner, experts = 5, 8, 12, 3
    inputs = [
        floats(tokens, hidden),
        floats(tokens, experts, seed=1),
        floats(experts, 2 * inner, hidden, seed=2),
        floats(experts, 2 * inner, seed=3),
        floats(experts, hidden, inner, seed=4),
        None,
    ]
    alpha, beta, limit = 1.7, 1.0, 2.0
    probabilities = np.exp(inputs[1]) / np.exp(inputs[1]).sum(-1, keepdims=True)
    expected = np.zeros_like(inputs[0])
    for t in range(tokens):
        e = int(np.argmax(probabilities[t]))
        h = inputs[2][e] @ inputs[0][t] + inputs[3][e]
        gate, linear = (h[::2], h[1::2]) if fusion == 1 else (h[:inner], h[inner:])
        gate, linear = np.minimum(gate, limit), np.clip(linear, -limit, limit)
        h = gate / (1 + np.exp(-alpha * gate)) * (linear + beta)
        expected[t] = probabilities[t, e] * (inputs[4][e] @ h)
    options = {
        "k": 1,
        "activation_type": "swiglu",
        "swiglu_fusion": fusion,
        "activation_alpha": alpha,
        "activation_beta": beta,
        "swiglu_limit": limit,
    }
    check("MoE", inputs, expected=[expected], rtol=1e-3, atol=1e-4, **options)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("skip", [None, "same", "channel", "matrix"])
def test_group_norm(channels_last: int, activation: int, skip: str | None) -> None:
    n, h, w, c, groups = 2, 3, 4, 6, 2
    x = floats(n, h, w, c)
    gamma, beta, bias = floats(c, seed=1), floats(c, seed=2), floats(c, seed=3)
    shapes = {"same": (n, h, w, c), "channel": (n, 1, 1, c), "matrix": (n, c)}
    s = floats(*shapes[skip], seed=4) if skip else None
    t = x if s is None else x + (s[:, None, None] if s.ndim == 2 else s) + bias
    split = t.reshape(n, h * w, groups, c // groups)
    mean = split.mean((1, 3), keepdims=True)
    variance = split.var((1, 3), keepdims=True)
    y = ((split - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta
    if activation:
        y = y / (1 + np.exp(-y))

    def laid_out(a: np.ndarray) -> np.ndarray:
        return a if channels_last or a.ndim != 4 else np.ascontiguousarray(a.transpose(0, 3, 1, 2))

    options = {"groups": groups, "activation": activation, "channels_last": channels_last}
    if s is None:
        check("GroupNorm", [laid_out(x), gamma, beta], expected=[laid_out(y)], **options)
        return
    inputs = [laid_out(x), gamma, beta, laid_out(s), bias]
    outputs = {"y": np.float32, "sum": np.float32}
    expected = [laid_out(y), laid_out(t)]
    check("SkipGroupNorm", inputs, outputs, expected=expected, **options)


# --- Names of their own for operators of the standard ---


@pytest.mark.parametrize("delta", [None, 2])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_range(delta: int | None, dtype: type) -> None:
    step = None if delta is None else np.array([delta], dtype)
    check("Range", [np.array([1], dtype), np.array([9], dtype), step], {"y": dtype})


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -1, 2])
def test_trilu(upper: int, k: int | None) -> None:
    check("Trilu", [floats(2, 4, 5), None if k is None else np.array(k)], upper=upper)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad(mode: str) -> None:
    check("Pad", [floats(3, 4), np.array([1, 0, 2, 1])], mode=mode)


# --- Channels last ---


def last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Conv", [(2, 4, 7, 6), (6, 4, 3, 3), (6,)], {"pads": [1, 1, 1, 1]}),
        ("Conv", [(2, 4, 9), (6, 2, 3)], {"group": 2}),
        ("ConvTranspose", [(2, 4, 5, 6), (4, 3, 3, 3)], {"strides": [2, 2]}),
        ("MaxPool", [(2, 4, 7, 6)], {"kernel_shape": [3, 2]}),
        ("AveragePool", [(2, 4, 7, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("GlobalAveragePool", [(2, 4, 7, 6)], {}),
        ("LRN", [(2, 4, 7, 6)], {"size": 3}),
        ("DepthToSpace", [(2, 8, 3, 2)], {"blocksize": 2}),
    ],
)
def test_internal_channels_last(op_type: str, inputs: list, attributes: dict) -> None:
    arrays = [floats(*shape, seed=i) for i, shape in enumerate(inputs)]
    (expected,) = check(op_type, arrays, domain="", **attributes)
    arrays[0] = last(arrays[0])
    content = contrib.model(
        op_type, arrays, {"y": np.float32}, domain="com.ms.internal.nhwc", **attributes
    )
    model = contrib.onnx_with_version(content, "com.ms.internal.nhwc", 17)
    (y,) = run_tenon(model, arrays)
    np.testing.assert_allclose(y, last(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_nhwc_conv(dtype: type) -> None:
    tolerance = {} if dtype is np.float32 else {"rtol": 2e-2, "atol": 5e-2}
    x, w, b = floats(1, 4, 7, 7), floats(6, 4, 3, 3, seed=1), floats(6, seed=2)
    z = floats(1, 6, 5, 5, seed=3)
    (plain,) = check("Conv", [x, w, b], domain="")
    (fused,) = check("FusedConv", [x, w, b, z], activation="Relu")
    x, w, b, z = (a.astype(dtype) for a in (last(x), w, b, last(z)))
    outputs = {"y": dtype}
    check("NhwcConv", [x, w, b], outputs, expected=[last(plain).astype(dtype)], **tolerance)
    expected = [last(fused).astype(dtype)]
    check("NhwcFusedConv", [x, w, b, z], outputs, expected, activation="Relu", **tolerance)


# --- Operators that onnxruntime has on GPUs alone ---


@pytest.mark.parametrize("residual", [False, True])
def test_bias_dropout_does_not_drop_outside_of_training(residual: bool) -> None:
    x, bias = floats(2, 3, 4), floats(4, seed=1)
    rest = floats(2, 3, 4, seed=2) if residual else None
    outputs = {"y": np.float32, "mask": np.bool_}
    expected = [x + bias + (0 if rest is None else rest), np.ones(x.shape, bool)]
    check("BiasDropout", [x, bias, rest], outputs, expected)
    inputs = [x, bias, rest, np.array(0.5, np.float32), np.array(False)]
    check("BiasDropout", inputs, {"y": np.float32}, expected[:1])


def test_bias_dropout_drops_in_training() -> None:
    x, bias, rest = floats(64, 100), floats(100, seed=1), floats(64, 100, seed=2)
    outputs = {"y": np.float32, "mask": np.bool_}
    inputs = [x, bias, rest, np.array(0.25, np.float32), np.array(True)]
    content = contrib.model("BiasDropout", inputs, outputs, seed=7)
    y, mask = run_tenon(content, inputs)
    assert 0.7 < mask.mean() < 0.8
    np.testing.assert_allclose(y, np.where(mask, (x + bias) / 0.75, 0) + rest, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("axis", "bias"),
    [(3, (2, 1, 1, 5)), (3, (4, 5)), (2, (3, 4, 5)), (1, (1, 3, 4, 5)), (-1, (5,))],
)
def test_bias_softmax(axis: int, bias: tuple, dtype: type) -> None:
    x, b = floats(2, 3, 4, 5).astype(dtype), floats(*bias, seed=1).astype(dtype)
    rows = (x.astype(np.float64) + b).reshape(*x.shape[:axis], -1)
    expected = scipy.special.softmax(rows, -1).reshape(x.shape).astype(dtype)
    near = {"rtol": 5e-3, "atol": 1e-3} if dtype is np.float16 else {"rtol": 1e-5}
    options = {"axis": axis, "is_inner_broadcast": int(len(bias) == 4)}
    check("BiasSoftmax", [x, b], {"y": dtype}, [expected], **options, **near)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("odd", [None, np.nan, np.inf, -np.inf])
def test_is_all_finite(odd: float | None, dtype: type) -> None:
    x, y = np.full((2, 3), np.finfo(dtype).max), np.zeros(5, dtype)
    if odd is not None:
        y[3] = odd
    is_nan = odd is not None and np.isnan(odd)
    for options, expected in (
        ({}, odd is None),
        ({"isnan_only": 1}, not is_nan),
        ({"isinf_only": 1}, odd is None or is_nan),
    ):
        for inputs in ([x, y], [y]):
            check("IsAllFinite", inputs, {"y": np.bool_}, [np.array(expected)], **options)
    check("IsAllFinite", [y[:0]], {"y": np.bool_}, [np.array(True)])


def test_gemma_rotary_embedding() -> None:
    angles = floats(2, 5, 8) * 100
    q, q_turned, k, k_turned = (floats(2, 3, 5, 8, seed=i).astype(np.float16) for i in range(4))
    cos, sin = (f(angles).astype(np.float16)[:, None] for f in (np.cos, np.sin))
    expected = [q * cos + q_turned * sin, k * cos + k_turned * sin]
    outputs = {"q": np.float16, "k": np.float16}
    inputs = [angles, q, q_turned, k, k_turned]
    check("GemmaRotaryEmbedding", inputs, outputs, expected, rtol=2e-3, atol=2e-3)


def few_bits(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Packed numbers and scales of weights [n, k] in blocks of 32, and the weights."""
    numbers = np.random.default_rng(seed).integers(0, 16, (n, k // 32, 32)).astype(np.uint8)
    scales = np.abs(floats(n, k // 32, seed=seed)) / 8 + np.float32(0.01)
    weights = (numbers - 8.0) * scales[..., None]
    return numbers[..., ::2] | numbers[..., 1::2] << 4, scales, weights.reshape(n, k)


def rms_normalized(x: np.ndarray, scale: np.ndarray, epsilon: float) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + epsilon) * scale


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_qkv_by_few_bits(skips: bool, with_bias: bool) -> None:
    x, scale = floats(2, 3, 64), floats(64, seed=1)
    skip = floats(2, 3, 64, seed=2) if skips else None
    total = x + skip if skips else x
    normalized = rms_normalized(total, scale, 1e-3)
    inputs, expected = [x, skip, scale], []
    for i, n in enumerate((12, 8, 8)):
        packed, scales, weights = few_bits(n, 64, seed=i)
        bias = floats(n, seed=i + 7) if with_bias else None
        inputs += [packed, scales, bias]
        y = normalized @ weights.T + (bias if with_bias else 0)
        expected.append(y.astype(np.float32))
    outputs = dict.fromkeys("qkv", np.float32)
    if skips:
        outputs["sum"] = np.float32
        expected.append(total)
    options = {"K": 64, "Nq": 12, "Nkv": 8, "block_size": 32, "epsilon": 1e-3}
    options["accuracy_level"] = 1
    check("MatMulNBitsQkv", inputs, outputs, expected, rtol=1e-3, atol=1e-3, **options)


@pytest.mark.parametrize("before", ["nothing", "normalization", "sum"])
def test_mlp_by_few_bits(before: str) -> None:
    x, scale, skip = floats(5, 64), floats(64, seed=1), floats(5, 64, seed=2)
    inputs = [x, skip if before == "sum" else None, None if before == "nothing" else scale]
    total = x + skip if before == "sum" else x
    given = total if before == "nothing" else rms_normalized(total, scale, 1e-5)
    products = []
    for i in range(2):
        packed, scales, weights = few_bits(12, 64, seed=i)
        bias = floats(12, seed=i + 7)
        inputs += [packed, scales, bias]
        products.append(given @ weights.T + bias)
    gate, up = products
    expected = [(gate / (1 + np.exp(-gate)) * up).astype(np.float32)]
    outputs = {"y": np.float32}
    if before == "sum":
        outputs["sum"] = np.float32
        expected.append(total)
    options = {"K": 64, "N": 12, "block_size": 32, "activation": "silu", "accuracy_level": 1}
    check("MatMulNBitsMlp", inputs, outputs, expected, rtol=1e-3, atol=1e-2, **options)


# --- Spectra, sets, windows ---


@pytest.mark.parametrize("n", [2, 3, 8, 15, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rfft_and_irfft(n: int, dtype: type) -> None:
    # onnxruntime's CPU provider has neither.
    x = floats(3, 2, n).astype(dtype)
    spectrum = np.fft.rfft(x.astype(np.float64))
    expected = np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)
    tolerance = {"rtol": 1e-2, "atol": 2e-2} if dtype is np.float16 else {}
    check("Rfft", [x], {"y": dtype}, expected=[expected], signal_ndim=1, **tolerance)
    if n % 2 == 0:
        given = expected.copy()
        expected = np.fft.irfft(spectrum).astype(dtype)
        check("Irfft", [given], {"y": dtype}, expected=[expected], signal_ndim=1, **tolerance)


SIGNALS = [(6, 4), (5, 9), (2, 3, 5, 8), (1, 2, 1, 2), (40, 30), (2, 3, 2, 3, 6)]


@pytest.mark.parametrize(
    ("shape", "rank"), [(shape, n) for shape in SIGNALS for n in (2, 3, 4) if n <= len(shape)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rfft_and_irfft_of_several_axes(shape: tuple, rank: int, dtype: type) -> None:
    """One of the spectra for the inverse is not that of a real signal."""
    axes = tuple(range(-rank, 0))
    x = floats(*shape).astype(dtype)
    spectrum = np.fft.rfftn(x.astype(np.float64), axes=axes)
    expected = np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)
    tolerance = {"rtol": 2e-2, "atol": 5e-2} if dtype is np.float16 else {"rtol": 1e-5}
    check("Rfft", [x], {"y": dtype}, expected=[expected], signal_ndim=rank, **tolerance)
    for given in (expected, floats(*expected.shape, seed=5).astype(dtype)):
        wide = given.astype(np.float64)
        expected = np.fft.irfftn(wide[..., 0] + 1j * wide[..., 1], axes=axes).astype(dtype)
        if x.shape[-1] % 2 == 0:
            check("Irfft", [given], {"y": dtype}, [expected], signal_ndim=rank, **tolerance)


@pytest.mark.parametrize(
    ("op_type", "shape", "attributes"),
    [
        ("Rfft", (4,), {"signal_ndim": 2}),
        ("Rfft", (4,), {"signal_ndim": 0}),
        ("Rfft", (0, 4), {"signal_ndim": 2}),
        ("Irfft", (4, 2), {"signal_ndim": 2}),
        ("Rfft", (4,), {"normalized": 1}),
        ("Rfft", (4,), {"onesided": 0}),
        ("Rfft", (3, 0), {}),
        ("Irfft", (4, 3), {"signal_ndim": 1}),
        ("Irfft", (1, 2), {"signal_ndim": 1}),
        ("Irfft", (2,), {"signal_ndim": 1}),
    ],
)
def test_rfft_rejects(op_type: str, shape: tuple, attributes: dict) -> None:
    x = floats(*shape)
    with pytest.raises(Exception, match=op_type):
        run_tenon(contrib.model(op_type, [x], {"y": np.float32}, **attributes), [x])


def test_unique_of_microsoft() -> None:
    outputs = {"y": np.float32, "idx": np.int64, "counts": np.int64}
    check("Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], outputs)
    check("Unique", [np.array([7], np.float32)], outputs)
    # onnxruntime only supports float.
    outputs["y"] = np.int64
    expected = [np.array([5, -1, 2]), np.array([0, 1, 0, 2, 1]), np.array([2, 2, 1])]
    check("Unique", [np.array([5, -1, 5, 2, -1])], outputs, expected=expected)
    expected = [np.array([], np.int64)] * 3
    check("Unique", [np.array([], np.int64)], outputs, expected=expected)


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((2, 3, 8), {"kernel_shape": [3]}),
        ((2, 3, 8), {"kernel_shape": [3], "pads": [1, 1], "strides": [2]}),
        ((1, 2, 6, 7), {"kernel_shape": [2, 3], "pads": [1, 0, 1, 1]}),
        ((1, 2, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 1, 4, 4, 5), {"kernel_shape": [2, 2, 2]}),
    ],
)
def test_max_pool_with_mask(shape: tuple, attributes: dict) -> None:
    mask = (np.abs(floats(1, 1, *shape[2:], seed=1)) > 0.5).astype(np.int32)
    check("MaxpoolWithMask", [floats(*shape), mask], **attributes)
    check("MaxpoolWithMask", [floats(*shape), np.zeros_like(mask)], **attributes)


def test_max_pool_with_mask_rejects_other_planes() -> None:
    x, mask = floats(1, 1, 4, 4), np.ones((1, 1, 4, 3), np.int32)
    content = contrib.model("MaxpoolWithMask", [x, mask], {"y": np.float32}, kernel_shape=[2, 2])
    with pytest.raises(Exception, match="MaxpoolWithMask"):
        run_tenon(content, [x, mask])


@pytest.mark.parametrize("constants", [(), (1, 2)])
def test_conv_transpose_with_dynamic_pads(constants: tuple) -> None:
    x, w, b = floats(2, 4, 5, 6), floats(4, 3, 3, 3, seed=1), floats(3, seed=2)
    for pads in ([0, 0, 0, 0], [1, 2, 0, 1]):
        given = np.array(pads, np.int64)
        options = {"strides": [2, 2], "output_padding": [1, 0], "constants": constants}
        check("ConvTransposeWithDynamicPads", [x, w, given, b], **options)
        check("ConvTransposeWithDynamicPads", [x, w, given], **options)


@pytest.mark.parametrize("pads", [[-1, 0, 0, 0], [0, 0, 0], [2**62] * 4, [2**31] * 4])
def test_conv_transpose_rejects_pads(pads: list) -> None:
    inputs = [floats(1, 2, 3, 3), floats(2, 1, 2, 2), np.array(pads, np.int64)]
    content = contrib.model("ConvTransposeWithDynamicPads", inputs, {"y": np.float32})
    with pytest.raises(Exception, match="ConvTransposeWithDynamicPads"):
        run_tenon(content, inputs)
