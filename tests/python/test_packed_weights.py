"""Packed weights in files: session config "tenon.packed_weights_folder"."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tenon
from onnx import helper, numpy_helper


def weight(name: str, *shape: int, dtype: type = np.float32) -> object:
    values = np.random.default_rng(len(name)).standard_normal(shape) * 20
    return numpy_helper.from_array(values.astype(dtype), name)


def model(kind: str) -> bytes:
    """y of x, with one weight of 128 KiB or more."""
    node = {
        "product": helper.make_node("MatMul", ["x", "w"], ["y"]),
        "convolution": helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
        "recurrence": helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=128),
        "int8 product": helper.make_node("MatMulInteger", ["x", "w"], ["y"]),
    }[kind]
    shape, weights, element = {
        "product": ([3, 256], [weight("w", 256, 256)], np.float32),
        "convolution": ([1, 64, 20, 20], [weight("w", 64, 64, 3, 3)], np.float32),
        "recurrence": (
            [4, 2, 128],
            [weight("w", 1, 384, 128), weight("r", 1, 384, 128)],
            np.float32,
        ),
        "int8 product": ([3, 512], [weight("w", 512, 512, dtype=np.int8)], np.uint8),
    }[kind]
    x = helper.make_tensor_value_info(
        "x", helper.np_dtype_to_tensor_dtype(np.dtype(element)), shape
    )
    kind_of_y = np.int32 if element is np.uint8 else np.float32
    y = helper.make_tensor_value_info(
        "y", helper.np_dtype_to_tensor_dtype(np.dtype(kind_of_y)), None
    )
    graph = helper.make_graph([node], "g", [x], [y], initializer=weights)
    return helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]
    ).SerializeToString()


def run(content: bytes, folder: pathlib.Path | None, runs: int = 1) -> np.ndarray:
    options = tenon.SessionOptions()
    if folder is not None:
        options.add_session_config_entry("tenon.packed_weights_folder", str(folder))
    session = tenon.InferenceSession(content, options)
    (x,) = session.get_inputs()
    dtype = np.uint8 if "uint8" in x.type else np.float32
    values = (np.arange(np.prod(x.shape)) % 23).reshape(x.shape).astype(dtype)
    for _ in range(runs):
        (y,) = session.run(None, {"x": values})
    return y


KINDS = ["product", "convolution", "recurrence", "int8 product"]


@pytest.mark.parametrize("kind", KINDS)
def test_results_have_the_same_bits(kind: str, tmp_path: pathlib.Path) -> None:
    content = model(kind)
    expected = run(content, None, 3)
    assert np.array_equal(run(content, tmp_path), expected)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files, "the first run wrote none"
    for _ in range(2):
        assert np.array_equal(run(content, tmp_path, 2), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_another_process_maps_the_files(tmp_path: pathlib.Path) -> None:
    content = model("product")
    (tmp_path / "model.onnx").write_bytes(content)
    folder = tmp_path / "packed"
    folder.mkdir()
    run(content, folder)
    code = (
        "import pathlib, sys, numpy as np, tenon\n"
        "options = tenon.SessionOptions()\n"
        "options.add_session_config_entry('tenon.packed_weights_folder', sys.argv[2])\n"
        "session = tenon.InferenceSession(sys.argv[1], options)\n"
        "session.run(None, {'x': np.ones((3, 256), np.float32)})\n"
        "print(pathlib.Path('/proc/self/maps').read_text())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.onnx"), str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    (file,) = folder.iterdir()
    assert f"{file}\n" in done.stdout


def test_damaged_files_are_replaced(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture) -> None:
    content = model("product")
    expected = run(content, None)
    run(content, tmp_path)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    capfd.readouterr()
    assert np.array_equal(run(content, tmp_path), expected)
    assert f"'{file}' is no file of these packed weights" in capfd.readouterr().err
    assert file.read_bytes() == whole


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_a_warning(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture
) -> None:
    tmp_path.chmod(0o500)
    run(model("product"), tmp_path)
    assert "packed weights: cannot" in capfd.readouterr().err


def test_the_folder_must_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Exception, match=r"folder of packed weights '.*absent': there is no such"):
        run(model("product"), tmp_path / "absent")
