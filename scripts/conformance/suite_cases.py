"""The cases of onnx.backend.test, in a fixed order, with their categories."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import onnx.backend.test
from onnx.backend.test.loader import load_model_tests

CATEGORIES = (
    "node",
    "node, expanded",
    "node, ai.onnx.ml",
    "node, previews",
    "simple",
    "light models",
    "pytorch-converted",
    "pytorch-operator",
)
KINDS = {
    "OnnxBackendRealModelTest": "light models",
    "OnnxBackendSimpleModelTest": "simple",
    "OnnxBackendPyTorchConvertedModelTest": "pytorch-converted",
    "OnnxBackendPyTorchOperatorModelTest": "pytorch-operator",
}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    category: str
    run: Callable[[], None]


@functools.cache
def node_categories() -> dict[str, str]:
    """The category of every node case."""
    categories = {}
    for case in load_model_tests(kind="node"):
        domains = {opset.domain for opset in case.model.opset_import} if case.model else set()
        category = "node, expanded" if "_expanded" in case.name else "node"
        if "ai.onnx.ml" in domains:
            category = "node, ai.onnx.ml"
        elif any(domain.startswith("ai.onnx.preview") for domain in domains):
            category = "node, previews"
        categories[case.name] = category
    return categories


def load(backend: type) -> list[Case]:
    """All cases on the CPU."""
    loaded = []
    classes = onnx.backend.test.BackendTest(backend, __name__).test_cases
    for class_name, suite in sorted(classes.items()):
        for method in sorted(name for name in vars(suite) if name.endswith("_cpu")):
            name = method.removesuffix("_cpu")
            category = KINDS.get(class_name) or node_categories()[name]
            loaded.append(Case(name, category, functools.partial(run_case, suite, method)))
    return loaded


def run_case(suite: type, method: str) -> None:
    getattr(suite(method), method)()
