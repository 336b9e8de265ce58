"""Files of LoRA adapters: named tensors in a FlatBuffer."""

from __future__ import annotations

import os
import struct
from typing import Any

from . import _arrays, _tenon

IDENTIFIER = b"TORT"
FORMAT_VERSION = 1


class Writer:
    """Builds a FlatBuffer from front to back: offsets point to data that is written later."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def finish(self) -> bytes:
        """All the bytes that were written."""
        return bytes(self._bytes)

    def align(self, size: int, after: int = 0) -> None:
        """Pads so that the data after the next `after` bytes is aligned."""
        self._bytes += bytes(-(len(self._bytes) + after) % size)

    def here(self) -> int:
        """The position of the next byte."""
        return len(self._bytes)

    def point(self, place: int) -> None:
        """Sets the offset at `place` to point to the next byte."""
        struct.pack_into("<I", self._bytes, place, self.here() - place)

    def raw(self, content: bytes) -> int:
        """Writes bytes. Returns their position."""
        begin = self.here()
        self._bytes += content
        return begin

    def vector(self, place: int, count: int, content: bytes, alignment: int) -> None:
        """Writes a vector that the offset at `place` points to."""
        self.align(max(alignment, 4), after=4)
        self.point(place)
        self.raw(struct.pack("<I", count) + content)

    def table(self, fields: str) -> list[int]:
        """Writes a table of 4-byte fields: "o" is an offset, "i" a number. Returns positions."""
        size = 4 + 4 * len(fields)
        vtable = struct.pack(f"<HH{len(fields)}H", 4 + 2 * len(fields), size, *range(4, size, 4))
        self.align(4, after=len(vtable))
        self.raw(vtable)
        begin = self.raw(struct.pack("<i", len(vtable)) + bytes(size - 4))
        return list(range(begin + 4, begin + size, 4))

    def number(self, place: int, value: int) -> None:
        """Sets a number."""
        struct.pack_into("<i", self._bytes, place, value)


class Reader:
    """Reads a FlatBuffer. Positions out of range raise struct.error or ValueError."""

    def __init__(self, content: bytes) -> None:
        self._bytes = content

    def at(self, form: str, place: int) -> int:
        """A number."""
        if place < 0:
            raise ValueError("a position before the file's beginning")
        number: int = struct.unpack_from("<" + form, self._bytes, place)[0]
        return number

    def follow(self, place: int) -> int:
        """The position to which the offset at `place` points."""
        return place + self.at("I", place)

    def field(self, table: int, index: int) -> int | None:
        """The position of a field; None if it is absent."""
        vtable = table - self.at("i", table)
        if 4 + 2 * index >= self.at("H", vtable):
            return None
        offset = self.at("H", vtable + 4 + 2 * index)
        return table + offset if offset else None

    def number(self, table: int, index: int) -> int:
        """A number; 0 if it is absent."""
        place = self.field(table, index)
        return 0 if place is None else self.at("i", place)

    def vector(self, table: int, index: int) -> tuple[int, int]:
        """The position of a vector's elements, and their number."""
        place = self.field(table, index)
        if place is None:
            return 0, 0
        begin = self.follow(place)
        return begin + 4, self.at("I", begin)

    def content(self, table: int, index: int) -> bytes:
        """The bytes of a vector of bytes."""
        begin, count = self.vector(table, index)
        if begin + count > len(self._bytes):
            raise ValueError("a vector that reaches beyond the file's end")
        return self._bytes[begin : begin + count]


class AdapterFormat:
    """A LoRA adapter: parameters by name, the adapter's version and that of its model."""

    def __init__(self, adapter: AdapterFormat | None = None) -> None:
        self._versions: list[int] = [FORMAT_VERSION, 0, 0]
        self._parameters: dict[str, _tenon.OrtValue] = {}
        if adapter is not None:
            self._versions = list(adapter._versions)
            self._parameters = dict(adapter._parameters)

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Reads a file. Raises ValueError if it is not an adapter."""
        with open(file_path, "rb") as file:
            content = file.read()
        if content[4:8] != IDENTIFIER:
            raise ValueError(f"{os.fspath(file_path)} is no LoRA adapter")
        adapter = AdapterFormat()
        reader = Reader(content)
        try:
            root = reader.follow(0)
            adapter._versions = [reader.number(root, index) for index in range(3)]
            begin, count = reader.vector(root, 3)
            for i in range(count):
                name, value = read_parameter(reader, reader.follow(begin + 4 * i))
                adapter._parameters[name] = value
        except struct.error as error:
            raise ValueError(f"{os.fspath(file_path)} is a damaged LoRA adapter") from error
        return adapter

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Writes a file."""
        writer = Writer()
        writer.raw(bytes(4) + IDENTIFIER)
        fields = writer.table("iiio")
        struct.pack_into("<I", writer._bytes, 0, fields[0] - 4)
        for place, version in zip(fields, self._versions, strict=False):
            writer.number(place, version)
        count = len(self._parameters)
        writer.vector(fields[3], count, bytes(4 * count), 4)
        places = range(writer.here() - 4 * count, writer.here(), 4)
        for place, (name, value) in zip(places, self._parameters.items(), strict=True):
            write_parameter(writer, place, name, value)
        with open(file_path, "wb") as file:
            file.write(writer.finish())

    def get_format_version(self) -> int:
        """The version of the file's format."""
        return self._versions[0]

    def get_adapter_version(self) -> int:
        """The version of the adapter."""
        return self._versions[1]

    def set_adapter_version(self, adapter_version: int) -> None:
        """Sets the version of the adapter."""
        self._versions[1] = adapter_version

    def get_model_version(self) -> int:
        """The version of the model that the adapter is for."""
        return self._versions[2]

    def set_model_version(self, model_version: int) -> None:
        """Sets the version of the model that the adapter is for."""
        self._versions[2] = model_version

    def get_parameters(self) -> dict[str, _tenon.OrtValue]:
        """Values by name."""
        return dict(self._parameters)

    def set_parameters(self, params: dict[str, _tenon.OrtValue]) -> None:
        """Sets all values."""
        self._parameters = dict(params)


def read_parameter(reader: Reader, table: int) -> tuple[str, _tenon.OrtValue]:
    """Name and value."""
    begin, rank = reader.vector(table, 1)
    shape = [reader.at("q", begin + 8 * axis) for axis in range(rank)]
    value = _tenon.OrtValue.ortvalue_from_shape_and_type(shape, reader.number(table, 2))
    content = reader.content(table, 3)
    if len(content) != value.tensor_size_in_bytes():
        raise ValueError(f"expected {value.tensor_size_in_bytes()} bytes, got {len(content)}")
    if content:
        memoryview(value).cast("B")[:] = content
    return reader.content(table, 0).decode(), value


def write_parameter(writer: Writer, place: int, name: str, value: Any) -> None:
    """Writes the table that the offset at `place` points to."""
    # The vtable comes first, and is followed by the table.
    writer.align(4, after=12)
    begin = writer.here() + 12
    struct.pack_into("<I", writer._bytes, place, begin - place)
    fields = writer.table("ooio")
    text = name.encode()
    writer.vector(fields[0], len(text), text + b"\0", 1)
    shape = value.shape()
    writer.vector(fields[1], len(shape), struct.pack(f"<{len(shape)}q", *shape), 8)
    writer.number(fields[2], value.element_type())
    if value.data_type() == "tensor(string)":
        raise ValueError(f"parameter '{name}': an adapter cannot hold a tensor of type STRING")
    content = bytes(_arrays.memory_of(value))
    writer.vector(fields[3], len(content), content, 8)
