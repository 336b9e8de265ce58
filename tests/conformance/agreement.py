"""The results of onnx.reference, onnxruntime and NumPy for a case, and whether Tenon's outputs
agree.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import generated
import numpy as np
import onnx
import own_references
import recipes
import ulps
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """How far a number may be from the expected one, in units in the last place of its type."""

    ulps: float = 4
    # Whether the unit is that of the largest number of the output: of sums whose terms may cancel.
    of_largest: bool = False
    least: float = 0  # the size of what cancels where the output alone does not show it


SUM = Tolerance(of_largest=True)
# Of operators that the default Tolerance() does not fit.
TOLERANCES = {
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "Gemm", "MatMul", "Det"), SUM),
    **dict.fromkeys(("CausalConvWithState", "Einsum"), SUM),
    **dict.fromkeys(("LinearAttention", "LinearClassifier", "LinearRegressor"), SUM),
    **dict.fromkeys(("AffineGrid", "HardSigmoid", "HardSwish", "BlackmanWindow"), SUM),
    **dict.fromkeys(("BatchNormalization", "GroupNormalization", "InstanceNormalization"), SUM),
    **dict.fromkeys(("LayerNormalization", "LogSoftmax", "MeanVarianceNormalization"), SUM),
    **dict.fromkeys(("Adagrad", "Adam", "Momentum"), SUM),
    **dict.fromkeys(("GRU", "LSTM", "RNN", "SVMClassifier"), Tolerance(8, of_largest=True)),
    **dict.fromkeys(("Attention", "DFT", "STFT"), Tolerance(16, of_largest=True)),
    "Gelu": Tolerance(least=1),  # 1 + erf(x)
}


def tolerance_of(case: generated.Case) -> Tolerance:
    return TOLERANCES.get(case.schema.name, Tolerance())


# Where onnx.reference departs from the standard and onnxruntime does not have the case: regular
# expressions for the names of whole cases.
REFERENCE_IS_WRONG = {
    r"CenterCropPad-18 string [01]": "pads strings with 0",
    r"Pad-2[45] float8e8m0 [45]": "has no 0 to fill with, but a least value",
    r"Pad-(18 string [34]|(19|2[1345]) string [45])": "pads strings with 0",
    r"Trilu-14 string [0-5]": "fills with 0",
}


def is_known_wrong(case: generated.Case) -> bool:
    return any(re.fullmatch(names, case.name) for names in REFERENCE_IS_WRONG)


def references(case: generated.Case) -> Iterator[list[Any]]:
    """The outputs of those references that run the case, the simplest way to them first."""
    runs = [run_reference, run_onnxruntime, run_own, run_same_version]
    for run in [*runs, *(functools.partial(run_wider, run=run) for run in runs[:3])]:
        try:
            outputs = run(case)
        except Exception:  # it lacks the operator, the version or the type
            continue
        yield outputs


def run_reference(case: generated.Case) -> list[Any]:
    """In the types of the standard: NumPy often gives wider ones."""
    outputs = ReferenceEvaluator(case.model).run(None, case.feeds)
    dtypes = output_types(case.schema, case.call)
    return [in_type(y, dtype) for y, dtype in zip(outputs, dtypes, strict=True)]


def in_type(value: Any, dtype: np.dtype | None) -> Any:
    if dtype is None or dtype.kind == "O" or value is None or isinstance(value, (list, dict)):
        return value
    return np.asarray(value).astype(dtype)


def output_types(schema: onnx.defs.OpSchema, call: recipes.Call) -> list[np.dtype | None]:
    """Those that the schema says, by itself or by an input of the same type."""
    known = {f"tensor({name})": np.dtype(dtype) for name, dtype in recipes.NUMPY_TYPES.items()}
    for name, value in zip(formals(schema.inputs, len(call.inputs)), call.inputs, strict=True):
        if isinstance(value, np.ndarray):
            known[name] = value.dtype
    return [known.get(name) for name in formals(schema.outputs, call.outputs)]


def formals(declared: Sequence[onnx.defs.OpSchema.FormalParameter], count: int) -> list[str]:
    """The type of each of `count` values; the last one declared may stand for several."""
    names = [formal.type_str for formal in declared]
    return (names + names[-1:] * count)[:count]


def run_onnxruntime(case: generated.Case) -> list[Any]:
    import onnxruntime  # noqa: PLC0415

    return onnxruntime_session(case).run(None, generated.feeds_of(case, onnxruntime))


def onnxruntime_session(case: generated.Case) -> Any:
    import onnxruntime  # noqa: PLC0415
    from saturation import exact_session  # noqa: PLC0415

    onnxruntime.set_default_logger_severity(4)
    model = type(case.model)()
    model.CopyFrom(case.model)
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # by which some operators round
    return exact_session(model.SerializeToString(), options)


def run_own(case: generated.Case) -> list[Any]:
    return own_references.FUNCTIONS[case.schema.name](case.schema, case.call)


def run_same_version(case: generated.Case) -> list[Any]:
    """By another version that says the same."""
    schema = case.schema
    version = own_references.SAME_AS[f"{schema.name}-{schema.since_version}"]
    newer = onnx.defs.get_schema(schema.name, version, schema.domain)
    return run_any(changed(case, newer, case.call))


def changed(case: generated.Case, schema: onnx.defs.OpSchema, call: recipes.Call) -> generated.Case:
    made = generated.model_of(schema, call)
    return generated.Case(case.name, *made, schema, case.type_name, call)


def run_wider(case: generated.Case, run: Run) -> list[Any]:
    """In a type that has all values of the one under test, then in that.

    In ai.onnx.ml that is float32, in which most of its operators answer anyway.
    """
    narrow = np.dtype(recipes.NUMPY_TYPES[case.type_name])
    wide = np.dtype(np.float32 if case.schema.domain == "ai.onnx.ml" else wider(narrow))

    def widened(value: Any) -> Any:
        if isinstance(value, onnx.TensorProto):
            return numpy_helper.from_array(widened(numpy_helper.to_array(value)))
        is_narrow = isinstance(value, np.ndarray) and value.dtype == narrow
        return value.astype(wide) if is_narrow else value

    inputs = [widened(value) for value in case.call.inputs]
    attributes = {name: widened(value) for name, value in case.call.attributes.items()}
    call = dataclasses.replace(case.call, inputs=inputs, attributes=attributes)
    outputs = run(changed(case, case.schema, call))
    known = output_types(case.schema, case.call)
    return [in_type(y, dtype) for y, dtype in zip(outputs, known, strict=True)]


def wider(dtype: np.dtype) -> type:
    if dtype.kind == "c":
        return np.complex128
    is_known = dtype.kind in "iub" and dtype.isbuiltin == 1
    return np.float64 if is_known or dtype == np.float32 else np.float32


def run_any(case: generated.Case) -> list[Any]:
    try:
        return run_reference(case)
    except Exception:
        return run_onnxruntime(case)


Run = Callable[[generated.Case], list[Any]]


def difference(actual: list[Any], expected: list[Any], tolerance: Tolerance) -> str:
    """The first difference of what an operator gives; empty if there is none."""
    for i, (ours, theirs) in enumerate(zip(actual, expected, strict=False)):
        text = value_difference(ours, theirs, tolerance)
        if text:
            return f"output {i}: {text}"
    return ""


def value_difference(actual: Any, expected: Any, tolerance: Tolerance) -> str:
    if isinstance(actual, dict) or actual is None or expected is None:
        return "" if actual == expected else f"expected {expected}, got {actual}"
    if isinstance(actual, list) != isinstance(expected, list):
        return f"expected {type(expected).__name__}, got {type(actual).__name__}"
    if not isinstance(actual, list):
        return array_difference(actual, np.asarray(expected), tolerance)
    if len(actual) != len(expected):
        return f"expected a sequence of {len(expected)}, got one of {len(actual)}"
    return difference(actual, expected, tolerance)


def array_difference(actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> str:
    if actual.shape != expected.shape:
        return f"expected shape {expected.shape}, got {actual.shape}"
    if expected.dtype.kind in "UO":
        return "" if np.array_equal(actual, expected) else f"expected {expected}, got {actual}"
    if actual.dtype != expected.dtype:
        return f"expected type {expected.dtype}, got {actual.dtype}"
    if not ulps.is_inexact(actual.dtype):
        return "" if np.array_equal(actual, expected) else f"expected {expected}, got {actual}"
    apart = ulps.distances(actual, expected, tolerance.of_largest, tolerance.least)
    worst = np.argmax(apart) if apart.size else 0
    if apart.size == 0 or apart.flat[worst] <= tolerance.ulps:
        return ""
    values = f"expected {expected.flat[worst]!r}, got {actual.flat[worst]!r} at {worst}"
    return f"{values}: {apart.flat[worst]:.3g} ULP instead of {tolerance.ulps}"


def check_all(cases: Iterable[generated.Case], check: Callable[[generated.Case], str]) -> None:
    """Fails with all cases of which `check` says what is wrong or raises; there must be some."""
    failures, count = [], 0
    for case in cases:
        count += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem = check(case)
        except Exception as error:
            problem = str(error)
        if problem:
            failures.append(f"{case.name}: {problem}"[:300])
    assert not failures, f"{len(failures)} of {count} cases fail:\n" + "\n".join(failures)
    assert count > 0
