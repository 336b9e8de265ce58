"""Compiles a module. What cannot be compiled runs in PyTorch, and a message says so."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo.config
from torch._dynamo.exc import TorchDynamoException

from tenon.torch._backend import compile_with
from tenon.torch._explain import Explanation
from tenon.torch._partition import boxed
from tenon.torch._region import Settings

from .options import DebugOptions, LogLevel

_logger = logging.getLogger("tenon.training.ortmodule")

# The levels of Python's logging.
_SEVERITIES = {
    LogLevel.VERBOSE: logging.DEBUG,
    LogLevel.DEVINFO: logging.INFO,
    LogLevel.INFO: logging.INFO,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.FATAL: logging.CRITICAL,
}


# How often the modules of one class, of any sizes and modes, may be compiled. Older versions of
# PyTorch do not let a caller say so.
_CAN_SAY = "recompile_limit" in inspect.signature(torch.compile).parameters
_LIMIT: dict[str, Any] = {"recompile_limit": 64} if _CAN_SAY else {}


@dataclass(frozen=True)
class Messages:
    """Writes messages about modules of a class."""

    class_name: str
    least_level: LogLevel

    def say(self, level: LogLevel, text: str) -> None:
        """Writes a message of a level."""
        if level >= self.least_level:
            if not _logger.isEnabledFor(_SEVERITIES[level]):
                _logger.setLevel(_SEVERITIES[level])
            _logger.log(_SEVERITIES[level], "ORTModule of %s: %s", self.class_name, text)

    def warn(self, text: str) -> None:
        """Writes a warning."""
        self.say(LogLevel.WARNING, text)


class Compilation:
    """A module that is compiled when it is called.

    The environment variable ORTMODULE_FALLBACK_POLICY, read when this is made, can forbid that
    PyTorch runs what cannot be compiled: "FALLBACK_DISABLE". Errors are raised then. With
    "FALLBACK_FORCE_TORCH_FORWARD" PyTorch runs everything.
    """

    def __init__(self, module: torch.nn.Module, options: DebugOptions, messages: Messages) -> None:
        policy = os.environ.get("ORTMODULE_FALLBACK_POLICY")
        self._falls_back = policy != "FALLBACK_DISABLE"
        self._messages = messages
        self._module = module
        # PyTorch compiles recurrent layers only where this is set, which takes a moment.
        self._is_recurrent = any(isinstance(each, torch.nn.RNNBase) for each in module.modules())
        self._run: Callable[..., Any] = module
        if policy == "FALLBACK_FORCE_TORCH_FORWARD":
            messages.warn(f"PyTorch runs it, as ORTMODULE_FALLBACK_POLICY says {policy}")
        elif isinstance(module, torch.jit.ScriptModule):
            messages.warn("PyTorch runs it: torch.compile takes no scripted modules")
        else:
            prefix = (
                os.path.join(options.save_path, options.onnx_prefix) if options.save_onnx else ""
            )
            backend = _backend(messages, prefix, self._falls_back)
            self._run = torch.compile(module, backend=backend, **_LIMIT)

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        """Runs the module."""
        try:
            if not self._is_recurrent:
                return self._run(*inputs, **keywords)
            with torch._dynamo.config.patch(allow_rnn=True):
                return self._run(*inputs, **keywords)
        except TorchDynamoException as error:
            if not self._falls_back:
                raise
            result = self._module(*inputs, **keywords)  # raises where the inputs are wrong
            self._messages.warn(f"PyTorch runs it, torch.compile cannot: {error}")
            self._run = self._module
            return result


class _Backend:
    """Compiles graphs for modules of a class. It saves ONNX models if it has a prefix for names."""

    def __init__(self, messages: Messages, save_prefix: str, falls_back: bool) -> None:
        self._messages = messages
        self._falls_back = falls_back
        self._save_prefix = save_prefix
        self._model_count = 0
        self._settings = Settings(
            save_model=self._save if save_prefix else None,
            report_failure=self._report if falls_back else None,
        )

    def __call__(self, graph: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        """Compiles a graph that torch.compile traced."""
        try:
            compiled: Callable[..., Any] = compile_with(self._compile, self._compile)(graph, inputs)
        except Exception as error:
            if not self._falls_back:
                raise
            self._report(error)
            compiled = graph.forward
        return compiled

    def _compile(self, graph: torch.fx.GraphModule, _: Any) -> Callable[..., Any]:
        explanation = Explanation(graphs=1)
        compiled: Callable[..., Any] = boxed(explanation.partition(graph, self._settings))
        is_left = explanation.left and not explanation.lowered
        level = LogLevel.WARNING if is_left else LogLevel.INFO
        self._messages.say(level, f"a graph is compiled:\n{explanation}")
        return compiled

    def _report(self, error: Exception) -> None:
        self._messages.warn(f"PyTorch runs a part that Tenon cannot compile: {error}")

    def _save(self, model: bytes) -> None:
        with open(f"{self._save_prefix}_{self._model_count}.onnx", "wb") as file:
            file.write(model)
        self._model_count += 1


# Modules whose backend is the same one share what is compiled.
_backend = functools.cache(_Backend)
