#!/usr/bin/env python3
"""Writes what the installed `onnx` package defines of every operator, for test/native/ops/registry.test.cpp.

usage: onnx-schemas.py > test/fixtures/onnx-schemas.json            (needs: pip install "onnx==1.23.1")

A JSON array with a string for each version of each operator: "domain name version: inputs -> outputs; sets". A parameter
is the name of its set of types, T0, T1, ... by first use, with `?` where it is optional, `*` where it is variadic, `**`
where its values may differ in type. A version from which the operator is gone reads "domain name version: deprecated".
"""
import json

import onnx.defs


def spell(text):
    """map(int64, float) and map(int64,tensor(float)) are the same type."""
    text = text.replace(" ", "")
    if "map(" in text:
        head, value = text.rsplit(",", 1)
        inner, tail = value.rstrip(")"), ")" * (text.count("("))
        text = f"{head},{inner.split('(')[-1]}{tail if 'tensor' not in value else tail[:-1]}"
    return text


def line(schema):
    start = f"{schema.domain or 'ai.onnx'} {schema.name} {schema.since_version}: "
    if schema.deprecated:
        return start + "deprecated"
    sets = []

    def parameter(p):
        types = " ".join(sorted({spell(t) for t in p.types}))
        if types not in sets:
            sets.append(types)
        option = str(p.option).rsplit(".", 1)[-1]
        mark = {"Single": "", "Optional": "?", "Variadic": "*" if p.is_homogeneous else "**"}[option]
        return f"T{sets.index(types)}{mark}"

    inputs = ", ".join(parameter(p) for p in schema.inputs)
    outputs = ", ".join(parameter(p) for p in schema.outputs)
    return start + f"{inputs} -> {outputs}" + "".join(f"; T{i} = {s}" for i, s in enumerate(sets))


lines = sorted(line(schema) for schema in onnx.defs.get_all_schemas_with_history())
print("[\n" + ",\n".join(json.dumps(text) for text in lines) + "\n]")
