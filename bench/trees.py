"""Times ensembles of trees on Tenon and on onnxruntime, in turns in one process.

    python bench/trees.py [--match forest] [--threads 1] [--rows 1 100 100000]

Random forests come from scikit-learn through skl2onnx, boosted trees from LightGBM through
onnxmltools. Prints, for each model and number of rows, the least time of a run in microseconds and
Tenon's share of onnxruntime's.
"""

from __future__ import annotations

import argparse
import warnings

import lightgbm
import numpy as np
import onnxmltools
import skl2onnx
from onnx import ModelProto
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from turns import print_row

FEATURES, SAMPLES, TREES = 20, 20_000, 100
MOST_LEAVES = 2000  # of a boosted tree
DEPTHS = (4, 8, 12, 14)
KINDS = ("forest", "forest classifier", "boosted")


def samples() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((SAMPLES, FEATURES)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2]) + x[:, 3:8].sum(1) + rng.standard_normal(SAMPLES)
    return x, y


def model(kind: str, depth: int) -> ModelProto:
    x, y = samples()
    if kind == "boosted":
        options = {
            "max_depth": depth,
            "num_leaves": min(2**depth, MOST_LEAVES),
            "min_child_samples": 2,
        }
        boosted = lightgbm.LGBMRegressor(n_estimators=TREES, verbose=-1, **options).fit(x, y)
        types = [("x", FloatTensorType([None, FEATURES]))]
        return onnxmltools.convert_lightgbm(boosted, initial_types=types, target_opset=15)
    options = {"n_estimators": TREES, "max_depth": depth, "n_jobs": 2, "random_state": 0}
    if kind == "forest":
        forest = RandomForestRegressor(max_features=0.3, **options).fit(x, y)
    else:
        forest = RandomForestClassifier(**options).fit(x, np.digitize(y, [-2, 0, 2]))
    settings = {id(forest): {"zipmap": False}} if kind == "forest classifier" else None
    return skl2onnx.to_onnx(forest, x[:1], options=settings, target_opset=15)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--match", default="", help="what the names of the kinds have in them")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 100, 100_000])
    parser.add_argument("--depths", type=int, nargs="+", default=DEPTHS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| trees | rows | threads | tenon, us | onnxruntime, us | share |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in (kind for kind in KINDS if options.match in kind):
        for depth in options.depths:
            made = model(kind, depth)
            name = made.graph.input[0].name
            for threads in options.threads:
                for rows in options.rows:
                    x = np.random.default_rng(rows).standard_normal((rows, FEATURES))
                    case = f"{kind}, depth {depth} | {rows} | {threads}"
                    feeds = {name: x.astype(np.float32)}
                    print_row(case, made.SerializeToString(), threads, feeds)


if __name__ == "__main__":
    main()
