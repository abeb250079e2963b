"""Fits models of scikit-learn, XGBoost and LightGBM, converts them to ONNX and writes what the originals answer.

usage: make_ml_models.py FOLDER

FOLDER receives NAME.onnx for each model and cases.json: a list of
{ name, kind, inputs: [{ name, type, dims, data (NaN: null) }], labels: [...] or null, scores: [...], tolerance, zipped }.
kind is "numbers", "text", "categories" or "boosted".
"""

import sys

import ml_boosted
import ml_pipelines
import ml_sklearn
from ml_case import Cases


def main():
    cases = Cases(sys.argv[1])
    for module in (ml_sklearn, ml_pipelines, ml_boosted):
        module.write(cases)
    cases.write()


if __name__ == "__main__":
    main()
