#!/usr/bin/env python3
"""Writes one-node models of com.microsoft's operators, and models made by onnxruntime's tools, with inputs and
onnxruntime's answers, as cases of the form that test/generators/make-conformance.py writes.

usage: make_cases.py OUT_DIR [NAME...]      (needs: pip install onnx onnxruntime, which bring numpy and ml_dtypes)

NAME: only cases whose name begins so. OUT_DIR/<family>/<case>/model.onnx, test_data_set_0/{input,output}_<j>.pb,
tolerance.json.
"""
import os
import sys

import attention
import gqa
import plain
import quantized
import tools
from case import Writer


def main():
    out, only = sys.argv[1], sys.argv[2:]
    for family, module in (("attention", attention), ("gqa", gqa), ("plain", plain), ("quantized", quantized), ("tools", tools)):
        module.write(Writer(os.path.join(out, family), only))


if __name__ == "__main__":
    main()
