"""error_cases.toml, the table of wrong models and calls with their texts, as models and feeds.

Its columns:
    name     what is wrong
    model    a graph in ONNX's textual syntax; `opsets` are its imports (opset 17 unless told) and
             `ir_version` its version
    bytes    instead of a model: the bytes that are loaded, in hexadecimal
    file     instead of a model: the file that is loaded
    as_file  whether the model is loaded from a file; "{folder}" in the text is that file's folder
    options  config entries of the session
    feeds    name -> "float[2,3]" (zeros) or "int64[2] 0 7"; without them only loading fails
    outputs  names of the requested outputs; default: all
    run      config entries of the run
    stop     whether the run is terminated
    clients  the clients that can have the case, if not all: some check names themselves
    code     the number of the OrtErrorCode
    text     the whole message
"""

import dataclasses
import pathlib

import numpy as np
import onnx
import onnx.parser
import tomllib

TABLE = pathlib.Path(__file__).with_name("error_cases.toml")
TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int64": np.int64,
    "bool": np.bool_,
    "string": np.object_,
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    code: int
    text: str
    model: str = ""
    opsets: str = '"" : 17'
    ir_version: int = 8
    bytes: str | None = None
    file: str = ""
    as_file: bool = False
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    feeds: dict[str, str] | None = None
    outputs: list[str] = dataclasses.field(default_factory=list)
    run: dict[str, str] = dataclasses.field(default_factory=dict)
    stop: bool = False
    clients: tuple[str, ...] = ("c", "python", "node")

    def content(self) -> bytes:
        """What is loaded, if it is no file."""
        if self.bytes is not None:
            return bytes.fromhex(self.bytes)
        header = f"<ir_version: {self.ir_version}, opset_import: [{self.opsets}]>"
        return onnx.parser.parse_model(f"{header}\n{self.model}").SerializeToString()

    def source(self, folder: pathlib.Path) -> str | bytes:
        """The model: a path, if the case is about one, or bytes. `folder` is the case's own."""
        if self.file:
            return self.file
        if not self.as_file:
            return self.content()
        path = folder / "model.onnx"
        path.write_bytes(self.content())
        return str(path)

    def arrays(self) -> dict[str, np.ndarray]:
        """The feeds."""
        return {name: array_of(feed) for name, feed in (self.feeds or {}).items()}

    def text_in(self, folder: pathlib.Path) -> str:
        """The message of the case in this folder."""
        return self.text.replace("{folder}", str(folder))


def array_of(feed: str) -> np.ndarray:
    """The array for a text such as "int64[2] 0 7"."""
    head, _, values = feed.partition(" ")
    type_name, _, dims = head.rstrip("]").partition("[")
    shape = [int(dim) for dim in dims.split(",") if dim]
    if not values:
        return np.zeros(shape, TYPES[type_name])
    if type_name == "string":
        return np.array(values.split(), np.object_).reshape(shape)
    return np.array([int(value) for value in values.split()], TYPES[type_name]).reshape(shape)


def read() -> list[Case]:
    """All rows."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"]
    return [Case(**{**row, "clients": tuple(row.get("clients", Case.clients))}) for row in rows]
