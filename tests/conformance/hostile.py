"""Calls of operators with values, lists and ranks that a hostile model may hold.

As a program: hostile.py FIRST runs the cases from position FIRST on and writes one line for each:
"start POSITION NAME", then "end OUTCOME". The process may die; its reader then knows where.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import warnings
from collections.abc import Iterator

import contrib_schemas
import generated
import numpy as np
import onnx
import recipes

Schema = onnx.defs.OpSchema | contrib_schemas.Schema

INT32, INT64 = 2**31, 2**63
VALUES = (-1, 0, -INT32, INT32 - 1, -INT64, INT64 - 1)
MEMORY_BYTES = 4 << 30
TIMEOUT_MS = 1000  # of loops whose number of iterations is such a value
CALLS = 8  # of an operator: the last ones, which most often have the most inputs


def hostile_numbers(shape: tuple[int, ...]) -> list[int]:
    """Also just outside of the dimensions."""
    dims = [value for dim in set(shape) for value in (dim, -dim - 1)]
    return list(dict.fromkeys([*VALUES, *dims]))


def shape_of(call: recipes.Call) -> tuple[int, ...]:
    """The shape of the first input, if that is a tensor."""
    return getattr(call.inputs[0], "shape", ()) if call.inputs else ()


def changed_inputs(call: recipes.Call) -> Iterator[list]:
    """Inputs with one whole number replaced, of inputs that hold indices, sizes and the like."""
    for i, value in enumerate(call.inputs):
        if getattr(value, "dtype", None) not in (np.int32, np.int64):
            continue
        for number in hostile_numbers(shape_of(call)):
            if not np.iinfo(value.dtype).min <= number <= np.iinfo(value.dtype).max:
                continue
            for at in range(min(value.size, 2)):
                array = value.copy()
                array.reshape(-1)[at] = number
                yield [*call.inputs[:i], array, *call.inputs[i + 1 :]]
        for array in (value[..., :0] if value.ndim else value[None], np.tile(value, 3)):
            yield [*call.inputs[:i], array, *call.inputs[i + 1 :]]


def changed_ranks(call: recipes.Call) -> Iterator[list]:
    """Inputs of which one has a rank more, or is a scalar, or has no elements."""
    for i, value in enumerate(call.inputs):
        if not isinstance(value, np.ndarray):
            continue
        arrays = [value[None]]
        if value.ndim > 0:
            arrays.append(value[..., :0])
            if value.size > 0:
                arrays.append(value.reshape(-1)[0:1].reshape(()))
        for array in arrays:
            yield [*call.inputs[:i], array, *call.inputs[i + 1 :]]


def changed_attributes(call: recipes.Call, schema: Schema) -> Iterator[dict]:
    """Attributes with one number replaced, and lists of other lengths."""
    kinds = {name: attribute.type.name for name, attribute in schema.attributes.items()}
    for name, kind in kinds.items():
        if kind == "INT":
            for number in hostile_numbers(shape_of(call)):
                yield {**call.attributes, name: number}
        if kind == "INTS":
            given = list(call.attributes.get(name, [1, 1]))
            for number in hostile_numbers(shape_of(call)):
                yield {**call.attributes, name: [number, *given[1:]]}
            for numbers in ([1], given * 3, [INT64 - 1] * 3):
                yield {**call.attributes, name: numbers}


def variants(call: recipes.Call, schema: Schema) -> Iterator[recipes.Call]:
    for change in (changed_inputs, changed_ranks):
        for inputs in change(call):
            yield recipes.Call(inputs, call.attributes, call.outputs)
    for attributes in changed_attributes(call, schema):
        yield recipes.Call(call.inputs, attributes, call.outputs)


def type_names(names: list[str]) -> list[str]:
    """Of those that an operator takes, one that most kernels have, and a whole number."""
    return list(dict.fromkeys(["float" if "float" in names else names[0], *({"int64"} & {*names})]))


def calls() -> Iterator[tuple[Schema, str, list[recipes.Call]]]:
    """Of the newest version of every operator, with the type that is varied."""
    newest = {schema.name: schema for schema in generated.schemas()}
    for schema in newest.values():
        names = generated.type_names(schema)
        if generated.has_recipe(schema) and names:
            for name in type_names(names):
                yield schema, name, generated.calls_of(schema, name)
    for operator, schema in contrib_schemas.SCHEMAS.items():
        for name in type_names(schema.type_names()):
            yield (
                schema,
                name,
                list(contrib_schemas.calls_of(operator, recipes.Maker(schema, name))),
            )


def cases() -> Iterator[generated.Case]:
    for schema, type_name, made in calls():
        changed = (v for call in made[-CALLS:] for v in variants(call, schema))
        for i, variant in enumerate(changed):
            name = f"{schema.domain} {schema.name} {type_name} {i}".lstrip()
            try:
                model = generated.model_of(schema, variant)
            except (ValueError, TypeError):  # protobuf has no such number
                continue
            yield generated.Case(name, *model)


def run(case: generated.Case) -> str:
    """ "runs", or what is wrong with the error; empty if the error is right.

    An operator that runs by its function body fails at a node of that.
    """
    import tenon  # noqa: PLC0415

    try:
        feeds = generated.feeds_of(case, tenon)
        options = tenon.RunOptions()
        options.add_run_config_entry("tenon.run_timeout_ms", str(TIMEOUT_MS))
        tenon.InferenceSession(case.model.SerializeToString()).run(None, feeds, options)
    except Exception as error:
        return "" if re.search(r"\w+(-\d+)? node", str(error)) else f"names no node: {error}"[:300]
    return "runs"


def main() -> None:
    warnings.filterwarnings("ignore")
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # that maps terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    first = int(sys.argv[1])
    for position, case in enumerate(cases()):
        if position < first:
            continue
        print(f"start {position} {case.name}", flush=True)
        print(f"end {run(case)}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
