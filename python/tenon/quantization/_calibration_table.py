"""Tables of the largest value of each tensor, which other engines read."""

from __future__ import annotations

import json
import os
import pathlib
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._calibration_data import CalibrationCacheEncoder, TensorData


def write_calibration_table(
    calibration_cache: Mapping[str, TensorData], dir: str | os.PathLike[str] = "."
) -> None:
    """Writes ranges to three files of a folder.

    calibration.json         all statistics, as load_tensors_data reads them
    calibration.flatbuffers  a dictionary of strings: a tensor's name, and its largest value
    calibration.cache        the same as lines of text
    """
    folder = pathlib.Path(dir)
    text = json.dumps(calibration_cache, cls=CalibrationCacheEncoder)
    (folder / "calibration.json").write_text(text, encoding="utf-8")
    rows = [(name, str(_largest(calibration_cache[name]))) for name in sorted(calibration_cache)]
    (folder / "calibration.flatbuffers").write_bytes(dictionary_bytes(rows))
    lines = "".join(f"{name} {value}\n" for name, value in rows)
    (folder / "calibration.cache").write_text(lines, encoding="utf-8")


def _largest(data: Any) -> float:
    known = data.to_dict()
    return max(float(np.asarray(known.get(end, 0)).item()) for end in ("highest", "lowest"))


def read_calibration_table(dir: str | os.PathLike[str] = ".") -> dict[str, float]:
    """The largest values by tensor, of the file calibration.flatbuffers of a folder."""
    return {
        name: float(value)
        for name, value in dictionary_of(
            (pathlib.Path(dir) / "calibration.flatbuffers").read_bytes()
        )
    }


# The format is that of FlatBuffers. Offsets are relative to their own position. A table begins with
# the distance back to its list of fields. Strings begin with their length and end with a null.


def dictionary_bytes(rows: list[tuple[str, str]]) -> bytes:
    """A table with one field, a vector of tables with two strings each."""
    fields_of_root, fields_of_row = struct.pack("<3H", 6, 8, 4), struct.pack("<4H", 8, 12, 4, 8)
    head = struct.pack("<I", 16) + fields_of_row + b"\0\0\0\0"
    # At 4: the fields of a row. At 16: the root, whose fields are at its end.
    vector, root = 24, 16
    tables = vector + 4 + 4 * len(rows)
    strings = tables + 12 * len(rows)
    root_fields = strings
    strings += 8
    content = bytearray(head)
    content += struct.pack("<iI", root - root_fields, vector - (root + 4))
    content += struct.pack("<I", len(rows))
    for i in range(len(rows)):
        content += struct.pack("<I", tables + 12 * i - len(content))
    tail = bytearray()
    for name, value in rows:
        at = len(content)
        offsets = []
        for field, word in enumerate((name, value)):
            offsets.append(strings + len(tail) - (at + 4 + 4 * field))
            encoded = word.encode()
            tail += struct.pack("<I", len(encoded)) + encoded
            tail += b"\0" * (4 - len(encoded) % 4)  # at least one, up to the next multiple of 4
        content += struct.pack("<i2I", at - 4, *offsets)
    content += fields_of_root + b"\0\0"
    return bytes(content + tail)


def dictionary_of(content: bytes) -> list[tuple[str, str]]:
    """The rows of such a table."""

    def number(at: int, kind: str = "<I") -> int:
        return int(struct.unpack_from(kind, content, at)[0])

    def field(table: int, index: int) -> int:
        fields = table - number(table, "<i")
        offset = number(fields + 4 + 2 * index, "<H") if number(fields, "<H") > 4 + 2 * index else 0
        at = table + offset
        return at + number(at) if offset else 0

    def text(table: int, index: int) -> str:
        at = field(table, index)
        return content[at + 4 : at + 4 + number(at)].decode() if at else ""

    vector = field(number(0), 0)
    starts = [vector + 4 + 4 * i for i in range(number(vector) if vector else 0)]
    tables = [at + number(at) for at in starts]
    return [(text(table, 0), text(table, 1)) for table in tables]
