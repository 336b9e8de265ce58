"""The model that blocks build, and the contexts that set it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import onnx
from onnx import helper

__all__ = ["ModelAccessor", "base", "custom_op_library", "empty_base"]


class ModelAccessor:
    """The model under construction; made by ``base`` and ``empty_base``."""

    def __init__(self, model: onnx.ModelProto, model_path: str | None = None) -> None:
        self._model = model
        self._path = model_path
        self._name_count = 0
        self.depth = 0  # of the blocks that are being built, one inside the other
        graph = model.graph
        self._names = {value.name for value in (*graph.input, *graph.initializer)}
        for node in graph.node:
            self._names.update(node.output, [node.name])

    @property
    def model(self) -> onnx.ModelProto:
        return self._model

    @property
    def path(self) -> str:
        """The path that ``base`` was given. Raises RuntimeError if it was given none."""
        if self._path is None:
            raise RuntimeError("onnxblock.base was given no path of the model")
        return self._path

    @property
    def has_path(self) -> bool:
        return self._path is not None

    def new_name(self, token: str) -> str:
        """A name that nothing in the model has. The same blocks always give the same names."""
        while True:
            self._name_count += 1
            name = f"onnx::{token}::{self._name_count}"
            if name not in self._names:
                return name


_accessor: ContextVar[ModelAccessor | None] = ContextVar("accessor", default=None)
_library: ContextVar[str | None] = ContextVar("library", default=None)


def current_accessor() -> ModelAccessor:
    """The accessor of the context. Raises RuntimeError outside of any."""
    accessor = _accessor.get()
    if accessor is None:
        raise RuntimeError("call blocks inside `with onnxblock.base(model)` or `empty_base()`")
    return accessor


def current_library() -> str | None:
    """The library of custom operators that the context has."""
    return _library.get()


@contextmanager
def _hold(model: onnx.ModelProto, model_path: str | None) -> Iterator[ModelAccessor]:
    if _accessor.get() is not None:
        raise RuntimeError("a base model is already set: onnxblock.base and empty_base do not nest")
    accessor = ModelAccessor(model, model_path)
    token = _accessor.set(accessor)
    try:
        yield accessor
    finally:
        _accessor.reset(token)


@contextmanager
def base(model: onnx.ModelProto, model_path: str | None = None) -> Iterator[ModelAccessor]:
    """Lets the blocks inside the context build on a copy of `model`::

    with onnxblock.base(model) as accessor:
        onnxblock.loss.MSELoss()("output")
    result = accessor.model
    """
    if model is None:
        raise RuntimeError("the base model is None: onnxblock.empty_base starts from nothing")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    with _hold(copy, model_path) as accessor:
        yield accessor


@contextmanager
def empty_base(opset_version: int | None = None) -> Iterator[ModelAccessor]:
    """Lets the blocks inside the context build a new model; by default of onnx's newest opset."""
    opsets = [
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("", opset_version or onnx.defs.onnx_opset_version()),
    ]
    model = helper.make_model(
        helper.make_graph([], "graph", [], []), opset_imports=opsets, producer_name="tenon"
    )
    # The oldest that has the opset, for the sake of older readers.
    model.ir_version = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
    with _hold(model, None) as accessor:
        yield accessor


@contextmanager
def custom_op_library(custom_op_library_path: str | os.PathLike[str]) -> Iterator[str]:
    """Lets gradients be built of models with the operators of a library."""
    path = os.fspath(custom_op_library_path)
    if _library.get() is not None:
        raise RuntimeError("a library of custom operators is already set: the contexts do not nest")
    if not os.path.exists(path):
        raise RuntimeError(f"the library of custom operators {path!r} does not exist")
    token = _library.set(path)
    try:
        yield path
    finally:
        _library.reset(token)
