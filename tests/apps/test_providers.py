"""Execution providers that others wrote, as plugins."""

import pathlib

from running import compare, need


def test_openvino_computes_all_nodes(tmp_path: pathlib.Path, packages: pathlib.Path) -> None:
    need("onnxruntime_ep_openvino")
    compare(tmp_path, "openvino.py", path=packages, rtol=1e-3)
