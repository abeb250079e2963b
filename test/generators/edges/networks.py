"""Products, normalizations, networks, sequences, control flow, text."""

import numpy as np
from scipy import special

from case import a, case, f32, f64, i32, i64, i8, inf, name_of, nan, RANK8, REFUSED, shaped, u8

I = i64


def z(*dims):
    """Zeros."""
    return np.zeros(dims, f32)


def o(*dims):
    """Ones."""
    return np.ones(dims, f32)


def table(op, opset, rows):
    for what, node, feeds, out in rows:
        case(op, what, node, feeds, out, opset)


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
        x, y, bias = (np.arange(np.prod(s), dtype=f32).reshape(s) + 1 for s in (p, q, c))
        good = what not in ("C that does not fit", "C larger than the product", "rank 3")
        case("Gemm", what, "y0 = Gemm(x, z, c)", {"x": x, "z": y, "c": bias}, np.asarray(x @ y + bias, f32) if good else REFUSED)
    case("Gemm", "beta 0 and NaN in C: 0 * NaN", "y0 = Gemm<beta = 0.0>(x, z, c)", {"x": a([[1]]), "z": a([[2]]), "c": a([1])}, a([[2]]))
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


def images():
    """Integer products, convolutions and what else looks at places of an image."""
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


def models():
    """Normalization, attention, recurrences, signals and losses."""
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
