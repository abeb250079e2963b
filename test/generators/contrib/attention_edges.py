#!/usr/bin/env python3
"""Writes small cases of com.microsoft's attention operators with onnxruntime's answers, for
test/native/ops/attention/contrib_attention.test.cpp.

usage: attention_edges.py > test/fixtures/contrib-attention.txt      (needs: pip install onnx onnxruntime==1.32.0)

The form is that of test/generators/edges/case.py: title, nodes, inputs, outputs.
"""
import numpy as np

from case import Draw
from written import case

i32, i64, f32 = np.int32, np.int64, np.float32
def multi_head(d):
    b, s, n, h, k, p = 2, 2, 2, 4, 3, 2
    f = lambda *shape: d.floats(*shape).round(2)
    q, key, value, bias = f(b, s, n * h), f(b, k, n * h), f(b, k, n * h), f(3 * n * h)
    own = f(b, s, n * h), f(b, s, n * h)
    past = [f(b, n, p, h), f(b, n, p, h)]
    mha = lambda title, *inputs, **more: case("MultiHeadAttention", title, list(inputs), num_heads=n, **more)
    mha("values wider than keys", q, key, f(b, k, 2 * n * h))
    mha("bias on the scores, alike for all heads", q, key, value, None, None, f(b, 1, s, k))
    mha("bias on the scores and masked lengths", q, key, value, bias, np.array([3, 1], i32), f(1, n, s, k))
    mha("a mask that shuts all keys of a batch", q, key, value, None, np.array([[0, 0, 0], [1, 0, 1]], i32))
    mha("causal with a past", q, *own, None, None, None, *past, outputs=3, unidirectional=1)
    mha("causal with a past, a mask over both and the scores", q, *own, bias, np.array([[0, 1, 1, 1], [1, 1, 0, 1]], i32), None,
        *past, outputs=4, unidirectional=1)
    mha("scale and filter value", q, key, value, None, np.array([2, 3], i32), scale=0.3, mask_filter_value=-2.0)
    cache = [f(b, n, 5, h), f(b, n, 5, h)]
    mha("a shared cache", q[:, :1], own[0][:, :1], own[1][:, :1], None, None, None, *cache, np.array([3], i32), outputs=3)
    mha("a shared cache and beams", q[:, :1], own[0][:, :1], own[1][:, :1], None, None, None, *cache, np.array([3], i32),
        d.ints(i32, 1, b, 5, low=0, high=1), outputs=3)
    one = dict(num_heads=n, past_present_share_buffer=1)
    case("DecoderMaskedMultiHeadAttention", "beams, bias and scores",
         [q[:, :1], own[0][:, :1], own[1][:, :1], None, None, *cache, np.array([3], i32), np.array([2], i32),
          d.ints(i32, 1, b, 5, low=0, high=1), bias], outputs=4, output_qk=1, **one)
    case("DecoderMaskedMultiHeadAttention", "cross attention with a mask",
         [q[:, :1], f(b, n, k, h), f(b, n, k, h), np.array([[1, 1, 0], [0, 1, 1]], i32)], num_heads=n)


def projected(d):
    b, s, n, h, p = 2, 2, 2, 4, 2
    f = lambda *shape: d.floats(*shape).round(2)
    x, w, bias, past = f(b, s, 3), f(3, 3 * n * h), f(3 * n * h), f(2, b, n, p, h)
    for title, mask in (("end positions", np.array([2, 1], i32)), ("end and start positions", np.array([2, 2, 0, 1], i32)),
                        ("a mask by key", np.array([[1, 0], [1, 1]], i32)),
                        ("a mask by query and key", np.array([[[1, 0], [1, 1]], [[0, 1], [0, 0]]], i32))):
        case("Attention", title, [x, w, bias, mask], num_heads=n)
    case("Attention", "a past, causal", [x, w, bias, None, past], outputs=2, num_heads=n, unidirectional=1)
    case("Attention", "a bias on the scores", [x, w, bias, None, None, f(1, 1, s, s)], num_heads=n)
    scale, zero = np.array(0.02, f32), np.array(120, np.uint8)
    args = [d.ints(np.uint8, b, s, 3), d.ints(np.int8, 3, 3 * n * h), bias, scale, scale]
    case("QAttention", "zero points and a past", args + [None, zero, np.array(3, np.int8), past], outputs=2, num_heads=n,
         tolerance=1e-4)
    case("QAttention", "scales by column, causal, masked", args[:4] + [d.positive(3 * n * h).round(3), np.array([2, 1], i32), zero,
         d.ints(np.int8, 3 * n * h, low=-5, high=5)], num_heads=n, unidirectional=1, tolerance=1e-4)


def group_query(d):
    n, m, h = 2, 1, 16
    f = lambda *shape: d.floats(*shape).round(1)
    angles = np.outer(np.arange(8), 0.4 ** np.arange(h // 2))
    tables = [np.cos(angles).astype(f32).round(4), np.sin(angles).astype(f32).round(4)]

    def add(title, rows, past=0, *, b=1, held=None, tokens=None, total=None, packed=False, rotary=False, positions=None,
            added=None, sink=None, scales=(None, None), caches=None, valid=None, outputs=3, compared=None, **more):
        """`tokens`: of each batch entry, those of this call included."""
        held = past if held is None else held
        tokens = [past + rows] * b if tokens is None else tokens
        qkv = [f(b, rows, (n + 2 * m) * h), None, None] if packed else [f(b, rows, n * h), f(b, rows, m * h), f(b, rows, m * h)]
        caches = caches or ([f(b, m, held, h), f(b, m, held, h)] if held else [None, None])
        case("GroupQueryAttention", title,
             qkv + caches + [np.array(tokens, i32) - 1, np.array(max(tokens) if total is None else total, i32),
                             *(tables if rotary else (None, None)), positions, added, sink, *scales, None, None, valid],
             outputs=outputs, compared=compared, num_heads=n, kv_num_heads=m, do_rotary=int(rotary), **more)

    add("a first prompt, padded on the right", 3, b=2, tokens=[3, 2])
    add("a first prompt, packed and turned", 3, packed=True, rotary=True)
    add("a next chunk", 2, 2, rotary=True, rotary_interleaved=1)
    add("one token each, of unlike pasts", 1, 3, b=2, tokens=[4, 2], packed=True, rotary=True)
    add("one token in a longer cache", 1, 2, held=5)
    add("a window, softcap and sinks", 3, 2, local_window_size=2, softcap=2.0, sink=f(n))
    add("a smooth softmax", 3, smooth_softmax=1)
    add("positions", 2, 2, rotary=True, positions=np.array([[5, 1]], i64))
    add("positions of a first prompt: the first counts", 3, rotary=True, positions=np.array([[3, 0, 0]], i64))
    add("a bias on the scores", 2, 2, added=f(1, n, 2, 4))
    add("scores", 2, 2, outputs=4, qk_output=1, softcap=3.0)
    add("probabilities, of unlike pasts", 1, 3, b=2, tokens=[4, 2], outputs=4, qk_output=2, smooth_softmax=1)
    add("both ways", 2, 2, causal=0)
    for bits, kind, width in ((8, np.int8, h), (4, np.uint8, h // 2)):
        scale = np.array([0.05 if bits == 8 else 0.4], f32)
        add(f"a cache of {bits}-bit codes", 1, 2, b=2, tokens=[3, 2], caches=[d.ints(kind, 2, m, 2, width) for _ in range(2)],
            scales=(scale, scale), k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=bits,
            tolerance=1e-3)
        each = d.positive(1, m, 1, h, low=0.02, high=0.06).round(3) * (1 if bits == 8 else 8)
        add(f"a cache of {bits}-bit codes, a scale by channel", 1, 2, caches=[d.ints(kind, 1, m, 2, width) for _ in range(2)],
            scales=(each, each), k_quant_type="PER_CHANNEL", v_quant_type="PER_CHANNEL", kv_cache_bit_width=bits,
            tolerance=1e-3)
    # Rows of the cache behind those that count are unspecified.
    held = lambda *counts: lambda y: np.stack([np.where(np.arange(y.shape[2])[:, None] < k, z, 0) for k, z in zip(counts, y)])
    kept = lambda *counts: dict(y1=held(*counts), y2=held(*counts))
    more = dict(sliding_window_cache=1, local_window_size=3)
    add("a cache of the window, not full yet", 1, 1, held=3, rotary=True, compared=kept(2), **more)
    add("a cache of the window, full", 1, 6, held=3, rotary=True, compared=kept(3), **more)
    add("a cache with room beyond the window", 1, 6, held=5, b=2, tokens=[7, 6], compared=kept(4, 3), **more)
    add("a chunk longer than the cache of the window", 5, 4, held=4, compared=kept(3), added=f(1, 1, 5, 9), **more)
    add("8-bit codes in a cache of the window", 2, 4, caches=[d.ints(np.int8, 1, m, 3, h) for _ in range(2)],
        scales=(np.array([0.05], f32),) * 2, k_quant_type="PER_TENSOR", v_quant_type="PER_TENSOR", kv_cache_bit_width=8,
        compared=kept(3), tolerance=1e-3, **more)
    valid = np.array([2, 0], i32)
    last = lambda y: np.where((np.arange(y.shape[1]) < valid[:, None])[:, :, None], y, f32(0))
    add("padded chunks and an idle entry", 3, 0, b=2, held=8, tokens=[6, 3], total=8, rotary=True, valid=valid,
        compared=dict(y0=last, **kept(6, 3)))
    add("padded chunks in a cache of the window", 3, 0, b=2, held=4, tokens=[6, 3], total=6, rotary=True, valid=valid,
        compared=dict(y0=last, **kept(4, 3)), **more)


def main():
    multi_head(Draw(41))
    projected(Draw(42))
    group_query(Draw(43))


if __name__ == "__main__":
    main()
