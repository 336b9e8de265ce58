"""Sparse tensors: values with their indices, in one of three formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _arrays, _tenon

# Numbers of the indices' formats in the C interface.
COO, CSR_INNER, CSR_OUTER, BLOCKS = range(4)


def array_of(part: tuple[bytes | list[str], str, list[int]]) -> np.ndarray:
    """A read-only array from bytes or strings, the name of an ONNX type, and a shape."""
    content, name, shape = part
    if isinstance(content, list):
        return _arrays.strings(content, tuple(shape))
    return np.frombuffer(content, _arrays.numpy_type(name)).reshape(shape)


def stored(values: np.ndarray) -> np.ndarray:
    """Values as the native module takes them: row-major, strings as objects."""
    return np.ascontiguousarray(values, object if values.dtype.kind in "US" else None)


class SparseCooView:
    """Indices as numbers into the flattened tensor, or as rows and columns."""

    def __init__(self, value: _tenon.OrtValue) -> None:
        self._value = value

    def indices(self) -> np.ndarray:
        """One number, or a row of two, for each value."""
        return array_of(_tenon._sparse_indices(self._value, COO))


class SparseCsrView:
    """Indices as columns, and the position where each row begins."""

    def __init__(self, value: _tenon.OrtValue) -> None:
        self._value = value

    def inner(self) -> np.ndarray:
        """The column of each value."""
        return array_of(_tenon._sparse_indices(self._value, CSR_INNER))

    def outer(self) -> np.ndarray:
        """The number of the first value of each row, and that of all values."""
        return array_of(_tenon._sparse_indices(self._value, CSR_OUTER))


class SparseBlockSparseView:
    """Indices of blocks."""

    def __init__(self, value: _tenon.OrtValue) -> None:
        self._value = value

    def indices(self) -> np.ndarray:
        """Row and column of each block."""
        return array_of(_tenon._sparse_indices(self._value, BLOCKS))


class SparseTensor:
    """A tensor most of whose elements are zero."""

    def __init__(self, sparse_tensor: _tenon.OrtValue) -> None:
        if not sparse_tensor.is_sparse_tensor():
            raise ValueError("expected a value that holds a sparse tensor")
        self._value = sparse_tensor

    @staticmethod
    def sparse_coo_from_numpy(
        dense_shape: Sequence[int] | np.ndarray,
        values: np.ndarray,
        coo_indices: np.ndarray,
        ort_device: Any = None,
    ) -> SparseTensor:
        """From values and their indices: linear, or rows of row and column."""
        shape = [int(size) for size in dense_shape]
        places = np.ascontiguousarray(coo_indices, np.int64).reshape(-1)
        return SparseTensor(_tenon._sparse_coo(shape, stored(values), places))

    @staticmethod
    def sparse_csr_from_numpy(
        dense_shape: Sequence[int] | np.ndarray,
        values: np.ndarray,
        inner_indices: np.ndarray,
        outer_indices: np.ndarray,
        ort_device: Any = None,
    ) -> SparseTensor:
        """From values, their columns, and the position where each row begins."""
        shape = [int(size) for size in dense_shape]
        inner = np.ascontiguousarray(inner_indices, np.int64)
        outer = np.ascontiguousarray(outer_indices, np.int64)
        return SparseTensor(_tenon._sparse_csr(shape, stored(values), inner, outer))

    @staticmethod
    def blocksparse_from_numpy(
        dense_shape: Sequence[int] | np.ndarray,
        values: np.ndarray,
        indices: np.ndarray,
        ort_device: Any = None,
    ) -> SparseTensor:
        """From blocks and the indices of their first elements."""
        shape = [int(size) for size in dense_shape]
        places = np.ascontiguousarray(indices, np.int32)
        return SparseTensor(_tenon._sparse_blocks(shape, stored(values), places))

    def values(self) -> np.ndarray:
        """The stored values."""
        return array_of(_tenon._sparse_values(self._value))

    def as_coo_view(self) -> SparseCooView:
        """The indices of a tensor in that format."""
        return SparseCooView(self._value)

    def as_csrc_view(self) -> SparseCsrView:
        """The indices of a tensor in that format."""
        return SparseCsrView(self._value)

    def as_blocksparse_view(self) -> SparseBlockSparseView:
        """The indices of a tensor in that format."""
        return SparseBlockSparseView(self._value)

    get_coo_data, get_csrc_data, get_blocksparse_data = (
        as_coo_view,
        as_csrc_view,
        as_blocksparse_view,
    )

    def to_cuda(self, ort_device: Any) -> SparseTensor:
        """Raises: there is no CUDA device."""
        raise RuntimeError("this build has no CUDA devices")

    def format(self) -> _tenon.OrtSparseFormat:
        """The format of the indices."""
        return _tenon._sparse_format(self._value)

    def dense_shape(self) -> list[int]:
        """The shape of the dense tensor."""
        return _tenon._sparse_dense_shape(self._value)

    def data_type(self) -> str:
        """As in "sparse_tensor(float)"."""
        return self._value.data_type()

    def device_name(self) -> str:
        """The memory location."""
        return "cpu"
