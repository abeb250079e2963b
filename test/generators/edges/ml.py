"""ai.onnx.ml at the edges."""

import numpy as np

from case import a, case, f32, f64, i32, i64, inf, nan, REFUSED, u8

z = lambda *s, t=f32: np.zeros(s, t)
I = i64
text = lambda *s: np.zeros(s, "U1")


def ml(op, what, attributes, inputs, out, outputs="y0", args=None, domain="ai.onnx.ml."):
    case(op, what, f"{outputs} = {domain}{op}<{attributes}>({args or ', '.join(inputs)})", inputs, out, 15)


def columns():
    """Operators on the columns of X: no rows, a row alone, rank 0 and rank 3."""
    x = a([[nan, inf]])
    ml("Scaler", "no rows", "scale = [2.0, 3.0], offset = [1.0, 0.0]", {"x": z(0, 2)}, z(0, 2))
    ml("Scaler", "rank 0", "scale = [2.0, 3.0], offset = [1.0, 0.0]", {"x": a(1)}, REFUSED)
    ml("Scaler", "NaN and infinity", "scale = [2.0, 3.0], offset = [1.0, 0.0]", {"x": x}, x)
    ml("Scaler", "a scale of another length", "scale = [2.0, 3.0], offset = [1.0, 0.0]", {"x": a([[1, 2, 3]])}, REFUSED)
    for norm in ("MAX", "L1", "L2"):
        ml("Normalizer", f"no rows, {norm}", f'norm = "{norm}"', {"x": z(0, 2)}, z(0, 2))
        ml("Normalizer", f"rank 0, {norm}", f'norm = "{norm}"', {"x": a(1)}, REFUSED)
        ml("Normalizer", f"a row of zeros, {norm}", f'norm = "{norm}"', {"x": z(1, 2)}, z(1, 2))
    ml("Normalizer", "an unknown norm", 'norm = "L3"', {"x": a([[1]])}, REFUSED)
    for what, x, out in (("empty", z(0, 2), z(0, 2)), ("rank 0", a(2), a(1)), ("NaN and infinities", a([nan, inf, -inf]), a([0, 1, 0]))):
        ml("Binarizer", what, "threshold = 1.0", {"x": x}, out)
    fill = "imputed_value_floats = [7.0], replaced_value_float = nan"
    ml("Imputer", "no rows", fill, {"x": z(0, 2)}, z(0, 2))
    ml("Imputer", "rank 0", fill, {"x": a(1)}, REFUSED)
    ml("Imputer", "NaN goes, infinity stays", fill, {"x": a([[nan, inf]])}, a([[7, inf]]))
    ml("Imputer", "values of another length", "imputed_value_floats = [7.0, 8.0, 9.0], replaced_value_float = nan", {"x": a([[1, 2]])}, REFUSED)
    linear = "coefficients = [1.0, 2.0], intercepts = [0.5]"
    ml("LinearRegressor", "no rows", linear, {"x": z(0, 2)}, z(0, 1))
    ml("LinearRegressor", "rank 0", linear, {"x": a(1)}, REFUSED)
    ml("LinearRegressor", "NaN and infinity", linear, {"x": a([[nan, 1], [inf, 1]])}, a([[nan], [inf]]))
    two = "coefficients = [1.0, 2.0, -1.0, 0.0], intercepts = [0.0, 0.0], classlabels_ints = [5, 9]"
    ml("LinearClassifier", "no rows", two, {"x": z(0, 2)}, [z(0, t=I), z(0, 2)], "y0, y1")
    ml("LinearClassifier", "rank 0", two, {"x": a(1)}, REFUSED, "y0, y1")
    ml("LinearClassifier", "infinity", two, {"x": a([[inf, 0]])}, [a([5], I), a([[inf, -inf]])], "y0, y1")
    ml("LinearClassifier", "columns that do not fit", two, {"x": a([[1, 2, 3]])}, REFUSED, "y0, y1")
    svm = 'kernel_type = "LINEAR", coefficients = [1.0, -1.0], support_vectors = [1.0, 0.0, 0.0, 1.0], n_supports = 2, rho = [0.5]'
    ml("SVMRegressor", "no rows", svm, {"x": z(0, 2)}, z(0, 1))
    ml("SVMRegressor", "rank 0", svm, {"x": a(1)}, REFUSED)
    ml("SVMRegressor", "NaN and infinity", svm, {"x": a([[nan, 1], [inf, 1]])}, a([[nan], [nan]]))  # infinity * 0
    svc = 'kernel_type = "LINEAR", coefficients = [1.0, -1.0], support_vectors = [1.0, 0.0, 0.0, 1.0], vectors_per_class = [1, 1], rho = [0.0], classlabels_ints = [5, 9]'
    ml("SVMClassifier", "no rows", svc, {"x": z(0, 2)}, [z(0, t=I), z(0, 2)], "y0, y1")
    ml("SVMClassifier", "rank 0", svc, {"x": a(1)}, REFUSED, "y0, y1")
    ml("SVMClassifier", "columns that do not fit", svc, {"x": a([[1, 2, 3]])}, REFUSED, "y0, y1")
    tree = ('nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [1, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], '
            "nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], ")
    leaves = lambda name: f"{name}_treeids = [0, 0], {name}_nodeids = [1, 2], {name}_ids = [0, 0], {name}_weights = [1.0, 2.0]"
    regressor, classifier = tree + leaves("target"), tree + leaves("class") + ", classlabels_int64s = [5, 9]"
    ml("TreeEnsembleRegressor", "no rows", regressor, {"x": z(0, 2)}, z(0, 1))
    ml("TreeEnsembleRegressor", "rank 0", regressor, {"x": a(1)}, REFUSED)
    ml("TreeEnsembleRegressor", "NaN goes to no, -infinity to yes", regressor, {"x": a([[0, nan], [0, inf], [0, -inf]])}, a([[2], [2], [1]]))
    ml("TreeEnsembleRegressor", "a column that X lacks", regressor, {"x": a([[1]])}, REFUSED)
    ml("TreeEnsembleClassifier", "no rows", classifier, {"x": z(0, 2)}, [z(0, t=I), z(0, 2)], "y0, y1")
    ml("TreeEnsembleClassifier", "rank 0", classifier, {"x": a(1)}, REFUSED, "y0, y1")
    ml("TreeEnsembleClassifier", "a column that X lacks", classifier, {"x": a([[1]])}, REFUSED, "y0, y1")
    new = ("n_targets = 1, tree_roots = [0], nodes_featureids = [1], nodes_modes = uint8[1] {0}, nodes_splits = float[1] {0.5}, nodes_truenodeids = [0], "
           "nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 0], leaf_weights = float[2] {1.0, 2.0}")
    ml("TreeEnsemble", "no rows", new, {"x": z(0, 2)}, z(0, 1))
    ml("TreeEnsemble", "rank 0", new, {"x": a(1)}, REFUSED)
    ml("TreeEnsemble", "NaN goes to no, -infinity to yes", new, {"x": a([[0, nan], [0, inf], [0, -inf]])}, a([[2], [2], [1]]))
    ml("TreeEnsemble", "a column that X lacks", new, {"x": a([[1]])}, REFUSED)
    ml("ArrayFeatureExtractor", "no rows", "", {"x": z(0, 2), "n": a([1], I)}, z(0, 1))
    ml("ArrayFeatureExtractor", "rank 0", "", {"x": a(1), "n": a([0], I)}, REFUSED)
    ml("ArrayFeatureExtractor", "beyond", "", {"x": a([[1, 2]]), "n": a([2], I)}, REFUSED)
    ml("ArrayFeatureExtractor", "below", "", {"x": a([[1, 2]]), "n": a([-1], I)}, REFUSED)
    ml("ArrayFeatureExtractor", "rank 8", "", {"x": np.arange(8, dtype=f32).reshape(1, 2, 1, 2, 1, 1, 1, 2), "n": a([1], I)},
       np.arange(8, dtype=f32).reshape(1, 2, 1, 2, 1, 1, 1, 2)[..., [1]])
    ml("FeatureVectorizer", "no rows", "inputdimensions = [2]", {"x": z(0, 2)}, z(0, 2))
    ml("FeatureVectorizer", "no columns", "inputdimensions = [2]", {"x": z(2, 0)}, z(2, 2))
    ml("FeatureVectorizer", "rank 0", "inputdimensions = [1]", {"x": a(1)}, REFUSED)
    ml("FeatureVectorizer", "NaN and infinity", "inputdimensions = [3]", {"x": a([[nan, inf]])}, a([[nan, inf, 0]]))
    ml("FeatureVectorizer", "rows that do not fit", "inputdimensions = [1, 1]", {"x": a([[1]]), "w": a([[1], [2]])}, REFUSED)


def labels():
    for what, x in (("empty", z(0, 2, t=I)), ("rank 0", a(4, I)), ("rank 8", np.full((1, 2, 1, 2, 1, 1, 1, 2), 4, I))):
        ml("LabelEncoder", what, "keys_int64s = [4], values_int64s = [7]", {"x": x}, np.full(x.shape, 7, I))
        ml("CategoryMapper", what, 'cats_int64s = [4], cats_strings = ["a"]', {"x": x}, np.full(x.shape, "a"))
    ml("LabelEncoder", "NaN is a key, infinity is none", "keys_floats = [nan], values_int64s = [7], default_int64 = -1", {"x": a([nan, inf])}, a([7, -1], I))
    ml("LabelEncoder", "more keys than values", "keys_int64s = [4, 5], values_int64s = [7]", {"x": a([4], I)}, REFUSED)
    ml("CategoryMapper", "more categories than strings", 'cats_int64s = [4, 5], cats_strings = ["a"]', {"x": a([4], I)}, REFUSED)
    ml("OneHotEncoder", "empty", "cats_int64s = [1, 2]", {"x": z(0, t=I)}, z(0, 2))
    ml("OneHotEncoder", "rank 0", "cats_int64s = [1, 2]", {"x": a(2, I)}, a([0, 1]))
    ml("OneHotEncoder", "rank 7", "cats_int64s = [1, 2]", {"x": np.full((1,) * 7, 2, I)}, a([0, 1]).reshape((1,) * 7 + (2,)))
    ml("OneHotEncoder", "no such category", "cats_int64s = [1, 2], zeros = 0", {"x": a([3], I)}, REFUSED)
    ml("OneHotEncoder", "NaN and infinity are none", "cats_int64s = [1, 2]", {"x": a([nan, inf])}, z(2, 2))
    ml("OneHotEncoder", "no categories", "zeros = 1", {"x": a([3], I)}, REFUSED)
    case("ZipMap", "no rows", "q = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2]>(x) y0 = SequenceLength(q)", {"x": z(0, 2)}, REFUSED, 15)
    case("ZipMap", "rank 0", "q = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2]>(x) y0 = Identity(x)", {"x": a(1)}, REFUSED, 15)
    case("ZipMap", "columns that do not fit", "q = ai.onnx.ml.ZipMap<classlabels_int64s = [1, 2]>(x) y0 = Identity(q)", {"x": a([[1]])}, REFUSED, 15)


def everything():
    columns()
    labels()
