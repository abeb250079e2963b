"""Makes a small network and quantizes it with onnxruntime, and a quantized Where: quantize_static.py FOLDER."""
import json
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

rng = np.random.default_rng(0)


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = 4

    def get_next(self):
        self.left -= 1
        return {"x": rng.standard_normal((1, 16, 20, 20)).astype(np.float32)} if self.left >= 0 else None


def network():
    """Convolutions, one of them of each channel by itself, with Relu, Relu6 and Sigmoid; a sum, a factor, a Concat, a
    mean and products."""
    nodes, weights = [], []

    def constant(name, *shape, scale=1.0):
        array = (rng.standard_normal(shape) * scale).astype(np.float32)
        weights.append(numpy_helper.from_array(array, name))
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def conv(x, name, out, channels, kernel, group=1):
        shape = (out, channels // group, kernel, kernel)
        kernels = constant(f"{name}_w", *shape, scale=np.prod(shape[1:]) ** -0.5)
        inputs = [x, kernels, constant(f"{name}_b", out, scale=0.1)]
        return add("Conv", inputs, name, kernel_shape=[kernel] * 2, pads=[kernel // 2] * 4, group=group)

    weights += [numpy_helper.from_array(np.array(v, np.float32), f"bound{v}") for v in (0, 6)]
    weights.append(numpy_helper.from_array(np.array([0, -1]), "dims"))
    a = add("Relu", [conv("x", "wide", 64, 16, 3)], "relu")
    b = add("Clip", [conv(a, "each", 64, 64, 3, group=64), "bound0", "bound6"], "relu6")
    c = conv(b, "point", 64, 64, 1)
    gate = add("Sigmoid", [c], "gate")
    d = add("Add", [add("Mul", [c, gate], "swish"), a], "sum")
    e = add("Concat", [d, b], "both", axis=1)
    pooled = add("Reshape", [add("GlobalAveragePool", [e], "mean"), "dims"], "row")
    hidden = add("Gemm", [pooled, constant("gemm_w", 96, 128, scale=0.1), constant("gemm_b", 96)], "hidden", transB=1)
    add("MatMul", [hidden, constant("matmul_w", 96, 10, scale=0.1)], "y")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 16, "H", "W"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "network", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def masked(codes):
    """A number stands for the negative elements of what is quantized."""
    info = np.iinfo(codes)
    constants = {"s": np.float32(0.011), "z": codes(info.max - 120), "r": np.float32(0.013), "o": codes(info.max - 99),
                 "c": np.float32(-0.7331), "zero": np.float32(0)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
             helper.make_node("Greater", ["x", "zero"], ["positive"]),
             helper.make_node("Where", ["positive", "d", "c"], ["w"]),
             helper.make_node("QuantizeLinear", ["w", "r", "o"], ["p"]),
             helper.make_node("DequantizeLinear", ["p", "r", "o"], ["y"])]
    tensor = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 16, "H", "W"]) for name in ("x", "y")]
    weights = [numpy_helper.from_array(np.array(v), name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, "masked", tensor[:1], tensor[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


folder, steps = Path(sys.argv[1]), {}
onnx.save(network(), folder / "float.onnx")
for name, activations in (("u8", QuantType.QUInt8), ("s8", QuantType.QInt8)):
    path = folder / f"{name}.onnx"
    quantize_static(folder / "float.onnx", path, Samples(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=activations, weight_type=QuantType.QInt8)
    scales = {w.name: numpy_helper.to_array(w) for w in onnx.load(path).graph.initializer}
    steps[name] = float(scales["y_scale"])
for name, codes in (("u8", np.uint8), ("s8", np.int8)):
    onnx.save(masked(codes), folder / f"where-{name}.onnx")
(folder / "steps.json").write_text(json.dumps(steps))
