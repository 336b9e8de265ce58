"""Tenon under the name onnxruntime, for programs that cannot be changed."""

import pathlib
import sys

import tenon.as_onnxruntime

_folder = pathlib.Path(__file__).parent
if next(_folder.glob("capi/onnxruntime_pybind11_state*"), None):
    raise ImportError(
        f"tenon-onnxruntime and onnxruntime are both installed in {_folder}, over each other. "
        "Uninstall both, then install one of them again: pip uninstall onnxruntime "
        "tenon-onnxruntime"
    )
tenon.as_onnxruntime.take_over(sys.modules[__name__])
