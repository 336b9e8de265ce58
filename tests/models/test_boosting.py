"""XGBoost and LightGBM models, converted by onnxmltools."""

import json
import warnings

import numpy as np
import pytest
from converted import check_model

onnxmltools = pytest.importorskip("onnxmltools")

from onnxmltools.convert.common.data_types import FloatTensorType  # noqa: E402

COLUMNS = 6
RNG = np.random.default_rng(7)
X = RNG.standard_normal((200, COLUMNS)).astype(np.float32)
MISSING = X.copy()
MISSING[RNG.random(X.shape) < 0.2] = np.nan
LINEAR = X @ RNG.standard_normal(COLUMNS).astype(np.float32) + np.sin(3 * X[:, 0])
TARGETS = {
    "regression": LINEAR,
    "positive": np.exp(LINEAR / 3),
    "counts": np.floor(np.abs(LINEAR)),
    "binary": (LINEAR > 0).astype(np.int64),
    "classes": np.digitize(LINEAR, [-1.5, 0, 1.5]),
}
KIND = [("x", FloatTensorType([None, COLUMNS]))]

XGBOOST = [
    ("XGBRegressor", "regression", {}),
    ("XGBRegressor", "regression", {"base_score": 3.5}),
    ("XGBRegressor", "positive", {"objective": "reg:gamma"}),
    ("XGBRegressor", "counts", {"objective": "count:poisson"}),
    ("XGBRegressor", "positive", {"objective": "reg:tweedie"}),
    ("XGBRegressor", "regression", {"num_parallel_tree": 3}),
    ("XGBRFRegressor", "regression", {}),
    ("XGBClassifier", "binary", {}),
    ("XGBClassifier", "binary", {"objective": "reg:logistic"}),
    ("XGBClassifier", "classes", {}),
    ("XGBClassifier", "classes", {"objective": "multi:softmax"}),
    ("XGBRFClassifier", "classes", {}),
]

LIGHTGBM = [
    ("LGBMRegressor", "regression", {}),
    ("LGBMRegressor", "regression", {"objective": "mae"}),
    ("LGBMRegressor", "counts", {"objective": "poisson"}),
    ("LGBMRegressor", "positive", {"objective": "gamma"}),
    ("LGBMRegressor", "regression", {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}),
    ("LGBMRegressor", "regression", {"boosting_type": "dart"}),
    ("LGBMClassifier", "binary", {}),
    ("LGBMClassifier", "classes", {}),
    ("LGBMClassifier", "classes", {"objective": "ova"}),
]


def case_id(case: tuple) -> str:
    name, target, options = case
    return "-".join([name, target, *map(str, options.values())])


def convert_or_skip(convert: object, model: object, **options: object) -> bytes:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return convert(model, initial_types=KIND, **options).SerializeToString()
    except Exception as error:
        pytest.skip(f"onnxmltools does not convert it: {type(error).__name__}: {error}"[:200])


# If the converter itself loses the forest's averages, there is no prediction to compare with.
def check(content: bytes, with_missing: bool, prediction: np.ndarray | None) -> None:
    x = MISSING if with_missing else X
    for rows in (1, 57, len(x)):
        actual = check_model(content, {"x": x[:rows]}, atol=1e-4)
    if prediction is not None:
        np.testing.assert_allclose(actual[0].reshape(prediction.shape), prediction, 1e-3, 1e-3)


@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("case", XGBOOST, ids=case_id)
def test_xgboost(case: tuple, with_missing: bool) -> None:
    xgboost = pytest.importorskip("xgboost")
    name, target, options = case
    x = MISSING if with_missing else X
    estimator = getattr(xgboost, name)(n_estimators=7, max_depth=4, random_state=0, **options)
    estimator.fit(x, TARGETS[target])
    content = convert_or_skip(onnxmltools.convert_xgboost, estimator)
    is_faithful = (name, target) != ("XGBRFClassifier", "classes")
    check(content, with_missing, estimator.predict(x) if is_faithful else None)


@pytest.mark.parametrize("split", [None, 3])
@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("case", LIGHTGBM, ids=case_id)
def test_lightgbm(case: tuple, with_missing: bool, split: int | None) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    name, target, options = case
    x = MISSING if with_missing else X
    estimator = getattr(lightgbm, name)(
        n_estimators=7, max_depth=4, random_state=0, verbose=-1, **options
    )
    estimator.fit(x, TARGETS[target])
    more = {} if split is None else {"split": split}
    content = convert_or_skip(onnxmltools.convert_lightgbm, estimator, **more)
    is_faithful = options.get("boosting_type") != "rf"
    check(content, with_missing, estimator.predict(x) if is_faithful else None)


def test_lightgbm_with_categories() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    x = X.copy()
    x[:, 2] = RNG.integers(0, 9, len(x))
    target = TARGETS["regression"] + np.isin(x[:, 2], [1, 4, 8]) * 50
    estimator = lightgbm.LGBMRegressor(
        n_estimators=7, verbose=-1, min_data_per_group=1, cat_smooth=0, max_cat_to_onehot=1
    )
    estimator.fit(x, target, categorical_feature=[2])
    content = convert_or_skip(onnxmltools.convert_lightgbm, estimator)
    check_model(content, {"x": x}, 1e-4)
    assert json.dumps(estimator.booster_.dump_model()).count('"=="')  # it does split on categories
