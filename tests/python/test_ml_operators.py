"""Operators of ai.onnx.ml, compared with onnxruntime's: support vector machines, tree ensembles."""

from __future__ import annotations

import itertools
from typing import Any

import graphs
import numpy as np
import onnx
import onnxruntime
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper

ML = "ai.onnx.ml"
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
ROWS, COLUMNS = 23, 5


def content(
    op: str, outputs: list[Any], element_type: int, opset: int = 5, **attributes: Any
) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], [o.name for o in outputs], domain=ML, **attributes)],
        "graph",
        [helper.make_tensor_value_info("x", element_type, [None, COLUMNS])],
        outputs,
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(ML, opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def expect_same(model: bytes, x: np.ndarray) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    expected = onnxruntime.InferenceSession(model, options).run(None, {"x": x})
    actual = tenon.InferenceSession(model).run(None, {"x": x})
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        if e.dtype == object:
            assert a.tolist() == e.tolist()
        else:
            np.testing.assert_allclose(a, e, rtol=2e-5, atol=2e-6)


def features(seed: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(ROWS, COLUMNS)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressors_match(kernel: str, one_class: int) -> None:
    rng = np.random.default_rng(1)
    supports = 7
    model = content(
        "SVMRegressor",
        [graphs.tensor("y", shape=None)],
        TensorProto.FLOAT,
        kernel_type=kernel,
        kernel_params=[0.3, 0.5, 2.0],
        coefficients=rng.normal(size=supports).tolist(),
        support_vectors=rng.normal(size=supports * COLUMNS).tolist(),
        rho=[0.25],
        n_supports=supports,
        one_class=one_class,
    )
    expect_same(model, features(2))


def classifier(
    classes: int, kernel: str, *, probabilities: bool, positive: bool, transform: str, text: bool
) -> bytes:
    rng = np.random.default_rng(classes)
    per_class = [3 + i for i in range(classes)]
    supports = sum(per_class)
    pairs = classes * (classes - 1) // 2
    coefficients = rng.normal(size=supports * (classes - 1))
    labels: dict[str, Any] = (
        {"classlabels_strings": [f"c{i}" for i in range(classes)]}
        if text
        else {"classlabels_ints": [10 + i for i in range(classes)]}
    )
    more: dict[str, Any] = {}
    if probabilities:
        more = {
            "prob_a": (-1 - rng.random(pairs)).tolist(),
            "prob_b": rng.normal(size=pairs).tolist(),
        }
    label_type = TensorProto.STRING if text else TensorProto.INT64
    return content(
        "SVMClassifier",
        [
            helper.make_tensor_value_info("label", label_type, None),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, None),
        ],
        TensorProto.FLOAT,
        kernel_type=kernel,
        kernel_params=[0.3, 0.5, 2.0],
        coefficients=(np.abs(coefficients) if positive else coefficients).tolist(),
        support_vectors=rng.normal(size=supports * COLUMNS).tolist(),
        rho=rng.normal(size=pairs).tolist(),
        vectors_per_class=per_class,
        post_transform=transform,
        **labels,
        **more,
    )


@pytest.mark.parametrize(
    ("classes", "probabilities", "positive", "text"),
    list(itertools.product([2, 3, 4], [False, True], [False, True], [False, True])),
)
def test_svm_classifiers_match(
    classes: int, probabilities: bool, positive: bool, text: bool
) -> None:
    for kernel in KERNELS:
        model = classifier(
            classes,
            kernel,
            probabilities=probabilities,
            positive=positive,
            transform="NONE",
            text=text,
        )
        expect_same(model, features(3))


@pytest.mark.parametrize("classify", [False, True])
def test_sums_over_support_vectors_hold_large_coefficients(classify: bool) -> None:
    """Ten thousand times what they add up to, as those of a machine with few errors."""
    rng = np.random.default_rng(8)
    supports = 400
    x = features(9)
    vectors = rng.normal(size=(supports, COLUMNS)).astype(np.float32)
    kernels = np.exp(-0.01 * ((x[:, None].astype(float) - vectors) ** 2).sum(-1))
    # Of one sign, then of the other, so that a float sum would grow before it shrinks.
    coefficients = (10000 + rng.normal(size=supports)).astype(np.float32)
    coefficients[supports // 2 :] *= -1
    shared: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.01, 0.0, 0.0],
        "coefficients": coefficients.tolist(),
        "support_vectors": vectors.ravel().tolist(),
        "rho": [0.0],
    }
    score = graphs.tensor("score", shape=None)
    if classify:
        half = supports // 2
        label = helper.make_tensor_value_info("label", TensorProto.INT64, None)
        shared.update(vectors_per_class=[half, half], classlabels_ints=[0, 1])
        model = content("SVMClassifier", [label, score], TensorProto.FLOAT, **shared)
    else:
        model = content("SVMRegressor", [score], TensorProto.FLOAT, n_supports=supports, **shared)
    actual = tenon.InferenceSession(model).run(["score"], {"x": x})[0][:, -1]
    expected = kernels @ coefficients.astype(float)
    # Each kernel is a float: one unit in the last place of `supports` terms, in quadrature.
    error = 10000 * np.finfo(np.float32).eps * np.sqrt(supports)
    assert np.abs(np.abs(actual) - np.abs(expected)).max() < error


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_svm_classifiers_transform_scores(transform: str) -> None:
    for classes in (2, 3):
        model = classifier(
            classes, "RBF", probabilities=False, positive=False, transform=transform, text=False
        )
        expect_same(model, features(4))


@pytest.mark.parametrize("positive", [False, True])
def test_linear_svm_classifiers_match(positive: bool) -> None:
    """For two labels and coefficients of both signs, onnxruntime always has the second label."""
    rng = np.random.default_rng(5)
    for classes in (2, 3) if positive else (3, 4):
        coefficients = rng.normal(size=classes * COLUMNS)
        model = content(
            "SVMClassifier",
            [
                helper.make_tensor_value_info("label", TensorProto.INT64, None),
                helper.make_tensor_value_info("scores", TensorProto.FLOAT, None),
            ],
            TensorProto.FLOAT,
            kernel_type="LINEAR",
            kernel_params=[0.0, 0.0, 0.0],
            coefficients=(np.abs(coefficients) if positive else coefficients).tolist(),
            rho=[0.5],
            classlabels_ints=list(range(1, classes + 1)),
        )
        expect_same(model, features(6))


def random_ensemble(
    rng: np.random.Generator, trees: int, depth: int, targets: int, dtype: Any, members: bool
) -> dict[str, Any]:
    """The attributes of a TreeEnsemble of full trees; some branches test for membership."""
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("features", "splits", "modes", "true", "false", "leaf", "missing")
    }
    weights: list[float] = []
    leaf_targets: list[int] = []
    values: list[list[float]] = []
    roots = []

    def grow(level: int) -> int:
        at = len(nodes["features"])
        for entries in nodes.values():
            entries.append(0)
        nodes["features"][at] = int(rng.integers(COLUMNS))
        nodes["splits"][at] = float(np.round(rng.normal(), 1))
        mode = int(rng.integers(7 if members else 6))
        nodes["modes"][at] = mode
        nodes["missing"][at] = int(rng.integers(2))
        nodes["leaf"][at] = int(level + 1 == depth)
        for side in ("true", "false"):
            if nodes["leaf"][at]:
                nodes[side][at] = len(weights)
                weights.append(float(rng.normal()))
                leaf_targets.append(int(rng.integers(targets)))
            else:
                nodes[side][at] = grow(level + 1)
        return at

    for _ in range(trees):
        roots.append(grow(0))
    values = [
        np.round(rng.normal(size=rng.integers(1, 5)), 1).tolist()
        for mode in nodes["modes"]
        if mode == 6
    ]

    def tensor(numbers: list[Any], kind: Any) -> onnx.TensorProto:
        return numpy_helper.from_array(np.array(numbers, kind))

    attributes: dict[str, Any] = {
        "tree_roots": roots,
        "n_targets": targets,
        "nodes_featureids": nodes["features"],
        "nodes_splits": tensor(nodes["splits"], dtype),
        "nodes_modes": tensor(nodes["modes"], np.uint8),
        "nodes_truenodeids": nodes["true"],
        "nodes_falsenodeids": nodes["false"],
        "nodes_trueleafs": nodes["leaf"],
        "nodes_falseleafs": nodes["leaf"],
        "nodes_missing_value_tracks_true": nodes["missing"],
        "leaf_weights": tensor(weights, dtype),
        "leaf_targetids": leaf_targets,
    }
    if values:
        listed = [number for chosen in values for number in [*chosen, np.nan]]
        attributes["membership_values"] = tensor(listed, dtype)
    return attributes


def walk(attributes: dict[str, Any], x: np.ndarray, aggregate: int) -> np.ndarray:
    """TreeEnsemble-5 in simple Python."""
    modes = numpy_helper.to_array(attributes["nodes_modes"])
    splits = numpy_helper.to_array(attributes["nodes_splits"])
    weights = numpy_helper.to_array(attributes["leaf_weights"])
    members: dict[int, set[float]] = {}
    if "membership_values" in attributes:
        numbers = iter(numpy_helper.to_array(attributes["membership_values"]).tolist())
        for node, mode in enumerate(modes):
            if mode == 6:
                members[node] = set(itertools.takewhile(lambda v: not np.isnan(v), numbers))
    result = []
    for row in x:
        met: list[list[float]] = [[] for _ in range(attributes["n_targets"])]
        for root in attributes["tree_roots"]:
            node, is_leaf = root, False
            while not is_leaf:
                value, split, mode = (
                    row[attributes["nodes_featureids"][node]],
                    splits[node],
                    modes[node],
                )
                if mode == 6:
                    holds = float(value) in members[node]
                else:
                    holds = [
                        value <= split,
                        value < split,
                        value >= split,
                        value > split,
                        value == split,
                        value != split,
                    ][mode]
                if np.isnan(value) and attributes["nodes_missing_value_tracks_true"][node]:
                    holds = True
                side = "true" if holds else "false"
                is_leaf = bool(attributes[f"nodes_{side}leafs"][node])
                node = attributes[f"nodes_{side}nodeids"][node]
            met[attributes["leaf_targetids"][node]].append(float(weights[node]))
        scores = []
        for weight in met:
            scores.append(
                [sum(weight) / len(attributes["tree_roots"]), sum(weight)][aggregate]
                if aggregate < 2
                else (min, max)[aggregate - 2](weight, default=0.0)
            )
        result.append(scores)
    return np.array(result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("members", [False, True])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_tree_ensembles_match_a_plain_walk(dtype: Any, members: bool, aggregate: int) -> None:
    rng = np.random.default_rng(7)
    for trees, depth, targets in [(1, 1, 1), (3, 4, 2), (12, 5, 1)]:
        attributes = random_ensemble(rng, trees, depth, targets, dtype, members)
        element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        model = content(
            "TreeEnsemble",
            [helper.make_tensor_value_info("y", element_type, None)],
            element_type,
            aggregate_function=aggregate,
            **attributes,
        )
        # Rounded, so that tests for equality and membership are sometimes true.
        x = np.round(rng.normal(size=(ROWS, COLUMNS)), 1).astype(dtype)
        x[3, :] = np.nan
        (actual,) = tenon.InferenceSession(model).run(None, {"x": x})
        assert actual.dtype == dtype
        tolerance = 2e-2 if dtype == np.float16 else 1e-5
        np.testing.assert_allclose(
            actual, walk(attributes, x, aggregate), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("base", [[0.5], [0.5, -1.0, 2.0]])
@pytest.mark.parametrize("op", ["TreeEnsembleClassifier", "TreeEnsembleRegressor"])
def test_one_base_value_is_that_of_all_scores(op: str, base: list[float]) -> None:
    """As in ONNX's reference; onnxruntime ignores it."""
    weights = np.array([[0.25, -1.0], [1.5, 0.75], [-2.0, 3.0]])  # of both leaves, per score
    leaves = [(tree, node) for tree in range(3) for node in (1, 2)]
    prefix, ids = ("class", "class_ids") if "Classifier" in op else ("target", "target_ids")
    attributes: dict[str, Any] = {
        "nodes_treeids": [tree for tree in range(3) for _ in range(3)],
        "nodes_nodeids": [0, 1, 2] * 3,
        "nodes_featureids": [0, 0, 0, 1, 0, 0, 2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"] * 3,
        "nodes_values": [0.0] * 9,
        "nodes_truenodeids": [1, 0, 0] * 3,
        "nodes_falsenodeids": [2, 0, 0] * 3,
        f"{prefix}_treeids": [tree for tree, _ in leaves],
        f"{prefix}_nodeids": [node for _, node in leaves],
        ids: [tree for tree, _ in leaves],
        f"{prefix}_weights": weights.ravel().tolist(),
        "base_values": base,
    }
    outputs = [helper.make_tensor_value_info("score", TensorProto.FLOAT, None)]
    if prefix == "class":
        attributes["classlabels_int64s"] = [0, 1, 2]
        outputs.insert(0, helper.make_tensor_value_info("label", TensorProto.INT64, None))
    else:
        attributes["n_targets"] = 3
    x = features(10)
    model = content(op, outputs, TensorProto.FLOAT, opset=3, **attributes)
    results = tenon.InferenceSession(model).run(None, {"x": x})
    expected = np.where(x[:, :3] <= 0, weights[:, 0], weights[:, 1]) + base
    np.testing.assert_allclose(results[-1], expected, rtol=1e-6)
    if prefix == "class":
        assert results[0].tolist() == expected.argmax(1).tolist()
