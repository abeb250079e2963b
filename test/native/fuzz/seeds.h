#pragma once

#include <string_view>

namespace infernode::fuzz {

/// One small model for each operator family, all attributes spelled out, so that changes reach every loop.
inline constexpr std::string_view kSeeds[] = {
    "g (float[N,3] a, float[3] b) => (y) { t = Add(a, b) u = Mul(t, a) y = Div(u, b) }",
    "g (int64[N] a, int64[N] b) => (y, z) { y = Mod<fmod = 0>(a, b) t = Div(a, b) z = Pow(t, b) }",
    "g (int8[N] a, uint8[N] b) => (y, z) { y = Neg(a) z = BitShift<direction = \"LEFT\">(b, b) }",
    "g (float[N] a) => (y, z) { t = Exp(a) u = Erf(t) y = Round(u) z = IsNaN(y) }",
    "g (float[N,C] a) => (y) { t = LeakyRelu<alpha = 0.1>(a) u = HardSigmoid<alpha = 0.2, beta = 0.5>(t) "
    "v = Selu(u) y = Gelu<approximate = \"tanh\">(v) }",
    "g (float[N] a, float m, float n) => (y) { y = Clip(a, m, n) }",
    "g (float[2,3] a, float[3,4] b, float[4] c) => (y) { y = Gemm<alpha = 0.5, beta = 2.0, transA = 0, transB = 0>(a, "
    "b, c) }",
    "g (float[B,2,3] a, float[3,2] b) => (y) { y = MatMul(a, b) }",
    "g (int8[2,3] a, int8[3,2] b, int8 p, int8 q) => (y) { y = MatMulInteger(a, b, p, q) }",
    "g (float[1,2,5,5] x) => (y) <float[2,1,3,3] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, float[2] b = {1, 2}> "
    "{ y = Conv<group = 2, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 1], dilations = [1, 1]>(x, w, b) "
    "}",
    "g (float[1,2,3,3] x, float[2,1,2,2] w) => (y) { y = ConvTranspose<group = 1, kernel_shape = [2, 2], pads = [0, 1, "
    "0, "
    "1], strides = [2, 2], dilations = [1, 1], output_padding = [1, 0]>(x, w) }",
    "g (uint8[1,1,3,3] x, uint8[1,1,2,2] w, uint8 p) => (y) { y = ConvInteger<kernel_shape = [2, 2], pads = [0, 0, 1, "
    "1]>(x, w, p) }",
    "g (float[1,2,6,6] x) => (y, i) { y, i = MaxPool<kernel_shape = [2, 2], strides = [2, 2], pads = [0, 0, 1, 1], "
    "dilations = [1, 1], ceil_mode = 1, storage_order = 0>(x) }",
    "g (float[1,2,6,6] x) => (y) { t = AveragePool<kernel_shape = [3, 3], strides = [1, 2], pads = [1, 1, 1, 1], "
    "count_include_pad = 1, auto_pad = \"NOTSET\">(x) u = LpPool<kernel_shape = [2, 2], p = 2>(t) "
    "y = GlobalAveragePool(u) }",
    "g (float[1,1,2,2] x, int64[1,1,2,2] i) => (y) { y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, i) }",
    "g (float[2,3,4] x) => (y) { y = ReduceSum<keepdims = 0, noop_with_empty_axes = 0>(x, a) a = Constant<value = "
    "int64[2] {1, -1}>() }",
    "g (float[2,3,4] x) => (y, z) { y = ReduceMean<keepdims = 1>(x) z = ArgMax<axis = 1, keepdims = 0, "
    "select_last_index "
    "= 1>(x) }",
    "g (float[2,3,4] x) => (y, z) { y = Softmax<axis = -1>(x) z = CumSum<exclusive = 1, reverse = 1>(x, a) a = "
    "Constant<value_int = 1>() }",
    "g (float[2,4,3] x, float[3] s, float[3] b) => (y) { y = LayerNormalization<axis = -1, epsilon = 0.001>(x, s, b) }",
    "g (float[2,4,3] x, float[4] s, float[4] b) => (y) { t = InstanceNormalization<epsilon = 0.001>(x, s, b) "
    "u = BatchNormalization<epsilon = 0.001, momentum = 0.9>(t, s, b, s, b) y = LRN<size = 3, alpha = 0.1, beta = 0.5, "
    "bias = 1.0>(v) v = Unsqueeze(u, a) a = Constant<value_ints = [3]>() }",
    "g (float[2,4,3] x, float[2] s, float[2] b) => (y) { t = GroupNormalization<num_groups = 2, epsilon = 0.001>(x, s, "
    "b) u = LpNormalization<axis = 1, p = 1>(t) y = MeanVarianceNormalization<axes = [0, 2]>(u) }",
    "g (float[3,4] x, int64[N] i) => (y, z) { y = Gather<axis = 1>(x, i) z = GatherElements<axis = 0>(x, j) j = "
    "Constant<value = int64[1,4] {0, 1, 2, -1}>() }",
    "g (float[3,4] x, int64[N,2] i, float[N] u) => (y, z) { y = ScatterND<reduction = \"add\">(x, i, u) z = "
    "GatherND<batch_dims = 0>(x, i) }",
    "g (float[3,4] x, int64[2,2] i, float[2,2] u) => (y) { y = ScatterElements<axis = 1, reduction = \"mul\">(x, i, u) "
    "}",
    "g (float[N,4] x, int64[K] b, int64[K] e, int64[K] a, int64[K] s) => (y) { y = Slice(x, b, e, a, s) }",
    "g (float[2,6] x) => (y, z, w) { y, z = Split<axis = 1>(x, s) s = Constant<value_ints = [2, 4]>() w, v = "
    "Split<axis "
    "= 0, num_outputs = 2>(x) }",
    "g (float[2,N] x, float[2,M] z) => (y) { t = Concat<axis = 1>(x, z) u = Transpose<perm = [1, 0]>(t) s = "
    "Shape<start "
    "= 0, end = 2>(u) r = ConstantOfShape<value = int64[1] {2}>(s) v = Cast<to = 1>(r) y = Add(u, v) }",
    "g (float[2,3] x, int64[K] s) => (y, z) { y = Reshape<allowzero = 0>(x, s) t = Expand(x, s) z = Flatten<axis = "
    "1>(t) }",
    "g (float[1,3,1] x) => (y) { t = Squeeze(x, a) a = Constant<value_ints = [0]>() u = Tile(t, r) r = "
    "Constant<value_ints = [2, 3]>() y = Trilu<upper = 0>(u) }",
    "g (float[2,3] x, int64[4] p, float v) => (y) { y = Pad<mode = \"reflect\">(x, p, v) }",
    "g (float[1,1,2,3] x, float[4] s) => (y) { y = Resize<mode = \"linear\", coordinate_transformation_mode = "
    "\"half_pixel\", cubic_coeff_a = -0.75, exclude_outside = 0, nearest_mode = \"floor\">(x, , s) }",
    "g (float[1,1,3,3] x, int64[4] s) => (y) { y = Resize<mode = \"cubic\", antialias = 1, axes = [0, 1, 2, 3], "
    "keep_aspect_ratio_policy = \"not_larger\">(x, , , s) }",
    "g (float[1,1,3,3] x, float[1,2,2,2] i) => (y) { y = GridSample<mode = \"cubic\", padding_mode = \"reflection\", "
    "align_corners = 1>(x, i) }",
    "g (float[1,4,2,2] x) => (y) { t = DepthToSpace<blocksize = 2, mode = \"DCR\">(x) y = SpaceToDepth<blocksize = "
    "2>(t) "
    "}",
    "g (float[1,4,4] x) => (y) { y = Col2Im<dilations = [1, 1], pads = [0, 0, 0, 0], strides = [1, 1]>(x, i, b) i = "
    "Constant<value_ints = [3, 3]>() b = Constant<value_ints = [2, 2]>() }",
    "g (float[2,4] x) => (y, i) { y, i = TopK<axis = 1, largest = 1, sorted = 1>(x, k) k = Constant<value_ints = "
    "[2]>() }",
    "g (float[1,4,4] b, float[1,2,4] s) => (y) { y = NonMaxSuppression<center_point_box = 1>(b, s, m, t, t) m = "
    "Constant<value_int = 3>() t = Constant<value_float = 0.5>() }",
    "g (float[1,2,4,4] x, float[R,4] r, int64[R] b) => (y) { y = RoiAlign<mode = \"avg\", output_height = 2, "
    "output_width "
    "= 2, sampling_ratio = 2, spatial_scale = 0.5>(x, r, b) }",
    "g (int64[N] x) => (y, z) { y = OneHot<axis = 0>(x, d, v) d = Constant<value_int = 4>() v = Constant<value_floats "
    "= "
    "[0.0, 1.0]>() z = NonZero(x) }",
    "g (int64[N] x) => (y, i, r, c, z) { y, i, r, c = Unique<axis = 0, sorted = 1>(x) z = Compress<axis = 0>(x, m) m = "
    "Constant<value = bool[3] {1, 0, 1}>() }",
    "g (float[N] x, float[N] w) => (y) { c = Greater(x, w) d = Not(c) e = And(c, d) y = Where(e, x, w) }",
    "g (float[2,3] x, float[3,4] w) => (y) { y = Einsum<equation = \"ij,jk->ik\">(x, w) }",
    "g (float[2,3,3] x) => (y) { y = Det(x) }",
    "g (int64 a, int64 b, int64 s) => (y) { y = Range(a, b, s) }",
    "g (float[3,2,4] x, int64[2] n) => (y) { y = ReverseSequence<batch_axis = 1, time_axis = 0>(x, n) }",
    "g (float[2,1,3] x, float[1,8,3] w, float[1,8,2] r, float[1,16] b, int32[1] n) => (y, h, c) { y, h, c = "
    "LSTM<hidden_size = 2, direction = \"forward\", layout = 0, clip = 3.0, input_forget = 0, activations = "
    "[\"Sigmoid\", "
    "\"Tanh\", \"Tanh\"]>(x, w, r, b, n) }",
    "g (float[2,1,3] x, float[2,6,3] w, float[2,6,2] r) => (y, h) { y, h = GRU<hidden_size = 2, direction = "
    "\"bidirectional\", linear_before_reset = 1>(x, w, r) }",
    "g (float[2,1,3] x, float[1,2,3] w, float[1,2,2] r) => (y, h) { y, h = RNN<hidden_size = 2, direction = "
    "\"reverse\", "
    "activations = [\"Relu\"]>(x, w, r) }",
    "g (bool c, float[N] x) => (y) { y = If<then_branch = a () => (p) { p = Add(x, x) }, else_branch = b () => (q) { q "
    "= "
    "Neg(x) }>(c) }",
    "g (int64 n, bool c, float[2] x) => (y, z) { y, z = Loop<body = b (int64 i, bool k, float[2] v) => (o, w, s) { o = "
    "Identity(k) w = Add(v, x) s = Mul(v, v) }>(n, c, x) }",
    "g (float[2] x, float[N,2] v) => (y, z) { y, z = Scan<num_scan_inputs = 1, scan_input_axes = [0], scan_output_axes "
    "= "
    "[0], scan_input_directions = [0], body = b (float[2] s, float[2] e) => (t, o) { t = Add(s, e) o = Identity(t) "
    "}>(x, "
    "v) }",
    "g (float[2] x, float[3] w, int64 i) => (y, n, z) { s = SequenceConstruct(x, w) t = SequenceInsert(s, x, i) u = "
    "SequenceErase(t, i) y = SequenceAt(u, i) n = SequenceLength(t) z = ConcatFromSequence<axis = 0, new_axis = 0>(t) "
    "}",
    "g (float[4,2] x) => (y) { s = SplitToSequence<axis = 0, keepdims = 1>(x) y = SequenceMap<body = b (float[K,2] v) "
    "=> "
    "(o) { o = Neg(v) }>(s) }",
    "g (optional(float[2]) x, float[2] w) => (y, h) { o = Optional(w) y = OptionalGetElement(o) h = "
    "OptionalHasElement(x) }",
    "g (float[2,4] x, float s, uint8 z) => (y, q) { q = QuantizeLinear<axis = 1, saturate = 1>(x, s, z) y = "
    "DequantizeLinear<axis = 1>(q, s, z) }",
    "g (float[2,4] x) => (y, s, z) { y, s, z = DynamicQuantizeLinear(x) }",
    "g (float[2,3] x) => (y) { t = Cast<to = 10, saturate = 1>(x) u = Cast<to = 16>(t) y = Cast<to = 17>(u) }",
    "g (string[N] x, string[N] w) => (y, z) { y = Equal(x, w) z = Cast<to = 1>(s) s = Constant<value_strings = "
    "[\"1.5\", "
    "\"-3\"]>() }",
    "g (float[2,3] x, float[2,3] w, float[2,3] v) => (y, z) { y = Sum(x, w, v) t = Max(x, w, v) z = Mean(t, w) }",
    "<ir_version: 9, opset_import: [\"\" : 18, \"l\" : 1]> g (float[N] x) => (y) { y = l.F<k = 2.0>(x) } "
    "<opset_import: [\"\" : 18], domain: \"l\"> F <k> (a) => (b) { c = Constant<value_float = @k>() b = Mul(a, c) }",
};

}  // namespace infernode::fuzz
