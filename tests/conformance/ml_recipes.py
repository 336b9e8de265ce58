"""Recipes of ai.onnx.ml and ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import numpy_helper
from recipes import Call, Maker, ints

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def array_feature_extractor(t: Maker) -> list[Call]:
    x = t(2, 4)
    return [Call([x, at]) for at in (ints(1, 3), ints(0), ints(2, 2, 0))] + [Call([t(4), ints(3)])]


def binarizer(t: Maker) -> list[Call]:
    shapes = [(5,), (2, 3), (1, 2, 3)]
    return [Call([t(*shape)]) for shape in shapes] + [Call([t(2, 3)], {"threshold": 1.5})]


def cast_map(t: Maker) -> list[Call]:
    to = {"float": "TO_FLOAT", "int64": "TO_INT64", "string": "TO_STRING"}[t.name]
    calls = []
    for values in ({0: "1", 2: "-3", 5: "2"}, {1: np.float32(1), 3: np.float32(-3)}):
        sparse = {"cast_to": to, "map_form": "SPARSE", "max_map": 7}
        calls += [Call([values], {"cast_to": to}), Call([values], sparse)]
    return calls


def category_mapper(t: Maker) -> list[Call]:
    cats = {"cats_int64s": [4, 2, 7], "cats_strings": ["a", "日本", ""]}
    if t.is_string:
        return [Call([t(2, 3)], cats), Call([t(4)], {**cats, "default_int64": -5})]
    x = t.of(7, 4, 3, 2)
    return [Call([x], cats), Call([x.reshape(2, 2)], {**cats, "default_string": "other"})]


def dict_vectorizer(t: Maker) -> list[Call]:
    kind = {"float": float, "double": np.float64, "int64": int, "string": str}[t.name]
    names, numbers = ["a", "c", "d"], [3, 5, 9]
    with_names = {"string_vocabulary": ["d", "b", "a"]}
    with_numbers = {"int64_vocabulary": [9, 1, 3]}

    def values(keys: list) -> dict:
        return {
            key: t.dtype.type(i + 1) if kind is not str else f"v{i}" for i, key in enumerate(keys)
        }

    calls = []
    if t.name != "string":
        calls.append(Call([values(names)], with_names))
    if t.name != "int64":
        calls.append(Call([values(numbers)], with_numbers))
    return calls


def feature_vectorizer(t: Maker) -> list[Call]:
    sizes = {"inputdimensions": [2, 3]}
    return [Call([t(2, 2), t(2, 3)], sizes), Call([t(3, 4)], {"inputdimensions": [4]})]


def imputer(t: Maker) -> list[Call]:
    x = t(3, 2)
    if not t.is_float:
        given = {"replaced_value_int64": int(x[1, 1])}
        return [Call([x], {**given, "imputed_value_int64s": v}) for v in ([9], [8, 9])]
    x[1, 1] = -9
    given = [{"replaced_value_float": -9.0}, {"replaced_value_float": float("nan")}]
    holed = x.copy()
    holed[0, 1] = np.nan
    return [
        Call([value], {**attributes, "imputed_value_floats": v})
        for value, attributes in zip((x, holed), given, strict=True)
        for v in ([1.5], [2.5, -1.5])
    ]


def label_encoder(t: Maker) -> list[Call]:
    x = t(2, 3)
    if t.version < 2:
        classes = {"classes_strings": ["a", "日本", "", "Zapfen"]}
        if t.is_string:
            return [Call([x], classes), Call([x], {**classes, "default_int64": -7})]
        return [
            Call([t.of(3, 0, 9)], classes),
            Call([t.of(1, 4)], {**classes, "default_string": "?"}),
        ]
    keys, calls = np.unique(x)[:-1], []
    for other in t.others("T2"):
        values = other.of(*range(3, 3 + len(keys)))
        if other.is_string:
            values = np.array([f"v{i}" for i in range(len(keys))], object)
        attributes: dict[str, Any] = {}
        for part, array in (("keys", keys), ("values", values)):
            kind = {"string": "strings", "int64": "int64s", "float": "floats"}
            name = t.name if part == "keys" else other.name
            if name in kind:
                attributes[f"{part}_{kind[name]}"] = array.tolist()
            else:
                attributes[f"{part}_tensor"] = numpy_helper.from_array(array)
        calls.append(Call([x], attributes))
        defaults = {"string": ("string", "?"), "int64": ("int64", -7), "float": ("float", 0.5)}
        if other.name in defaults:
            name, value = defaults[other.name]
            calls.append(Call([x], {**attributes, f"default_{name}": value}))
        if t.version >= 4:
            default = other.of(9) if not other.is_string else np.array(["?"], object)
            default_tensor = {"default_tensor": numpy_helper.from_array(default)}
            if other.name not in defaults:
                calls.append(Call([x], {**attributes, **default_tensor}))
    return calls


def labels(t: Maker, count: int) -> list[dict[str, Any]]:
    """As numbers, and as strings."""
    suffix = "int64s" if t.schema.name.startswith("Tree") else "ints"
    numbers = {f"classlabels_{suffix}": [4, 7, 9][:count]}
    return [numbers, {"classlabels_strings": ["a", "b", "日本"][:count]}]


def linear_classifier(t: Maker) -> list[Call]:
    three = {"coefficients": [0.5, -1, 0.25, 1, 0.75, -0.5], "intercepts": [0.5, 0.0, -0.25]}
    two = {"coefficients": [0.5, -1, -0.5, 1], "intercepts": [0.5, -0.5]}
    one = {"coefficients": [0.5, -1], "intercepts": [0.25]}
    calls = []
    for transform in TRANSFORMS[:4]:
        given = {"post_transform": transform}
        calls += [Call([t(3, 2)], {**three, **given, **names}, 2) for names in labels(t, 3)]
    calls += [Call([t(3, 2)], {**two, **names}, 2) for names in labels(t, 2)]
    return calls + [Call([t(3, 2)], {**one, **names}, 2) for names in labels(t, 2)]


def linear_regressor(t: Maker) -> list[Call]:
    two = {"coefficients": [0.5, -1, 0.25, 1, 0.75, -0.5], "targets": 2}
    return [
        Call([t(4, 3)], {"coefficients": [0.5, -1, 0.25], "intercepts": [2.0]}),
        Call([t(4, 3)], two),
        Call([t(4, 3)], {**two, "intercepts": [1.0, -1.0]}),
    ]


def normalizer(t: Maker) -> list[Call]:
    shapes = [(2, 3), (4,), (1, 3)]
    norms = ("MAX", "L1", "L2")
    return [Call([t(*s, low=1)], {"norm": norm}) for norm in norms for s in shapes]


def one_hot_encoder(t: Maker) -> list[Call]:
    if t.is_string:
        cats = {"cats_strings": ["a", "", "Zapfen"]}
        return [Call([t(2, 3)], cats), Call([t(4)], cats)]
    cats = {"cats_int64s": [1, 3, 0]}
    x = t.of(1, 0, 3, 3)
    return [
        Call([x], cats),
        Call([x.reshape(2, 2)], cats),
        Call([t.of(1, 5)], {**cats, "zeros": 1}),
    ]


KERNELS = (
    {"kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0]},
    {"kernel_type": "POLY", "kernel_params": [0.5, 1.0, 2.0]},
    {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0]},
    {"kernel_type": "SIGMOID", "kernel_params": [0.5, 0.25, 0.0]},
)


def svm_classifier(t: Maker) -> list[Call]:
    """Of three classes, with one or two vectors each; then linear, without vectors."""
    vectors = [1.0, 0.5, -1.0, 2.0, 0.0, -1.5, 1.5, 1.0]
    machine = {
        "support_vectors": vectors,
        "vectors_per_class": [1, 2, 1],
        "coefficients": [0.5, -1.0, 0.75, 0.25, -0.5, 1.0, -0.25, 0.5],
        "rho": [0.1, -0.2, 0.3],
    }
    likely = {"prob_a": [-1.0, -0.5, -2.0], "prob_b": [0.1, 0.0, -0.1]}
    calls = []
    for kernel in KERNELS:
        for names in labels(t, 3):
            calls += [Call([t(3, 2)], {**machine, **kernel, **names}, 2)]
        calls += [Call([t(3, 2)], {**machine, **kernel, **likely, **labels(t, 3)[0]}, 2)]
    line = {"coefficients": [0.5, -1.0, 0.25, 1.0, 0.75, -0.5], "rho": [0.25, 0.5, 0.0]}
    return [*calls, *(Call([t(3, 2)], {**line, **names}, 2) for names in labels(t, 3))]


def svm_regressor(t: Maker) -> list[Call]:
    machine = {
        "support_vectors": [1.0, 0.5, -1.0, 2.0, 0.0, -1.5],
        "coefficients": [0.5, -1.0, 0.75],
        "rho": [0.5],
        "n_supports": 3,
    }
    calls = [Call([t(3, 2)], {**machine, **kernel}) for kernel in KERNELS]
    calls.append(Call([t(3, 2)], {**machine, "one_class": 1}))
    return [*calls, Call([t(3, 2)], {"coefficients": [0.5, -1.0], "rho": [0.25]})]


def scaler(t: Maker) -> list[Call]:
    return [
        Call([t(2, 3)], {"scale": [0.5, 2.0, -1.0], "offset": [1.0, 0.0, -2.0]}),
        Call([t(2, 3)], {"scale": [0.5], "offset": [1.0]}),
        Call([t(3)], {"scale": [0.5, 2.0, -1.0], "offset": [1.0, 0.0, -2.0]}),
    ]


def as_tensors(attributes: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The same with `names` as tensors of doubles."""
    out = {name: value for name, value in attributes.items() if name not in names}
    for name in names:
        if name in attributes:
            out[f"{name}_as_tensor"] = numpy_helper.from_array(np.array(attributes[name]))
    return out


# Two trees: one of a root and two leaves, one of two branches and three leaves.
NODES = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 0, 1, 0, 0, 0, 0],
    "nodes_values": [0.5, 0.0, 0.0, -0.5, 1.5, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0, 1, 3, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 4, 0, 0, 0],
    "nodes_missing_value_tracks_true": [1, 0, 0, 0, 1, 0, 0, 0],
}
LEAVES = {"treeids": [0, 0, 1, 1, 1], "nodeids": [1, 2, 2, 3, 4]}
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def trees(mode: str, leaf: str, count: int) -> dict[str, Any]:
    """Every leaf votes for each of `count` targets or classes, the `leaf`."""
    modes = [mode, "LEAF", "LEAF", mode, mode, "LEAF", "LEAF", "LEAF"]
    leaves = {f"{leaf}_{name}": value * count for name, value in LEAVES.items()}
    leaves[f"{leaf}_ids"] = [i for i in range(count) for _ in range(5)]
    weights = [1.0, 2.0, 0.5, -3.0, 4.0, -2.5, 0.75, 1.5, 3.5, -1.0, 0.25, -1.5, 2.5, 0.5, 1.0]
    leaves[f"{leaf}_weights"] = weights[: 5 * count]
    return {**NODES, "nodes_modes": modes, **leaves}


def tree_input(t: Maker) -> np.ndarray:
    x = t(5, 2)
    if t.is_float:
        x[0, 0], x[1, 1] = 0.5, np.nan
    return x


def tree_ensemble_regressor(t: Maker) -> list[Call]:
    calls = []
    for mode in MODES:
        attributes = {**trees(mode, "target", 2), "n_targets": 2}
        calls.append(Call([tree_input(t)], attributes))
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        given = {**attributes, "aggregate_function": aggregate, "base_values": [0.25, -0.5]}
        calls.append(Call([t(5, 2)], given))
        if t.version >= 3 and t.name == "double":
            names = ["nodes_values", "target_weights", "base_values"]
            calls.append(Call([t(5, 2)], as_tensors(given, names)))
    return calls


def tree_ensemble_classifier(t: Maker) -> list[Call]:
    calls = []
    for transform in TRANSFORMS[:4]:
        attributes = {**trees("BRANCH_LEQ", "class", 3), "post_transform": transform}
        calls += [Call([tree_input(t)], {**attributes, **names}, 2) for names in labels(t, 3)]
    given = {**attributes, "base_values": [0.25, -0.5, 0.0], **labels(t, 3)[0]}
    calls.append(Call([tree_input(t)], given, 2))
    if t.version >= 3 and t.name == "double":
        names = ["nodes_values", "class_weights", "base_values"]
        calls.append(Call([tree_input(t)], as_tensors(given, names), 2))
    for names in labels(t, 2):
        calls.append(Call([tree_input(t)], {**trees("BRANCH_LT", "class", 1), **names}, 2))
    return calls


def tree_ensemble(t: Maker) -> list[Call]:
    """The tree x0 <= 0.5 ? (x1 > -0.5 ? a : b) : (x1 in {1, 3} ? c : d), then one of a root."""
    tensor = numpy_helper.from_array
    base = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0, 1, 1],
        "nodes_splits": tensor(t.of(0.5, -0.5, 0)),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": tensor(t.of(1, 2, -3, 0.5)),
        "nodes_modes": tensor(np.array([0, 3, 6], np.uint8)),
        "membership_values": tensor(t.of(1, 3, np.nan)),
    }
    x = tree_input(t)
    x[2:4, 0], x[2:4, 1] = 2, (3, 2)
    calls = [Call([x], {**base, "aggregate_function": how}) for how in range(4)]
    plain = {name: value for name, value in base.items() if name != "membership_values"}
    for mode in range(6):
        modes = {"nodes_modes": tensor(np.array([mode] * 3, np.uint8))}
        tracks = {"nodes_missing_value_tracks_true": [1, 0, 1]}
        calls += [Call([x], {**plain, **modes}), Call([x], {**plain, **modes, **tracks})]
    return calls + [Call([x], {**base, "post_transform": i}) for i in (1, 2, 3)]


def zip_map(t: Maker) -> list[Call]:
    x = np.random.default_rng(7).uniform(0, 1, (2, 3)).astype(np.float32)
    names = [{"classlabels_int64s": [4, 7, 9]}, {"classlabels_strings": ["a", "b", "日本"]}]
    return [Call([x], given) for given in names]


def optimizer(states: int, *variants: dict[str, Any]) -> Callable[[Maker], list[Call]]:
    """Of one tensor, then of two; a tensor has a gradient and `states` more tensors."""

    def recipe(t: Maker) -> list[Call]:
        calls = []
        for u in t.others("T3"):
            for variant in variants:
                for step in (0, 5):
                    one = [u(2, 3, low=0, high=1) for _ in range(2 + states)]
                    many = [u(*s, low=0, high=1) for _ in range(2 + states) for s in ((3,), (1, 2))]
                    at = [t.scalar(0.1), np.array(step, np.int64)]
                    calls += [Call([*at, *one], variant, 1 + states)]
                    calls += [Call([*at, *many], variant, 2 * (1 + states))]
        return calls

    return recipe


MOMENTUM = {"alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.01}
RECIPES = {
    "Adagrad": optimizer(1, {}, {"norm_coefficient": 0.01, "decay_factor": 0.1, "epsilon": 1e-3}),
    "Adam": optimizer(2, {}, {"norm_coefficient": 0.01, "norm_coefficient_post": 0.02}),
    "ArrayFeatureExtractor": array_feature_extractor,
    "Binarizer": binarizer,
    "CastMap": cast_map,
    "CategoryMapper": category_mapper,
    "DictVectorizer": dict_vectorizer,
    "FeatureVectorizer": feature_vectorizer,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Momentum": optimizer(1, *({**MOMENTUM, "mode": mode} for mode in ("standard", "nesterov"))),
    "Normalizer": normalizer,
    "OneHotEncoder": one_hot_encoder,
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
    "Scaler": scaler,
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_ensemble_classifier,
    "TreeEnsembleRegressor": tree_ensemble_regressor,
    "ZipMap": zip_map,
}
