"""What every operator is asked at least: an input of no elements, one of rank 0, where legal one of a high rank, NaN and
infinities where it takes floats, and indices out of range where it takes indices."""

import numpy as np

from case import a, case, f32, f64, i32, i64, inf, nan, RANK8, REFUSED, u8

z = lambda *s, t=f32: np.zeros(s, t)
o = lambda *s, t=f32: np.ones(s, t)
I = i64
text = lambda *s: np.zeros(s, "U1")


def legacy():
    x8 = np.arange(8, dtype=f32).reshape(RANK8)
    for op, attr, f in (("Affine", "<alpha = 2.0, beta = 3.0>", lambda x: 2 * x + 3), ("Scale", "<scale = 2.0>", lambda x: 2 * x),
                        ("ScaledTanh", "<alpha = 2.0, beta = 0.5>", lambda x: 2 * np.tanh(0.5 * x)),
                        ("ParametricSoftplus", "<alpha = 2.0, beta = 0.5>", lambda x: 2 * np.logaddexp(0.5 * x, 0))):
        for what, x in (("empty", z(2, 0)), ("rank 0", a(2)), ("rank 8", x8), ("NaN and infinities", a([nan, inf, -inf, 0]))):
            case(op, what, f"y0 = {op}{attr}(x)", {"x": x}, f(x).astype(f32), 1)
    case("Crop", "empty", "y0 = Crop<border = [0, 0, 0, 0]>(x)", {"x": z(0, 1, 2, 2)}, z(0, 1, 2, 2), 1)
    case("Crop", "rank 0", "y0 = Crop<border = [0, 0, 0, 0]>(x)", {"x": a(1)}, REFUSED, 1)
    case("Crop", "negative borders", "y0 = Crop<border = [-1, 0, 0, 0]>(x)", {"x": o(1, 1, 2, 2)}, REFUSED, 1)
    case("Crop", "NaN stays", "y0 = Crop<border = [1, 0, 0, 0]>(x)", {"x": a([[[[1, nan]]]])}, a([[[[nan]]]]), 1)
    case("ImageScaler", "empty", "y0 = ImageScaler<bias = [1.0]>(x)", {"x": z(0, 1, 2, 2)}, z(0, 1, 2, 2), 1)
    case("ImageScaler", "rank 0", "y0 = ImageScaler<bias = [1.0]>(x)", {"x": a(1)}, REFUSED, 1)
    case("ImageScaler", "a bias of another length", "y0 = ImageScaler<bias = [1.0, 2.0]>(x)", {"x": o(1, 1, 1, 1)}, REFUSED, 1)
    case("ImageScaler", "NaN and infinities", "y0 = ImageScaler<bias = [1.0], scale = 2.0>(x)", {"x": a([[[[nan, inf, -inf]]]])}, a([[[[nan, inf, -inf]]]]), 1)
    s, e = a([0], I), a([1], I)
    case("DynamicSlice", "empty", "y0 = DynamicSlice(x, s, e)", {"x": z(0, 2), "s": s, "e": e}, z(0, 2), 1)
    case("DynamicSlice", "rank 0", "y0 = DynamicSlice(x, s, e)", {"x": a(1), "s": s, "e": e}, REFUSED, 1)
    case("DynamicSlice", "rank 8", "y0 = DynamicSlice(x, s, e, n)", {"x": x8, "s": a([-1], I), "e": a([2**62], I), "n": a([1], I)}, x8[:, 1:], 1)
    case("DynamicSlice", "an axis out of range", "y0 = DynamicSlice(x, s, e, n)", {"x": o(2), "s": s, "e": e, "n": a([1], I)}, REFUSED, 1)
    x = a([[1, 2], [3, 4]])
    case("Scatter", "empty", "y0 = Scatter(x, n, u)", {"x": x, "n": z(0, 2, t=I), "u": z(0, 2)}, x, 9)
    case("Scatter", "rank 0", "y0 = Scatter(x, n, u)", {"x": a(1), "n": a(0, I), "u": a(2)}, REFUSED, 9)
    case("Scatter", "beyond", "y0 = Scatter(x, n, u)", {"x": x, "n": a([[2, 0]], I), "u": o(1, 2)}, REFUSED, 9)
    case("Scatter", "below", "y0 = Scatter(x, n, u)", {"x": x, "n": a([[-3, 0]], I), "u": o(1, 2)}, REFUSED, 9)
    case("Scatter", "NaN and infinity", "y0 = Scatter(x, n, u)", {"x": x, "n": a([[1, 0]], I), "u": a([[nan, inf]])}, a([[1, inf], [nan, 4]]), 9)
    up = 'y0 = Upsample<mode = "{}">(x, s)'
    case("Upsample", "empty", up.format("nearest"), {"x": z(0, 2), "s": a([1, 2])}, z(0, 4), 9)
    case("Upsample", "rank 0 with scales", up.format("nearest"), {"x": a(1), "s": a([2])}, REFUSED, 9)
    case("Upsample", "a scale of 0", up.format("nearest"), {"x": o(2, 2), "s": a([1, 0])}, REFUSED, 9)
    case("Upsample", "a scale of NaN", up.format("nearest"), {"x": o(2, 2), "s": a([1, nan])}, REFUSED, 9)
    case("Upsample", "a scale of infinity", up.format("nearest"), {"x": o(2, 2), "s": a([1, inf])}, REFUSED, 9)
    case("Upsample", "NaN and infinity stay", up.format("nearest"), {"x": a([nan, inf]), "s": a([2])}, a([nan, nan, inf, inf]), 9)


def elementwise():
    for what, x in (("empty", z(0, 2)), ("rank 0", a(2)), ("rank 8", np.arange(8, dtype=f32).reshape(RANK8))):
        case("SwiGLU", what, "y0 = SwiGLU(x, z)", {"x": x, "z": x}, (x / (1 + np.exp(-x)) * x).astype(f32), 28)
        case("BitCast", what, "y0 = BitCast<to = 6>(x)", {"x": x}, x.view(i32) if x.ndim else np.array(2, f32).view(i32), 26)
        case("Dropout", what, "y0 = Dropout(x)", {"x": x}, x, 22)
        if what != "rank 8":
            case("MeanVarianceNormalization", what, "y0 = MeanVarianceNormalization<axes = [0]>(x)", {"x": x}, REFUSED if x.ndim == 0 else x, 13)
        codes = np.zeros(x.shape, u8)
        case("DequantizeLinear", what, "y0 = DequantizeLinear(x, s, z)", {"x": codes, "s": a(2), "z": a(1, u8)}, (codes - f32(1)) * f32(2))
        case("BitwiseNot", what, "y0 = BitwiseNot(x)", {"x": x.astype(i32)}, ~x.astype(i32))
        case("BitShift", what, 'y0 = BitShift<direction = "LEFT">(x, x)', {"x": x.astype(u8)}, np.left_shift(x.astype(u8), x.astype(u8)))
    case("SwiGLU", "NaN and infinities", "y0 = SwiGLU(x, z)", {"x": a([nan, inf, 0]), "z": a([1, 2, inf])}, a([nan, inf, nan]), 28)
    case("BitCast", "NaN keeps its bits", "y0 = BitCast<to = 6>(x)", {"x": a([nan, -inf, -0.0])}, a([nan, -inf, -0.0]).view(i32), 26)
    case("BitCast", "types of unlike sizes", "y0 = BitCast<to = 1>(x)", {"x": a([1], f64)}, REFUSED, 26)
    case("DynamicQuantizeLinear", "empty", "y0, y1, y2 = DynamicQuantizeLinear(x)", {"x": z(0, 2)}, [z(0, 2, t=u8), a(1), a(0, u8)])  # as zeros alone
    case("DynamicQuantizeLinear", "rank 0", "y0, y1, y2 = DynamicQuantizeLinear(x)", {"x": a(51)}, [a(255, u8), a(0.2), a(0, u8)])
    case("Dropout", "NaN and infinities", "y0 = Dropout(x)", {"x": a([nan, inf])}, a([nan, inf]), 22)
    case("MeanVarianceNormalization", "NaN", "y0 = MeanVarianceNormalization<axes = [1]>(x)", {"x": a([[nan, 1], [3, 3]])}, a([[nan, nan], [0, 0]]), 13)
    case("StringConcat", "rank 0", "y0 = StringConcat(x, z)", {"x": np.array("a"), "z": np.array("b")}, np.array("ab"), 20)
    for what, x in (("empty", text(0, 2)), ("rank 0", np.array("ab"))):
        case("RegexFullMatch", what, 'y0 = RegexFullMatch<pattern = "a."> (x)', {"x": x}, np.full(x.shape, True), 20)
    case("StringNormalizer", "empty", 'y0 = StringNormalizer<case_change_action = "UPPER">(x)', {"x": text(0)}, np.array([""]))
    case("StringNormalizer", "rank 0", 'y0 = StringNormalizer<case_change_action = "UPPER">(x)', {"x": np.array("ab")}, REFUSED)
    case("TfIdfVectorizer", "empty", 'y0 = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]>(x)',
         {"x": z(0, t=I)}, a([0]), 9)
    case("TfIdfVectorizer", "rank 0", 'y0 = TfIdfVectorizer<mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]>(x)',
         {"x": a(1, I)}, a([1]), 9)  # one token


def moved():
    case("Compress", "rank 0", "y0 = Compress(x, c)", {"x": a(3), "c": a([True], bool)}, a([3]))
    case("Compress", "rank 0 with an axis", "y0 = Compress<axis = 0>(x, c)", {"x": a(3), "c": a([True], bool)}, REFUSED)
    case("CenterCropPad", "rank 0", "y0 = CenterCropPad(x, s)", {"x": a(3), "s": a([1], I)}, REFUSED)
    for op in ("DepthToSpace", "SpaceToDepth"):
        case(op, "rank 0", f"y0 = {op}<blocksize = 2>(x)", {"x": a(3)}, REFUSED)
        case(op, "rank 8", f"y0 = {op}<blocksize = 1>(x)", {"x": np.arange(8, dtype=f32).reshape(RANK8)}, REFUSED)
        case(op, "NaN and infinity", f"y0 = {op}<blocksize = 1>(x)", {"x": a([[[[nan, inf]]]])}, a([[[[nan, inf]]]]))
    case("EyeLike", "rank 0", "y0 = EyeLike(x)", {"x": a(3)}, REFUSED, 22)
    for op in ("GatherElements", "GatherND"):
        case(op, "of rank 0", f"y0 = {op}(x, n)", {"x": a(3), "n": a(0, I)}, REFUSED)
    r8 = np.arange(8, dtype=f32).reshape(RANK8)
    case("GatherElements", "rank 8", "y0 = GatherElements<axis = 1>(x, n)", {"x": r8, "n": a([[[[[[[[1]]]]]]]], I)}, a([[[[[[[[r8[0, 1, 0, 0, 0, 0, 0, 0]]]]]]]]]))
    case("GatherND", "rank 8", "y0 = GatherND(x, n)", {"x": r8, "n": a([[0, -1]], I)}, r8[[0], [-1]])
    case("ScatterND", "of rank 0", "y0 = ScatterND(x, n, u)", {"x": a(3), "n": a([[0]], I), "u": a([1])}, REFUSED)
    case("ScatterND", "rank 8", "y0 = ScatterND(x, n, u)", {"x": r8, "n": a([[0, 1]], I), "u": r8[:, 0]}, np.concatenate([r8[:, :1], r8[:, :1]], 1))
    case("ReverseSequence", "empty", "y0 = ReverseSequence(x, n)", {"x": z(2, 0), "n": z(0, t=I)}, z(2, 0))
    case("ReverseSequence", "rank 0", "y0 = ReverseSequence(x, n)", {"x": a(3), "n": a([1], I)}, REFUSED)
    case("TensorScatter", "rank 0", "y0 = TensorScatter(x, u)", {"x": a(3), "u": a(1)}, REFUSED, 24)
    case("ConstantOfShape", "a shape of rank 0", "y0 = ConstantOfShape(x)", {"x": a(2, I)}, np.zeros(2, f32))
    case("Range", "a start that is empty", "y0 = Range(b, e, d)", {"b": z(0), "e": a(1), "d": a(1)}, REFUSED)
    for op in ("ArgMax", "ArgMin"):
        case(op, "rank 0", f"y0 = {op}(x)", {"x": a(3)}, REFUSED)
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        case(op, "rank 0", f"y0 = {op}(x)", {"x": a(3)}, REFUSED)
    case("Det", "rank 0", "y0 = Det(x)", {"x": a(3)}, REFUSED, 22)
    case("Det", "NaN and infinity", "y0 = Det(x)", {"x": a([[[nan, 0], [0, 1]], [[inf, 0], [0, 1]]])}, a([nan, inf]), 22)
    case("Optional", "empty", "q = Optional(x) y0 = OptionalGetElement(q)", {"x": z(0, 2)}, z(0, 2))
    case("Optional", "rank 0", "q = Optional(x) y0 = OptionalGetElement(q)", {"x": a(2)}, a(2))
    case("OptionalHasElement", "empty", "q = Optional(x) y0 = OptionalHasElement(q)", {"x": z(0, 2)}, np.array(True))
    case("OptionalHasElement", "rank 0", "q = Optional(x) y0 = OptionalHasElement(q)", {"x": a(2)}, np.array(True))
    seq = "q = SequenceConstruct(x, x) "
    for what, x in (("empty", z(0, 2)), ("rank 0", a(2))):
        case("SequenceAt", what, seq + "y0 = SequenceAt(q, n)", {"x": x, "n": a(1, I)}, x)
        case("SequenceInsert", what, seq + "r = SequenceInsert(q, x) y0 = SequenceLength(r)", {"x": x}, a(3, I))
        case("SequenceErase", what, seq + "r = SequenceErase(q) y0 = SequenceLength(r)", {"x": x}, a(1, I))
        case("ConcatFromSequence", what, seq + "y0 = ConcatFromSequence<axis = 0>(q)", {"x": x}, np.concatenate([x, x]) if x.ndim else REFUSED)
        case("SequenceMap", what, seq + "r = SequenceMap<body = g (e) => (f) { f = Neg(e) }>(q) y0 = SequenceAt(r, n)", {"x": x, "n": a(0, I)}, -x)
    case("SequenceMap", "a second sequence of another length", seq + "r = SequenceErase(q) s = SequenceMap<body = g (e, h) => (f) { f = Add(e, h) }>(q, r) y0 = SequenceLength(s)", {"x": a(2)}, REFUSED)
    case("If", "a condition of rank 0", "y0 = If<then_branch = g () => (p) { p = Neg(x) }, else_branch = g () => (p) { p = Abs(x) }>(c)", {"c": np.array(True), "x": a(2)}, a(-2))
    case("Loop", "empty state", "y0 = Loop<body = g (i, c, s) => (c2, t) { c2 = Identity(c) t = Neg(s) }>(n, , x)", {"n": a(3, I), "x": z(0, 2)}, z(0, 2))


def pooled():
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        attr = "<p = 2>" if "Lp" in op else ""
        case(op, "rank 0", f"y0 = {op}{attr}(x)", {"x": a(3)}, REFUSED, 22)
        case(op, "rank 8", f"y0 = {op}{attr}(x)", {"x": np.arange(8, dtype=f32).reshape(RANK8)},
             {"GlobalAveragePool": a([1.5, 5.5]), "GlobalMaxPool": a([3, 7]), "GlobalLpPool": a([14**0.5, 126**0.5])}[op].reshape(1, 2, 1, 1, 1, 1, 1, 1), 22)
        case(op, "NaN and infinity", f"y0 = {op}{attr}(x)", {"x": a([[[nan, 1], [inf, 1]]])}, a([[[nan], [inf]]]), 22)
    case("GlobalLpPool", "an empty batch", "y0 = GlobalLpPool<p = 2>(x)", {"x": z(0, 2, 3)}, z(0, 2, 1), 22)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        case(op, "rank 0", f"y0 = {op}<kernel_shape = [1]>(x)", {"x": a(3)}, REFUSED, 22)
        case(op, "infinity", f"y0 = {op}<kernel_shape = [2]>(x)", {"x": a([[[inf, 1, 2]]])}, a([[[inf, {"M": 2, "A": 1.5, "L": 5**0.5}[op[0]]]]]), 22)
    case("MaxRoiPool", "empty", "y0 = MaxRoiPool<pooled_shape = [1, 1]>(x, r)", {"x": o(1, 1, 2, 2), "r": z(0, 5)}, z(0, 1, 1, 1), 22)
    case("MaxRoiPool", "rank 0", "y0 = MaxRoiPool<pooled_shape = [1, 1]>(x, r)", {"x": a(1), "r": z(1, 5)}, REFUSED, 22)
    case("MaxRoiPool", "a batch below", "y0 = MaxRoiPool<pooled_shape = [1, 1]>(x, r)", {"x": o(1, 1, 2, 2), "r": a([[-1, 0, 0, 1, 1]])}, REFUSED, 22)
    case("MaxRoiPool", "a batch of NaN", "y0 = MaxRoiPool<pooled_shape = [1, 1]>(x, r)", {"x": o(1, 1, 2, 2), "r": a([[nan, 0, 0, 1, 1]])}, REFUSED, 22)
    case("MaxUnpool", "empty", "y0 = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, n)", {"x": z(0, 1, 1, 1), "n": z(0, 1, 1, 1, t=I)}, z(0, 1, 2, 2), 22)
    case("MaxUnpool", "rank 0", "y0 = MaxUnpool<kernel_shape = [2, 2]>(x, n)", {"x": a(1), "n": a(0, I)}, REFUSED, 22)
    case("RoiAlign", "rank 0", "y0 = RoiAlign(x, r, n)", {"x": a(1), "r": z(1, 4), "n": a([0], I)}, REFUSED, 22)
    case("LRN", "rank 0", "y0 = LRN<size = 3>(x)", {"x": a(1)}, REFUSED)
    case("LRN", "NaN and infinity", "y0 = LRN<size = 1>(x)", {"x": a([[[[nan]], [[1]]]])}, a([[[[nan]], [[1 / (1 + 1e-4) ** 0.75]]]]))
    case("NonMaxSuppression", "rank 0", "y0 = NonMaxSuppression(x, s)", {"x": a(1), "s": a(1)}, REFUSED)
    case("GridSample", "rank 0", "y0 = GridSample(x, g)", {"x": a(1), "g": z(1, 1, 1, 2)}, REFUSED, 22)
    case("GridSample", "places of NaN and infinity: 0", "y0 = GridSample(x, g)", {"x": o(1, 1, 2, 2), "g": a([[[[nan, 0], [inf, 0], [0, -inf], [0, 0]]]])}, a([[[[0, 0, 0, 1]]]]), 22)
    case("AffineGrid", "rank 0", "y0 = AffineGrid(x, s)", {"x": a(1), "s": a([1, 1, 2, 2], I)}, REFUSED)
    case("AffineGrid", "NaN", "y0 = AffineGrid(x, s)", {"x": a([[[nan, 0, 0], [0, 1, 0]]]), "s": a([1, 1, 1, 1], I)}, a([[[[nan, 0]]]]))
    case("Resize", "rank 0 with scales", "y0 = Resize(x, , s)", {"x": a(1), "s": a([2])}, REFUSED)
    case("Col2Im", "rank 0", "y0 = Col2Im(x, s, b)", {"x": a(1), "s": a([2], I), "b": a([1], I)}, REFUSED)
    case("Col2Im", "NaN and infinity", "y0 = Col2Im(x, s, b)", {"x": a([[[nan, 1], [inf, 2]]]), "s": a([3], I), "b": a([2], I)}, a([[[nan, inf, 2]]]))
    case("ImageDecoder", "no bytes", "y0 = ImageDecoder(x)", {"x": z(0, t=u8)}, REFUSED)
    case("ImageDecoder", "rank 0", "y0 = ImageDecoder(x)", {"x": a(1, u8)}, REFUSED)


def layers():
    case("Conv", "rank 0", "y0 = Conv(x, w)", {"x": a(1), "w": a(1)}, REFUSED, 22)
    case("ConvTranspose", "rank 0", "y0 = ConvTranspose(x, w)", {"x": a(1), "w": a(1)}, REFUSED, 22)
    case("ConvInteger", "rank 0", "y0 = ConvInteger(x, w)", {"x": a(1, u8), "w": a(1, u8)}, REFUSED)
    case("DeformConv", "empty", "y0 = DeformConv(x, w, d)", {"x": z(0, 1, 2, 2), "w": o(1, 1, 1, 1), "d": z(0, 2, 2, 2)}, z(0, 1, 2, 2), 22)
    case("DeformConv", "rank 0", "y0 = DeformConv(x, w, d)", {"x": a(1), "w": a(1), "d": a(1)}, REFUSED, 22)
    case("BatchNormalization", "rank 0", "y0 = BatchNormalization(x, s, s, s, s)", {"x": a(1), "s": a([1])}, REFUSED)
    case("InstanceNormalization", "rank 0", "y0 = InstanceNormalization(x, s, s)", {"x": a(1), "s": a([1])}, REFUSED)
    case("GroupNormalization", "an empty batch", "y0 = GroupNormalization<num_groups = 1>(x, s, s)", {"x": z(0, 2, 3), "s": o(2)}, z(0, 2, 3))
    case("GroupNormalization", "rank 0", "y0 = GroupNormalization<num_groups = 1>(x, s, s)", {"x": a(1), "s": a([1])}, REFUSED)
    for op in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        case(op, "rank 0", f"y0 = {op}(x, s)", {"x": a(1), "s": a([1])}, REFUSED, 23)
    case("SimplifiedLayerNormalization", "an empty batch", "y0 = SimplifiedLayerNormalization(x, s)", {"x": z(0, 2), "s": o(2)}, z(0, 2))
    case("SimplifiedLayerNormalization", "NaN and a row of zeros", "y0 = SimplifiedLayerNormalization(x, s)", {"x": a([[nan, 1], [0, 0]]), "s": o(2)}, a([[nan, nan], [0, 0]]))
    case("LpNormalization", "rank 0", "y0 = LpNormalization(x)", {"x": a(2)}, REFUSED, 22)
    case("LpNormalization", "empty", "y0 = LpNormalization(x)", {"x": z(0, 2)}, z(0, 2), 22)
    case("LpNormalization", "NaN", "y0 = LpNormalization(x)", {"x": a([[nan, 1], [3, 4]])}, a([[nan, nan], [0.6, 0.8]]), 22)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        case(op, "rank 0", f"y0 = {op}<hidden_size = 2>(x, w, r)", {"x": a(1), "w": o(1, gates * 2, 3), "r": o(1, gates * 2, 2)}, REFUSED, 22)
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        case(op, "rank 0", f"y0 = {op}(x, n)", {"x": a(1), "n": a(0, I)}, REFUSED)
    case("Attention", "rank 0", "y0 = Attention(q, q, q)", {"q": a(1)}, REFUSED, 24)
    case("RotaryEmbedding", "rank 0", "y0 = RotaryEmbedding(x, c, c)", {"x": a(1), "c": z(1, 1, 1)}, REFUSED, 23)
    w = o(2, 1, 2)
    case("CausalConvWithState", "an empty batch", "y0, y1 = CausalConvWithState(x, w)", {"x": z(0, 2, 3), "w": w}, [z(0, 2, 3), z(0, 2, 1)], 27)
    case("CausalConvWithState", "no steps", "y0, y1 = CausalConvWithState(x, w)", {"x": z(1, 2, 0), "w": w}, [z(1, 2, 0), z(1, 2, 1)], 27)
    case("CausalConvWithState", "rank 0", "y0, y1 = CausalConvWithState(x, w)", {"x": a(1), "w": w}, REFUSED, 27)
    case("CausalConvWithState", "NaN spreads to what follows", "y0, y1 = CausalConvWithState(x, w)", {"x": a([[[1, nan, 2, 3]]]), "w": o(1, 1, 2)}, [a([[[1, nan, nan, 5]]]), a([[[3]]])], 27)
    linear = 'y0, y1 = LinearAttention<q_num_heads = 1, kv_num_heads = 1, update_rule = "linear", scale = 1.0>(q, q, q)'
    case("LinearAttention", "an empty batch", linear, {"q": z(0, 2, 2)}, [z(0, 2, 2), z(0, 1, 2, 2)], 27)
    case("LinearAttention", "no steps", linear, {"q": z(1, 0, 2)}, [z(1, 0, 2), z(1, 1, 2, 2)], 27)
    case("LinearAttention", "rank 0", linear, {"q": a(1)}, REFUSED, 27)
    case("LinearAttention", "NaN", linear, {"q": a([[[1], [nan]]])}, [a([[[1], [nan]]]), a([[[[nan]]]])], 27)
    flex = "y0 = ai.onnx.preview.FlexAttention(q, q, q)"
    case("FlexAttention", "an empty batch", flex, {"q": z(0, 1, 2, 4)}, z(0, 1, 2, 4), 26)
    case("FlexAttention", "rank 0", flex, {"q": a(1)}, REFUSED, 26)
    case("FlexAttention", "NaN", flex, {"q": a([[[[nan]]]])}, a([[[[nan]]]]), 26)


def signals():
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        case(op, "a length of rank 1", f"y0 = {op}(n)", {"n": z(0, t=I)}, REFUSED)
    mel = "y0 = MelWeightMatrix(n, d, r, l, h)"
    args = lambda **k: {**dict(n=a(2, I), d=a(8, I), r=a(16, I), l=a(0), h=a(8)), **k}
    case("MelWeightMatrix", "no bins", mel, args(n=a(0, I)), z(5, 0))
    case("MelWeightMatrix", "negative bins", mel, args(n=a(-1, I)), REFUSED)
    case("MelWeightMatrix", "a number that is empty", mel, args(d=z(0, t=I)), REFUSED)
    case("MelWeightMatrix", "more bins than memory", mel, args(n=a(2**62, I)), REFUSED)
    case("MelWeightMatrix", "an edge of NaN", mel, args(l=a(nan)), REFUSED)
    stft = "y0 = STFT<onesided = 0>(x, s, , l)"
    case("STFT", "an empty batch", stft, {"x": z(0, 4, 1), "s": a(2, I), "l": a(2, I)}, z(0, 2, 2, 2))
    case("STFT", "rank 0", stft, {"x": a(1), "s": a(2, I), "l": a(2, I)}, REFUSED)
    case("STFT", "a step of 0", stft, {"x": o(1, 4, 1), "s": a(0, I), "l": a(2, I)}, REFUSED)
    case("STFT", "a frame longer than the signal", stft, {"x": o(1, 4, 1), "s": a(2, I), "l": a(5, I)}, REFUSED)
    case("STFT", "NaN stays in its frame", stft, {"x": a([[[nan], [1], [1], [1]]]), "s": a(2, I), "l": a(2, I)}, a([[[[nan, 0], [nan, 0]], [[2, 0], [0, 0]]]]))


def drawn():
    """Random operators: what is drawn has the input's shape."""
    shape = "s = Shape(r) y0 = Identity(s)"
    for op in ("RandomNormalLike", "RandomUniformLike"):
        case(op, "rank 0", f"r = {op}(x) {shape}", {"x": a(1)}, z(0, t=I), 22)
    for what, x in (("empty", z(0, 2)), ("rank 0", a(0.5)), ("rank 8", np.full(RANK8, 0.5, f32))):
        case("Bernoulli", what, f"r = Bernoulli(x) {shape}", {"x": x}, a(x.shape, I), 22)
    case("Bernoulli", "probabilities 0 and 1", "y0 = Bernoulli(x)", {"x": a([0, 1])}, a([0, 1]), 22)
    case("Multinomial", "empty", f"r = Multinomial(x) {shape}", {"x": z(0, 3)}, a([0, 1], I), 22)
    case("Multinomial", "rank 0", f"r = Multinomial(x) {shape}", {"x": a(1)}, REFUSED, 22)
    case("Multinomial", "no classes", f"r = Multinomial(x) {shape}", {"x": z(2, 0)}, REFUSED, 22)
    for op in ("RandomNormal", "RandomUniform"):
        case(op, "a shape with 0", f"r = {op}<shape = [2, 0]>() s = Shape(r) y0 = Add(s, n)", {"n": a(0, I)}, a([2, 0], I), 22)
        case(op, "rank 0", f"r = {op}<shape = []>() s = Shape(r) y0 = Add(s, n)", {"n": a(0, I)}, z(0, t=I), 22)
        case(op, "a negative dim", f"r = {op}<shape = [-1]>() s = Shape(r) y0 = Add(s, n)", {"n": a(0, I)}, REFUSED, 22)


def training():
    domain = "ai.onnx.preview.training."
    for what, x in (("empty", z(0, 2)), ("rank 0", a(2)), ("rank 8", o(*RANK8))):
        common = {"r": a(0.1), "t": a(0, I), "x": x, "g": x}
        case("Adagrad", what, f"y0, y1 = {domain}Adagrad<epsilon = 0.0>(r, t, x, g, h)", {**common, "h": x * 0},
             [(x - f32(0.1) * np.sign(x)).astype(f32), x * x], 21)
        case("Momentum", what, f'y0, y1 = {domain}Momentum<alpha = 0.5, beta = 1.0, mode = "standard", norm_coefficient = 0.0>(r, t, x, g, v)',
             {**common, "v": x * 0}, [(x - f32(0.1) * x).astype(f32), x], 21)
        case("Adam", what, f"y0, y1, y2 = {domain}Adam<alpha = 0.0, beta = 0.0, epsilon = 0.0>(r, t, x, g, v, h)",
             {**common, "v": x * 0, "h": x * 0}, [(x - f32(0.1) * np.sign(x)).astype(f32), x, x * x], 21)
    case("Adam", "a gradient of another shape", f"y0, y1, y2 = {domain}Adam(r, t, x, g, v, v)", {"r": a(0.1), "t": a(0, I), "x": o(2), "g": o(3), "v": o(2)}, REFUSED, 21)
    case("Adagrad", "a gradient of another shape", f"y0, y1 = {domain}Adagrad(r, t, x, g, v)", {"r": a(0.1), "t": a(0, I), "x": o(2), "g": o(3), "v": o(2)}, REFUSED, 21)
    case("Momentum", "NaN", f'y0, y1 = {domain}Momentum<alpha = 0.5, beta = 1.0, mode = "standard", norm_coefficient = 0.0>(r, t, x, g, v)',
         {"r": a(0.1), "t": a(0, I), "x": a([1]), "g": a([nan]), "v": a([0])}, [a([nan]), a([nan])], 21)


def everything():
    legacy()
    elementwise()
    moved()
    pooled()
    layers()
    signals()
    drawn()
    training()
