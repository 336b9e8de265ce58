"""Calls of operators with values, lists and ranks that a hostile model may hold.

As a program: hostile.py FIRST [WORD ...] runs the cases from position FIRST on, of them those whose
names have the words, and writes one line for each: "start POSITION NAME", then "end OUTCOME". The
process may die; its reader then knows where.
"""

from __future__ import annotations

import dataclasses
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
import training_recipes
from onnx import helper, numpy_helper

Schema = onnx.defs.OpSchema | contrib_schemas.Schema | training_recipes.Schema

INT32, INT64 = 2**31, 2**63
REALS = [0.0, -1.0, 3e38, float("inf"), float("nan")]
VALUES = (-1, 0, -INT32, INT32 - 1, -INT64, INT64 - 1)
MEMORY_BYTES = 4 << 30
TIMEOUT_MS = 1000  # of loops whose number of iterations is such a value
CALLS = 8  # of an operator: the last ones, which most often have the most inputs
FEW_CALLS = 2  # whose inputs are also constants, or have shapes that the model does not declare


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


def changed_types(call: recipes.Call) -> Iterator[list]:
    """Inputs of which one has another floating-point type."""
    kinds = [np.dtype(kind) for kind in (np.float16, np.float32, np.float64)]
    for i, value in enumerate(call.inputs):
        if not isinstance(value, np.ndarray) or value.dtype not in kinds:
            continue
        for kind in kinds:
            if kind != value.dtype:
                yield [*call.inputs[:i], value.astype(kind), *call.inputs[i + 1 :]]


def changed_lists(given: list) -> Iterator[list]:
    yield from ([], given[:1], given * 3)


def changed_tensor(given: onnx.TensorProto) -> Iterator[onnx.TensorProto]:
    array = numpy_helper.to_array(given)
    for other in (array.reshape(-1)[:0], array.reshape(-1)[:1], np.tile(array, 3)):
        yield numpy_helper.from_array(other, given.name)


def changed_attributes(call: recipes.Call, schema: Schema) -> Iterator[dict]:
    """Attributes with one number replaced, and lists of other lengths."""
    kinds = {name: attribute.type.name for name, attribute in schema.attributes.items()}
    for name, kind in kinds.items():
        given = call.attributes.get(name)
        values: list = []
        if kind == "INT":
            values = hostile_numbers(shape_of(call))
        elif kind == "INTS":
            given = list([1, 1] if given is None else given)
            values = [[number, *given[1:]] for number in hostile_numbers(shape_of(call))]
            values += [[1], *changed_lists(given), [INT64 - 1] * 3]
        elif kind == "FLOAT":
            values = REALS
        elif kind == "FLOATS":
            given = list([1.0, 1.0] if given is None else given)
            values = [*([number, *given[1:]] for number in REALS), *changed_lists(given)]
        elif kind == "STRINGS":
            values = [["?"], *changed_lists(list(["", "?"] if given is None else given))]
        elif kind == "STRING":
            values = ["", "?"]
        elif kind == "TENSOR" and isinstance(given, onnx.TensorProto):
            values = list(changed_tensor(given))
        for value in values:
            yield {**call.attributes, name: value}


@dataclasses.dataclass
class Variant:
    call: recipes.Call
    is_declared: bool = True  # whether the model declares the shapes of its inputs

    def model_of(self, schema: Schema) -> tuple[onnx.ModelProto, dict]:
        # The onnx package gives a type to no empty list.
        given = self.call.attributes
        empty = [name for name, value in given.items() if isinstance(value, list) and not value]
        call = dataclasses.replace(
            self.call, attributes={name: given[name] for name in given if name not in empty}
        )
        model, feeds = generated.model_of(schema, call)
        for name in empty:
            kind = getattr(onnx.AttributeProto, schema.attributes[name].type.name)
            model.graph.node[0].attribute.append(helper.make_attribute(name, [], attr_type=kind))
        if schema.name in training_recipes.DECLARED:
            info = model.graph.output[0].type.tensor_type
            info.elem_type = onnx.TensorProto.FLOAT
            for size in training_recipes.DECLARED[schema.name]:
                info.shape.dim.add().dim_value = size
        if not self.is_declared:
            for value in model.graph.input:
                value.type.tensor_type.ClearField("shape")
        return model, feeds


def of_constants(call: recipes.Call) -> recipes.Call:
    """All inputs but the first are initializers."""
    kept = [i for i, value in enumerate(call.inputs) if i > 0 and isinstance(value, np.ndarray)]
    return dataclasses.replace(call, constants=tuple(kept))


def is_of_tensors(call: recipes.Call) -> bool:
    return all(value is None or isinstance(value, np.ndarray) for value in call.inputs)


def variants(call: recipes.Call, schema: Schema, in_all_forms: bool) -> Iterator[Variant]:
    for change in (changed_inputs, changed_ranks):
        for inputs in change(call):
            changed = dataclasses.replace(call, inputs=inputs, constants=())
            yield Variant(changed)
            if in_all_forms and len(inputs) > 1:
                yield Variant(of_constants(changed))
            if in_all_forms and change is changed_ranks and is_of_tensors(changed):
                yield Variant(changed, is_declared=False)
    for inputs in changed_types(call) if in_all_forms else ():
        yield Variant(dataclasses.replace(call, inputs=inputs, constants=()))
    for attributes in changed_attributes(call, schema):
        yield Variant(dataclasses.replace(call, attributes=attributes, constants=()))


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
    for schema in training_recipes.SCHEMAS.values():
        yield schema, "training", schema.calls


def cases() -> Iterator[generated.Case]:
    for schema, type_name, made in calls():
        some = made[-CALLS:]
        changed = (
            variant
            for i, call in enumerate(some)
            for variant in variants(call, schema, i >= len(some) - FEW_CALLS)
        )
        for i, variant in enumerate(changed):
            name = f"{schema.domain} {schema.name} {type_name} {i}".lstrip()
            try:
                model = variant.model_of(schema)
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
    first, words = int(sys.argv[1]), sys.argv[2:]
    for position, case in enumerate(cases()):
        if position < first or not {*words} <= {*case.name.split()}:
            continue
        print(f"start {position} {case.name}", flush=True)
        print(f"end {run(case)}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
