"""The fallback of Python's sessions. Requirements: python-fallback, section 2.

Run by test_fallback.py, with a library that has the providers "ProbeExecutionProvider" and
"SecondProbeExecutionProvider". Their options: ops, the operators that they take; fail, where they
fail; code; failures, how often; log, a file that they write to.
"""

import json
import pathlib
import warnings

import graphs
import numpy as np
import onnx
import pytest
import tenon
from onnx import helper
from tenon._session import choose_fallback
from tenon.capi.onnxruntime_pybind11_state import EPFail, Fail, InvalidArgument, NoSuchFile

PROBE, SECOND, CPU = (
    "ProbeExecutionProvider",
    "SecondProbeExecutionProvider",
    "CPUExecutionProvider",
)
X = np.array([1, 2], np.float32)
FAILS = (PROBE, {"fail": "run"})
ALWAYS_FAILS = (PROBE, {"fail": "run", "failures": "-1"})


def session_of(*providers: object, **options: object) -> tenon.InferenceSession:
    """y = x + x on these providers."""
    return tenon.InferenceSession(graphs.double(), providers=list(providers), **options)


def run(session: tenon.InferenceSession) -> list[float]:
    return session.run(None, {"x": X})[0].tolist()


def core_options() -> tenon.SessionOptions:
    options = tenon.SessionOptions()
    options.add_session_config_entry("tenon.ep_fail_fallback", "1")
    return options


# FB-1, FB-3, FB-6
def test_falls_back_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    session = session_of(FAILS)
    assert session.get_providers() == [PROBE, CPU]
    assert run(session) == [2, 4]
    assert session.get_providers() == [CPU]
    assert session.get_provider_options() == {CPU: {}}
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("EP Error: [ONNXRuntimeError] : 11 : EP_FAIL : Non-zero status code")
    assert first.endswith(f"using ['{PROBE}', '{CPU}']")
    assert second == f"Falling back to ['{CPU}'] and retrying."
    assert run(session) == [2, 4]


# FB-1
def test_falls_back_in_runs_with_values() -> None:
    session = session_of(FAILS)
    value = tenon.OrtValue.ortvalue_from_numpy(X)
    (result,) = session.run_with_ort_values(None, {"x": value})
    assert result.numpy().tolist() == [2, 4]
    assert session.get_providers() == [CPU]


# FB-1
@pytest.mark.parametrize(("code", "error"), [("1", Fail), ("2", InvalidArgument)])
def test_other_failures_pass(code: str, error: type[Exception]) -> None:
    session = session_of((PROBE, {"fail": "run", "code": code}))
    with pytest.raises(error):
        run(session)
    assert session.get_providers() == [PROBE, CPU]
    assert run(session) == [2, 4]  # the session is untouched


# FB-2, FB-4
def test_disarmed_sessions_raise() -> None:
    session = session_of(FAILS)
    session.disable_fallback()
    with pytest.raises(EPFail):
        run(session)
    assert session.get_providers() == [PROBE, CPU]
    assert session.get_fallback_report()["state"] == "off"
    for off in (False, 0):
        session = session_of(ALWAYS_FAILS, enable_fallback=off)
        with pytest.raises(EPFail):
            run(session)
        session.enable_fallback()
        assert run(session) == [2, 4]


# FB-2, FB-16
def test_a_disarmed_creation_raises() -> None:
    with pytest.raises(ValueError, match="must be either strings"):
        session_of(7, enable_fallback=False)


# FB-5: the second failure is that of another model, whose probe is set by the caller.
def test_falls_back_once() -> None:
    session = session_of(FAILS)
    assert run(session) == [2, 4]
    session.set_providers([ALWAYS_FAILS])
    for _ in range(2):
        with pytest.raises(EPFail):
            run(session)
    assert session.get_providers() == [PROBE, CPU]


# FB-3, FB-5: the caller gets the exception of the replay.
def test_gives_what_the_replay_raises() -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["t"]), helper.make_node("Add", ["t", "z"], ["y"])]
    model = graphs.model(nodes, [graphs.tensor("x"), graphs.tensor("z")], [graphs.tensor("y")])
    session = tenon.InferenceSession(model, providers=[FAILS])
    with pytest.raises(Exception, match=r"(?i)broadcast|expected") as caught:
        session.run(None, {"x": X, "z": np.zeros(3, np.float32)})
    assert not isinstance(caught.value, EPFail)
    assert session.get_providers() == [CPU]


# FB-2: armed again after a use.
def test_may_be_armed_again() -> None:
    session = session_of(FAILS)
    assert run(session) == [2, 4]
    session.enable_fallback()
    session.set_providers([FAILS])
    assert run(session) == [2, 4]
    assert session.get_providers() == [CPU]


# FB-6: the probe is not called any more.
def test_later_runs_leave_the_probe_alone(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    session = session_of((PROBE, {"fail": "run", "log": str(log)}))
    for _ in range(3):
        assert run(session) == [2, 4]
    assert log.read_text().splitlines() == ["run Add", "session_end 2", "release"]


# FB-7: the old session ends, and its trace is written, before the new one begins.
def test_the_old_session_ends_first(tmp_path: pathlib.Path) -> None:
    options = tenon.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    session = session_of(FAILS, sess_options=options)
    inputs = session.get_inputs()[0].name
    assert run(session) == [2, 4]
    assert session.get_inputs()[0].name == inputs
    assert session.get_session_options() is options
    session.end_profiling()
    traces = sorted(tmp_path.iterdir())
    assert len(traces) == 2
    reasons = [
        event["args"]["reason"]
        for event in json.loads(traces[0].read_text())
        if event["name"] == "ep_session_end"
    ]
    assert set(reasons) == {"REPLACED_BY_FALLBACK"}


# FB-7: a binding keeps the old session alive.
def test_bindings_keep_their_session(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log"
    session = session_of((PROBE, {"fail": "run", "log": str(log)}))
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    assert run(session) == [2, 4]
    assert "release" not in log.read_text()
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [2, 4]
    del binding
    assert log.read_text().splitlines()[-2:] == ["session_end 2", "release"]


# FB-8
def test_missing_inputs_are_no_failure_of_a_provider() -> None:
    session = session_of(FAILS)
    with pytest.raises(ValueError, match="Required inputs"):
        session.run(None, {})
    assert session.get_providers() == [PROBE, CPU]


# FB-9
@pytest.mark.parametrize("names", [None, [], ()])
def test_no_names_are_all_outputs(names: object) -> None:
    nodes = [helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    model = graphs.model(nodes, [graphs.tensor("x")], [graphs.tensor("a"), graphs.tensor("b")])
    session = tenon.InferenceSession(model, providers=[FAILS])
    assert [y.tolist() for y in session.run(names, {"x": X})] == [[2, 4], [-1, -2]]
    assert session.get_providers() == [CPU]


# FB-10
def test_other_runs_do_not_fall_back() -> None:
    session = session_of(ALWAYS_FAILS)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    with pytest.raises(EPFail):
        session.run_with_iobinding(binding)
    value = tenon.OrtValue.ortvalue_from_numpy(X)
    with pytest.raises(EPFail):
        session.run_with_ortvaluevector(None, ["x"], [value], ["y"], [], [])
    errors = run_async(session)
    assert len(errors) == 1
    assert "EP_FAIL" in errors[0][1]
    assert session.get_providers() == [PROBE, CPU]


def run_async(session: tenon.InferenceSession) -> list[tuple[list, str]]:
    """The arguments of each call of the callback."""
    import threading  # noqa: PLC0415

    calls, done = [], threading.Event()

    def callback(outputs: list, user_data: object, error: str) -> None:
        calls.append((outputs, error))
        done.set()

    session.run_async(None, {"x": X}, callback, None)
    assert done.wait(10)
    return calls


TENSORRT, CUDA = "TensorrtExecutionProvider", "CUDAExecutionProvider"
MIGRAPHX, ROCM = "MIGraphXExecutionProvider", "ROCMExecutionProvider"


# FB-11: the later form is the default; FB-12: names and pairs alike.
@pytest.mark.parametrize(
    ("available", "requested", "expected"),
    [
        ([TENSORRT, CUDA, CPU], [TENSORRT, CUDA], [CUDA, CPU]),
        ([TENSORRT, CUDA, CPU], [(TENSORRT, {}), (CUDA, {"device_id": 0})], [CUDA, CPU]),
        ([TENSORRT, CUDA, CPU], [TENSORRT], [CPU]),
        ([TENSORRT, CUDA, CPU], [CUDA], [CPU]),
        ([MIGRAPHX, ROCM, CPU], [MIGRAPHX, ROCM], [ROCM, CPU]),
        ([MIGRAPHX, ROCM, CPU], [ROCM], [CPU]),
        ([TENSORRT, MIGRAPHX, ROCM, CPU], [MIGRAPHX, ROCM], [CPU]),
        ([CUDA, CPU], [CUDA], [CPU]),
        ([CPU], None, [CPU]),
    ],
)
def test_chooses_as_onnxruntime(available: list, requested: object, expected: list) -> None:
    assert choose_fallback(requested, available) == expected


# FB-13: the same list would fail again.
def test_does_not_retry_the_same_providers(capsys: pytest.CaptureFixture[str]) -> None:
    session = session_of(ALWAYS_FAILS)
    session._fallback_providers = [PROBE, CPU]
    with pytest.raises(EPFail):
        run(session)
    assert capsys.readouterr().out == ""


# FB-14, FB-17: mistakes in the arguments are named by the banner.
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"providers": [7]}, "must be either strings or (string, dict) tuples"),
        ({"providers": CPU}, "should be a sequence"),
        ({"providers": [CPU], "provider_options": []}, "should be the same length"),
        ({"providers": [CPU], "provider_options": [3]}, "values must be dicts"),
        ({"providers": [(CPU, {})], "provider_options": [{}]}, "Only string values"),
    ],
)
def test_creation_falls_back(
    arguments: dict, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = tenon.InferenceSession(graphs.double(), **arguments)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "*************** EP Error ***************"
    assert lines[1].startswith("EP Error ")
    assert text in lines[1]
    assert lines[1].endswith(f" when using {arguments['providers']}")
    assert lines[2:] == [
        f"Falling back to ['{CPU}'] and retrying.",
        "****************************************",
    ]
    assert run(session) == [2, 4]
    assert session.get_fallback_report()["state"] == "used"
    session.set_providers([ALWAYS_FAILS])  # disarmed
    with pytest.raises(EPFail):
        run(session)


# FB-14: the second exception has the first as its cause.
def test_creation_that_fails_twice_says_why() -> None:
    with pytest.raises(NoSuchFile) as caught:
        tenon.InferenceSession("missing.onnx", providers=[7])
    assert isinstance(caught.value.__cause__, ValueError)


# FB-15: the library's own exceptions are not retried.
def test_creation_does_not_hide_other_failures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NoSuchFile):
        tenon.InferenceSession("missing.onnx", providers=[PROBE])
    with pytest.raises(EPFail):
        session_of((PROBE, {"fail": "create"}))
    with pytest.raises(Fail):
        session_of((PROBE, {"fail": "create", "code": "1"}))
    assert capsys.readouterr().out == ""


# FB-17
def test_warns_of_providers_that_are_missing_or_twice_there() -> None:
    with pytest.warns(UserWarning, match="'CUDAExecutionProvider' is not in available"):
        assert session_of(CUDA, PROBE).get_providers() == [PROBE, CPU]
    with pytest.warns(UserWarning, match="Duplicate provider"):
        assert session_of(PROBE, PROBE).get_providers() == [PROBE, CPU]


# FB-18: providers of the session options are not used for the fallback.
def test_ignores_the_options_providers() -> None:
    options = tenon.SessionOptions()
    options.add_provider(*ALWAYS_FAILS)
    session = tenon.InferenceSession(graphs.double(), options)
    assert session.get_providers() == [PROBE, CPU]
    assert run(session) == [2, 4]
    assert session.get_providers() == [CPU]


# FB-19
def test_set_providers_neither_arms_nor_disarms() -> None:
    session = session_of(CPU)
    session.set_providers([FAILS])
    assert run(session) == [2, 4]  # still armed
    session.set_providers([ALWAYS_FAILS])
    with pytest.raises(EPFail):  # still disarmed
        run(session)


# FB-20: the path, and the options with all their contents.
def test_keeps_model_and_options(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.double([2]))
    options = tenon.SessionOptions()
    options.intra_op_num_threads = 2
    options.add_session_config_entry("session.memory_limit", "1000000")
    session = tenon.InferenceSession(path, options, [FAILS])
    assert run(session) == [2, 4]
    kept = session.get_session_options()
    assert kept is options
    assert kept.get_session_config_entry("session.memory_limit") == "1000000"


# FB-21
def test_loses_the_providers_options() -> None:
    session = session_of((PROBE, {"fail": "run"}), (SECOND, {"ops": "Mul"}))
    assert session.get_provider_options()[PROBE] == {"fail": "run"}
    run(session)
    assert session.get_provider_options() == {CPU: {}}


# FB-24: the core does it, for all kinds of runs, and Python does nothing.
def test_the_core_falls_back_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    session = session_of(FAILS, sess_options=core_options())
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [2, 4]
    assert session.get_providers() == [CPU]
    session = session_of(FAILS, sess_options=core_options())
    ((outputs, error),) = run_async(session)
    assert (outputs[0].tolist(), error) == ([2, 4], "")
    session = session_of(FAILS, sess_options=core_options())
    values: list[tenon.OrtValue] = []
    x = tenon.OrtValue.ortvalue_from_numpy(X)
    session.run_with_ortvaluevector(None, ["x"], [x], ["y"], values, [])
    assert values[0].numpy().tolist() == [2, 4]
    assert session.get_fallback_report()["state"] == "used"
    assert capsys.readouterr().out == ""


# FB-41
def test_reports_either_kind() -> None:
    for options in (None, core_options()):
        session = session_of(FAILS, sess_options=options)
        assert session.get_fallback_report()["state"] == "armed"
        run(session)
        report = session.get_fallback_report()
        expected = {"state": "used", "from": [PROBE, CPU], "to": [CPU], "provider": PROBE}
        expected |= {"op_type": "Add", "code": 11, "replays": 1, "not_replayed": []}
        assert report.items() >= expected.items()
        assert "told to fail" in report["message"]
        assert report["rebuild_ms"] >= 0


# FB-40
def test_reports_of_runs() -> None:
    options = tenon.RunOptions()
    options.add_run_config_entry("tenon.run_report", "1")
    session = session_of(FAILS, sess_options=core_options())
    session.run(None, {"x": X}, options)
    assert options.get_run_report().items() >= {"attempts": 2, "fallback": True}.items()


# Section 6: the error says that a session could not be created again.
def test_a_failed_rebuild_is_what_is_raised(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(graphs.double())
    session = tenon.InferenceSession(path, providers=[FAILS])
    path.unlink()
    with pytest.raises(NoSuchFile):
        run(session)
    with pytest.raises(RuntimeError, match="could not be made anew"):
        run(session)


def test_models_are_taken_as_protos_too() -> None:
    model = onnx.load_from_string(graphs.double())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(tenon.InferenceSession(model)) == [2, 4]
