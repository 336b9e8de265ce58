"""The schemas of com.microsoft as onnxruntime has them, and cases of those that have recipes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import agreement
import contrib_rank_recipes
import contrib_recipes
import contrib_search_recipes
import generated
import numpy as np
import onnxruntime
import recipes
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

# Operators of which another input than the first is varied.
VARIED_INPUT = {"QLinearConcat": 1, "QLinearWhere": 1}


@dataclasses.dataclass
class Formal:
    type_str: str


class Schema:
    """One of onnxruntime in the words of the onnx package."""

    since_version = 1

    def __init__(self, schema: ort_state.schemadef.OpSchema) -> None:
        self.domain, self.name = schema.domain, schema.name
        self.type_constraints = schema.type_constraints
        self.attributes = schema.attributes
        self.inputs = [Formal(formal.typeStr) for formal in schema.inputs]
        self.outputs = [Formal(formal.typeStr) for formal in schema.outputs]

    def type_names(self) -> list[str]:
        """Of the varied operand."""
        allowed = {c.type_param_str: c.allowed_type_strs for c in self.type_constraints}
        varied = self.inputs[VARIED_INPUT.get(self.name, 0)].type_str
        return recipes.element_types(allowed.get(varied, [varied]))


ALL = [x for x in ort_state.get_all_operator_schema() if x.domain == "com.microsoft"]
SCHEMAS = {x.name: Schema(x) for x in ALL if x.name in contrib_recipes.RECIPES}
WITHOUT_RECIPE = {x.name: x for x in ALL if x.name not in SCHEMAS}


def cases_of(operator: str, type_name: str) -> Iterator[generated.Case]:
    schema = SCHEMAS[operator]
    for i, call in enumerate(calls_of(operator, recipes.Maker(schema, type_name))):
        name, made = f"{operator} {type_name} {i}", generated.model_of(schema, call)
        yield generated.Case(name, *made, schema, type_name, call)


def calls_of(operator: str, maker: recipes.Maker) -> Iterator[recipes.Call]:
    yield from contrib_recipes.RECIPES[operator](maker)
    if operator in contrib_rank_recipes.RECIPES:
        yield from contrib_rank_recipes.RECIPES[operator](maker)


def refuse_wrong_search(case: generated.Case) -> None:
    inputs = case.call.inputs
    if len(inputs[0]) == 0:
        raise NotImplementedError("the process ends in a division by the number of rows")
    if case.schema.name == "Sampling" and len(inputs) > 7 and inputs[7] is not None:
        raise NotImplementedError("all presence penalties are of token 0 of row 0")


# Outputs that onnxruntime wants to be written over inputs.
IN_PLACE = {"SparseAttention": {1: 3, 2: 4}}


def run_onnxruntime(case: generated.Case) -> list[Any]:
    if case.schema.name in contrib_search_recipes.RECIPES:
        refuse_wrong_search(case)
    if case.schema.name not in IN_PLACE:
        return agreement.run_onnxruntime(case)
    shared = {f"y{i}": f"x{input_}" for i, input_ in IN_PLACE[case.schema.name].items()}
    session = agreement.onnxruntime_session(case)
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(np.array(x))
        for name, x in case.feeds.items()
    }
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        if output.name in shared:
            binding.bind_ortvalue_output(output.name, values[shared[output.name]])
        else:
            binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return [
        (values[shared[y.name]] if y.name in shared else value).numpy().copy()
        for y, value in zip(session.get_outputs(), binding.get_outputs(), strict=True)
    ]
