"""Eight axes for what takes any number of them, and what an operator of a fixed rank says of eight; NaN for operators
that quantize or classify, infinities for those that attend or train;
batches that are broadcast, axes and integers at their limits."""

import numpy as np
from scipy import special

from case import a, case, f32, i8, i32, i64, inf, nan, RANK8, REFUSED, u8, UNSUPPORTED

z = lambda *s, t=f32: np.zeros(s, t)
o = lambda *s, t=f32: np.ones(s, t)
I = i64
MS, ML, OWN = "com.microsoft.", "ai.onnx.ml.", "infernode."
X = np.arange(1, 9, dtype=f32).reshape(RANK8)
EIGHT = np.ones((1,) * 8, f32)
BYTES = EIGHT.astype(u8)
COLUMNS = X.reshape(1, 2, 1, 2, 1, 1, 1, 2)
ONES = "[1, 1, 1, 1, 1, 1]"


def odd(op, what, node, inputs, out, opset=22, domain="", **more):
    case(op, what, node.replace("@", domain + op), inputs, out, opset, **more)


def rank8(op, node, inputs, out, opset=22, domain="", **more):
    odd(op, "rank 8", "y0 = " + node if "@" == node[0] else node, inputs, out, opset, domain, **more)


def standard():
    for what, t, out in (("empty", "float[0, 2] {}", z(0, 2)), ("rank 0", "float {2}", a(2)), ("NaN and infinity", "float[2] {nan, inf}", a([nan, inf]))):
        odd("Constant", what, f"y0 = @<value = {t}>()", {}, out)
    rank8("Constant", f"@<value = float[{','.join(map(str, RANK8))}] {{1, 2, 3, 4, 5, 6, 7, 8}}>()", {}, X)
    planes = X.reshape(2, 4)
    normal = ((planes - planes.mean(1, keepdims=True)) / planes.std(1, keepdims=True) * a([[1], [2]]) + a([[0], [3]])).reshape(RANK8)
    for op, attributes in (("GroupNormalization", "num_groups = 2, "), ("InstanceNormalization", "")):
        rank8(op, f"@<{attributes}epsilon = 0.0>(x, s, b)", {"x": X, "s": a([1, 2]), "b": a([0, 3])}, normal)
    rank8("LRN", "@<size = 3, alpha = 1.5, beta = 0.5>(x)", {"x": X}, X / np.sqrt(1 + 0.5 * (X * X).sum(1, keepdims=True)))
    n = a([0, 1, 1, 0], I).reshape(1, 1, 2, 1, 1, 2, 1)
    for op, scores in (("NegativeLogLikelihoodLoss", X), ("SoftmaxCrossEntropyLoss", special.log_softmax(X, 1))):
        loss = -np.take_along_axis(scores, n[:, None], 1)[:, 0]
        rank8(op, '@<reduction = "none">(x, n)', {"x": X, "n": n}, loss)
        rank8(op, "@(x, n)", {"x": X, "n": n}, loss.mean())
    rank8("RandomUniform", f"@<low = 2.0, high = 2.0, shape = {list(RANK8)}>()", {}, np.full(RANK8, 2, f32))
    rank8("RandomNormal", f"@<mean = 2.0, scale = 0.0, shape = {list(RANK8)}>()", {}, np.full(RANK8, 2, f32))
    scales = {"x": X, "s": a([1, 1, 1, 2, 1, 1, 1, 1])}
    rank8("Resize", '@<mode = "nearest">(x, , s)', scales, X.repeat(2, 3))
    low, high = X[:, :, :, :1], X[:, :, :, 1:]
    rank8("Resize", '@<mode = "linear">(x, , s)', scales, np.concatenate([low, 0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high, high], 3))
    rank8("ReverseSequence", "@<time_axis = 0, batch_axis = 1>(x, n)", {"x": X.reshape(2, 1, 1, 2, 1, 1, 2, 1), "n": a([2], I)}, X.reshape(2, 1, 1, 2, 1, 1, 2, 1)[::-1])
    rms = COLUMNS / np.sqrt((COLUMNS * COLUMNS).mean(-1, keepdims=True)) * a([1, 2])
    for domain in ("", MS):
        rank8("SimplifiedLayerNormalization", "@<epsilon = 0.0>(x, g)", {"x": COLUMNS, "g": a([1, 2])}, rms, domain=domain)
    rank8("TensorScatter", "@(x, u, n)", {"x": X, "u": -X[:, :, :, :, :, :, :1], "n": a([1], I)}, np.concatenate([X[:, :, :, :, :, :, :1], -X[:, :, :, :, :, :, :1]], 6), 24)
    rank8("DFT", "@(x, , n)", {"x": a([1, 2]).reshape((1,) * 6 + (2, 1)), "n": a(-2, I)}, a([[3, 0], [-1, 0]]).reshape((1,) * 6 + (2, 2)), 20)
    rank8("MaxUnpool", "@<kernel_shape = [1, 1, 1, 1, 1, 2], strides = [1, 1, 1, 1, 1, 2]>(x, n)", {"x": EIGHT, "n": EIGHT.astype(I)}, a([0, 1]).reshape((1,) * 7 + (2,)))


def microsoft():
    ms = lambda *args, **more: rank8(*args, opset=21, domain=MS, **more)
    biased = COLUMNS + a([1, -6])
    ms("BiasGelu", "@(x, b)", {"x": COLUMNS, "b": a([1, -6])}, (biased * special.ndtr(biased)).astype(f32))
    ms("SkipSimplifiedLayerNormalization", "@<epsilon = 0.0>(x, x, g)", {"x": COLUMNS, "g": a([1, 2])},
       COLUMNS / np.sqrt((COLUMNS * COLUMNS).mean(-1, keepdims=True)) * a([1, 2]))
    codes = np.full((2,) + (1,) * 6 + (8,), 0x99, u8)
    ms("GatherBlockQuantized", "@<bits = 4, block_size = 16, quantize_axis = 7>(t, n, q)", {"t": codes, "n": a([1], I), "q": a([3, 2]).reshape((2,) + (1,) * 7)}, np.full((1,) * 7 + (16,), 2, f32))
    rows, w = a([255, 0, 51, 1, 2, 3, 4, 5]).reshape(COLUMNS.shape), a([[1, 2], [3, 4]], u8)
    ms("DynamicQuantizeMatMul", "@(x, w, q)", {"x": rows, "w": w, "q": a(2)}, 2 * rows @ w.astype(f32))
    ms("MatMulIntegerToFloat", "@(x, w, p, q)", {"x": rows.astype(u8), "w": w, "p": a(0.5), "q": a(2)}, rows @ w.astype(f32))
    wide = o(*(1,) * 7, 16)
    ms("MatMulNBits", "@<K = 16, N = 2, bits = 4, block_size = 16>(x, w, q)", {"x": wide, "w": np.full((2, 1, 8), 0x99, u8), "q": a([[1], [2]])}, a([16, 32]).reshape((1,) * 7 + (2,)))
    ms("MatMulBnb4", "@<K = 16, N = 2, block_size = 16, quant_type = 1>(x, w, q)", {"x": wide, "w": np.full(16, 0xFF, u8), "q": a([1, 2])}, a([16, 32]).reshape((1,) * 7 + (2,)))
    codes, half = X.astype(u8), {"s": a(0.5), "v": a(1, u8)}
    ms("QLinearConcat", "@<axis = -5>(s, v, x, s, v, x, q, v)", {**half, "x": codes, "q": a(1)}, np.concatenate([codes, 2 * codes - 1], 3).astype(u8))
    ms("QLinearWhere", "@(c, x, s, v, w, q, v, s, v)", {"c": codes > 4, "x": codes, **half, "w": a(3, u8), "q": a(1)}, np.where(codes > 4, codes, u8(5)))
    ms("QLinearSoftmax", "@<axis = -2, opset = 13>(x, s, v, q, n)", {"x": codes, **half, "q": a(1 / 256), "n": a(0, u8)}, np.rint(special.softmax(0.5 * X, 6) * 256).astype(u8))
    ms("QLinearGlobalAveragePool", "@(x, s, v, s, v)", {"x": a([1, 2, 3, 2, 5, 6, 7, 6], u8).reshape(RANK8), **half}, a([2, 6], u8).reshape(1, 2, 1, 1, 1, 1, 1, 1))
    rank8("FusedMatMul", "@<alpha = 2.0>(x, w, b)", {"x": COLUMNS, "w": w.astype(f32), "b": a([1, -1])}, 2 * COLUMNS @ w.astype(f32) + a([1, -1]), domain=OWN)


def weights(mode, place, length):
    """What each of `length` elements in a row weighs at a place, where nothing lies around them."""
    far = np.abs(np.arange(length) - (np.rint(place) if mode == "nearest" else place))
    if mode == "cubic":
        near, other = 1.25 * far**3 - 2.25 * far**2 + 1, -0.75 * (far**3 - 5 * far**2 + 8 * far - 4)
        return np.where(far <= 1, near, np.where(far < 2, other, 0))
    return np.maximum(0, 1 - far) if mode == "linear" else far == 0


def grid_samples():
    """Any number of spatial axes: one after the other is summed up."""
    for x in (X, np.arange(1, 97, dtype=f32).reshape(1, 1, 2, 3, 2, 2, 4)):
        sizes = x.shape[2:]
        points = np.stack([np.linspace(-0.9, 1.1, len(sizes), dtype=f32), np.zeros(len(sizes), f32)])
        for mode in ("nearest", "linear", "cubic"):
            out = []
            for point in points:
                value = x[0].astype(np.float64)
                for length, at in zip(reversed(sizes), point):
                    value = value @ weights(mode, ((at + 1) * length - 1) / 2, length)
                out.append(value)
            out = np.stack(out, 1).astype(f32).reshape((1, x.shape[1], 2) + (1,) * (len(sizes) - 1))
            odd("GridSample", f"{len(sizes)} spatial axes, {mode}", f'y0 = @<mode = "{mode}">(x, g)', {"x": x, "g": points.reshape((1, 2) + (1,) * (len(sizes) - 1) + (-1,))}, out)
    many = 26
    odd("GridSample", "too many elements for a sum", "y0 = @(x, x)", {"x": np.ones((1,) * (many + 1) + (many,), f32)}, UNSUPPORTED)


def windows():
    """More spatial axes than the three that convolutions and pools take here."""
    one, half = {"x": EIGHT}, {"s": a(0.5), "v": a(1, u8)}
    for op in ("AveragePool", "LpPool", "MaxPool"):
        rank8(op, f"@<kernel_shape = {ONES}>(x)", one, UNSUPPORTED)
    for op in ("Conv", "ConvTranspose"):
        rank8(op, "@(x, x)", one, UNSUPPORTED)
    rank8("DeformConv", "@(x, x, x)", one, UNSUPPORTED)
    rank8("ConvInteger", "@(x, x)", {"x": BYTES}, UNSUPPORTED)
    for domain in ("", MS):
        rank8("QLinearConv", "@(x, s, v, x, s, v, s, v)", {"x": BYTES, **half}, UNSUPPORTED, domain=domain)
    rank8("QLinearAveragePool", f"@<kernel_shape = {ONES}>(x, s, v, s, v)", {"x": BYTES, **half}, UNSUPPORTED, domain=MS)
    rank8("NhwcMaxPool", f"@<kernel_shape = {ONES}>(x)", {"x": BYTES}, UNSUPPORTED, domain=MS)
    for domain in (MS, OWN):
        rank8("FusedConv", '@<activation = "Relu">(x, x)', one, UNSUPPORTED, domain=domain)
    rank8("GridSample", "@(x, x)", one, REFUSED)  # six coordinates name a place


def fixed():
    """Operators whose definition fixes the rank refuse eight axes."""
    one, numbers, words = {"x": EIGHT}, {"n": EIGHT.astype(I)}, {"n": EIGHT.astype(i32)}
    rank8("CausalConvWithState", "y0, y1 = @(x, w)", {**one, "w": o(1, 1, 2)}, REFUSED, 27)
    rank8("ConstantOfShape", "@(n)", numbers, REFUSED, 21)
    rank8("LinearAttention", 'y0, y1 = @<q_num_heads = 1, kv_num_heads = 1, update_rule = "linear", scale = 1.0>(x, x, x)', one, REFUSED, 27)
    rank8("MelWeightMatrix", "@(n, d, r, l, h)", {"n": X.astype(I), "d": a(8, I), "r": a(16, I), "l": a(0), "h": a(8)}, REFUSED)
    for domain in ("", MS):
        for x, out in ((X, REFUSED), (EIGHT, a([1, 2]))):  # one element is a number, whatever its rank
            rank8("Range", "@(x, e, d)", {"x": x, "e": a(3), "d": a(1)}, out, domain=domain)
    rank8("TfIdfVectorizer", '@<mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, ngram_counts = [0], ngram_indexes = [0], pool_int64s = [1]>(n)', numbers, REFUSED, 9)
    q = {"s": a(0.5), "v": a(1, u8)}
    rank8("DynamicQuantizeLSTM", "@<hidden_size = 2>(x, w, r, , , , , , s, v, s, v)", {**one, "w": z(1, 3, 8, t=i8), "r": z(1, 2, 8, t=i8), "s": o(1), "v": z(1, t=i8)}, REFUSED, domain=MS)
    rank8("EmbedLayerNormalization", "y0, y1 = @(n, n, w, p, e, g, b)", {**words, "w": o(3, 2), "p": o(4, 2), "e": o(2, 2), "g": o(2), "b": z(2)}, REFUSED, domain=MS)
    rank8("QEmbedLayerNormalization", "y0, y1 = @(n, n, w, p, e, g, g, , s, s, s, s, s, v, v, v, v, v)", {**words, "w": o(3, 2, t=u8), "p": o(4, 2, t=u8), "e": o(2, 2, t=u8), "g": o(2, t=u8), **q}, REFUSED, domain=MS)
    rank8("GroupQueryAttention", "@<num_heads = 2, kv_num_heads = 1>(x, k, k, , , n, t)", {**one, "k": o(1, 1, 2), "n": a([0], i32), "t": a(1, i32)}, REFUSED, domain=MS)
    rank8("QAttention", "@<num_heads = 1>(x, w, b, s, s)", {"x": BYTES, "w": o(1, 3, t=u8), "b": o(3), "s": a(1)}, REFUSED, domain=MS)
    rank8("QGemm", "@(x, s, v, x, s, v)", {"x": BYTES, **q}, REFUSED, domain=MS)
    rank8("RotaryEmbedding", "@(x, n, c, c)", {**one, "n": a([0], I), "c": o(1, 1)}, REFUSED, domain=MS)
    rank8("Unique", "@(x)", one, REFUSED, domain=MS)


def machine_learning():
    """Rows and columns are all that these operators know."""
    tree = 'nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0], nodes_modes = ["LEAF"], nodes_values = [0.0], nodes_truenodeids = [0], nodes_falsenodeids = [0], '
    leaf = lambda name: f"{name}_treeids = [0], {name}_nodeids = [0], {name}_ids = [0], {name}_weights = [1.0]"
    new = ("n_targets = 1, tree_roots = [0], nodes_featureids = [0], nodes_modes = uint8[1] {0}, nodes_splits = float[1] {0.5}, nodes_truenodeids = [0], "
           "nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 0], leaf_weights = float[2] {1.0, 2.0}")
    rank8("Imputer", "@<imputed_value_floats = [7.0, 9.0], replaced_value_float = 1.0>(x)", {"x": COLUMNS}, np.where(COLUMNS == 1, f32(7), COLUMNS), 15, ML)
    for op, attributes in (("FeatureVectorizer", "inputdimensions = [1]"),
                           ("LinearClassifier", "coefficients = [1.0, -1.0], intercepts = [0.0, 0.0], classlabels_ints = [5, 9]"),
                           ("SVMRegressor", 'kernel_type = "LINEAR", coefficients = [1.0], support_vectors = [1.0], n_supports = 1, rho = [0.5]'),
                           ("TreeEnsemble", new), ("TreeEnsembleClassifier", tree + leaf("class") + ", classlabels_int64s = [5]"), ("TreeEnsembleRegressor", tree + leaf("target"))):
        rank8(op, ("y0, y1 = " if "Classifier" in op else "y0 = ") + f"@<{attributes}>(x)", {"x": EIGHT}, REFUSED, 15, ML)
    rank8("ZipMap", "q = @<classlabels_int64s = [1]>(x) y0 = Identity(x)", {"x": EIGHT}, REFUSED, 15, ML)


def unreal():
    """Sums follow IEEE 754, a comparison with NaN fails, and a quantized value has no NaN, so that it becomes 0 (the zero
    point); a range that is quantized is that of the numbers."""
    linear = "coefficients = [1.0, 2.0, -1.0, 0.0], intercepts = [0.0, 0.0], classlabels_ints = [5, 9]"
    odd("LinearClassifier", "NaN stays in its row, where all classes are alike", f"y0, y1 = @<{linear}>(x)", {"x": a([[nan, 1], [0, 1]])}, [a([5, 5], I), a([[nan, nan], [2, 0]])], 15, ML)
    odd("LinearClassifier", "NaN is not above 0", "y0, y1 = @<coefficients = [1.0, 2.0], intercepts = [0.0], classlabels_ints = [5, 9]>(x)", {"x": a([[nan, 1], [0, 1]])}, [a([5, 9], I), a([[nan, nan], [-1, 2]])], 15, ML)
    svc = 'kernel_type = "LINEAR", coefficients = [1.0, -1.0], support_vectors = [1.0, 0.0, 0.0, 1.0], vectors_per_class = [1, 1], rho = [0.0], classlabels_ints = [5, 9]'
    odd("SVMClassifier", "NaN, and infinity times 0, vote for the second class", f"y0, y1 = @<{svc}>(x)", {"x": a([[nan, 1], [0, 1], [1, 0], [inf, 1]])},
        [a([9, 9, 5, 9], I), a([[nan, nan], [1, -1], [-1, 1], [nan, nan]])], 15, ML)
    odd("FusedConv", "NaN", 'y0 = @<activation = "Relu">(x, w)', {"x": a([[[nan, -1]]]), "w": o(1, 1, 1)}, a([[[nan, 0]]]), domain=OWN)
    scales = {"x": o(1, 1, t=u8), "w": o(1, 1, t=u8), "p": a(nan), "q": a(2)}
    odd("MatMulIntegerToFloat", "a scale of NaN", "y0 = @(x, w, p, q)", scales, a([[nan]]), domain=MS)
    odd("QGemm", "a scale of NaN", "y0 = @(x, p, v, w, q, v)", {**scales, "v": a(0, u8)}, a([[nan]]), domain=MS)
    bytes_ = {"x": o(1, 1, 1, t=u8), "w": o(1, 3, t=u8), "b": o(3), "s": a(1)}
    odd("QAttention", "a bias of NaN", "y0 = @<num_heads = 1>(x, w, b, s, s)", {**bytes_, "b": a([0, 0, nan])}, a([[[nan]]]), domain=MS)
    words = {"n": z(1, 1, t=i32), "w": a([[1, 3]], u8), "g": o(2, t=u8), "s": a(1), "v": a(0, u8), "p": a(nan)}
    odd("QEmbedLayerNormalization", "a scale of NaN", "y0, y1 = @(n, n, w, w, w, g, g, , p, s, s, s, s, v, v, v, v, v)", words, [a([[[nan, nan]]]), a([0], i32)], domain=MS)
    codes = {"w": o(1, 1, 4, t=i8), "s": o(1), "v": z(1, t=i8)}
    odd("DynamicQuantizeLSTM", "a scale of NaN", "y0 = @<hidden_size = 1>(x, w, w, , , , , , p, v, s, v)", {"x": o(1, 1, 1), **codes, "p": a([nan])}, a([[[[nan]]]]), domain=MS)
    for what, x, out in (("NaN does not count", [1, nan, -1], [[254, 127, 0], 2 / 255, 127]), ("NaN in a long row", [nan] + [5] * 40 + [nan], [[0] + [255] * 40 + [0], 5 / 255, 0]),
                         ("NaN alone", [nan], [[0], 1, 0]), ("infinity", [inf, 1], [[0, 0], inf, 0])):
        odd("DynamicQuantizeLinear", what, "y0, y1, y2 = @(x)", {"x": a(x)}, [a(out[0], u8), a(out[1]), a(out[2], u8)])
    for what, x, out in (("NaN does not count", [nan, 255, 51], 2 * (255 * 2 + 51 * 3)), ("infinity is a scale, times 0", [inf, 1, 1], nan)):
        odd("DynamicQuantizeMatMul", what, "y0 = @(x, w, q)", {"x": a([x]), "w": a([[1], [2], [3]], u8), "q": a(2)}, a([[out]]), domain=MS)
    # A scale times sums of 4 and 0, and of 3 and -2; channels that are joined, and each by itself.
    w, x, taps = a([[1, 3], [2, 3]], u8), a([[[0], [5]]], u8), a([2, 2], u8)
    for t, least, most in ((u8, 0, 255), (i8, -128, 127)):
        args = {"n": a(nan), "s": a(0.5), "v": a(3, u8), "z": a(7, t)}
        for op, call, inputs, sums, domain in (
            ("QLinearMatMul", "(x, n, v, w, s, v, s, z)", {"x": x[:, :, 0], "w": w}, a([[4, 0]]), ""),
            ("QGemm", "(x, n, v, w, s, v, , s, z)", {"x": x[:, :, 0], "w": w}, a([[4, 0]]), MS),
            ("QLinearConv", "(x, n, v, w, s, v, s, z)", {"x": x, "w": taps.reshape(1, 2, 1)}, a([[[1]]]), ""),
            ("QLinearConv", "<group = 2>(x, n, v, w, s, v, s, z)", {"x": x, "w": taps.reshape(2, 1, 1)}, a([[[3], [-2]]]), ""),
            ("QLinearConv", "<group = 2>(x, n, v, w, s, v, s, z)", {"x": x, "w": taps.reshape(2, 1, 1)}, a([[[3], [-2]]]), MS),
        ):
            odd(op, f"a scale of NaN, {np.dtype(t).name}", "y0 = @" + call, {**inputs, **args}, np.full(sums.shape, 7, t), domain=domain)
            ends = np.where(sums > 0, most, np.where(sums < 0, least, 7)).astype(t)
            odd(op, f"a scale of infinity, {np.dtype(t).name}", "y0 = @" + call, {**inputs, **args, "n": a(inf)}, ends, domain=domain)
    x, args = a([1, 2], u8), {"n": a(nan), "s": a(0.5), "v": a(3, u8)}
    for op, call in (("QLinearAdd", "@(x, n, v, x, s, v, s, v)"), ("QLinearMul", "@(x, n, v, x, s, v, s, v)"), ("QLinearLeakyRelu", "@<alpha = 0.5>(x, n, v, s, v)"),
                     ("QLinearSigmoid", "@(x, n, v, s, v)"), ("QLinearConcat", "@<axis = 0>(s, v, x, n, v)"), ("QLinearSoftmax", "@<axis = 0, opset = 13>(x, n, v, s, v)"),
                     ("QLinearWhere", "@(c, x, n, v, x, s, v, s, v)")):
        odd(op, "a scale of NaN", "y0 = " + call, {**({"c": a([True, False], bool)} if "(c" in call else {}), "x": x, **args}, a([3, 2 if "Where" in op else 3], u8), domain=MS)
    for op, attributes in (("QLinearAveragePool", "<kernel_shape = [2]>"), ("QLinearGlobalAveragePool", "")):
        odd(op, "a scale of NaN", f"y0 = @{attributes}(x, n, v, s, v)", {"x": x[None, None], **args}, a([[[3]]], u8), domain=MS)


def infinite():
    odd("CausalConvWithState", "infinity spreads to what follows", "y0, y1 = @(x, w)", {"x": a([[[1, inf, 2, 3]]]), "w": o(1, 1, 2)}, [a([[[1, inf, inf, 5]]]), a([[[3]]])], 27)
    odd("LinearAttention", "infinity stays in the state", 'y0, y1 = @<q_num_heads = 1, kv_num_heads = 1, update_rule = "linear", scale = 1.0>(q, q, q)', {"q": a([[[1], [inf]]])}, [a([[[1], [inf]]]), a([[[[inf]]]])], 27)
    odd("MelWeightMatrix", "an edge of infinity", "y0 = @(n, d, r, l, h)", {"n": a(2, I), "d": a(8, I), "r": a(16, I), "l": a(0), "h": a(inf)}, REFUSED)
    value = {"q": o(1, 1, 1, 1), "v": a([[[[-inf]]]])}
    odd("FlexAttention", "an infinite value", "y0 = @(q, q, v)", value, a([[[[-inf]]]]), 26, "ai.onnx.preview.")
    odd("FusedAttention", "an infinite value", "y0 = @<scale = 1.0>(q, q, v)", value, a([[[[-inf]]]]), domain=OWN)
    odd("Attention", "an infinite bias of the values", "y0 = @<num_heads = 1>(x, w, b)", {"x": o(1, 1, 1), "w": o(1, 3), "b": a([0, 0, inf])}, a([[[inf]]]), domain=MS)
    odd("GroupQueryAttention", "an infinite value", "y0 = @<num_heads = 2, kv_num_heads = 1>(q, k, v, , , n, t)", {"q": o(1, 1, 2), "k": o(1, 1, 1), "v": a([[[inf]]]), "n": a([0], i32), "t": a(1, i32)}, a([[[inf, inf]]]), domain=MS)
    words = {"n": a([[0]], i32), "t": a([[0]], i32), "w": a([[inf, 1]]), "p": z(1, 2), "e": z(1, 2), "g": o(2), "b": z(2)}
    odd("EmbedLayerNormalization", "infinity", "y0, y1 = @(n, t, w, p, e, g, b)", words, [a([[[nan, nan]]]), a([0], i32)], domain=MS)
    step = {"r": a(0.1), "t": a(0, I), "x": a([1]), "g": a([inf]), "h": a([0])}
    training = "ai.onnx.preview.training."
    odd("Adagrad", "an infinite gradient", "y0, y1 = @(r, t, x, g, h)", step, [a([nan]), a([inf])], domain=training)
    odd("Adam", "an infinite gradient", "y0, y1, y2 = @(r, t, x, g, h, h)", step, [a([nan]), a([inf]), a([inf])], domain=training)
    odd("Momentum", "an infinite gradient", 'y0, y1 = @<alpha = 0.5, beta = 1.0, mode = "standard", norm_coefficient = 0.0>(r, t, x, g, h)', step, [a([-inf]), a([inf])], domain=training)


def broadcast():
    """Batches of both factors are broadcast."""
    x, w = (np.arange(6) % 4 + 1).astype(f32).reshape(2, 1, 1, 3), (np.arange(6) % 5).astype(f32).reshape(2, 3, 1)
    product, what = np.matmul(x, w), "batches broadcast both ways"
    for op, domain in (("FusedMatMul", OWN), ("FusedMatMul", MS), ("TransposeMatMul", MS)):
        odd(op, what, "y0 = @<alpha = 1.0>(x, w)", {"x": x, "w": w}, product, domain=domain)
    codes, more = {"x": x.astype(u8), "w": w.astype(u8)}, {"s": a(1), "v": a(0, u8)}
    odd("MatMulInteger", what, "y0 = @(x, w)", codes, product.astype(i32))
    odd("QLinearMatMul", what, "y0 = @(x, s, v, w, s, v, s, v)", {**codes, **more}, product.astype(u8))
    odd("MatMulIntegerToFloat", what, "y0 = @(x, w, s, s)", {**codes, "s": a(1)}, product, domain=MS)
    odd("DynamicQuantizeMatMul", what, "y0 = @(x, w, s)", {"x": np.where(x == 4, f32(255), x), "w": w.astype(u8), "s": a(1)}, np.matmul(np.where(x == 4, f32(255), x), w), domain=MS)
    c, x, w = a([[[True]], [[False]]], bool), a([[1], [2]], u8), a([[3, 4, 5]], u8)
    odd("QLinearWhere", "broadcast three ways", "y0 = @(c, x, s, v, w, s, v, s, v)", {"c": c, "x": x, "w": w, **more}, np.where(c, x, w), domain=MS)


def axes():
    x, far = a([[1, 3], [2, 6]]), "an axis out of range"
    g = {"x": x, "g": o(2)}
    odd("LayerNormalization", "a negative axis", "y0 = @<axis = -1, epsilon = 0.0>(x, g)", g, a([[-1, 1], [-1, 1]]))
    odd("RMSNormalization", "a negative axis", "y0 = @<axis = -2, epsilon = 0.0>(x, g)", {"x": x, "g": o(2, 2)}, x / np.sqrt(f32(12.5)), 23)
    odd("MeanVarianceNormalization", "a negative axis", "y0 = @<axes = [-1]>(x)", {"x": x}, a([[-1, 1], [-1, 1]]), 13)
    odd("Scatter", "a negative axis", "y0 = @<axis = -1>(x, n, u)", {"x": x, "n": a([[1]], I), "u": a([[9]])}, a([[1, 9], [2, 6]]), 9)
    odd("TensorScatter", "a negative axis", "y0 = @<axis = -3>(x, u, n)", {"x": a([[[[1]], [[2]]]]), "u": a([[[[9]]]]), "n": a([1], I)}, a([[[[1]], [[9]]]]), 24)
    odd("ReverseSequence", "negative axes", "y0 = @<time_axis = -2, batch_axis = -1>(x, n)", {"x": x, "n": a([2, 2], I)}, REFUSED, 21)  # 0 and 1 alone are named
    odd("DequantizeLinear", far, "y0 = @<axis = 2>(x, s)", {"x": x.astype(u8), "s": a([1, 2])}, REFUSED, 21)
    odd("ConcatFromSequence", far, "q = SequenceConstruct(x, x) y0 = @<axis = 2>(q)", {"x": x}, REFUSED, 21)
    odd("Split", far, "y0, y1 = @<axis = 2, num_outputs = 2>(x)", {"x": x}, REFUSED, 21)
    odd("Pad", far, "y0 = @(x, p, , n)", {"x": x, "p": a([1, 1], I), "n": a([2], I)}, REFUSED, 21)
    odd("LpNormalization", far, "y0 = @<axis = 2>(x)", {"x": x}, REFUSED)
    odd("MeanVarianceNormalization", far, "y0 = @<axes = [2]>(x)", {"x": x}, REFUSED, 13)


def limits():
    """Integers overflow as numpy's do; sizes and indices beyond all memory are refused."""
    top, least = 2**31 - 1, -(2**31)
    x = a([[top, least, 1]], i32)
    for op, f in (("ReduceL1", lambda v: np.abs(v).sum(1, dtype=i32)), ("ReduceSumSquare", lambda v: (v * v).sum(1, dtype=i32)), ("ReduceMax", lambda v: v.max(1)), ("ReduceMin", lambda v: v.min(1))):
        odd(op, "limits of int32", "y0 = @<keepdims = 0>(x, n)", {"x": x, "n": a([1], I)}, f(x), 18)
    for op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSumSquare"):
        for n in (2**63 - 1, -(2**63)):
            odd(op, "an axis out of range by far", "y0 = @(x, n)", {"x": o(1, 2), "n": a([n], I)}, REFUSED, 18)
    for op, at in (("ArgMax", 0), ("ArgMin", 1)):
        odd(op, "limits of int32", "y0 = @<axis = 1, keepdims = 0>(x)", {"x": x}, a([at], I), 13)
    odd("Gemm", "int32 overflow", "y0 = @(x, w, c)", {"x": a([[top]], i32), "w": a([[1]], i32), "c": a([[1]], i32)}, a([[least]], i32), 13)
    odd("Einsum", "int32 overflow", 'y0 = @<equation = "i,i->">(x, w)', {"x": a([top, 1], i32), "w": a([1, 1], i32)}, a(least, i32), 12)
    odd("PRelu", "int32 overflow", "y0 = @(x, w)", {"x": a([least, top], i32), "w": a(2, i32)}, a([0, top], i32), 16)
    odd("Clip", "limits of int32", "y0 = @(x)", {"x": x}, x, 13)
    odd("Shrink", "limits of int8", "y0 = @<lambd = 1.0, bias = 1.0>(x)", {"x": a([-128, 127, 1], i8)}, a([-127, 126, 0], i8), 9)
    odd("MaxPool", "limits of int8", "y0 = @<kernel_shape = [2], pads = [1, 1]>(x)", {"x": a([[[-128, 127]]], i8)}, a([[[-128, 127, 127]]], i8))
    odd("ConvInteger", "limits", "y0 = @(x, w)", {"x": a([[[255]]], u8), "w": a([[[-128]]], i8)}, a([[[255 * -128]]], i32), 10)
    odd("QLinearConv", "limits", "y0 = @(x, s, v, w, s, p, s, v)", {"x": a([[[255, 1]]], u8), "w": a([[[-128]], [[127]]], i8), "s": a(1), "v": a(128, u8), "p": a(0, i8)}, a([[[0, 255], [255, 0]]], u8), 10)
    odd("CastLike", "int64 to int32 keeps the low bits", "y0 = @(x, t)", {"x": a([2**31, -(2**63)], I), "t": a(0, i32)}, a([least, 0], i32), 19)
    odd("BitCast", "the largest uint32", "y0 = @<to = 12>(x)", {"x": a([-1, least], i32)}, a([2**32 - 1, 2**31], np.uint32), 26)
    for k, out in ((2**63 - 1, z(2, 2)), (-(2**63), o(2, 2))):
        odd("Trilu", "a diagonal at int64's limits", "y0 = @(x, n)", {"x": o(2, 2), "n": a(k, I)}, out, 14)
        odd("Trilu", "a diagonal at int64's limits", "y0 = @(x, n)", {"x": o(2, 2), "n": a(k, I)}, out, domain=MS)
    odd("Loop", "int64's largest count, and a false condition", "y0 = @<body = g (i, c, s) => (d, t) { d = Identity(c) t = Neg(s) }>(n, c, x)", {"n": a(2**63 - 1, I), "c": np.array(False), "x": a(1)}, a(1), 21)
    odd("NonMaxSuppression", "int64's largest count", "y0 = @(x, s, k)", {"x": a([[[0, 0, 1, 1], [2, 2, 3, 3]]]), "s": a([[[1, 2]]]), "k": a([2**63 - 1], I)}, a([[0, 0, 1], [0, 0, 0]], I))
    odd("STFT", "a step of 2^62", "y0 = @<onesided = 0>(x, s, , l)", {"x": o(1, 4, 1), "s": a(2**62, I), "l": a(2, I)}, a([[[[2, 0], [0, 0]]]]), 17)
    odd("STFT", "a frame of 2^62", "y0 = @<onesided = 0>(x, s, , l)", {"x": o(1, 4, 1), "s": a(1, I), "l": a(2**62, I)}, REFUSED, 17)
    odd("DFT", "a length of 2^62", "y0 = @(x, n)", {"x": o(1, 4, 1), "n": a(2**62, I)}, REFUSED, 20)
    odd("Col2Im", "a picture of 2^62", "y0 = @(x, s, b)", {"x": o(1, 1, 1), "s": a([2**62], I), "b": a([1], I)}, REFUSED, 18)
    odd("AffineGrid", "a picture of 2^62", "y0 = @(x, s)", {"x": o(1, 2, 3), "s": a([1, 1, 2**62, 2**62], I)}, REFUSED, 20)
    for n in (2**63 - 1, -(2**63)):
        what = "an index out of range by far"
        for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
            odd(op, what, "y0 = @(x, n)", {"x": o(1, 2), "n": a([n], I)}, REFUSED, 13)
        odd("RoiAlign", what, "y0 = @(x, r, n)", {"x": o(1, 1, 2, 2), "r": z(1, 4), "n": a([n], I)}, REFUSED)
        odd("TensorScatter", what, "y0 = @(x, u, n)", {"x": o(1, 1, 2, 1), "u": o(1, 1, 1, 1), "n": a([n], I)}, REFUSED, 24)
        odd("Scatter", what, "y0 = @(x, n, u)", {"x": o(2), "n": a([n], I), "u": o(1)}, REFUSED, 9)
        odd("RotaryEmbedding", what, "y0 = @(x, c, c, n)", {"x": o(1, 1, 1, 2), "c": o(2, 1), "n": a([[n]], I)}, REFUSED, 23)
        odd("RotaryEmbedding", what, "y0 = @(x, n, c, c)", {"x": o(1, 1, 1, 2), "n": a([[n]], I), "c": o(2, 1)}, REFUSED, domain=MS)
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        odd(op, "a length of int32's largest", "y0 = @<hidden_size = 1>(x, w, r, , n)", {"x": o(1, 1, 1), "w": o(1, gates, 1), "r": o(1, gates, 1), "n": a([top], i32)}, REFUSED)


def everything():
    standard()
    microsoft()
    grid_samples()
    windows()
    fixed()
    machine_learning()
    unreal()
    infinite()
    broadcast()
    axes()
    limits()
