"""The module that runs another one on Tenon."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from ._compilation import Compilation, Messages
from .options import DebugOptions, LogLevel

# What a module may override, because ORTModule calls it or has no use for it.
_DELEGATED = {
    "forward", "apply", "_apply", "train", "named_modules", "add_module", "register_parameter",
    "register_buffer", "state_dict", "load_state_dict", "_load_from_state_dict",
    "_save_to_state_dict", "_version", "dump_patches", "extra_repr", "_replicate_for_data_parallel",
}  # fmt: skip


def _calls_super(function: Any) -> bool:
    """Whether a method contains super(), which takes only objects of its class."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and "__class__" in code.co_freevars


class ORTModule(nn.Module):
    """A module that runs `module` on Tenon, forward and backward.

    It stands for `module` in a program. Parameters, buffers, submodules, states and attributes are
    those of `module`, under the same names. Attributes that are set are set there. A method of
    `module` that calls `self(...)` runs on Tenon, too.

    What Tenon or torch.compile cannot compile runs in PyTorch, and a message says so.
    """

    def __init__(self, module: nn.Module, debug_options: DebugOptions | None = None) -> None:
        super().__init__()
        self.__dict__["_original_module"] = module
        self.__dict__["_debug_options"] = debug_options or DebugOptions()
        self.__dict__["training"] = module.training
        # Found in `module` from here on.
        for name in ("_parameters", "_buffers", "_non_persistent_buffers_set", "_modules"):
            del self.__dict__[name]
        self._prepare()

    def _prepare(self) -> None:
        """Makes what is not copied or saved with the module."""
        messages = Messages(type(self.module).__name__, self._debug_options.log_level)
        compilation = Compilation(self.module, self._debug_options, messages)

        @functools.wraps(self.module.forward)  # programs ask for the names of the arguments
        def forward(*inputs: Any, **keywords: Any) -> Any:
            return compilation(*inputs, **keywords)

        self.__dict__["forward"] = forward
        for name in sorted(self._hidden_names()):
            # Those of nn.Module do the same for almost every module.
            level = LogLevel.INFO if hasattr(nn.Module, name) else LogLevel.WARNING
            messages.say(level, f"{name} collides with ORTModule's attribute: use module.{name}")

    def _hidden_names(self) -> set[str]:
        """The names that the module, or its class, defines and ORTModule has for itself."""
        classes = type(self.module).__mro__
        names = {name for each in classes[: classes.index(nn.Module)] for name in vars(each)}
        names |= set(vars(self.module)) - set(vars(nn.Module()))
        return {
            name
            for name in names - _DELEGATED
            if not name.startswith("__") and (name in self.__dict__ or hasattr(ORTModule, name))
        }

    @property
    def module(self) -> nn.Module:
        """The module that this one runs."""
        module: nn.Module = self.__dict__["_original_module"]
        return module

    # --- Attributes ---

    def __getattr__(self, name: str) -> Any:
        if "_original_module" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self.module, name)
        is_method = isinstance(value, types.MethodType) and value.__self__ is self.module
        if is_method and not _calls_super(value.__func__):
            return types.MethodType(value.__func__, self)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ or isinstance(getattr(self.module, name, None), types.MethodType):
            self.__dict__[name] = value
        else:
            setattr(self.module, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            del self.__dict__[name]
        else:
            delattr(self.module, name)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *dir(self.module)})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "forward"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    # --- What nn.Module does with `self`, done with `module` ---

    def apply(self, fn: Callable[[nn.Module], None]) -> ORTModule:
        """Calls a function with `module` and all its submodules."""
        self.module.apply(fn)
        return self

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> ORTModule:
        self.module._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def train(self, mode: bool = True) -> ORTModule:
        """Sets whether the module is in training mode."""
        self.__dict__["training"] = mode
        self.module.train(mode)
        return self

    def named_modules(self, *arguments: Any, **keywords: Any) -> Iterator[tuple[str, nn.Module]]:
        """`module` and its submodules with their names."""
        yield from self.module.named_modules(*arguments, **keywords)

    def add_module(self, name: str, module: nn.Module | None) -> None:
        """Adds a submodule."""
        self.module.add_module(name, module)

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """Adds a parameter."""
        self.module.register_parameter(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer."""
        self.module.register_buffer(name, tensor, persistent)

    def state_dict(self, *arguments: Any, **keywords: Any) -> Any:
        """The state of `module`."""
        return self.module.state_dict(*arguments, **keywords)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], *arguments: Any, **keywords: Any
    ) -> Any:
        """Loads a state that `state_dict` of `module` returned."""
        return self.module.load_state_dict(state_dict, *arguments, **keywords)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self.module._load_from_state_dict(*arguments)

    def _replicate_for_data_parallel(self) -> ORTModule:
        raise NotImplementedError(
            "ORTModule does not work in DataParallel: use DistributedDataParallel instead"
        )
