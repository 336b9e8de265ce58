"""Recipes of operators on sequences and optionals, of those with bodies, and of those with chance.

What depends on chance is called such that only one outcome is possible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from recipes import Call, Maker, Optional, ints


def allows(t: Maker, kind: str) -> bool:
    """Whether the type under test may stand in a value of `kind`, e.g. "seq(tensor"."""
    formals = [*t.schema.inputs, *t.schema.outputs]
    return any(f"{kind}({t.name})" in text for formal in formals for text in formal.types)


def sequence(t: Maker) -> list[np.ndarray]:
    return [t(2, 3), t(2, 1), t(2, 0)]


def concat_from_sequence(t: Maker) -> list[Call]:
    alike = [t(2, 3), t(2, 3)]
    calls = [Call([sequence(t)], {"axis": axis}) for axis in (1, -1)]
    calls += [Call([alike], {"axis": axis, "new_axis": 1}) for axis in (0, 2, -1)]
    return [*calls, Call([alike], {"axis": -2, "new_axis": 0})]


def sequence_at(t: Maker) -> list[Call]:
    return [Call([sequence(t), i.scalar(at)]) for i in t.others("I") for at in (0, 1, -1, -3)]


def sequence_erase(t: Maker) -> list[Call]:
    return [Call([sequence(t)]), *sequence_at(t)]


def sequence_insert(t: Maker) -> list[Call]:
    places = [i.scalar(at) for i in t.others("I") for at in (0, 3, -3)]
    return [Call([sequence(t), t(4)]), *(Call([sequence(t), t(), at]) for at in places)]


def sequence_empty(t: Maker) -> list[Call]:
    return [Call([], {"dtype": t.number()})] + ([Call([])] if t.name == "float" else [])


def sequence_map(t: Maker) -> list[Call]:
    x, more = [t(2), t(2)], t(3)
    out = [Call([x], {"body": body(["a"], [("Identity", ["a"], "b")])})]
    joined = body(["a", "c"], [("Concat", ["a", "c"], "b", {"axis": 0})])
    out += [Call([x, c], {"body": joined}) for c in (more, [more, t(0)])]
    both = body(["a"], [("Identity", ["a"], "b"), ("Shape", ["a"], "c")])
    return [*out, Call([x], {"body": both}, 2)]


def split_to_sequence(t: Maker) -> list[Call]:
    x = t(4, 3)
    calls = [Call([x]), Call([x], {"keepdims": 0}), Call([x], {"axis": -1, "keepdims": 0})]
    for i in t.others("I"):
        calls += [
            Call([x, i.scalar(3)]),
            Call([x, i.of(1, 0, 3)]),
            Call([x, i.of(1, 2)], {"axis": 1}),
        ]
    return [*calls, Call([t(0, 2)])]


def sequence_construct(t: Maker) -> list[Call]:
    return [Call([t(2, 3)]), Call([t(), t(2), t(0, 3)])]


def optional(t: Maker) -> list[Call]:
    empty = helper.make_tensor_type_proto(t.number(), None)
    calls = [Call([t(2, 3)]), Call([], {"type": empty})]
    if allows(t, "seq(tensor"):
        calls += [Call([[t(2), t()]]), Call([], {"type": helper.make_sequence_type_proto(empty)})]
    return calls


def optional_values(t: Maker) -> list[Any]:
    values = [Optional(t(2, 3), t(2, 3)), Optional([t(2), t()], [t(2)])]
    return values + ([t(2), [t(2), t(1)]] if t.version >= 18 else [])


def optional_get_element(t: Maker) -> list[Call]:
    return [Call([value]) for value in optional_values(t)]


def optional_has_element(t: Maker) -> list[Call]:
    values = [*optional_values(t), Optional(None, t(2, 3)), Optional(None, [t(2)])]
    return [Call([value]) for value in values] + ([Call([])] if t.version >= 18 else [])


def identity(t: Maker) -> list[Call]:
    calls = [Call([t(*shape)]) for shape in [(), (0, 3), (2, 3), (2, 1, 1, 2, 1, 3)]]
    if allows(t, "seq(tensor"):
        calls.append(Call([sequence(t)]))
    if allows(t, "optional(tensor"):
        calls.append(Call([Optional(t(2), t(2))]))
    if allows(t, "optional(seq(tensor"):
        calls.append(Call([Optional([t(2)], [t(2)])]))
    return calls


def constant(t: Maker) -> list[Call]:
    shapes = [(), (2, 3), (0,)]
    calls = [Call([], {"value": onnx.numpy_helper.from_array(t(*shape))}) for shape in shapes]
    if t.version >= 12 and t.name in ("float", "int64", "string"):
        kind = {"float": "float", "int64": "int", "string": "string"}[t.name]
        values = t(3).tolist()
        calls += [Call([], {f"value_{kind}": values[0]}), Call([], {f"value_{kind}s": values})]
    return calls


def body(
    inputs: list[str], nodes: list[tuple], types: dict[str, onnx.TypeProto] | None = None
) -> onnx.GraphProto:
    """A graph of nodes (operator, inputs, output[, attributes]), each an output of the graph."""
    made = [
        helper.make_node(operator, list(used), [output], **(attributes[0] if attributes else {}))
        for operator, used, output, *attributes in nodes
    ]

    def info(name: str) -> onnx.ValueInfoProto:
        found = (types or {}).get(name)
        return helper.make_value_info(name, found or onnx.TypeProto())

    outputs = [info(output) for _, _, output, *_ in nodes]
    return helper.make_graph(made, "body", [info(name) for name in inputs], outputs)


def if_(t: Maker) -> list[Call]:
    value = onnx.numpy_helper.from_array
    kinds = [[("Constant", [], "z", {"value": value(t(*shape))})] for shape in [(2, 3), (0,)]]
    calls = []
    for condition in (True, False):
        branches = {"then_branch": body([], kinds[0]), "else_branch": body([], kinds[1])}
        calls.append(Call([np.array(condition)], branches))
    return calls


def loop(t: Maker) -> list[Call]:
    """The state stays; each iteration gives it out."""
    types = {
        "i": helper.make_tensor_type_proto(onnx.TensorProto.INT64, []),
        "go": helper.make_tensor_type_proto(onnx.TensorProto.BOOL, []),
        "went": helper.make_tensor_type_proto(onnx.TensorProto.BOOL, []),
    }
    tensor = helper.make_tensor_type_proto(t.number(), [2])
    types |= dict.fromkeys(("v", "w", "s"), tensor)
    nodes = [("Identity", ["go"], "went"), ("Identity", ["v"], "w"), ("Identity", ["v"], "s")]
    graph = body(["i", "go", "v"], nodes, types)
    x, go = t(2), np.array(True)
    calls = [Call([np.array(trips), go, x], {"body": graph}, 2) for trips in (3, 0)]
    calls.append(Call([np.array(2), None, x], {"body": graph}, 2))
    calls.append(Call([None, np.array(False), x], {"body": graph}, 2))
    element = helper.make_tensor_type_proto(t.number(), None)
    many = helper.make_sequence_type_proto(element)
    kinds = {
        "seq(tensor": (many, [x, x]),
        "optional(tensor": (helper.make_optional_type_proto(element), Optional(x, x)),
        "optional(seq(tensor": (helper.make_optional_type_proto(many), Optional([x, x], [x])),
    }
    for kind, (type_, value) in kinds.items():
        if allows(t, kind):
            graph = body(["i", "go", "v"], nodes[:1], {**types, "v": type_})
            graph.output.append(graph.input[2])  # each input is an output
            calls.append(Call([np.array(2), go, value], {"body": graph}))
    return calls


def scan(t: Maker) -> list[Call]:
    """The state stays; each iteration gives out its element."""
    types = dict.fromkeys(("v", "w"), helper.make_tensor_type_proto(t.number(), [2]))
    types |= dict.fromkeys(("x", "y"), helper.make_tensor_type_proto(t.number(), [3]))
    nodes = [("Identity", ["v"], "w"), ("Identity", ["x"], "y")]
    attributes = {"body": body(["v", "x"], nodes, types), "num_scan_inputs": 1}
    if t.version < 9:
        return [
            Call([None, t(2, 2), t(2, 4, 3)], attributes, 2),
            Call([ints(4, 2), t(2, 2), t(2, 4, 3)], attributes, 2),
            Call([None, t(2, 2), t(2, 4, 3)], {**attributes, "directions": [1]}, 2),
        ]
    axes = {"scan_input_axes": [-1], "scan_output_axes": [1]}
    return [
        Call([t(2), t(4, 3)], attributes, 2),
        Call(
            [t(2), t(3, 4)],
            {**attributes, **(axes if t.version > 9 else {"scan_input_axes": [1]})},
            2,
        ),
        Call([t(2), t(4, 3)], {**attributes, "scan_input_directions": [1]}, 2),
        Call([t(2), t(4, 3)], {**attributes, "scan_output_directions": [1]}, 2),
        Call([t(2), t(0, 3)], attributes, 2),
    ]


def bernoulli(t: Maker) -> list[Call]:
    x = t.of(0, 1, 1, 0)
    given = [Call([x], {"dtype": other.number()}) for other in t.others("T2")]
    return [Call([x]), Call([x[:0]]), *given]


def multinomial(t: Maker) -> list[Call]:
    """Log probabilities of which one is by far the greatest."""
    x = t.of(-1e4, 0, -1e4, 0, -1e4, -1e4).reshape(2, 3)
    attributes = [{"dtype": i.number(), "sample_size": 4} for i in t.others("T2")]
    return [Call([x]), *(Call([x], given) for given in attributes)]


def random_normal(t: Maker) -> list[Call]:
    given = {"dtype": t.number(), "scale": 1e-30}
    return [Call([], {**given, "shape": shape, "mean": 1.5}) for shape in ([2, 3], [0, 2])]


def random_uniform(t: Maker) -> list[Call]:
    given = {"dtype": t.number(), "low": 1.5, "high": 1.5}
    return [Call([], {**given, "shape": shape}) for shape in ([2, 3], [0, 2])]


def random_normal_like(t: Maker) -> list[Call]:
    return random_like(t, {"scale": 1e-30, "mean": -2.0})


def random_uniform_like(t: Maker) -> list[Call]:
    return random_like(t, {"low": -2.0, "high": -2.0})


def random_like(t: Maker, attributes: dict[str, float]) -> list[Call]:
    results = t.others("T2")
    calls = [Call([t(2, 3)], {**attributes, "dtype": result.number()}) for result in results]
    if t.name in [result.name for result in results]:
        calls += [Call([t(2, 1)], attributes), Call([t()], attributes)]
    return calls


RECIPES = {
    "Bernoulli": bernoulli,
    "ConcatFromSequence": concat_from_sequence,
    "Constant": constant,
    "Identity": identity,
    "If": if_,
    "Loop": loop,
    "Multinomial": multinomial,
    "Optional": optional,
    "OptionalGetElement": optional_get_element,
    "OptionalHasElement": optional_has_element,
    "RandomNormal": random_normal,
    "RandomNormalLike": random_normal_like,
    "RandomUniform": random_uniform,
    "RandomUniformLike": random_uniform_like,
    "Scan": scan,
    "SequenceAt": sequence_at,
    "SequenceConstruct": sequence_construct,
    "SequenceEmpty": sequence_empty,
    "SequenceErase": sequence_erase,
    "SequenceInsert": sequence_insert,
    "SequenceLength": lambda t: [Call([sequence(t)]), Call([[t()]])],
    "SequenceMap": sequence_map,
    "SplitToSequence": split_to_sequence,
}
