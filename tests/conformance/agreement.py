"""What onnx.reference and onnxruntime make of a case, and whether Tenon's outputs agree."""

from __future__ import annotations

import re
from typing import Any

import generated
import numpy as np
from onnx.reference import ReferenceEvaluator

# Relative and absolute tolerance by type. Doubles leave no room for arithmetic in float32, but for
# attributes, which are floats.
TOLERANCES = {"float64": 3e-8, "float32": 1e-4, "float16": 4e-3, "bfloat16": 4e-2}
LEAST_TOLERANCE = 0.13  # of the float8 types: a step of float8e5m2

# Where onnx.reference departs from the standard and onnxruntime does not have the case: regular
# expressions for the names of whole cases.
REFERENCE_IS_WRONG = {
    r"AveragePool-1 (float|double|float16) 1": "counts pads, for which version 1 has no attribute",
    r"CenterCropPad-18 string 0": "pads strings with 0",
    r"DequantizeLinear-(23|24|25|28) float4e2m1 1": "leaves out the zero point of floats",
    r"Det-22 bfloat16 [01]": "returns float64",
    r"Erf-9 int(8|16|32|64) [345]": "approximates, and makes -1 of -0.99999998",
    r"Gelu-20 double [37]": "approximates Erf",
    r"Gemm-6 float16 [01]": "returns float32",
    r"GroupNormalization-21 double 0": "normalizes in float32, as stash_type lets it",
    r"HardSwish-(14|22) double [57]": "takes alpha as a float",
    r"Hardmax-(1 double|1 float16|11 double) 0": "does not flatten",
    r"LRN-(1|13) double 0": "takes the batch for the number of channels",
    r"LogSoftmax-1 float16 0": "does not flatten",
    r"ReduceSumSquare-(1|11|13|18) uint32 [01]": "returns uint64",
    r"Resize-(11|13|18|19) complex(64|128) 0": "takes the real part",
    r"Selu-1 double [0134567]": "has the defaults of version 6",
    r"Softmax-1 float16 0": "does not flatten",
    r"Trilu-14 string 0": "fills with 0",
}


def is_known_wrong(case: generated.Case) -> bool:
    return any(re.fullmatch(names, case.name) for names in REFERENCE_IS_WRONG)


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
