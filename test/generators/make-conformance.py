#!/usr/bin/env python3
"""Writes the ONNX backend test suite, as the installed `onnx` package defines it, as files.

usage: make-conformance.py OUT_DIR            (needs: pip install "onnx==1.23.*", which brings numpy)

OUT_DIR/<kind>/<case>/model.onnx, test_data_set_<i>/{input,output}_<j>.pb (j counts all graph inputs, initializers among
them), tolerance.json ({"rtol", "atol"}; where it is missing, 1e-3 and 1e-7).
kind is node (one operator each), simple (small graphs), pytorch-operator, pytorch-converted, light (nine whole CNNs).
The .pb files hold a TensorProto, SequenceProto, OptionalProto or MapProto, as the graph's input or output type says.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import model as model_cases
from onnx.backend.test.case import node as node_cases


def to_proto(value, value_info):
    kind = value_info.type.WhichOneof("value")
    if kind == "map_type":
        return numpy_helper.from_dict(value, value_info.name)
    if kind == "sequence_type":
        return numpy_helper.from_list(value, value_info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, value_info.name)
    return value if isinstance(value, TensorProto) else numpy_helper.from_array(value, value_info.name)


def write_case(case, out):
    folder = os.path.join(out, case.kind, case.name)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model.SerializeToString())
    with open(os.path.join(folder, "tolerance.json"), "w") as f:
        json.dump({"rtol": case.rtol, "atol": case.atol}, f)
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data)
        for prefix, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for j, value in enumerate(values):
                if value is None:
                    continue
                with open(os.path.join(data, f"{prefix}_{j}.pb"), "wb") as f:
                    f.write(to_proto(value, infos[j]).SerializeToString())


def write_light(source, name, out):
    """A whole CNN with constant weights: the package feeds it 0/n, 1/n, ... and ships the answer."""
    model = onnx.load(os.path.join(source, f"{name}.onnx"))
    initializers = {i.name for i in model.graph.initializer}
    data = os.path.join(out, "light", name, "test_data_set_0")
    os.makedirs(data)
    shutil.copy(os.path.join(source, f"{name}.onnx"), os.path.join(out, "light", name, "model.onnx"))
    shutil.copy(os.path.join(source, f"{name}_output_0.pb"), os.path.join(data, "output_0.pb"))
    for j, value in enumerate(model.graph.input):
        if value.name in initializers:
            continue
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        feed = (np.arange(count).reshape(shape) / count).astype(np.float32)
        with open(os.path.join(data, f"input_{j}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(feed).SerializeToString())


def main():
    out = sys.argv[1]
    shutil.rmtree(out, ignore_errors=True)
    count, failed = 0, []
    for case in list(node_cases.collect_testcases(None)) + list(model_cases.collect_testcases()):
        if case.kind == "real":
            continue
        try:
            write_case(case, out)
            count += 1
        except Exception as error:  # a case the package itself cannot write
            failed.append((case.name, repr(error)[:120]))
            shutil.rmtree(os.path.join(out, case.kind, case.name), ignore_errors=True)
    package_data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        for name in sorted(os.listdir(os.path.join(package_data, kind))):
            source = os.path.join(package_data, kind, name)
            target = os.path.join(out, kind, name)
            if os.path.isdir(source) and os.path.exists(os.path.join(source, "model.onnx")) and not os.path.exists(target):
                shutil.copytree(source, target)
                count += 1
    for file in sorted(os.listdir(os.path.join(package_data, "light"))):
        if file.endswith(".onnx"):
            write_light(os.path.join(package_data, "light"), file[: -len(".onnx")], out)
            count += 1
    print(f"onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}: {count} cases written, {len(failed)} not")
    for name, why in failed:
        print("not written:", name, why)


if __name__ == "__main__":
    main()
