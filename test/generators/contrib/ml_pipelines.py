"""Pipelines of scikit-learn that begin with text, categories or dictionaries."""

import numpy as np
import pandas
import skl2onnx
from skl2onnx.common.data_types import DictionaryType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn import compose, feature_extraction, linear_model, naive_bayes, pipeline, preprocessing, tree
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from ml_case import NAMES, REAL, ROWS, THREE, TWO, X, mapping, random, tensor

WORDS = "the good bad film plot was very not and actor boring great fun 2nd Slow FAST it's".split()
TEXTS = np.array([" ".join(random.choice(WORDS, random.randint(3, 12))) + random.choice([".", "!", " ...", ""])
                  for _ in range(ROWS)], dtype=object)
GOOD = np.array([(text.count("good") + text.count("fun") > text.count("bad")) for text in TEXTS]).astype(np.int64)
MOOD = np.array(["glum", "so-so", "glad"])[GOOD + np.array(["great" in text for text in TEXTS])]
ASKED = np.concatenate([TEXTS[:25], np.array(["Good, GOOD film", "words unheard of", "not bad: it's (very) fun"], dtype=object)])

COLOURS = np.array(["red", "green", "blue", "red"], dtype=object)[random.randint(0, 4, ROWS)]
CITIES = np.array(["Zürich", "New York", "東京"], dtype=object)[random.randint(0, 3, ROWS)]
SIZES = random.randint(1, 5, ROWS).astype(np.int64)


def write(cases):
    texts(cases)
    categories(cases)
    dictionaries(cases)


def texts(cases):
    def t(name, model, y, zipmap=False, **options):
        model.fit(TEXTS, y)
        more = {id(model[0]): options} if options else {}
        kinds = [("text", StringTensorType([None, 1]))]
        final = {id(model): {"zipmap": zipmap}}
        onx = skl2onnx.convert_sklearn(model, initial_types=kinds, options={**more, **final})
        cases.save(name, onx, [tensor("text", ASKED.reshape(-1, 1))], model.predict(ASKED), model.predict_proba(ASKED),
                   zipped=zipmap, kind="text")

    logistic, tokens = linear_model.LogisticRegression, r"[a-zA-Z0-9_]+"
    t("text_counts", pipeline.make_pipeline(CountVectorizer(token_pattern=tokens), naive_bayes.MultinomialNB()), GOOD)
    t("text_present", pipeline.make_pipeline(CountVectorizer(token_pattern=tokens, binary=True), logistic()), MOOD, zipmap=True)
    t("text_tfidf", pipeline.make_pipeline(TfidfVectorizer(token_pattern=tokens), logistic()), GOOD)
    t("text_tfidf_pairs", pipeline.make_pipeline(
        TfidfVectorizer(token_pattern=tokens, ngram_range=(1, 2), lowercase=False), logistic()), MOOD)
    t("text_tfidf_stopped", pipeline.make_pipeline(
        TfidfVectorizer(token_pattern=tokens, stop_words=["the", "was", "and"], norm="l1"), logistic()), GOOD, zipmap=True)
    t("text_letters", pipeline.make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 3), max_features=60), logistic()), GOOD)
    t("text_apart", pipeline.make_pipeline(CountVectorizer(token_pattern=r"[^ ]+"), tree.DecisionTreeClassifier(
        max_depth=6, random_state=0)), MOOD, separators=[" "])


def categories(cases):
    columns = np.stack([COLOURS, CITIES], axis=1)
    unknown = np.array([["blue", "東京"], ["green", "Zürich"], ["violet", "New York"], ["red", "Oz"]], dtype=object)
    kinds = [("kind", StringTensorType([None, 2]))]

    def c(name, encoder, test, y=None):
        encoder.fit(columns, y)
        onx = skl2onnx.convert_sklearn(encoder, initial_types=kinds)
        answer = encoder.transform(test)
        cases.save(name, onx, [tensor("kind", test)], None, answer if isinstance(answer, np.ndarray) else answer.toarray(),
                   kind="categories")

    c("one_hot", preprocessing.OneHotEncoder(handle_unknown="ignore"), unknown)
    c("one_hot_dropped", preprocessing.OneHotEncoder(drop="first", sparse_output=False), unknown[:2])
    c("ordinal", preprocessing.OrdinalEncoder(), unknown[:2])
    c("ordinal_unknown", preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), unknown)
    c("target_means", preprocessing.TargetEncoder(random_state=0, target_type="continuous"), unknown[:2], y=REAL)

    labels = preprocessing.LabelEncoder().fit(COLOURS)
    onx = skl2onnx.convert_sklearn(labels, initial_types=[("kind", StringTensorType([None]))])
    cases.save("label_numbers", onx, [tensor("kind", COLOURS[:9])], labels.transform(COLOURS[:9]), None, kind="categories")

    numbers = preprocessing.OneHotEncoder().fit(SIZES.reshape(-1, 1))
    onx = skl2onnx.convert_sklearn(numbers, initial_types=[("size", Int64TensorType([None, 1]))])
    cases.save("one_hot_integers", onx, [tensor("size", SIZES[:9].reshape(-1, 1))], None,
               numbers.transform(SIZES[:9].reshape(-1, 1)).toarray(), kind="categories")
    tables(cases)


def tables(cases):
    """Named columns of several types, as a data frame has them."""
    frame = pandas.DataFrame({"height": X[:, 0], "weight": X[:, 1], "colour": COLOURS, "city": CITIES, "note": TEXTS})
    kinds = [("height", FloatTensorType([None, 1])), ("weight", FloatTensorType([None, 1])),
             ("colour", StringTensorType([None, 1])), ("city", StringTensorType([None, 1])),
             ("note", StringTensorType([None, 1]))]

    def column(name, rows):
        values = rows[name].to_numpy()
        return tensor(name, (values if values.dtype == np.float32 else values.astype(object)).reshape(-1, 1))

    def f(name, parts, last, y, used, zipmap=None, kind="categories"):
        model = pipeline.make_pipeline(compose.ColumnTransformer(parts), last).fit(frame[used], y)
        options = None if zipmap is None else {id(model): {"zipmap": zipmap}}
        onx = skl2onnx.convert_sklearn(model, initial_types=[k for k in kinds if k[0] in used], options=options)
        rows = frame[used].iloc[:30]
        inputs = [column(name, rows) for name in used]
        if zipmap is None:
            cases.save(name, onx, inputs, None, model.predict(rows), kind=kind)
        else:
            cases.save(name, onx, inputs, model.predict(rows), model.predict_proba(rows), zipped=zipmap, kind=kind)

    scaled = ("numbers", preprocessing.StandardScaler(), ["height", "weight"])
    hot = ("kinds", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["colour", "city"])
    order = ("kinds", preprocessing.OrdinalEncoder(), ["colour", "city"])
    used = ["height", "weight", "colour", "city"]
    f("table_logistic", [scaled, hot], linear_model.LogisticRegression(), NAMES, used, zipmap=True)
    f("table_tree", [scaled, order], tree.DecisionTreeClassifier(max_depth=5, random_state=0), THREE, used, zipmap=False)
    f("table_ridge", [scaled, hot], linear_model.Ridge(), REAL, used)
    text = ("text", TfidfVectorizer(token_pattern=r"[a-zA-Z0-9_]+"), "note")
    f("table_text", [scaled, hot, text], linear_model.LogisticRegression(), TWO, [*used, "note"], zipmap=False, kind="text")


def dictionaries(cases):
    rows = [{"height": float(a), "weight": float(b)} for a, b in X[:ROWS, :2]]
    for key, kind in (("names", StringTensorType), ("numbers", Int64TensorType)):
        keyed = rows if key == "names" else [{3: row["height"], 8: row["weight"]} for row in rows]
        if key == "names":
            keyed = [row if i % 3 else {"weight": row["weight"]} for i, row in enumerate(keyed)]
        model = pipeline.make_pipeline(feature_extraction.DictVectorizer(sparse=False), linear_model.LogisticRegression())
        model.fit(keyed, TWO)
        kinds = [("rows", DictionaryType(kind([1]), FloatTensorType([1])))]
        onx = skl2onnx.convert_sklearn(model, initial_types=kinds, options={id(model): {"zipmap": True}})
        for i in range(2):  # one dictionary a run
            cases.save(f"dictionary_{key}_{i}", onx, [mapping("rows", keyed[i])], model.predict(keyed[i:i + 1]),
                       model.predict_proba(keyed[i:i + 1]), zipped=True, kind="categories")
