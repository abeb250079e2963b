#!/usr/bin/env python3
"""Writes what operators must answer at the edges of their domain, for test/native/ops/edges.test.cpp.

usage: operator-edges.py > test/fixtures/operator-edges.txt            (needs: pip install numpy scipy "onnx==1.23.1")

Expectations are numpy's, or those of `onnx.reference` where a case says so, or written down here from the standard's text.
A case is four lines: `operator | what is unusual | operator set | tolerance`, the nodes, the inputs, and the outputs or the
word `refused`. Tensors are written as ONNX's text form writes them.
"""
import sys
import warnings

import numpy as np
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator
from scipy import special

warnings.simplefilter("ignore")
np.seterr(all="ignore")

NAMES = {"float32": "float", "float64": "double", "str": "string", "object": "string"}
REFUSED = "refused"
inf, nan = np.inf, np.nan
f32, f64, f16, i64, i32, i8, u8 = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8)
count = 0


def a(values, dtype=f32):
    return np.array(values, dtype=dtype)


def name_of(array):
    name = array.dtype.name
    return "string" if name.startswith("str") or name == "object" else NAMES.get(name, name)


def spell(value, name):
    if name == "string":
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if name in ("float", "double", "float16"):
        return repr(float(value)) if name != "float" else repr(float(np.float32(value))) if not np.isfinite(value) else str(np.float32(value))
    return str(int(value))


def tensors(values):
    parts = []
    for name, value in values.items():
        value = np.asarray(value)
        kind = name_of(value)
        dims = f"[{','.join(map(str, value.shape))}]" if value.ndim else ""
        parts.append(f"{kind}{dims} {name} = {{{', '.join(spell(v, kind) for v in value.ravel())}}}")
    return ", ".join(parts)


def case(op, what, node, inputs, expected, opset=21, tolerance=1e-5):
    """`node` is text; `expected` an array, a list of arrays for outputs y0, y1, ..., or REFUSED."""
    global count
    count += 1
    if expected is not REFUSED:
        many = expected if isinstance(expected, list) else [expected]
        expected = tensors({f"y{i}": v for i, v in enumerate(many)})
        if any(np.asarray(v).dtype == f16 for v in many):
            tolerance = max(tolerance, 2e-3)
    print(f"{op} | {what} | {opset} | {tolerance:g}\n{node}\n{tensors(inputs)}\n{expected}\n")


def reference(node, inputs, opset=21, outputs=1):
    names = [f"y{i}" for i in range(outputs)]
    kind = {n: helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype) for n, v in inputs.items()}
    nodes = [parser.parse_node(line) for line in node.split(";") if line.strip()]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, kind[n], np.shape(v)) for n, v in inputs.items()],
                              [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return [np.asarray(v) for v in ReferenceEvaluator(model).run(None, inputs)]


RANK8 = (1, 2, 1, 2, 1, 1, 2, 1)


def shaped(dtype=f32, low=-3.0):
    """Empty, rank 0 and rank 8, by name."""
    rank8 = (np.arange(8).reshape(RANK8) + low).astype(dtype)
    return {"empty": np.zeros((2, 0, 3), dtype), "rank 0": np.array(2, dtype), "rank 8": rank8}


def unary():
    softplus = lambda x: np.logaddexp(x, 0)
    sigmoid = lambda x: special.expit(x)
    selu_a, selu_g = 1.67326319217681884765625, 1.05070102214813232421875
    table = {
        "Abs": np.abs, "Neg": np.negative, "Ceil": np.ceil, "Floor": np.floor, "Round": np.rint, "Sqrt": np.sqrt, "Exp": np.exp,
        "Log": np.log, "Reciprocal": lambda x: 1 / x, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin,
        "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh,
        "Acosh": np.arccosh, "Atanh": np.arctanh, "Erf": special.erf, "Sign": np.sign, "Sigmoid": sigmoid, "Softplus": softplus,
        "Softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
        "Relu": lambda x: np.maximum(x, 0), "Identity": lambda x: x,
        "IsNaN": np.isnan, "IsInf": np.isinf,
        "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x), "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
        "Selu": lambda x: selu_g * np.where(x > 0, x, selu_a * np.expm1(np.minimum(x, 0))),
        "HardSigmoid": lambda x: np.maximum(0, np.minimum(1, 0.2 * x + 0.5)),
        "ThresholdedRelu": lambda x: np.where(x > 1, x, np.where(np.isnan(x), 0, 0)),
        "Celu": lambda x: np.maximum(0, x) + np.minimum(0, np.expm1(np.minimum(x, 0))),
    }
    special_values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 2.5, 88.0, -88.0, 1e-30, nan, inf, -inf]
    edge = {"Sin": 3, "Cos": 3, "Tan": 3}
    for op, f in table.items():
        for what, x in shaped().items():
            case(op, what, f"y0 = {op}(x)", {"x": x}, np.asarray(f(x), None if op.startswith("Is") else f32), 22)
        for dtype in (f32, f64, f16):
            if op in ("Erf",) and dtype != f32 and dtype != f16:
                continue
            if op == "Celu" and dtype != f32:
                continue
            values = [v for v in special_values if dtype != f16 or abs(v) < 20 or not np.isfinite(v)]
            if op == "ThresholdedRelu":
                values = [v for v in values if not np.isnan(v)]
            x = a(values * 3, dtype)  # long enough for the vector loops and their tails
            y = np.asarray(f(x.astype(f64) if op != "IsInf" else x))
            if op == "Exp" or op == "Sinh" or op == "Cosh":
                y = np.asarray(f(x))
            y = y if op.startswith("Is") else y.astype(dtype)
            big = 2e-5 if op in edge else 1e-5
            case(op, f"NaN, infinities, signed zeros, {name_of(x)}", f"y0 = {op}(x)", {"x": x}, y, 22, big)
    for op, f in (("Abs", np.abs), ("Neg", np.negative), ("Sign", np.sign), ("Relu", lambda x: np.maximum(x, 0))):
        for dtype in (i8, np.int16, i32, i64):
            x = a([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, -1], dtype)
            case(op, f"the least {name_of(x)}", f"y0 = {op}(x)", {"x": x}, f(x), 22)
    x = a([True, False])
    case("Not", "rank 0", "y0 = Not(x)", {"x": np.array(True)}, np.array(False))
    case("Not", "empty", "y0 = Not(x)", {"x": np.zeros((0, 2), bool)}, np.zeros((0, 2), bool))
    for dtype in (u8, i8, i32, i64):
        x = a([np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype)
        case("BitwiseNot", name_of(x), "y0 = BitwiseNot(x)", {"x": x}, ~x)
    x = a([nan, -inf, inf, 0, 5, -5])
    case("Clip", "NaN stays", "y0 = Clip(x, lo, hi)", {"x": x, "lo": a(-1), "hi": a(1)}, np.clip(x, f32(-1), f32(1)))
    case("Clip", "the least above the most: all become the most", "y0 = Clip(x, lo, hi)", {"x": x[1:], "lo": a(2), "hi": a(1)}, np.full(5, 1, f32))
    for what, x in shaped().items():
        case("Clip", what, "y0 = Clip(x, lo)", {"x": x, "lo": a(0)}, np.maximum(x, f32(0)))
    for op in ("Gelu", "Mish", "HardSwish"):
        for what, x in shaped().items():
            g = {"Gelu": 0.5 * x * (1 + special.erf(x / np.sqrt(2))), "Mish": x * np.tanh(softplus(x)),
                 "HardSwish": x * np.clip(x / 6 + 0.5, 0, 1)}[op]
            case(op, what, f"y0 = {op}(x)", {"x": x}, g.astype(f32), 22)
        case(op, "NaN and +inf", f"y0 = {op}(x)", {"x": a([nan, inf])}, a([nan, inf]), 22)
    case("IsInf", "only negative", "y0 = IsInf<detect_positive = 0>(x)", {"x": a([inf, -inf, nan])}, a([False, True, False], bool))
    case("IsInf", "none", "y0 = IsInf<detect_positive = 0, detect_negative = 0>(x)", {"x": a([inf, -inf])}, a([False, False], bool))


def truncated(x, y):
    """Integer division towards zero; by zero 0, as numpy has it; the least by -1 wraps."""
    out = []
    info = np.iinfo(x.dtype)
    for p, q in zip(*(v.ravel().tolist() for v in np.broadcast_arrays(x, y))):
        d = 0 if q == 0 else abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1)
        out.append((d - info.min) % (info.max - info.min + 1) + info.min)
    return np.array(out, x.dtype).reshape(np.broadcast_shapes(x.shape, y.shape))


def binary():
    arithmetic = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power, "Max": np.maximum,
                  "Min": np.minimum, "PRelu": lambda x, y: np.where(x < 0, x * y, x), "Mod<fmod = 1>": np.fmod,
                  "Mean": lambda x, y: (x + y) / f32(2), "Sum": np.add}
    compared = {"Equal": np.equal, "Less": np.less, "Greater": np.greater, "LessOrEqual": np.less_equal,
                "GreaterOrEqual": np.greater_equal}
    logic = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}
    bits = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
    pairs = {
        "broadcast both ways": ((2, 1, 3), (4, 1)), "rank 0 with rank 2": ((), (2, 3)), "rank 2 with rank 0": ((2, 3), ()),
        "both rank 0": ((), ()), "empty with one": ((2, 0), (1,)), "one with empty": ((1, 1), (3, 0)), "empty with empty": ((0, 1), (1, 0)),
        "rank 8": (RANK8, (2, 1, 1, 2, 1)), "dims that do not fit": ((2, 3), (2, 4)), "0 against 2": ((0,), (2,)),
    }
    for table, dtype in ((arithmetic, f32), (compared, f32), (logic, bool), (bits, i32)):
        for op, f in table.items():
            for what, (left, right) in pairs.items():
                if op == "PRelu" and len(np.broadcast_shapes(left, right) if "not" not in what and "against" not in what else left) > len(left):
                    continue
                if op == "PRelu" and "not" not in what and "against" not in what and np.broadcast_shapes(left, right) != left:
                    continue
                x = (np.arange(np.prod(left)) % 5 - 1).astype(dtype).reshape(left)
                y = (np.arange(np.prod(right)) % 3 + 1).astype(dtype).reshape(right)
                try:
                    out = np.asarray(f(x, y))
                    out = out.astype(dtype) if table in (arithmetic, bits) else out
                except ValueError:
                    out = REFUSED
                op_name = op.split("<")[0]
                case(op_name, what, f"y0 = {op}(x, z)", {"x": x, "z": y}, out)
    odd = a([0, -0.0, 1, -1, 3.5, -3.5, inf, -inf, nan])
    grid = np.meshgrid(odd, odd)
    for op, f in list(arithmetic.items()) + list(compared.items()):
        if op in ("Mean", "PRelu"):
            continue
        for dtype in (f32, f64, f16):
            x, y = grid[0].ravel().astype(dtype), grid[1].ravel().astype(dtype)
            out = f(x, y)
            case(op.split("<")[0], f"NaN, infinities, division by zero, {name_of(x)}", f"y0 = {op}(x, z)", {"x": x, "z": y}, out)
    for dtype in (i8, u8, np.int16, np.uint16, i32, np.uint32, i64, np.uint64):
        info = np.iinfo(dtype)
        values = a([info.min, info.min + 1, 0, 1, 2, info.max - 1, info.max] + ([-1] if info.min else []), dtype)
        x, y = (v.ravel() for v in np.meshgrid(values, values))
        what = f"overflow and division by zero, {name_of(x)}"
        for op in ("Add", "Sub", "Mul", "Max", "Min"):
            case(op, what, f"y0 = {op}(x, z)", {"x": x, "z": y}, arithmetic[op](x, y))
        case("Div", what, "y0 = Div(x, z)", {"x": x, "z": y}, truncated(x, y))
        case("Mod", what, "y0 = Mod(x, z)", {"x": x, "z": y}, np.mod(x, y))
        case("Mod", what + ", fmod", "y0 = Mod<fmod = 1>(x, z)", {"x": x, "z": y}, np.fmod(x, y))
        for op, f in list(compared.items()) + list(bits.items()):
            case(op, name_of(x) + " limits", f"y0 = {op}(x, z)", {"x": x, "z": y}, f(x, y))
        if not info.min:
            s = a([0, 1, info.bits - 1, info.bits, info.bits + 1, 255], dtype)
            ones = np.full(6, info.max, dtype)
            left = a([(info.max << int(k)) & info.max if k < info.bits else 0 for k in s], dtype)
            right = a([info.max >> int(k) if k < info.bits else 0 for k in s], dtype)
            case("BitShift", f"by the width and more, {name_of(x)}", 'y0 = BitShift<direction = "LEFT">(x, z)', {"x": ones, "z": s}, left)
            case("BitShift", f"right by the width and more, {name_of(x)}", 'y0 = BitShift<direction = "RIGHT">(x, z)', {"x": ones, "z": s}, right)
    for dtype in (i32, i64):
        info = np.iinfo(dtype)
        x, y = a([2, -2, 0, 0, 3, info.max, -1], dtype), a([31, 3, 0, 5, 40, 2, 5], dtype)
        case("Pow", f"overflow, {name_of(x)}", "y0 = Pow(x, z)", {"x": x, "z": y}, np.power(x, y))
    case("Where", "broadcast three ways", "y0 = Where(c, x, z)", {"c": a([[True], [False]], bool), "x": a([1, 2, 3]), "z": a(9)},
         np.where(a([[True], [False]], bool), a([1, 2, 3]), a(9)))
    case("Where", "empty", "y0 = Where(c, x, z)", {"c": np.zeros((0, 1), bool), "x": a([1, 2, 3]), "z": a(9)}, np.zeros((0, 3), f32))
    case("Where", "dims that do not fit", "y0 = Where(c, x, z)", {"c": a([True, False], bool), "x": a([1, 2, 3]), "z": a(9)}, REFUSED)
    case("Where", "NaN in the part not chosen", "y0 = Where(c, x, z)", {"c": a([True, False], bool), "x": a([1, nan]), "z": a([nan, 2])}, a([1, 2]))
    case("Equal", "strings", "y0 = Equal(x, z)", {"x": np.array(["", "a"]), "z": np.array(["a"])}, a([False, True], bool))


def reductions():
    table = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
             "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k), "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
             "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)), "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
             "ReduceLogSumExp": lambda x, **k: np.logaddexp.reduce(x.astype(f64), **k).astype(f32)}
    start = {"ReduceMax": -inf, "ReduceMin": inf}
    for op, f in table.items():
        def run(x, axes, keep, f=f):
            axis = tuple(axes) if axes else tuple(range(x.ndim))
            if op in start and x.size == 0:
                return f(x, axis=axis, keepdims=keep, initial=start[op]).astype(f32)
            if op == "ReduceLogSumExp":
                y = np.log(np.sum(np.exp(x.astype(f64)), axis=axis, keepdims=keep)).astype(f32)
                top = np.max(x, axis=axis, keepdims=keep, initial=-inf)
                return np.asarray(np.where(np.isinf(top), top, y), f32)
            return np.asarray(f(x, axis=axis, keepdims=keep), f32)

        x = a([[1, 2, 3], [4, 5, 6]])
        for what, x, axes in (
                ("negative axes", x, [-1]), ("both axes", x, [0, -1]), ("no axes: all", x, []), ("rank 0", a(3), []),
                ("rank 8", np.arange(1, 9, dtype=f32).reshape(RANK8), [1, -2]), ("an empty axis", np.zeros((2, 0, 3), f32), [1]),
                ("an empty result", np.zeros((2, 0, 3), f32), [0]), ("all of an empty one", np.zeros((0, 3), f32), []),
                ("NaN", a([[1, nan], [nan, nan], [2, 3]]), [1]), ("infinities", a([[inf, 1], [-inf, 1], [inf, inf]]), [1]),
                ("infinities of both signs", a([[inf, -inf]]), [0])):
            for keep in (0, 1):
                case(op, f"{what}, keepdims {keep}", f"y0 = {op}<keepdims = {keep}>(x, axes)", {"x": x, "axes": a(axes, i64)},
                     run(x, axes, bool(keep)), 20)
        case(op, "an axis out of range", f"y0 = {op}(x, axes)", {"x": a([[1, 2]]), "axes": a([2], i64)}, REFUSED, 20)
        case(op, "an axis twice", f"y0 = {op}(x, axes)", {"x": a([[1, 2]]), "axes": a([1, -1], i64)}, REFUSED, 20)
        case(op, "noop_with_empty_axes", f"y0 = {op}<noop_with_empty_axes = 1>(x, axes)", {"x": a([[1, 2], [3, 4]]), "axes": a([], i64)},
             {"ReduceSumSquare": a([[1, 4], [9, 16]]), "ReduceLogSum": np.log(a([[1, 2], [3, 4]]))}.get(op, a([[1, 2], [3, 4]])), 20)
    m = np.iinfo(i32).max
    case("ReduceSum", "int32 overflow", "y0 = ReduceSum<keepdims = 0>(x)", {"x": a([m, 1], i32)}, a(np.iinfo(i32).min, i32))
    case("ReduceSum", "int64 overflow", "y0 = ReduceSum<keepdims = 0>(x)", {"x": a([np.iinfo(i64).max, 1], i64)}, a(np.iinfo(i64).min, i64))
    case("ReduceProd", "int64 overflow", "y0 = ReduceProd<keepdims = 0>(x)", {"x": a([2**62, 4], i64)}, a(0, i64))
    case("ReduceMax", "the least int8 of nothing", "y0 = ReduceMax<keepdims = 0>(x)", {"x": a([], i8)}, a(-128, i8), 20)
    case("ReduceMin", "the most uint8 of nothing", "y0 = ReduceMin<keepdims = 0>(x)", {"x": a([], u8)}, a(255, u8), 20)
    case("ReduceMax", "bool", "y0 = ReduceMax<keepdims = 0>(x)", {"x": a([True, False], bool)}, np.array(True), 20)
    for op, f in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        x = a([[1, 3, 3], [5, 5, 2]])
        case(op, "negative axis", f"y0 = {op}<axis = -1>(x)", {"x": x}, f(x, axis=-1, keepdims=True))
        case(op, "ties, the last", f"y0 = {op}<axis = 1, keepdims = 0, select_last_index = 1>(x)", {"x": a([[7, 7, 7]])}, a([2], i64))
        case(op, "an empty axis", f"y0 = {op}<axis = 1>(x)", {"x": np.zeros((2, 0), f32)}, REFUSED)
        case(op, "an empty result", f"y0 = {op}<axis = 1>(x)", {"x": np.zeros((0, 2), f32)}, np.zeros((0, 1), i64))
        case(op, "an axis out of range", f"y0 = {op}<axis = 2>(x)", {"x": x}, REFUSED)
        case(op, "infinities", f"y0 = {op}<axis = 0, keepdims = 0>(x)", {"x": a([-inf, inf, inf, -inf])}, np.asarray(f(a([-inf, inf, inf, -inf]))))
        case(op, "NaN comes first, as numpy has it", f"y0 = {op}<axis = 0, keepdims = 0>(x)", {"x": a([1, nan, 3, nan])}, a(1, i64))
        x = np.arange(8, dtype=f32).reshape(RANK8)
        case(op, "rank 8", f"y0 = {op}<axis = -2>(x)", {"x": x}, f(x, axis=-2, keepdims=True))
    for what, x, axis in (("negative axis", a([[1, 2], [3, 4]]), -1), ("NaN", a([1, nan, 2]), 0), ("infinities", a([inf, 1, -inf]), 0),
                          ("empty", np.zeros((0, 2), f32), 0)):
        case("CumSum", what, "y0 = CumSum(x, n)", {"x": x, "n": a(axis, i64)}, np.cumsum(x, axis=axis, dtype=f32))
    case("CumSum", "int32 overflow", "y0 = CumSum(x, n)", {"x": a([m, 1, 1], i32), "n": a(0, i64)}, np.cumsum(a([m, 1, 1], i32), dtype=i32))
    case("CumSum", "an axis out of range", "y0 = CumSum(x, n)", {"x": a([1, 2]), "n": a(1, i64)}, REFUSED)
    case("CumSum", "exclusive and reverse", "y0 = CumSum<exclusive = 1, reverse = 1>(x, n)", {"x": a([1, 2, 3]), "n": a(-1, i32)}, a([5, 3, 0]))


def shapes():
    x = np.arange(6, dtype=f32).reshape(2, 3)
    zero = np.zeros((2, 0, 3), f32)
    r8 = np.arange(8, dtype=f32).reshape(RANK8)

    def reshape(what, x, shape, out, attr=""):
        case("Reshape", what, f"y0 = Reshape{attr}(x, s)", {"x": x, "s": a(shape, i64)}, out)
    reshape("to rank 0", a([5]), [], a(5))
    reshape("of rank 0", a(5), [1, 1], a([[5]]))
    reshape("to rank 8", x, [1, 1, 1, 2, 1, 3, 1, 1], x.reshape(1, 1, 1, 2, 1, 3, 1, 1))
    reshape("0 copies", x, [0, -1], x)
    reshape("0 beyond the rank", x, [2, 3, 0], REFUSED)
    reshape("two -1", x, [-1, -1], REFUSED)
    reshape("-2", x, [-2, 3], REFUSED)
    reshape("-1 that does not divide", x, [4, -1], REFUSED)
    reshape("too many", x, [7], REFUSED)
    reshape("overflow", x, [2**40, 2**40], REFUSED)
    reshape("empty, 0 copied", zero, [3, 0, 7], np.zeros((3, 0, 7), f32))
    reshape("empty, allowzero", zero, [3, 0, 7], np.zeros((3, 0, 7), f32), "<allowzero = 1>")
    reshape("allowzero with -1", zero, [0, -1], REFUSED, "<allowzero = 1>")
    for what, v in (("empty", zero), ("rank 0", a(5)), ("rank 8", r8)):
        case("Shape", what, "y0 = Shape(x)", {"x": v}, a(v.shape, i64))
        case("Size", what, "y0 = Size(x)", {"x": v}, a(v.size, i64))
        case("Transpose", what, "y0 = Transpose(x)", {"x": v}, v.T)
        case("Flatten", what, "y0 = Flatten<axis = 0>(x)", {"x": v}, v.reshape(1, -1) if v.size else np.zeros((1, 0), f32))
    case("Shape", "start and end beyond", "y0 = Shape<start = -5, end = 9>(x)", {"x": x}, a([2, 3], i64))
    case("Shape", "end before start", "y0 = Shape<start = 1, end = 0>(x)", {"x": x}, a([], i64))
    case("Transpose", "perm twice", "y0 = Transpose<perm = [0, 0]>(x)", {"x": x}, REFUSED)
    case("Transpose", "perm out of range", "y0 = Transpose<perm = [0, 2]>(x)", {"x": x}, REFUSED)
    case("Transpose", "perm too short", "y0 = Transpose<perm = [0]>(x)", {"x": x}, REFUSED)
    case("Flatten", "negative axis", "y0 = Flatten<axis = -1>(x)", {"x": np.zeros((2, 3, 4), f32)}, np.zeros((6, 4), f32))
    case("Flatten", "the rank as axis", "y0 = Flatten<axis = 2>(x)", {"x": x}, x.reshape(6, 1))
    case("Flatten", "an axis out of range", "y0 = Flatten<axis = 3>(x)", {"x": x}, REFUSED)
    case("Flatten", "a negative axis out of range", "y0 = Flatten<axis = -3>(x)", {"x": x}, REFUSED)
    for op, axes, out in (("Squeeze", [0], REFUSED), ("Squeeze", [2], REFUSED), ("Squeeze", [-1, 1], REFUSED),
                          ("Unsqueeze", [0, 0], REFUSED), ("Unsqueeze", [3], REFUSED), ("Unsqueeze", [-4], REFUSED),
                          ("Unsqueeze", [0, -1], x[None, :, :, None]), ("Unsqueeze", [], x)):
        case(op, f"axes {axes}", f"y0 = {op}(x, axes)", {"x": x, "axes": a(axes, i64)}, out)
    case("Squeeze", "all to rank 0", "y0 = Squeeze(x)", {"x": a([[[4]]])}, a(4))
    case("Squeeze", "rank 8", "y0 = Squeeze(x)", {"x": r8}, r8.squeeze())
    case("Squeeze", "rank 0", "y0 = Squeeze(x)", {"x": a(4)}, a(4))
    case("Squeeze", "empty", "y0 = Squeeze(x, axes)", {"x": np.zeros((0, 1), f32), "axes": a([-1], i64)}, np.zeros((0,), f32))
    case("Unsqueeze", "rank 0", "y0 = Unsqueeze(x, axes)", {"x": a(4), "axes": a([0, 1], i64)}, a([[4]]))
    for what, v, s, out in (("both ways", a([[1], [2]]), [3, 1, 2], np.broadcast_to(a([[1], [2]]), (3, 2, 2))), ("rank 0", a(3), [2], a([3, 3])),
                            ("to 0", a([1]), [0], np.zeros((0,), f32)), ("0 against 2", np.zeros((0,), f32), [2], REFUSED),
                            ("does not fit", a([1, 2, 3]), [2], REFUSED), ("negative", a([1]), [-1], REFUSED),
                            ("no dims", a([1, 2]), [], a([1, 2])), ("overflow", a([1]), [2**40, 2**40], REFUSED),
                            ("rank 8", a([1, 2]), RANK8, np.broadcast_to(a([1, 2]), (1, 2, 1, 2, 1, 1, 2, 2)))):
        case("Expand", what, "y0 = Expand(x, s)", {"x": v, "s": a(s, i64)}, out)
    for what, v, r, out in (("zero times", x, [0, 1], np.zeros((0, 3), f32)), ("rank 0", a(3), [], a(3)), ("negative", x, [-1, 1], REFUSED),
                            ("too few", x, [2], REFUSED), ("empty", zero, [1, 5, 2], np.zeros((2, 0, 6), f32)),
                            ("overflow", a([1]), [2**62], REFUSED), ("rank 8", r8, [2] * 8, np.tile(r8, [2] * 8))):
        case("Tile", what, "y0 = Tile(x, r)", {"x": v, "r": a(r, i64)}, out)
    case("ConstantOfShape", "no dims", "y0 = ConstantOfShape(s)", {"s": a([], i64)}, a(0))
    case("ConstantOfShape", "0", "y0 = ConstantOfShape(s)", {"s": a([2, 0], i64)}, np.zeros((2, 0), f32))
    case("ConstantOfShape", "negative", "y0 = ConstantOfShape(s)", {"s": a([-1], i64)}, REFUSED)
    case("ConstantOfShape", "overflow", "y0 = ConstantOfShape(s)", {"s": a([2**40, 2**40], i64)}, REFUSED)
    for op in ("DepthToSpace", "SpaceToDepth"):
        case(op, "a block that does not divide", f"y0 = {op}<blocksize = 3>(x)", {"x": np.zeros((1, 4, 2, 2), f32)}, REFUSED)
        case(op, "block 0", f"y0 = {op}<blocksize = 0>(x)", {"x": np.zeros((1, 4, 2, 2), f32)}, REFUSED)
        case(op, "empty", f"y0 = {op}<blocksize = 2>(x)", {"x": np.zeros((0, 4, 2, 2), f32)},
             np.zeros((0, 1, 4, 4) if op[0] == "D" else (0, 16, 1, 1), f32))
    for what, v, k, up in (("k beyond", x, 9, 1), ("k far below", x, -9, 1), ("lower, k far below", x, -9, 0), ("empty", np.zeros((0, 3), f32), 0, 1)):
        case("Trilu", what, f"y0 = Trilu<upper = {up}>(x, k)", {"x": v, "k": a(k, i64)}, (np.triu if up else np.tril)(v, k))
    case("Trilu", "rank 1", "y0 = Trilu(x)", {"x": a([1, 2])}, REFUSED)
    case("EyeLike", "k beyond", "y0 = EyeLike<k = 7>(x)", {"x": x}, np.zeros((2, 3), f32), 22)
    case("EyeLike", "empty", "y0 = EyeLike(x)", {"x": np.zeros((0, 3), f32)}, np.zeros((0, 3), f32), 22)
    case("EyeLike", "rank 1", "y0 = EyeLike(x)", {"x": a([1])}, REFUSED, 22)
    for what, (s, l, d), out in (("empty", (3, 3, 1), a([], i64)), ("wrong way", (3, 0, 1), a([], i64)), ("down", (3, 0, -2), a([3, 1], i64)),
                                 ("step 0", (0, 3, 0), REFUSED), ("too many", (0, 2**62, 1), REFUSED),
                                 ("the whole of int64", (-2**63, 2**63 - 1, 2**62), np.arange(-2**63, 2**63 - 1, 2**62, dtype=i64))):
        case("Range", what, "y0 = Range(p, q, r)", {"p": a(s, i64), "q": a(l, i64), "r": a(d, i64)}, out)
    case("Range", "NaN", "y0 = Range(p, q, r)", {"p": a(0), "q": a(nan), "r": a(1)}, REFUSED)
    case("Range", "infinite", "y0 = Range(p, q, r)", {"p": a(0), "q": a(inf), "r": a(1)}, REFUSED)


def slicing():
    x = np.arange(20, dtype=f32).reshape(4, 5)
    I, M, m = i64, 2**63 - 1, -2**63
    for what, s, e, ax, st, out in (
            ("ends beyond", [0], [M], [1], [1], x), ("starts beyond", [9], [20], [0], [1], x[9:]), ("negative", [-2], [-1], [-1], [1], x[:, -2:-1]),
            ("backwards to the start", [M], [m], [0], [-1], x[::-1]), ("backwards by 2", [-1], [m], [1], [-2], x[:, ::-2]),
            ("empty", [3], [1], [0], [1], x[3:1]), ("steps beyond", [0], [M], [0], [M], x[:1]), ("steps far back", [M], [m], [0], [m], x[-1:]),
            ("step 0", [0], [2], [0], [0], REFUSED), ("an axis out of range", [0], [2], [2], [1], REFUSED), ("an axis twice", [0, 0], [1, 1], [0, -2], [1, 1], REFUSED),
            ("more starts than ends", [0, 0], [1], [0], [1], REFUSED), ("far negative start", [m], [2], [0], [1], x[:2])):
        case("Slice", what, "y0 = Slice(x, s, e, n, t)", {"x": x, "s": a(s, I), "e": a(e, I), "n": a(ax, I), "t": a(st, I)}, out)
    case("Slice", "rank 0", "y0 = Slice(x, s, e)", {"x": a(1), "s": a([], I), "e": a([], I)}, a(1))
    case("Slice", "rank 0 with a start", "y0 = Slice(x, s, e)", {"x": a(1), "s": a([0], I), "e": a([1], I)}, REFUSED)
    case("Slice", "of nothing", "y0 = Slice(x, s, e, n, t)", {"x": np.zeros((0, 2), f32), "s": a([-1], I), "e": a([m], I), "n": a([0], I), "t": a([-1], I)}, np.zeros((0, 2), f32))
    r8 = np.arange(8, dtype=f32).reshape(RANK8)
    case("Slice", "rank 8", "y0 = Slice(x, s, e, n)", {"x": r8, "s": a([1, 0], I), "e": a([2, 1], I), "n": a([-2, 1], I)}, r8[:, 0:1, :, :, :, :, 1:2])
    case("Slice", "int32 limits", "y0 = Slice(x, s, e)", {"x": x, "s": a([-2**31], i32), "e": a([2**31 - 1], i32)}, x)
    for mode in ("constant", "edge", "reflect", "wrap"):
        v = a([[1, 2, 3], [4, 5, 6]])
        case("Pad", f"{mode}", f'y0 = Pad<mode = "{mode}">(x, p)', {"x": v, "p": a([0, 1, 0, 2], I)}, np.pad(v, [(0, 0), (1, 2)], mode=mode))
        case("Pad", f"{mode} of nothing", f'y0 = Pad<mode = "{mode}">(x, p)', {"x": np.zeros((0, 2), f32), "p": a([1, 0, 0, 0], I)},
             np.zeros((1, 2), f32) if mode == "constant" else REFUSED)
        case("Pad", f"{mode} without pads of nothing", f'y0 = Pad<mode = "{mode}">(x, p)', {"x": np.zeros((0, 2), f32), "p": a([0, 0, 0, 0], I)}, np.zeros((0, 2), f32))
        case("Pad", f"{mode}, too few pads", f'y0 = Pad<mode = "{mode}">(x, p)', {"x": v, "p": a([1, 1], I)}, REFUSED)
        case("Pad", f"{mode}, cropped", f'y0 = Pad<mode = "{mode}">(x, p)', {"x": v, "p": a([0, -1, 0, -1], I)}, v[:, 1:2])
    case("Pad", "cropped to nothing", "y0 = Pad(x, p)", {"x": a([1, 2]), "p": a([-1, -1], I)}, a([]))
    case("Pad", "cropped by more", "y0 = Pad(x, p)", {"x": a([1, 2]), "p": a([-2, -1], I)}, REFUSED)
    case("Pad", "overflow", "y0 = Pad(x, p)", {"x": a([1, 2]), "p": a([2**62, 2**62], I)}, REFUSED)
    case("Pad", "rank 0", "y0 = Pad(x, p)", {"x": a(1), "p": a([], I)}, a(1))
    case("Pad", "wrap, more than the length", 'y0 = Pad<mode = "wrap">(x, p)', {"x": a([1, 2]), "p": a([5, 3], I)}, np.pad(a([1, 2]), (5, 3), mode="wrap"))
    case("Pad", "negative axes", "y0 = Pad(x, p, v, n)", {"x": a([[1, 2]]), "p": a([1, 0], I), "v": a(nan), "n": a([-1], I)}, a([[nan, 1, 2]]))
    case("Concat", "rank 0", "y0 = Concat<axis = 0>(x)", {"x": a(1)}, REFUSED)
    case("Concat", "an axis out of range", "y0 = Concat<axis = 1>(x, z)", {"x": a([1]), "z": a([2])}, REFUSED)
    case("Concat", "dims that do not fit", "y0 = Concat<axis = 0>(x, z)", {"x": a([[1]]), "z": a([[2, 3]])}, REFUSED)
    case("Concat", "with empty ones", "y0 = Concat<axis = -1>(x, z, x)", {"x": np.zeros((2, 0), f32), "z": a([[1], [2]])}, a([[1], [2]]))
    case("Concat", "all empty", "y0 = Concat<axis = -2>(x, z)", {"x": np.zeros((2, 0), f32), "z": np.zeros((3, 0), f32)}, np.zeros((5, 0), f32))
    case("Concat", "rank 8", "y0 = Concat<axis = -3>(x, x)", {"x": r8}, np.concatenate([r8, r8], -3))
    case("Split", "sizes with 0", "y0, y1 = Split<axis = -1>(x, s)", {"x": a([[1, 2]]), "s": a([0, 2], I)}, [np.zeros((1, 0), f32), a([[1, 2]])])
    case("Split", "negative size", "y0, y1 = Split<axis = 0>(x, s)", {"x": a([1, 2]), "s": a([-1, 3], I)}, REFUSED)
    case("Split", "sizes that do not sum up", "y0, y1 = Split<axis = 0>(x, s)", {"x": a([1, 2]), "s": a([1, 2], I)}, REFUSED)
    case("Split", "sum that wraps", "y0, y1, y2 = Split<axis = 0>(x, s)", {"x": a([1, 2]), "s": a([M, M, 4], I)}, REFUSED)
    case("Split", "rank 0", "y0, y1 = Split<axis = 0, num_outputs = 2>(x)", {"x": a(1)}, REFUSED)
    case("Split", "of nothing", "y0, y1 = Split<axis = 0, num_outputs = 2>(x)", {"x": np.zeros((0, 2), f32)}, [np.zeros((0, 2), f32)] * 2)
    case("Split", "uneven", "y0, y1 = Split<axis = 0, num_outputs = 2>(x)", {"x": a([1, 2, 3])}, [a([1, 2]), a([3])])


def gathering():
    x = np.arange(6, dtype=f32).reshape(2, 3)
    for what, ind, axis, out in (("negative", [-1, -2], 0, x[[-1, -2]]), ("beyond", [2], 0, REFUSED), ("below", [-3], 0, REFUSED),
                                 ("negative axis", [[0], [-1]], -1, x[:, [[0], [-1]]]), ("none", [], 1, x[:, []]), ("far beyond", [2**62], 0, REFUSED),
                                 ("the least", [-2**63], 1, REFUSED), ("rank 0", 1, 0, x[1]), ("an axis out of range", [0], 2, REFUSED)):
        case("Gather", what, f"y0 = Gather<axis = {axis}>(x, n)", {"x": x, "n": a(ind, i64)}, out if out is REFUSED else out.reshape(out.shape))
    case("Gather", "of rank 0", "y0 = Gather(x, n)", {"x": a(1), "n": a([0], i64)}, REFUSED)
    case("Gather", "from nothing", "y0 = Gather(x, n)", {"x": np.zeros((0, 2), f32), "n": a([0], i64)}, REFUSED)
    case("Gather", "nothing from nothing", "y0 = Gather(x, n)", {"x": np.zeros((0, 2), f32), "n": a([], i64)}, np.zeros((0, 2), f32))
    case("Gather", "beyond, of rows without columns", "y0 = Gather(x, n)", {"x": np.zeros((2, 0), f32), "n": a([5], i64)}, REFUSED)
    case("Gather", "int32, negative", "y0 = Gather(x, n)", {"x": x, "n": a([-2], i32)}, x[[-2]])
    r8 = np.arange(8, dtype=f32).reshape(RANK8)
    case("Gather", "rank 8", "y0 = Gather<axis = -2>(x, n)", {"x": r8, "n": a([-1], i64)}, r8[:, :, :, :, :, :, [-1]])
    case("GatherElements", "negative", "y0 = GatherElements<axis = -1>(x, n)", {"x": x, "n": a([[-1], [0]], i64)}, a([[2], [3]]))
    case("GatherElements", "beyond", "y0 = GatherElements<axis = 1>(x, n)", {"x": x, "n": a([[3]], i64)}, REFUSED)
    case("GatherElements", "below", "y0 = GatherElements<axis = 1>(x, n)", {"x": x, "n": a([[-4]], i64)}, REFUSED)
    case("GatherElements", "more rows than there are", "y0 = GatherElements<axis = 1>(x, n)", {"x": x, "n": a([[0], [0], [0]], i64)}, REFUSED)
    case("GatherElements", "none", "y0 = GatherElements<axis = 0>(x, n)", {"x": x, "n": np.zeros((0, 3), i64)}, np.zeros((0, 3), f32))
    case("GatherElements", "another rank", "y0 = GatherElements(x, n)", {"x": x, "n": a([0], i64)}, REFUSED)
    case("GatherND", "negative", "y0 = GatherND(x, n)", {"x": x, "n": a([[-1, -1]], i64)}, a([5]))
    case("GatherND", "beyond", "y0 = GatherND(x, n)", {"x": x, "n": a([[0, 3]], i64)}, REFUSED)
    case("GatherND", "below", "y0 = GatherND(x, n)", {"x": x, "n": a([[-3]], i64)}, REFUSED)
    case("GatherND", "longer than the rank", "y0 = GatherND(x, n)", {"x": x, "n": a([[0, 0, 0]], i64)}, REFUSED)
    case("GatherND", "none", "y0 = GatherND(x, n)", {"x": x, "n": np.zeros((0, 2), i64)}, a([]))
    case("GatherND", "batch dims beyond", "y0 = GatherND<batch_dims = 2>(x, n)", {"x": x, "n": a([[0]], i64)}, REFUSED)
    for op in ("ScatterElements",):
        u = a([[9]])
        case(op, "negative", f"y0 = {op}<axis = -1>(x, n, u)", {"x": x, "n": a([[-1]], i64), "u": u}, a([[0, 1, 9], [3, 4, 5]]))
        case(op, "beyond", f"y0 = {op}<axis = 1>(x, n, u)", {"x": x, "n": a([[3]], i64), "u": u}, REFUSED)
        case(op, "below", f"y0 = {op}<axis = 1>(x, n, u)", {"x": x, "n": a([[-4]], i64), "u": u}, REFUSED)
        case(op, "updates of another shape", f"y0 = {op}<axis = 1>(x, n, u)", {"x": x, "n": a([[0]], i64), "u": a([[1, 2]])}, REFUSED)
        case(op, "more rows than there are", f"y0 = {op}<axis = 1>(x, n, u)", {"x": x, "n": a([[0]] * 3, i64), "u": a([[9]] * 3)}, REFUSED)
        case(op, "none", f"y0 = {op}(x, n, u)", {"x": x, "n": np.zeros((0, 3), i64), "u": np.zeros((0, 3), f32)}, x)
        case(op, "rank 0", f"y0 = {op}(x, n, u)", {"x": a(1), "n": a(0, i64), "u": a(2)}, REFUSED)
        for red, out in (("add", 6), ("mul", 8), ("max", 4), ("min", 2)):
            v = {"add": [0, 2, 4], "mul": [1, 2, 4], "max": [0, 2, 4], "min": [5, 2, 4]}[red]
            case(op, f"twice, {red}", f'y0 = {op}<reduction = "{red}">(x, n, u)', {"x": a(v[:1]), "n": a([0, -1], i64), "u": a(v[1:])}, a([out]), 18)
    case("ScatterND", "negative", "y0 = ScatterND(x, n, u)", {"x": x, "n": a([[-1, -1]], i64), "u": a([9])}, a([[0, 1, 2], [3, 4, 9]]))
    case("ScatterND", "beyond", "y0 = ScatterND(x, n, u)", {"x": x, "n": a([[2]], i64), "u": a([[1, 1, 1]])}, REFUSED)
    case("ScatterND", "below", "y0 = ScatterND(x, n, u)", {"x": x, "n": a([[-3]], i64), "u": a([[1, 1, 1]])}, REFUSED)
    case("ScatterND", "updates of another shape", "y0 = ScatterND(x, n, u)", {"x": x, "n": a([[0]], i64), "u": a([[1, 1]])}, REFUSED)
    case("ScatterND", "none", "y0 = ScatterND(x, n, u)", {"x": x, "n": np.zeros((0, 1), i64), "u": np.zeros((0, 3), f32)}, x)
    case("ScatterND", "int overflow", 'y0 = ScatterND<reduction = "add">(x, n, u)', {"x": a([2**31 - 1], i32), "n": a([[0]], i64), "u": a([1], i32)}, a([-2**31], i32))
    case("OneHot", "negative and beyond", "y0 = OneHot(n, d, v)", {"n": a([-1, 3, -4, 0], i64), "d": a(3, i64), "v": a([0, 1])},
         a([[0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]))
    case("OneHot", "depth 0", "y0 = OneHot(n, d, v)", {"n": a([0], i64), "d": a(0, i64), "v": a([0, 1])}, REFUSED)
    case("OneHot", "negative depth", "y0 = OneHot(n, d, v)", {"n": a([0], i64), "d": a(-1, i64), "v": a([0, 1])}, REFUSED)
    case("OneHot", "huge depth", "y0 = OneHot(n, d, v)", {"n": a([0, 1, 2], i64), "d": a(2**62, i64), "v": a([0, 1])}, REFUSED)
    case("OneHot", "none", "y0 = OneHot<axis = 0>(n, d, v)", {"n": a([], i64), "d": a(2, i64), "v": a([0, 1])}, np.zeros((2, 0), f32))
    case("OneHot", "rank 0", "y0 = OneHot(n, d, v)", {"n": a(1, i64), "d": a(2, i64), "v": a([0, 1])}, a([0, 1]))
    case("OneHot", "an axis out of range", "y0 = OneHot<axis = 2>(n, d, v)", {"n": a([0], i64), "d": a(2, i64), "v": a([0, 1])}, REFUSED)
    case("OneHot", "NaN", "y0 = OneHot(n, d, v)", {"n": a([nan, inf, 1]), "d": a(2, i64), "v": a([0, 1])}, a([[0, 0], [0, 0], [0, 1]]))
    c = a([False, True], bool)
    case("Compress", "a short condition", "y0 = Compress<axis = 1>(x, c)", {"x": x, "c": c}, x[:, [1]])
    case("Compress", "a long condition", "y0 = Compress<axis = 0>(x, c)", {"x": x, "c": a([0, 1, 1], bool)}, REFUSED)
    case("Compress", "no axis, none", "y0 = Compress(x, c)", {"x": x, "c": a([], bool)}, a([]))
    case("Compress", "an axis out of range", "y0 = Compress<axis = 2>(x, c)", {"x": x, "c": c}, REFUSED)
    for what, v in (("rank 0", a(1)), ("rank 0, zero", a(0)), ("empty", np.zeros((2, 0), f32)), ("NaN and -0", a([nan, -0.0, 1])), ("none", a([0, 0]))):
        nz = np.array(np.nonzero(np.atleast_1d(v)), i64)
        case("NonZero", what, "y0 = NonZero(x)", {"x": v}, nz if v.ndim else np.zeros((0, nz.shape[1]), i64))
    r = np.arange(1, 9, dtype=f32).reshape(RANK8)
    case("NonZero", "rank 8", "y0 = NonZero(x)", {"x": r}, np.array(np.nonzero(r), i64))
    for what, v, k, ax, big, out in (
            ("k 0", x, 0, -1, 1, [np.zeros((2, 0), f32), np.zeros((2, 0), i64)]), ("k beyond", x, 4, -1, 1, REFUSED), ("negative k", x, -1, -1, 1, REFUSED),
            ("ties: the first", a([2, 2, 2]), 2, 0, 1, [a([2, 2]), a([0, 1], i64)]), ("infinities", a([inf, -inf, 0]), 3, 0, 0, [a([-inf, 0, inf]), a([1, 2, 0], i64)]),
            ("empty rows", np.zeros((0, 3), f32), 2, 1, 1, [np.zeros((0, 2), f32), np.zeros((0, 2), i64)]), ("an axis out of range", x, 1, 2, 1, REFUSED),
            ("rank 0", a(1), 1, 0, 1, REFUSED), ("NaN is the largest", a([1, nan, 3]), 2, 0, 1, [a([nan, 3]), a([1, 2], i64)]),
            ("smallest: NaN is the largest", a([nan, 1, 3]), 2, 0, 0, [a([1, 3]), a([1, 2], i64)])):
        case("TopK", what, f"y0, y1 = TopK<axis = {ax}, largest = {big}>(x, k)", {"x": v, "k": a([k], i64)}, out)
    for what, v in (("empty", a([])), ("rank 0", a(3)), ("infinities", a([inf, 1, inf, -inf])), ("zeros of both signs", a([0, -0.0, 1]))):
        u, first, inverse, counts = np.unique(v, return_index=True, return_inverse=True, return_counts=True)
        case("Unique", what, "y0, y1, y2, y3 = Unique(x)", {"x": v}, [u, a(first, i64), a(np.ravel(inverse), i64), a(counts, i64)])
    case("Unique", "an axis out of range", "y0 = Unique<axis = 2>(x)", {"x": x}, REFUSED)
    case("Unique", "negative axis", "y0 = Unique<axis = -1>(x)", {"x": a([[1, 1], [2, 2]])}, a([[1], [2]]))
    case("ReverseSequence", "lengths 0 and whole", "y0 = ReverseSequence<time_axis = 1, batch_axis = 0>(x, n)", {"x": x, "n": a([0, 3], i64)}, a([[0, 1, 2], [5, 4, 3]]))
    case("ReverseSequence", "length beyond", "y0 = ReverseSequence<time_axis = 1, batch_axis = 0>(x, n)", {"x": x, "n": a([0, 4], i64)}, REFUSED)
    case("ReverseSequence", "negative length", "y0 = ReverseSequence<time_axis = 1, batch_axis = 0>(x, n)", {"x": x, "n": a([-1, 1], i64)}, REFUSED)


def products():
    for what, p, q in (("vectors", (3,), (3,)), ("a vector left", (3,), (3, 2)), ("a vector right", (2, 3), (3,)), ("broadcast both ways", (2, 1, 2, 3), (4, 3, 2)),
                       ("nothing to sum", (2, 0), (0, 3)), ("no rows", (0, 3), (3, 2)), ("no columns", (2, 3), (3, 0)), ("an empty batch", (0, 2, 3), (3, 2)),
                       ("rank 0", (), (2,)), ("dims that do not fit", (2, 3), (2, 3)), ("rank 8", (1, 2, 1, 2, 1, 1, 2, 3), (2, 3, 1)),
                       ("batches that do not fit", (2, 2, 3), (3, 3, 2))):
        for dtype in (f32, i32, f64):
            x = (np.arange(np.prod(p)) % 5 - 1).astype(dtype).reshape(p)
            y = (np.arange(np.prod(q)) % 3 + 1).astype(dtype).reshape(q)
            try:
                out = np.asarray(np.matmul(x, y), dtype)
            except ValueError:
                out = REFUSED
            case("MatMul", f"{what}, {name_of(x)}", "y0 = MatMul(x, z)", {"x": x, "z": y}, out)
    x = a([[nan, 1], [inf, 1], [1, 2]])
    case("MatMul", "NaN and infinity times 0", "y0 = MatMul(x, z)", {"x": x, "z": a([[0, 1], [1, 1]])}, x @ a([[0, 1], [1, 1]]))
    case("MatMul", "int32 overflow", "y0 = MatMul(x, z)", {"x": a([[2**31 - 1, 1]], i32), "z": a([[1], [1]], i32)}, a([[-2**31]], i32))
    for what, p, q, c in (("C of rank 0", (2, 3), (3, 2), ()), ("C a column", (2, 3), (3, 2), (2, 1)), ("nothing to sum", (2, 0), (0, 2), (2,)), ("no rows", (0, 3), (3, 2), (2,)),
                          ("C that does not fit", (2, 3), (3, 2), (3,)), ("C larger than the product", (1, 3), (3, 2), (2, 2)), ("rank 3", (1, 2, 3), (3, 2), ())):
        x, y, z = (np.arange(np.prod(s), dtype=f32).reshape(s) + 1 for s in (p, q, c))
        good = what not in ("C that does not fit", "C larger than the product", "rank 3")
        case("Gemm", what, "y0 = Gemm(x, z, c)", {"x": x, "z": y, "c": z}, np.asarray(x @ y + z, f32) if good else REFUSED)
    case("Gemm", "beta 0 and NaN in C: 0 * NaN", "y0 = Gemm<beta = 0.0>(x, z, c)", {"x": a([[1]]), "z": a([[2]]), "c": a([1])}, a([[2]]))
    z = lambda *s: np.zeros(s, f32)
    o = lambda *s: np.ones(s, f32)
    for what, attr, x, w, out in (
            ("an empty batch", "", z(0, 1, 3, 3), o(2, 1, 2, 2), z(0, 2, 2, 2)), ("the kernel larger than the picture", "", o(1, 1, 2, 2), o(1, 1, 3, 3), REFUSED),
            ("pads make it fit", "<pads = [1, 1, 1, 1]>", o(1, 1, 1, 1), o(1, 1, 3, 3), o(1, 1, 1, 1)), ("stride 0", "<strides = [0, 1]>", o(1, 1, 3, 3), o(1, 1, 2, 2), REFUSED),
            ("dilation 0", "<dilations = [0, 1]>", o(1, 1, 3, 3), o(1, 1, 2, 2), REFUSED), ("channels that do not fit", "", o(1, 2, 3, 3), o(1, 1, 2, 2), REFUSED),
            ("group 0", "<group = 0>", o(1, 2, 3, 3), o(1, 1, 2, 2), REFUSED), ("groups that do not divide", "<group = 2>", o(1, 2, 3, 3), o(3, 1, 2, 2), REFUSED),
            ("negative pads", "<pads = [-1, 0, 0, 0]>", o(1, 1, 3, 3), o(1, 1, 2, 2), None), ("no output channels", "", o(1, 1, 3, 3), z(0, 1, 2, 2), z(1, 0, 2, 2)),
            ("rank 1", "", o(3), o(1), REFUSED), ("infinities", "", o(1, 1, 1, 2) * a(inf), a([1, 1]).reshape(1, 1, 1, 2), a([[[[inf]]]])),
            ("infinity times 0", "", o(1, 1, 1, 1) * a(inf), z(1, 1, 1, 1), a([[[[nan]]]])), ("a stride beyond", "<strides = [9, 9]>", o(1, 1, 3, 3), o(1, 1, 2, 2), o(1, 1, 1, 1) * 4),
            ("kernel_shape that differs", "<kernel_shape = [3, 3]>", o(1, 1, 3, 3), o(1, 1, 2, 2), REFUSED), ("a pad of 2^62", f"<pads = [{2**62}, 0, {2**62}, 0]>", o(1, 1, 3, 3), o(1, 1, 2, 2), REFUSED)):
        if out is not None:
            case("Conv", what, f"y0 = Conv{attr}(x, w)", {"x": x, "w": w}, out, 22)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for what, attr, x, out in (
                ("an empty batch", "kernel_shape = [2, 2]", z(0, 1, 3, 3), z(0, 1, 2, 2)), ("the window larger than the picture", "kernel_shape = [3, 3]", o(1, 1, 2, 2), REFUSED),
                ("stride 0", "kernel_shape = [2, 2], strides = [0, 1]", o(1, 1, 3, 3), REFUSED), ("kernel 0", "kernel_shape = [0, 2]", o(1, 1, 3, 3), REFUSED),
                ("rank 2", "kernel_shape = [1]", o(1, 2), REFUSED), ("kernel of another rank", "kernel_shape = [2]", o(1, 1, 3, 3), REFUSED),
                ("NaN", "kernel_shape = [1, 2]", a([[[[1, nan, 2, 3]]]]), {"MaxPool": None}.get(op, a([[[[nan, nan, 2.5 if op[0] == "A" else 13**0.5]]]])))):
            if out is not None:
                case(op, what, f"y0 = {op}<{attr}>(x)", {"x": x}, out, 22)
    case("MaxPool", "-inf alone", "y0 = MaxPool<kernel_shape = [2], pads = [1, 0]>(x)", {"x": a([[[-inf, -inf]]])}, a([[[-inf, -inf]]]), 22)
    for op, out in (("GlobalAveragePool", z(0, 2, 1, 1)), ("GlobalMaxPool", z(0, 2, 1, 1))):
        case(op, "an empty batch", f"y0 = {op}(x)", {"x": z(0, 2, 3, 3)}, out, 22)
    case("Einsum", "dims that do not fit", 'y0 = Einsum<equation = "ij,jk->ik">(x, z)', {"x": o(2, 3), "z": o(2, 3)}, REFUSED)
    case("Einsum", "nothing to sum", 'y0 = Einsum<equation = "ij,jk->ik">(x, z)', {"x": z(2, 0), "z": z(0, 3)}, z(2, 3))
    case("Einsum", "rank 0", 'y0 = Einsum<equation = ",->">(x, z)', {"x": a(2), "z": a(3)}, a(6))
    case("Det", "an empty batch", "y0 = Det(x)", {"x": z(0, 2, 2)}, z(0), 22)
    case("Det", "of 0 by 0: 1", "y0 = Det(x)", {"x": z(0, 0)}, a(1), 22)
    case("Det", "singular", "y0 = Det(x)", {"x": a([[1, 2], [2, 4]])}, a(0), 22)
    case("Det", "not square", "y0 = Det(x)", {"x": o(2, 3)}, REFUSED, 22)


def normalized():
    def soft(x, axis):
        m = np.max(x, axis=axis, keepdims=True, initial=-inf)
        e = np.exp(x - m)
        return e / e.sum(axis=axis, keepdims=True)
    for what, x, axis in (("rank 1", a([1, 2]), -1), ("rank 8", np.arange(8, dtype=f32).reshape(RANK8), -2), ("an empty axis", np.zeros((2, 0), f32), 1), ("empty", np.zeros((0, 2), f32), 1),
                          ("huge", a([1e38, -1e38, 1e38]), 0), ("-inf", a([-inf, 0, 1]), 0), ("all -inf", a([-inf, -inf]), 0), ("+inf", a([inf, 0]), 0), ("NaN", a([nan, 0]), 0)):
        s = soft(x, axis).astype(f32)
        case("Softmax", what, f"y0 = Softmax<axis = {axis}>(x)", {"x": x}, s)
        case("LogSoftmax", what, f"y0 = LogSoftmax<axis = {axis}>(x)", {"x": x},
             (x - np.max(x, axis=axis, keepdims=True, initial=-inf) - np.log(np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-inf)).sum(axis=axis, keepdims=True))).astype(f32))
        if what != "all -inf" and "inf" not in what and what != "NaN":
            h = np.zeros_like(x)
            if x.size:
                np.put_along_axis(h, np.expand_dims(np.argmax(x, axis=axis), axis), 1, axis)
            case("Hardmax", what, f"y0 = Hardmax<axis = {axis}>(x)", {"x": x}, h)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        case(op, "an axis out of range", f"y0 = {op}<axis = 2>(x)", {"x": a([[1, 2]])}, REFUSED)
    case("LayerNormalization", "an empty batch", "y0 = LayerNormalization(x, s)", {"x": np.zeros((0, 2), f32), "s": a([1, 1])}, np.zeros((0, 2), f32))
    case("LayerNormalization", "a constant row", "y0 = LayerNormalization(x, s, b)", {"x": a([[3, 3]]), "s": a([1, 1]), "b": a([5, 6])}, a([[5, 6]]))
    case("LayerNormalization", "NaN", "y0 = LayerNormalization(x, s)", {"x": a([[nan, 3], [1, 1]]), "s": a([1, 1])}, a([[nan, nan], [0, 0]]))
    case("LayerNormalization", "an axis out of range", "y0 = LayerNormalization<axis = 2>(x, s)", {"x": a([[1, 3]]), "s": a([1, 1])}, REFUSED)
    case("LayerNormalization", "a scale that does not fit", "y0 = LayerNormalization(x, s)", {"x": a([[1, 3]]), "s": a([1, 1, 1])}, REFUSED)
    case("BatchNormalization", "an empty batch", "y0 = BatchNormalization(x, s, s, s, s)", {"x": np.zeros((0, 2), f32), "s": a([1, 1])}, np.zeros((0, 2), f32))
    case("BatchNormalization", "a scale that does not fit", "y0 = BatchNormalization(x, s, s, s, s)", {"x": a([[1, 2, 3]]), "s": a([1, 1])}, REFUSED)
    case("InstanceNormalization", "an empty batch", "y0 = InstanceNormalization(x, s, s)", {"x": np.zeros((0, 2, 3), f32), "s": a([1, 1])}, np.zeros((0, 2, 3), f32))
    case("InstanceNormalization", "a scale that does not fit", "y0 = InstanceNormalization(x, s, s)", {"x": np.ones((1, 3, 3), f32), "s": a([1, 1])}, REFUSED)
    case("GroupNormalization", "groups that do not divide", "y0 = GroupNormalization<num_groups = 2>(x, s, s)", {"x": np.ones((1, 3, 3), f32), "s": a([1, 1, 1])}, REFUSED)
    case("GroupNormalization", "no groups", "y0 = GroupNormalization<num_groups = 0>(x, s, s)", {"x": np.ones((1, 3, 3), f32), "s": a([1, 1, 1])}, REFUSED)
    case("LpNormalization", "all zero: 0", "y0 = LpNormalization(x)", {"x": a([[0, 0], [3, 4]])}, a([[0, 0], [0.6, 0.8]]), 22)
    case("MeanVarianceNormalization", "empty", "y0 = MeanVarianceNormalization(x)", {"x": np.zeros((0, 2, 1, 1), f32)}, np.zeros((0, 2, 1, 1), f32))
    case("LRN", "size 0", "y0 = LRN<size = 0>(x)", {"x": np.ones((1, 2, 1, 1), f32)}, REFUSED)
    case("LRN", "empty", "y0 = LRN<size = 3>(x)", {"x": np.zeros((0, 2, 1, 1), f32)}, np.zeros((0, 2, 1, 1), f32))


def casts():
    kinds = {"int8": i8, "uint8": u8, "int16": np.int16, "uint16": np.uint16, "int32": i32, "uint32": np.uint32, "int64": i64, "uint64": np.uint64}
    for name, to in kinds.items():
        info, code = np.iinfo(to), getattr(TensorProto, name.upper())
        for src in kinds.values():
            s = np.iinfo(src)
            x = a([s.min, s.max, 0, 1, 100] + ([-1] if s.min else []), src)
            case("Cast", f"{name_of(x)} to {name} wraps", f"y0 = Cast<to = {code}>(x)", {"x": x}, x.astype(to))
        for src in (f32, f64):
            # The standard leaves it undefined: int32, int64 and uint64 saturate and NaN is the least int32 or int64; other
            # types keep the low bits of that int64.
            x = a([nan, inf, -inf, 1e30, -1e30, 2.9, -0.9, 100.5], src)
            wide = np.iinfo(i32 if to is i32 else i64)
            y = a([wide.min, wide.max, wide.min, wide.max, wide.min, 2, 0, 100], i64).astype(to)
            if to is np.uint64:
                y[[1, 3]] = info.max
            case("Cast", f"{name_of(x)} to {name} out of range", f"y0 = Cast<to = {code}>(x)", {"x": x}, y)
    x = a([nan, 0, -0.0, inf, 1e-30])
    case("Cast", "NaN to bool", f"y0 = Cast<to = {TensorProto.BOOL}>(x)", {"x": x}, x.astype(bool))
    case("Cast", "double to float overflows", f"y0 = Cast<to = {TensorProto.FLOAT}>(x)", {"x": a([1e300, -1e300, nan, 1e-300], f64)}, a([inf, -inf, nan, 0]))
    case("Cast", "float to float16 overflows", f"y0 = Cast<to = {TensorProto.FLOAT16}>(x)", {"x": a([65519, 65520, -1e6, 1e-9, nan])}, a([65504, inf, -inf, 0, nan], f16))
    for what, v in (("empty", np.zeros((0, 2), f32)), ("rank 0", a(2)), ("rank 8", np.ones(RANK8, f32))):
        case("Cast", what, f"y0 = Cast<to = {TensorProto.INT64}>(x)", {"x": v}, v.astype(i64))
    case("Cast", "text to numbers", f"y0 = Cast<to = {TensorProto.FLOAT}>(x)", {"x": np.array(["1e3", "-INF", "NaN", "+INF", "0.5"])}, a([1000, -inf, nan, inf, 0.5]))
    case("Cast", "text that is none", f"y0 = Cast<to = {TensorProto.FLOAT}>(x)", {"x": np.array(["abc"])}, REFUSED)
    case("Cast", "empty text", f"y0 = Cast<to = {TensorProto.INT32}>(x)", {"x": np.array([""])}, REFUSED)
    case("Cast", "an unknown type", "y0 = Cast<to = 99>(x)", {"x": a([1])}, REFUSED)
    case("Cast", "type 0", "y0 = Cast<to = 0>(x)", {"x": a([1])}, REFUSED)
    q = "y0 = QuantizeLinear(x, s, z)"
    x = a([inf, -inf, 1e30, 0.5, 1.5, 2.5, -0.5])
    case("QuantizeLinear", "saturates, half to even, uint8", q, {"x": x, "s": a(1), "z": a(128, u8)}, a([255, 0, 255, 128, 130, 130, 128], u8))
    case("QuantizeLinear", "saturates, half to even, int8", q, {"x": x, "s": a(1), "z": a(0, i8)}, a([127, -128, 127, 0, 2, 2, 0], i8))
    case("QuantizeLinear", "scale infinite", q, {"x": a([1, -1]), "s": a(inf), "z": a(3, u8)}, a([3, 3], u8))
    case("QuantizeLinear", "empty", q, {"x": np.zeros((0, 2), f32), "s": a(1), "z": a(0, u8)}, np.zeros((0, 2), u8))
    case("QuantizeLinear", "an axis out of range", "y0 = QuantizeLinear<axis = 2>(x, s, z)", {"x": np.ones((2, 2), f32), "s": a([1, 1]), "z": a([0, 0], u8)}, REFUSED)
    case("QuantizeLinear", "scales that do not fit", q, {"x": np.ones((2, 3), f32), "s": a([1, 1]), "z": a([0, 0], u8)}, REFUSED)
    case("DequantizeLinear", "limits", "y0 = DequantizeLinear(x, s, z)", {"x": a([-128, 127], i8), "s": a(0.5), "z": a(127, i8)}, a([-127.5, 0]))
    case("DequantizeLinear", "int32 limits", "y0 = DequantizeLinear(x, s)", {"x": a([-2**31, 2**31 - 1], i32), "s": a(1)}, a([-2.0**31, 2.0**31]))
    case("DequantizeLinear", "scales that do not fit", "y0 = DequantizeLinear(x, s, z)", {"x": np.ones((2, 3), u8), "s": a([1, 1]), "z": a([0, 0], u8)}, REFUSED)
    case("Cast", "strings of numbers", f"y0 = Cast<to = {TensorProto.STRING}>(x)", {"x": a([-2**63, 2**63 - 1], i64)}, np.array([str(-2**63), str(2**63 - 1)]))


def others():
    s, I = "x, z", i64
    x, z = a([1, 2]), a([[3]])
    def seq(what, nodes, out, op="Sequence", extra=None):
        case(op, what, nodes, {"x": x, "z": z, **(extra or {})}, out)
    for op, n, out in (("SequenceAt", -1, z), ("SequenceAt", -2, x), ("SequenceAt", 2, REFUSED), ("SequenceAt", -3, REFUSED)):
        seq(f"at {n}", "q = SequenceConstruct(x, z)\n y0 = SequenceAt(q, n)".replace("\n", ""), out, op, {"n": a(n, I)})
    for n, out in ((2, 3), (-2, 3), (3, REFUSED), (-3, REFUSED)):
        seq(f"at {n}", "q = SequenceConstruct(x, z) r = SequenceInsert(q, x, n) y0 = SequenceLength(r)", out if out is REFUSED else a(out, I), "SequenceInsert", {"n": a(n, I)})
    for n, out in ((1, 1), (-2, 1), (2, REFUSED), (-3, REFUSED)):
        seq(f"at {n}", "q = SequenceConstruct(x, z) r = SequenceErase(q, n) y0 = SequenceLength(r)", out if out is REFUSED else a(out, I), "SequenceErase", {"n": a(n, I)})
    case("SequenceAt", "of none", "q = SequenceEmpty() y0 = SequenceAt(q, n)", {"n": a(0, I)}, REFUSED)
    case("SequenceErase", "of none", "q = SequenceEmpty() r = SequenceErase(q) y0 = SequenceLength(r)", {}, REFUSED)
    case("SequenceLength", "none", "q = SequenceEmpty() y0 = SequenceLength(q)", {}, a(0, I))
    case("ConcatFromSequence", "of none", "q = SequenceEmpty() y0 = ConcatFromSequence<axis = 0>(q)", {}, REFUSED)
    seq("of other dims", "q = SequenceConstruct(x, z) y0 = ConcatFromSequence<axis = 0>(q)", REFUSED, "ConcatFromSequence")
    case("ConcatFromSequence", "new axis, negative", "q = SequenceConstruct(x, x) y0 = ConcatFromSequence<axis = -1, new_axis = 1>(q)", {"x": x}, np.stack([x, x], -1))
    case("SplitToSequence", "uneven", "q = SplitToSequence(x, n) y0 = SequenceLength(q)", {"x": a([1, 2, 3]), "n": a(2, I)}, a(2, I))
    case("SplitToSequence", "pieces of 0", "q = SplitToSequence(x, n) y0 = SequenceLength(q)", {"x": a([1, 2, 3]), "n": a(0, I)}, REFUSED)
    case("SplitToSequence", "sizes that do not sum up", "q = SplitToSequence(x, n) y0 = SequenceLength(q)", {"x": a([1, 2, 3]), "n": a([1, 1], I)}, REFUSED)
    case("SplitToSequence", "of nothing", "q = SplitToSequence(x) y0 = SequenceLength(q)", {"x": np.zeros((0, 2), f32)}, a(0, I))
    case("OptionalHasElement", "none", "y0 = OptionalHasElement()", {}, np.array(False))
    case("OptionalGetElement", "a tensor", "q = Optional(x) y0 = OptionalGetElement(q)", {"x": x}, x)
    body = "body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Add(v, v) }"
    loop = f"y0 = Loop<{body}>(m, c, x)"
    for what, m, c, out in (("0 rounds", 0, True, x), ("a false condition", 5, False, x), ("3 rounds", 3, True, x * 8), ("negative rounds", -1, True, x)):
        case("Loop", what, loop, {"m": a(m, I), "c": np.array(c), "x": x}, out)
    scan_out = "body = b (int64 i, bool c) => (bool d, int64 w) { d = Identity(c) w = Identity(i) }"
    case("Loop", "0 rounds with a scan output", f"y0 = Loop<{scan_out}>(m, c)", {"m": a(0, I), "c": np.array(True)}, np.zeros((0,), I))
    case("If", "a condition of no elements", "y0 = If<then_branch = t () => (float[2] o) { o = Neg(x) }, else_branch = e () => (float[2] p) { p = Abs(x) }>(c)", {"x": x, "c": np.zeros((0,), bool)}, REFUSED)
    case("If", "a condition of two", "y0 = If<then_branch = t () => (float[2] o) { o = Neg(x) }, else_branch = e () => (float[2] p) { p = Abs(x) }>(c)", {"x": x, "c": a([1, 1], bool)}, REFUSED)
    case("Scan", "0 rounds", "y0, y1 = Scan<num_scan_inputs = 1, body = b (float v, float s) => (float w, float t) { w = Add(v, s) t = Identity(s) }>(i, x)",
         {"i": a(5), "x": np.zeros((0,), f32)}, [a(5), np.zeros((0,), f32)])
    case("StringConcat", "broadcast both ways", "y0 = StringConcat(x, z)", {"x": np.array([["a"], [""]]), "z": np.array(["x", ""])}, np.array([["ax", "a"], ["x", ""]]))
    case("StringConcat", "empty", "y0 = StringConcat(x, z)", {"x": np.zeros((0, 1), "U1"), "z": np.array(["x", ""])}, np.zeros((0, 2), "U1"))
    case("StringConcat", "dims that do not fit", "y0 = StringConcat(x, z)", {"x": np.array(["a"] * 3), "z": np.array(["x", ""])}, REFUSED)
    case("StringSplit", "none", "y0, y1 = StringSplit(x)", {"x": np.zeros((0,), "U1")}, [np.zeros((0, 0), "U1"), np.zeros((0,), I)])
    case("StringSplit", "rank 0", "y0, y1 = StringSplit(x)", {"x": np.array("a b")}, [np.array(["a", "b"]), a(2, I)])
    case("RegexFullMatch", "empty text", 'y0 = RegexFullMatch<pattern = "a*">(x)', {"x": np.array(["", "aa", "b"])}, a([1, 1, 0], bool))
    case("RegexFullMatch", "a broken pattern", 'y0 = RegexFullMatch<pattern = "(">(x)', {"x": np.array([""])}, REFUSED)
    img = np.ones((1, 1, 2, 2), f32)
    for what, feeds, node, out in (
            ("to size 0", {"t": a([1, 1, 0, 2], I)}, "y0 = Resize(x, , , t)", np.zeros((1, 1, 0, 2), f32)), ("negative size", {"t": a([1, 1, -2, 2], I)}, "y0 = Resize(x, , , t)", REFUSED),
            ("scale 0", {"t": a([1, 1, 0, 1])}, "y0 = Resize(x, , t)", REFUSED), ("NaN scale", {"t": a([1, 1, nan, 1])}, "y0 = Resize(x, , t)", REFUSED),
            ("infinite scale", {"t": a([1, 1, inf, 1])}, "y0 = Resize(x, , t)", REFUSED), ("negative scale", {"t": a([1, 1, -1, 1])}, "y0 = Resize(x, , t)", REFUSED),
            ("too few scales", {"t": a([1, 1])}, "y0 = Resize(x, , t)", REFUSED), ("a huge scale", {"t": a([1, 1, 1e30, 1])}, "y0 = Resize(x, , t)", REFUSED),
            ("an axis out of range", {"t": a([2])}, "y0 = Resize<axes = [4]>(x, , t)", REFUSED), ("negative axis", {"t": a([2])}, "y0 = Resize<axes = [-1]>(x, , t)", np.ones((1, 1, 2, 4), f32))):
        case("Resize", what, node.replace("(x, , , t)", '(x, "", "", t)').replace("(x, , t)", '(x, "", t)'), {"x": img, **feeds}, out)
    case("Resize", "from nothing to nothing", 'y0 = Resize(x, "", t)', {"x": np.zeros((0, 1, 2, 2), f32), "t": a([1, 1, 2, 2])}, np.zeros((0, 1, 4, 4), f32))
    case("RandomUniform", "an empty shape", "y0 = RandomUniform<shape = [0, 3]>()", {}, np.zeros((0, 3), f32))
    case("RandomNormal", "a negative shape", "y0 = RandomNormal<shape = [-1]>()", {}, REFUSED)
    case("RandomUniformLike", "empty", "y0 = RandomUniformLike(x)", {"x": np.zeros((2, 0), f32)}, np.zeros((2, 0), f32))
    case("RandomUniform", "low equals high", "y0 = RandomUniform<low = 2.0, high = 2.0, shape = [2]>()", {}, a([2, 2]))
    case("Multinomial", "no samples", "y0 = Multinomial<sample_size = 0>(x)", {"x": a([[1, 2]])}, np.zeros((1, 0), i32))
    case("Bernoulli", "0 and 1", "y0 = Bernoulli(x)", {"x": a([0, 1, 0, 1])}, a([0, 1, 0, 1]))
    case("Dropout", "empty", "y0, y1 = Dropout(x)", {"x": np.zeros((0,), f32)}, [np.zeros((0,), f32), np.zeros((0,), bool)])
    case("NonMaxSuppression", "no boxes", "y0 = NonMaxSuppression(x, z, k)", {"x": np.zeros((1, 0, 4), f32), "z": np.zeros((1, 1, 0), f32), "k": a([3], I)}, np.zeros((0, 3), I))
    case("NonMaxSuppression", "boxes and scores that differ", "y0 = NonMaxSuppression(x, z, k)", {"x": np.zeros((1, 2, 4), f32), "z": np.zeros((1, 1, 3), f32), "k": a([3], I)}, REFUSED)
    case("NonMaxSuppression", "k 0", "y0 = NonMaxSuppression(x, z, k)", {"x": np.zeros((1, 2, 4), f32), "z": np.zeros((1, 1, 2), f32), "k": a([0], I)}, np.zeros((0, 3), I))


def models():
    """Convolutions, recurrences, attention and signals."""
    I = i64
    z = lambda *s: np.zeros(s, f32)
    o = lambda *s: np.ones(s, f32)

    def table(op, opset, rows):
        for what, node, feeds, out in rows:
            case(op, what, node, feeds, out, opset)

    table("CumProd", 26, [
        ("int32 overflow", "y0 = CumProd(x, n)", {"x": a([2**30, 4, 3], i32), "n": a(0, I)}, np.cumprod(a([2**30, 4, 3], i32), dtype=i32)),
        ("empty", "y0 = CumProd(x, n)", {"x": z(0, 2), "n": a(-1, I)}, z(0, 2)),
        ("an axis out of range", "y0 = CumProd(x, n)", {"x": o(2), "n": a(1, I)}, REFUSED)])
    table("CenterCropPad", 18, [
        ("to nothing", "y0 = CenterCropPad(x, s)", {"x": o(2, 3), "s": a([0, 3], I)}, z(0, 3)),
        ("from nothing", "y0 = CenterCropPad(x, s)", {"x": z(0), "s": a([2], I)}, z(2)),
        ("negative", "y0 = CenterCropPad(x, s)", {"x": o(2), "s": a([-1], I)}, REFUSED),
        ("negative axes", "y0 = CenterCropPad<axes = [-1]>(x, s)", {"x": a([[1, 2, 3]]), "s": a([1], I)}, a([[2]])),
        ("an axis twice", "y0 = CenterCropPad<axes = [1, -1]>(x, s)", {"x": o(2, 3), "s": a([1, 1], I)}, REFUSED)])
    table("MatMulInteger", 10, [
        ("limits", "y0 = MatMulInteger(x, w, p, q)", {"x": a([[255, 0]], u8), "w": a([[-128], [127]], i8), "p": a(255, u8), "q": a(-128, i8)}, a([[-255 * 255]], i32)),
        ("nothing to sum", "y0 = MatMulInteger(x, w)", {"x": np.zeros((2, 0), u8), "w": np.zeros((0, 3), i8)}, np.zeros((2, 3), i32)),
        ("no rows", "y0 = MatMulInteger(x, w)", {"x": np.zeros((0, 2), u8), "w": np.zeros((2, 3), i8)}, np.zeros((0, 3), i32)),
        ("dims that do not fit", "y0 = MatMulInteger(x, w)", {"x": np.zeros((2, 2), u8), "w": np.zeros((3, 3), i8)}, REFUSED)])
    table("QLinearMatMul", 10, [
        ("saturates", "y0 = QLinearMatMul(x, s, p, x, s, p, s, p)", {"x": a([[255]], u8), "s": a(1), "p": a(0, u8)}, a([[255]], u8)),
        ("an empty batch", "y0 = QLinearMatMul(x, s, p, w, s, p, s, p)", {"x": np.zeros((0, 1), u8), "w": a([[1]], u8), "s": a(1), "p": a(0, u8)}, np.zeros((0, 1), u8)),
        ("dims that do not fit", "y0 = QLinearMatMul(x, s, p, x, s, p, s, p)", {"x": np.zeros((1, 2), u8), "s": a(1), "p": a(0, u8)}, REFUSED)])
    table("ConvInteger", 10, [
        ("an empty batch", "y0 = ConvInteger(x, w)", {"x": np.zeros((0, 1, 3, 3), u8), "w": np.ones((1, 1, 2, 2), u8)}, np.zeros((0, 1, 2, 2), i32)),
        ("channels that do not fit", "y0 = ConvInteger(x, w)", {"x": np.zeros((1, 2, 3, 3), u8), "w": np.ones((1, 1, 2, 2), u8)}, REFUSED)])
    table("QLinearConv", 10, [
        ("an empty batch", "y0 = QLinearConv(x, s, p, w, s, p, s, p)", {"x": np.zeros((0, 1, 3, 3), u8), "w": np.ones((1, 1, 2, 2), u8), "s": a(1), "p": a(0, u8)}, np.zeros((0, 1, 2, 2), u8)),
        ("saturates", "y0 = QLinearConv(x, s, p, w, s, p, s, p)", {"x": a([[[[200, 100]]]], u8), "w": a([[[[1, 1]]]], u8), "s": a(1), "p": a(0, u8)}, a([[[[255]]]], u8))])
    table("ConvTranspose", 22, [
        ("an empty batch", "y0 = ConvTranspose(x, w)", {"x": z(0, 1, 2, 2), "w": o(1, 1, 2, 2)}, z(0, 1, 3, 3)),
        ("stride 0", "y0 = ConvTranspose<strides = [0, 1]>(x, w)", {"x": o(1, 1, 2, 2), "w": o(1, 1, 2, 2)}, REFUSED),
        ("pads that leave nothing", "y0 = ConvTranspose<pads = [2, 2, 2, 2]>(x, w)", {"x": o(1, 1, 1, 1), "w": o(1, 1, 2, 2)}, REFUSED),
        ("a stride of 2^62", f"y0 = ConvTranspose<strides = [{2**62}, 1]>(x, w)", {"x": o(1, 1, 3, 3), "w": o(1, 1, 2, 2)}, REFUSED),
        ("channels that do not fit", "y0 = ConvTranspose(x, w)", {"x": o(1, 2, 2, 2), "w": o(1, 1, 2, 2)}, REFUSED)])
    table("DeformConv", 22, [
        ("offsets far away and NaN read zeros", "y0 = DeformConv(x, w, f)", {"x": o(1, 1, 1, 2), "w": o(1, 1, 1, 1), "f": a([1e30, -inf, 0, 0]).reshape(1, 2, 1, 2)}, z(1, 1, 1, 2)),
        ("offsets that do not fit", "y0 = DeformConv(x, w, f)", {"x": o(1, 1, 1, 2), "w": o(1, 1, 1, 1), "f": z(1, 1, 1, 2)}, REFUSED)])
    table("Col2Im", 18, [
        ("an empty batch", "y0 = Col2Im(x, s, b)", {"x": z(0, 4, 1), "s": a([2, 2], I), "b": a([2, 2], I)}, z(0, 1, 2, 2)),
        ("columns that do not fit", "y0 = Col2Im(x, s, b)", {"x": z(1, 4, 2), "s": a([2, 2], I), "b": a([2, 2], I)}, REFUSED),
        ("a block of 0", "y0 = Col2Im(x, s, b)", {"x": z(1, 4, 1), "s": a([2, 2], I), "b": a([0, 2], I)}, REFUSED)])
    table("MaxUnpool", 22, [
        ("an index out of range", "y0 = MaxUnpool<kernel_shape = [2]>(x, n)", {"x": o(1, 1, 1), "n": a([[[2]]], I)}, REFUSED),
        ("a negative index", "y0 = MaxUnpool<kernel_shape = [2]>(x, n)", {"x": o(1, 1, 1), "n": a([[[-1]]], I)}, REFUSED)])
    table("GridSample", 22, [
        ("NaN-free zeros far outside", "y0 = GridSample(x, g)", {"x": o(1, 1, 2, 2), "g": a([[[[1e30, -1e30]]]])}, z(1, 1, 1, 1)),
        ("an empty grid", "y0 = GridSample(x, g)", {"x": o(1, 1, 2, 2), "g": z(1, 0, 3, 2)}, z(1, 1, 0, 3)),
        ("batches that differ", "y0 = GridSample(x, g)", {"x": o(2, 1, 2, 2), "g": z(1, 1, 3, 2)}, REFUSED)])
    table("RoiAlign", 22, [
        ("no boxes", "y0 = RoiAlign(x, r, b)", {"x": o(1, 1, 2, 2), "r": z(0, 4), "b": a([], I)}, z(0, 1, 1, 1)),
        ("a batch index out of range", "y0 = RoiAlign(x, r, b)", {"x": o(1, 1, 2, 2), "r": z(1, 4), "b": a([1], I)}, REFUSED),
        ("a negative batch index", "y0 = RoiAlign(x, r, b)", {"x": o(1, 1, 2, 2), "r": z(1, 4), "b": a([-1], I)}, REFUSED)])
    table("MaxRoiPool", 22, [
        ("a batch index out of range", "y0 = MaxRoiPool<pooled_shape = [1, 1]>(x, r)", {"x": o(1, 1, 2, 2), "r": a([[5, 0, 0, 1, 1]])}, REFUSED)])
    table("AffineGrid", 20, [
        ("an empty batch", "y0 = AffineGrid(t, s)", {"t": z(0, 2, 3), "s": a([0, 1, 2, 2], I)}, z(0, 2, 2, 2)),
        ("negative size", "y0 = AffineGrid(t, s)", {"t": z(1, 2, 3), "s": a([1, 1, -2, 2], I)}, REFUSED)])
    table("RMSNormalization", 23, [
        ("an empty batch", "y0 = RMSNormalization(x, s)", {"x": z(0, 2), "s": o(2)}, z(0, 2)),
        ("all zero", "y0 = RMSNormalization(x, s)", {"x": z(1, 2), "s": o(2)}, z(1, 2)),
        ("an axis out of range", "y0 = RMSNormalization<axis = 3>(x, s)", {"x": z(1, 2), "s": o(2)}, REFUSED)])
    table("Swish", 24, [(what, "y0 = Swish(x)", {"x": x}, (x * special.expit(x)).astype(f32)) for what, x in shaped().items()]
          + [("NaN and +inf", "y0 = Swish(x)", {"x": a([nan, inf])}, a([nan, inf]))])
    table("Shrink", 9, [(what, "y0 = Shrink<lambd = 1.0>(x)", {"x": x}, np.where(np.abs(x) > 1, x, 0).astype(f32)) for what, x in shaped().items()])
    table("TensorScatter", 24, [
        ("beyond the cache", "y0 = TensorScatter(c, u, n)", {"c": z(1, 1, 2, 1), "u": o(1, 1, 1, 1), "n": a([2], I)}, REFUSED),
        ("a negative index", "y0 = TensorScatter(c, u, n)", {"c": z(1, 1, 2, 1), "u": o(1, 1, 1, 1), "n": a([-1], I)}, REFUSED),
        ("no batch", "y0 = TensorScatter(c, u, n)", {"c": z(0, 1, 2, 1), "u": z(0, 1, 1, 1), "n": a([], I)}, z(0, 1, 2, 1))])
    table("Attention", 23, [
        ("no queries", "y0 = Attention(q, k, k)", {"q": z(1, 1, 0, 2), "k": o(1, 1, 3, 2)}, z(1, 1, 0, 2)),
        ("an empty batch", "y0 = Attention(q, q, q)", {"q": z(0, 1, 2, 2)}, z(0, 1, 2, 2)),
        ("heads that do not fit", "y0 = Attention(q, k, k)", {"q": o(1, 3, 1, 2), "k": o(1, 2, 3, 2)}, REFUSED)])
    table("RotaryEmbedding", 23, [
        ("a position out of range", "y0 = RotaryEmbedding(x, c, c, p)", {"x": o(1, 1, 1, 2), "c": o(2, 1), "p": a([[2]], I)}, REFUSED),
        ("a negative position", "y0 = RotaryEmbedding(x, c, c, p)", {"x": o(1, 1, 1, 2), "c": o(2, 1), "p": a([[-1]], I)}, REFUSED),
        ("an empty batch", "y0 = RotaryEmbedding(x, c, c, p)", {"x": z(0, 1, 1, 2), "c": o(2, 1), "p": np.zeros((0, 1), I)}, z(0, 1, 1, 2))])
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        w = {"w": z(1, gates, 2), "r": z(1, gates, 1)}
        table(op, 22, [
            ("no steps", f"y0 = {op}<hidden_size = 1>(x, w, r)", {"x": z(0, 1, 2), **w}, z(0, 1, 1, 1)),
            ("an empty batch", f"y0 = {op}<hidden_size = 1>(x, w, r)", {"x": z(2, 0, 2), **w}, z(2, 1, 0, 1)),
            ("an input size that does not fit", f"y0 = {op}<hidden_size = 1>(x, w, r)", {"x": z(2, 1, 3), **w}, REFUSED),
            ("a length beyond", f'y0 = {op}<hidden_size = 1>(x, w, r, "", n)', {"x": z(2, 1, 2), **w, "n": a([3], i32)}, REFUSED),
            ("a negative length", f'y0 = {op}<hidden_size = 1>(x, w, r, "", n)', {"x": z(2, 1, 2), **w, "n": a([-1], i32)}, REFUSED)])
    table("DFT", 20, [
        ("an empty batch", "y0 = DFT(x)", {"x": z(0, 4, 1)}, z(0, 4, 2)),
        ("length 0", "y0 = DFT(x, n)", {"x": o(1, 4, 1), "n": a(0, I)}, REFUSED),
        ("an axis out of range", 'y0 = DFT(x, "", n)', {"x": o(1, 4, 1), "n": a(3, I)}, REFUSED),
        ("the axis of the parts", 'y0 = DFT(x, "", n)', {"x": o(1, 4, 1), "n": a(2, I)}, REFUSED)])
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        table(op, 17, [("negative", f"y0 = {op}(n)", {"n": a(-1, I)}, REFUSED), ("too many", f"y0 = {op}(n)", {"n": a(2**62, I)}, REFUSED),
                       ("none", f"y0 = {op}(n)", {"n": a(0, I)}, z(0))])
    for op, scores in (("NegativeLogLikelihoodLoss", -1.0), ("SoftmaxCrossEntropyLoss", float(np.log(2)))):
        x = o(1, 2)
        table(op, 13, [
            ("a class out of range", f"y0 = {op}(x, n)", {"x": x, "n": a([2], I)}, REFUSED),
            ("a negative class", f"y0 = {op}(x, n)", {"x": x, "n": a([-1], I)}, REFUSED),
            ("an ignored class out of range", f'y0 = {op}<ignore_index = -1, reduction = "none">(x, n)', {"x": o(2, 2), "n": a([-1, 1], I)}, a([0, scores])),
            ("an empty batch", f'y0 = {op}<reduction = "none">(x, n)', {"x": z(0, 2), "n": a([], I)}, z(0))])
    table("StringNormalizer", 10, [("none: one empty string", 'y0 = StringNormalizer<stopwords = ["a"], is_case_sensitive = 1>(x)', {"x": np.array(["a"])}, np.array([""]))])
    table("CastLike", 19, [("empty", "y0 = CastLike(x, n)", {"x": z(0, 2), "n": a(0, I)}, np.zeros((0, 2), I)), ("rank 0", "y0 = CastLike(x, n)", {"x": a(2.5), "n": np.zeros((3, 0), I)}, a(2, I))])
    table("DynamicQuantizeLinear", 11, [("all of one sign", "y0, y1, y2 = DynamicQuantizeLinear(x)", {"x": a([255, 51])}, [a([255, 51], u8), a(1), a(0, u8)])])
    table("RandomNormalLike", 22, [("empty", "y0 = RandomNormalLike(x)", {"x": z(2, 0)}, z(2, 0))])


unary()
binary()
reductions()
shapes()
slicing()
gathering()
products()
normalized()
casts()
others()
models()
print(f"{count} cases", file=sys.stderr)
