"""NumPy in and out: every element type, ownership of memory, sequences, maps, optionals."""

import gc

import graphs
import ml_dtypes
import numpy as np
import onnx
import pytest
import tenon
from onnx import TensorProto, helper
from tenon.capi.onnxruntime_pybind11_state import Fail

# ONNX element type, type of NumPy, values.
TYPES = (
    ("FLOAT", np.float32, [0, -1.5, 3e38]),
    ("DOUBLE", np.float64, [0, -1.5, 1e300]),
    ("FLOAT16", np.float16, [0, -1.5, 65504]),
    ("BFLOAT16", ml_dtypes.bfloat16, [0, -1.5, 1e38]),
    ("FLOAT8E4M3FN", ml_dtypes.float8_e4m3fn, [0, -1.5, 448]),
    ("FLOAT8E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, [0, -1.5, 240]),
    ("FLOAT8E5M2", ml_dtypes.float8_e5m2, [0, -1.5, 57344]),
    ("FLOAT8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, [0, -1.5, 57344]),
    ("INT8", np.int8, [0, -128, 127]),
    ("INT16", np.int16, [0, -32768, 32767]),
    ("INT32", np.int32, [0, -(2**31), 2**31 - 1]),
    ("INT64", np.int64, [0, -(2**63), 2**63 - 1]),
    ("UINT8", np.uint8, [0, 1, 255]),
    ("UINT16", np.uint16, [0, 1, 65535]),
    ("UINT32", np.uint32, [0, 1, 2**32 - 1]),
    ("UINT64", np.uint64, [0, 1, 2**64 - 1]),
    ("BOOL", np.bool_, [False, True, True]),
    ("COMPLEX64", np.complex64, [0, 1 - 2j, 3j]),
    ("COMPLEX128", np.complex128, [0, 1 - 2j, 3j]),
    ("STRING", object, ["", "joint", "Zapfen ß\0日本"]),
)
# Types below a byte, in values that only OrtValue can hold: Identity has them from opset 21 on.
PACKED_TYPES = (
    ("int4", 4, ml_dtypes.int4, [-8, -1, 7]),
    ("uint4", 4, ml_dtypes.uint4, [0, 9, 15]),
    ("float4e2m1", 4, ml_dtypes.float4_e2m1fn, [0, -0.5, 6]),
    ("int2", 2, ml_dtypes.int2, [-2, -1, 1]),
    ("uint2", 2, ml_dtypes.uint2, [0, 2, 3]),
    ("float6e2m3", 6, ml_dtypes.float6_e2m3fn, [0, -0.125, 7.5]),
    ("float6e3m2", 6, ml_dtypes.float6_e3m2fn, [0, -0.0625, 28]),
)
SHAPES = ((3,), (1, 3, 1), (0,), (2, 0, 3), ())


def array_of(values: list, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    return np.array((values * 4)[:count], dtype).reshape(shape)


def expect_same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype", "values"), TYPES, ids=[row[0] for row in TYPES])
def test_carries_every_type(name: str, dtype: type, values: list, shape: tuple[int, ...]) -> None:
    session = tenon.InferenceSession(graphs.identity(getattr(TensorProto, name)))
    x = array_of(values, dtype, shape)
    (y,) = session.run(None, {"x": x})
    expect_same(y, x)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("name", "bits", "dtype", "values"), PACKED_TYPES)
def test_packs_small_types(
    name: str, bits: int, dtype: type, values: list, shape: tuple[int, ...]
) -> None:
    x = array_of(values, dtype, shape)
    value = tenon.OrtValue.ortvalue_from_numpy(x)
    assert value.data_type() == f"tensor({name})"
    assert value.tensor_size_in_bytes() == -(-x.size * bits // 8)
    expect_same(value.numpy(), x)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
# Feeds for a float input, and what they mean.
FEEDS = {
    "list": ([[1, 2], [3, 4.5]], np.array([[1, 2], [3, 4.5]], np.float32)),
    "scalar": (2, np.array(2, np.float32)),
    "range": (range(3), np.arange(3, dtype=np.float32)),
    "transposed": (X.T, X.T),
    "strided": (X[::2, ::3], X[::2, ::3]),
    "reversed": (X[::-1], X[::-1]),
    "fortran": (np.asfortranarray(X), X),
    "foreign byte order": (X.astype(">f4"), X),
    "unaligned": (np.frombuffer(b"\0" + X.tobytes(), np.float32, offset=1), X.reshape(-1)),
    "masked": (np.ma.array(X), X),
    "read-only": (np.frombuffer(X.tobytes(), np.float32), X.reshape(-1)),
}


@pytest.mark.parametrize("kind", FEEDS)
def test_converts_what_is_no_plain_array(kind: str) -> None:
    feed, expected = FEEDS[kind]
    (y,) = tenon.InferenceSession(graphs.double()).run(None, {"x": feed})
    expect_same(y, np.asarray(2 * expected))


@pytest.mark.parametrize(
    "feed",
    [
        np.array(["a", "ß"]),
        np.array(["a", b"\xc3\x9f"], object),
        np.array([b"a", b"\xc3\x9f"]),
        np.array(["a", "ß"], np.dtypes.StringDType()),
        ["a", "ß"],
        ("a", "ß"),
    ],
)
def test_takes_strings_of_all_kinds(feed: object) -> None:
    session = tenon.InferenceSession(graphs.identity(TensorProto.STRING))
    (y,) = session.run(None, {"x": feed})
    expect_same(y, np.array(["a", "ß"], object))


def test_none_is_no_tensor() -> None:
    for shape in ([], [None], None):
        with pytest.raises(Fail, match=r"Required inputs \(\['x'\]\) are missing"):
            tenon.InferenceSession(graphs.double(shape)).run(None, {"x": None})


def test_bytes_of_one_size_are_strings() -> None:
    session = tenon.InferenceSession(graphs.identity(TensorProto.STRING))
    (y,) = session.run(None, {"x": np.array([[b"ab"], [b"c\0"]], np.void)})
    assert y.tolist() == [["ab"], ["c\0"]]


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ([[1, 2], [3]], "input 'x': .*inhomogeneous"),
        ([["a"]], "input 'x': could not convert string to float: 'a'"),
        ({"a": 1}, "input 'x': "),
    ],
)
def test_feeds_that_are_no_tensors_are_named(feed: object, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        tenon.InferenceSession(graphs.double()).run(None, {"x": feed})


@pytest.mark.parametrize(
    ("feed", "text"),
    [
        ({0: 1.0, "a": 2.0}, "input 'x': Unexpected key type  <class 'str'>.* int64_t: 'a'"),
        ({"0": 1.0}, "input 'x': Unexpected key type  <class 'str'>.* int64_t: '0'"),
        ({0: "a"}, "input 'x': could not convert string to float: 'a'"),
        ([1, 2], r"input 'x': expected a value of the type map\(int64,tensor\(float\)\), got list"),
    ],
)
def test_maps_have_keys_of_the_declared_type(feed: object, text: str) -> None:
    model = graphs.model(
        [helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml")],
        [
            helper.make_value_info(
                "x",
                helper.make_map_type_proto(
                    TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
                ),
            )
        ],
        [graphs.tensor("y", shape=[1, None])],
    )
    session = tenon.InferenceSession(model)
    assert session.run(None, {"x": {np.int64(0): np.float32(2)}})[0].tolist() == [[2]]
    with pytest.raises(RuntimeError, match=text):
        session.run(None, {"x": feed})


def test_names_end_where_they_say() -> None:
    session = tenon.InferenceSession(graphs.double())
    for names, feed in (None, {"x\0": X}), (["y\0"], {"x": X}):
        with pytest.raises(ValueError, match="NUL"):
            session.run(names, feed)


def test_strings_that_are_no_utf8_come_back() -> None:
    session = tenon.InferenceSession(graphs.identity(TensorProto.STRING))
    (y,) = session.run(None, {"x": np.array([b"a", b"\xff\xc3"], object)})
    (z,) = session.run(None, {"x": y})
    expect_same(z, y)
    assert [text.encode("utf-8", "surrogateescape") for text in z] == [b"a", b"\xff\xc3"]
    with pytest.raises(UnicodeEncodeError):
        session.run(None, {"x": ["a", "\ud800"]})


def test_outputs_are_writable_and_outlive_the_session() -> None:
    session = tenon.InferenceSession(graphs.double())
    (y,) = session.run(None, {"x": X})
    (z,) = session.run(None, {"x": X})
    del session
    gc.collect()
    y += 1
    np.testing.assert_array_equal(y, 2 * X + 1)
    np.testing.assert_array_equal(z, 2 * X)


def test_outputs_share_no_memory_with_inputs() -> None:
    x = X.copy()
    (y,) = tenon.InferenceSession(graphs.identity()).run(None, {"x": x})
    assert not np.shares_memory(x, y)


def test_values_share_the_memory_of_arrays() -> None:
    x = X.copy()
    value = tenon.OrtValue.ortvalue_from_numpy(x)
    assert value.data_ptr() == x.ctypes.data
    assert np.shares_memory(value.numpy(), x)
    del x
    gc.collect()
    np.testing.assert_array_equal(value.numpy(), X)


def test_values_say_what_they_are() -> None:
    value = tenon.OrtValue.ortvalue_from_numpy(X)
    assert (value.data_type(), value.shape(), value.device_name()) == (
        "tensor(float)",
        [3, 4],
        "cpu",
    )
    assert (value.element_type(), value.tensor_size_in_bytes()) == (TensorProto.FLOAT, 48)
    assert value.has_value()
    assert value.is_tensor()
    assert not value.is_sparse_tensor()
    assert not value.is_tensor_sequence()


def test_values_are_made_from_shapes_and_updated() -> None:
    for element_type in (np.float32, "float32", TensorProto.FLOAT):
        value = tenon.OrtValue.ortvalue_from_shape_and_type([3, 4], element_type)
        value.update_inplace(X)
        np.testing.assert_array_equal(value.numpy(), X)
    with pytest.raises(ValueError, match="same type and size"):
        value.update_inplace(X[0])


def test_values_take_the_bits_of_another_type() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = tenon.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, TensorProto.BFLOAT16)
    expect_same(value.numpy(), np.array([1, 2], ml_dtypes.bfloat16))


def test_gives_sequences_as_lists_and_takes_them() -> None:
    sequence = helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
    content = graphs.model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [helper.make_value_info("x", sequence)],
        [helper.make_value_info("y", sequence)],
    )
    session = tenon.InferenceSession(content)
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    parts = [X, X[0], np.float32(3)]
    (result,) = session.run(None, {"x": parts})
    assert len(result) == 3
    for actual, expected in zip(result, parts, strict=True):
        expect_same(actual, np.asarray(expected))


def test_gives_sequences_of_maps_as_lists_of_dicts() -> None:
    maps = helper.make_sequence_type_proto(
        onnx.TypeProto(
            map_type=onnx.TypeProto.Map(
                key_type=TensorProto.STRING,
                value_type=helper.make_tensor_type_proto(TensorProto.FLOAT, []),
            )
        )
    )
    content = graphs.model(
        [
            helper.make_node(
                "ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["a", "b"]
            )
        ],
        [graphs.tensor("x", shape=[None, 2])],
        [helper.make_value_info("y", maps)],
    )
    session = tenon.InferenceSession(content)
    (result,) = session.run(None, {"x": np.array([[1, 2], [3, 4]], np.float32)})
    assert result == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert session.get_outputs()[0].type == "seq(map(string,tensor(float)))"


@pytest.mark.parametrize(
    ("key", "value", "maps"),
    [
        ("INT64", "FLOAT", [{1: 0.5}, {2: 0.25, 3: 1.0}, {2: 0.5, 3: 0.75}]),
        ("STRING", "DOUBLE", [{"a": 0.5}, {"b": 0.25}]),
        ("INT64", "STRING", [{1: "x"}, {2: "y", 3: "z"}]),
    ],
)
def test_maps_of_one_sequence_may_have_different_keys(key: str, value: str, maps: list) -> None:
    item = helper.make_tensor_type_proto(TensorProto.DataType.Value(value), [])
    kind = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.DataType.Value(key), item)
    )
    content = graphs.model(
        [helper.make_node("Identity", ["x"], ["y"])],
        [helper.make_value_info("x", kind)],
        [helper.make_value_info("y", kind)],
    )
    assert tenon.InferenceSession(content).run(None, {"x": maps}) == [maps]


def optional_model(held: onnx.TypeProto) -> bytes:
    """y = x, an optional; y2 = whether x holds something."""
    optional = helper.make_optional_type_proto(held)
    return graphs.model(
        [
            helper.make_node("Identity", ["x"], ["y"]),
            helper.make_node("OptionalHasElement", ["x"], ["y2"]),
        ],
        [helper.make_value_info("x", optional)],
        [helper.make_value_info("y", optional), graphs.tensor("y2", TensorProto.BOOL, [])],
    )


def test_optionals_hold_values_or_none() -> None:
    held = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    for item, value in ((held, X), (helper.make_sequence_type_proto(held), [X, X[0]])):
        session = tenon.InferenceSession(optional_model(item))
        result, has_element = session.run(None, {"x": value})
        assert has_element
        for actual, expected in zip(result, value, strict=True):
            expect_same(np.asarray(actual), np.asarray(expected))
        assert session.run(None, {"x": None}) == [None, False]
        assert session.run(None, {}) == [None, False]


def test_takes_empty_sequences() -> None:
    sequence = helper.make_sequence_type_proto(
        helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    )
    content = graphs.model(
        [
            helper.make_node("SequenceInsert", ["x", "t"], ["y"]),
            helper.make_node("SequenceLength", ["x"], ["n"]),
        ],
        [helper.make_value_info("x", sequence), graphs.tensor("t")],
        [helper.make_value_info("y", sequence), graphs.tensor("n", TensorProto.INT64, [])],
    )
    session = tenon.InferenceSession(content)
    result, count = session.run(None, {"x": [], "t": X})
    assert count == 0
    expect_same(result[0], X)
    with pytest.raises(Exception, match=r"Unexpected input data type. Actual: \(seq\(int64\)\) , "):
        session.run(None, {"x": [np.array([1, 2])], "t": X})


def test_takes_maps() -> None:
    maps = onnx.TypeProto(
        map_type=onnx.TypeProto.Map(
            key_type=TensorProto.INT64,
            value_type=helper.make_tensor_type_proto(TensorProto.FLOAT, []),
        )
    )
    content = graphs.model(
        [helper.make_node("CastMap", ["x"], ["y"], domain="ai.onnx.ml")],
        [helper.make_value_info("x", maps)],
        [graphs.tensor("y", shape=None)],
    )
    (result,) = tenon.InferenceSession(content).run(None, {"x": {7: 0.5, -1: 2.0}})
    expect_same(result, np.array([[2.0, 0.5]], np.float32))
