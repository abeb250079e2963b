#!/usr/bin/env python3
"""Writes what operators must answer at the edges of their domain, for test/native/ops/edges.test.cpp.

usage: make_cases.py > test/fixtures/operator-edges.txt            (needs: pip install numpy scipy "onnx==1.23.1")

Expectations are numpy's or scipy's, or written down from the standard's text; where that says nothing and onnxruntime
differs, docs/differences.md tells what is followed. A case is four lines: `operator | what is unusual | operator set |
tolerance`, the nodes, the inputs, and the outputs or the word `refused` or `unsupported`. Tensors are written as ONNX's
text form has them.
"""

import sys

import case
import elementwise
import holes
import microsoft
import ml
import networks
import ranks
import rest
import tensors
import values

elementwise.unary()
elementwise.binary()
tensors.reductions()
tensors.shapes()
tensors.slicing()
tensors.gathering()
networks.products()
networks.normalized()
elementwise.casts()
networks.others()
networks.images()
networks.models()
rest.everything()
ml.everything()
microsoft.everything()
values.everything()
holes.everything()
ranks.everything()
print(f"{case.count} cases", file=sys.stderr)
