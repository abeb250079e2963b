#!/usr/bin/env python3
"""Writes what the `onnx` package infers of every case of its backend suite, for test/conformance/inference.test.ts.

usage: onnx-inference.py SUITE_FOLDER > test/fixtures/onnx-inference.json      (needs: pip install "onnx==1.23.1")

Each model is stripped as test/conformance/lib/bare-model.mjs does it, and inferred strictly with propagation of data. A
JSON object: "kind/case" -> [outputs, outputs where dims of inputs are symbols]; outputs is a string, one type after
another: float32[2,n3,?] (? is an unknown dim), float32 (unknown rank), seq(int64), optional(float32), or ? where nothing
is known. It starts with `!` where the package refuses the model.
"""
import json
import os
import sys

import onnx
from onnx import TensorProto, shape_inference

SPELLED = {"FLOAT": "float32", "DOUBLE": "float64"}
LONGEST_CONSTANT = 64


def dim_text(dim):
    if dim.HasField("dim_value"):
        return str(dim.dim_value)
    return dim.dim_param or "?"


def type_text(proto):
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        name = TensorProto.DataType.Name(proto.tensor_type.elem_type)
        name = SPELLED.get(name, name.lower())
        if not proto.tensor_type.HasField("shape"):
            return name
        return f"{name}[{','.join(dim_text(d) for d in proto.tensor_type.shape.dim)}]"
    if kind == "sequence_type":
        return f"seq({type_text(proto.sequence_type.elem_type).split('[')[0]})"
    if kind == "optional_type":
        return f"optional({type_text(proto.optional_type.elem_type).split('[')[0]})"
    return "?" if kind is None else kind.replace("_type", "")


def is_shape_like(tensor):
    if tensor.data_type not in (TensorProto.INT32, TensorProto.INT64):
        return False
    return len(tensor.dims) == 0 or (len(tensor.dims) == 1 and tensor.dims[0] <= LONGEST_CONSTANT)


def strip(model, folder, symbolic):
    graph = model.graph
    held = {t.name for t in graph.initializer}
    inputs = list(graph.input)
    del graph.input[:]
    for i, value in enumerate(inputs):
        path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
        if value.name not in held and value.type.HasField("tensor_type") and os.path.exists(path):
            tensor = TensorProto()
            with open(path, "rb") as file:
                tensor.ParseFromString(file.read())
            if is_shape_like(tensor):
                tensor.name = value.name
                graph.initializer.append(tensor)
                continue
            if symbolic:
                for dim in value.type.tensor_type.shape.dim:
                    if dim.HasField("dim_value") and dim.dim_value > 1:
                        dim.dim_param = f"n{dim.dim_value}"
        graph.input.append(value)
    del graph.value_info[:]
    names = [value.name for value in graph.output]
    del graph.output[:]
    for name in names:
        graph.output.add().name = name
    return model


def inferred(path, symbolic):
    model = strip(onnx.load(os.path.join(path, "model.onnx")), path, symbolic)
    try:
        result = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except Exception as error:
        return "!" + str(error).strip().splitlines()[-1][:120]
    return " ".join(type_text(value.type) for value in result.graph.output)


def main():
    suite = sys.argv[1]
    cases = sorted(
        f"{kind}/{name}" for kind in os.listdir(suite) if os.path.isdir(os.path.join(suite, kind))
        for name in os.listdir(os.path.join(suite, kind))
    )
    lines = []
    for case in cases:
        path = os.path.join(suite, *case.split("/"))
        lines.append(f"{json.dumps(case)}: {json.dumps([inferred(path, False), inferred(path, True)])}")
    print("{\n" + ",\n".join(lines) + "\n}")


main()
