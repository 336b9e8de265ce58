"""What onnx.reference and onnxruntime make of a case, and whether Tenon's outputs agree."""

from __future__ import annotations

from typing import Any

import generated
import numpy as np
from onnx.reference import ReferenceEvaluator

# Relative and absolute tolerance by type. Doubles leave no room for arithmetic in float32, but for
# attributes, which are floats.
TOLERANCES = {"float64": 3e-8, "float32": 1e-4, "float16": 4e-3, "bfloat16": 4e-2}
LEAST_TOLERANCE = 0.13  # of the float8 types: a step of float8e5m2

# Where onnx.reference departs from the standard and onnxruntime does not have the case.
REFERENCE_IS_WRONG = {
    "AveragePool-1": "counts pads, for which version 1 has no attribute",
    "BatchNormalization-9": "trains whenever there is a momentum",
    "CenterCropPad-18": "pads strings with 0",
    "DequantizeLinear": "leaves out the zero point of floats",
    "Det-22": "returns float64 for bfloat16",
    "Erf-9": "approximates, so that integers come out as -1 for -0.99999998",
    "Gemm-6": "returns float32 for float16",
    "Gelu-20": "approximates Erf",
    "GroupNormalization-21": "normalizes in float32, as stash_type lets it",
    "HardSwish": "takes alpha as a float",
    "Hardmax-1": "does not flatten",
    "Hardmax-11": "does not flatten",
    "LRN": "takes the batch for the number of channels",
    "LogSoftmax-1": "does not flatten",
    "LogSoftmax-11": "does not flatten",
    "ReduceSumSquare": "returns 64-bit integers for narrower ones",
    "Resize": "takes the real part",
    "Selu-1": "has the defaults of version 6",
    "Softmax-1": "does not flatten",
    "Softmax-11": "does not flatten",
    "Trilu-14": "fills strings with 0",
}


def is_known_wrong(case: generated.Case) -> bool:
    operator = case.name.split()[0]
    return operator in REFERENCE_IS_WRONG or operator.split("-")[0] in REFERENCE_IS_WRONG


def references(case: generated.Case) -> list[list[Any]]:
    """The outputs of those references that run the case."""
    found = []
    for run in (run_reference, run_onnxruntime):
        try:
            found.append(run(case))
        except Exception:  # it lacks the operator, the version or the type
            continue
    return found


def run_reference(case: generated.Case) -> list[Any]:
    return ReferenceEvaluator(case.model).run(None, case.feeds)


def run_onnxruntime(case: generated.Case) -> list[Any]:
    import onnxruntime  # noqa: PLC0415

    onnxruntime.set_default_logger_severity(4)
    model = type(case.model)()
    model.CopyFrom(case.model)
    model.ir_version = 10
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, case.feeds)


def difference(actual: list[Any], expected: list[Any]) -> str:
    """The first difference; empty if there is none."""
    for i, (ours, theirs) in enumerate(zip(actual, expected, strict=False)):
        text = value_difference(ours, theirs)
        if text:
            return f"output {i}: {text}"
    return ""


def value_difference(actual: Any, expected: Any) -> str:
    if not isinstance(actual, list):
        return array_difference(actual, np.asarray(expected))
    if len(actual) != len(expected):
        return f"expected a sequence of {len(expected)}, got one of {len(actual)}"
    return difference(actual, expected)


def array_difference(actual: np.ndarray, expected: np.ndarray) -> str:
    if actual.shape != expected.shape:
        return f"expected shape {expected.shape}, got {actual.shape}"
    if expected.dtype.kind in "UO":
        return "" if np.array_equal(actual, expected) else f"expected {expected}, got {actual}"
    if actual.dtype != expected.dtype:
        return f"expected type {expected.dtype}, got {actual.dtype}"
    if actual.dtype.kind in "iub":
        return "" if np.array_equal(actual, expected) else f"expected {expected}, got {actual}"
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    tolerance = TOLERANCES.get(actual.dtype.name, LEAST_TOLERANCE)
    if actual.dtype.kind == "c":
        tolerance = 1e-4
    ours, theirs = actual.astype(wide), expected.astype(wide)
    if np.allclose(ours, theirs, tolerance, tolerance, equal_nan=True):
        return ""
    worst = np.nanargmax(np.abs(ours - theirs))
    return f"expected {theirs.flat[worst]}, got {ours.flat[worst]} at {worst}"
