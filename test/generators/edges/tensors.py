"""Operators that reduce, reshape, cut and choose."""

import numpy as np

from case import a, case, f32, f64, i32, i64, i8, inf, nan, RANK8, REFUSED, u8


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
