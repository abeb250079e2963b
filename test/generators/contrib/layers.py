"""One layer of a BERT and of a GPT-2 with the nodes that PyTorch's exporter writes, small."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

HEADS, WIDTH = 2, 16
SIZE = HEADS * WIDTH


class Graph:
    """Nodes and constants as they are added; `value(op, inputs)` is the name of the node's output."""

    def __init__(self, draw):
        self.draw, self.nodes, self.constants = draw, [], {}

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"/{op}_{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def const(self, value, type=np.float32):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(value, type)
        return name

    def ints(self, *values):
        return self.const(values, np.int64)

    def weight(self, *shape, scale=0.2):
        return self.const(self.draw.floats(*shape, scale=scale))

    def norm(self, x):
        return self("LayerNormalization", x, self.weight(SIZE, scale=1), self.weight(SIZE), axis=-1, epsilon=1e-5)

    def model(self, inputs, result):
        self.nodes.append(helper.make_node("Identity", [result], ["y"], name="/last"))
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info(*i) for i in inputs],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "length", SIZE])],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def heads(g, x, order):
    return g("Transpose", g("Reshape", x, g.ints(0, 0, HEADS, WIDTH)), perm=order)


def bert(draw):
    g = Graph(draw)
    linear = lambda x, rows, columns: g("Add", g("MatMul", x, g.weight(rows, columns)), g.weight(columns))
    mask = g("Unsqueeze", g("Unsqueeze", "mask", g.ints(1)), g.ints(2))
    mask = g("Mul", g("Sub", g.const(1), g("Cast", mask, to=TensorProto.FLOAT)), g.const(-10000))
    x = g.norm("x")
    q, k, v = (heads(g, linear(x, SIZE, SIZE), order) for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)))
    scores = g("Add", g("Div", g("MatMul", q, k), g.const(WIDTH ** 0.5)), mask)
    mixed = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3))
    a = g.norm(g("Add", linear(g("Reshape", mixed, g.ints(0, 0, SIZE)), SIZE, SIZE), x))
    h = linear(a, SIZE, 4 * SIZE)
    h = g("Mul", g("Mul", h, g("Add", g("Erf", g("Div", h, g.const(2 ** 0.5))), g.const(1))), g.const(0.5))
    y = g.norm(g("Add", linear(h, 4 * SIZE, SIZE), a))
    return g.model([("x", TensorProto.FLOAT, ["batch", "length", SIZE]),
                    ("mask", TensorProto.INT64, ["batch", "length"])], y)


def gpt2(draw):
    g = Graph(draw)

    def linear(x, rows, columns):
        flat = g("Gemm", g("Reshape", x, g.ints(-1, rows)), g.weight(rows, columns), g.weight(columns))
        shape = g("Concat", g("Slice", g("Shape", x), g.ints(0), g.ints(2), g.ints(0)), g.ints(columns), axis=0)
        return g("Reshape", flat, shape)

    x = "x"
    n = g.norm(x)
    parts = g("Split", linear(n, SIZE, 3 * SIZE), g.ints(SIZE, SIZE, SIZE), outputs=3, axis=2)
    q, k, v = (heads(g, part, order) for part, order in zip(parts, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))))
    scores = g("Div", g("MatMul", q, k), g.const(WIDTH ** 0.5))
    length = lambda a, b: g("Squeeze", g("Slice", g("Shape", scores), g.ints(a), g.ints(b), g.ints(0)), g.ints(0))
    nd, ns = length(-2, -1), length(-1, 2 ** 62)
    past = g("Unsqueeze", g("Sub", ns, nd), g.ints(0))
    rows = g("Slice", g.const(np.tril(np.ones((1, 1, 64, 64))), bool), past, g("Unsqueeze", ns, g.ints(0)), g.ints(2))
    causal = g("Slice", rows, g.ints(0), g("Unsqueeze", ns, g.ints(0)), g.ints(3))
    weights = g("Softmax", g("Where", causal, scores, g.const(-10000)), axis=-1)
    mixed = g("Reshape", g("Transpose", g("MatMul", weights, v), perm=(0, 2, 1, 3)), g.ints(0, 0, SIZE))
    x = g("Add", x, linear(mixed, SIZE, SIZE))
    h = linear(g.norm(x), SIZE, 4 * SIZE)
    inner = g("Mul", g("Add", h, g("Mul", g("Pow", h, g.const(3)), g.const(0.044715))), g.const((2 / np.pi) ** 0.5))
    h = g("Mul", g("Mul", h, g.const(0.5)), g("Add", g("Tanh", inner), g.const(1)))
    return g.model([("x", TensorProto.FLOAT, ["batch", "length", SIZE])], g.norm(g("Add", x, linear(h, 4 * SIZE, SIZE))))
