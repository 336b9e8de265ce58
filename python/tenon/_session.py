"""InferenceSession: adds providers, options and the fallback to the native session."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _tenon

if TYPE_CHECKING:
    import asyncio

    import numpy as np
    from numpy.typing import ArrayLike

    from ._stateful import StatefulSession

Provider = str | tuple[str, Mapping[str, Any]]

CPU_PROVIDER = "CPUExecutionProvider"
# If it is requested together with an accelerator that may fail, the provider in the value is kept.
COMPANIONS = {
    "TensorrtExecutionProvider": "CUDAExecutionProvider",
    "MIGraphXExecutionProvider": "ROCMExecutionProvider",
}


class ModelMetadata:
    """The metadata of a model."""

    __slots__ = (
        "custom_metadata_map",
        "description",
        "domain",
        "graph_description",
        "graph_name",
        "producer_name",
        "version",
    )

    def __init__(self, fields: tuple[str, str, str, str, str, int, dict[str, str]]) -> None:
        self.producer_name, self.graph_name, self.domain = fields[:3]
        self.description, self.graph_description = fields[3:5]
        self.version = fields[5]
        self.custom_metadata_map = fields[6]


def check_and_normalize_provider_args(
    providers: Sequence[Provider] | None,
    provider_options: Sequence[Mapping[str, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """Names and options, most preferred first.

    Warns of providers that are not available or named twice, and leaves them out. Raises ValueError
    for anything but names, or pairs of names and options.
    """
    if providers is None:
        return [], []
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError(
                "'providers' and 'provider_options' should be the same length if both are given."
            )
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError(
                "Only string values for 'providers' are supported if 'provider_options' are given."
            )
        if not all(isinstance(options, Mapping) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        providers = list(zip(providers, provider_options, strict=True))  # type: ignore[arg-type]
    chosen: dict[str, dict[str, str]] = {}
    for provider in providers:
        pair = (provider, {}) if isinstance(provider, str) else provider
        if not is_provider(pair):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = pair
        if name not in available_provider_names:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names. "
                f"Available providers: '{', '.join(available_provider_names)}'",
                stacklevel=5,
            )
        elif name in chosen:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=5)
        else:
            chosen[name] = {str(key): str(value) for key, value in options.items()}
    return list(chosen), list(chosen.values())


def with_plugins(available: list[str], providers: Sequence[Provider] | None) -> list[str]:
    """With the providers of registered plugin libraries, if others than `available` are wanted."""
    wanted = providers if isinstance(providers, Sequence) else ()
    names = {one[0] if is_provider(one) else one for one in wanted}
    if all(name in available for name in names):
        return available
    plugins = {device.ep_name for device in _tenon.get_ep_devices()}
    return available + sorted(plugins.difference(available))


def is_provider(pair: object) -> bool:
    """Whether the item is a name with options."""
    match pair:
        case (str(), Mapping()):
            return True
    return False


def choose_fallback(providers: object, available: Sequence[str]) -> list[str]:
    """The providers with which a session is created again after one of `providers` failed."""
    names = []
    if isinstance(providers, Sequence) and not isinstance(providers, str):
        names = [one[0] if is_provider(one) else one for one in providers]
    for accelerator, companion in COMPANIONS.items():
        if accelerator in available:
            if accelerator in names and companion in names:
                return [companion, CPU_PROVIDER]
            break
    return [CPU_PROVIDER]


class Session:
    """The base of all sessions: runs, queries, and the fallback when a provider fails."""

    def __init__(self, enable_fallback: bool = True) -> None:
        self._sess: _tenon.Session = None  # type: ignore[assignment]
        self._sess_options: _tenon.SessionOptions = None  # type: ignore[assignment]
        self._providers: dict[str, dict[str, str]] = {}
        self._fallback_providers = [CPU_PROVIDER]
        self._enable_fallback = enable_fallback
        self._core_falls_back = False
        self._report: dict[str, Any] | None = None

    def get_session_options(self) -> _tenon.SessionOptions:
        """The options with which the session was created."""
        return self._sess_options

    def get_inputs(self) -> list[_tenon.NodeArg]:
        """The inputs of the model."""
        return self._sess.get_inputs()

    def get_outputs(self) -> list[_tenon.NodeArg]:
        """The outputs of the model."""
        return self._sess.get_outputs()

    def get_overridable_initializers(self) -> list[_tenon.NodeArg]:
        """The constants that a run may replace."""
        return self._sess.get_overridable_initializers()

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model."""
        return ModelMetadata(self._sess._metadata())

    def get_providers(self) -> list[str]:
        """Names of the session's providers, most preferred first."""
        if self._core_falls_back and (to := self.get_fallback_report()["to"]):
            return list(to)
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of each of the session's providers."""
        return {name: dict(self._providers.get(name, {})) for name in self.get_providers()}

    def enable_fallback(self) -> None:
        """Lets the next failure of a provider create the session again, even if one already has."""
        self._enable_fallback = True

    def disable_fallback(self) -> None:
        """Lets failures of providers reach the caller."""
        self._enable_fallback = False

    def get_fallback_report(self) -> dict[str, Any]:
        """The state of the fallback: state, from, to, provider, node, code, message and so on."""
        import json  # noqa: PLC0415 - most programs never need it

        report: dict[str, Any] = self._report or json.loads(self._sess._fallback_report())
        if not self._core_falls_back and self._report is None:
            report["state"] = "armed" if self._enable_fallback else "off"
        return report

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: _tenon.RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model.

        output_names  the outputs wanted; None or empty: all
        input_feed    an array, list, dict or OrtValue for each input
        """
        try:
            return self._sess.run(output_names, input_feed, run_options)
        except _tenon.EPFail as error:
            if not self._may_fall_back():
                raise
            self._fall_back(error)
            return self._sess.run(output_names, input_feed, run_options)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, _tenon.OrtValue],
        run_options: _tenon.RunOptions | None = None,
    ) -> list[_tenon.OrtValue]:
        """As run, but with values for inputs and outputs."""
        names = list(output_names or (output.name for output in self.get_outputs()))
        try:
            return self._sess._run_with_values(names, input_dict_ort_values, run_options, [])
        except _tenon.EPFail as error:
            if not self._may_fall_back():
                raise
            self._fall_back(error)
            return self._sess._run_with_values(names, input_dict_ort_values, run_options, [])

    def run_with_ortvaluevector(
        self,
        run_options: _tenon.RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[_tenon.OrtValue],
        fetch_names: Sequence[str],
        fetches: Any,
        fetch_devices: Sequence[Any],
    ) -> None:
        """As run, but with values by position. `fetches`, a list or vector, gets the results."""
        feed = dict(zip(feed_names, feeds, strict=True))
        for value in self._sess._run_with_values(list(fetch_names), feed, run_options, []):
            fetches.append(value)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, ArrayLike],
        callback: Callable[[list[Any], Any, str], None] | None = None,
        user_data: Any = None,
        run_options: _tenon.RunOptions | None = None,
    ) -> asyncio.Future[list[Any]] | None:
        """Runs on another thread, which calls `callback(outputs, user_data, error)` at the end.

        `error` is "" on success; otherwise `outputs` is empty. Without a callback the function
        returns an awaitable: `outputs = await session.run_async(None, feed)`. Cancelling it ends
        the run. Arrays in `input_feed` are not copied, and must not change before the end.
        """
        from . import _asynchronous  # noqa: PLC0415 - most programs never need it

        if callback is None:
            return _asynchronous.awaitable(self._sess, output_names, input_feed, run_options)
        _asynchronous.with_callback(
            self._sess, output_names, input_feed, callback, user_data, run_options
        )
        return None

    def stateful(
        self,
        pairs: Mapping[str, str] | None = None,
        dims: Mapping[str, int] | None = None,
        in_place: bool = False,
    ) -> StatefulSession:
        """A session that keeps a decoder's caches from run to run.

        pairs     the output that becomes each input of the next run; else those whose names differ
                  in `past` and `present`, as past_key_values.0.key and present.0.key
        dims      sizes of the caches' dimensions by name, before the first run; else the first axis
                  has the size of the other inputs', and other free ones 0
        in_place  each run writes over the caches that it reads: for operators that allow it on
                  caches of a fixed size, as GroupQueryAttention
        """
        from ._stateful import StatefulSession  # noqa: PLC0415 - most programs never need it

        return StatefulSession(self, pairs, dims, in_place)

    def io_binding(self) -> IOBinding:
        """An empty binding for this session."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: _tenon.RunOptions | None = None
    ) -> None:
        """As run, but takes inputs and outputs from a binding."""
        iobinding._run(run_options)

    def end_profiling(self) -> str:
        """Ends the trace of the session. Returns its path."""
        return self._sess.end_profiling()

    def get_profiling_start_time_ns(self) -> int:
        """The time at which the trace began, on the monotonic clock."""
        return self._sess.get_profiling_start_time_ns()

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> _tenon.OrtValue:
        """A tensor to be filled, in memory that the session can use."""
        return _tenon.OrtValue.ortvalue_from_shape_and_type(
            shape, element_type, device_type, device_id, vendor_id
        )

    def get_input_memory_infos(self) -> list[_tenon.OrtMemoryInfo]:
        """The best memory location of each input."""
        return self._sess._memory_infos(True)

    def get_output_memory_infos(self) -> list[_tenon.OrtMemoryInfo]:
        """The memory location of each output."""
        return self._sess._memory_infos(False)

    def get_input_epdevices(self) -> list[_tenon.OrtEpDevice | None]:
        """The device that uses each input."""
        return self._sess._ep_devices()

    def get_provider_graph_assignment_info(self) -> list[Any]:
        """The nodes that each provider runs; needs "session.record_ep_graph_assignment_info"."""
        from ._devices import describe_assignment  # noqa: PLC0415

        return describe_assignment(self._sess)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Changes options of the session's providers."""
        self._sess.set_ep_dynamic_options(dict(options))

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Raises: no provider of this build captures graphs."""
        self._sess.release_captured_graph(graph_annotation_id)

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """The tuning results of the providers. Those of this build have none."""
        return []

    def set_tuning_results(
        self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False
    ) -> None:
        """Accepted for compatibility; raises for a provider that does not exist, if asked to."""
        for result in results:
            if error_on_invalid and result.get("ep") not in self._providers:
                raise RuntimeError(f"Cannot find execution provider {result.get('ep')}")

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Creates the session again with other providers, from the same model and options.

        Raises RuntimeError for a provider that does not exist.
        """
        available = with_plugins(_tenon.get_available_providers(), providers)
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if name not in available:
                raise RuntimeError(f"Unknown Provider Type: {name}")
        self._close(is_replaced=False)
        self._open(providers, provider_options)

    def _close(self, is_replaced: bool) -> None:
        """Releases the native session. A binding may still hold it."""
        if is_replaced and isinstance(self._sess, _tenon.Session):
            self._sess._set_replaced()
        self._sess = None  # type: ignore[assignment]

    def _open(
        self,
        providers: Sequence[Provider] | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        """Creates the native session."""
        raise NotImplementedError

    def _may_fall_back(self) -> bool:
        """Whether the fallback is on, and has other providers than the session."""
        is_on = self._enable_fallback and not self._core_falls_back
        return is_on and self._fallback_providers != list(self._providers)

    def _fall_back(self, error: Exception) -> None:
        """Creates the session again, once, with providers that are safe."""
        import time  # noqa: PLC0415 - most programs never fall back

        report = self.get_fallback_report()
        tell(
            [
                f"EP Error: {error!s} using {list(self._providers)}",
                f"Falling back to {self._fallback_providers} and retrying.",
            ]
        )
        report["from"] = list(self._providers)
        begin = time.perf_counter()
        self._close(is_replaced=True)
        self._open(self._fallback_providers, None)
        self.disable_fallback()  # once
        report |= {"state": "used", "to": list(self._providers), "replays": 1}
        report["rebuild_ms"] = round(1000 * (time.perf_counter() - begin))
        self._report = report


def tell(lines: Sequence[str]) -> None:
    """Prints the message where onnxruntime does, and logs it."""
    import logging  # noqa: PLC0415 - most programs never fall back

    for line in lines:
        print(line)
        logging.getLogger("tenon").warning(line)


class FailedSession:
    """Takes the place of a session that could not be created again."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"the session could not be made anew: {self._error}")


class InferenceSession(Session):
    """A loaded, optimized model. Several threads may run it at once."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: _tenon.SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Loads the model.

        path_or_bytes     a file, a model's bytes, or an onnx.ModelProto
        providers         names, or (name, options) pairs, most preferred first; the CPU takes the
                          rest
        provider_options  options for each of `providers`, if these are only names
        enable_fallback   whether a provider that fails is replaced by safe ones, once
        disabled_optimizers  names of passes to leave out, as ConstantFolding; docs/profiling.md
                             lists them, and others have no effect
        """
        super().__init__(bool(kwargs.get("enable_fallback", True)))
        if hasattr(path_or_bytes, "SerializeToString"):
            path_or_bytes = path_or_bytes.SerializeToString()
        if not isinstance(path_or_bytes, str | os.PathLike | bytes | bytearray | memoryview):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        self._model = path_or_bytes
        if os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1":
            from ._model_config import options_of  # noqa: PLC0415 - most programs never need it

            sess_options = options_of(path_or_bytes) or sess_options
        self._sess_options = sess_options or _tenon.SessionOptions()
        self._disabled_optimizers = ";".join(kwargs.get("disabled_optimizers") or ())
        self._core_falls_back = self._sess_options._has_core_fallback()
        if providers and self._sess_options.has_providers():
            warnings.warn(
                "InferenceSession has providers of its own, so those of its options are not used.",
                stacklevel=2,
            )
        try:
            self._open(providers, provider_options)
        except (ValueError, RuntimeError) as error:
            is_watched = self._sess_options.progress is not None  # and may have raised the error
            if not self._enable_fallback or self._core_falls_back or is_watched:
                raise
            self._open_safely(error, providers)

    def _open_safely(self, error: Exception, providers: Sequence[Provider] | None) -> None:
        """Creates the session with the fallback providers after creation has failed."""
        tell(
            [
                "*************** EP Error ***************",
                f"EP Error {error} when using {providers}",
                f"Falling back to {self._fallback_providers} and retrying.",
                "****************************************",
            ]
        )
        try:
            self._open(self._fallback_providers, None)
        except Exception as second:
            raise second from error
        self.disable_fallback()  # once
        self._report = {
            **self.get_fallback_report(),
            "state": "used",
            "from": [one if isinstance(one, str) else str(one) for one in providers or ()],
            "to": list(self._providers),
            "message": str(error),
        }

    def _open(
        self,
        providers: Sequence[Provider] | None,
        provider_options: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        available = with_plugins(_tenon.get_available_providers(), providers)
        self._fallback_providers = choose_fallback(providers, available)
        names, options = check_and_normalize_provider_args(providers, provider_options, available)
        if not names and self._sess_options.has_providers():
            chosen = dict(self._sess_options._provider_list())
            others = None
        else:
            chosen = dict(zip(names, options, strict=True))
            others = [(name, chosen[name]) for name in names if name != CPU_PROVIDER]
        chosen.setdefault(CPU_PROVIDER, {})
        try:
            self._sess = _tenon.Session(
                self._model, self._sess_options, others, self._disabled_optimizers
            )
        except Exception as error:
            self._sess = FailedSession(error)  # type: ignore[assignment]
            raise
        if others is None:  # a policy may have selected some
            chosen = {name: chosen.get(name, {}) for name in self.get_fallback_report()["from"]}
        self._providers = chosen

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._model, self._sess_options, list(self._providers.items()))
        more = {
            "enable_fallback": self._enable_fallback,
            "disabled_optimizers": self._disabled_optimizers.split(";"),
        }
        return (_remake, (type(self), *arguments, more))


def _remake(
    cls: type[InferenceSession],
    model: Any,
    options: _tenon.SessionOptions,
    providers: Sequence[Provider],
    more: Mapping[str, Any],
) -> InferenceSession:
    """A session from its pickled state."""
    return cls(model, options, providers, **more)


class SessionIOBinding:
    """Inputs and outputs, as values, that are bound once and used by many runs."""

    def __init__(self, session: _tenon.Session) -> None:
        self._session = session  # which lives as long as this
        self._binding = _tenon._Binding(session)
        self.run = self._binding.run

    def bind_ortvalue_input(self, name: str, ortvalue: _tenon.OrtValue) -> None:
        """Binds a value to an input."""
        self._binding.bind_input(self._known(name, self._session.get_inputs), ortvalue)

    def bind_ortvalue_output(self, name: str, ortvalue: _tenon.OrtValue | None) -> None:
        """Lets runs write an output into a value, or into a new value each."""
        self._binding.bind_output(self._known(name, self._session.get_outputs), ortvalue)

    def bind_input(self, name: str, *arguments: Any) -> None:
        """Binds an array; or, by device, type, shape and address, memory that the caller owns."""
        if len(arguments) == 1:
            self.bind_ortvalue_input(name, _tenon.OrtValue.ortvalue_from_numpy(arguments[0]))
            return
        device, element_type, shape, address = arguments
        value = _tenon.OrtValue._at_address(address, shape, element_type, device, 0, -1)
        self.bind_ortvalue_input(name, value)

    def bind_output(self, name: str, *arguments: Any) -> None:
        """Requests an output; with device, type, shape and address, in that memory."""
        if len(arguments) == 4:
            device, element_type, shape, address = arguments
            value = _tenon.OrtValue._at_address(address, shape, element_type, device, 0, -1)
            self.bind_ortvalue_output(name, value)
            return
        device = arguments[0] if arguments else "cpu"
        self._binding.bind_output(self._known(name, self._session.get_outputs), None, device)

    def _known(self, name: str, values: Callable[[], list[_tenon.NodeArg]]) -> str:
        """The name, if the session has it. Raises otherwise."""
        names = [value.name for value in values()]
        names += [value.name for value in self._session.get_overridable_initializers()]
        if name not in names:
            raise RuntimeError(f"expected one of {names}, got '{name}'")
        return name

    def get_outputs(self) -> list[_tenon.OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return self._binding.get_outputs()

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The outputs of the last run as arrays, which later runs leave as they are."""
        return self._binding.copy_outputs()

    def clear_binding_inputs(self) -> None:
        """Forgets the bound inputs."""
        self._binding.clear_inputs()

    def clear_binding_outputs(self) -> None:
        """Forgets the bound outputs and the results of the last run."""
        self._binding.clear_outputs()

    def synchronize_inputs(self) -> None:
        """Waits until the bound inputs are ready."""
        self._binding.synchronize(True)

    def synchronize_outputs(self) -> None:
        """Waits until the bound outputs are complete."""
        self._binding.synchronize(False)


class IOBinding:
    """Inputs and outputs that are bound once and used by many runs."""

    def __init__(self, session: Session) -> None:
        self._iobinding = SessionIOBinding(session._sess)

    def _run(self, run_options: _tenon.RunOptions | None) -> None:
        self._iobinding.run(run_options)

    def bind_cpu_input(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an array, which is not copied, to an input."""
        self.bind_ortvalue_input(name, _tenon.OrtValue.ortvalue_from_numpy(arr_on_cpu))

    def bind_ortvalue_input(self, name: str, ortvalue: _tenon.OrtValue) -> None:
        """Binds a value to an input."""
        self._iobinding.bind_ortvalue_input(name, ortvalue)

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
        value = _tenon.OrtValue._at_address(
            buffer_ptr, shape, element_type, device_type, device_id, -1
        )
        self.bind_ortvalue_input(name, value)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Requests an output on a device, in the given memory if there is any."""
        binding = self._iobinding
        if buffer_ptr is None or shape is None:
            name = binding._known(name, binding._session.get_outputs)
            binding._binding.bind_output(name, None, device_type, device_id)
            return
        value = _tenon.OrtValue._at_address(
            buffer_ptr, shape, element_type, device_type, device_id, -1
        )
        binding.bind_ortvalue_output(name, value)

    def bind_ortvalue_output(self, name: str, ortvalue: _tenon.OrtValue) -> None:
        """Lets runs write an output into a value."""
        self._iobinding.bind_ortvalue_output(name, ortvalue)

    def get_outputs(self) -> list[_tenon.OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return self._iobinding.get_outputs()

    def get_outputs_as_ortvaluevector(self) -> list[_tenon.OrtValue]:
        """The same as a vector."""
        from ._vector import OrtValueVector  # noqa: PLC0415

        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        """The outputs of the last run as arrays."""
        return self._iobinding.copy_outputs_to_cpu()

    def clear_binding_inputs(self) -> None:
        """Forgets the bound inputs."""
        self._iobinding.clear_binding_inputs()

    def clear_binding_outputs(self) -> None:
        """Forgets the bound outputs and the results of the last run."""
        self._iobinding.clear_binding_outputs()

    def synchronize_inputs(self) -> None:
        """Waits until the bound inputs are ready."""
        self._iobinding.synchronize_inputs()

    def synchronize_outputs(self) -> None:
        """Waits until the bound outputs are complete."""
        self._iobinding.synchronize_outputs()
