"""Gates, hyper-connections, n-gram hashes and others of com.microsoft, beside onnxruntime's."""

import contrib
import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from contrib import check, floats, run_tenon

HALF = np.float16
TYPES = [np.float32, np.float16]
# The effect of one rounding to the type.
TOLERANCE = {np.float32: 1e-5, np.float16: 2e-3}


def ids(*values: int, dtype: type = np.int64) -> np.ndarray:
    return np.array(values, dtype)


def compare(op_type: str, inputs: contrib.Arrays, dtype: type = np.float32, **options) -> None:
    tolerance = TOLERANCE[dtype]
    check(op_type, inputs, {"y": dtype}, rtol=tolerance, atol=tolerance, **options)


# --- Gates ---


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7,), (0, 3), (2, 3, 65), (1, 5000)])
def test_gated_add(shape: tuple, dtype: type) -> None:
    x, y = floats(*shape, dtype=dtype), floats(*shape, seed=1, dtype=dtype)
    gate = floats(*shape[:-1], 1, seed=2, dtype=dtype)
    compare("GatedAdd", [x, y, gate], dtype)


def test_gated_add_rounds_the_product() -> None:
    x, y, gate = np.array([[1]], HALF), np.array([[1.001]], HALF), np.array([[0.3333]], HALF)
    model = contrib.model("GatedAdd", [x, y, gate], {"y": HALF})
    (actual,) = run_tenon(model, [x, y, gate])
    assert actual == x + y * gate


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [None, np.float32(1.7), np.float16(-0.3)])
def test_scaled_silu(scale: np.floating | None, dtype: type) -> None:
    for shape in [(), (0,), (5,), (3, 1000)]:
        inputs = [floats(*shape, dtype=dtype)]
        if scale is not None:
            inputs.append(np.array(scale))
        compare("ScaledSiLU", inputs, dtype, alpha=0.8)


def test_bfloat16_is_rounded_as_numpy_does() -> None:
    x = floats(100).astype(ml_dtypes.bfloat16)
    (actual,) = run_tenon(contrib.model("ScaledSiLU", [x], {"y": x.dtype}, alpha=1.5), [x])
    z = (x.astype(np.float32) * 1.5).astype(x.dtype)
    sigmoid = (1 / (1 + np.exp(-z.astype(np.float64)))).astype(x.dtype)
    np.testing.assert_array_equal(actual.astype(np.float32), (z * sigmoid).astype(np.float32))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
@pytest.mark.parametrize(("size", "group"), [(4, 4), (24, 8), (129, 43), (4096, 4096)])
def test_gated_rms_norm(size: int, group: int, activation: str, dtype: type) -> None:
    x, gate = floats(2, 3, size, dtype=dtype), floats(2, 3, size, seed=1, dtype=dtype)
    scale = floats(group, seed=2, dtype=dtype)
    compare("GatedRMSNorm", [x, scale, gate], dtype, activation=activation, epsilon=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
def test_linear_attention_gate(dtype: type) -> None:
    a, b = floats(2, 5, 6, dtype=dtype), floats(2, 5, 6, seed=1, dtype=dtype)
    bias, scale = floats(6, seed=2), -np.abs(floats(6, seed=3))
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    check("LinearAttentionGate", [a, bias, scale, b], {"d": dtype, "b": dtype}, **tolerance)
    check("LinearAttentionGate", [a, bias, scale], {"d": dtype}, **tolerance)


@pytest.mark.parametrize("dtype", TYPES)
def test_engram_gate(dtype: type) -> None:
    key, query = floats(2, 3, 4, 33, dtype=dtype), floats(2, 3, 4, 33, seed=1, dtype=dtype)
    value = floats(2, 3, 33, seed=2, dtype=dtype)
    scales = [floats(4, 33, seed=seed, dtype=dtype) for seed in (3, 4, 5)]
    tolerance = {"rtol": TOLERANCE[dtype], "atol": 2 * TOLERANCE[dtype]}
    inputs = [key, query, value, *scales]
    check("EngramGate", inputs, {"y": dtype, "n": dtype}, **tolerance)
    check("EngramGate", inputs[:5], {"y": dtype}, **tolerance)
    # Keys that do not fit at all: the gate is half open.
    check("EngramGate", [0 * key, *inputs[1:5]], {"y": dtype}, **tolerance)


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes", "message"),
    [
        ("GatedAdd", [(2, 3), (2, 4), (2, 1)], {}, r"expected \[2, 3\], got \[2, 4\]"),
        ("GatedAdd", [(2, 3), (2, 3), (2,)], {}, r"expected \[2, 1\], got \[2\]"),
        ("ScaledSiLU", [(2,), (1,)], {}, r"expected \[\], got \[1\]"),
        ("GatedRMSNorm", [(2, 6), (4,), (2, 6)], {}, "divisor"),
        ("GatedRMSNorm", [(2, 6), (0,), (2, 6)], {}, "divisor"),
        ("GatedRMSNorm", [(2, 6), (3,), (2, 6)], {"activation": "relu"}, "relu"),
        ("LinearAttentionGate", [(1, 2, 3), (2,), (3,)], {}, r"expected \[3\], got \[2\]"),
        ("HyperConnectionPreMix", [(2, 3, 4), (2, 4)], {}, "gates"),
        ("HyperConnectionPreMix", [(2, 12), (2, 12)], {"num_branches": 5}, "5 branches"),
        ("HyperConnectionPreMix", [(2, 12), (2, 12)], {"num_branches": -1}, "got -1"),
        ("HyperConnectionPreMix", [(2,), (2,)], {}, "rank"),
        ("BranchwiseRMSNorm", [(2, 3, 4), (5,)], {}, "scales"),
    ],
)
def test_gates_reject(op_type: str, shapes: list, attributes: dict, message: str) -> None:
    inputs = [floats(*shape) for shape in shapes]
    with pytest.raises(Exception, match=message):
        run_tenon(contrib.model(op_type, inputs, {"y": np.float32}, **attributes), inputs)


# --- Streams ---


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [None, (4,), (3, 4), (12,)])
@pytest.mark.parametrize("flat", [False, True])
def test_branchwise_rms_norm(flat: bool, scale: tuple | None, dtype: type) -> None:
    x = floats(*((2, 5, 12) if flat else (2, 5, 3, 4)), dtype=dtype)
    inputs = [x] if scale is None else [x, floats(*scale, seed=1)]
    compare("BranchwiseRMSNorm", inputs, dtype, **({"num_branches": 3} if flat else {}))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("gates", [(2, 3), (2, 3, 1), (2, 3, 4)])
@pytest.mark.parametrize("gate_type", TYPES)
def test_hyper_connection_pre_mix(gates: tuple, gate_type: type, dtype: type) -> None:
    x, mix = floats(2, 3, 4, dtype=dtype), floats(*gates, seed=1, dtype=gate_type)
    compare("HyperConnectionPreMix", [x, mix], dtype, reduction_scale=0.5)
    compare("HyperConnectionPreMix", [x.reshape(2, 12), mix], dtype, num_branches=3)


def test_hyper_connection_pre_mix_of_flat_gates() -> None:
    compare("HyperConnectionPreMix", [floats(2, 12), floats(2, 12, seed=1)], num_branches=3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("gates", [(2, 3), (2, 3, 1), (2, 3, 4)])
@pytest.mark.parametrize("mixes", [False, True])
def test_hyper_connection_post_mix(gates: tuple, mixes: bool, dtype: type) -> None:
    x, block = floats(2, 3, 4, dtype=dtype), floats(2, 4, seed=1, dtype=dtype)
    inputs = [x, block, floats(*gates, seed=2), *([floats(2, 3, 3, seed=3)] if mixes else [])]
    compare("HyperConnectionPostMix", inputs, dtype)
    inputs[0] = x.reshape(2, 12)
    compare("HyperConnectionPostMix", inputs, dtype, num_branches=3)


# --- Rotary embedding of three positions ---


@pytest.mark.parametrize("sections", [[2, 1, 1], [0, 2, 2], [4, 0, 0], [1, 2, 1], [0, 0, 4]])
@pytest.mark.parametrize("layout", [0, 1])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_multimodal_rotary_embedding(sections: list, layout: int, interleaved: int) -> None:
    positions = np.random.default_rng(0).integers(0, 10, (3, 2, 5))
    cos, sin = floats(10, 4, seed=1), floats(10, 4, seed=2)
    options = {"mrope_section": sections, "mrope_layout": layout, "interleaved": interleaved}
    for x, heads in [
        (floats(2, 5, 16), {"num_heads": 2}),
        (floats(2, 3, 5, 8), {}),
        (floats(2, 3, 5, 12), {"num_heads": 3, "rotary_embedding_dim": 8}),
        (floats(2, 3, 5, 8), {"scale": 1.5}),
    ]:
        check("MRotaryEmbedding", [x, positions, cos, sin], **options, **heads)


@pytest.mark.parametrize(
    ("position", "sections", "message"),
    [
        (10, [2, 1, 1], r"\[0, 10\), got 10"),
        (-1, [2, 1, 1], "got -1"),
        (0, [2, 1, 2], "mrope_section"),
        (0, [5, -1, 0], "mrope_section"),
        (0, [4], "mrope_section"),
        (0, [2**62, 2**62, 2**62], "mrope_section"),
    ],
)
def test_multimodal_rotary_embedding_rejects(position: int, sections: list, message: str) -> None:
    positions = np.full((3, 2, 5), position)
    inputs = [floats(2, 3, 5, 8), positions, floats(10, 4), floats(10, 4)]
    with pytest.raises(Exception, match=message):
        model = contrib.model("MRotaryEmbedding", inputs, {"y": np.float32}, mrope_section=sections)
        run_tenon(model, inputs)


# --- Hashes of n-grams ---

TOKENS = [[3, 5, 7, 2, 5, 5], [1, 2, 3, 4, 5, 6]]
HASH = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 4}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("multipliers", [[3, 5, 7], [2**30, 1 - 2**30, 3, 9], [-3, 0, 2**31 - 1]])
@pytest.mark.parametrize(
    ("optional", "attributes"),
    [
        ({}, {}),
        ({3: [[8, 9], [1, 1]]}, {}),
        ({4: [100, 200, 300, 2**30]}, {}),
        ({5: 5}, {}),
        ({5: 5}, {"reset_on_eos": 1}),
        ({3: [[5, 9], [1, 5]], 5: 5}, {"reset_on_eos": 1}),
        ({3: [[5, 9], [1, 5]], 6: [[0, 0, 1, 1, 1, 2], [4, 3, 2, 2, 2, 2]]}, {}),
        ({5: 5, 6: [[0, 0, 1, 1, 1, 2], [4, 3, 2, 2, 2, 2]]}, {"reset_on_eos": 1}),
    ],
)
def test_ngram_hashes(optional: dict, attributes: dict, multipliers: list, dtype: type) -> None:
    for tokens in (
        np.array(TOKENS, dtype),
        -np.array(TOKENS, dtype),
        np.array(TOKENS, dtype)[:, :0],
    ):
        inputs = [tokens, np.array(multipliers, dtype), ids(11, 13, 17, 19, dtype=dtype)]
        inputs += [None] * 4
        for i, values in optional.items():
            inputs[i] = np.array(values, np.int32 if i == 6 else dtype)
            if i == 6:
                inputs[i] = inputs[i][:, : tokens.shape[1]]
        check("NGramHashMapping", inputs, {"h": dtype, "p": dtype}, **HASH, **attributes)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("ends", [[0, 4, 7], [0, 1, 7], [0, 7], [0, 1, 2, 7]])
@pytest.mark.parametrize(
    "given", [(), (4,), (6,), (7,), (4, 7), (4, 7, 8), (7, 8), (4, 5, 6, 7, 8)]
)
@pytest.mark.parametrize("capacity", [0, 3])
def test_ngram_hashes_of_packed_tokens(
    capacity: int, given: tuple, ends: list, dtype: type
) -> None:
    batch = len(ends) - 1
    history = np.random.default_rng(1).integers(0, 6, (batch, 2))
    optional = {
        4: history.astype(dtype),
        5: ids(1, 2, 3, 4, dtype=dtype),
        6: np.array(5, dtype),
        7: ids(0, 0, 1, 1, 2, 2, 2, dtype=np.int32),
        8: np.array([[0, 0], [7, 0], [2, 2]][:batch], np.int32),
    }
    inputs = [
        ids(3, 5, 7, 2, 5, 5, 9, dtype=dtype),
        ids(3, 5, 7, dtype=dtype),
        ids(11, 13, 17, 19, dtype=dtype),
        np.array(ends, np.int32),
        *(optional[i] if i in given else None for i in range(4, 9)),
        np.array([1, -2, 9][:batch], np.int32) if capacity else None,
    ]
    outputs = {"h": dtype, "p": dtype}
    if 7 in given:
        outputs["s"] = np.int32
    if capacity:
        outputs.setdefault("s", np.int32)
        if 7 not in given:
            del outputs["s"]
            outputs[""] = np.int32
        outputs["u"] = dtype
    attributes = {**HASH, "reset_on_eos": 1, "state_update_capacity": capacity}
    check("VarlenNGramHashMapping", inputs, outputs, **attributes)


@pytest.mark.parametrize(
    ("changed", "attributes", "message"),
    [
        ({2: [11, 0, 17, 19]}, {}, "positive sizes, got 0"),
        ({2: [11, 13, 17]}, {}, r"expected \[4\], got \[3\]"),
        ({1: [3, 5]}, {}, "at least 3"),
        ({}, {"max_ngram_size": 1}, "got 1"),
        ({}, {"n_head_per_ngram": 0}, "got 0"),
        ({}, {"max_ngram_size": 2**62, "n_head_per_ngram": 2**62}, "too large"),
        ({3: [1, 7]}, {}, "rise from 0 to 7"),
        ({3: [0, 5, 4, 7]}, {}, "rise from 0 to 7"),
        ({3: [0, 2**31 - 1]}, {}, "rise from 0 to 7"),
        ({3: []}, {}, "at least one"),
        ({}, {"state_update_capacity": 3}, "go together"),
        ({}, {"state_update_capacity": 9}, "got 9"),
    ],
)
def test_ngram_hashes_reject(changed: dict, attributes: dict, message: str) -> None:
    values = {0: [3, 5, 7, 2, 5, 5, 9], 1: [3, 5, 7], 2: [11, 13, 17, 19], 3: [0, 4, 7], **changed}
    inputs = [np.array(x, np.int32 if i == 3 else np.int64) for i, x in values.items()]
    options = {**HASH, **attributes}
    with pytest.raises(Exception, match=message):
        run_tenon(
            contrib.model("VarlenNGramHashMapping", inputs, {"h": np.int64}, **options), inputs
        )


# --- Others ---


@pytest.mark.parametrize(
    ("source", "current", "match", "predicted"),
    [
        ([1, 2, 1, 2, 9], [1, 2], 0, None),
        ([1, 2, 3, 4, 5, 6, 2, 3, 9], [1, 2], 2, [3, 4, 7, 8, 9, 1, 2, 3]),
        ([1, 2, 3, 4, 5, 6, 2, 3, 9], [1, 2, 3], 0, None),
        ([1, 2, 3], [5], 1, [2, 3, 4]),
        ([1, 2, 3], [5], 3, [4]),
        ([1, 2, 2], [1, 2], 0, None),
        ([2, 2, 2], [2, 2], 0, None),
        ([], [1], 0, None),
        ([1, 2], [], 0, None),
    ],
)
def test_bifurcation_detector(
    source: list, current: list, match: int, predicted: list | None
) -> None:
    inputs = [ids(*source), ids(*current), np.array(match)]
    inputs.append(None if predicted is None else ids(*predicted))
    outputs = {"tokens": np.int64, "match": np.int64}
    for longest in (1, 3, 2**62):
        check("BifurcationDetector", inputs, outputs, max_ngram_size=longest)


@pytest.mark.parametrize(
    ("match", "count", "message"),
    [(4, 0, r"\[0, 3\], got 4"), (-1, 5, "got -1"), (-(2**63), 4, "got -9"), (1, 4, "expected 3")],
)
def test_bifurcation_detector_rejects(match: int, count: int, message: str) -> None:
    inputs = [ids(1, 2, 3), ids(5), np.array(match), np.zeros(count, np.int64)]
    outputs = {"tokens": np.int64, "match": np.int64}
    with pytest.raises(Exception, match=message):
        run_tenon(contrib.model("BifurcationDetector", inputs, outputs), inputs)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (5, 3), (1, 4, 7), (20, 20), (0, 5)])
def test_dynamic_time_warping(shape: tuple) -> None:
    for costs in (np.abs(floats(*shape)), floats(*shape, seed=1), np.ones(shape, np.float32)):
        check("DynamicTimeWarping", [costs], {"y": np.int32})


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64, np.complex128])
@pytest.mark.parametrize(("axis", "size", "step"), [(0, 1, 1), (1, 2, 3), (-1, 4, 2), (-3, 3, 1)])
def test_unfold_tensor(axis: int, size: int, step: int, dtype: type) -> None:
    x = np.arange(3 * 6 * 7).reshape(3, 6, 7).astype(dtype)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    steps = [slice(None)] * 3
    steps[axis] = slice(None, None, step)
    expected = [windows[tuple(steps)]]
    attributes = {"dim": axis, "size": size, "step": step}
    check("UnfoldTensor", [x], {"y": dtype}, expected, **attributes)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"size": 8}, "got 8"),
        ({"size": 0}, "got 0"),
        ({"size": -1}, "got -1"),
        ({"size": 2**63 - 1}, "expected size <= 7"),
        ({"size": 1, "step": 0}, "got 0"),
        ({"size": 1, "step": -(2**63)}, "step >= 1"),
        ({"size": 1, "dim": 3}, "3"),
        ({"size": 1, "dim": -4}, "-4"),
    ],
)
def test_unfold_tensor_rejects(attributes: dict, message: str) -> None:
    x = floats(3, 6, 7)
    with pytest.raises(Exception, match=message):
        run_tenon(contrib.model("UnfoldTensor", [x], {"y": np.float32}, **attributes), [x])


# --- Quantized ---


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_quantized_embedding(mask: bool, segments: bool, dtype: type) -> None:
    generator = np.random.default_rng(0)
    limits = np.iinfo(dtype)

    def table(*shape: int) -> np.ndarray:
        return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)

    def numbers(high: int) -> np.ndarray:
        return generator.integers(0, high, (2, 5)).astype(np.int32)

    scales = [np.array(s, np.float32) for s in (0.02, 0.03, 0.01, 0.05, 0.04)]
    zeros = [np.array(z, dtype) for z in (3, 5, 1, 2, 7)]
    inputs = [
        numbers(11),
        numbers(2),
        table(11, 33),
        table(9, 33),
        table(2, 33),
        table(33),
        table(33),
        numbers(2) if mask else None,
        *scales,
        *zeros,
    ]
    if not segments:
        for i in (1, 4, 10, 15):
            inputs[i] = None
    outputs = {"y": np.float32, "m": np.int32}
    check("QEmbedLayerNormalization", inputs, outputs, epsilon=1e-6)
    for i, bad in [(0, 11), (0, -1)]:
        inputs[i] = np.full((2, 5), bad, np.int32)
        with pytest.raises(Exception, match=rf"\[0, 11\), got {bad}"):
            run_tenon(contrib.model("QEmbedLayerNormalization", inputs, outputs), inputs)


@pytest.mark.parametrize(("kind", "header"), [(0, 4), (1, 5)])
@pytest.mark.parametrize(("rows", "k", "n"), [(1, 32, 1), (3, 40, 33), (7, 129, 70)])
def test_matmul_of_blob(rows: int, k: int, n: int, kind: int, header: int) -> None:
    generator = np.random.default_rng(1)
    blocks = (k + 31) // 32
    blob = generator.integers(0, 256, (n, blocks, header + 16)).astype(np.uint8)
    blob[:, :, :4] = floats(n, blocks).view(np.uint8).reshape(n, blocks, 4)
    if kind == 1:
        blob[:, :, 4] &= 15
    inputs = [floats(rows, k), blob.reshape(-1), ids(k, n)]
    try:
        check("MatMulFpQ4", inputs, constants=(1, 2), blk_quant_type=kind, atol=2e-3)
    except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
        if "not yet supported on this hardware" not in str(error):
            raise
        pytest.skip("onnxruntime has no such product on this processor")
