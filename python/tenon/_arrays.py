"""Conversions that the native module leaves to Python: rare types, and what is no array."""

from __future__ import annotations

from typing import Any

import numpy as np

# ONNX element type -> type of NumPy. ml_dtypes spells some of its types in another way.
NUMPY_TYPES = {
    "float": "float32",
    "double": "float64",
    "string": "object",
    **{
        name: name
        for name in (
            "bool",
            "complex128",
            "complex64",
            "float16",
            "int16",
            "int32",
            "int64",
            "int8",
            "uint16",
            "uint32",
            "uint64",
            "uint8",
        )
    },
}
ML_DTYPES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "int4": "int4",
    "uint4": "uint4",
    "int2": "int2",
    "uint2": "uint2",
}
# Bits of an element; the first element lies in the lowest bits of the first byte.
PACKED = {
    "float4e2m1": 4,
    "float6e2m3": 6,
    "float6e3m2": 6,
    "int4": 4,
    "uint4": 4,
    "int2": 2,
    "uint2": 2,
}
ONNX_TYPES = {name: onnx for onnx, name in (NUMPY_TYPES | ML_DTYPES).items()}


def element_type(dtype: Any) -> str:
    """The ONNX element type of any dtype that NumPy accepts."""
    dtype = np.dtype(dtype)
    if dtype.kind in "USOT":
        return "string"
    if dtype.name not in ONNX_TYPES:
        raise TypeError(f"expected a type that ONNX has, got '{dtype}'")
    return ONNX_TYPES[dtype.name]


def numpy_type(onnx_type: str) -> np.dtype | None:
    """The dtype of an ONNX element type; None if it needs ml_dtypes, which is not installed."""
    if onnx_type in NUMPY_TYPES:
        return np.dtype(NUMPY_TYPES[onnx_type])
    try:
        import ml_dtypes  # noqa: PLC0415 - optional
    except ImportError:
        return None
    found: np.dtype = np.dtype(getattr(ml_dtypes, ML_DTYPES[onnx_type]))
    return found


def prepare(value: Any, expected: str) -> tuple[np.ndarray, str, tuple[int, ...]]:
    """Converts an object to a row-major array that lends its memory, with its ONNX type and shape.

    Arrays keep their type; lists, scalars and the like take the type `expected`, if it is known.
    """
    if isinstance(value, np.ndarray):
        array = value
    else:
        if not isinstance(value, list | tuple | np.generic | int | float | complex | str | bytes):
            is_iterable = hasattr(value, "__iter__") and not hasattr(value, "__array__")
            value = list(value) if is_iterable else value
        array = np.asarray(value, numpy_type(expected) if expected != "undefined" else None)
    if array.dtype.kind == "V" and array.dtype.fields is None and expected == "string":
        # Bytes of one size; unlike NumPy's type for bytes, it keeps zeros at the end.
        array = np.array([item.tobytes() for item in array.reshape(-1)], object).reshape(
            array.shape
        )
    onnx_type = element_type(array.dtype)
    if onnx_type == "string":
        # The native module reads those of one size, in the machine's byte order.
        dtype = array.dtype.newbyteorder("=") if array.dtype.kind in "SU" else object
        return np.require(array, dtype, ["C", "A"]), onnx_type, array.shape
    shape = array.shape
    array = np.require(array.astype(array.dtype.newbyteorder("="), copy=False), None, ["C", "A"])
    if onnx_type in PACKED:
        array = pack(array.view(np.uint8).reshape(-1), PACKED[onnx_type])
    elif onnx_type in ML_DTYPES:
        array = array.reshape(shape).view(f"u{array.itemsize}")
    return array.reshape(-1), onnx_type, shape


def pack(elements: np.ndarray, bits: int) -> np.ndarray:
    """Packs elements, one in each byte, into `bits` bits each."""
    stream = np.unpackbits(elements[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(stream, bitorder="little")


def unpack(packed: np.ndarray, bits: int, count: int, is_signed: bool) -> np.ndarray:
    """Undoes pack: returns `count` elements, one in each byte, with their sign extended."""
    stream = np.unpackbits(packed, count=count * bits, bitorder="little")
    elements = np.packbits(stream.reshape(count, bits), axis=1, bitorder="little").reshape(count)
    if is_signed:
        elements = ((elements << (8 - bits)).view(np.int8) >> (8 - bits)).view(np.uint8)
    return elements


def typed(memory: np.ndarray, onnx_type: str, shape: tuple[int, ...]) -> np.ndarray:
    """A tensor's memory as an array of ml_dtypes; unchanged if that is not installed."""
    if onnx_type in PACKED:
        count = int(np.prod(shape, dtype=np.int64))
        is_signed = onnx_type.startswith("int")
        memory = unpack(memory, PACKED[onnx_type], count, is_signed).reshape(shape)
    dtype = numpy_type(onnx_type)
    return memory if dtype is None else memory.view(dtype)


def strings(texts: list[str], shape: tuple[int, ...]) -> np.ndarray:
    """An array of str objects."""
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def as_array(array: np.ndarray, dtype: Any, copy: bool | None) -> np.ndarray:
    """Applies the arguments of __array__ to an array."""
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise ValueError("expected no other type where no copy is to be made")
        return array.astype(dtype)
    return array.copy() if copy else array


def memory_of(value: Any) -> memoryview:
    """The bytes of a tensor of numbers."""
    memory: Any = np.asarray(memoryview(value)).reshape(-1).view(np.uint8)
    return memoryview(memory)
