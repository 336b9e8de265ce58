"""Options that a model carries in its metadata, under the key "ort_config"."""

from __future__ import annotations

import json
import logging
import mmap
import os
from collections.abc import Iterator
from typing import Any

from . import _tenon

KEY = "ort_config"
METADATA = 14  # the field of ModelProto; an entry has a key, 1, and a value, 2
LENGTH_DELIMITED = 2
ENUMERATIONS = {
    "execution_mode": _tenon.ExecutionMode,
    "graph_optimization_level": _tenon.GraphOptimizationLevel,
}
SWITCHES = ("enable_profiling",)
NUMBERS = ("inter_op_num_threads", "intra_op_num_threads")


def options_of(model: Any) -> _tenon.SessionOptions | None:
    """The options of a model, a path or bytes; None if it has none.

    Raises ValueError for a text that is not JSON, and for values that are no options.
    """
    text = metadata_of(model, KEY)
    if text is None:
        return None
    config = json.loads(text)
    if not isinstance(config, dict) or not isinstance(config.get("session_options"), dict):
        raise ValueError(f"the model's '{KEY}': expected an object with 'session_options'")
    options = _tenon.SessionOptions()
    for name, value in config["session_options"].items():
        if name in ENUMERATIONS:
            setattr(options, name, ENUMERATIONS[name](value))
        elif name in SWITCHES:
            setattr(options, name, bool(value))
        elif name in NUMBERS:
            setattr(options, name, value)
        else:
            logging.getLogger("tenon").warning("the model's '%s': unknown option %s", KEY, name)
    return options


def metadata_of(model: Any, key: str) -> str | None:
    """An entry of a model's metadata. The weights are not read."""
    if not isinstance(model, str | os.PathLike):
        return _find(memoryview(model).cast("B"), key)
    with (
        open(model, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        memoryview(content) as view,
    ):
        return _find(view, key)


def _find(content: memoryview, key: str) -> str | None:
    for number, entry in fields(content):
        if number != METADATA:
            continue
        parts = {part: bytes(text) for part, text in fields(entry)}
        if parts.get(1, b"").decode() == key:
            return parts.get(2, b"").decode()
    return None


def fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields of a message that have a length. A message that is damaged ends early."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while place < len(message):
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        return value

    while place < len(message):
        number, wire = divmod(varint(), 8)
        if wire == LENGTH_DELIMITED:
            size = varint()
            yield number, message[place : place + size]
            place += size
        elif wire == 0:
            varint()
        elif wire in (1, 5):
            place += 8 if wire == 1 else 4
        else:
            return  # what it is, the session says
