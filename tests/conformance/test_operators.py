"""Every operator of the schemas, in every version and element type: see generated.py."""

import functools
import re
from collections.abc import Iterator
from typing import Any

import agreement
import generated
import numpy as np
import onnx
import pytest
import recipes
import tenon

SCHEMAS: dict[str, list] = {}
for _schema in generated.schemas():
    SCHEMAS.setdefault(_schema.name, []).append(_schema)
# Cases that only Tenon runs.
WITHOUT_REFERENCE = {r"Col2Im-18 string \d": "the standard says no sum of strings"}
# Types that no case has where an operator allows them, by operator and input.
NOT_GENERATED: dict[tuple[str, str], str] = {}


def cases_of(operator: str) -> Iterator[generated.Case]:
    for schema in SCHEMAS[operator]:
        for type_name in generated.type_names(schema):
            yield from generated.cases_of(schema, type_name)


def check(case: generated.Case) -> str:
    """What is wrong with Tenon's outputs, if anything."""
    session = tenon.InferenceSession(case.model.SerializeToString())
    actual = session.run(None, case.feeds)
    first = None
    for outputs in agreement.references(case):
        text = agreement.difference(actual, outputs, agreement.tolerance_of(case))
        if not text:
            return ""
        first = first or text
    if agreement.is_known_wrong(case):
        return ""
    if first is None and any(re.fullmatch(names, case.name) for names in WITHOUT_REFERENCE):
        return ""
    return first or "nothing else runs it"


@pytest.mark.parametrize("operator", SCHEMAS)
def test_operator(operator: str) -> None:
    agreement.check_all(cases_of(operator), check)


def type_text(value: Any) -> str:
    """The type of an input of a call, as schemas spell it."""
    if isinstance(value, recipes.Optional):
        return f"optional({type_text(value.like)})"
    if isinstance(value, list):
        return f"seq({type_text(value[0])})"
    if isinstance(value, dict):
        key, element = next(iter(value.items()))
        names = {int: "int64", str: "string"}
        return f"map({names[type(key)]},{type_text(np.array(element))})"
    return f"tensor({type_name_of(value.dtype)})"


@functools.cache
def type_name_of(dtype: np.dtype) -> str:
    if dtype.kind == "U":
        return "string"
    return next(name for name, known in recipes.NUMPY_TYPES.items() if np.dtype(known) == dtype)


def types_seen(schema: onnx.defs.OpSchema) -> Iterator[tuple[int, str]]:
    last = len(schema.inputs) - 1
    for type_name in generated.type_names(schema):
        for call in generated.calls_of(schema, type_name):
            for i, value in enumerate(call.inputs):
                if value is not None:
                    yield min(i, last), type_text(value)


@pytest.mark.parametrize("operator", SCHEMAS)
def test_every_type_of_every_input_is_generated(operator: str) -> None:
    missing = []
    for schema in SCHEMAS[operator]:
        seen = set(types_seen(schema))
        for i, formal in enumerate(schema.inputs):
            if (operator, formal.name) not in NOT_GENERATED:
                lacking = sorted(t for t in formal.types if (i, t) not in seen)
                if lacking:
                    missing.append(f"{operator}-{schema.since_version} {formal.name}: {lacking}")
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("names", agreement.REFERENCE_IS_WRONG)
def test_references_that_are_said_to_be_wrong_are(names: str) -> None:
    count = 0
    for case in cases_of(names.split("-", maxsplit=1)[0]):
        if re.fullmatch(names, case.name):
            actual = tenon.InferenceSession(case.model.SerializeToString()).run(None, case.feeds)
            expected = agreement.references(case)
            agreed = [
                agreement.difference(actual, outputs, agreement.tolerance_of(case)) == ""
                for outputs in expected
            ]
            assert not any(agreed), case.name
            count += 1
    assert count > 0
