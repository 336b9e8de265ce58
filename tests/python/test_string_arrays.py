"""Tensors of strings from all of NumPy's types and layouts, beside onnxruntime (STR-2)."""

import graphs
import numpy as np
import onnxruntime
import pytest
import tenon
from onnx import TensorProto

STRINGS = np.dtypes.StringDType()
ODD = [
    "",
    "a",
    "a\0b",
    "\0",
    "ß",
    "\u07ff\u0800",
    "\uffff",
    "𝄞\U0010ffff",
    "\ufeffx",
    "x" * 300,
    "é" * 99,
]
LAYOUTS = {
    "rows": np.array,
    "strided": lambda a: np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1],
    "columns": lambda a: np.asfortranarray(np.stack([a, a])),
    "scalar": lambda a: a[7:8].reshape(()),
    "nothing": lambda a: a[:0].reshape(0, 3),
    "slice": lambda a: a[1:],
    "read-only": lambda a: np.broadcast_to(a, a.shape),
}
MODEL = graphs.identity(TensorProto.STRING)


def run(feed: object) -> np.ndarray:
    (y,) = tenon.InferenceSession(MODEL).run(None, {"x": feed})
    assert y.dtype == object
    assert y.flags.c_contiguous
    return y


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["O", "U", ">U", STRINGS], ids=str)
def test_odd_strings_in_all_layouts(dtype: object, layout: str) -> None:
    wide = np.array(ODD).astype(dtype) if dtype == ">U" else np.array(ODD, dtype)
    feed = LAYOUTS[layout](wide)
    y = run(feed)
    expected = feed.astype(object)
    assert y.shape == expected.shape
    assert y.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["O", "U"])
def test_odd_strings_are_those_of_onnxruntime(dtype: str) -> None:
    feed = np.array([text for text in ODD if "\0" not in text], dtype)
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": feed})
    assert run(feed).tolist() == expected.tolist()


def test_more_strings_than_are_passed_at_once() -> None:
    texts = [f"{i} ß" * (i % 70) for i in range(3001)]
    for dtype in ("O", "U", STRINGS):
        assert run(np.array(texts, dtype)).tolist() == texts
    mixed = np.array(texts, object)
    mixed[::3] = [text.encode() for text in texts[::3]]
    assert run(mixed).tolist() == texts


@pytest.mark.parametrize("dtype", ["O", "U", ">U"])
def test_surrogates_are_bytes_that_are_not_utf8(dtype: str) -> None:
    texts = ["a", "\udcff\udc80", "b"]
    assert run(np.array(texts).astype(dtype)).tolist() == texts
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        run(np.array(["a", "\ud800"]).astype(dtype))


def test_arrays_of_bytes() -> None:
    feed = np.array([b"a", b"", b"\xc3\x9f", b"a\0b", b"\xff"])
    for array in (feed, feed[::2], feed.reshape(5, 1)):
        assert run(array).tolist() == run(array.astype(object)).tolist()
    assert run(feed).tolist() == ["a", "", "ß", "a\0b", "\udcff"]


def test_unaligned_codes() -> None:
    memory = np.zeros(1 + 4 * 2 * 3, np.uint8)
    feed = memory[1:].view("U2")
    feed[:] = ["ab", "ß", ""]
    assert run(feed).tolist() == ["ab", "ß", ""]


def test_other_objects_are_written_by_str() -> None:
    class Name:
        def __str__(self) -> str:
            feed[0] = feed[3] = "changed"
            return "named"

    feed = np.array(["".join(["fir", "st"]), Name(), None, 2.5, np.str_("s")], object)
    assert run(feed).tolist() == ["first", "named", "None", "changed", "s"]
