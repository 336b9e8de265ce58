"""Values in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _tenon


class OrtValueVector(list[_tenon.OrtValue]):
    """A list of values, under the name and with the methods that onnxruntime has for it."""

    def push_back(self, value: Any, is_bool_tensor: bool = False) -> None:
        """Adds a value, or what DLPack makes one of."""
        if not isinstance(value, _tenon.OrtValue):
            value = _tenon.OrtValue.from_dlpack(value, is_bool_tensor)
        self.append(value)

    def reserve(self, count: int) -> None:
        """Accepted for compatibility: lists grow by themselves."""

    def shrink_to_fit(self) -> None:
        """Accepted for compatibility."""

    def bool_tensor_indices(self) -> list[int]:
        """Which of them hold truth values."""
        return [i for i, value in enumerate(self) if value.data_type() == "tensor(bool)"]

    def element_type_at(self, idx: int) -> int:
        """The number of an ONNX type."""
        return self[idx].element_type()

    def dlpack_at(self, idx: int) -> Any:
        """A capsule over one of them."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor: Callable[[Any], Any] | None) -> list[Any]:
        """Capsules over all, or what `to_tensor` makes of each."""
        capsules: Iterable[Any] = (value.to_dlpack() for value in self)
        return list(capsules) if to_tensor is None else [to_tensor(one) for one in capsules]
