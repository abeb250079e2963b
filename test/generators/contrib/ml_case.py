"""What the fitted models learn from and are asked, and how a converted model is saved with its original's answers."""

import json
import os
import warnings

import numpy as np

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
HOLES = X.copy()
HOLES[::5, 1] = np.nan
HOLES[::7, 4] = np.nan
# Two columns of numbers and two of categories 0 to 5, some of them missing.
MIXED = np.concatenate([X[:, :2], random.randint(0, 6, (ROWS, 2))], axis=1).astype(np.float32)
MIXED[::9, 2] = np.nan
MIXED_REAL = (MIXED[:, 0] + np.isin(MIXED[:, 2], [1, 4]) - 2 * np.isin(MIXED[:, 3], [0, 2, 5])).astype(np.float32)
MIXED_TWO = (MIXED_REAL > -0.5).astype(np.int64)


def tensor(name, values):
    kinds = {"f": "float32", "d": "float64", "l": "int64", "O": "string", "U": "string"}
    return {"name": name, "type": kinds[values.dtype.char], "dims": list(values.shape),
            "data": [None if v != v else v for v in values.ravel().tolist()]}


def mapping(name, values):
    """A map, as DictVectorizer takes it."""
    return {"name": name, "type": "map", "dims": [], "data": list(values.items())}


class Cases:
    """NAME.onnx for each model in a folder, and cases.json."""

    def __init__(self, folder):
        self.folder, self.cases = folder, []
        os.makedirs(folder, exist_ok=True)

    def save(self, name, onx, inputs, labels, scores, tolerance=1e-5, zipped=False, kind="numbers"):
        """`scores`: an array, or a list of them where the model gives a sequence."""
        with open(os.path.join(self.folder, name + ".onnx"), "wb") as file:
            file.write(onx.SerializeToString())
        several = [] if scores is None else scores if isinstance(scores, list) else [scores]
        flat = [v for each in several for v in np.asarray(each, dtype=np.float64).ravel().tolist()]
        self.cases.append({
            "name": name, "kind": kind, "inputs": inputs, "scores": flat, "tolerance": tolerance, "zipped": zipped,
            "labels": None if labels is None else np.asarray(labels).ravel().tolist(),
        })

    def write(self):
        with open(os.path.join(self.folder, "cases.json"), "w", encoding="utf-8") as file:
            json.dump(self.cases, file)
