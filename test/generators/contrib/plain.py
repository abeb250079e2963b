"""Floating-point operators beside attention."""
import ml_dtypes
import numpy as np
from onnx import TensorProto

from case import Draw, scalar

F16 = (2e-3, 2e-3)


def write(case):
    gelus(case, Draw(1))
    norms(case, Draw(2))
    rotary(case, Draw(3))
    products(case, Draw(4))
    convolutions(case, Draw(5))
    blockwise(case, Draw(6))
    old_forms(case, Draw(7))
    quantize_linear(case, Draw(8))


def gelus(case, d):
    x = d.floats(2, 5, 37, scale=3)
    case("gelu", "Gelu", [x])
    case("quick_gelu", "QuickGelu", [x])
    case("quick_gelu_alpha", "QuickGelu", [x], alpha=0.7)
    case("fast_gelu", "FastGelu", [x])
    case("fast_gelu_bias", "FastGelu", [x, d.floats(37)])
    case("bias_gelu", "BiasGelu", [x, d.floats(37)])


def norms(case, d):
    for type, tolerance in ((np.float32, (1e-4, 1e-5)), (np.float64, (1e-9, 1e-9)), (np.float16, F16)):
        suffix = np.dtype(type).name
        x, skip = d.floats(2, 3, 40, type=type), d.floats(2, 3, 40, type=type)
        gamma, beta, bias = (d.floats(40, type=type) for _ in range(3))
        common = dict(tolerance=tolerance, epsilon=1e-5)
        if type == np.float64:  # the schema knows no double, though a kernel is registered
            continue
        case(f"skip_layer_norm_{suffix}", "SkipLayerNormalization", [x, skip, gamma, beta], **common)
        case(f"skip_layer_norm_bias_sum_{suffix}", "SkipLayerNormalization", [x, skip, gamma, beta, bias],
             outputs=["y", "", "", "sum"], **common)
        case(f"skip_layer_norm_no_beta_{suffix}", "SkipLayerNormalization", [x, skip[:1], gamma], **common)
        case(f"skip_layer_norm_2d_skip_{suffix}", "SkipLayerNormalization", [x, skip[0], gamma, None, bias], **common)
        case(f"skip_rms_norm_{suffix}", "SkipSimplifiedLayerNormalization", [x, skip, gamma, bias],
             outputs=["y", "", "", "sum"], **common)
        case(f"skip_rms_norm_2d_{suffix}", "SkipSimplifiedLayerNormalization", [x[0], skip[0], gamma], **common)
    ids, segments = d.ints(np.int32, 2, 6, low=0, high=19), d.ints(np.int32, 2, 6, low=0, high=1)
    words, places, kinds = d.floats(20, 24), d.floats(9, 24), d.floats(2, 24)
    gamma, beta = d.floats(24), d.floats(24)
    mask = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]], np.int32)
    case("embed", "EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta, mask],
         outputs=["y", "mask", "sum"], epsilon=1e-12)
    case("embed_no_mask", "EmbedLayerNormalization", [ids, segments, words, places, kinds, gamma, beta],
         outputs=["y", "mask"])
    case("embed_no_segments", "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta, None,
         d.ints(np.int32, 2, 6, low=0, high=8)], outputs=["y", "", "sum"], mask_index_type=0)
    case("embed_one_row_of_positions", "EmbedLayerNormalization", [ids, None, words, places, None, gamma, beta, None,
         d.ints(np.int32, 1, 6, low=0, high=8)], outputs=["y", "mask"])


def rotary(case, d):
    for type, tolerance in ((np.float32, (1e-4, 1e-5)), (np.float16, F16)):
        suffix = np.dtype(type).name
        cos, sin = (f(np.outer(np.arange(16), 0.5 ** np.arange(4))).astype(type) for f in (np.cos, np.sin))
        ids = d.ints(np.int64, 2, 3, low=0, high=15)
        flat, headed = d.floats(2, 3, 16, type=type), d.floats(2, 2, 3, 8, type=type)
        start = np.array([5], np.int64)
        case(f"rotary_{suffix}", "RotaryEmbedding", [flat, ids, cos, sin], tolerance=tolerance)
        case(f"rotary_interleaved_{suffix}", "RotaryEmbedding", [flat, start, cos, sin], interleaved=1,
             tolerance=tolerance)
        case(f"rotary_4d_{suffix}", "RotaryEmbedding", [headed, ids, cos, sin], tolerance=tolerance)
        case(f"rotary_partial_{suffix}", "RotaryEmbedding", [flat, ids, cos[:, :2], sin[:, :2]], num_heads=2,
             rotary_embedding_dim=4, tolerance=tolerance)
        case(f"rotary_partial_interleaved_{suffix}", "RotaryEmbedding", [headed, start, cos[:, :2], sin[:, :2]],
             num_heads=2, rotary_embedding_dim=4, interleaved=1, tolerance=tolerance)
    cos, sin = (f(np.outer(np.arange(16), 0.5 ** np.arange(4))).astype(np.float32) for f in (np.cos, np.sin))
    case("rotary_packed_batching", "RotaryEmbedding", [d.floats(1, 5, 16), np.array([[0, 1, 0, 1, 2]]), cos, sin],
         is_packed_batching=1)


def products(case, d):
    a, b = d.floats(2, 3, 4, 5), d.floats(2, 3, 5, 6)
    turned = lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2))
    case("fused_matmul", "FusedMatMul", [a, b], alpha=0.5)
    case("fused_matmul_trans_a", "FusedMatMul", [turned(a), b], transA=1)
    case("fused_matmul_trans_b", "FusedMatMul", [a, turned(b)], transB=1, alpha=2.0)
    case("fused_matmul_trans_b_constant", "FusedMatMul", [a, turned(b[0, 0])], constants=[1], transB=1)
    case("fused_matmul_double", "FusedMatMul", [a.astype(np.float64), turned(b).astype(np.float64)], transB=1,
         alpha=3.0)
    batch_a = np.ascontiguousarray(a.transpose(2, 0, 1, 3))
    batch_b = np.ascontiguousarray(b.transpose(2, 0, 1, 3))
    case("fused_matmul_trans_batch_a", "FusedMatMul", [batch_a, b], transBatchA=1)
    case("fused_matmul_trans_batch_b", "FusedMatMul", [a, batch_b], transBatchB=1)
    case("fused_matmul_trans_batch_all", "FusedMatMul",
         [np.ascontiguousarray(a.transpose(3, 0, 1, 2)), np.ascontiguousarray(b.transpose(3, 0, 1, 2))], transA=1,
         transB=1, transBatchA=1, transBatchB=1)
    case("transpose_matmul", "TransposeMatMul", [turned(a), b], transA=1, alpha=1.5)
    for name, parameters in (("Relu", {}), ("LeakyRelu", dict(activation_alpha=0.2)), ("Sigmoid", {}), ("Tanh", {}),
                             ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4)),
                             ("Elu", dict(activation_alpha=0.7)), ("Softplus", {}), ("Softsign", {}),
                             ("ThresholdedRelu", dict(activation_alpha=0.4)),
                             ("Selu", dict(activation_alpha=1.6732632, activation_gamma=1.050701))):
        case(f"fused_gemm_{name.lower()}", "FusedGemm", [d.floats(4, 7), d.floats(7, 9), d.floats(9)],
             activation=name, alpha=0.5, beta=2.0, **parameters)
    case("fused_gemm_transposed", "FusedGemm", [d.floats(7, 4), d.floats(9, 7)], constants=[1], transA=1, transB=1,
         activation="Relu")


def convolutions(case, d):
    x, w, b = d.floats(2, 4, 9, 8), d.floats(6, 4, 3, 3), d.floats(6)
    for name, parameters in (("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.1]),
                             ("Clip", [-0.5, 1.5]), ("HardSigmoid", [0.2, 0.4])):
        case(f"fused_conv_{name.lower()}", "FusedConv", [x, w, b], constants=[1, 2], activation=name,
             activation_params=parameters, pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    case("fused_conv_sum", "FusedConv", [x, w, b, d.floats(2, 6, 7, 6)], activation="Relu", kernel_shape=[3, 3])
    case("fused_conv_sum_groups", "FusedConv", [x, d.floats(8, 1, 3, 3), None, d.floats(2, 8, 4, 3)], group=4,
         activation="Relu", kernel_shape=[3, 3], strides=[2, 2])
    case("fused_conv_no_activation", "FusedConv", [x, w, None], kernel_shape=[3, 3])


def pack_bits(codes, bits):
    """Codes [..., n], n * bits divisible by 8, as bytes with the first code in the low bits."""
    per = 8 // bits
    codes = codes.reshape(*codes.shape[:-1], -1, per).astype(np.uint32)
    return (codes << (np.arange(per, dtype=np.uint32) * bits)).sum(-1).astype(np.uint8)


def blockwise(case, d):
    k, n = 72, 33
    for bits in (2, 4, 8):
        for block in (16, 32, 128):
            blocks = -(-k // block)
            codes = d.ints(np.uint8, n, blocks, block, low=0, high=2**bits - 1)
            zeros = d.ints(np.uint8, n, -(-blocks * bits // 8) * 8 // bits, low=0, high=2**bits - 1)
            packed = pack_bits(codes, bits)
            scales = d.positive(n, blocks)
            a, shape = d.floats(2, 3, k), dict(K=k, N=n, bits=bits, block_size=block)
            name = f"matmul_{bits}bits_{block}"
            case(name, "MatMulNBits", [a, packed, scales], constants=[1, 2], **shape)
            case(f"{name}_zeros", "MatMulNBits", [a, packed, scales, pack_bits(zeros, bits)], constants=[1, 2, 3],
                 **shape)
            if block == 32:
                real = d.positive(n, blocks, low=0, high=2.0**bits)
                if bits == 4:
                    case(f"{name}_real_zeros", "MatMulNBits", [a, packed, scales, real], constants=[1, 2, 3], **shape)
                case(f"{name}_bias", "MatMulNBits", [a, packed, scales, None, None, d.floats(n)], constants=[1, 2, 5],
                     accuracy_level=1, **shape)
                half = np.float16
                case(f"{name}_half", "MatMulNBits", [a.astype(half), packed, scales.astype(half)], constants=[1, 2],
                     tolerance=(5e-3, 2e-2), **shape)
                if bits == 4:
                    groups = np.sort(d.ints(np.int32, k, low=0, high=blocks - 1))[::-1].copy()
                    case(f"{name}_g_idx", "MatMulNBits", [a, packed, scales, None, groups], constants=[1, 2, 4],
                         **shape)
    for kind, name in ((0, "fp4"), (1, "nf4")):
        for block in (16, 64):
            count = k * n
            case(f"matmul_{name}_{block}", "MatMulBnb4",
                 [d.floats(2, 3, k), d.ints(np.uint8, (count + 1) // 2), d.positive(-(-count // block), high=1.0)],
                 constants=[1, 2], K=k, N=n, block_size=block, quant_type=kind, transB=1)
    gather_quantized(case, d)


def gather_quantized(case, d):
    rows, width, block = 12, 48, 16
    ids = d.ints(np.int64, 2, 3, low=0, high=rows - 1)
    scales = d.positive(rows, width // block)
    for bits in (2, 4, 8):
        codes = d.ints(np.uint8, rows, width, low=0, high=2**bits - 1)
        zeros = d.ints(np.uint8, rows, 4 if bits < 8 else 3, low=0, high=2**bits - 1)
        attributes = dict(bits=bits, block_size=block, gather_axis=0, quantize_axis=1)
        case(f"gather_uint8_{bits}", "GatherBlockQuantized", [pack_bits(codes, bits), ids, scales], constants=[0, 2],
             **attributes)
        case(f"gather_uint8_{bits}_zeros", "GatherBlockQuantized",
             [pack_bits(codes, bits), ids.astype(np.int32), scales, pack_bits(zeros, bits)], constants=[0, 2, 3],
             **attributes)
    case("gather_uint8_half", "GatherBlockQuantized", [pack_bits(d.ints(np.uint8, rows, width, low=0, high=15), 4), ids,
         scales.astype(np.float16)], constants=[0, 2], bits=4, block_size=block, tolerance=F16)
    for type in (ml_dtypes.int4, ml_dtypes.uint4):
        low, high = (-8, 7) if type == ml_dtypes.int4 else (0, 15)
        name = np.dtype(type).name
        codes = d.ints(np.int8, rows, width, low=low, high=high).astype(type)
        zeros = d.ints(np.int8, rows, width // block, low=low, high=high).astype(type)
        case(f"gather_{name}", "GatherBlockQuantized", [codes, ids, scales], block_size=block)
        case(f"gather_{name}_zeros", "GatherBlockQuantized", [codes, ids - rows, scales, zeros], block_size=block)
        cube = d.ints(np.int8, 3, 40, 4, low=low, high=high).astype(type)
        case(f"gather_{name}_axis", "GatherBlockQuantized", [cube, np.array([2, 0]), d.positive(3, 3, 4)],
             gather_axis=2, quantize_axis=1, block_size=block)
        case(f"gather_{name}_negative_axis", "GatherBlockQuantized", [cube, np.array([[2, 0]]), d.positive(3, 3, 4)],
             gather_axis=-3, quantize_axis=-2, block_size=block)


def old_forms(case, d):
    x = d.floats(2, 4, 5)
    case("trilu_upper", "Trilu", [x])
    case("trilu_lower", "Trilu", [x.astype(np.float64), scalar(-1, np.int64)], upper=0)
    case("gather_nd", "GatherND", [x, np.array([[0, 1], [1, 3]], np.int32)])
    case("gather_nd_deep", "GatherND", [x, np.array([[[0, 1, 4]], [[1, 3, 2]]], np.int64)])
    case("range", "Range", [scalar(1, np.int64), scalar(10, np.int64), scalar(3, np.int64)])
    case("range_no_delta", "Range", [scalar(-2.0), scalar(3.5)])
    case("pad_constant", "Pad", [x, np.array([0, 1, 2, 1, 0, 3], np.int64), np.array([7], np.float32)])
    case("pad_negative", "Pad", [x, np.array([0, -1, 0, 0, 0, -2], np.int64)])
    case("pad_reflect", "Pad", [x, np.array([0, 1, 2, 0, 0, 3], np.int64)], mode="reflect")
    case("pad_edge", "Pad", [x, np.array([0, 1, 2, 0, 0, 3], np.int64)], mode="edge")
    case("unique", "Unique", [np.array([3, 1, 3, 2, 1, 7], np.float32)], outputs=3)
    case("inverse", "Inverse", [d.floats(3, 4, 4) + 3 * np.eye(4, dtype=np.float32)])
    case("inverse_double", "Inverse", [d.floats(5, 5, type=np.float64)], tolerance=(1e-8, 1e-9))
    case("expand_dims", "ExpandDims", [x, scalar(1, np.int32)])
    case("expand_dims_negative", "ExpandDims", [x, scalar(-1, np.int32)])
    for metric in ("sqeuclidean", "euclidean"):
        case(f"cdist_{metric}", "CDist", [d.floats(5, 7), d.floats(4, 7)], metric=metric)
        case(f"cdist_{metric}_double", "CDist", [d.floats(5, 7, type=np.float64), d.floats(4, 7, type=np.float64)],
             metric=metric, tolerance=(1e-8, 1e-8))
    image, grid = d.floats(1, 2, 5, 6), d.floats(1, 3, 4, 2)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            case(f"grid_sample_{mode}_{padding}", "GridSample", [image, grid], mode=mode, padding_mode=padding)
    case("grid_sample_corners", "GridSample", [image, grid], align_corners=1)


def quantize_linear(case, d):
    x = d.floats(3, 5, 4, scale=3)
    for type in (np.uint8, np.int8, np.uint16, np.int16):
        name, zero = np.dtype(type).name, scalar(3, type)
        case(f"quantize_{name}", "QuantizeLinear", [x, scalar(0.013), zero])
        case(f"quantize_{name}_axis", "QuantizeLinear", [x, d.positive(5), d.ints(type, 5)], axis=1)
        case(f"dequantize_{name}", "DequantizeLinear", [d.ints(type, 3, 5, 4), scalar(0.013), zero])
        case(f"dequantize_{name}_axis", "DequantizeLinear", [d.ints(type, 3, 5, 4), d.positive(5), d.ints(type, 5)],
             axis=1)
    case("quantize_default", "QuantizeLinear", [x, scalar(0.02)])
    case("dequantize_int32", "DequantizeLinear", [d.ints(np.int32, 3, 5, low=-9999, high=9999), scalar(0.02)])
    for type in (ml_dtypes.int4, ml_dtypes.uint4):
        name = np.dtype(type).name
        low, high = (-8, 7) if type == ml_dtypes.int4 else (0, 15)
        codes = d.ints(np.int8, 3, 5, low=low, high=high).astype(type)
        zeros = d.ints(np.int8, 5, low=low, high=high).astype(type)
        case(f"quantize_{name}", "QuantizeLinear", [x, scalar(0.5), np.array(2, type)], outputs_as=TensorProto.INT8)
        case(f"dequantize_{name}", "DequantizeLinear", [codes, scalar(0.5), np.array(2, type)])
        case(f"dequantize_{name}_axis", "DequantizeLinear", [codes, d.positive(5), zeros], axis=1)
