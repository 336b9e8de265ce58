"""Settings of single tensors, by name: a list of dictionaries each.

One dictionary for a tensor with one scale; for a constant with a scale for each index of an axis
either one for all of them, or one for each index. The first one has the axis. Keys:

quant_type         a QuantType
scale, zero_point  both or none
rmin, rmax         the range of numbers
symmetric          whether the zero point is the middle of the type
reduce_range       of constants
axis               of constants
convert            a dictionary of these keys, for nodes that read a value with another type:
                   "recv_nodes" has their names; without it, all nodes do
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto

from ._arithmetic import normalize_axis
from ._types import QuantType, tensor_type_of

One = dict[str, Any]
WITHOUT_SCALE = frozenset(("symmetric", "reduce_range", "rmax", "rmin"))
KEYS = WITHOUT_SCALE | {"quant_type", "scale", "zero_point", "axis", "convert"}
SAME_FOR_ALL = ("quant_type", "symmetric", "reduce_range")


@dataclass(eq=False)
class QuantTypeInfo:
    """The overrides of a tensor's quantization. None: the default."""

    quant_type: QuantType | None
    symmetric: bool | None = None
    reduce_range: bool | None = None
    axis: int | None = None  # None: one scale

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, QuantTypeInfo):
            return NotImplemented

        def may_be_same(one: bool | None, another: bool | None) -> bool:
            return one is None or another is None or one == another

        return (
            (self.quant_type, self.axis) == (other.quant_type, other.axis)
            and may_be_same(self.symmetric, other.symmetric)
            and may_be_same(self.reduce_range, other.reduce_range)
        )

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def load_from_dict(
        raw_dict: Mapping[str, Any],
        default_qtype: QuantType | None = None,
        default_symmetric: bool | None = None,
        default_reduce_range: bool | None = None,
    ) -> QuantTypeInfo:
        """The values of a dictionary, or the defaults."""
        return QuantTypeInfo(
            raw_dict.get("quant_type", default_qtype),
            raw_dict.get("symmetric", default_symmetric),
            raw_dict.get("reduce_range", default_reduce_range),
            raw_dict.get("axis"),
        )

    def save_to_dict(self, raw_dict: MutableMapping[str, Any]) -> None:
        """Writes the values that are not defaults."""
        raw_dict["quant_type"] = self.quant_type
        for name in ("symmetric", "reduce_range", "axis"):
            if getattr(self, name) is not None:
                raw_dict[name] = getattr(self, name)


class TensorQuantOverridesHelper(MutableMapping[str, list[One]]):
    """The overrides of a model's tensors."""

    def __init__(self, raw_overrides: dict[str, list[One]]) -> None:
        self.overrides = raw_overrides

    def _first(self, tensor_name: str) -> One:
        several = self.overrides.get(tensor_name)
        return several[0] if several else {}

    def has_per_tensor_overrides(self, tensor_name: str) -> bool:
        """Whether there are overrides for one scale."""
        return bool(self.overrides.get(tensor_name)) and "axis" not in self._first(tensor_name)

    def has_per_channel_overrides(self, tensor_name: str) -> bool:
        """Whether there are overrides for scales along an axis."""
        return "axis" in self._first(tensor_name)

    def overrides_scale_zp(self, tensor_name: str) -> bool:
        """Whether scale and zero point are given."""
        return {"scale", "zero_point"} <= self._first(tensor_name).keys()

    def get_per_tensor_overrides(
        self, tensor_name: str, default_val: One | None = None
    ) -> One | None:
        """The dictionary of a tensor with one scale."""
        if self.has_per_channel_overrides(tensor_name):
            raise ValueError(
                f"Expected tensor '{tensor_name}' to use per-tensor quantization overrides, "
                "but found per-channel overrides."
            )
        return self.overrides[tensor_name][0] if self.overrides.get(tensor_name) else default_val

    def get_per_channel_overrides(
        self, tensor_name: str, default_val: list[One] | None = None
    ) -> list[One] | None:
        """The dictionaries of a tensor with scales along an axis."""
        several = self.overrides.get(tensor_name, default_val)
        if several and "axis" not in several[0]:
            raise ValueError(
                f"Expected tensor '{tensor_name}' to have per-channel quantization overrides "
                "(axis value is missing)."
            )
        return several or None

    def get_quant_types(self) -> set[QuantType]:
        """All types that are named."""
        ones = [one for several in self.overrides.values() for one in several]
        ones += [one["convert"] for one in ones if "convert" in one]
        return {one["quant_type"] for one in ones if one.get("quant_type") is not None}

    def is_valid(
        self,
        initializers: Mapping[str, TensorProto],
        activation_names: Collection[str],
        default_activation_qtype: Any,
    ) -> tuple[bool, str | None]:
        """Whether all overrides are valid, and otherwise the first reason why not."""
        given = (initializers, activation_names, default_activation_qtype)
        for name in self.overrides:
            for problem in self._problems(name, *given):
                return False, problem
        return True, None

    def _problems(
        self,
        name: str,
        initializers: Mapping[str, TensorProto],
        activation_names: Collection[str],
        default: Any,
    ) -> Iterator[str]:
        """The caller stops at the first problem: later checks assume that there is none before."""
        constant, several = initializers.get(name), self.overrides[name]
        if constant is None and name not in activation_names:
            yield f"Tensor '{name}' in TensorQuantOverrides is not present in the model"
        if not isinstance(several, list):
            yield f"Tensor quantization overrides for '{name}' are not in a list"
        for index, one in enumerate(several):
            if not isinstance(one, dict):
                yield f"Tensor quantization overrides at index {index} for '{name}' are no dict"
            if unknown := sorted(one.keys() - KEYS):
                yield f"Tensor quantization overrides for '{name}' have unknown keys {unknown}"
        if len(several) > 1 or (several and "axis" in several[0]):
            yield from _problems_of_channels(name, constant, several)
        elif several:
            yield from _problems_of(name, several[0], constant is not None, default)

    def update_tensor_overrides(
        self,
        tensor_name: str,
        new_vals: One,
        channels: Sequence[int] | None = None,
        overwrite: bool = True,
    ) -> bool:
        """Adds to the dictionaries of a tensor, all or those of some channels.

        Returns whether they were added: without `overwrite` they are not if they would replace
        anything.
        """
        if not new_vals:
            return False
        several = self.overrides.get(tensor_name) or [{}]
        chosen = [one for i, one in enumerate(several) if channels is None or i in channels]
        if not overwrite and any(new_vals.keys() & one.keys() for one in chosen):
            return False
        self.overrides[tensor_name] = several
        for one in chosen:
            one.update(new_vals)
        return True

    def get_node_output_qtype_info(
        self,
        output_name: str,
        default_qtype: QuantType | None,
        default_symmetric: bool | None = None,
    ) -> QuantTypeInfo:
        """The type that the producer of a value gives it."""
        first = self._first(output_name)
        return QuantTypeInfo(
            first.get("quant_type", default_qtype), first.get("symmetric", default_symmetric)
        )

    def get_node_input_qtype_info(
        self,
        input_name: str,
        node_name: str,
        default_qtype: QuantType | None,
        default_symmetric: bool | None = None,
        default_reduce_range: bool | None = None,
    ) -> QuantTypeInfo:
        """The type with which a node reads a value."""
        first = self._first(input_name)
        if "convert" not in first:
            return QuantTypeInfo.load_from_dict(
                first, default_qtype, default_symmetric, default_reduce_range
            )
        convert = first["convert"]
        info = QuantTypeInfo(
            first.get("quant_type", default_qtype), convert.get("symmetric", default_symmetric)
        )
        if node_name in convert.get("recv_nodes", (node_name,)):
            info.quant_type = convert["quant_type"]
        return info

    def pprint_str(self, indent: int | None = None) -> str:
        """All overrides as readable JSON."""
        return json.dumps(self.overrides, default=str, indent=indent)

    def empty(self) -> bool:
        """Whether there are no overrides."""
        return not self.overrides

    def get_dict(self) -> dict[str, list[One]]:
        """All overrides."""
        return self.overrides

    def __setitem__(self, key: str, value: list[One]) -> None:
        self.overrides[key] = value

    def __getitem__(self, key: str) -> list[One]:
        return self.overrides[key]

    def __delitem__(self, key: str) -> None:
        del self.overrides[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.overrides)

    def __len__(self) -> int:
        return len(self.overrides)

    def __repr__(self) -> str:
        return f"TensorQuantOverridesHelper({self.overrides})"


def _problems_of_scale(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    if ("scale" in one) != ("zero_point" in one):
        yield (
            "Must provide both 'scale' and 'zero_point' if one of the overrides is provided "
            f"(tensor '{name}')"
        )
    useless = sorted(WITHOUT_SCALE & one.keys())
    if "scale" in one and useless:
        yield (
            f"Tensor override option(s) [{', '.join(useless)}] are invalid with 'scale' and "
            f"'zero_point' (tensor '{name}')"
        )


def _problems_of(name: str, one: One, is_constant: bool, default: Any) -> Iterator[str]:
    """Of a tensor with one scale."""
    convert = one.get("convert")
    for settings in (one, convert or {}):
        yield from _problems_of_scale(name, settings)
        if "reduce_range" in settings and not is_constant:
            yield f"Option 'reduce_range' is only supported for initializers, not for '{name}'"
    if convert is None:
        return
    if is_constant:
        yield f"Cannot use 'convert' override for initializers, such as '{name}'"
    if "quant_type" not in convert:
        yield f"'convert' options (tensor '{name}') must specify a 'quant_type'"
    original = one.get("quant_type", default)
    if original is not None and tensor_type_of(convert["quant_type"]) == tensor_type_of(original):
        yield f"'convert' quant_type must differ from original quant_type (tensor '{name}')"


def _problems_of_channels(
    name: str, constant: TensorProto | None, several: list[One]
) -> Iterator[str]:
    """Of a constant with scales along an axis."""
    first = several[0]
    if constant is None:
        yield f"Tensor '{name}' has per-channel overrides, but is not an initializer"
        return
    if "axis" not in first:
        yield f"Per-channel overrides for tensor '{name}': the first has no 'axis'"
    is_axis, axis = normalize_axis(first["axis"], len(constant.dims))
    if not is_axis:
        yield f"Axis override value is out-of-bounds for tensor '{name}' {list(constant.dims)}"
    if len(several) not in (1, constant.dims[axis]):
        yield (
            f"Incorrect number of channel overrides for tensor '{name}' (axis {axis}), expected "
            f"{constant.dims[axis]}, but found {len(several)}."
        )
    for index, one in enumerate(several):
        yield from _problems_of_channel(name, one, first, index, len(constant.dims))


def _problems_of_channel(name: str, one: One, first: One, index: int, rank: int) -> Iterator[str]:
    at = f"(tensor '{name}', channel {index})"
    if "convert" in one:
        yield f"Cannot use 'convert' override for initializers {at}"
    yield from _problems_of_scale(name, one)
    if ("rmin" in one) != ("rmax" in one):
        yield f"Must provide both 'rmin' and 'rmax' if one is provided {at}"
    for key in SAME_FOR_ALL:
        if key in one and one[key] != first.get(key):
            yield f"'{key}' differs from that of the first channel {at}"
    if "axis" in one and one["axis"] % rank != first["axis"] % rank:
        yield f"'axis' differs from that of the first channel {at}"
    for key in ("scale", "rmin"):
        if key in first and key not in one:
            yield f"'{key}' is given for the first channel but not for this one {at}"
