"""What the table of operators and kinds (coverage.py) showed to be missing: NaN and infinities where an operator takes
floats, ranks that it does not take, limits of integers."""

import numpy as np

from case import a, case, f32, i8, i32, i64, inf, nan, RANK8, REFUSED, u8

z = lambda *s, t=f32: np.zeros(s, t)
o = lambda *s, t=f32: np.ones(s, t)
I = i64
MS, ML = "com.microsoft.", "ai.onnx.ml."
EIGHT = np.ones((1,) * 8, f32)


def odd(op, what, node, inputs, out, opset=22, domain="", **more):
    case(op, what, node.replace("@", domain + op), inputs, out, opset, **more)


def floats():
    """IEEE 754 says what sums and products give; a quantized value has no NaN, so that it becomes 0 (the zero point)."""
    odd("Conv", "NaN and infinity stay in their places", "y0 = @(x, w)", {"x": a([[[nan, 1, inf]]]), "w": o(1, 1, 1)}, a([[[nan, 1, inf]]]))
    odd("ConvTranspose", "infinities", "y0 = @(x, w)", {"x": a([[[inf, -inf]]]), "w": o(1, 1, 1)}, a([[[inf, -inf]]]))
    odd("DeformConv", "NaN and infinity", "y0 = @(x, w, d)", {"x": a([[[[nan, inf]]]]), "w": o(1, 1, 1, 1), "d": z(1, 2, 1, 2)}, a([[[[nan, inf]]]]))
    odd("MaxPool", "NaN", "y0 = @<kernel_shape = [2]>(x)", {"x": a([[[nan, 1, 2]]])}, a([[[nan, 2]]]))
    odd("MaxRoiPool", "NaN and infinity", "y0 = @<pooled_shape = [1, 1]>(x, r)", {"x": a([[[[inf]]], [[[nan]]]]), "r": a([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]])}, a([[[[inf]]], [[[nan]]]]))
    odd("MaxUnpool", "infinity", "y0 = @<kernel_shape = [2], strides = [2]>(x, n)", {"x": a([[[-inf]]]), "n": a([[[1]]], I)}, a([[[0, -inf]]]))
    odd("RoiAlign", "infinity", "y0 = @<output_height = 1, output_width = 1, sampling_ratio = 1>(x, r, n)", {"x": np.full((1, 1, 2, 2), inf, f32), "r": a([[0, 0, 1, 1]]), "n": a([0], I)}, a([[[[nan]]]]))  # its neighbours count 0 times
    odd("LRN", "infinity", "y0 = @<size = 1>(x)", {"x": a([[[[inf]]]])}, a([[[[nan]]]]))
    odd("Hardmax", "NaN is the largest", "y0 = @<axis = 1>(x)", {"x": a([[1, nan, 2], [nan, 3, nan]])}, a([[0, 1, 0], [1, 0, 0]]))
    for t in (f32, np.float64, np.float16):
        odd("ThresholdedRelu", f"NaN is not above the threshold, {t.__name__}", "y0 = @<alpha = 1.0>(x)", {"x": a([nan, inf, -inf], t)}, a([0, inf, 0], t))
        odd("Celu", f"NaN and infinities, {t.__name__}", "y0 = @<alpha = 2.0>(x)", {"x": a([nan, inf, -inf], t)}, a([nan, inf, -2], t), 28)
    odd("Unique", "NaN equals NaN", "y0, y1, y2, y3 = @(x)", {"x": a([nan, 1, nan])}, [a([1, nan]), a([1, 0], I), a([1, 0, 1], I), a([1, 2], I)], 21)
    odd("Unique", "NaN equals NaN", "y0, y1, y2 = @(x)", {"x": a([nan, 1, nan])}, [a([nan, 1]), a([0, 1, 0], I), a([2, 1], I)], domain=MS)
    odd("Multinomial", "a row of NaN has no distribution", "r = @(x) s = Shape(r) y0 = Identity(s)", {"x": a([[nan, 0]])}, REFUSED)
    odd("NonMaxSuppression", "a score of NaN is below every threshold", "y0 = @(x, s, k, t, u)", {"x": a([[[0, 0, 1, 1], [2, 2, 3, 3]]]), "s": a([[[nan, 1]]]), "k": a([2], I), "t": a([0.5]), "u": a([0])}, a([[0, 0, 1]], I))
    odd("NonMaxSuppression", "a score of infinity", "y0 = @(x, s, k)", {"x": a([[[0, 0, 1, 1], [2, 2, 3, 3]]]), "s": a([[[1, inf]]]), "k": a([1], I)}, a([[0, 0, 1]], I))
    odd("QuantizeLinear", "NaN and infinities", "y0 = @(x, s, v)", {"x": a([nan, inf, -inf]), "s": a(1), "v": a(3, u8)}, a([3, 255, 0], u8), 21)
    odd("QuantizeLinear", "NaN and infinities", "y0 = @(x, s, v)", {"x": a([nan, inf, -inf]), "s": a(1), "v": a(3, u8)}, a([3, 255, 0], u8), domain=MS)
    odd("DequantizeLinear", "a scale of NaN", "y0 = @(x, s)", {"x": a([0, 1], u8), "s": a(nan)}, a([nan, nan]), 21)
    odd("DequantizeLinear", "a scale of infinity", "y0 = @(x, s)", {"x": a([0, 1], u8), "s": a(inf)}, a([nan, inf]), domain=MS)
    for op in ("GRU", "LSTM", "RNN"):
        gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        out = {"RNN": 1.0, "GRU": 0.0, "LSTM": np.tanh(1.0)}[op]  # every gate is open or shut
        odd(op, "infinity saturates the gates", "y0 = @<hidden_size = 1>(x, w, r)", {"x": a([[[inf]]]), "w": o(1, gates, 1), "r": z(1, gates, 1)}, a([[[[out]]]]))
    odd("Attention", "an infinite value", "y0 = @(q, q, v)", {"q": o(1, 1, 1, 1), "v": a([[[[-inf]]]])}, a([[[[-inf]]]]), 24)
    odd("MultiHeadAttention", "a key of NaN spoils its batch entry alone", "y0 = @<num_heads = 1>(q, k, v)", {"q": o(2, 1, 1), "k": a([[[nan]], [[1]]]), "v": o(2, 1, 1)}, a([[[nan]], [[1]]]), domain=MS)
    odd("RotaryEmbedding", "infinity", "y0 = @(x, n, c, s)", {"x": a([[[[inf, 1]]]]), "n": a([0], I), "c": o(1, 1), "s": z(1, 1)}, a([[[[inf, nan]]]]), domain=MS)
    g = {"g": o(2)}
    for op, call in (("SkipSimplifiedLayerNormalization", "@<epsilon = 0.0>(x, s, g)"), ("SkipLayerNormalization", "@<epsilon = 0.0>(x, s, g)")):
        odd(op, "an infinite skip", "y0 = " + call, {"x": o(1, 1, 2), "s": a([[[inf, 0]]]), **g}, a([[[nan, 0 if "Simplified" in op else nan]]]), domain=MS)
    for domain in ("", MS):
        odd("SimplifiedLayerNormalization", "infinity", "y0 = @<epsilon = 0.0, axis = -1>(x, g)", {"x": a([[inf, 1]]), **g}, a([[nan, 0]]), domain=domain)
    odd("RMSNormalization", "infinity", "y0 = @<epsilon = 0.0>(x, g)", {"x": a([[inf, 1]]), **g}, a([[nan, 0]]), 23)
    odd("LayerNormalization", "infinity", "y0 = @<epsilon = 0.0>(x, g)", {"x": a([[inf, 1], [1, 3]]), **g}, a([[nan, nan], [-1, 1]]))
    odd("LpNormalization", "infinity", "y0 = @<axis = 1>(x)", {"x": a([[inf, 1]])}, a([[nan, 0]]))
    odd("MeanVarianceNormalization", "infinity", "y0 = @<axes = [1]>(x)", {"x": a([[inf, 1], [3, 3]])}, a([[nan, nan], [0, 0]]), 13)
    for op in ("InstanceNormalization", "GroupNormalization"):
        attr = "<num_groups = 2>" if op[0] == "G" else ""
        odd(op, "infinity stays in its part", f"y0 = @{attr}(x, s, b)", {"x": a([[[inf, 1], [2, 2]]]), "s": o(2), "b": z(2)}, a([[[nan, nan], [0, 0]]]))
    odd("AffineGrid", "infinity", "y0 = @(x, s)", {"x": a([[[0, 0, inf], [0, 0, 0]]]), "s": a([1, 1, 1, 1], I)}, a([[[[inf, 0]]]]))
    odd("Crop", "infinity stays", "y0 = @<border = [1, 0, 0, 0]>(x)", {"x": a([[[[1, inf]]]])}, a([[[[inf]]]]), 1)
    odd("ScatterND", "infinity", "y0 = @(x, n, u)", {"x": a([1, 2]), "n": a([[1]], I), "u": a([-inf])}, a([1, -inf]), 18)
    odd("ConstantOfShape", "infinity", "y0 = @<value = float[1] {-inf}>(s)", {"s": a([2], I)}, a([-inf, -inf]), 21)
    odd("SoftmaxCrossEntropyLoss", "infinity is sure", 'y0 = @<reduction = "none">(x, n)', {"x": a([[-inf, 1], [0, 0]]), "n": a([1, 0], I)}, a([0, np.log(2)]), 21)
    odd("Normalizer", "infinity", 'y0 = @<norm = "L1">(x)', {"x": a([[inf, 1]])}, a([[nan, 0]]), 15, domain=ML)
    odd("Inverse", "NaN", "y0 = @(x)", {"x": a([[[nan]], [[2]]])}, a([[[nan]], [[0.5]]]), domain=MS)
    odd("GatherBlockQuantized", "scales of NaN and infinity", "y0 = @<bits = 4, block_size = 16, quantize_axis = 1>(t, n, q)", {"t": np.full((2, 8), 0x99, u8), "n": a([0, 1], I), "q": a([[nan], [inf]])},
        np.stack([np.full(16, nan, f32), np.full(16, inf, f32)]), domain=MS)
    for op, what in (("QLinearAdd", "y0 = @(x, p, v, x, p, v, q, v)"), ("QLinearMul", "y0 = @(x, p, v, x, p, v, q, v)")):
        odd(op, "a scale of infinity saturates", what, {"x": a([2, 3], u8), "p": a(inf), "v": a(1, u8), "q": a(1)}, a([255, 255], u8), domain=MS)


def ranks():
    """Operators of a fixed rank refuse 8 axes."""
    eight = {"x": EIGHT}
    w = o(1, 1, 1, 1)
    table = [
        ("AffineGrid", 20, "@(x, s)", {**eight, "s": a([1, 1, 1, 1], I)}), ("BlackmanWindow", 17, "@(n)", {"n": np.ones(RANK8, I)}),
        ("Col2Im", 18, "@(x, s, s)", {**eight, "s": a([1], I)}),
        ("Crop", 1, "@<border = [0, 0, 0, 0]>(x)", eight), 
        ("EyeLike", 22, "@(x)", eight), ("Gemm", 13, "@(x, x)", eight), ("HammingWindow", 17, "@(n)", {"n": np.ones(RANK8, I)}), ("HannWindow", 17, "@(n)", {"n": np.ones(RANK8, I)}),
        ("ImageDecoder", 20, "@(n)", {"n": EIGHT.astype(u8)}), ("ImageScaler", 1, "@<bias = [1.0]>(x)", eight), ("MaxRoiPool", 22, "@<pooled_shape = [1, 1]>(x, r)", {**eight, "r": z(1, 5)}),
        ("NonMaxSuppression", 11, "@(x, x)", eight), ("RoiAlign", 22, "@(x, r, n)", {**eight, "r": z(1, 4), "n": a([0], I)}), ("RotaryEmbedding", 23, "@(x, c, c)", {**eight, "c": o(1, 1, 1)}),
        ("STFT", 17, "@(x, n)", {**eight, "n": a(1, I)}), ("StringNormalizer", 10, "@(t)", {"t": np.full(RANK8, "a")}), ("Multinomial", 22, "@(x)", eight)]
    table += [(op, 22, "@<hidden_size = 1>(x, x, x)", eight) for op in ("GRU", "LSTM", "RNN")]
    for op, opset, call, inputs in table:
        odd(op, "rank 8", "y0 = " + call, inputs, REFUSED, opset)
    for op, call in (("Attention", "@<num_heads = 1>(x, x, b)"), ("CDist", "@(x, x)"), ("MultiHeadAttention", "@<num_heads = 1>(x, x, x)"), ("FusedGemm", '@<activation = "Relu">(x, x)'),
                     ("GridSample", "@(x, x)"), ("DecoderMaskedMultiHeadAttention", "@<num_heads = 1>(x, x, x)")):
        odd(op, "rank 8", "y0 = " + call, {**eight, **({"b": o(3)} if op == "Attention" else {})}, REFUSED, domain=MS)
    odd("Tokenizer", "rank 8", 'y0 = @<mark = 0, mincharnum = 1, pad_value = "#", separators = [" "]>(t)', {"t": np.full(RANK8, "a")}, REFUSED, domain=MS)
    odd("FusedAttention", "rank 8", "y0 = @<scale = 1.0>(x, x, x)", eight, REFUSED, domain="infernode.")
    r8 = np.arange(8, dtype=f32).reshape(RANK8)
    odd("Unique", "rank 8", "y0 = @(x)", {"x": r8}, np.arange(8, dtype=f32), 21)
    odd("Det", "rank 8", "y0 = @(x)", {"x": (np.eye(2, dtype=f32) * 3).reshape(1, 1, 1, 1, 1, 1, 2, 2)}, np.full((1,) * 6, 9, f32))
    odd("RMSNormalization", "rank 8", "y0 = @<epsilon = 0.0>(x, s)", {"x": np.full(RANK8, 2, f32), "s": o(1)}, np.ones(RANK8, f32), 23)
    odd("MeanVarianceNormalization", "rank 8", "y0 = @<axes = [0]>(x)", {"x": r8}, np.zeros(RANK8, f32), 13)
    odd("DynamicQuantizeLinear", "rank 8", "y0, y1, y2 = @(x)", {"x": np.full(RANK8, 255, f32)}, [np.full(RANK8, 255, u8), a(1), a(0, u8)], 21)
    odd("MatMulInteger", "rank 8", "y0 = @(x, x)", {"x": np.full((1,) * 8, 3, u8)}, np.full((1,) * 8, 9, i32), 10)
    odd("QLinearMatMul", "rank 8", "y0 = @(x, s, v, x, s, v, s, v)", {"x": np.full((1,) * 8, 3, u8), "s": a(1), "v": a(0, u8)}, np.full((1,) * 8, 9, u8), 10)
    odd("StringSplit", "rank 8", "y0, y1 = @(x)", {"x": np.full(RANK8, "a b")}, [np.broadcast_to(np.array(["a", "b"]), RANK8 + (2,)), np.full(RANK8, 2, I)], 20)
    for op in ("QuantizeLinear", "DequantizeLinear"):
        x = np.full(RANK8, 3, f32 if op[0] == "Q" else u8)
        odd(op, "rank 8", "y0 = @(x, s, v)", {"x": x, "s": a(1), "v": a(1, u8)}, np.full(RANK8, 4, u8) if op[0] == "Q" else np.full(RANK8, 2, f32), domain=MS)


def windows():
    for op, domain, call in (("Conv", "", "@(x, w)"), ("ConvTranspose", "", "@(x, w)"), ("FusedConv", MS, '@<activation = "Relu">(x, w)')):
        odd(op, "a kernel of no elements", "y0 = " + call, {"x": o(1, 1, 3, 3), "w": z(1, 1, 0, 2)}, REFUSED, domain=domain)
        odd(op, "a kernel of no elements along the last axis", "y0 = " + call, {"x": o(1, 1, 3, 3), "w": z(1, 1, 2, 0)}, REFUSED, domain=domain)
    odd("ImageDecoder", "a grey pixel in a PGM file", "y0 = @(x)", {"x": np.frombuffer(b"P5 1 1 255\n\x07", u8)}, a([[[7, 7, 7]]], u8), 20)


def integers():
    top = a([2**63 - 1], I)
    for op, call, out in (("Squeeze", "@(x, n)", REFUSED), ("Unsqueeze", "@(x, n)", REFUSED), ("GatherElements", "@(x, n)", REFUSED), ("ScatterElements", "@(x, n, x)", REFUSED)):
        for what, n in (("an axis or index of int64's largest", top), ("an axis or index of int64's least", a([-(2**63)], I))):
            odd(op, what, "y0 = " + call, {"x": a([1]), "n": n}, out, 21)
    odd("ReverseSequence", "a length of int64's largest", "y0 = @(x, n)", {"x": o(2, 1), "n": top}, REFUSED, 21)
    odd("MaxUnpool", "an index of int64's largest", "y0 = @<kernel_shape = [2]>(x, n)", {"x": o(1, 1, 1), "n": top.reshape(1, 1, 1)}, REFUSED)
    odd("MaxUnpool", "an index of int64's least", "y0 = @<kernel_shape = [2]>(x, n)", {"x": o(1, 1, 1), "n": a([[[-(2**63)]]], I)}, REFUSED)
    odd("SequenceAt", "a place of int64's least", "q = SequenceConstruct(x) y0 = @(q, n)", {"x": a([1]), "n": a(-(2**63), I)}, REFUSED, 21)
    odd("SequenceErase", "a place of int64's largest", "q = SequenceConstruct(x) r = @(q, n) y0 = SequenceLength(r)", {"x": a([1]), "n": a(2**63 - 1, I)}, REFUSED, 21)
    odd("SequenceInsert", "a place of int64's least", "q = SequenceConstruct(x) r = @(q, x, n) y0 = SequenceLength(r)", {"x": a([1]), "n": a(-(2**63), I)}, REFUSED, 21)
    odd("CenterCropPad", "to int64's largest", "y0 = @(x, n)", {"x": a([1]), "n": top}, REFUSED, 21)
    odd("Resize", "sizes of int64's largest", 'y0 = @(x, "", "", n)', {"x": a([1]), "n": top}, REFUSED, 21)
    odd("GatherND", "an index of int64's least", "y0 = @(x, n)", {"x": a([1]), "n": a([[-(2**63)]], I)}, REFUSED, 21)
    odd("GatherND", "an index of int64's largest", "y0 = @(x, n)", {"x": a([1]), "n": a([[2**63 - 1]], I)}, REFUSED, domain=MS)
    odd("ArrayFeatureExtractor", "an index of int64's largest", "y0 = @(x, n)", {"x": a([[1, 2]]), "n": top}, REFUSED, 15, domain=ML)
    odd("TopK", "int64's largest", "y0, y1 = @(x, k)", {"x": a([1]), "k": top}, REFUSED, 21)
    odd("SplitToSequence", "parts of int64's largest", "q = @(x, n) y0 = SequenceLength(q)", {"x": a([1, 2]), "n": a(2**63 - 1, I)}, a(1, I), 21)
    odd("MatMulInteger", "limits of int8", "y0 = @(x, w, p, q)", {"x": a([[-128]], i8), "w": a([[127]], i8), "p": a(127, i8), "q": a(-128, i8)}, a([[-255 * 255]], i32), 10)


def axes():
    x = a([[1, 2, 3], [4, 5, 6]])
    odd("OneHot", "a negative axis", "y0 = @<axis = -1>(n, d, v)", {"n": a([1, 0], I), "d": a(2, I), "v": a([0, 1])}, a([[0, 1], [1, 0]]), 11)
    odd("Unsqueeze", "negative axes", "y0 = @(x, n)", {"x": x, "n": a([-1, -3], I)}, x.reshape(2, 1, 3, 1), 21)
    odd("Squeeze", "a negative axis", "y0 = @(x, n)", {"x": x.reshape(2, 3, 1), "n": a([-1], I)}, x, 21)
    odd("Slice", "a negative axis", "y0 = @(x, s, e, n)", {"x": x, "s": a([1], I), "e": a([3], I), "n": a([-1], I)}, x[:, 1:], 13)
    odd("Compress", "a negative axis", "y0 = @<axis = -1>(x, c)", {"x": x, "c": a([True, False, True], bool)}, x[:, [0, 2]], 11)
    odd("SplitToSequence", "a negative axis", "q = @<axis = -1>(x) y0 = SequenceAt(q, n)", {"x": x, "n": a(2, I)}, x[:, 2:], 21)
    odd("LpNormalization", "a negative axis", "y0 = @<axis = -2>(x)", {"x": a([[3, 0], [4, 2]])}, a([[0.6, 0], [0.8, 1]]))
    odd("QuantizeLinear", "a negative axis", "y0 = @<axis = -1>(x, s)", {"x": x, "s": a([1, 2, 3])}, a([[1, 1, 1], [4, 2, 2]], u8), 21)
    odd("DequantizeLinear", "a negative axis", "y0 = @<axis = -1>(x, s)", {"x": x.astype(u8), "s": a([1, 2, 3])}, x * a([1, 2, 3]), 21)
    odd("CumProd", "a negative axis", "y0 = @(x, n)", {"x": x, "n": a(-2, I)}, np.cumprod(x, 0), 26)
    odd("DFT", "a negative axis", "y0 = @(x, , n)", {"x": a([[[1], [2]]]), "n": a(-2, I)}, a([[[3, 0], [-1, 0]]]), 20)
    odd("BitShift", "broadcast both ways", 'y0 = @<direction = "LEFT">(x, n)', {"x": a([[1], [2]], u8), "n": a([[0, 1, 7]], u8)}, a([[1, 2, 128], [2, 4, 0]], u8), 11)
    odd("BitShift", "by as many bits as there are, and by more", 'y0 = @<direction = "RIGHT">(x, n)', {"x": a([255, 255], u8), "n": a([8, 200], u8)}, a([0, 0], u8), 11)
    odd("Where", "broadcast three ways", "y0 = @(c, x, v)", {"c": a([[[True]], [[False]]], bool), "x": a([[1], [2]]), "v": a([[3, 4, 5]])}, np.where(a([[[True]], [[False]]], bool), a([[1], [2]]), a([[3, 4, 5]])), 16)
    odd("Expand", "broadcast both ways", "y0 = @(x, s)", {"x": a([[1], [2]]), "s": a([1, 3], I)}, a([[1, 1, 1], [2, 2, 2]]), 13)


def everything():
    axes()
    floats()
    ranks()
    windows()
    integers()
