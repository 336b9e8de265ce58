"""Writes ONNX models: the messages of onnx.proto that graphs of regions need.

The package onnx would take 9 MB of memory for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any


class ElementType(IntEnum):
    """The numbers of the types of elements, as in TensorProto."""

    FLOAT = 1
    INT32 = 6
    INT64 = 7
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    BFLOAT16 = 16


def tensor(name: str, element_type: int, shape: Sequence[int], content: bytes) -> bytes:
    """A TensorProto, with its elements in little-endian order."""
    dims = [_field(1, size) for size in shape]
    return b"".join([*dims, _field(2, element_type), _field(8, name), _field(9, content)])


def value_info(name: str, element_type: int, shape: Sequence[int]) -> bytes:
    """The ValueInfoProto of a tensor."""
    dims = b"".join(_field(1, _field(1, size)) for size in shape)
    of_tensor = _field(1, element_type) + _field(2, dims)
    return _field(1, name) + _field(2, _field(1, of_tensor))


def node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str,
    attributes: Mapping[str, Any],
) -> bytes:
    """A NodeProto. An attribute is an int, a float, a str, or a sequence of ints."""
    parts = [_field(1, each) for each in inputs] + [_field(2, each) for each in outputs]
    parts.append(_field(4, op_type))
    parts += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
    if domain:
        parts.append(_field(7, domain))
    return b"".join(parts)


def graph(
    name: str,
    nodes: Iterable[bytes],
    initializers: Iterable[bytes],
    inputs: Iterable[bytes],
    outputs: Iterable[bytes],
    value_infos: Iterable[bytes],
) -> bytes:
    """A GraphProto of messages."""
    parts = [_field(1, each) for each in nodes]
    parts.append(_field(2, name))
    for number, messages in [(5, initializers), (11, inputs), (12, outputs), (13, value_infos)]:
        parts += [_field(number, each) for each in messages]
    return b"".join(parts)


def model(content: bytes, ir_version: int, opsets: Mapping[str, int]) -> bytes:
    """A ModelProto. `content` is its graph, `opsets` the version of each domain."""
    imports = [
        _field(8, _field(1, domain) + _field(2, version)) for domain, version in opsets.items()
    ]
    return b"".join([_field(1, ir_version), _field(7, content), *imports])


def _attribute(name: str, value: Any) -> bytes:
    kinds: list[tuple[Any, int, int]] = [(int, 3, 2), (float, 2, 1), (str, 4, 3)]  # field, type
    for python_type, number, kind in kinds:
        if isinstance(value, python_type):
            return _field(1, name) + _field(number, value) + _field(20, kind)
    ints = b"".join(_field(8, int(each)) for each in value)
    return _field(1, name) + ints + _field(20, 7)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    """A field of a message: an integer, a float of single precision, a text or a message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    rest = value & 0xFFFFFFFFFFFFFFFF
    result = bytearray()
    while rest > 0x7F:
        result.append(rest & 0x7F | 0x80)
        rest >>= 7
    result.append(rest)
    return bytes(result)
