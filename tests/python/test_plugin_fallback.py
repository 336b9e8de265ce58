"""Providers of plugin libraries: how sessions select them, and the fallback when they fail.

Requirements: python-fallback, section 2. The library is the mock of the C++ tests.
"""

import ctypes
import pathlib
import warnings
from collections.abc import Callable, Iterator

import graphs
import numpy as np
import pytest
import tenon
from onnx import helper
from tenon.capi.onnxruntime_pybind11_state import EPFail

MOCK, CPU = "MockProvider", "CPUExecutionProvider"
LIBRARY = pathlib.Path(tenon.__file__).parents[2] / "tests/plugin/libmock_plugin.so"
X = np.array([1, 2], np.float32)
# x * x runs on the mock.
MODEL = graphs.model(
    [helper.make_node("Mul", ["x", "x"], ["y"])],
    [graphs.tensor("x", shape=[2])],
    [graphs.tensor("y", shape=[2])],
)


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[ctypes.CDLL]:
    if not LIBRARY.exists():
        pytest.skip(f"needs {LIBRARY}: the C++ tests are not built")
    tenon.register_execution_provider_library("mock", str(LIBRARY))
    yield ctypes.CDLL(str(LIBRARY))
    tenon.unregister_execution_provider_library("mock")


@pytest.fixture
def failing(library: ctypes.CDLL) -> Iterator[Callable[[bytes], None]]:
    """Lets a slot of the mock fail until the test ends."""
    yield library.MockFail
    library.MockFail(None)


def devices() -> list[tenon.OrtEpDevice]:
    return [device for device in tenon.get_ep_devices() if device.ep_name == MOCK]


def by_name() -> tenon.InferenceSession:
    return tenon.InferenceSession(MODEL, providers=[MOCK])


def by_devices() -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.add_provider_for_devices(devices(), {})
    assert options.has_providers()
    return tenon.InferenceSession(MODEL, options)


def by_selection() -> tenon.InferenceSession:
    options = tenon.SessionOptions()
    options.set_provider_selection_policy_delegate(lambda *_: devices())
    assert options.has_providers()
    return tenon.InferenceSession(MODEL, options)


WAYS = [by_name, by_devices, by_selection]


def run(session: tenon.InferenceSession) -> list[float]:
    return session.run(None, {"x": X})[0].tolist()


@pytest.mark.parametrize("way", WAYS)
def test_a_session_knows_its_providers(way: Callable[[], tenon.InferenceSession]) -> None:
    session = way()
    assert session.get_providers() == [MOCK, CPU]
    assert session.get_provider_options() == {MOCK: {}, CPU: {}}
    assert run(session) == [1, 4]


def test_the_last_selection_counts() -> None:
    calls = []

    def select(*_: object) -> list:
        calls.append(1)
        return devices()

    options = tenon.SessionOptions()
    options.set_provider_selection_policy_delegate(select)
    options.set_provider_selection_policy(tenon.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    with pytest.raises(Exception, match="99"):
        options.set_provider_selection_policy(99)
    tenon.InferenceSession(MODEL, options)
    assert not calls
    options.set_provider_selection_policy_delegate(select)
    assert tenon.InferenceSession(MODEL, options).get_providers() == [MOCK, CPU]
    assert len(calls) == 1


# FB-1, FB-3, FB-5, FB-6, FB-18
@pytest.mark.parametrize("way", WAYS)
def test_a_run_falls_back(
    way: Callable[[], tenon.InferenceSession],
    failing: Callable[[bytes], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    session = way()
    failing(b"Compute")
    assert run(session) == [1, 4]
    assert session.get_providers() == [CPU]
    first, second = capsys.readouterr().out.splitlines()
    assert "Compute was told to fail" in first
    assert first.endswith(f"using ['{MOCK}', '{CPU}']")
    assert second == f"Falling back to ['{CPU}'] and retrying."
    report = session.get_fallback_report()
    assert (report["state"], report["from"], report["to"]) == ("used", [MOCK, CPU], [CPU])
    assert run(session) == [1, 4]


# FB-4
def test_a_failure_reaches_the_caller_without_fallback(failing: Callable[[bytes], None]) -> None:
    session = by_devices()
    session.disable_fallback()
    failing(b"Compute")
    with pytest.raises(EPFail, match="Compute was told to fail"):
        run(session)


# FB-15, FB-24: at creation only the core falls back.
@pytest.mark.parametrize("core", [False, True])
def test_a_failure_at_creation(failing: Callable[[bytes], None], core: bool) -> None:
    failing(b"Compile")
    options = tenon.SessionOptions()
    options.add_session_config_entry("tenon.ep_fail_fallback", str(int(core)))
    if not core:
        with pytest.raises(EPFail, match="Compile was told to fail"):
            tenon.InferenceSession(MODEL, options, providers=[MOCK])
        return
    session = tenon.InferenceSession(MODEL, options, providers=[MOCK])
    assert session.get_providers() == [CPU]
    assert run(session) == [1, 4]


def test_providers_of_the_session_come_before_those_of_its_options() -> None:
    options = tenon.SessionOptions()
    options.add_provider_for_devices(devices(), {})
    with pytest.warns(UserWarning, match="those of its options are not used"):
        session = tenon.InferenceSession(MODEL, options, providers=[CPU])
    assert session.get_providers() == [CPU]


def test_an_unknown_provider_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="'Nowhere' is not in available provider names.*Mock"):
        assert tenon.InferenceSession(MODEL, providers=["Nowhere"]).get_providers() == [CPU]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_name()
