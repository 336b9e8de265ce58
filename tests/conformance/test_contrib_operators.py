"""Operators of com.microsoft in every type of their first operand, compared with onnxruntime.

Where that lacks the type it runs a wider one. Where it has neither, types of 16 bits are compared
with Tenon's float32; of others, that Tenon runs them is all. Searches and sparse products are
compared with NumPy besides, doubles with formulas where contrib_references.py has them. Of other
doubles that onnxruntime lacks, no more than their floats are compared.
"""

from __future__ import annotations

import itertools

import agreement
import contrib_references
import contrib_schemas
import generated
import numpy as np
import onnx
import pytest
import recipes
import saturation
import search_references
import tenon
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

# What onnxruntime approximates in floats.
ROUGH = ("Gelu", "QuickGelu")
# By how much results may differ: of what onnxruntime rounds the other way, as it multiplies by
# ratios of scales.
LOOSE = dict.fromkeys(("QLinearAdd", "QLinearMul", "QLinearSoftmax"), 1)


# Most operators are sums, and onnxruntime rounds on its way as well.
COMPOSITE = agreement.Tolerance(8, of_largest=True)
TOLERANCES = {
    "CDist": agreement.Tolerance(8, least=1),  # 1 - cosine
    "FusedGemm": agreement.Tolerance(16, of_largest=True),  # doubles, by onnxruntime's float
    "Gelu": agreement.Tolerance(least=1),  # 1 + erf(x)
    "GridSample": agreement.Tolerance(32, of_largest=True),  # doubles, by onnxruntime's float
}


def tolerance_of(case: generated.Case) -> agreement.Tolerance:
    return TOLERANCES.get(case.schema.name, COMPOSITE)


def run_tenon(case: generated.Case) -> list[np.ndarray]:
    session = tenon.InferenceSession(case.model.SerializeToString())
    return session.run(None, generated.feeds_of(case, tenon))


def run_wider_by_tenon(case: generated.Case) -> list[np.ndarray]:
    """Of float32, which tests/python compares with NumPy."""
    if case.type_name not in ("float16", "bfloat16"):
        raise NotImplementedError
    return agreement.run_wider(case, run_tenon)


def run_wider_by_onnxruntime(case: generated.Case) -> list[np.ndarray]:
    return agreement.run_wider(case, contrib_schemas.run_onnxruntime)


def sparse_product(call: recipes.Call) -> list[np.ndarray]:
    a, b = call.inputs[0].dense, call.inputs[1]
    flips = [call.attributes.get(name) for name in ("transA", "transB")]
    a, b = (x.swapaxes(-1, -2) if flip else x for x, flip in zip((a, b), flips, strict=True))
    y = a @ b
    return [(y * call.attributes.get("alpha", 1)).astype(y.dtype) if y.dtype == np.float32 else y]


OWN = {**search_references.FUNCTIONS, "SparseToDenseMatMul": sparse_product}
REFERENCES = (contrib_schemas.run_onnxruntime, run_wider_by_onnxruntime, run_wider_by_tenon)


def own_difference(case: generated.Case, actual: list[np.ndarray]) -> str:
    """From what NumPy finds, where it has the case."""
    try:
        expected = OWN[case.schema.name](case.call)
    except (KeyError, NotImplementedError):
        return ""
    return agreement.difference(actual, expected, tolerance_of(case))


def formula_difference(case: generated.Case, actual: list[np.ndarray]) -> str | None:
    """From what a formula gives; None if there is none, or onnxruntime is as exact."""
    if case.type_name != "double" and case.schema.name not in ROUGH:
        return None
    try:
        expected = contrib_references.run(case.schema.name, case.call)
    except (KeyError, NotImplementedError):
        return None
    return agreement.difference(actual, expected, tolerance_of(case))


def check(case: generated.Case) -> str:
    actual = run_tenon(case)
    problem = own_difference(case, actual)
    if problem:
        return problem
    problem = formula_difference(case, actual)
    if problem is not None:
        return problem
    for run in REFERENCES:
        try:
            expected = run(case)
        except Exception:  # it lacks the type
            continue
        is_wide = run is not contrib_schemas.run_onnxruntime
        if case.type_name == "double" and is_wide:  # which is of floats
            actual, expected = ([y.astype(np.float32) for y in ys] for ys in (actual, expected))
        if is_wide:  # outputs whose types no input says
            expected = [e.astype(a.dtype) for a, e in zip(actual, expected, strict=True)]
        if case.schema.name in LOOSE:
            actual, expected = ([y.astype(np.float64) for y in ys] for ys in (actual, expected))
            pairs = zip(actual, expected, strict=True)
            worst = max(np.abs(a - e).max(initial=0) for a, e in pairs)
            return f"a difference of {worst}" if worst > LOOSE[case.schema.name] else ""
        return agreement.difference(actual, expected, tolerance_of(case))
    return ""


@pytest.mark.parametrize("operator", contrib_schemas.SCHEMAS)
def test_contrib_operator(operator: str) -> None:
    if operator == "DynamicQuantizeMatMul" and saturation.saturates():
        pytest.skip(saturation.REASON)
    type_names = contrib_schemas.SCHEMAS[operator].type_names()
    cases = (contrib_schemas.cases_of(operator, type_name) for type_name in type_names)
    agreement.check_all(itertools.chain.from_iterable(cases), check)


# Of an attribute that a schema requires, by its type's name.
SOME_ATTRIBUTE = {"INT": 1, "FLOAT": 1.0, "STRING": "x", "INTS": [1], "FLOATS": [1.0]}


def one_node(schema: ort_state.schemadef.OpSchema) -> bytes:
    """With values of rank 4 of the first type that the schema allows each."""
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    number = {name.lower(): value for name, value in onnx.TensorProto.DataType.items()}

    def value(formal: ort_state.schemadef.FormalParameter, name: str) -> onnx.ValueInfoProto:
        type_name = allowed.get(formal.typeStr, [formal.typeStr])[0]
        element = type_name.removeprefix("tensor(").removesuffix(")")
        return helper.make_tensor_value_info(name, number.get(element, 1), ["a", "b", "c", "d"])

    needed = [not str(x.option).endswith("Optional") for x in schema.inputs]
    inputs = [value(x, f"x{i}") for i, x in enumerate(schema.inputs) if needed[i]]
    outputs = [value(y, f"y{i}") for i, y in enumerate(schema.outputs)][: max(1, schema.min_output)]
    kinds = {
        name: str(attribute.type).rpartition(".")[2]
        for name, attribute in schema.attributes.items()
        if attribute.required
    }
    attributes = {name: SOME_ATTRIBUTE[kind] for name, kind in kinds.items() if kind != "GRAPH"}
    names = [f"x{i}" if is_needed else "" for i, is_needed in enumerate(needed)]
    results = [y.name for y in outputs]
    node = helper.make_node(schema.name, names, results, domain=schema.domain, **attributes)
    graph = helper.make_graph([node], "graph", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(schema.domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("operator", contrib_schemas.WITHOUT_RECIPE)
def test_operators_without_cases_have_no_kernel(operator: str) -> None:
    # What has none may have been widened to types that its schema does not allow.
    with pytest.raises(
        Exception, match=r"no provider has a kernel|: expected one of|not compatible with any"
    ):
        tenon.InferenceSession(one_node(contrib_schemas.WITHOUT_RECIPE[operator]))
