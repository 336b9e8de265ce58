"""Compares Tenon's shape inference with the onnx package's, on every model of its test suite."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import onnx
import pytest
import tenon
from onnx import shape_inference
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
# Models for which onnx infers a type that the run refutes: the sequence's elements have one axis,
# of sizes 1 to 5.
ONNX_IS_WRONG = {"test_loop13_seq"}

Type = tuple[Any, ...]


def models(kind: str) -> Iterator[tuple[Any, onnx.ModelProto]]:
    for case in load_model_tests(kind=kind):
        if case.name in ONNX_IS_WRONG:
            continue
        if case.model is not None:
            yield case, case.model
        elif case.model_dir:
            yield case, onnx.load(pathlib.Path(case.model_dir) / "model.onnx")


def type_of(proto: onnx.TypeProto) -> Type:
    """(kind, element type, dimensions), or (kind, type of the elements)."""
    kind = proto.WhichOneof("value")
    if kind is None:
        return ("unknown",)
    held = getattr(proto, kind)
    if kind == "map_type":
        return (kind, held.key_type, type_of(held.value_type))
    if kind in ("sequence_type", "optional_type"):
        return (kind, type_of(held.elem_type))
    if kind == "opaque_type" or not held.HasField("shape"):
        return (kind, getattr(held, "elem_type", None), None)
    return (kind, held.elem_type, [dim_of(dim) for dim in held.shape.dim])


def dim_of(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return dim.dim_value
    # A name of the kind that onnx makes up says nothing.
    return None if dim.dim_param.startswith("unk__") else dim.dim_param or None


def types_of(graph: onnx.GraphProto) -> dict[str, Type]:
    return {info.name: type_of(info.type) for info in [*graph.value_info, *graph.output]}


def is_covered(ours: Type, theirs: Type) -> bool:
    """Whether `ours` says at least what `theirs` does, and nothing else."""
    if theirs[0] == "unknown":
        return True
    if ours[0] != theirs[0]:
        return False
    if isinstance(theirs[-1], tuple):
        return ours[1:-1] == theirs[1:-1] and is_covered(ours[-1], theirs[-1])
    if theirs[1] not in (0, ours[1]):
        return False
    if ours[2] is None or theirs[2] is None:
        return theirs[2] is None
    return len(ours[2]) == len(theirs[2]) and all(
        mine == other if isinstance(other, int) else other is None or mine is not None
        for mine, other in zip(ours[2], theirs[2], strict=True)
    )


def inferred_by_tenon(model: onnx.ModelProto, path: pathlib.Path) -> onnx.GraphProto:
    """The graph as Tenon writes it without any optimization, with the types of its values."""
    options = tenon.SessionOptions()
    options.graph_optimization_level = tenon.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(path)
    tenon.InferenceSession(model.SerializeToString(), options)
    return onnx.load(path).graph


def refuted(case: Any, types: dict[str, Type], outputs: list[str]) -> list[str]:
    """The outputs of the run that do not have the types inferred."""
    found = []
    for _, expected in case.data_sets or []:
        for name, value in zip(outputs, expected, strict=False):
            _, *rest = types[name]
            shape = getattr(value, "shape", None)
            if shape is None or len(rest) != 2 or rest[1] is None:
                continue
            fits = len(shape) == len(rest[1]) and all(
                not isinstance(dim, int) or dim == size
                for dim, size in zip(rest[1], shape, strict=True)
            )
            if not fits:
                found.append(f"{case.name}: {name} is {shape}, inferred {rest[1]}")
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_finds_what_onnx_finds(kind: str, tmp_path: pathlib.Path) -> None:
    problems, compared = [], 0
    for case, model in models(kind):
        try:
            theirs = types_of(shape_inference.infer_shapes(model, data_prop=True).graph)
        except shape_inference.InferenceError:  # refuses a model of its own suite
            continue
        ours = types_of(inferred_by_tenon(model, tmp_path / "model.onnx"))
        problems += [
            f"{case.name}: {name}: expected {expected}, got {ours.get(name)}"
            for name, expected in theirs.items()
            if name and not is_covered(ours.get(name, ("unknown",)), expected)
        ]
        problems += refuted(case, ours, [output.name for output in model.graph.output])
        compared += len(theirs)
    assert not problems, "\n".join(problems)
    assert compared > 10
