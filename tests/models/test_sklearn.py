"""scikit-learn estimators and pipelines, converted by skl2onnx."""

import warnings
from unittest import mock

import numpy as np
import onnx
import pytest
from converted import check_model, run_tenon
from scipy import sparse
from tenon.capi import onnxruntime_pybind11_state as state

skl2onnx = pytest.importorskip("skl2onnx")

from skl2onnx.common.data_types import (  # noqa: E402
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn import (  # noqa: E402
    calibration,
    cluster,
    compose,
    covariance,
    cross_decomposition,
    datasets,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    kernel_approximation,
    linear_model,
    manifold,
    mixture,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    random_projection,
    semi_supervised,
    svm,
    tree,
)

IRIS = datasets.load_iris()
BINARY = (IRIS.target != 0).astype(np.int64)
NAMES = np.array(["setosa", "versicolor", "virginica"])[IRIS.target]
DIABETES = datasets.load_diabetes()
ROWS = 57
WORDS = [
    "The quick brown fox jumps over the lazy dog",
    "a dog and a fox",
    "Lorem ipsum dolor sit amet",
    "the dolor of the dog, the fox!",
    "",
    "quick QUICK quicker",
    "ipsum amet; sit-in at 10:30",
    "over and over and over again",
]
WORD_CLASSES = np.array([0, 0, 1, 1, 2, 0, 1, 2])


def make_plain_node(*arguments: object, **attributes: object) -> onnx.NodeProto:
    """skl2onnx leaves NumPy numbers in lists, which onnx refuses."""
    plain = {
        name: np.asarray(value).tolist() if isinstance(value, list | np.ndarray) else value
        for name, value in attributes.items()
    }
    return onnx.helper.make_node(*arguments, **plain)


def convert(estimator: object, kind: object, options: dict | None = None, **more: object) -> bytes:
    with warnings.catch_warnings(), mock.patch("skl2onnx.common._container.make_node") as make:
        warnings.simplefilter("ignore")
        make.side_effect = make_plain_node
        model = skl2onnx.convert_sklearn(
            estimator, initial_types=[("x", kind)], options=options, **more
        )
    return model.SerializeToString()


def fitted(estimator: object, *data: np.ndarray) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data)


CLASSIFIERS = {
    "ada_boost": ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    "bagging": ensemble.BaggingClassifier(n_estimators=4, random_state=0),
    "bagging_svc": ensemble.BaggingClassifier(svm.SVC(), n_estimators=3, random_state=0),
    "bernoulli_nb": naive_bayes.BernoulliNB(binarize=3.0),
    "calibrated_isotonic": calibration.CalibratedClassifierCV(
        svm.LinearSVC(random_state=0), method="isotonic", cv=2
    ),
    "calibrated_sigmoid": calibration.CalibratedClassifierCV(
        svm.LinearSVC(random_state=0), method="sigmoid", cv=2
    ),
    "categorical_nb": naive_bayes.CategoricalNB(min_categories=10),
    "complement_nb": naive_bayes.ComplementNB(),
    "decision_tree": tree.DecisionTreeClassifier(random_state=0),
    "extra_tree": tree.ExtraTreeClassifier(random_state=0),
    "extra_trees": ensemble.ExtraTreesClassifier(n_estimators=7, random_state=0),
    "gaussian_nb": naive_bayes.GaussianNB(),
    "gaussian_process": gaussian_process.GaussianProcessClassifier(random_state=0),
    "gradient_boosting": ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0),
    "hist_gradient_boosting": ensemble.HistGradientBoostingClassifier(max_iter=5, random_state=0),
    "k_neighbors": neighbors.KNeighborsClassifier(),
    "k_neighbors_distance": neighbors.KNeighborsClassifier(7, weights="distance"),
    "k_neighbors_manhattan": neighbors.KNeighborsClassifier(3, metric="manhattan"),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(),
    "linear_svc": svm.LinearSVC(random_state=0),
    "logistic_cv": linear_model.LogisticRegressionCV(Cs=3, cv=2),
    "logistic_regression": linear_model.LogisticRegression(max_iter=300),
    "mlp": neural_network.MLPClassifier((8, 5), max_iter=60, random_state=0),
    "mlp_tanh": neural_network.MLPClassifier(6, activation="tanh", max_iter=60, random_state=0),
    "multinomial_nb": naive_bayes.MultinomialNB(),
    "nearest_centroid": neighbors.NearestCentroid(),
    "nu_svc": svm.NuSVC(nu=0.3, probability=True, random_state=0),
    "one_vs_one": multiclass.OneVsOneClassifier(linear_model.LogisticRegression(max_iter=300)),
    "one_vs_rest": multiclass.OneVsRestClassifier(linear_model.LogisticRegression(max_iter=300)),
    "output_code": multiclass.OutputCodeClassifier(tree.DecisionTreeClassifier(), random_state=0),
    "perceptron": linear_model.Perceptron(random_state=0),
    "qda": discriminant_analysis.QuadraticDiscriminantAnalysis(),
    "radius_neighbors": neighbors.RadiusNeighborsClassifier(2.0),
    "random_forest": ensemble.RandomForestClassifier(n_estimators=9, random_state=0),
    "ridge": linear_model.RidgeClassifier(),
    "ridge_cv": linear_model.RidgeClassifierCV(),
    "self_training": semi_supervised.SelfTrainingClassifier(tree.DecisionTreeClassifier()),
    "sgd": linear_model.SGDClassifier(random_state=0),
    "sgd_log": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "sgd_huber": linear_model.SGDClassifier(loss="modified_huber", random_state=0),
    "stacking": ensemble.StackingClassifier(
        [("tree", tree.DecisionTreeClassifier(max_depth=2)), ("nb", naive_bayes.GaussianNB())]
    ),
    "svc_linear": svm.SVC(kernel="linear"),
    "svc_poly": svm.SVC(kernel="poly", degree=2, coef0=1.0),
    "svc_probability": svm.SVC(probability=True, random_state=0),
    "svc_rbf": svm.SVC(),
    "svc_sigmoid": svm.SVC(kernel="sigmoid"),
    "voting_hard": ensemble.VotingClassifier(
        [("tree", tree.DecisionTreeClassifier(max_depth=2)), ("nb", naive_bayes.GaussianNB())]
    ),
    "voting_soft": ensemble.VotingClassifier(
        [("tree", tree.DecisionTreeClassifier(max_depth=2)), ("nb", naive_bayes.GaussianNB())],
        voting="soft",
    ),
}

REGRESSORS = {
    "ada_boost": ensemble.AdaBoostRegressor(n_estimators=4, random_state=0),
    "ard": linear_model.ARDRegression(),
    "bagging": ensemble.BaggingRegressor(n_estimators=3, random_state=0),
    "bayesian_ridge": linear_model.BayesianRidge(),
    "decision_tree": tree.DecisionTreeRegressor(random_state=0),
    "elastic_net": linear_model.ElasticNet(alpha=0.01),
    "elastic_net_cv": linear_model.ElasticNetCV(cv=2),
    "extra_trees": ensemble.ExtraTreesRegressor(n_estimators=5, random_state=0),
    "gamma": linear_model.GammaRegressor(),
    "gaussian_process": gaussian_process.GaussianProcessRegressor(alpha=10.0),
    "gaussian_process_kernels": gaussian_process.GaussianProcessRegressor(
        gaussian_process.kernels.ConstantKernel(2.0) * gaussian_process.kernels.RBF(0.3)
        + gaussian_process.kernels.ExpSineSquared(0.4, 2.0),
        alpha=10.0,
        optimizer=None,
    ),
    "gradient_boosting": ensemble.GradientBoostingRegressor(n_estimators=6, random_state=0),
    "hist_gradient_boosting": ensemble.HistGradientBoostingRegressor(max_iter=6, random_state=0),
    "huber": linear_model.HuberRegressor(max_iter=300),
    "k_neighbors": neighbors.KNeighborsRegressor(),
    "k_neighbors_distance": neighbors.KNeighborsRegressor(4, weights="distance"),
    "lars": linear_model.Lars(),
    "lars_cv": linear_model.LarsCV(cv=2),
    "lasso": linear_model.Lasso(alpha=0.1),
    "lasso_lars": linear_model.LassoLars(alpha=0.1),
    "lasso_lars_ic": linear_model.LassoLarsIC(),
    "linear": linear_model.LinearRegression(),
    "linear_svr": svm.LinearSVR(random_state=0),
    "mlp": neural_network.MLPRegressor(
        hidden_layer_sizes=(7, 4), activation="logistic", max_iter=50, random_state=0
    ),
    "nu_svr": svm.NuSVR(),
    "omp": linear_model.OrthogonalMatchingPursuit(n_nonzero_coefs=3),
    "pls": cross_decomposition.PLSRegression(3),
    "poisson": linear_model.PoissonRegressor(),
    "quantile": linear_model.QuantileRegressor(alpha=0.01),
    "radius_neighbors": neighbors.RadiusNeighborsRegressor(0.2),
    "random_forest": ensemble.RandomForestRegressor(n_estimators=6, random_state=0),
    "ransac": linear_model.RANSACRegressor(random_state=0),
    "ridge": linear_model.Ridge(),
    "ridge_cv": linear_model.RidgeCV(),
    "sgd": linear_model.SGDRegressor(random_state=0),
    "stacking": ensemble.StackingRegressor(
        [("tree", tree.DecisionTreeRegressor(max_depth=2)), ("ridge", linear_model.Ridge())]
    ),
    "svr": svm.SVR(C=10.0),
    "theil_sen": linear_model.TheilSenRegressor(max_subpopulation=50, random_state=0),
    "tweedie": linear_model.TweedieRegressor(power=1.5),
    "voting": ensemble.VotingRegressor(
        [("tree", tree.DecisionTreeRegressor(max_depth=2)), ("ridge", linear_model.Ridge())]
    ),
}

TARGETS_2 = {
    "chain": multioutput.RegressorChain(linear_model.Ridge()),
    "decision_tree": tree.DecisionTreeRegressor(max_depth=4),
    "k_neighbors": neighbors.KNeighborsRegressor(3),
    "linear": linear_model.LinearRegression(),
    "multi_output": multioutput.MultiOutputRegressor(linear_model.Ridge()),
    "multi_task_elastic_net": linear_model.MultiTaskElasticNet(alpha=0.1),
    "multi_task_lasso": linear_model.MultiTaskLasso(alpha=0.1),
    "random_forest": ensemble.RandomForestRegressor(n_estimators=5, random_state=0),
}

TRANSFORMERS = {
    "additive_chi2": kernel_approximation.AdditiveChi2Sampler(),
    "binarizer": preprocessing.Binarizer(threshold=2.0),
    "factor_analysis": decomposition.FactorAnalysis(2),
    "fast_ica": decomposition.FastICA(2, random_state=0),
    "function": preprocessing.FunctionTransformer(),
    "gaussian_projection": random_projection.GaussianRandomProjection(3, random_state=0),
    "incremental_pca": decomposition.IncrementalPCA(2),
    "k_bins": preprocessing.KBinsDiscretizer(4, strategy="uniform"),
    "k_bins_ordinal": preprocessing.KBinsDiscretizer(3, encode="ordinal"),
    "kernel_centerer": preprocessing.KernelCenterer(),
    "kernel_pca": decomposition.KernelPCA(2, kernel="rbf"),
    "knn_imputer": impute.KNNImputer(n_neighbors=3),
    "max_abs": preprocessing.MaxAbsScaler(),
    "min_max": preprocessing.MinMaxScaler(),
    "min_max_clip": preprocessing.MinMaxScaler((-1, 1), clip=True),
    "neighbors_transformer": neighbors.KNeighborsTransformer(n_neighbors=3),
    "nystroem": kernel_approximation.Nystroem(n_components=8, random_state=0),
    "normalizer_l1": preprocessing.Normalizer("l1"),
    "normalizer_l2": preprocessing.Normalizer("l2"),
    "normalizer_max": preprocessing.Normalizer("max"),
    "pca": decomposition.PCA(3),
    "pca_whiten": decomposition.PCA(2, whiten=True),
    "polynomial": preprocessing.PolynomialFeatures(3),
    "power_box_cox": preprocessing.PowerTransformer("box-cox"),
    "power_yeo_johnson": preprocessing.PowerTransformer(),
    "quantile": preprocessing.QuantileTransformer(n_quantiles=20, random_state=0),
    "quantile_normal": preprocessing.QuantileTransformer(
        n_quantiles=20, output_distribution="normal", random_state=0
    ),
    "rbf_sampler": kernel_approximation.RBFSampler(n_components=5, random_state=0),
    "robust": preprocessing.RobustScaler(),
    "simple_imputer": impute.SimpleImputer(),
    "sparse_projection": random_projection.SparseRandomProjection(3, random_state=0),
    "spline": preprocessing.SplineTransformer(),
    "standard": preprocessing.StandardScaler(),
    "trees_embedding": ensemble.RandomTreesEmbedding(n_estimators=4, random_state=0),
    "truncated_svd": decomposition.TruncatedSVD(2, random_state=0),
    "variance": feature_selection.VarianceThreshold(0.5),
}

SELECTORS = {
    "from_model": feature_selection.SelectFromModel(tree.DecisionTreeClassifier(random_state=0)),
    "generic": feature_selection.GenericUnivariateSelect(mode="k_best", param=2),
    "fdr": feature_selection.SelectFdr(),
    "fpr": feature_selection.SelectFpr(),
    "fwe": feature_selection.SelectFwe(),
    "k_best": feature_selection.SelectKBest(k=2),
    "lda": discriminant_analysis.LinearDiscriminantAnalysis(n_components=2),
    "nca": neighbors.NeighborhoodComponentsAnalysis(2, random_state=0),
    "percentile": feature_selection.SelectPercentile(percentile=50),
    "rfe": feature_selection.RFE(linear_model.LogisticRegression(), n_features_to_select=2),
    "rfecv": feature_selection.RFECV(linear_model.LogisticRegression(), cv=2),
}

CLUSTERERS = {
    "bayesian_mixture": mixture.BayesianGaussianMixture(n_components=2, random_state=0),
    "birch": cluster.Birch(n_clusters=None),
    "elliptic_envelope": covariance.EllipticEnvelope(random_state=0),
    "gaussian_mixture": mixture.GaussianMixture(3, random_state=0),
    "gaussian_mixture_diagonal": mixture.GaussianMixture(2, covariance_type="diag"),
    "gaussian_mixture_spherical": mixture.GaussianMixture(2, covariance_type="spherical"),
    "gaussian_mixture_tied": mixture.GaussianMixture(2, covariance_type="tied"),
    "isolation_forest": ensemble.IsolationForest(n_estimators=6, random_state=0),
    "isomap": manifold.Isomap(n_components=2),
    "k_means": cluster.KMeans(3, n_init=2, random_state=0),
    "local_outlier_factor": neighbors.LocalOutlierFactor(novelty=True),
    "mini_batch_k_means": cluster.MiniBatchKMeans(4, n_init=2, random_state=0),
    "one_class_svm": svm.OneClassSVM(),
    "sgd_one_class_svm": linear_model.SGDOneClassSVM(random_state=0),
}


# Estimators that skl2onnx converts incorrectly, with onnxruntime too.
CONVERTED_OTHERWISE = {
    "bagging_svc": "gives three rows for fifty",
    "calibrated_isotonic": "gives another class to one row of fifty",
    "k_neighbors_distance": "does not let a row at no distance decide alone",
    "neighbors_transformer": "gives distances where the estimator gives a graph",
    "one_class_svm": "gives another sign to rows on the border",
    "sgd_log": "gives another class to two rows of fifty",
    "sgd_huber": "gives another class to four rows of fifty",
}


def check_predictions(estimator: object, x: np.ndarray, actual: list) -> None:
    """Compares the first output with the estimator's own results for the rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selects = hasattr(estimator, "get_support") or not hasattr(estimator, "predict")
        expected = estimator.transform(x) if selects else estimator.predict(x)
    expected = expected.toarray() if sparse.issparse(expected) else np.asarray(expected)
    given = np.asarray(actual[0]).reshape(expected.shape)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(given, expected, 1e-3, 1e-3)
    else:
        np.testing.assert_array_equal(given, expected)


def check(
    estimator: object,
    x: np.ndarray,
    options: dict | None = None,
    atol: float = 1e-4,
    name: str = "",
) -> None:
    kind = {"f4": FloatTensorType, "f8": DoubleTensorType, "i8": Int64TensorType}[x.dtype.str[1:]]
    try:
        model = convert(estimator, kind([None, x.shape[1]]), options)
    except Exception as error:
        pytest.skip(f"skl2onnx does not convert it: {type(error).__name__}: {error}"[:200])
    try:
        check_model(model, {"x": x[:1]}, atol)
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        # If it is valid nevertheless, Tenon must give the estimator's results.
        try:
            actual = run_tenon(model, {"x": x})
        except state.InvalidGraph as invalid:
            if options is None and "ZipMap" in str(invalid):  # which takes no doubles
                check(estimator, x, {id(estimator): {"zipmap": False}}, atol, name)
                return
            pytest.skip(f"skl2onnx makes an invalid model: {invalid}"[:200])
    else:
        actual = check_model(model, {"x": x}, atol)
    if name not in CONVERTED_OTHERWISE:
        check_predictions(estimator, x, actual)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name: str, dtype: type) -> None:
    x = IRIS.data.astype(dtype)
    if name == "categorical_nb":
        x = x.astype(np.int64)
    estimator = fitted(CLASSIFIERS[name], x, IRIS.target)
    check(estimator, x[::3], name=name)
    check(fitted(CLASSIFIERS[name], x, BINARY), x[::3], name=name)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier_of_strings(name: str) -> None:
    x = IRIS.data.astype(np.int64 if name == "categorical_nb" else np.float32)
    labels = NAMES.astype(object) if name == "self_training" else NAMES
    estimator = fitted(CLASSIFIERS[name], x, labels)
    check(estimator, x[::3], name=name)
    if hasattr(estimator, "predict_proba"):
        check(estimator, x[::3], {id(estimator): {"zipmap": False}}, name=name)
        check(estimator, x[::3], {id(estimator): {"zipmap": "columns"}}, name=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(name: str, dtype: type) -> None:
    x = DIABETES.data.astype(dtype)
    estimator = fitted(REGRESSORS[name], x[:200], DIABETES.target[:200])
    check(estimator, x[:ROWS], atol=1e-2 if "gaussian" in name else 2e-3, name=name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TARGETS_2)
def test_regressor_of_two_targets(name: str, dtype: type) -> None:
    x = DIABETES.data.astype(dtype)
    targets = np.stack([DIABETES.target, 100 - 3 * DIABETES.data[:, 2]], axis=1)
    check(fitted(TARGETS_2[name], x[:200], targets[:200]), x[:ROWS], atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformer(name: str, dtype: type) -> None:
    x = IRIS.data.astype(dtype)
    if "imputer" in name:
        # If two rows are equally far from a third one, rounding would decide which is the nearest.
        x = x + np.random.default_rng(0).uniform(0, 0.01, x.shape).astype(dtype)
        x[::7, 1] = np.nan
    if name == "kernel_centerer":
        x = x @ x.T
    check(fitted(TRANSFORMERS[name], x), x[:ROWS], name=name)


@pytest.mark.parametrize("name", SELECTORS)
def test_selector(name: str) -> None:
    x = IRIS.data.astype(np.float32)
    check(fitted(SELECTORS[name], x, IRIS.target), x[:ROWS])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CLUSTERERS)
def test_clusterer(name: str, dtype: type) -> None:
    x = IRIS.data.astype(dtype)
    estimator = fitted(CLUSTERERS[name], x)
    rows = x[:ROWS]
    if name == "one_class_svm":  # the sign of rows on the border is that of rounding
        rows = rows[np.abs(estimator.decision_function(rows)) > 1e-4]
        assert len(rows) > ROWS // 2
    check(estimator, rows, name=name)


TEXT = {
    "count": feature_extraction.text.CountVectorizer(),
    "count_bigrams": feature_extraction.text.CountVectorizer(ngram_range=(1, 2), binary=True),
    "count_characters": feature_extraction.text.CountVectorizer(
        analyzer="char", ngram_range=(1, 3)
    ),
    "count_stop_words": feature_extraction.text.CountVectorizer(stop_words=["the", "and"]),
    "count_case": feature_extraction.text.CountVectorizer(lowercase=False),
    "tfidf": feature_extraction.text.TfidfVectorizer(),
    "tfidf_l1": feature_extraction.text.TfidfVectorizer(norm="l1", sublinear_tf=True),
    "tfidf_pattern": feature_extraction.text.TfidfVectorizer(token_pattern="[a-z]+"),
    "classifier": pipeline.make_pipeline(
        feature_extraction.text.TfidfVectorizer(), linear_model.LogisticRegression()
    ),
    "two_steps": pipeline.make_pipeline(
        feature_extraction.text.CountVectorizer(),
        feature_extraction.text.TfidfTransformer(),
        naive_bayes.MultinomialNB(),
    ),
}


def in_plain_locale(content: bytes) -> bytes:
    """The model without a locale, which the machine may not have for onnxruntime."""
    model = onnx.load_from_string(content)
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            kept = [a for a in node.attribute if a.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("locale", "C")])
    return model.SerializeToString()


@pytest.mark.parametrize("name", TEXT)
def test_text(name: str) -> None:
    estimator = fitted(TEXT[name], WORDS, WORD_CLASSES)
    model = in_plain_locale(convert(estimator, StringTensorType([None])))
    try:
        check_model(model, {"x": np.array(WORDS, dtype=object)})
    except state.NotImplemented as error:
        pytest.skip(str(error))


ENCODERS = {
    "one_hot": preprocessing.OneHotEncoder(handle_unknown="ignore"),
    "one_hot_drop": preprocessing.OneHotEncoder(drop="first"),
    "ordinal": preprocessing.OrdinalEncoder(),
    "target": preprocessing.TargetEncoder(random_state=0),
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("values", [["b", "a", "c", "a"], [3, 1, 2, 1]])
def test_encoder(name: str, values: list) -> None:
    column = np.array(values * 5, dtype=object if isinstance(values[0], str) else np.int64)
    x = np.stack([column, column[::-1]], axis=1)
    estimator = fitted(ENCODERS[name], x, np.tile([0.5, 1.5, 2.0, 0.0], 5))
    kind = StringTensorType if x.dtype == object else Int64TensorType
    try:
        model = convert(estimator, kind([None, 2]))
    except Exception as error:
        pytest.skip(f"skl2onnx does not convert it: {error}"[:200])
    check_model(model, {"x": x})


def test_label_encoder() -> None:
    labels = np.array(["b", "a", "c"], dtype=object)
    model = convert(preprocessing.LabelEncoder().fit(labels), StringTensorType([None]))
    check_model(model, {"x": labels[[2, 0, 1, 1]]})


def test_label_binarizer() -> None:
    labels = np.array([4, 2, 9], dtype=np.int64)
    model = convert(preprocessing.LabelBinarizer().fit(labels), Int64TensorType([None]))
    check_model(model, {"x": labels[[2, 0, 1, 1]]})


PIPELINES = {
    "scaled_logistic": pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression()
    ),
    "pca_svc": pipeline.make_pipeline(decomposition.PCA(2), svm.SVC()),
    "union_forest": pipeline.make_pipeline(
        pipeline.make_union(preprocessing.MinMaxScaler(), decomposition.PCA(2)),
        ensemble.RandomForestClassifier(n_estimators=5, random_state=0),
    ),
    "columns_boosting": pipeline.make_pipeline(
        compose.make_column_transformer(
            (preprocessing.RobustScaler(), [0, 2]),
            (preprocessing.PolynomialFeatures(2), [1, 3]),
        ),
        ensemble.HistGradientBoostingClassifier(max_iter=4, random_state=0),
    ),
    "impute_select_tree": pipeline.make_pipeline(
        impute.SimpleImputer(add_indicator=False),
        feature_selection.SelectKBest(k=3),
        tree.DecisionTreeClassifier(random_state=0),
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline(name: str, dtype: type) -> None:
    x = IRIS.data.astype(dtype)
    check(fitted(PIPELINES[name], x, NAMES), x[:ROWS])


@pytest.mark.parametrize("opset", [9, 11, 13, 15, 18, 21])
def test_opset(opset: int) -> None:
    x = IRIS.data.astype(np.float32)
    for name in ("random_forest", "svc_rbf", "mlp", "k_neighbors", "gaussian_nb"):
        estimator = fitted(CLASSIFIERS[name], x, NAMES)
        try:
            model = convert(
                estimator,
                FloatTensorType([None, 4]),
                target_opset={"": opset, "ai.onnx.ml": 1 if opset < 15 else 3},
            )
        except RuntimeError:
            continue  # needs a newer opset
        check_model(model, {"x": x[:ROWS]}, 1e-4)


@pytest.mark.parametrize("option", ["raw_scores", "decision_leaf", "decision_path"])
def test_options(option: str) -> None:
    x = IRIS.data.astype(np.float32)
    for estimator in (
        tree.DecisionTreeClassifier(random_state=0),
        ensemble.RandomForestClassifier(n_estimators=4, random_state=0),
        linear_model.LogisticRegression(),
        svm.SVC(),
    ):
        fitted(estimator, x, IRIS.target)
        try:
            model = convert(estimator, FloatTensorType([None, 4]), {id(estimator): {option: True}})
        except (NameError, RuntimeError):
            continue  # not an option of this estimator
        check_model(model, {"x": x[:ROWS]}, 1e-4)


def test_gaussian_process_with_deviation() -> None:
    x = DIABETES.data.astype(np.float64)
    estimator = fitted(REGRESSORS["gaussian_process"], x[:60], DIABETES.target[:60])
    model = convert(estimator, DoubleTensorType([None, 10]), {id(estimator): {"return_std": True}})
    check_model(model, {"x": x[:ROWS]})
