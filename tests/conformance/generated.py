"""One model for every operator, version and element type of the schemas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import ml_recipes
import numpy as np
import onnx
import rank_recipes
import recipes
import value_recipes
from onnx import defs, helper, numpy_helper

# Gradient names values of its graph: test_gradient.py.
ELSEWHERE = {"Gradient"}
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
RECIPES = {**recipes.RECIPES, **value_recipes.RECIPES, **ml_recipes.RECIPES}
# Operators of which something else than the first input is varied: an input, or the first output.
VARIED_INPUT = {"Where": 1, "If": None, "Loop": 2, "Scan": -1}
VARIED_OUTPUT = {"ConstantOfShape", "If", "CastMap", "DictVectorizer", "ZipMap"}
# Of what attributes of other domains' operators call.
SUBGRAPH_VERSION = 17


@dataclasses.dataclass
class Case:
    name: str  # e.g. "Add-13 int8 0"
    model: onnx.ModelProto
    feeds: dict[str, Any]
    schema: defs.OpSchema | None = None
    type_name: str = ""
    call: recipes.Call | None = None


def schemas(domains: tuple[str, ...] = DOMAINS) -> list[defs.OpSchema]:
    """Those that the generated tests cover, all versions."""
    found = [
        schema
        for schema in defs.get_all_schemas_with_history()
        if schema.domain in domains and is_supported(schema) and schema.name not in ELSEWHERE
    ]
    return sorted(found, key=lambda schema: (schema.domain, schema.name, schema.since_version))


def is_supported(schema: defs.OpSchema) -> bool:
    """GroupNormalization-18 is deprecated, but onnxruntime runs it."""
    return not schema.deprecated or schema.name == "GroupNormalization"


def has_recipe(schema: defs.OpSchema) -> bool:
    return schema.name in RECIPES or is_plain(schema)


def is_plain(schema: defs.OpSchema) -> bool:
    """Whether all its inputs have one type and no attribute is required."""
    types = {formal.type_str for formal in schema.inputs}
    required = any(attribute.required for attribute in schema.attributes.values())
    return len(types) == 1 and not required and not next(iter(types)).startswith("tensor")


def varied_formal(schema: defs.OpSchema) -> defs.OpSchema.FormalParameter:
    """The input whose type is varied: the first one, except for a few whose first is no operand."""
    if not schema.inputs or schema.name in VARIED_OUTPUT:
        return schema.outputs[0]
    return schema.inputs[VARIED_INPUT.get(schema.name, 0)]


def type_names(schema: defs.OpSchema) -> list[str]:
    """Element types of the varied input."""
    return recipes.element_types(varied_formal(schema).types)


def calls_of(schema: defs.OpSchema, type_name: str) -> list[recipes.Call]:
    maker = recipes.Maker(schema, type_name)
    recipe = RECIPES.get(schema.name)
    made = recipe(maker) if recipe else recipes.plain(maker)
    return made if isinstance(made, list) else [made]


def cases_of(schema: defs.OpSchema, type_name: str) -> Iterator[Case]:
    calls = calls_of(schema, type_name) + rank_recipes.calls_of(schema, type_name)
    for i, call in enumerate(calls):
        name = f"{schema.name}-{schema.since_version} {type_name} {i}"
        yield Case(name, *model_of(schema, call), schema, type_name, call)


def model_of(schema: defs.OpSchema, call: recipes.Call) -> tuple[onnx.ModelProto, dict[str, Any]]:
    feeds = {f"x{i}": value for i, value in enumerate(call.inputs) if value is not None}
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(call.inputs)]
    outputs = [f"y{i}" for i in range(call.outputs)]
    node = helper.make_node(schema.name, names, outputs, domain=schema.domain, **call.attributes)
    constants = [constant(f"x{i}", feeds.pop(f"x{i}")) for i in call.constants]
    infos = [helper.make_value_info(name, type_of(value)) for name, value in feeds.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([node], "generated", infos, results, constants)
    versions = {"": SUBGRAPH_VERSION, schema.domain: schema.since_version}
    opsets = [helper.make_opsetid(*pair) for pair in versions.items()]
    model = helper.make_model(graph, opset_imports=opsets)
    return model, {name: plain_value(value) for name, value in feeds.items()}


def constant(name: str, value: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(value, name)


def type_of(value: Any) -> onnx.TypeProto:
    """The type of an input of a call. Elements of a sequence may have shapes of their own."""
    if isinstance(value, recipes.Sparse):
        number = helper.np_dtype_to_tensor_dtype(value.dense.dtype)
        return helper.make_sparse_tensor_type_proto(number, value.dense.shape)
    if isinstance(value, recipes.Optional):
        return helper.make_optional_type_proto(type_of(value.like))
    if isinstance(value, list):
        element = type_of(value[0])
        element.tensor_type.ClearField("shape")
        return helper.make_sequence_type_proto(element)
    if isinstance(value, dict):
        key, element = next(iter(value.items()))
        numbers = {int: onnx.TensorProto.INT64, str: onnx.TensorProto.STRING}
        return helper.make_map_type_proto(numbers[type(key)], type_of(np.array(element)))
    number = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_type_proto(number, value.shape)


def feeds_of(case: Case, runtime: Any) -> dict[str, Any]:
    """Those of a case as `runtime`, which may be tenon or onnxruntime, takes them."""
    return {
        name: value.made_by(runtime) if isinstance(value, recipes.Sparse) else value
        for name, value in case.feeds.items()
    }


def plain_value(value: Any) -> Any:
    return value.value if isinstance(value, recipes.Optional) else value
