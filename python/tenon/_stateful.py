"""Sessions that keep the caches of a decoder from run to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _tenon

if TYPE_CHECKING:
    from ._session import Session

# What exporters write, longest first: past_key_values.0.key and present.0.key, past_0, present_0.
PASTS = ("past_key_values", "past")
PRESENTS = ("present_key_values", "present")

# The number of each element type in ONNX, and how NumPy stores it.
STORED = {
    "float": (1, np.float32),
    "uint8": (2, np.uint8),
    "int8": (3, np.int8),
    "int32": (6, np.int32),
    "int64": (7, np.int64),
    "float16": (10, np.float16),
    "double": (11, np.float64),
    "bfloat16": (16, np.uint16),
}


def pairs_of(session: Session) -> dict[str, str]:
    """The outputs that later runs read as these inputs, by the inputs' names."""
    outputs = {output.name for output in session.get_outputs()}
    pairs: dict[str, str] = {}
    for name in (value.name for value in session.get_inputs()):
        for past in PASTS:
            found = [name.replace(past, present, 1) for present in PRESENTS if past in name]
            for output in found:
                if output in outputs:
                    pairs.setdefault(name, output)
    return pairs


class StatefulSession:
    """A session whose runs go on from where the last one ended.

    Its states are inputs: the caches `past...`, which each run reads, and which become the outputs
    `present...` of that run. Not for several threads at once.
    """

    def __init__(
        self,
        session: Session,
        pairs: Mapping[str, str] | None = None,
        dims: Mapping[str, int] | None = None,
        in_place: bool = False,
    ) -> None:
        self._session = session
        self._pairs = dict(pairs) if pairs is not None else pairs_of(session)
        self._dims = dict(dims or {})
        self._in_place = in_place
        self._inputs = {value.name: value for value in session.get_inputs()}
        outputs = [value.name for value in session.get_outputs()]
        if not self._pairs:
            raise ValueError(
                "the model has no inputs past... with outputs present...; name the pairs: its "
                f"inputs are {list(self._inputs)}, its outputs {outputs}"
            )
        for name, output in self._pairs.items():
            if name not in self._inputs or output not in outputs:
                raise ValueError(f"'{name}' is no input, or '{output}' is no output, of the model")
        kept = set(self._pairs.values())
        self._outputs = [name for name in outputs if name not in kept]
        self.states: dict[str, _tenon.OrtValue] = {}

    @property
    def pairs(self) -> dict[str, str]:
        """The output that becomes each input."""
        return dict(self._pairs)

    def reset(self) -> None:
        """Forgets the states: the next run begins anew."""
        self.states = {}

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: _tenon.RunOptions | None = None,
    ) -> list[np.ndarray]:
        """The outputs, all but the states if none are named. States may be fed, too."""
        names = list(output_names or self._outputs)
        feeds = {
            name: value
            if isinstance(value, _tenon.OrtValue)
            else _tenon.OrtValue.ortvalue_from_numpy(np.asarray(value))
            for name, value in input_feed.items()
        }
        for name in self._pairs:
            if name not in feeds:
                known = self.states.get(name)
                feeds[name] = self._empty(name, feeds) if known is None else known
        results, states = self._run(names, feeds, run_options)
        self.states = dict(zip(self._pairs, states, strict=True))
        return [result.numpy() for result in results]

    def _run(
        self,
        names: list[str],
        feeds: dict[str, _tenon.OrtValue],
        run_options: _tenon.RunOptions | None,
    ) -> tuple[list[_tenon.OrtValue], list[_tenon.OrtValue]]:
        every = [*names, *self._pairs.values()]
        if not self._in_place:
            values = self._session.run_with_ort_values(every, feeds, run_options)
            return values[: len(names)], values[len(names) :]
        binding = self._session.io_binding()
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name)
        for name, output in self._pairs.items():
            binding.bind_ortvalue_output(output, feeds[name])
        self._session.run_with_iobinding(binding, run_options)
        return binding.get_outputs()[: len(names)], [feeds[name] for name in self._pairs]

    def _empty(self, name: str, feeds: Mapping[str, _tenon.OrtValue]) -> _tenon.OrtValue:
        """The state before the first run: of the batch's size, and without any position yet."""
        declared = self._inputs[name]
        shape = [self._size(axis, dim, feeds) for axis, dim in enumerate(declared.shape)]
        element = declared.type.removeprefix("tensor(").removesuffix(")")
        if element not in STORED:
            raise ValueError(f"input '{name}' of type {declared.type} must be fed")
        number, stored = STORED[element]
        return _tenon.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(shape, stored), number)

    def _size(self, axis: int, dim: Any, feeds: Mapping[str, _tenon.OrtValue]) -> int:
        if isinstance(dim, int):
            return dim
        if dim in self._dims:
            return self._dims[dim]
        if axis > 0:
            return 0
        first = None
        for name, value in feeds.items():
            shape = value.shape()
            if name in self._pairs or name not in self._inputs or not shape:
                continue
            if first is None:
                first = shape[0]
            if self._inputs[name].shape[0] == dim:
                return shape[0]
        return 1 if first is None else first
