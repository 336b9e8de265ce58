"""tenon eps, tenon placement, and --ep."""

import json

import cli_models
import numpy as np
import pytest
from onnx import TensorProto, helper


@pytest.fixture
def sample(tenon) -> str:
    build = tenon.command.parent.parent
    library = build / "examples" / "plugin-ep" / "libsample_provider.so"
    if not library.exists():
        pytest.skip("the sample provider is not built")
    return str(library)


@pytest.fixture
def model(tmp_path) -> str:
    return cli_models.save(
        tmp_path / "m.onnx",
        [
            helper.make_node("Mul", ["x", "x"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Sin", ["b"], ["y"]),
        ],
        [cli_models.value("x", [2, 3])],
        [cli_models.value("y", [2, 3])],
    )


def test_eps_lists_the_cpu_first(tenon):
    (cpu,) = tenon.json("eps")
    assert (cpu["ep"], cpu["device"], cpu["ep_vendor"]) == ("CPUExecutionProvider", "CPU", "Tenon")
    assert "CPUExecutionProvider" in tenon.ok("eps")


def test_eps_lists_what_a_library_offers(tenon, sample):
    cpu, device = tenon.json("eps", "--ep", sample)
    assert cpu["ep"] == "CPUExecutionProvider"
    assert (device["ep"], device["ep_metadata"]["version"]) == ("SampleProvider", "1.0.0")
    assert device["ep_metadata"]["library_path"] == sample


def test_placement_tells_who_takes_what(tenon, sample, model):
    alone = tenon.json("placement", model)
    assert {node["ep"] for node in alone} == {"CPUExecutionProvider"}
    shared = tenon.json("placement", model, "--ep", sample)
    assert {(node["ep"], node["op_type"]) for node in shared} == {
        ("SampleProvider", "Mul"),
        ("SampleProvider", "Relu"),
        ("CPUExecutionProvider", "Sin"),
    }
    assert "SampleProvider" in tenon.ok("placement", model, "--ep", sample)


def test_placement_tells_why_not_the_others(tenon, sample, model, tmp_path):
    nodes = tenon.json("placement", model, "--ep", sample)
    reasons = {node["op_type"]: node["refused"] for node in nodes}
    assert reasons == {
        "Mul": [{"ep": "CPUExecutionProvider", "reason": "is asked after SampleProvider"}],
        "Relu": [{"ep": "CPUExecutionProvider", "reason": "is asked after SampleProvider"}],
        "Sin": [{"ep": "SampleProvider", "reason": "claimed no Sin"}],
    }
    text = tenon.ok("placement", model, "--ep", sample)
    assert "not taken by" in text
    assert "claimed no Sin" in text
    half = cli_models.save(
        tmp_path / "half.onnx",
        [
            helper.make_node("Mul", ["x", "x"], ["y"], name="floats"),
            helper.make_node("Mul", ["i", "i"], ["j"], name="integers"),
        ],
        [cli_models.value("x", [2]), cli_models.value("i", [2], TensorProto.INT64)],
        [cli_models.value("y", [2]), cli_models.value("j", [2], TensorProto.INT64)],
    )
    refused = {
        node["name"]: node["refused"] for node in tenon.json("placement", half, "--ep", sample)
    }
    assert [one["reason"] for one in refused["integers"]] == [
        "claimed 1 other Mul, but not this one"
    ]
    assert tenon.json("placement", model)[0]["refused"] == [], "there is no other provider"
    other = cli_models.identity(tmp_path / "identity.onnx", [2], TensorProto.INT64)
    (node,) = tenon.json("placement", other, "--ep", sample)
    assert node["refused"] == [{"ep": "SampleProvider", "reason": "claimed nothing of this model"}]


def test_a_run_uses_the_provider(tenon, tmp_path, sample, model):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    arguments = ["run", model, "--input", "x=x.npy", "--ep", sample, "--output", "y=y.npy"]
    tenon.ok(*arguments)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.sin(x * x), rtol=1e-6)


def test_a_provider_of_several_devices_uses_one(tenon, monkeypatch, model):
    library = tenon.command.parent.parent / "plugins" / "opencl" / "libtenon_opencl.so"
    monkeypatch.setenv("POCL_DEVICES", "basic pthread")  # two devices, if PoCL is the installed one
    devices = tenon("eps", "--json", "--ep", str(library))
    count = sum(d["ep"] == "OpenCLExecutionProvider" for d in json.loads(devices.stdout or "[]"))
    if count < 2:
        pytest.skip("OpenCL has no two devices here")
    arguments = ["placement", model, "--ep", str(library)]
    for more in ([], ["--ep-device", "0"], ["--ep-device", str(count - 1)]):
        assert {node["ep"] for node in tenon.json(*arguments, *more)} == {"OpenCLExecutionProvider"}
    result = tenon(*arguments, "--ep-device", str(count))
    assert result.returncode == 1
    assert f"OpenCLExecutionProvider has {count} device(s), counted from 0" in result.stderr


@pytest.mark.parametrize("place", ["-1", "99999999999999999999", "first"])
def test_the_place_of_a_device_is_a_small_number(tenon, sample, model, place):
    result = tenon("placement", model, "--ep", sample, f"--ep-device={place}")
    assert result.returncode != 0
    assert f"--ep-device: Value {place} not in range" in result.stderr


def test_the_place_of_a_device_needs_a_provider(tenon, model):
    result = tenon("placement", model, "--ep-device", "0")
    assert result.returncode != 0
    assert "--ep-device requires --ep" in result.stderr


def test_a_library_that_is_none_is_named(tenon, tmp_path, model):
    (tmp_path / "empty.so").write_bytes(b"")
    for library in ("empty.so", "missing.so"):
        result = tenon("run", model, "--ep", library)
        assert result.returncode == 1
        assert library in result.stderr
