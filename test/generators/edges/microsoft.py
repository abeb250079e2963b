"""com.microsoft's operators at the edges; where onnxruntime's kernels say nothing of such inputs, the formula does."""

import numpy as np
from scipy import special

from case import a, case, f32, f64, i32, i64, i8, inf, nan, RANK8, REFUSED, u8

z = lambda *s, t=f32: np.zeros(s, t)
o = lambda *s, t=f32: np.ones(s, t)
I = i64
one = a(1)
r8 = np.arange(8, dtype=f32).reshape(RANK8)


def ms(op, what, inputs, out, attributes="", outputs="y0", args=None, tolerance=1e-5):
    case(op, what, f"{outputs} = com.microsoft.{op}{'<' + attributes + '>' if attributes else ''}({args or ', '.join(inputs)})",
         inputs, out, 21, tolerance)


def activations():
    gelu = lambda x: x * (1 + special.erf(x / np.sqrt(2))) / 2
    fast = lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    for op, f in (("Gelu", gelu), ("FastGelu", fast), ("QuickGelu", lambda x: x * special.expit(1.702 * x))):
        for what, x in (("empty", z(2, 0)), ("rank 0", a(2)), ("rank 8", r8), ("NaN and infinity", a([nan, inf]))):
            ms(op, what, {"x": x}, np.asarray(f(x), f32), tolerance=1e-4)
    ms("BiasGelu", "empty", {"x": z(0, 2), "b": a([1, 2])}, z(0, 2))
    ms("BiasGelu", "rank 0", {"x": a(1), "b": a([1])}, REFUSED)
    ms("BiasGelu", "a bias of another length", {"x": a([[1, 2]]), "b": a([1, 2, 3])}, REFUSED)
    ms("BiasGelu", "NaN and infinity", {"x": a([[nan, inf]]), "b": a([1, 2])}, a([[nan, inf]]))
    q = {"s": a(0.5), "v": a(1, u8)}
    for op, attr, f in (("QLinearLeakyRelu", "alpha = 0.5", lambda x: np.where(x < 0, 0.5 * x, x)), ("QLinearSigmoid", "", special.expit)):
        for what, x in (("empty", z(2, 0, t=u8)), ("rank 0", a(0, u8)), ("rank 8", r8.astype(u8))):
            y = np.clip(np.rint(f((x - 1.0) * 0.5) / 0.5) + 1, 0, 255).astype(u8)
            ms(op, what, {"x": x, **q}, y, attr, args="x, s, v, s, v")
        ms(op, "a scale of rank 1", {"x": a([1], u8), "s": a([1, 2]), "v": a(1, u8)}, REFUSED, attr, args="x, s, v, s, v")


def quantized():
    s, v = a(0.5), a(1, u8)
    eight = {"s": s, "v": v}
    real = lambda x: (x.astype(f64) - 1) * 0.5
    back = lambda x: np.clip(np.rint(np.asarray(x) / 0.5) + 1, 0, 255).astype(u8)
    for op, f in (("QLinearAdd", np.add), ("QLinearMul", np.multiply)):
        for what, p, r in (("empty", (2, 0), (1,)), ("rank 0", (), ()), ("rank 0 with rank 2", (), (2, 3)), ("broadcast both ways", (2, 1), (1, 3)), ("rank 8", RANK8, (2, 1)),
                           ("dims that do not fit", (2,), (3,))):
            x, y = ((np.arange(np.prod(d)) % 7).astype(u8).reshape(d) for d in (p, r))
            ms(op, what, {"x": x, "w": y, **eight}, REFUSED if "not" in what else back(f(real(x), real(y))), args="x, s, v, w, s, v, s, v")
    pool = lambda op: "y0 = com.microsoft." + op
    ms("QLinearAveragePool", "an empty batch", {"x": z(0, 1, 2, 2, t=u8), **eight}, z(0, 1, 1, 1, t=u8), "kernel_shape = [2, 2]", args="x, s, v, s, v")
    ms("QLinearAveragePool", "rank 0", {"x": a(1, u8), **eight}, REFUSED, "kernel_shape = [2]", args="x, s, v, s, v")
    ms("QLinearAveragePool", "the window larger than the picture", {"x": z(1, 1, 1, 1, t=u8), **eight}, REFUSED, "kernel_shape = [2, 2]", args="x, s, v, s, v")
    ms("QLinearGlobalAveragePool", "an empty batch", {"x": z(0, 1, 2, 2, t=u8), **eight}, z(0, 1, 1, 1, t=u8), args="x, s, v, s, v")
    ms("QLinearGlobalAveragePool", "rank 0", {"x": a(1, u8), **eight}, REFUSED, args="x, s, v, s, v")
    ms("NhwcMaxPool", "an empty batch", {"x": z(0, 2, 2, 1, t=u8)}, z(0, 1, 1, 1, t=u8), "kernel_shape = [2, 2]")
    ms("NhwcMaxPool", "rank 0", {"x": a(1, u8)}, REFUSED, "kernel_shape = [2]")
    ms("NhwcMaxPool", "the window larger than the picture", {"x": z(1, 1, 1, 1, t=u8)}, REFUSED, "kernel_shape = [2, 2]")
    ms("QLinearConcat", "with an empty one", {"s": s, "v": v, "x": z(0, t=u8), "w": a([3, 4], u8)}, a([3, 4], u8), "axis = -1", args="s, v, x, s, v, w, s, v")
    ms("QLinearConcat", "rank 0", {"s": s, "v": v, "x": a(1, u8)}, REFUSED, "axis = 0", args="s, v, x, s, v")
    ms("QLinearConcat", "an axis out of range", {"s": s, "v": v, "x": a([1], u8)}, REFUSED, "axis = 1", args="s, v, x, s, v")
    ms("QLinearSoftmax", "empty", {"x": z(0, 2, t=u8), **eight}, z(0, 2, t=u8), "axis = -1, opset = 13", args="x, s, v, s, v")
    ms("QLinearSoftmax", "rank 0", {"x": a(1, u8), **eight}, REFUSED, "axis = 0, opset = 13", args="x, s, v, s, v")
    ms("QLinearSoftmax", "an axis out of range", {"x": a([1], u8), **eight}, REFUSED, "axis = 1, opset = 13", args="x, s, v, s, v")
    conv = {"x": z(0, 1, 2, 2, t=u8), "w": o(1, 1, 1, 1, t=u8), **eight}
    ms("QLinearConv", "an empty batch", conv, z(0, 1, 2, 2, t=u8), args="x, s, v, w, s, v, s, v")
    ms("QLinearConv", "rank 0", {**conv, "x": a(1, u8)}, REFUSED, args="x, s, v, w, s, v, s, v")
    c = {"c": a([True, False], bool)}
    ms("QLinearWhere", "empty", {"c": z(0, 1, t=bool), "x": a([1, 2], u8), "w": a(3, u8), **eight}, z(0, 2, t=u8), args="c, x, s, v, w, s, v, s, v")
    ms("QLinearWhere", "rank 0", {"c": np.array(True), "x": a(1, u8), "w": a(3, u8), **eight}, a(1, u8), args="c, x, s, v, w, s, v, s, v")
    ms("QLinearWhere", "dims that do not fit", {**c, "x": a([1, 2, 3], u8), "w": a(3, u8), **eight}, REFUSED, args="c, x, s, v, w, s, v, s, v")
    ms("QuantizeLinear", "empty", {"x": z(0, 2), **eight}, z(0, 2, t=u8))
    ms("QuantizeLinear", "rank 0", {"x": a(2), **eight}, a(5, u8))
    ms("QuantizeLinear", "NaN and infinities", {"x": a([inf, -inf]), **eight}, a([255, 0], u8))
    ms("DequantizeLinear", "empty", {"x": z(0, 2, t=u8), **eight}, z(0, 2))
    ms("DequantizeLinear", "rank 0", {"x": a(3, u8), **eight}, a(1))


def products():
    eight = {"s": a(0.5), "v": a(1, u8)}
    for op in ("FusedMatMul", "TransposeMatMul"):
        for what, p, q in (("no rows", (0, 3), (3, 2)), ("nothing to sum", (2, 0), (0, 3)), ("a vector right", (2, 3), (3,)), ("rank 8", (1, 2, 1, 2, 1, 1, 2, 3), (3, 1)),
                           ("dims that do not fit", (2, 3), (2, 3)), ("rank 0", (), (2,))):
            x, y = ((np.arange(np.prod(d)) % 5).astype(f32).reshape(d) for d in (p, q))
            try:
                out = (2 * np.matmul(x, y)).astype(f32)
            except ValueError:
                out = REFUSED
            ms(op, what, {"x": x, "w": y}, out, "alpha = 2.0")
        ms(op, "NaN and infinity", {"x": a([[nan, 1], [inf, 1]]), "w": o(2, 1)}, a([[nan], [inf]]))
    ms("FusedGemm", "no rows", {"x": z(0, 2), "w": o(2, 3), "c": o(3)}, z(0, 3), 'activation = "Relu"')
    ms("FusedGemm", "rank 0", {"x": a(1), "w": o(2, 3), "c": o(3)}, REFUSED, 'activation = "Relu"')
    ms("FusedGemm", "nothing to sum", {"x": z(2, 0), "w": z(0, 3), "c": a([1, -1, 2])}, a([[1, 0, 2]] * 2), 'activation = "Relu"')
    ms("FusedGemm", "NaN and infinity", {"x": a([[nan], [-inf]]), "w": o(1, 1), "c": o(1)}, a([[nan], [0]]), 'activation = "Relu"')
    ms("FusedConv", "an empty batch", {"x": z(0, 1, 2, 2), "w": o(1, 1, 1, 1)}, z(0, 1, 2, 2), 'activation = "Relu"')
    ms("FusedConv", "rank 0", {"x": a(1), "w": a(1)}, REFUSED, 'activation = "Relu"')
    ms("FusedConv", "an unknown activation", {"x": o(1, 1, 1, 1), "w": o(1, 1, 1, 1)}, REFUSED, 'activation = "Odd"')
    ms("FusedConv", "infinities", {"x": a([[[[inf, -inf]]]]), "w": o(1, 1, 1, 1)}, a([[[[inf, 0]]]]), 'activation = "Relu"')
    scale = {"p": a(0.5), "q": a(2)}
    ms("MatMulIntegerToFloat", "no rows", {"x": z(0, 2, t=u8), "w": o(2, 3, t=u8), **scale}, z(0, 3))
    ms("MatMulIntegerToFloat", "rank 0", {"x": a(1, u8), "w": o(2, 3, t=u8), **scale}, REFUSED)
    ms("MatMulIntegerToFloat", "dims that do not fit", {"x": o(1, 3, t=u8), "w": o(2, 3, t=u8), **scale}, REFUSED)
    ms("DynamicQuantizeMatMul", "no rows", {"x": z(0, 2), "w": o(2, 3, t=u8), "q": a(2)}, z(0, 3))
    ms("DynamicQuantizeMatMul", "rank 0", {"x": a(1), "w": o(2, 3, t=u8), "q": a(2)}, REFUSED)
    ms("DynamicQuantizeMatMul", "dims that do not fit", {"x": o(1, 3), "w": o(2, 3, t=u8), "q": a(2)}, REFUSED)
    ms("QGemm", "no rows", {"x": z(0, 2, t=u8), "w": o(2, 3, t=u8), **eight}, z(0, 3), args="x, s, v, w, s, v")
    ms("QGemm", "rank 0", {"x": a(1, u8), "w": o(2, 3, t=u8), **eight}, REFUSED, args="x, s, v, w, s, v")
    ms("QGemm", "dims that do not fit", {"x": o(1, 3, t=u8), "w": o(2, 3, t=u8), **eight}, REFUSED, args="x, s, v, w, s, v")
    nbits = "K = 16, N = 2, bits = 4, block_size = 16"
    w = {"w": np.full((2, 1, 8), 0x99, u8), "q": a([[1], [2]])}
    ms("MatMulNBits", "no rows", {"x": z(0, 16), **w}, z(0, 2), nbits)
    ms("MatMulNBits", "rank 0", {"x": a(1), **w}, REFUSED, nbits)
    ms("MatMulNBits", "columns that do not fit", {"x": o(1, 15), **w}, REFUSED, nbits)
    ms("MatMulNBits", "weights of another size", {"x": o(1, 16), "w": np.full((2, 1, 7), 0x99, u8), "q": w["q"]}, REFUSED, nbits)
    ms("MatMulNBits", "a vector", {"x": o(16), **w}, a([16, 32]), nbits)
    ms("MatMulNBits", "NaN and infinity", {"x": np.stack([np.where(np.arange(16) == 3, nan, 1), np.where(np.arange(16) == 3, inf, 1)]).astype(f32), **w},
       a([[nan, nan], [inf, inf]]), nbits)
    bnb = "K = 16, N = 2, block_size = 16, quant_type = 1"
    w = {"w": np.full(16, 0xFF, u8), "q": a([1, 2])}  # code 15 is 1
    ms("MatMulBnb4", "no rows", {"x": z(0, 16), **w}, z(0, 2), bnb)
    ms("MatMulBnb4", "rank 0", {"x": a(1), **w}, REFUSED, bnb)
    ms("MatMulBnb4", "a row", {"x": o(1, 16), **w}, a([[16, 32]]), bnb)
    ms("MatMulBnb4", "weights of another size", {"x": o(1, 16), "w": np.full(15, 0xFF, u8), "q": w["q"]}, REFUSED, bnb)
    gather = "bits = 4, block_size = 16, quantize_axis = 1"
    table = {"t": np.full((2, 8), 0x99, u8), "q": a([[1], [2]])}
    for what, n in (("beyond", [2]), ("below", [-3])):
        ms("GatherBlockQuantized", f"{what}: zeros", {"n": a(n, I), **table}, z(1, 16), gather, args="t, n, q")
    ms("GatherBlockQuantized", "empty", {"n": z(0, t=I), **table}, z(0, 16), gather, args="t, n, q")
    ms("GatherBlockQuantized", "rank 0", {"n": a(-1, I), **table}, np.full(16, 2, f32), gather, args="t, n, q")
    lstm = {"x": z(2, 0, 3), "w": z(1, 3, 8, t=i8), "r": z(1, 2, 8, t=i8), "s": o(1), "v": z(1, t=i8)}
    node = dict(attributes="hidden_size = 2", args="x, w, r, , , , , , s, v, s, v")
    ms("DynamicQuantizeLSTM", "an empty batch", lstm, z(2, 1, 0, 2), **node)
    ms("DynamicQuantizeLSTM", "no steps", {**lstm, "x": z(0, 2, 3)}, z(0, 1, 2, 2), **node)
    ms("DynamicQuantizeLSTM", "rank 0", {**lstm, "x": a(1)}, REFUSED, **node)


def normalized():
    g = {"g": o(2), "b": z(2)}
    for op, extra in (("SkipLayerNormalization", g), ("SkipSimplifiedLayerNormalization", {"g": g["g"]})):
        ms(op, "an empty batch", {"x": z(0, 1, 2), "s": z(0, 1, 2), **extra}, z(0, 1, 2))
        ms(op, "no rows", {"x": z(1, 0, 2), "s": z(1, 0, 2), **extra}, z(1, 0, 2))
        ms(op, "rank 0", {"x": a(1), "s": a(1), **extra}, REFUSED)
        ms(op, "a skip that does not fit", {"x": o(1, 1, 2), "s": o(1, 1, 3), **extra}, REFUSED)
        ms(op, "NaN", {"x": a([[[nan, 1]]]), "s": o(1, 1, 2), **extra}, a([[[nan, nan]]]))
    ms("SimplifiedLayerNormalization", "empty", {"x": z(0, 2), "g": g["g"]}, z(0, 2))
    ms("SimplifiedLayerNormalization", "rank 0", {"x": a(1), "g": o(1)}, REFUSED)
    ms("SimplifiedLayerNormalization", "NaN and a row of zeros", {"x": a([[nan, 1], [0, 0]]), "g": g["g"]}, a([[nan, nan], [0, 0]]))
    words = {"n": z(0, 2, t=i32), "t": z(0, 2, t=i32), "w": o(3, 2), "p": o(4, 2), "e": o(2, 2), **g}
    embed = "n, t, w, p, e, g, b"
    ms("EmbedLayerNormalization", "an empty batch", words, [z(0, 2, 2), z(0, t=i32)], outputs="y0, y1", args=embed)
    ms("EmbedLayerNormalization", "rank 0", {**words, "n": a(0, i32)}, REFUSED, outputs="y0, y1", args=embed)
    for what, n in (("a word beyond", 3), ("a word below", -1)):
        ms("EmbedLayerNormalization", what, {**words, "n": a([[0, n]], i32), "t": z(1, 2, t=i32)}, REFUSED, outputs="y0, y1", args=embed)
    ms("EmbedLayerNormalization", "a segment beyond", {**words, "n": z(1, 2, t=i32), "t": a([[0, 2]], i32)}, REFUSED, outputs="y0, y1", args=embed)
    ms("EmbedLayerNormalization", "more tokens than positions", {**words, "n": z(1, 5, t=i32), "t": z(1, 5, t=i32)}, REFUSED, outputs="y0, y1", args=embed)
    s, v = a(0.5), a(1, u8)
    bytes_ = {"n": z(0, 2, t=i32), "t": z(0, 2, t=i32), "w": o(3, 2, t=u8), "p": o(4, 2, t=u8), "e": o(2, 2, t=u8), "g": o(2, t=u8), "s": s, "v": v}
    q = "n, t, w, p, e, g, g, , s, s, s, s, s, v, v, v, v, v"
    ms("QEmbedLayerNormalization", "an empty batch", bytes_, [z(0, 2, 2), z(0, t=i32)], outputs="y0, y1", args=q)
    ms("QEmbedLayerNormalization", "rank 0", {**bytes_, "n": a(0, i32)}, REFUSED, outputs="y0, y1", args=q)
    ms("QEmbedLayerNormalization", "a word beyond", {**bytes_, "n": a([[0, 3]], i32), "t": z(1, 2, t=i32)}, REFUSED, outputs="y0, y1", args=q)


def attention():
    heads = "num_heads = 2"
    x, w, b = z(0, 2, 3), o(3, 12), o(12)
    ms("Attention", "an empty batch", {"x": x, "w": w, "b": b}, z(0, 2, 4), heads)
    ms("Attention", "no tokens", {"x": z(2, 0, 3), "w": w, "b": b}, z(2, 0, 4), heads)
    ms("Attention", "rank 0", {"x": a(1), "w": w, "b": b}, REFUSED, heads)
    ms("Attention", "NaN", {"x": a([[[nan]]]), "w": o(1, 3), "b": o(3)}, a([[[nan]]]), "num_heads = 1")
    q = {"x": z(0, 2, 3, t=u8), "w": o(3, 12, t=u8), "b": b, "s": one}
    ms("QAttention", "an empty batch", q, z(0, 2, 4), heads, args="x, w, b, s, s")
    ms("QAttention", "rank 0", {**q, "x": a(1, u8)}, REFUSED, heads, args="x, w, b, s, s")
    mha = "MultiHeadAttention"
    ms(mha, "an empty batch", {"q": z(0, 2, 4), "k": z(0, 3, 4)}, z(0, 2, 4), heads, args="q, k, k")
    ms(mha, "no queries", {"q": z(1, 0, 4), "k": o(1, 3, 4)}, z(1, 0, 4), heads, args="q, k, k")
    ms(mha, "no keys: nothing to attend to", {"q": o(1, 2, 4), "k": z(1, 0, 4)}, z(1, 2, 4), heads, args="q, k, k")
    ms(mha, "rank 0", {"q": a(1), "k": a(1)}, REFUSED, heads, args="q, k, k")
    ms(mha, "NaN and infinity", {"q": o(2, 1, 1), "k": a([[[1], [1]], [[1], [1]]]), "v": a([[[nan], [1]], [[inf], [1]]])}, a([[[nan]], [[inf]]]), "num_heads = 1")
    ms("DecoderMaskedMultiHeadAttention", "an empty batch", {"q": z(0, 1, 4), "k": z(0, 2, 3, 2)}, z(0, 1, 4), heads, args="q, k, k")
    ms("DecoderMaskedMultiHeadAttention", "rank 0", {"q": a(1), "k": a(1)}, REFUSED, heads, args="q, k, k")
    gqa = "GroupQueryAttention"
    args = dict(attributes="num_heads = 2, kv_num_heads = 1", args="q, k, k, , , n, t")
    ms(gqa, "an empty batch", {"q": z(0, 2, 4), "k": z(0, 2, 2), "n": z(0, t=i32), "t": a(2, i32)}, z(0, 2, 4), **args)
    ms(gqa, "rank 0", {"q": a(1), "k": a(1), "n": a([0], i32), "t": a(1, i32)}, REFUSED, **args)
    ms(gqa, "no queries", {"q": z(1, 0, 4), "k": z(1, 0, 2), "n": a([-1], i32), "t": a(0, i32)}, REFUSED, **args)
    ms(gqa, "lengths of none", {"q": o(1, 1, 4), "k": o(1, 1, 2), "n": z(0, t=i32), "t": a(1, i32)}, REFUSED, **args)
    ms(gqa, "NaN", {"q": o(1, 1, 2), "k": a([[[nan]]]), "n": a([0], i32), "t": a(1, i32)}, a([[[nan, nan]]]), **args)
    ms("RotaryEmbedding", "rank 0", {"x": a(1), "n": a([0], I), "c": o(2, 1)}, REFUSED, args="x, n, c, c")
    ms("RotaryEmbedding", "an empty batch", {"x": z(0, 2, 2), "n": a([0], I), "c": o(2, 1)}, z(0, 2, 2), args="x, n, c, c")


def other():
    ms("CDist", "no rows", {"x": z(0, 2), "w": o(3, 2)}, z(0, 3))
    ms("CDist", "rank 0", {"x": a(1), "w": o(3, 2)}, REFUSED)
    ms("CDist", "columns that do not fit", {"x": o(1, 3), "w": o(3, 2)}, REFUSED)
    ms("CDist", "NaN and infinity", {"x": a([[nan], [inf]]), "w": a([[1]])}, a([[nan], [inf]]), 'metric = "euclidean"')
    ms("ExpandDims", "empty", {"x": z(0, 2), "n": a(1, i32)}, z(0, 1, 2))
    ms("ExpandDims", "rank 0", {"x": a(3), "n": a(-1, i32)}, a([3]))
    ms("ExpandDims", "rank 7, negative axis", {"x": np.arange(2, dtype=f32).reshape(1, 2, 1, 1, 1, 1, 1), "n": a(-8, i32)}, np.arange(2, dtype=f32).reshape(1, 1, 2, 1, 1, 1, 1, 1))
    ms("ExpandDims", "an axis out of range", {"x": a(3), "n": a(1, i32)}, REFUSED)
    ms("Inverse", "an empty batch", {"x": z(0, 2, 2)}, z(0, 2, 2))
    ms("Inverse", "rank 0", {"x": a(1)}, REFUSED)
    ms("Inverse", "not square", {"x": o(2, 3)}, REFUSED)
    ms("Inverse", "rank 8", {"x": (np.eye(2, dtype=f32) * 2).reshape(1, 1, 1, 1, 1, 1, 2, 2)}, (np.eye(2, dtype=f32) / 2).reshape(1, 1, 1, 1, 1, 1, 2, 2))
    ms("GatherND", "rank 0", {"x": a(1), "n": a([0], I)}, REFUSED)
    ms("GatherND", "none", {"x": a([[1, 2]]), "n": z(0, 2, t=I)}, z(0))
    ms("GatherND", "beyond", {"x": a([[1, 2]]), "n": a([[0, 2]], I)}, REFUSED)
    ms("GatherND", "below", {"x": a([[1, 2]]), "n": a([[0, -3]], I)}, REFUSED)
    ms("GridSample", "rank 0", {"x": a(1), "g": z(1, 1, 1, 2)}, REFUSED)
    ms("GridSample", "no places", {"x": o(1, 1, 2, 2), "g": z(1, 0, 1, 2)}, z(1, 1, 0, 1))
    ms("Pad", "rank 0", {"x": a(1), "p": z(0, t=I)}, a(1))
    ms("Pad", "empty", {"x": z(0, 2), "p": a([1, 0, 0, 0], I)}, z(1, 2))
    ms("Range", "none", {"b": a(2), "e": a(1), "d": a(1)}, z(0))
    ms("Range", "a step of 0", {"b": a(0), "e": a(1), "d": a(0)}, REFUSED)
    ms("Range", "an end that is empty", {"b": a(0), "e": z(0), "d": a(1)}, REFUSED)
    ms("Trilu", "empty", {"x": z(0, 2)}, z(0, 2))
    ms("Trilu", "rank 0", {"x": a(1)}, REFUSED)
    ms("Unique", "empty", {"x": z(0)}, [z(0), z(0, t=I), z(0, t=I)], outputs="y0, y1, y2")
    ms("Unique", "rank 0", {"x": a(3)}, [a([3]), a([0], I), a([1], I)], outputs="y0, y1, y2")
    word = 'mark = 0, mincharnum = 1, pad_value = "#", separators = [" "]'
    ms("Tokenizer", "empty", {"x": np.zeros((0,), "U1")}, np.zeros((0, 0), "U1"), word)
    ms("Tokenizer", "rank 0", {"x": np.array("a b")}, REFUSED, word)
    ms("Tokenizer", "text without tokens", {"x": np.array([" ", "a b"])}, np.array([["#", "#"], ["a", "b"]]), word)


def fused():
    """Operators of the engine's own, which saved models may name."""
    own = lambda op, what, inputs, out, attributes="": case(
        op, what, f"y0 = infernode.{op}<{attributes}>({', '.join(inputs)})", inputs, out)
    own("FusedAttention", "an empty batch", {"q": z(0, 1, 2, 4), "k": z(0, 1, 3, 4), "v": z(0, 1, 3, 4)}, z(0, 1, 2, 4), "scale = 1.0")
    own("FusedAttention", "rank 0", {"q": a(1), "k": a(1), "v": a(1)}, REFUSED, "scale = 1.0")
    own("FusedAttention", "NaN", {"q": o(1, 1, 1, 1), "k": o(1, 1, 1, 1), "v": a([[[[nan]]]])}, a([[[[nan]]]]), "scale = 1.0")
    own("FusedAttention", "keys that do not fit", {"q": o(1, 1, 1, 2), "k": o(1, 1, 1, 3), "v": o(1, 1, 1, 2)}, REFUSED, "scale = 1.0")
    own("FusedMatMul", "no rows", {"x": z(0, 2), "w": o(2, 3)}, z(0, 3), "alpha = 1.0")
    own("FusedMatMul", "nothing to sum, with a bias", {"x": z(2, 0), "w": z(0, 2), "b": a([1, 2])}, a([[1, 2]] * 2), "alpha = 1.0")
    own("FusedMatMul", "rank 0", {"x": a(1), "w": o(2, 3)}, REFUSED, "alpha = 1.0")
    own("FusedMatMul", "NaN and infinity", {"x": a([[nan], [-inf]]), "w": o(1, 1)}, a([[nan], [-inf]]), "alpha = 1.0")
    own("FusedMatMul", "a bias of another length", {"x": o(1, 1), "w": o(1, 1), "b": a([1, 2])}, REFUSED, "alpha = 1.0")
    relu, scales = 'activation = "Relu"', {"s": a(1), "t": a(1)}
    own("FusedMatMulInteger", "no rows", {"x": z(0, 2, t=u8), "w": o(2, 3, t=i8), **scales}, z(0, 3), relu)
    own("FusedMatMulInteger", "nothing to sum", {"x": z(2, 0, t=u8), "w": z(0, 2, t=i8), **scales}, z(2, 2), relu)
    own("FusedMatMulInteger", "NaN", {"x": a([[2]], u8), "w": a([[1, 3]], i8), "s": a(1), "t": a([nan, 2])}, a([[nan, 12]]), 'activation = "LeakyRelu"')
    own("FusedMatMulInteger", "a scale for each row", {"x": a([[2], [2]], u8), "w": o(1, 1, t=i8), "s": a([1, 1]), "t": a(1)}, REFUSED, relu)
    own("FusedConv", "an empty batch", {"x": z(0, 1, 2, 2), "w": o(1, 1, 1, 1)}, z(0, 1, 2, 2), 'activation = "Relu"')
    own("FusedConv", "rank 0", {"x": a(1), "w": a(1)}, REFUSED, 'activation = "Relu"')


def everything():
    fused()
    activations()
    quantized()
    products()
    normalized()
    attention()
    other()
