"""Fits models of scikit-learn, XGBoost and LightGBM, converts them to ONNX and writes what the originals answer.

usage: make_ml_models.py FOLDER

FOLDER receives NAME.onnx for each model and cases.json: a list of
{ name, inputs: [{ name, type, dims, data (NaN: null) }], labels: [...] or null, scores: [...], width, tolerance, zipped }.
"""

import json
import os
import sys
import warnings

import lightgbm
import numpy as np
import onnxmltools
import skl2onnx
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as ToolsFloat
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn import (
    decomposition, discriminant_analysis, ensemble, impute, linear_model, naive_bayes,
    neighbors, neural_network, pipeline, preprocessing, svm, tree,
)

warnings.filterwarnings("ignore")
random = np.random.RandomState(7)
ROWS, COLUMNS, TESTED = 240, 6, 40
X = random.randn(ROWS, COLUMNS).astype(np.float32)
POINTS = X[:, 0] + 0.5 * X[:, 1] ** 2 - X[:, 2] * X[:, 3]
TWO = (POINTS > 0.3).astype(np.int64)
THREE = np.digitize(POINTS, [-0.3, 0.8]).astype(np.int64)
NAMES = np.array(["low", "mid", "high"])[THREE]
REAL = (POINTS + 0.1 * random.randn(ROWS)).astype(np.float32)
TEST = X[:TESTED]
cases = []


def tensor(name, values):
    kinds = {"f": "float32", "d": "float64", "l": "int64", "O": "string", "U": "string"}
    return {"name": name, "type": kinds[values.dtype.char], "dims": list(values.shape),
            "data": [None if v != v else v for v in values.ravel().tolist()]}


def save(folder, name, onx, inputs, labels, scores, tolerance=1e-4, zipped=False):
    with open(os.path.join(folder, name + ".onnx"), "wb") as file:
        file.write(onx.SerializeToString())
    scores = None if scores is None else np.asarray(scores, dtype=np.float64).reshape(inputs[0]["dims"][0], -1)
    cases.append({
        "name": name, "inputs": inputs, "labels": None if labels is None else np.asarray(labels).ravel().tolist(),
        "scores": [] if scores is None else scores.ravel().tolist(), "width": 0 if scores is None else scores.shape[1],
        "tolerance": tolerance, "zipped": zipped,
    })


def classifier(folder, name, model, y, zipmap=False, double=False, test=TEST, train=X, **more):
    dtype, kind = (np.float64, DoubleTensorType) if double else (np.float32, FloatTensorType)
    model.fit(train.astype(dtype), y)
    test = test.astype(dtype)
    onx = skl2onnx.convert_sklearn(model, initial_types=[("X", kind([None, train.shape[1]]))], options={"zipmap": zipmap})
    scores = model.predict_proba(test)
    save(folder, name, onx, [tensor("X", test)], model.predict(test), scores, zipped=zipmap, **more)


def transformer(folder, name, model, double=False, y=None, train=X, test=TEST, predict=None, **more):
    dtype, kind = (np.float64, DoubleTensorType) if double else (np.float32, FloatTensorType)
    model.fit(train.astype(dtype), REAL if y is None else y)
    test = test.astype(dtype)
    onx = skl2onnx.convert_sklearn(model, initial_types=[("X", kind([None, train.shape[1]]))])
    answer = getattr(model, predict or ("predict" if hasattr(model, "predict") else "transform"))(test)
    save(folder, name, onx, [tensor("X", test)], None, answer, **more)


def scikit_learn(folder):
    c, t = (lambda *a, **k: classifier(folder, *a, **k)), (lambda *a, **k: transformer(folder, *a, **k))
    c("logistic_two", linear_model.LogisticRegression(), TWO)
    c("logistic_three_zipmap", linear_model.LogisticRegression(), THREE, zipmap=True)
    c("logistic_names_zipmap", linear_model.LogisticRegression(), NAMES, zipmap=True)
    c("logistic_double", linear_model.LogisticRegression(), THREE, double=True)
    c("sgd_log", linear_model.SGDClassifier(loss="log_loss", random_state=0), TWO)
    c("tree_two", tree.DecisionTreeClassifier(max_depth=5, random_state=0), TWO)
    c("tree_names", tree.DecisionTreeClassifier(max_depth=5, random_state=0), NAMES)
    c("forest_two", ensemble.RandomForestClassifier(15, max_depth=6, random_state=0), TWO, zipmap=True)
    c("forest_three", ensemble.RandomForestClassifier(15, max_depth=6, random_state=0), THREE)
    c("extra_trees_names", ensemble.ExtraTreesClassifier(15, max_depth=6, random_state=0), NAMES)
    c("gradient_boosting_two", ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0), TWO)
    c("gradient_boosting_three", ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0), THREE)
    c("bagging", ensemble.BaggingClassifier(n_estimators=5, random_state=0), THREE)
    c("svc_two", svm.SVC(probability=True, random_state=0), TWO, tolerance=1e-3)
    c("svc_three", svm.SVC(probability=True, random_state=0, kernel="poly", degree=2), THREE, tolerance=1e-3)
    c("ada_boost", ensemble.AdaBoostClassifier(n_estimators=5, random_state=0), TWO)
    c("gaussian_naive_bayes", naive_bayes.GaussianNB(), THREE)
    c("neighbours", neighbors.KNeighborsClassifier(5), THREE)
    c("perceptron", neural_network.MLPClassifier((8,), max_iter=60, random_state=0), THREE)
    c("discriminant", discriminant_analysis.LinearDiscriminantAnalysis(), THREE)
    c("scaled_logistic", pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), TWO)
    t("linear_regression", linear_model.LinearRegression())
    t("ridge_double", linear_model.Ridge(), double=True)
    t("tree_regression", tree.DecisionTreeRegressor(max_depth=5, random_state=0))
    t("forest_regression", ensemble.RandomForestRegressor(15, max_depth=6, random_state=0))
    t("gradient_boosting_regression", ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0))
    t("svr", svm.SVR(), tolerance=1e-3)
    t("minmax", preprocessing.MinMaxScaler())
    t("normalizer_l2", preprocessing.Normalizer("l2"))
    t("binarizer", preprocessing.Binarizer(threshold=0.2))
    t("pca", decomposition.PCA(3))
    holes = X.copy()
    holes[::5, 1] = np.nan
    t("imputer", impute.SimpleImputer(), train=holes, test=holes[:TESTED])


def pipelines(folder):
    kinds = np.array(["red", "green", "blue", "red"], dtype=object)[np.arange(ROWS) % 4].reshape(-1, 1)
    encoder = preprocessing.OneHotEncoder(handle_unknown="ignore").fit(kinds)
    onx = skl2onnx.convert_sklearn(encoder, initial_types=[("kind", StringTensorType([None, 1]))])
    test = np.array([["blue"], ["green"], ["violet"]], dtype=object)
    save(folder, "one_hot", onx, [tensor("kind", test)], None, encoder.transform(test).toarray())
    ordinal = preprocessing.OrdinalEncoder().fit(kinds)
    onx = skl2onnx.convert_sklearn(ordinal, initial_types=[("kind", StringTensorType([None, 1]))])
    save(folder, "ordinal", onx, [tensor("kind", test[:2])], None, ordinal.transform(test[:2]))


def boosted(folder):
    for name, y in (("two", TWO), ("three", THREE)):
        model = xgboost.XGBClassifier(n_estimators=12, max_depth=4).fit(X, y)
        onx = onnxmltools.convert_xgboost(model, initial_types=[("X", ToolsFloat([None, COLUMNS]))])
        save(folder, "xgboost_" + name, onx, [tensor("X", TEST)], model.predict(TEST), model.predict_proba(TEST))
        for zipmap in (False, True):
            model = lightgbm.LGBMClassifier(n_estimators=12, verbose=-1).fit(X, y)
            onx = onnxmltools.convert_lightgbm(model, initial_types=[("X", ToolsFloat([None, COLUMNS]))], zipmap=zipmap)
            save(folder, f"lightgbm_{name}{'_zipmap' if zipmap else ''}", onx, [tensor("X", TEST)], model.predict(TEST),
                 model.predict_proba(TEST), zipped=zipmap)
    model = xgboost.XGBRegressor(n_estimators=12, max_depth=4).fit(X, REAL)
    onx = onnxmltools.convert_xgboost(model, initial_types=[("X", ToolsFloat([None, COLUMNS]))])
    save(folder, "xgboost_regression", onx, [tensor("X", TEST)], None, model.predict(TEST))
    model = lightgbm.LGBMRegressor(n_estimators=12, verbose=-1).fit(X, REAL)
    onx = onnxmltools.convert_lightgbm(model, initial_types=[("X", ToolsFloat([None, COLUMNS]))])
    save(folder, "lightgbm_regression", onx, [tensor("X", TEST)], None, model.predict(TEST))


def main(folder):
    os.makedirs(folder, exist_ok=True)
    scikit_learn(folder)
    pipelines(folder)
    boosted(folder)
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file)


main(sys.argv[1])
