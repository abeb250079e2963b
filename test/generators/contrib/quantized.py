"""8-bit operators. The peer's inference refuses most of them without zero points, or ends the process."""
import numpy as np

from case import Draw, scalar

BYTES = ((np.uint8, "u8"), (np.int8, "s8"))


def write(case):
    matrices(case, Draw(11))
    attention(case, Draw(12))
    embeddings(case, Draw(13))
    lstm(case, Draw(14))
    elementwise(case, Draw(15))
    convolutions(case, Draw(16))
    pools(case, Draw(17))


def matrices(case, d):
    for a_type, a_name in BYTES:
        for b_type, b_name in BYTES:
            if a_name == "s8" and b_name == "u8":
                continue
            name = f"{a_name}_{b_name}"
            a, b = d.ints(a_type, 2, 3, 17), d.ints(b_type, 17, 9)
            one = [a, b, scalar(0.02), scalar(0.03), scalar(5, a_type), scalar(7, b_type)]
            many = [a, b, scalar(0.02), d.positive(9), scalar(5, a_type), d.ints(b_type, 9), d.floats(9)]
            case(f"integer_to_float_{name}", "MatMulIntegerToFloat", one)
            case(f"integer_to_float_columns_{name}", "MatMulIntegerToFloat", many, constants=[1, 3, 5, 6])
            case(f"integer_to_float_bare_{name}", "MatMulIntegerToFloat", one[:4])
            case(f"integer_to_float_batch_{name}", "MatMulIntegerToFloat", [a, d.ints(b_type, 2, 17, 9)] + one[2:])
            a, y = d.ints(a_type, 5, 17), [scalar(0.9), scalar(3, a_type)]
            g = [a, scalar(0.02), scalar(5, a_type), b, scalar(0.03), scalar(7, b_type)]
            c = d.ints(np.int32, 9, low=-999, high=999)
            case(f"gemm_{name}", "QGemm", g + [c] + y, constants=[3])
            case(f"gemm_float_{name}", "QGemm", g + [c], alpha=0.5)
            case(f"gemm_columns_{name}", "QGemm", g[:4] + [d.positive(9), d.ints(b_type, 9), c] + y,
                 constants=[3, 4, 5])
            case(f"gemm_no_c_{name}", "QGemm", g + [None] + y)
            case(f"gemm_full_c_{name}", "QGemm", g + [d.ints(np.int32, 5, 9, low=-999, high=999)] + y)
            case(f"gemm_column_c_{name}", "QGemm", g + [d.ints(np.int32, 5, 1, low=-999, high=999)] + y)
            turned = g[:3] + [np.ascontiguousarray(b.T)] + g[4:]
            turned[0] = np.ascontiguousarray(a.T)
            case(f"gemm_transposed_{name}", "QGemm", turned + [c] + y, constants=[3], transA=1, transB=1, alpha=2.0)
    for b_type, b_name in BYTES:
        x, b = d.floats(2, 3, 17), d.ints(b_type, 17, 9)
        case(f"dynamic_{b_name}", "DynamicQuantizeMatMul", [x, b, scalar(0.03)], constants=[1])
        case(f"dynamic_zero_{b_name}", "DynamicQuantizeMatMul", [x, b, scalar(0.03), scalar(9, b_type), d.floats(9)])
        case(f"dynamic_columns_{b_name}", "DynamicQuantizeMatMul", [x, b, d.positive(9), d.ints(b_type, 9),
             d.floats(9)], constants=[1, 2, 3, 4])


def attention(case, d):
    for type, name in BYTES:
        x, w = d.ints(np.uint8, 2, 4, 12), d.ints(type, 12, 48)
        common = [x, w, d.floats(48), scalar(0.02), scalar(0.01)]
        zeros, columns = [scalar(120, np.uint8), scalar(3, type)], [d.positive(48, high=0.02)]
        case(f"attention_{name}", "QAttention", common + [None] + zeros, constants=[1], num_heads=4)
        case(f"attention_mask_{name}", "QAttention", common + [np.array([4, 2], np.int32)] + zeros, num_heads=4)
        case(f"attention_2d_mask_{name}", "QAttention",
             common + [np.array([[1, 1, 1, 0], [1, 0, 1, 1]], np.int32)] + zeros, num_heads=4)
        case(f"attention_columns_{name}", "QAttention",
             common[:4] + columns + [None, zeros[0], d.ints(type, 48)], constants=[1, 4, 7], num_heads=2)
        case(f"attention_past_{name}", "QAttention", common + [None] + zeros + [d.floats(2, 2, 4, 3, 4)], outputs=2,
             num_heads=4, unidirectional=1)


def embeddings(case, d):
    for type, name in BYTES:
        ids, segments = d.ints(np.int32, 2, 6, low=0, high=19), d.ints(np.int32, 2, 6, low=0, high=1)
        tables = [d.ints(type, *shape) for shape in ((20, 24), (9, 24), (2, 24), (24,), (24,))]
        scales = [scalar(v) for v in (0.02, 0.01, 0.03, 0.02, 0.01)]
        zeros = [scalar(v, type) for v in (3, 5, 7, 9, 11)]
        mask = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]], np.int32)
        case(f"embed_{name}", "QEmbedLayerNormalization", [ids, segments] + tables + [mask] + scales + zeros,
             outputs=2, epsilon=1e-5)
        for values in (tables, scales, zeros):
            values[2] = None
        case(f"embed_no_segments_{name}", "QEmbedLayerNormalization", [ids, None] + tables + [None] + scales + zeros,
             outputs=2)


def lstm(case, d):
    for type, name in BYTES:
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            hidden, width, batch, steps = 8, 5, 3, 4
            x = d.floats(steps, batch, width)
            w, r = d.ints(type, n, width, 4 * hidden), d.ints(type, n, hidden, 4 * hidden)
            bias = d.floats(n, 8 * hidden)
            zero = lambda *shape: d.ints(type, *shape, low=0, high=9)
            one = [d.positive(n, high=0.02), zero(n), d.positive(n, high=0.02), zero(n)]
            case(f"lstm_{direction}_{name}", "DynamicQuantizeLSTM", [x, w, r, bias, None, None, None, None] + one,
                 outputs=3, constants=[1, 2, 9, 11], hidden_size=hidden, direction=direction)
            zeros = np.full((n, 4 * hidden), 0 if type == np.int8 else 128, type)  # all that the peer takes
            channels = [d.positive(n, 4 * hidden, high=0.02), zeros] * 2
            case(f"lstm_{direction}_columns_{name}", "DynamicQuantizeLSTM",
                 [x, w, r, bias, None, d.floats(n, batch, hidden), d.floats(n, batch, hidden),
                  d.floats(n, 3 * hidden)] + channels, outputs=3, constants=[1, 2, 9, 11], hidden_size=hidden,
                 direction=direction)
            # The peer quantizes the states of sequences that have ended, or not begun, in another way.
            case(f"lstm_{direction}_lengths_{name}", "DynamicQuantizeLSTM",
                 [x, w, r, bias, np.array([4, 2, 3], np.int32), None, None, None] + one, outputs=3,
                 constants=[1, 2, 9, 11], hidden_size=hidden, direction=direction, tolerance=(0, 2e-2))


def elementwise(case, d):
    for type, name in BYTES:
        zero = lambda v: scalar(v, type)
        x = d.ints(type, 2, 3, 7)
        for op in ("Add", "Mul"):
            for form, other in (("same", (2, 3, 7)), ("row", (7,)), ("column", (3, 1)), ("scalar", ()),
                                ("up", (4, 1, 1, 1))):
                case(f"{op.lower()}_{form}_{name}", f"QLinear{op}",
                     [x, scalar(0.021), zero(5), d.ints(type, *other), scalar(0.033), zero(9), scalar(0.047), zero(3)])
        case(f"sigmoid_{name}", "QLinearSigmoid", [x, scalar(0.05), zero(7), scalar(0.0039), zero(1)])
        case(f"leaky_relu_{name}", "QLinearLeakyRelu", [x, scalar(0.05), zero(7), scalar(0.031), zero(3)], alpha=0.2)
        for opset, axis in ((11, 1), (12, -1), (13, 1), (13, -1)):
            y_zero = zero(0 if type == np.uint8 else -128)
            case(f"softmax_{opset}_{axis % 3}_{name}", "QLinearSoftmax",
                 [x, scalar(0.05), zero(7), scalar(1 / 256), y_zero], opset_=opset, axis=axis)
        case(f"where_{name}", "QLinearWhere", [np.array([[True], [False], [True]]), x, scalar(0.02), zero(5),
             d.ints(type, 7), scalar(0.03), zero(9), scalar(0.04), zero(3)])
        parts = []
        for k, size in enumerate((2, 3, 4)):
            parts += [d.ints(type, 2, size, 3), scalar(0.02 + 0.01 * k), zero(k)]
        case(f"concat_{name}", "QLinearConcat", [scalar(0.03), zero(4)] + parts, axis=1)
        case(f"concat_negative_axis_{name}", "QLinearConcat",
             [scalar(0.03), zero(4)] + [parts[0], scalar(0.02), zero(1), d.ints(type, 2, 2, 5), scalar(0.04), zero(2)],
             axis=-1, constants=[5, 6, 7])


def convolutions(case, d):
    for a_type, w_type, name in ((np.uint8, np.uint8, "u8_u8"), (np.uint8, np.int8, "u8_s8"),
                                 (np.int8, np.int8, "s8_s8")):
        def conv(form, x, w, *, last, bias=True, columns=False, **attributes):
            m = w.shape[0]
            case(f"conv_{form}_{name}", "QLinearConv",
                 [x, scalar(0.02), scalar(5, a_type), w, d.positive(m, high=0.03) if columns else scalar(0.02),
                  np.zeros(m, w_type) if columns else scalar(3, w_type), scalar(0.31), scalar(7, a_type),
                  d.ints(np.int32, m, low=-500, high=500) if bias else None],
                 constants=[3, 4, 5, 8], channels_last=last, **attributes)
        x, w = d.ints(a_type, 2, 4, 9, 8), d.ints(w_type, 6, 4, 3, 3)
        nhwc = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        conv("plain", x, w, last=0, pads=[1, 1, 1, 1])
        conv("last", nhwc, w, last=1, pads=[1, 1, 1, 1])
        conv("last_columns", nhwc, w, last=1, columns=True, strides=[2, 1], bias=False)
        conv("last_1x1", nhwc, d.ints(w_type, 10, 4, 1, 1), last=1)
        conv("last_groups", nhwc, d.ints(w_type, 6, 2, 3, 3), last=1, group=2, dilations=[1, 2])
        conv("last_depthwise", nhwc, d.ints(w_type, 4, 1, 3, 3), last=1, group=4, pads=[1, 1, 1, 1], columns=True)
        conv("last_1d", np.ascontiguousarray(nhwc[:, :, 0]), d.ints(w_type, 6, 4, 3), last=1, pads=[1, 0])


def pools(case, d):
    for type, name in BYTES:
        x = d.ints(type, 2, 4, 9, 8)
        nhwc = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        q = [scalar(0.02), scalar(5, type), scalar(0.017), scalar(9, type)]
        for form, data, last in (("first", x, 0), ("last", nhwc, 1)):
            average = lambda form2, **attributes: case(
                f"average_{form}_{form2}_{name}", "QLinearAveragePool", [data] + q, channels_last=last,
                kernel_shape=[3, 3], **attributes)
            average("plain")
            average("pads", pads=[1, 1, 1, 1], strides=[2, 2])
            average("counted", pads=[1, 0, 1, 1], count_include_pad=1)
            average("ceil", strides=[2, 2], ceil_mode=1)
            average("same", auto_pad="SAME_UPPER", strides=[2, 2])
            case(f"global_average_{form}_{name}", "QLinearGlobalAveragePool", [data] + q, channels_last=last)
        case(f"average_1d_{name}", "QLinearAveragePool", [x[0]] + q, kernel_shape=[2])
        case(f"average_3d_{name}", "QLinearAveragePool", [d.ints(type, 1, 2, 4, 5, 6)] + q, kernel_shape=[2, 3, 2])
        maximum = lambda form, x, **attributes: case(f"nhwc_max_{form}_{name}", "NhwcMaxPool", [x], **attributes)
        maximum("plain", nhwc, kernel_shape=[3, 3])
        maximum("pads", nhwc, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        maximum("dilated", nhwc, kernel_shape=[2, 2], dilations=[2, 3])
        maximum("ceil", nhwc, kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1)
        maximum("1d", np.ascontiguousarray(nhwc[:, :, 0]), kernel_shape=[3], auto_pad="SAME_LOWER")
        maximum("3d", d.ints(type, 1, 4, 5, 6, 3), kernel_shape=[2, 3, 2])
