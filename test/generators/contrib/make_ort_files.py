#!/usr/bin/env python3
"""Writes models of several kinds and what onnxruntime makes of each in its own format.

usage: make_ort_files.py FOLDER      (needs: pip install onnx onnxruntime sympy)

FOLDER receives NAME.onnx, NAME.ort (not optimized), NAME.extended.ort (optimized and fused), and cases.json: a list of
{ name, inputs: { input: { type, dims, data } } }.
"""
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import layers
import tools
from case import Draw


def parsed(text):
    return onnx.parser.parse_model(text)


def strings():
    """Lower case, joined, looked up and counted."""
    return parsed("""<ir_version: 9, opset_import: ["" : 20, "ai.onnx.ml" : 4]>
      g (string[N] a, string[N] b) => (string[N] joined, int64[N] looked, float[M] counts, string[N, P] parts) {
        joined = StringConcat (a, b)
        low = StringNormalizer <case_change_action = "LOWER", locale = "C"> (joined)
        looked = ai.onnx.ml.LabelEncoder <keys_strings = ["a b", "über c"], values_int64s = [7, 8], default_int64 = -1> (low)
        counts = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0,
                                  ngram_counts = [0, 2], ngram_indexes = [0, 1, 2],
                                  pool_strings = ["a b", "über c", "a b", "über c"]> (low)
        parts, count = StringSplit <delimiter = " "> (joined)
      }""")


def sequences():
    """Cut apart, one part taken out, the rest put together."""
    return parsed("""<ir_version: 9, opset_import: ["" : 17]>
      g (float[N, 6] x, int64 at) => (float[N, M] rest, float[N, K] taken, int64 count) <int64[3] split = {1, 2, 3}> {
        parts = SplitToSequence <axis = 1> (x, split)
        taken = SequenceAt (parts, at)
        fewer = SequenceErase (parts, at)
        more = SequenceInsert (fewer, taken)
        count = SequenceLength (more)
        rest = ConcatFromSequence <axis = 1> (fewer)
      }""")


def control_flow():
    """A loop that doubles until a limit, an If on what came of it that captures outer values, and a Scan that sums."""
    return parsed("""<ir_version: 9, opset_import: ["" : 17]>
      g (float[3] x, int64 trips, float limit) => (float[3] looped, float[T, 3] each, float[3] chosen, float[T, 3] sums) {
        yes = Constant <value = bool {1}> ()
        looped, each = Loop (trips, yes, x) <body = body (int64 i, bool go, float[3] v) => (bool on, float[3] w, float[3] seen) {
          w = Add (v, v)
          seen = Identity (w)
          top = ReduceMax <keepdims = 0> (w)
          on = Less (top, limit)
        }>
        most = ReduceMax <keepdims = 0> (looped)
        over = Greater (most, limit)
        chosen = If (over) <
          then_branch = above () => (float[3] a) { a = Sub (looped, x) },
          else_branch = below () => (float[3] b) { b = Mul (looped, limit) }>
        zero = Sub (x, x)
        last, sums = Scan (zero, each) <num_scan_inputs = 1, body = sum (float[3] s, float[3] e) => (float[3] t, float[3] u) {
          t = Add (s, e)
          u = Identity (t)
        }>
      }""")


def int8(folder):
    source, target = os.path.join(folder, "source.tmp"), os.path.join(folder, "int8.tmp")
    onnx.save(layers.bert(Draw(44)), source)
    quantize_dynamic(source, target, weight_type=QuantType.QInt8)
    model = onnx.load(target)
    os.remove(source)
    os.remove(target)
    return model


def coded():
    """A convolution between quantized values."""
    d, node = Draw(46), helper.make_node
    constants = {"w": d.ints(np.int8, 4, 3, 3, 3, low=-20, high=20), "ws": d.positive(4), "wz": np.zeros(4, np.int8),
                 "s": np.array(0.02, np.float32), "z": np.array(128, np.uint8), "t": np.array(0.1, np.float32)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["r"]),
             node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=0),
             node("Conv", ["r", "wr"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["a"]),
             node("QuantizeLinear", ["a", "t", "z"], ["b"]), node("DequantizeLinear", ["b", "t", "z"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write(folder, name, level, model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    options.optimized_model_filepath = os.path.join(folder, name)
    options.add_session_config_entry("session.save_model_format", "ORT")
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    d, levels = Draw(47), onnxruntime.GraphOptimizationLevel
    tokens = {"x": d.floats(2, 7, layers.SIZE)}
    words = {"a": np.array(["A ", "über", ""], object), "b": np.array(["B", " C", "東"], object)}
    models = {
        "conv": (tools.cnn(Draw(41)), {"x": d.floats(1, 3, 16, 16)}),
        "perceptron": (tools.mlp(Draw(42)), {"x": d.floats(4, 32)}),
        "bert": (layers.bert(Draw(44)), {**tokens, "mask": tools.RAGGED}),
        "gpt2": (layers.gpt2(Draw(45)), tokens),
        "int8": (int8(folder), {**tokens, "mask": tools.RAGGED}),
        "coded": (coded(), {"x": d.floats(1, 3, 8, 8)}),
        "strings": (strings(), words),
        "sequences": (sequences(), {"x": d.floats(2, 6), "at": np.array(1)}),
        "control_flow": (control_flow(), {"x": d.floats(3), "trips": np.array(9), "limit": np.array(5, np.float32)}),
    }
    cases = []
    for name, (model, inputs) in models.items():
        onnx.checker.check_model(model)
        onnx.save(model, os.path.join(folder, f"{name}.onnx"))
        session = write(folder, f"{name}.ort", levels.ORT_DISABLE_ALL, model)
        session.run(None, inputs)
        write(folder, f"{name}.extended.ort", levels.ORT_ENABLE_EXTENDED, model)
        kinds = {"O": "string", "f": "float32", "l": "int64"}
        cases.append({"name": name, "inputs": {
            key: {"type": kinds[v.dtype.char], "dims": v.shape, "data": v.ravel().tolist()} for key, v in inputs.items()}})
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as file:
        json.dump(cases, file)


if __name__ == "__main__":
    main()
