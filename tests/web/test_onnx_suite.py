"""The test suite of the onnx package on the npm package in Node, with the suite's own tolerance."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import subprocess
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import suite_cases
from onnx.backend.base import Backend, BackendRep

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PACKAGE = os.environ.get("TENON_WEB_PACKAGE", ROOT / "build/web/package")
CHECKED = ROOT / "build/wasm/web/tenon.checked.wasm"  # the module that checks what workers do

# The number of cases that pass in every run. The others have a type that has no name in the
# JavaScript API, sequences, or images that need a library; the two of Gradient need training, which
# the module does not have; seven with random numbers pass only by chance. With WebNN one float16
# case has an error of a unit in the last place, and the light models are left out, because the
# reference takes minutes for them.
FLOORS = {("wasm",): 1840, ("webnn",): 1830, ("wasm", "4"): 1840}

TYPES: dict[str, Any] = {
    "bool": np.bool_,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    **{
        name: getattr(np, name)
        for name in (
            "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64"
        ).split()
    },
}
NAMES = {np.dtype(dtype): name for name, dtype in TYPES.items()}
FOUR_BITS = ("int4", "uint4")


def pack(elements: np.ndarray) -> np.ndarray:
    """Two elements of four bits in a byte, the first in the lower half."""
    halves = elements.astype(np.int8).view(np.uint8) & 15
    halves = np.append(halves, np.zeros(len(halves) % 2, np.uint8))
    return halves[::2] | halves[1::2] << 4


def unpack(packed: bytes, name: str, count: int) -> np.ndarray:
    both = np.frombuffer(packed, np.uint8)
    halves = np.stack([both & 15, both >> 4], axis=1).reshape(-1)[:count].astype(np.int8)
    if name == "int4":
        halves = np.where(halves > 7, halves - 16, halves)
    return halves.astype(TYPES[name])


def to_json(value: Any) -> dict[str, Any]:
    if not isinstance(value, np.ndarray | np.generic):
        raise ValueError(f"{type(value).__name__} is no tensor")
    array = np.asarray(value)
    elements = array.reshape(-1)
    if array.dtype.kind in "OSU":
        return {"type": "string", "dims": array.shape, "data": [str(text) for text in elements]}
    name = NAMES.get(array.dtype)
    if name is None:
        raise ValueError(f"JavaScript has no name for {array.dtype}")
    data = pack(elements) if name in FOUR_BITS else elements
    return {
        "type": name,
        "dims": array.shape,
        "data": base64.b64encode(data.tobytes()).decode("ascii"),
    }


def from_json(tensor: dict[str, Any]) -> np.ndarray:
    name, dims = tensor["type"], tensor["dims"]
    if name == "string":
        return np.array(tensor["data"], dtype=object).reshape(dims)
    data = base64.b64decode(tensor["data"])
    if name in FOUR_BITS:
        return unpack(data, name, int(np.prod(dims))).reshape(dims)
    return np.frombuffer(data, TYPES[name]).reshape(dims)


class Server:
    """suite_server.mjs, from the first model that it is to run.

    Its arguments are the provider and, with the module that checks, the number of threads.
    """

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.process: subprocess.Popen[str] | None = None
        # Of the last model, with the module that checks: the loops that were divided, and those
        # in which workers helped.
        self.divided = 0
        self.helped = 0

    def run(self, model: onnx.ModelProto, inputs: list[Any]) -> list[np.ndarray]:
        feeds = [to_json(value) for value in inputs]
        encoded = base64.b64encode(model.SerializeToString()).decode("ascii")
        answer = self._ask(json.dumps({"model": encoded, "feeds": feeds}))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.divided, self.helped = answer.get("divided", 0), answer.get("helped", 0)
        return [from_json(output) for output in answer["outputs"]]

    def stop(self) -> None:
        if self.process is not None:
            self.process.communicate()
            self.process = None

    def _ask(self, line: str) -> dict[str, Any]:
        if self.process is None:
            self.process = subprocess.Popen(
                ["node", "--no-warnings", FOLDER / "suite_server.mjs", *self.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "TENON_WEB_PACKAGE": str(PACKAGE)},
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.stop()
            raise RuntimeError("Node ended")
        return json.loads(answer)


def backend_of(server: Server) -> type[Backend]:
    class Model(BackendRep):
        def __init__(self, model: onnx.ModelProto) -> None:
            self._model = model

        def run(self, inputs: Any, **_: Any) -> list[Any]:
            return server.run(self._model, list(inputs))

    class WebBackend(Backend):
        @classmethod
        def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> BackendRep:
            return Model(model)

        @classmethod
        def supports_device(cls, device: str) -> bool:
            return device == "CPU"

    return WebBackend


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.skipif(not pathlib.Path(PACKAGE).is_dir(), reason="needs the package: ./dev web")
@pytest.mark.parametrize("arguments", FLOORS, ids="-".join)  # WB-41, WB-103
def test_no_case_is_lost(monkeypatch, tmp_path, arguments) -> None:
    if len(arguments) > 1 and not CHECKED.exists():
        pytest.skip("needs the build: ./dev build wasm")
    monkeypatch.setenv("ONNX_HOME", str(tmp_path))
    server = Server(*arguments)
    suite = suite_cases.load(backend_of(server))
    if "webnn" in arguments:
        suite = [case for case in suite if case.category != "light models"]
    failed = []
    for case in suite:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                case.run()
        except Exception as error:
            failed.append(f"{case.name}: {error}"[:200])
    server.stop()
    passed = len(suite) - len(failed)
    message = f"{passed} of {len(suite)} cases pass; fails:\n" + "\n".join(failed)
    assert passed >= FLOORS[arguments], message
