"""Runs client.test.mjs: onnxruntime-node from npm with libtenon.so instead of its library.

Usage: run_client.py LIBRARY PACKAGES

PACKAGES is a folder with node_modules/onnxruntime-node, as `./dev node` installs it. Exits with 77,
which means "skipped", if that or Node itself is missing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

try:
    import onnx
    from onnx import TensorProto, helper
except ImportError:
    print("skipped: needs the Python package onnx")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "string": TensorProto.STRING,
    **{
        name: getattr(TensorProto, name.upper())
        for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool".split()
    },
}


def save(path: pathlib.Path, nodes: list, inputs: list, outputs: list) -> None:
    """Writes a model."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    opsets = [helper.make_opsetid("", 19)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)


def write_models(folder: pathlib.Path) -> None:
    """Identity for every type, and y = x + x with the size of x."""
    value = helper.make_tensor_value_info
    for name, number in TYPES.items():
        node = helper.make_node("Identity", ["x"], ["y"])
        save(
            folder / f"identity_{name}.onnx",
            [node],
            [value("x", number, None)],
            [value("y", number, None)],
        )
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Size", ["x"], ["n"])]
    save(
        folder / "sum.onnx",
        nodes,
        [value("x", TensorProto.FLOAT, ["size"])],
        [value("y", TensorProto.FLOAT, ["size"]), value("n", TensorProto.INT64, [])],
    )


def copy_package(packages: pathlib.Path, library: pathlib.Path, into: pathlib.Path) -> None:
    """The package without its library, and ours instead."""
    unwanted = shutil.ignore_patterns("win32", "darwin", "arm64", "libonnxruntime*", "*.dll")
    shutil.copytree(packages / "node_modules", into / "node_modules", ignore=unwanted)
    (binding,) = (into / "node_modules/onnxruntime-node/bin").glob("napi-v*/linux/x64/*.node")
    (binding.parent / "libonnxruntime.so.1").symlink_to(library.resolve())


def main() -> int:
    """The exit status of the tests."""
    library, packages = map(pathlib.Path, sys.argv[1:])
    node = shutil.which("node")
    if node is None or not (packages / "node_modules/onnxruntime-node/bin").is_dir():
        print("skipped: needs Node and onnxruntime-node; ./dev node installs them")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_package(packages, library, folder)
        write_models(folder)
        environment = {
            **os.environ,
            "TENON_NODE_PACKAGE": str(folder),
            "TENON_NODE_MODELS": str(folder),
            "TENON_NODE_DIGITS": str(ROOT / "examples/digits/digits.onnx"),
        }
        tests = str(pathlib.Path(__file__).with_name("client.test.mjs"))
        return subprocess.run([node, "--test", tests], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
