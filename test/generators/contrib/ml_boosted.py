"""Ensembles of XGBoost and LightGBM: classes, numbers and ranks, with missing values and categories."""

import lightgbm
import numpy as np
import onnxmltools
import pandas
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

from ml_case import COLUMNS, HOLES, MIXED, MIXED_REAL, MIXED_TWO, REAL, ROWS, TEST, TESTED, THREE, TWO, X, tensor


def write(cases):
    def save(name, convert, model, test=TEST, columns=COLUMNS, classes=True, answers=None, zipmap=None, **more):
        options = {} if zipmap is None else {"zipmap": zipmap}
        onx = convert(model, initial_types=[("X", FloatTensorType([None, columns]))], **options)
        asked = test if answers is None else answers
        scores = model.predict_proba(asked) if classes else model.predict(asked)
        cases.save(name, onx, [tensor("X", test)], model.predict(asked) if classes else None, scores, zipped=bool(zipmap),
                   kind="boosted", **more)

    xgb(lambda name, model, **more: save("xgboost_" + name, onnxmltools.convert_xgboost, model, **more))
    lgbm(lambda name, model, **more: save("lightgbm_" + name, onnxmltools.convert_lightgbm, model, **more))


def frame(values):
    """The mixed columns as a data frame whose last two are categories."""
    table = pandas.DataFrame(values, columns=["f0", "f1", "f2", "f3"])
    for name in ("f2", "f3"):
        table[name] = pandas.Categorical(table[name], categories=range(6))
    return table


def xgb(save):
    small = dict(n_estimators=12, max_depth=4)
    save("two", xgboost.XGBClassifier(**small).fit(X, TWO))
    save("three", xgboost.XGBClassifier(**small).fit(X, THREE))
    save("holes", xgboost.XGBClassifier(**small).fit(HOLES, TWO), test=HOLES[:TESTED])
    save("regression", xgboost.XGBRegressor(**small).fit(X, REAL), classes=False)
    save("regression_holes", xgboost.XGBRegressor(**small).fit(HOLES, REAL), test=HOLES[:TESTED], classes=False)
    kinds = dict(enable_categorical=True, max_cat_to_onehot=2, feature_types=["q", "q", "c", "c"])
    save("categories", xgboost.XGBClassifier(**small, **kinds).fit(MIXED, MIXED_TWO), test=MIXED[:TESTED],
         columns=4)
    save("forest", xgboost.XGBRFRegressor(**small, random_state=0).fit(X, REAL), classes=False)
    save("counts", xgboost.XGBRegressor(**small, objective="count:poisson").fit(X, np.exp(REAL / 2).round()), classes=False)


def lgbm(save):
    small = dict(n_estimators=12, verbose=-1, num_threads=1)
    for name, y in (("two", TWO), ("three", THREE)):
        for zipmap in (False, True):
            save(name + ("_zipmap" if zipmap else ""), lightgbm.LGBMClassifier(**small).fit(X, y), zipmap=zipmap)
    save("holes", lightgbm.LGBMClassifier(**small).fit(HOLES, TWO), test=HOLES[:TESTED], zipmap=False)
    save("regression", lightgbm.LGBMRegressor(**small).fit(X, REAL), classes=False)
    save("regression_holes", lightgbm.LGBMRegressor(**small).fit(HOLES, REAL), test=HOLES[:TESTED], classes=False)
    mixed = dict(test=MIXED[:TESTED], columns=4, answers=frame(MIXED[:TESTED]))
    save("categories", lightgbm.LGBMClassifier(**small).fit(frame(MIXED), MIXED_TWO), zipmap=False, **mixed)
    save("regression_categories", lightgbm.LGBMRegressor(**small).fit(frame(MIXED), MIXED_REAL), classes=False, **mixed)
    save("ranks", lightgbm.LGBMRanker(**small).fit(X, THREE, group=[20] * (ROWS // 20)), classes=False)
