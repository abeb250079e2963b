"""Models made by onnxruntime's Python tools: quantized, converted to float16, optimized and saved."""
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, matmul_nbits_quantizer,
                                      quantize_dynamic, quantize_static)

from case import Draw, answer


def write(case):
    with tempfile.TemporaryDirectory() as folder:
        for name, model, feeds in (("cnn", cnn(Draw(41)), lambda d: {"x": d.floats(1, 3, 16, 16)}),
                                   ("mlp", mlp(Draw(42)), lambda d: {"x": d.floats(4, 32)})):
            source = os.path.join(folder, f"{name}.onnx")
            onnx.save(model, source)
            for form, make in tools(model, feeds).items():
                target = os.path.join(folder, f"{name}_{form}.onnx")
                made = make(source, target)
                save(case, f"{name}_{form}", onnx.load(target) if made is None else made, feeds(Draw(43)))


def save(case, name, model, feeds):
    if case.only and not any(name.startswith(o) for o in case.only):
        return
    answers = answer(model, feeds, name)
    # A code that falls to the other side of a rounding edge moves an answer by a step of its scale.
    step = 0.02 * max(1.0, float(np.abs(answers[0]).max()))
    tight = 1e-4 if "optimized" in name or "4bits" in name else step
    case.save(name, model, list(feeds.values()), answers, (1e-3, tight))


def tools(model, feeds):
    class Reader(CalibrationDataReader):
        def __init__(self):
            self.feeds = iter([feeds(Draw(seed)) for seed in range(50, 54)])

        def get_next(self):
            return next(self.feeds, None)

    def static(format, per_channel, activations=QuantType.QUInt8):
        return lambda source, target: quantize_static(source, target, Reader(), quant_format=format,
                                                      per_channel=per_channel, activation_type=activations,
                                                      weight_type=QuantType.QInt8)

    def four_bits(source, target):
        quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(onnx.load(source), block_size=32, is_symmetric=True)
        quantizer.process()
        quantizer.model.save_model_to_file(target)

    def optimized(source, target):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = target
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    def optimized_after(make):
        def both(source, target):
            make(source, target + ".q")
            optimized(target + ".q", target)
        return both

    def half(source, target):
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)

    qdq = static(QuantFormat.QDQ, False)
    return {
        "dynamic_int8": lambda source, target: quantize_dynamic(source, target, weight_type=QuantType.QInt8),
        "dynamic_uint8_optimized": optimized_after(
            lambda source, target: quantize_dynamic(source, target, weight_type=QuantType.QUInt8)),
        "qdq": qdq,
        "qdq_channels": static(QuantFormat.QDQ, True),
        "qdq_int8": static(QuantFormat.QDQ, False, QuantType.QInt8),
        "qdq_int16": static(QuantFormat.QDQ, False, QuantType.QInt16),
        "qdq_fused": optimized_after(qdq),
        "qoperator": static(QuantFormat.QOperator, False),
        "qoperator_channels": static(QuantFormat.QOperator, True),
        "4bits": four_bits,
        "float16": half,
        "optimized": optimized,
    }


def build(nodes, constants, inputs):
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def cnn(d):
    """Convolutions, a residual sum, poolings, an activation and a classifier."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]), node("Add", ["c2", "p1"], ["s1"]),
        node("LeakyRelu", ["s1"], ["r2"], alpha=0.1), node("Sigmoid", ["r2"], ["g"]), node("Mul", ["r2", "g"], ["m"]),
        node("AveragePool", ["m"], ["p2"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Concat", ["p2", "p2"], ["j"], axis=1), node("GlobalAveragePool", ["j"], ["a"]),
        node("Flatten", ["a"], ["f"]), node("Gemm", ["f", "w3", "b3"], ["l"]), node("Softmax", ["l"], ["y"], axis=-1)]
    constants = dict(w1=d.floats(8, 3, 3, 3, scale=0.4), b1=d.floats(8), w2=d.floats(8, 8, 3, 3, scale=0.2),
                     b2=d.floats(8), w3=d.floats(16, 10), b3=d.floats(10))
    return build(nodes, constants, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])])


def mlp(d):
    """Products with a residual, LayerNormalization and Gelu in its parts."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w1"], ["m1"]), node("Add", ["m1", "b1"], ["a1"]),
        node("Div", ["a1", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["o"]),
        node("Mul", ["a1", "o"], ["h"]), node("Mul", ["h", "half"], ["g"]),
        node("MatMul", ["g", "w2"], ["m2"]), node("Add", ["m2", "b2"], ["a2"]), node("Add", ["a2", "x"], ["s"]),
        node("LayerNormalization", ["s", "gamma", "beta"], ["n"], axis=-1), node("MatMul", ["n", "w3"], ["y"])]
    one = lambda v: np.array(v, np.float32)
    constants = dict(w1=d.floats(32, 64, scale=0.2), b1=d.floats(64), w2=d.floats(64, 32, scale=0.2), b2=d.floats(32),
                     w3=d.floats(32, 16, scale=0.2), gamma=d.floats(32), beta=d.floats(32), root=one(2 ** 0.5),
                     one=one(1), half=one(0.5))
    return build(nodes, constants, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 32])])
