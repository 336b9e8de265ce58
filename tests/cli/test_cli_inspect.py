"""tenon inspect, check and bench."""

import re

import cli_models
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


def test_inspect_counts_what_the_onnx_package_counts(tenon, tmp_path):
    weights = numpy_helper.from_array(np.zeros((8, 5), np.float32), "w")
    path = cli_models.save(
        tmp_path / "m.onnx",
        [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Add", ["a", "b"], ["c"]),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        [cli_models.value("x", ["batch", 8])],
        [cli_models.value("y", ["batch", 5])],
        [weights],
    )
    report = tenon.json("inspect", path, "--dim", "batch=4")
    model = onnx.load(path)
    assert report["ir_version"] == model.ir_version
    assert report["opsets"] == [{"domain": "", "version": 20}]
    assert (report["producer_name"], report["producer_version"]) == ("tests", "1.0")
    assert report["inputs"] == [{"name": "x", "type": "tensor(float)", "shape": [4, 8]}]
    assert report["outputs"] == [{"name": "y", "type": "tensor(float)", "shape": [4, 5]}]
    assert report["nodes"] == len(model.graph.node)
    assert [(op["op_type"], op["count"]) for op in report["operators"]] == [
        ("Relu", 2),
        ("Add", 1),
        ("MatMul", 1),
    ]
    assert report["parameters"] == {"tensors": 1, "elements": 40, "bytes": 160}
    # a, b and c are alive while c is made.
    assert report["activations"]["peak_bytes"] == 3 * 4 * 5 * 4
    assert report["problem"] is None
    text = tenon.ok("inspect", path)
    assert "batch = 1" in text and "MatMul" in text and "[batch, 8]" in text


def test_inspect_shows_invalid_models_with_their_problem(tenon, tmp_path):
    path = cli_models.save(
        tmp_path / "m.onnx",
        [helper.make_node("Rellu", ["x"], ["y"])],
        [cli_models.value("x", [1])],
        [cli_models.value("y", [1])],
    )
    assert "problem: " in tenon.ok("inspect", path)
    assert "Rellu" in tenon.json("inspect", path)["problem"]


def test_check_judges_each_model(tenon, tmp_path):
    good = cli_models.identity(tmp_path / "good.onnx", [1])
    (tmp_path / "bad.onnx").write_bytes(good.read_bytes()[:-5])
    assert tenon.ok("check", "good.onnx") == "'good.onnx': OK\n"
    result = tenon("check", "good.onnx", "bad.onnx", "none.onnx")
    assert result.returncode == 1
    assert [line.count("OK") for line in result.stdout.splitlines()] == [1, 0, 0]
    assert "bad.onnx" in result.stdout and "none.onnx" in result.stdout


def quantized(path):
    """y = quantize(Conv(x)), whose optimized form rounds once where this one rounds twice."""
    random = np.random.default_rng(3)
    constants = {
        "scale": np.float32(0.1),
        "zero": np.uint8(7),
        "w": random.integers(-99, 99, (8, 3, 3, 3)).astype(np.int8),
        "w_scale": np.float32(0.01),
        "w_zero": np.int8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "scale", "zero"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale", "w_zero"], ["wf"]),
        helper.make_node("Conv", ["xf", "wf"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["y"], "last"),
    ]
    return cli_models.save(
        path,
        nodes,
        [cli_models.value("x", [1, 3, 40, 40])],
        [cli_models.value("y", [1, 8, 38, 38], onnx.TensorProto.UINT8)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )


def test_check_names_the_optimization_that_changes_outputs(tenon, tmp_path):
    add = cli_models.add(tmp_path / "add.onnx", ["n", 4])
    assert "'add.onnx': OK, 0 optimizations change outputs by 0 " in tenon.ok(
        "check", "--bisect", add.name, "--dim", "n=3"
    )
    path = quantized(tmp_path / "q.onnx")
    options = ["--bisect", "--input", "x=random", "--seed", "1"]
    exact = tenon("check", path, *options, "--tolerance", "0")
    assert exact.returncode == 1
    # Where the processor has dot products of bytes, the convolution gets another layout as well.
    assert re.search(
        r"from optimization 1 of [12] on: 'quantized conv' at QuantizeLinear-19 node 'last'",
        exact.stdout,
    )
    (report,) = tenon.json("check", path, *options, "--tolerance", "0.1")
    assert report["ok"] and report["optimizations"] in (1, 2) and 0 < report["difference"] <= 0.1


def test_inspect_says_what_is_not_quantized(tenon, tmp_path):
    path = quantized(tmp_path / "q.onnx")
    text = tenon.ok("inspect", "--quantization", path)
    assert text.splitlines()[0] == "1 of 4 nodes stay"
    assert "it quantizes an input of the graph" in text
    model = onnx.load(path)
    model.graph.node.extend(
        [
            helper.make_node("DequantizeLinear", ["y", "scale", "zero"], ["yf"], "before"),
            helper.make_node("Hardmax", ["yf"], ["most"], "largest"),
            helper.make_node("Add", ["most", "yf"], ["sum"], "sum"),
            helper.make_node("QuantizeLinear", ["sum", "scale", "zero"], ["z"], "after"),
        ]
    )
    model.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.UINT8, None))
    onnx.save(model, path)
    report = tenon.json("inspect", "--quantization", path)
    assert report["nodes"] == 6
    stay = dict(line.split(": ") for line in report["stay"])
    stay = {node.split()[-1].strip("'"): reason for node, reason in stay.items()}
    assert stay["before"] == "Hardmax-13 node 'largest' has no form on integers"
    assert stay["after"] == "input 0 'most' of Add-14 node 'sum' is not dequantized"


def test_bench_reports_ordered_figures(tenon, tmp_path):
    model = cli_models.add(tmp_path / "m.onnx", ["n", 64])
    options = ["--dim", "n=32", "--warmup", "2", "--threads", "1"]
    report = tenon.json("bench", model, "--runs", "50", *options)
    assert report["runs"] == 50
    assert report["inputs"][0] == {"name": "left", "type": "float", "shape": [32, 64]}
    latency = [report["latency_ms"][key] for key in ("min", "p50", "p90", "p99", "max")]
    assert latency == sorted(latency) and latency[0] > 0
    assert report["runs_per_second"] == pytest.approx(1e3 / report["latency_ms"]["mean"])
    assert report["session_ms"] > 0 and report["first_run_ms"] > 0
    assert report["peak_memory_bytes"] > 1 << 20
    assert tenon.json("bench", model, "--seconds", "0.05", *options)["runs"] > 1
    assert "p99" in tenon.ok("bench", model, "--runs", "1", *options)
