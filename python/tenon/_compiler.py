"""Compilation of models ahead of time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import _tenon

GetInitializerLocation = Callable[
    [str, _tenon.OrtValue, "_tenon.OrtExternalInitializerInfo | None"],
    "_tenon.OrtExternalInitializerInfo | None",
]


class ModelCompiler:
    """Compiles one model for the providers of session options, to a file, bytes or a function."""

    def __init__(
        self,
        sess_options: _tenon.SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = _tenon.OrtCompileApiFlags.NONE,
        graph_optimization_level: _tenon.GraphOptimizationLevel = (
            _tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
        ),
        get_initializer_location_func: GetInitializerLocation | None = None,
    ) -> None:
        """Keeps the settings.

        external_initializers_file_path   the file for large initializers
        get_initializer_location_func     returns the place of each initializer; None: in the model
        """
        model = input_model_path_or_bytes
        if isinstance(model, str | os.PathLike):
            if not os.path.exists(model):
                raise ValueError(f"Input model path does not exist: {model}")
            model = os.fspath(model)
        elif not isinstance(model, bytes):
            raise TypeError(f"Unable to load from type '{type(model)}'")
        file = external_initializers_file_path
        if file is not None and get_initializer_location_func is not None:
            raise ValueError(
                "expected a file for all initializers or a function that says where each goes"
            )
        self._options = sess_options
        self._model: str | bytes = model
        self._rest = (
            embed_compiled_data_into_model,
            None if file is None else os.fspath(file),
            external_initializers_size_threshold,
            int(getattr(flags, "value", flags)),
            graph_optimization_level.value,
            get_initializer_location_func,
        )

    def compile_to_file(self, output_model_path: str | None = None) -> None:
        """Writes the model to that file. The default is <input>_ctx.onnx."""
        if output_model_path is None:
            if not isinstance(self._model, str):
                raise ValueError("expected a path: the model was given as bytes")
            output_model_path = os.path.splitext(self._model)[0] + "_ctx.onnx"
        folder = os.path.dirname(os.path.abspath(output_model_path))
        if not os.path.isdir(folder):
            raise ValueError(f"Output model folder does not exist: {folder}")
        _tenon._compile(self._options, self._model, output_model_path, *self._rest)

    def compile_to_bytes(self) -> bytes:
        """Returns the model's bytes."""
        compiled: bytes = _tenon._compile(self._options, self._model, None, *self._rest)
        return compiled

    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        """Passes the model to a function, piece by piece."""
        _tenon._compile(self._options, self._model, write_function, *self._rest)

    def set_ep_context_data_write_func(self, write_func: Callable[[str, Any], None]) -> None:
        """Accepted for compatibility: providers write their files themselves."""

    def clear_ep_context_data_write_func(self) -> None:
        """Accepted for compatibility."""
