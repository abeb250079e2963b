#!/usr/bin/env python3
"""Prints which kinds of edge cases each operator of docs/operators.md has (x) and lacks (.) in test/fixtures.

usage: coverage.py [kind...]     (kinds: those of the columns; only operators that lack one of them are listed)

A hole is no fault by itself: an operator of strings meets no NaN, one without an axis attribute no negative axis.
"""

import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOATS = {"float", "double", "float16", "bfloat16"}
TENSOR = re.compile(r'(\w+?)(\[[\d,]*\])? (\w+) = \{((?:"(?:\\.|[^"\\])*"|[^}"])*)\}')
CALL = re.compile(r"= ((?:[a-z][\w.]*\.)?)([A-Z]\w*)(?:<.*?>)? ?\(")


def tensors(text):
    for kind, dims, _, values in TENSOR.findall(text):
        yield kind, [int(d) for d in dims[1:-1].split(",")] if dims else [], values


def large(kind, values):
    return "int" in kind and any(abs(int(v)) in (2**7, 2**7 - 1, 2**8 - 1) or abs(int(v)) >= 2**15 - 1 for v in values.split(",") if v.strip())


KINDS = {
    "empty": lambda what, nodes, inputs: any(math.prod(d) == 0 for _, d, _ in inputs),
    "rank0": lambda what, nodes, inputs: any(not d for _, d, _ in inputs),
    "rank8": lambda what, nodes, inputs: any(len(d) >= 7 for _, d, _ in inputs),
    "broadcast": lambda what, nodes, inputs: bool(re.search("broadcast (both|three)", what)),
    "negative-axis": lambda what, nodes, inputs: bool(re.search(r"axis = -|axes = \[[^\]]*-|negative ax", what + nodes)),
    "nan": lambda what, nodes, inputs: "{nan" in nodes or any(k in FLOATS and "nan" in v for k, _, v in inputs),
    "infinity": lambda what, nodes, inputs: "inf}" in nodes or any(k in FLOATS and "inf" in v for k, _, v in inputs),
    "limits": lambda what, nodes, inputs: bool(re.search("limit|overflow", what)) or any(large(k, v) for k, _, v in inputs),
    "division": lambda what, nodes, inputs: bool(re.search("division by zero|by 0", what)),
    "range": lambda what, nodes, inputs: bool(re.search("out of range|beyond|below|negative ind|int64's", what)),
}


def cases():
    for name in ("operator-edges.txt", "contrib-attention.txt"):
        lines = iter((ROOT / "test/fixtures" / name).read_text().split("\n"))
        for title in lines:
            if title:
                nodes, inputs, outputs = next(lines), next(lines), next(lines)
                # What takes no tensor shows its kinds in what it makes.
                yield title.split(" | ")[1], nodes, list(tensors(inputs or outputs))


def operators():
    domain = None
    for line in (ROOT / "docs/operators.md").read_text().split("\n"):
        if line.startswith("## "):
            domain = line[3:].strip()
        elif match := re.match(r"\| (\w+) \| \d", line):
            yield domain, match[1]


def main():
    met = {}
    for what, nodes, inputs in cases():
        kinds = {kind for kind, holds in KINDS.items() if holds(what, nodes, inputs)}
        for domain, name in CALL.findall(nodes):
            met.setdefault((domain.rstrip(".") or "ai.onnx", name), set()).update(kinds)
    wanted = sys.argv[1:]
    if unknown := set(wanted) - set(KINDS):
        sys.exit(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    print(" " * 46, " ".join(KINDS))
    for key in operators():
        has = met.get(key, set())
        if not wanted or any(kind not in has for kind in wanted):
            print(f"{'.'.join(key):46} ", " ".join(("x" if kind in has else ".").center(len(kind)) for kind in KINDS))


main()
