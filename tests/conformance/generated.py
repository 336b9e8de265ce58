"""One model for every operator, version and element type of the schemas."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
import recipes
from onnx import defs, helper

# Operators with tests of their own: what they do depends on subgraphs or chance, they hold other
# values than tensors, or they have no elements to vary.
ELSEWHERE = set(
    "Bernoulli Constant If ImageDecoder Loop Multinomial Optional OptionalGetElement "
    "OptionalHasElement RandomNormal RandomNormalLike RandomUniform RandomUniformLike Scan".split()
)
NUMPY_TYPES = {
    "float": np.float32,
    "double": np.float64,
    "bool": np.bool_,
    "string": np.object_,
    **{name: getattr(np, name) for name in ("float16", "complex64", "complex128")},
    **{
        f"{sign}int{bits}": getattr(np, f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{name: getattr(ml_dtypes, name) for name in ("bfloat16", "int4", "uint4", "int2", "uint2")},
    "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float6e2m3": ml_dtypes.float6_e2m3fn,
    "float6e3m2": ml_dtypes.float6_e3m2fn,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu,
}


@dataclasses.dataclass
class Case:
    name: str  # e.g. "Add-13 int8 0"
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]


def schemas() -> list[defs.OpSchema]:
    """Those of ai.onnx that the generated tests cover, all versions."""
    found = [
        schema
        for schema in defs.get_all_schemas_with_history()
        if schema.domain == "" and not schema.deprecated and schema.name not in ELSEWHERE
    ]
    return sorted(found, key=lambda schema: (schema.name, schema.since_version))


def has_recipe(schema: defs.OpSchema) -> bool:
    return schema.name in recipes.RECIPES or is_plain(schema)


def is_plain(schema: defs.OpSchema) -> bool:
    """Whether its inputs are of one type and nothing else is required."""
    types = {formal.type_str for formal in schema.inputs}
    required = any(attribute.required for attribute in schema.attributes.values())
    return len(types) == 1 and not required and not next(iter(types)).startswith("tensor")


def varied_formal(schema: defs.OpSchema) -> defs.OpSchema.FormalParameter:
    """The input whose type is varied: the first one, but for a few where that is no operand."""
    if not schema.inputs or schema.name == "ConstantOfShape":
        return schema.outputs[0]
    return schema.inputs[1 if schema.name == "Where" else 0]


def type_names(schema: defs.OpSchema) -> list[str]:
    """Element types of the varied input."""
    formal = varied_formal(schema)
    matches = (re.fullmatch(r"tensor\((\w+)\)", text) for text in sorted(formal.types))
    return [match[1] for match in matches if match]


def calls_of(schema: defs.OpSchema, type_name: str) -> list[recipes.Call]:
    dtype = np.dtype(NUMPY_TYPES[type_name])
    maker = recipes.Maker(schema.since_version, dtype, type_name)
    recipe = recipes.RECIPES.get(schema.name)
    made = recipe(maker) if recipe else recipes.plain(maker, schema)
    return made if isinstance(made, list) else [made]


def cases_of(schema: defs.OpSchema, type_name: str) -> Iterator[Case]:
    for i, call in enumerate(calls_of(schema, type_name)):
        name = f"{schema.name}-{schema.since_version} {type_name} {i}"
        yield Case(name, *model_of(schema, call))


def model_of(
    schema: defs.OpSchema, call: recipes.Call
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    feeds = {f"x{i}": value for i, value in enumerate(call.inputs) if value is not None}
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(call.inputs)]
    outputs = [f"y{i}" for i in range(call.outputs)]
    node = helper.make_node(schema.name, names, outputs, **call.attributes)
    graph = helper.make_graph(
        [node],
        "generated",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in feeds.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", schema.since_version)])
    return model, feeds
