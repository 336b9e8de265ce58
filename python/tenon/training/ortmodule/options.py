"""What an ORTModule says and saves while it compiles."""

from __future__ import annotations

import os
from enum import IntEnum


class LogLevel(IntEnum):
    """The messages that an ORTModule writes: those of a level and of all higher ones."""

    VERBOSE = 0
    DEVINFO = 1
    INFO = 2
    WARNING = 3
    ERROR = 4
    FATAL = 5


class DebugOptions:
    """What an ORTModule says and saves while it compiles.

    log_level    The environment variable ORTMODULE_LOG_LEVEL, which has the name of a level, goes
                 before.
    save_onnx    Whether the ONNX models that Tenon runs are saved, each as
                 `{onnx_prefix}_{number}.onnx`.
    onnx_prefix  How the names of these files start.
    save_path    Their folder, the current one if it is "". The environment variable
                 ORTMODULE_SAVE_ONNX_PATH goes before.
    config       Has no meaning.

    Raises TypeError for a level or a prefix of another type, ValueError if a prefix is missing, and
    OSError if the folder cannot be written to.
    """

    def __init__(
        self,
        log_level: LogLevel = LogLevel.WARNING,
        save_onnx: bool = False,
        onnx_prefix: str = "",
        save_path: str = "",
        config: object = None,
    ) -> None:
        if not isinstance(log_level, LogLevel):
            raise TypeError(f"Expected log_level of type LogLevel, got {type(log_level)}.")
        self.log_level = LogLevel[os.environ.get("ORTMODULE_LOG_LEVEL", log_level.name)]
        self.save_onnx = save_onnx
        self.onnx_prefix = onnx_prefix
        self.save_path = os.environ.get("ORTMODULE_SAVE_ONNX_PATH", save_path or os.getcwd())
        if save_onnx:
            self._check_place()

    # The errors are in the words that programs look for.
    def _check_place(self) -> None:
        if not os.access(self.save_path, os.W_OK):
            raise OSError(
                f"Directory {self.save_path} is not writable. Set the environment variable "
                "ORTMODULE_SAVE_ONNX_PATH to one that is."
            )
        if not isinstance(self.onnx_prefix, str):
            raise TypeError(f"onnx_prefix: expected a str, got {self.onnx_prefix!r}")
        if not self.onnx_prefix:
            raise ValueError("onnx_prefix must be provided when save_onnx is set.")
