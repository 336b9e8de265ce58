"""Lists of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _tenon


class OrtValueVector(list[_tenon.OrtValue]):
    """A list of values, with onnxruntime's name and methods for it."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Adds a value, or an object that DLPack can convert to one."""
        if not isinstance(value, _tenon.OrtValue):
            value = _tenon.OrtValue.from_dlpack(value, is_bool_tensor)
        self.append(value)

    def reserve(self, count: int) -> None:
        """Accepted for compatibility: lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Accepted for compatibility."""

    def bool_tensor_indices(self) -> list[int]:
        """Whether each value is a tensor of booleans."""
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def element_type_at(self, idx: int) -> int:
        """The number of the ONNX type of a value."""
        return self[idx].element_type()

    def dlpack_at(self, idx: int) -> Any:
        """A DLPack capsule over one of the values."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """DLPack capsules over all values, or the results of `to_tensor` for each."""
        capsules: Iterable[Any] = (value.to_dlpack() for value in self)
        return list(capsules) if to_tensor is None else [to_tensor(one) for one in capsules]
