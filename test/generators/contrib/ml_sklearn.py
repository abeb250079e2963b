"""Estimators and transformers of scikit-learn on numbers."""

import numpy as np
import skl2onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
from sklearn import (
    calibration, cluster, decomposition, discriminant_analysis, ensemble, gaussian_process, impute, linear_model, mixture,
    multioutput, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree,
)

from ml_case import HOLES, NAMES, REAL, TEST, TESTED, THREE, TWO, X, tensor


# The converter of isolation forests knows no later ones.
OPSETS = {"": 21, "ai.onnx.ml": 3}


def fitted(model, y, train, test, double, options=None):
    dtype, kind = (np.float64, DoubleTensorType) if double else (np.float32, FloatTensorType)
    model.fit(train.astype(dtype), y)
    types = [("X", kind([None, train.shape[1]]))]
    return test.astype(dtype), skl2onnx.convert_sklearn(model, initial_types=types, options=options, target_opset=OPSETS)


def write(cases):
    def c(name, model, y, zipmap=False, double=False, test=TEST, train=X, scores="predict_proba", **more):
        options = {id(model): {"zipmap": zipmap}} if scores == "predict_proba" and y is not None else None
        test, onx = fitted(model, y, train, test, double, options)
        answers = getattr(model, scores)(test)
        cases.save(name, onx, [tensor("X", test)], model.predict(test), answers, zipped=zipmap, **more)

    def t(name, model, double=False, y=REAL, train=X, test=TEST, **more):
        test, onx = fitted(model, y, train, test, double)
        answer = getattr(model, "predict" if hasattr(model, "predict") else "transform")(test)
        cases.save(name, onx, [tensor("X", test)], None, answer, **more)

    linear(c, t)
    trees(c, t)
    others(c, t)
    transformers(t)


def linear(c, t):
    c("logistic_two", linear_model.LogisticRegression(), TWO)
    c("logistic_three_zipmap", linear_model.LogisticRegression(), THREE, zipmap=True)
    c("logistic_names_zipmap", linear_model.LogisticRegression(), NAMES, zipmap=True)
    c("logistic_double", linear_model.LogisticRegression(), THREE, double=True)
    c("sgd_log", linear_model.SGDClassifier(loss="log_loss", random_state=0), TWO)
    c("scaled_logistic", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), TWO)
    c("discriminant", discriminant_analysis.LinearDiscriminantAnalysis(), THREE)
    t("linear_regression", linear_model.LinearRegression())
    t("ridge_double", linear_model.Ridge(), double=True)
    t("poisson", linear_model.PoissonRegressor(), y=np.exp(REAL / 2))


def trees(c, t):
    c("tree_two", tree.DecisionTreeClassifier(max_depth=5, random_state=0), TWO)
    c("tree_names", tree.DecisionTreeClassifier(max_depth=5, random_state=0), NAMES)
    c("forest_two", ensemble.RandomForestClassifier(15, max_depth=6, random_state=0), TWO, zipmap=True)
    c("forest_three", ensemble.RandomForestClassifier(15, max_depth=6, random_state=0), THREE)
    c("extra_trees_names", ensemble.ExtraTreesClassifier(15, max_depth=6, random_state=0), NAMES)
    c("gradient_boosting_two", ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0), TWO)
    c("gradient_boosting_three", ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0), THREE)
    c("bagging", ensemble.BaggingClassifier(n_estimators=5, random_state=0), THREE)
    c("ada_boost", ensemble.AdaBoostClassifier(n_estimators=5, random_state=0), TWO)
    c("isolation_forest", ensemble.IsolationForest(n_estimators=20, random_state=0), None, scores="decision_function")
    t("tree_regression", tree.DecisionTreeRegressor(max_depth=5, random_state=0))
    t("forest_regression", ensemble.RandomForestRegressor(15, max_depth=6, random_state=0))
    t("gradient_boosting_regression", ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0))


def others(c, t):
    c("svc_two", svm.SVC(probability=True, random_state=0), TWO)
    c("svc_three", svm.SVC(probability=True, random_state=0, kernel="poly", degree=2), THREE)
    c("one_class_svm", svm.OneClassSVM(nu=0.2), None, scores="decision_function")
    c("gaussian_naive_bayes", naive_bayes.GaussianNB(), THREE)
    c("neighbours", neighbors.KNeighborsClassifier(5), THREE)
    c("perceptron", neural_network.MLPClassifier((8,), max_iter=60, random_state=0), THREE)
    c("calibrated_isotonic", calibration.CalibratedClassifierCV(
        tree.DecisionTreeClassifier(max_depth=3, random_state=0), method="isotonic", cv=3), TWO)
    c("calibrated_sigmoid", calibration.CalibratedClassifierCV(linear_model.RidgeClassifier(), cv=3), THREE)
    c("voting", ensemble.VotingClassifier([("l", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())],
                                          voting="soft", flatten_transform=False), THREE)
    c("stacking", ensemble.StackingClassifier([("l", linear_model.LogisticRegression()), ("n", naive_bayes.GaussianNB())],
                                              linear_model.LogisticRegression(), cv=3), TWO)
    c("several_classes", multioutput.MultiOutputClassifier(linear_model.LogisticRegression()), np.stack([TWO, THREE], 1))
    c("gaussian_mixture", mixture.GaussianMixture(3, random_state=0), None)
    c("k_means", cluster.KMeans(4, n_init=2, random_state=0), None, scores="transform")
    t("svr", svm.SVR())
    t("neighbours_regression", neighbors.KNeighborsRegressor(4), test=TEST + np.float32(0.1))
    t("perceptron_regression", neural_network.MLPRegressor(hidden_layer_sizes=(8, 5), max_iter=60, random_state=0))
    kernel = gaussian_process.kernels.RBF(1.5) + gaussian_process.kernels.WhiteKernel(0.1)
    t("gaussian_process", gaussian_process.GaussianProcessRegressor(kernel, optimizer=None), double=True)
    t("several_numbers", multioutput.MultiOutputRegressor(linear_model.Ridge()), y=np.stack([REAL, X[:, 0] - REAL], 1))


def transformers(t):
    t("minmax", preprocessing.MinMaxScaler())
    t("normalizer_l2", preprocessing.Normalizer("l2"))
    t("binarizer", preprocessing.Binarizer(threshold=0.2))
    t("polynomial", preprocessing.PolynomialFeatures(2, interaction_only=True))
    t("power", preprocessing.PowerTransformer())
    t("bins", preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"))
    t("pca", decomposition.PCA(3))
    t("imputer", impute.SimpleImputer(), train=HOLES, test=HOLES[:TESTED])
    t("neighbours_imputer", impute.KNNImputer(n_neighbors=3), train=HOLES, test=HOLES[:TESTED])
