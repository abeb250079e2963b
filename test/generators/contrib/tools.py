"""Models made by onnxruntime's Python tools: quantized, converted to float16, optimized and saved."""
import os
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType, matmul_nbits_quantizer,
                                      quantize_dynamic, quantize_static)
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model

import layers
from case import Draw, answer

RAGGED = np.array([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]], np.int64)


def write(case):
    tokens = lambda d: {"x": d.floats(2, 7, layers.SIZE)}
    models = (
        ("cnn", cnn(Draw(41)), lambda d: {"x": d.floats(1, 3, 16, 16)}, tools),
        ("mlp", mlp(Draw(42)), lambda d: {"x": d.floats(4, 32)}, lambda *a: {**tools(*a), **four_bits()}),
        ("bert", layers.bert(Draw(44)), lambda d: {**tokens(d), "mask": RAGGED}, optimizer("bert")),
        ("gpt2", layers.gpt2(Draw(45)), tokens, optimizer("gpt2")),
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, model, feeds, forms in models:
            source = os.path.join(folder, f"{name}.onnx")
            onnx.save(model, source)
            for form, make in forms(model, feeds).items():
                if case.only and not any(f"{name}_{form}".startswith(o) for o in case.only):
                    continue
                target = os.path.join(folder, f"{name}_{form}.onnx")
                made = make(source, target)
                save(case, f"{name}_{form}", onnx.load(target) if made is None else made, feeds(Draw(43)))


def save(case, name, model, feeds):
    answers = answer(model, feeds, name)
    # A code that falls to the other side of a rounding edge moves an answer by a step of its scale.
    step = 0.02 * max(1.0, float(np.abs(answers[0]).max()))
    coded = any(word in name for word in ("int8", "uint8", "qdq", "qoperator", "level4", "float16"))
    tight = step if coded else 1e-4
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

    def optimized_after(make):
        def both(source, target):
            make(source, target + ".q")
            optimized(target + ".q", target)
        return both

    def half(**more):
        return lambda source, target: onnx.save(convert_float_to_float16(onnx.load(source), **more), target)

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
        "qoperator_int8": static(QuantFormat.QOperator, False, QuantType.QInt8),
        "float16": half(keep_io_types=True),
        "float16_blocked": half(keep_io_types=True, op_block_list=["Sigmoid", "Erf", "LayerNormalization"]),
        "float16_answer": half(keep_io_types=["x"], force_fp16_initializers=True),
        "optimized": optimized,
    }


def four_bits():
    """Weights of few bits, as operators of com.microsoft or as blocks of a DequantizeLinear."""
    def make(bits=4, block=16, symmetric=True, level=None, format=QuantFormat.QOperator):
        def convert(source, target):
            model = onnx.load(source)
            if format == QuantFormat.QDQ:  # blocks came with version 21
                model = onnx.version_converter.convert_version(model, 21)
            quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
                model, bits=bits, block_size=block, is_symmetric=symmetric, accuracy_level=level, quant_format=format,
                op_types_to_quantize=("MatMul",))
            quantizer.process()
            quantizer.model.save_model_to_file(target)
        return convert

    return {
        "4bits": make(block=32),
        "4bits_zero_points": make(symmetric=False),
        "4bits_level1": make(level=1),
        "4bits_level4": make(level=4),
        "4bits_zero_points_level4": make(symmetric=False, level=4, block=32),
        "8bits": make(bits=8, symmetric=False),
        "4bits_blocks": make(format=QuantFormat.QDQ),
        "4bits_blocks_zero_points": make(format=QuantFormat.QDQ, symmetric=False),
    }


def optimized(source, target):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def optimizer(kind):
    """The offline optimizer of transformers, and what its result is made into."""
    def make(source):
        model = optimize_model(source, model_type=kind, num_heads=layers.HEADS, hidden_size=layers.SIZE, opt_level=0)
        operators = {node.op_type for node in model.model.graph.node}
        if not {"Attention", "SkipLayerNormalization"} <= operators:
            raise RuntimeError(f"{kind}: the optimizer fused nothing but {sorted(operators)}")
        return model

    def after(convert):
        def both(source, target):
            make(source).save_model_to_file(target + ".fused")
            convert(target + ".fused", target)
        return both

    def dynamic(type, **more):  # shapes and types behind the fused operators are not inferred
        return lambda source, target: quantize_dynamic(
            source, target, weight_type=type, extra_options={"DefaultTensorType": TensorProto.FLOAT}, **more)

    def half(**more):
        def convert(source, target):
            model = make(source)
            model.convert_float_to_float16(use_symbolic_shape_infer=True, **more)
            model.save_model_to_file(target)
        return convert

    return lambda model, feeds: {
        "plain": lambda source, target: onnx.load(source),
        "fused": lambda source, target: make(source).save_model_to_file(target),
        "fused_optimized": after(optimized),
        "fused_dynamic_int8": after(dynamic(QuantType.QInt8)),
        "fused_dynamic_uint8_channels": after(dynamic(QuantType.QUInt8, per_channel=True)),
        "fused_float16": half(keep_io_types=True),
        "fused_float16_blocked": half(keep_io_types=True, op_block_list=["SkipLayerNormalization", "LayerNormalization"]),
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
