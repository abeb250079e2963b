"""Elementwise operators and casts."""

import numpy as np
from onnx import TensorProto
from scipy import special

from case import a, case, f16, f32, f64, i32, i64, i8, inf, name_of, nan, RANK8, REFUSED, shaped, u8


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
