"""NaN, infinities and high ranks for operators whose other cases have none: what moves elements moves these too, and
sums and products follow IEEE 754."""

import numpy as np

from case import a, case, f32, i32, i64, inf, nan, RANK8, REFUSED, u8

z = lambda *s, t=f32: np.zeros(s, t)
o = lambda *s, t=f32: np.ones(s, t)
I = i64
X = np.arange(8, dtype=f32).reshape(RANK8)
X[0, 1, 0, 0, 0, 0, 1, 0], X[0, 0, 0, 1, 0, 0, 0, 0], X[0, 1, 0, 1, 0, 0, 0, 0] = nan, inf, -inf
MS = "com.microsoft."


def odd(op, node, inputs, out, opset=21, what="rank 8, NaN and infinities", domain="", **more):
    case(op, what, node.replace("@", domain + op), inputs, out, opset, **more)


def moved():
    one = {"x": X}
    odd("CastLike", "y0 = @(x, t)", {**one, "t": a(1, np.float64)}, X.astype(np.float64))
    odd("CenterCropPad", "y0 = @<axes = [1]>(x, s)", {**one, "s": a([1], I)}, X[:, :1])
    odd("Compress", "y0 = @<axis = 1>(x, c)", {**one, "c": a([False, True], bool)}, X[:, 1:])
    odd("Concat", "y0 = @<axis = 3>(x, x)", one, np.concatenate([X, X], 3))
    odd("ConcatFromSequence", "q = SequenceConstruct(x, x) y0 = @<axis = -1>(q)", one, np.concatenate([X, X], -1))
    odd("ConstantOfShape", "y0 = @<value = float[1] {nan}>(s)", {"s": a(RANK8, I)}, np.full(RANK8, nan, f32))
    odd("DepthToSpace", "y0 = @<blocksize = 2>(x)", {"x": a([nan, inf, 1, -inf]).reshape(1, 4, 1, 1)}, a([[[[nan, inf], [1, -inf]]]]), what="NaN and infinities")
    odd("Expand", "y0 = @(x, s)", {**one, "s": a([3, 1, 1, 1, 1, 1, 1, 1], I)}, np.broadcast_to(X, (3,) + RANK8[1:]))
    odd("EyeLike", "y0 = @(x)", {"x": a([[nan, inf]])}, a([[1, 0]]), 22, "NaN and infinity do not count")
    odd("Flatten", "y0 = @<axis = -3>(x)", one, X.reshape(4, 2))
    odd("Gather", "y0 = @<axis = 3>(x, n)", {**one, "n": a([-1], I)}, X[:, :, :, 1:])
    odd("GatherElements", "y0 = @<axis = 1>(x, n)", {**one, "n": np.full((1,) * 8, 1, I)}, X[:1, 1:, :, :1, :, :, :1])
    odd("GatherND", "y0 = @(x, n)", {**one, "n": a([[0, 0, 0, 1]], I)}, X[[0], [0], [0], [1]])
    odd("GatherND", "y0 = @(x, n)", {**one, "n": a([[0, 0, 0, 1]], I)}, X[[0], [0], [0], [1]], domain=MS)
    for op in ("Optional", "OptionalGetElement"):
        odd(op, "q = Optional(x) y0 = OptionalGetElement(q)", one, X)
    odd("OptionalHasElement", "q = Optional(x) y0 = @(q)", one, np.array(True))
    odd("Pad", "y0 = @(x, p, v)", {**one, "p": a([0] * 9 + [1] + [0] * 6, I), "v": a(-inf)}, np.concatenate([X, np.full((1, 1, 1, 2, 1, 1, 2, 1), -inf, f32)], 1))
    odd("Pad", "y0 = @(x, p, v)", {**one, "p": a([0] * 9 + [1] + [0] * 6, I), "v": a([-inf])}, np.concatenate([X, np.full((1, 1, 1, 2, 1, 1, 2, 1), -inf, f32)], 1), domain=MS)
    odd("Reshape", "y0 = @(x, s)", {**one, "s": a([2, -1], I)}, X.reshape(2, 4))
    odd("ReverseSequence", "y0 = @<time_axis = 0, batch_axis = 1>(x, n)", {"x": X.reshape(2, 1, 4), "n": a([2], I)}, X.reshape(2, 1, 4)[::-1], what="NaN and infinities")
    odd("Scatter", "y0 = @<axis = 1>(x, n, u)", {**one, "n": np.zeros((1,) * 8, I), "u": np.full((1,) * 8, nan, f32)}, np.where(np.arange(8).reshape(RANK8) == 0, f32(nan), X), 9)
    odd("ScatterElements", "y0 = @<axis = 1>(x, n, u)", {**one, "n": np.zeros((1,) * 8, I), "u": np.full((1,) * 8, nan, f32)}, np.where(np.arange(8).reshape(RANK8) == 0, f32(nan), X))
    for how in ("add", "mul", "max", "min"):
        odd("ScatterElements", f'y0 = @<reduction = "{how}">(x, n, u)', {"x": a([1]), "n": a([0], I), "u": a([nan])}, a([nan]), 18, f"NaN, {how}")
        odd("ScatterND", f'y0 = @<reduction = "{how}">(x, n, u)', {"x": a([1]), "n": a([[0]], I), "u": a([nan])}, a([nan]), 18, f"NaN, {how}")
    odd("SequenceAt", "q = SequenceConstruct(x) y0 = @(q, n)", {**one, "n": a(0, I)}, X)
    odd("SequenceConstruct", "q = @(x, x) y0 = SequenceAt(q, n)", {**one, "n": a(-1, I)}, X)
    odd("SequenceInsert", "q = SequenceEmpty() r = @(q, x) y0 = SequenceAt(r, n)", {**one, "n": a(0, I)}, X)
    odd("SequenceErase", "q = SequenceConstruct(x, x) r = @(q) y0 = SequenceAt(r, n)", {**one, "n": a(0, I)}, X)
    odd("SequenceLength", "q = SequenceConstruct(x, x) y0 = @(q)", one, a(2, I))
    odd("SequenceMap", "q = SequenceConstruct(x) r = @<body = g (e) => (f) { f = Neg(e) }>(q) y0 = SequenceAt(r, n)", {**one, "n": a(0, I)}, -X)
    odd("Shape", "y0 = @(x)", one, a(RANK8, I))
    odd("Size", "y0 = @(x)", one, a(8, I))
    odd("Slice", "y0 = @(x, s, e, n, t)", {**one, "s": a([-1], I), "e": a([-9], I), "n": a([1], I), "t": a([-1], I)}, X[:, ::-1])
    odd("Split", "y0, y1 = @<axis = 1, num_outputs = 2>(x)", one, [X[:, :1], X[:, 1:]])
    odd("SplitToSequence", "q = @<axis = 1, keepdims = 0>(x) y0 = SequenceAt(q, n)", {**one, "n": a(1, I)}, X[:, 1])
    odd("Squeeze", "y0 = @(x)", one, X.squeeze())
    odd("TensorScatter", "y0 = @(x, u)", {"x": a([[[1, 2], [3, 4]]]), "u": a([[[nan, inf]]])}, a([[[nan, inf], [3, 4]]]), 24, "NaN and infinity")
    odd("Tile", "y0 = @(x, n)", {**one, "n": a([2, 1, 1, 1, 1, 1, 1, 2], I)}, np.tile(X, (2, 1, 1, 1, 1, 1, 1, 2)))
    odd("Transpose", "y0 = @(x)", one, X.T)
    odd("Trilu", "y0 = @(x)", {"x": X.reshape(1, 1, 1, 1, 1, 2, 2, 2)}, np.triu(X.reshape(1, 1, 1, 1, 1, 2, 2, 2)))
    odd("Trilu", "y0 = @(x)", {"x": X.reshape(1, 1, 1, 1, 1, 2, 2, 2)}, np.triu(X.reshape(1, 1, 1, 1, 1, 2, 2, 2)), domain=MS)
    odd("Unsqueeze", "y0 = @(x, n)", {"x": X[0], "n": a([0], I)}, X)
    odd("Upsample", 'y0 = @<mode = "nearest">(x, s)', {**one, "s": a([1, 1, 1, 2, 1, 1, 1, 1])}, X.repeat(2, 3), 9)
    odd("Where", "y0 = @(c, x, z)", {**one, "c": a(True, bool), "z": -X}, X)
    odd("Unique", "y0, y1, y2, y3 = @(x)", {"x": a([inf, 1, inf])}, [a([1, inf]), a([1, 0], I), a([1, 0, 1], I), a([1, 2], I)], what="infinities")
    odd("Unique", "y0, y1, y2 = @(x)", {"x": a([inf, 1, inf])}, [a([inf, 1]), a([0, 1, 0], I), a([2, 1], I)], domain=MS, what="infinities, by their first place")
    odd("ExpandDims", "y0 = @(x, n)", {"x": X[0], "n": a(0, i32)}, X, domain=MS)
    odd("OneHot", "y0 = @<axis = 0>(n, d, v)", {"n": np.ones(RANK8[:7], I), "d": a(2, I), "v": a([nan, inf])}, np.stack([np.full(RANK8[:7], nan, f32), np.full(RANK8[:7], inf, f32)]))
    odd("NonZero", "y0 = @(x)", one, np.array(np.nonzero(X), I))
    odd("TopK", "y0, y1 = @<axis = 1>(x, k)", {"x": np.arange(8, dtype=f32).reshape(RANK8), "k": a([1], I)}, [np.arange(8, dtype=f32).reshape(RANK8)[:, 1:], np.ones((1, 1) + RANK8[2:], I)], what="rank 8")
    odd("If", "y0 = @<then_branch = g () => (p) { p = Neg(x) }, else_branch = g () => (p) { p = Abs(x) }>(c)", {"c": np.array(False), **one}, np.abs(X))
    odd("Loop", "y0 = @<body = g (i, c, s) => (c2, t) { c2 = Identity(c) t = Neg(s) }>(n, , x)", {"n": a(3, I), **one}, -X)
    odd("Scan", "y0 = @<num_scan_inputs = 1, body = g (e) => (f) { f = Neg(e) }>(x)", {"x": X[0]}, -X[0], what="rank 7, NaN and infinities")
    odd("ArrayFeatureExtractor", "y0 = ai.onnx.ml.@(x, n)", {"x": a([[nan, inf]]), "n": a([1, 0], I)}, a([[inf, nan]]), 15, "NaN and infinity")
    odd("Not", "y0 = @(x)", {"x": X > 2}, ~(X > 2), what="rank 8")
    odd("StringConcat", "y0 = @(x, x)", {"x": np.full(RANK8, "a")}, np.full(RANK8, "aa"), 20, "rank 8")
    odd("RegexFullMatch", 'y0 = @<pattern = "a">(x)', {"x": np.full(RANK8, "a")}, np.full(RANK8, True), 20, "rank 8")


def computed():
    odd("Mean", "y0 = @(x, x)", {"x": X}, X)
    odd("PRelu", "y0 = @(x, s)", {"x": X, "s": a(0.5)}, np.where(X < 0, X * f32(0.5), X))
    odd("Shrink", "y0 = @<lambd = 1.0, bias = 0.5>(x)", {"x": X}, np.where(X < -1, X + f32(0.5), np.where(X > 1, X - f32(0.5), f32(0))))
    odd("Hardmax", "y0 = @<axis = 1>(x)", {"x": a([[-inf, inf], [inf, 1]])}, a([[0, 1], [1, 0]]), what="infinities")
    for op, f in (("CumSum", np.cumsum), ("CumProd", np.cumprod)):
        odd(op, "y0 = @(x, n)", {"x": X, "n": a(-5, I)}, f(X, axis=3).astype(f32), 26)
    odd("Einsum", 'y0 = @<equation = "abcdefgh->hgfedcba">(x)', {"x": X}, X.T)
    odd("Gemm", "y0 = @(x, z)", {"x": a([[nan, 1], [inf, 1]]), "z": a([[1], [1]])}, a([[nan], [inf]]), what="NaN and infinity")
    bn = "y0 = @<epsilon = 0.0>(x, s, b, b, s)"
    odd("BatchNormalization", bn, {"x": X, "s": o(2), "b": z(2)}, X)
    for op in ("InstanceNormalization", "GroupNormalization"):
        attr = "<num_groups = 2>" if op[0] == "G" else ""
        odd(op, f"y0 = @{attr}(x, s, b)", {"x": a([[[nan, 1], [2, 2]]]), "s": o(2), "b": z(2)}, a([[[nan, nan], [0, 0]]]), what="NaN stays in its part")
    odd("RMSNormalization", "y0 = @<epsilon = 0.0>(x, s)", {"x": a([[nan, 1], [1, 1]]), "s": o(2)}, a([[nan, nan], [1, 1]]), 23, "NaN stays in its row")
    odd("LayerNormalization", "y0 = @<epsilon = 0.0>(x, s)", {"x": np.tile(a([1, 3]), (1, 2, 1, 2, 1, 1, 2, 1)).reshape(1, 2, 1, 2, 1, 1, 2, 2), "s": o(2)}, np.tile(a([-1, 1]), (1, 2, 1, 2, 1, 1, 2, 1)), what="rank 8")
    odd("LpNormalization", "y0 = @<axis = 3>(x)", {"x": np.full(RANK8, 2, f32)}, np.full(RANK8, 0.5**0.5, f32), 22, "rank 8")
    odd("ConvTranspose", "y0 = @(x, w)", {"x": a([[[nan, 1]]]), "w": o(1, 1, 1)}, a([[[nan, 1]]]), 22, "NaN stays in its place")
    odd("MaxUnpool", "y0 = @<kernel_shape = [2], strides = [2]>(x, n)", {"x": a([[[nan]]]), "n": a([[[1]]], I)}, a([[[0, nan]]]), 22, "NaN")
    odd("RoiAlign", "y0 = @<output_height = 1, output_width = 1, sampling_ratio = 1>(x, r, n)", {"x": np.full((1, 1, 2, 2), nan, f32), "r": a([[0, 0, 1, 1]]), "n": a([0], I)}, a([[[[nan]]]]), 22, "NaN")
    odd("Multinomial", "y0 = @(x)", {"x": a([[0, -inf], [-inf, 0]])}, a([[0], [1]], i32), 22, "-infinity is never drawn")
    odd("Bernoulli", "r = @(x) s = Shape(r) y0 = Identity(s)", {"x": a([nan, inf])}, a([2], I), 22, "NaN and infinity")
    for op in ("RandomNormalLike", "RandomUniformLike"):
        odd(op, "r = @(x) s = Shape(r) y0 = Identity(s)", {"x": X}, a(RANK8, I), 22)
    nll = {"x": a([[nan, 1], [2, inf]]), "n": a([1, 0], I)}
    odd("NegativeLogLikelihoodLoss", 'y0 = @<reduction = "none">(x, n)', nll, a([-1, -2]), 22, "NaN and infinity that are not picked")
    odd("SoftmaxCrossEntropyLoss", 'y0 = @<reduction = "none">(x, n)', {"x": a([[nan, 1], [0, 0]]), "n": a([1, 0], I)}, a([nan, np.log(2)]), 21, "NaN stays in its row")
    case("Attention", "NaN", "y0 = Attention(q, q, q)", {"q": a([[[[nan]]], [[[1]]]])}, a([[[[nan]]], [[[1]]]]), 24)
    case("RotaryEmbedding", "NaN and infinity", "y0 = RotaryEmbedding(x, c, s)", {"x": a([[[[nan, 1, inf, 1]]]]), "c": o(1, 1, 2), "s": z(1, 1, 2)}, a([[[[nan, 1, nan, 1]]]]), 23)
    case("RotaryEmbedding", "NaN", f"y0 = {MS}RotaryEmbedding(x, n, c, s)", {"x": a([[[[nan, 1]]]]), "n": a([0], I), "c": o(1, 1), "s": z(1, 1)}, a([[[[nan, nan]]]]))
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        odd(op, "y0 = @<hidden_size = 1>(x, w, r)", {"x": a([[[nan], [0]]]), "w": o(1, gates, 1), "r": o(1, gates, 1)}, a([[[[nan], [0]]]]), 22, "NaN stays in its batch entry")
    odd("DFT", "y0 = @(x, , n)", {"x": a([[[nan], [1]], [[1], [1]]]), "n": a(1, I)}, a([[[nan, 0], [nan, 0]], [[2, 0], [0, 0]]]), 20, "NaN stays in its signal")
    odd("DequantizeLinear", "y0 = @(x, s)", {"x": a([0, 1, 2], u8), "s": a(inf)}, a([nan, inf, inf]), what="a scale of infinity")
    odd("DequantizeLinear", "y0 = @(x, s)", {"x": a([0, 1], u8), "s": a(nan)}, a([nan, nan]), domain=MS, what="a scale of NaN")
    odd("QuantizeLinear", "y0 = @(x, s, v)", {"x": np.full(RANK8, 3, f32), "s": a(1), "v": a(1, u8)}, np.full(RANK8, 4, u8), what="rank 8")
    odd("SwiGLU", "y0 = @(x, z)", {"x": a([nan]), "z": a([0])}, a([nan]), 28, "NaN times 0")
    odd("FlexAttention", "y0 = ai.onnx.preview.@(q, q, q)", {"q": np.full((1,) * 8, 1, f32)}, REFUSED, 26, "rank 8")
    odd("Attention", "y0 = @(q, q, q)", {"q": np.full((1,) * 8, 1, f32)}, REFUSED, 24, "rank 8")


def microsoft():
    scales = {"x": o(1, 1, t=u8), "w": o(1, 1, t=u8), "p": a(inf), "q": a(2)}
    odd("MatMulIntegerToFloat", "y0 = @(x, w, p, q)", scales, a([[inf]]), domain=MS, what="a scale of infinity")
    odd("QGemm", "y0 = @(x, p, v, w, q, v)", {**scales, "v": a(0, u8)}, a([[inf]]), domain=MS, what="a scale of infinity")
    odd("Inverse", "y0 = @(x)", {"x": a([[[inf]], [[2]]])}, a([[[0]], [[0.5]]]), domain=MS, what="infinity")
    odd("Range", "y0 = @(b, e, d)", {"b": a(0), "e": a(nan), "d": a(1)}, REFUSED, domain=MS, what="an end of NaN")
    odd("Range", "y0 = @(b, e, d)", {"b": a(0), "e": a(inf), "d": a(1)}, REFUSED, domain=MS, what="an end of infinity")
    odd("GridSample", "y0 = @(x, g)", {"x": o(1, 1, 2, 2), "g": a([[[[nan, 0], [inf, 0]]]])}, a([[[[0, 0]]]]), domain=MS, what="places of NaN and infinity: 0")
    odd("DecoderMaskedMultiHeadAttention", "y0 = @<num_heads = 1>(q, k, v)", {"q": o(2, 1, 1), "k": o(2, 1, 1, 1), "v": a([[[[nan]]], [[[inf]]]])}, a([[[nan]], [[inf]]]), domain=MS, what="NaN and infinity")
    odd("FusedConv", 'y0 = @<activation = "Relu">(x, w)', {"x": a([[[nan, -1]]]), "w": o(1, 1, 1)}, a([[[nan, 0]]]), domain=MS, what="NaN")
    odd("FusedConv", 'y0 = @<activation = "Relu">(x, w)', {"x": a([[[inf, -inf]]]), "w": o(1, 1, 1)}, a([[[inf, 0]]]), domain="infernode.", what="infinities")
    odd("MatMulBnb4", "y0 = @<K = 16, N = 1, block_size = 16, quant_type = 1>(x, w, q)", {"x": np.stack([np.where(np.arange(16) == 3, v, 1) for v in (nan, inf)]).astype(f32), "w": np.full(8, 0xFF, u8), "q": a([1])}, a([[nan], [inf]]), domain=MS, what="NaN and infinity")
    words = {"n": a([[0]], i32), "t": a([[0]], i32), "w": a([[nan, 1]]), "p": z(1, 2), "e": z(1, 2), "g": o(2), "b": z(2)}
    odd("EmbedLayerNormalization", "y0, y1 = @(n, t, w, p, e, g, b)", words, [a([[[nan, nan]]]), a([0], i32)], domain=MS, what="NaN")
    odd("GatherBlockQuantized", "y0 = @<bits = 4, block_size = 16, quantize_axis = 1>(t, n, q)", {"t": np.full((1, 8), 0x99, u8), "n": a([0], I), "q": a([[inf]])}, np.full((1, 16), inf, f32), domain=MS, what="a scale of infinity")
    odd("SkipLayerNormalization", "y0 = @(x, s, g)", {"x": o(*(1,) * 8), "s": o(*(1,) * 8), "g": o(1)}, z(*(1,) * 8), domain=MS, what="rank 8")


def training():
    step = {"r": a(0.1), "t": a(0, I), "x": a([1]), "g": a([nan]), "h": a([0])}
    odd("Adagrad", "y0, y1 = ai.onnx.preview.training.@(r, t, x, g, h)", step, [a([nan]), a([nan])], what="NaN")
    odd("Adam", "y0, y1, y2 = ai.onnx.preview.training.@(r, t, x, g, h, h)", step, [a([nan])] * 3, what="NaN")
    odd("DynamicSlice", "y0 = @(x, s, e)", {"x": a([1, nan, inf]), "s": a([1], I), "e": a([3], I)}, a([nan, inf]), 1, "NaN and infinity")


def machine_learning():
    odd("LinearClassifier", "y0, y1 = ai.onnx.ml.@<coefficients = [1.0, -1.0], intercepts = [0.0, 0.0], classlabels_ints = [5, 9]>(x)", {"x": a([[inf], [-inf]])}, [a([5, 9], I), a([[inf, -inf], [-inf, inf]])], 15, "infinities")
    odd("Normalizer", 'y0 = ai.onnx.ml.@<norm = "L2">(x)', {"x": a([[nan, 1], [3, 4]])}, a([[nan, nan], [0.6, 0.8]]), 15, "NaN stays in its row")
    tree = ('nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], '
            "nodes_values = [0.5, 0.0, 0.0], nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_treeids = [0, 0], class_nodeids = [1, 2], "
            "class_ids = [0, 1], class_weights = [1.0, 1.0], classlabels_int64s = [5, 9]")
    odd("TreeEnsembleClassifier", f"y0, y1 = ai.onnx.ml.@<{tree}>(x)", {"x": a([[nan], [-inf]])}, [a([9, 5], I), a([[0, 1], [1, 0]])], 15, "NaN goes to no, -infinity to yes")
    svc = 'kernel_type = "LINEAR", coefficients = [1.0, -1.0], support_vectors = [1.0, 2.0], vectors_per_class = [1, 1], rho = [0.0], classlabels_ints = [5, 9]'
    odd("SVMClassifier", f"y0, y1 = ai.onnx.ml.@<{svc}>(x)", {"x": np.full((1,) * 8, 1, f32)}, REFUSED, 15, "rank 8")
    eight = np.full((1,) * 8, 3, f32)
    for op, attr, out in (("Scaler", "scale = [2.0], offset = [0.0]", eight * 2), ("Normalizer", 'norm = "L1"', eight / 3), ("LinearRegressor", "coefficients = [1.0]", REFUSED)):
        odd(op, f"y0 = ai.onnx.ml.@<{attr}>(x)", {"x": eight}, out, 15, "rank 8")
    odd("Binarizer", "y0 = ai.onnx.ml.@<threshold = 1.0>(x)", {"x": X}, (X > 1).astype(f32), 15)


def everything():
    moved()
    computed()
    microsoft()
    machine_learning()
    training()
