"""Operators of com.microsoft in every type of their first operand, beside onnxruntime.

Where that lacks the type it runs a wider one. Where it has neither, types of 16 bits are compared
with Tenon's float32; of others, that Tenon runs them is all.
"""

from __future__ import annotations

import dataclasses
import warnings

import agreement
import contrib_recipes
import generated
import numpy as np
import pytest
import recipes
import tenon
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

# What onnxruntime computes of doubles with constants of a few digits.
ROUGH = ("FastGelu",)
# What onnxruntime rounds to bytes at every step, and by how much results may differ for it.
LOOSE = {"DynamicQuantizeLSTM": 1e-2}


@dataclasses.dataclass
class Formal:
    type_str: str


class Schema:
    """One of onnxruntime in the words of the onnx package."""

    since_version = 1

    def __init__(self, schema: ort_state.schemadef.OpSchema) -> None:
        self.domain, self.name = schema.domain, schema.name
        self.type_constraints = schema.type_constraints
        self.inputs = [Formal(formal.typeStr) for formal in schema.inputs]
        self.outputs = [Formal(formal.typeStr) for formal in schema.outputs]

    def type_names(self) -> list[str]:
        """Of the first operand."""
        allowed = {c.type_param_str: c.allowed_type_strs for c in self.type_constraints}
        position = 1 if self.name in ("QLinearConcat", "QLinearWhere") else 0
        return recipes.element_types(allowed[self.inputs[position].type_str])


SCHEMAS = {
    schema.name: Schema(schema)
    for schema in ort_state.get_all_operator_schema()
    if schema.domain == "com.microsoft" and schema.name in contrib_recipes.RECIPES
}


def run_tenon(case: generated.Case) -> list[np.ndarray]:
    return tenon.InferenceSession(case.model.SerializeToString()).run(None, case.feeds)


def run_wider_by_tenon(case: generated.Case) -> list[np.ndarray]:
    """Of float32, which tests/python compares with NumPy."""
    if case.type_name not in ("float16", "bfloat16"):
        raise NotImplementedError
    return agreement.run_wider(case, run_tenon)


REFERENCES = (agreement.run_onnxruntime, agreement.run_wider_by_onnxruntime, run_wider_by_tenon)


def check(case: generated.Case) -> str:
    actual = run_tenon(case)
    for run in REFERENCES:
        try:
            expected = run(case)
        except Exception:  # it lacks the type
            continue
        is_wide = run is not agreement.run_onnxruntime
        if case.type_name == "double" and (is_wide or case.schema.name in ROUGH):
            actual, expected = ([y.astype(np.float32) for y in ys] for ys in (actual, expected))
        if is_wide:  # outputs whose types no input says
            expected = [e.astype(a.dtype) for a, e in zip(actual, expected, strict=True)]
        if case.schema.name in LOOSE:
            worst = max(np.abs(a - e).max() for a, e in zip(actual, expected, strict=True))
            return f"a difference of {worst}" if worst > LOOSE[case.schema.name] else ""
        return agreement.difference(actual, expected)
    return ""


@pytest.mark.parametrize("operator", SCHEMAS)
def test_contrib_operator(operator: str) -> None:
    schema, failures, count = SCHEMAS[operator], [], 0
    for type_name in schema.type_names():
        maker = recipes.Maker(schema, type_name)
        for i, call in enumerate(contrib_recipes.RECIPES[operator](maker)):
            made = generated.model_of(schema, call)
            case = generated.Case(f"{operator} {type_name} {i}", *made, schema, type_name, call)
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
