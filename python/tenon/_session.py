"""InferenceSession: providers and options in front of the native session."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _tenon

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    Provider = str | tuple[str, Mapping[str, Any]]

CPU_PROVIDER = "CPUExecutionProvider"


class ModelMetadata:
    """What a model says of itself."""

    def __init__(self, fields: tuple[str, str, str, str, str, int, dict[str, str]]) -> None:
        self.producer_name, self.graph_name, self.domain = fields[:3]
        self.description, self.graph_description = fields[3:5]
        self.version = fields[5]
        self.custom_metadata_map = fields[6]


def choose_providers(
    providers: Sequence[Provider] | None, provider_options: Sequence[Mapping[str, Any]] | None
) -> list[tuple[str, dict[str, str]]]:
    """Names with options, most preferred first; what this build lacks is warned of and left out."""
    chosen: list[tuple[str, dict[str, str]]] = []
    providers = list(providers or ())
    if provider_options is not None:
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length")
        names = [provider for provider in providers if isinstance(provider, str)]
        if len(names) != len(providers):
            raise ValueError("'provider_options' goes with names alone in 'providers'")
        providers = list(zip(names, provider_options, strict=True))
    available = _tenon.get_available_providers() if providers else []
    for provider in providers:
        pair = (provider, {}) if isinstance(provider, str) else provider
        if not is_provider(pair):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = pair
        if name not in available:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names. "
                f"Available providers: '{', '.join(available)}'",
                stacklevel=4,
            )
        elif name not in (earlier for earlier, _ in chosen):
            chosen.append((name, {str(key): str(value) for key, value in options.items()}))
    return chosen


def is_provider(pair: object) -> bool:
    """Whether it is a name with options."""
    match pair:
        case (str(), Mapping()):
            return True
    return False


class InferenceSession(_tenon.Session):
    """A loaded, optimized model. Several threads may run it at once."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: _tenon.SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **_: Any,
    ) -> None:
        """Loads the model.

        path_or_bytes     a file, or a model's bytes
        providers         names, or (name, options) pairs, most preferred first; the CPU takes what
                          the others leave
        provider_options  options for each of `providers`, where these are names alone
        """
        if not isinstance(path_or_bytes, str | os.PathLike | bytes | bytearray | memoryview):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._options = sess_options or _tenon.SessionOptions()
        chosen = choose_providers(providers, provider_options)
        others = [provider for provider in chosen if provider[0] != CPU_PROVIDER]
        self._providers = dict([*others, (CPU_PROVIDER, {})])
        super().__init__(path_or_bytes, self._options, others)

    def get_session_options(self) -> _tenon.SessionOptions:
        """The options that the session was made with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Names of the session's providers, most preferred first."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of each of the session's providers."""
        return {name: dict(options) for name, options in self._providers.items()}

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return ModelMetadata(self._metadata())

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, _tenon.OrtValue],
        run_options: _tenon.RunOptions | None = None,
    ) -> list[_tenon.OrtValue]:
        """As run, with values in and out."""
        names = list(output_names or (output.name for output in self.get_outputs()))
        return self._run_with_values(names, input_dict_ort_values, run_options, [])

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, ArrayLike],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: _tenon.RunOptions | None = None,
    ) -> None:
        """Runs on another thread, which calls `callback(outputs, user_data, error)` at the end.

        `error` is "" on success; else `outputs` is empty.
        """
        import threading  # noqa: PLC0415 - most programs never need it

        def run_and_tell() -> None:
            outputs, error = [], ""
            try:
                outputs = self.run(output_names, input_feed, run_options)
            except Exception as exception:  # the callback is told of whatever went wrong
                error = str(exception)
            callback(outputs, user_data, error)

        threading.Thread(target=run_and_tell).start()

    def io_binding(self) -> IOBinding:
        """An empty binding for this session."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: _tenon.RunOptions | None = None
    ) -> None:
        """As run, with inputs and outputs taken from a binding."""
        iobinding.run(run_options)

    def enable_fallback(self) -> None:
        """Accepted for compatibility: the core falls back by itself."""

    def disable_fallback(self) -> None:
        """Accepted for compatibility: the core falls back by itself."""


class IOBinding:
    """Inputs and outputs that are bound once and used by many runs."""

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, _tenon.OrtValue] = {}
        self._bound: dict[str, _tenon.OrtValue | None] = {}
        self._outputs: list[_tenon.OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an array, which is not copied, to an input."""
        self._inputs[name] = _tenon.OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_ortvalue_input(self, name: str, ortvalue: _tenon.OrtValue) -> None:
        """Binds a value to an input."""
        self._inputs[name] = ortvalue

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Binds memory, which must outlive the binding's runs, to an input."""
        from . import _arrays  # noqa: PLC0415

        require_cpu(device_type)
        array = _arrays.array_at(buffer_ptr, shape, element_type)
        self._inputs[name] = _tenon.OrtValue.ortvalue_from_numpy(array)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output, in the given memory if there is any."""
        from . import _arrays  # noqa: PLC0415

        require_cpu(device_type)
        self._bound[name] = None
        if buffer_ptr is not None and shape is not None:
            array = _arrays.array_at(buffer_ptr, shape, element_type)
            self._bound[name] = _tenon.OrtValue.ortvalue_from_numpy(array)

    def bind_ortvalue_output(self, name: str, ortvalue: _tenon.OrtValue) -> None:
        """Has an output written into a value."""
        self._bound[name] = ortvalue

    def run(self, run_options: _tenon.RunOptions | None = None) -> None:
        """Runs the session with what is bound."""
        names = list(self._bound)
        self._outputs = self._session._run_with_values(
            names, self._inputs, run_options, list(self._bound.values())
        )

    def get_outputs(self) -> list[_tenon.OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._outputs)

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The outputs of the last run as arrays."""
        return [value.numpy() for value in self._outputs]

    def clear_binding_inputs(self) -> None:
        """Forgets the bound inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the bound outputs."""
        self._bound.clear()

    def synchronize_inputs(self) -> None:
        """Without effect: inputs on the CPU are ready."""

    def synchronize_outputs(self) -> None:
        """Without effect: outputs on the CPU are ready when the run ends."""


def require_cpu(device_type: str) -> None:
    """Raises for a device that this build does not have."""
    if device_type != "cpu":
        raise ValueError(f"expected the device 'cpu', got '{device_type}'")
