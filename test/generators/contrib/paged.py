#!/usr/bin/env python3
"""Writes small cases of SparseAttention and PagedAttention, for test/native/ops/attention/paged.test.cpp:
onnxruntime's answers, and those of the definition in numpy for what onnxruntime has on other devices only.

usage: paged.py > test/fixtures/contrib-paged.txt      (needs: pip install onnx onnxruntime==1.32.0)
"""
import numpy as np
import onnxruntime
from onnx import helper

from case import DOMAIN, Draw, tensor_type
from written import case

i32, f32, f16 = np.int32, np.float32, np.float16


def turned(x, positions, cos, sin, interleaved, offset=0):
    """Heads [rows, heads, head]."""
    y, half = x.copy(), cos.shape[1]
    c, s = cos[positions][:, None, :], sin[positions][:, None, :]
    part = y[..., offset:offset + 2 * half]
    a, b = (part[..., 0::2].copy(), part[..., 1::2].copy()) if interleaved else (part[..., :half].copy(), part[..., half:].copy())
    if interleaved:
        part[..., 0::2], part[..., 1::2] = a * c - b * s, b * c + a * s
    else:
        part[..., :half], part[..., half:] = a * c - b * s, b * c + a * s
    return y


def angles(rows, half):
    table = np.outer(np.arange(rows), 0.4**np.arange(half))
    return np.cos(table).round(3).astype(f32), np.sin(table).round(3).astype(f32)


def attended(q, keys, values, seen, scale, softcap=0, sink=None):
    """One query over the keys that it sees."""
    if not seen:
        return np.zeros(values.shape[-1])
    scores = keys[seen] @ q * scale
    if softcap:
        scores = np.tanh(scores / softcap) * softcap
    powers = np.exp(scores - scores.max())
    return powers @ values[seen] / (powers.sum() + (0 if sink is None else np.exp(sink - scores.max())))


def layouts(masks):
    rows, columns = [], []
    for mask in masks:
        rows.append([0, *np.cumsum([sum(row) for row in mask])])
        columns.append([i for row in mask for i, on in enumerate(row) if on])
    widest = max(map(len, columns))
    return np.array(rows, i32), np.array([c + [-1] * (widest - len(c)) for c in columns], i32)


def sparse_definition(q, k, v, past_key, past_value, masks, block, n, m, lengths, total, scale=0, cos=None, sin=None, interleaved=0):
    (b, s, _), h = q.shape, past_key.shape[-1]
    q, k, v = (x.reshape(b, s, -1, h).astype(np.float64) for x in (q, k, v))
    key, value, out = past_key.astype(np.float64), past_value.astype(np.float64), np.zeros((b, s, n, h))
    for i in range(b):
        first = 0 if total == s else lengths[i] - s
        places = first + np.arange(s)
        qi, ki = (q[i], k[i]) if cos is None else (turned(x[i], places, cos, sin, interleaved) for x in (q, k))
        key[i, :, places], value[i, :, places] = ki, v[i]
        for head in range(n):
            mask = masks[head % len(masks)]
            for r, p in enumerate(places):
                seen = [j for j in range(p + 1) if mask[p // block][j // block]]
                out[i, r, head] = attended(qi[r, head], key[i, head // (n // m)], value[i, head // (n // m)], seen, scale or h**-0.5)
    return [x.astype(past_key.dtype) for x in (out.reshape(b, s, n * h), key, value)]


def sparse_peer(inputs, attributes):
    """onnxruntime wants the caches' outputs in the memory of their inputs."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    node = helper.make_node("SparseAttention", names, ["y0", "y1", "y2"], domain=DOMAIN, **attributes)
    info = lambda name, x, shape: helper.make_tensor_value_info(name, tensor_type(x), shape)
    graph = helper.make_graph([node], "g", [info(n, x, x.shape) for n, x in zip(names, inputs) if n],
                              [info("y0", inputs[0], None), info("y1", inputs[3], inputs[3].shape), info("y2", inputs[4], inputs[4].shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    held = {n: onnxruntime.OrtValue.ortvalue_from_numpy(x.copy()) for n, x in zip(names, inputs) if n}
    for name, value in held.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y0")
    binding.bind_ortvalue_output("y1", held["x3"])
    binding.bind_ortvalue_output("y2", held["x4"])
    session.run_with_iobinding(binding)
    return [binding.get_outputs()[0].numpy().copy(), held["x3"].numpy().copy(), held["x4"].numpy().copy()]


def sparse(d):
    n, m, h, block = 2, 1, 16, 16
    masks = [[[1, 0], [0, 1]], [[1, 0], [1, 1]]]
    rows, columns = layouts(masks)

    def add(title, length, total, lengths=None, type=f32, packed=False, rotary=False, peer=True, batch=1, capacity=20, tolerance=1e-5, **more):
        f = lambda *shape: d.floats(*shape).round(1).astype(type)
        lengths = lengths or [total] * batch
        q, k, v = f(batch, length, n * h), f(batch, length, m * h), f(batch, length, m * h)
        past = [f(batch, m, capacity, h) for _ in range(2)]
        tables = [t.astype(type) for t in angles(capacity, h // 2)] if rotary else []
        given = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
        inputs = given + past + [rows, columns, np.array(total, i32), np.array(lengths, i32), *tables]
        attributes = dict(num_heads=n, kv_num_heads=m, sparse_block_size=block, do_rotary=int(rotary)) | more
        answers = sparse_peer(inputs, attributes) if peer else sparse_definition(
            q, k, v, *past, masks, block, n, m, lengths, total, more.get("scale", 0), *tables)
        case("SparseAttention", title, inputs, outputs=3, expected=answers, tolerance=tolerance, **attributes)

    add("a prompt", 18, 18)
    add("a next token", 1, 18)
    add("a next token, packed and turned", 1, 20, packed=True, rotary=True)
    add("a chunk over two blocks, turned", 4, 18, rotary=True, rotary_interleaved=1, scale=0.3)
    add("next tokens of unlike pasts", 1, 19, [19, 12], batch=2, peer=False, rotary=True)
    add("half", 2, 18, type=f16, rotary=True, tolerance=1e-2)


def paged_definition(q, k, v, key_cache, value_cache, starts, past, table, cos=None, sin=None, slots=None, sink=None, qnorm=None,
                     knorm=None, kscale=None, vscale=None, *, num_heads, kv_num_heads, scale=0.0, softcap=0.0, local_window_size=-1,
                     do_rotary=0, rotary_interleaved=0, rotary_offset=0, is_causal=1, kv_cache_layout="SEPARATE", v_head_size=0, **_):
    n, m, tokens, h = num_heads, kv_num_heads, len(q), q.shape[1] // num_heads
    latent, rows = kv_cache_layout == "LATENT", key_cache.shape[1]
    wide = v_head_size if latent and v_head_size else h
    norm = lambda x, w: x if w is None else x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * w
    q, k = norm(q.reshape(tokens, n, h).astype(np.float64), qnorm), norm(k.reshape(tokens, m, h).astype(np.float64), knorm)
    key, value = key_cache.copy(), None if latent else value_cache.copy()
    out = np.zeros((tokens, n, wide))

    def put(cache, slot, x, by):
        flat = cache.reshape(-1, *cache.shape[2:])
        flat[slot] = x if by is None else np.clip(np.rint(x / by.reshape(-1, 1, h)[:, 0] if by.size > 1 else x / by), -128, 127)

    def numbers(cache, by):
        flat = cache.reshape(-1, *cache.shape[2:]).astype(np.float64)
        return flat if by is None else flat * (by.reshape(-1, h) if by.size > 1 else by)

    for b in range(len(past)):
        at = slice(starts[b], starts[b + 1])
        places = past[b] + np.arange(starts[b + 1] - starts[b])
        if do_rotary:
            q[at], k[at] = (turned(x[at], places, cos, sin, rotary_interleaved, rotary_offset) for x in (q, k))
        where = lambda p: table[b][p // rows] * rows + p % rows if 0 <= table[b][p // rows] < len(key_cache) else -1
        for r, p in enumerate(places):
            slot = where(p) if slots is None else slots[starts[b] + r]
            if slot >= 0:
                put(key, slot, k[starts[b] + r], kscale)
                if not latent:
                    put(value, slot, v[starts[b] + r].reshape(m, h), vscale)
    for b in range(len(past)):
        total = past[b] + starts[b + 1] - starts[b]
        where = [table[b][p // rows] * rows + p % rows if 0 <= table[b][p // rows] < len(key_cache) else -1 for p in range(total)]
        keys = numbers(key, kscale)[where]
        values = keys[..., :wide] if latent else numbers(value, vscale)[where]
        for r in range(starts[b + 1] - starts[b]):
            p = past[b] + r
            seen = [j for j in range(total) if where[j] >= 0 and (j <= p or not is_causal) and (local_window_size < 1 or j > p - local_window_size)]
            for head in range(n):
                of = head // (n // m)
                out[starts[b] + r, head] = attended(q[starts[b] + r, head], keys[:, of], values[:, of], seen, scale or h**-0.5, softcap,
                                                    None if sink is None else float(sink[head]))
    return [out.reshape(tokens, n * wide), key] + ([] if latent else [value])


def paged(d):
    n, m, h, rows = 2, 1, 8, 4

    def add(title, fresh, past, table, type=f32, pages=4, packed=False, rotary=False, half=4, slots=None, sink=False, norms=False,
            codes=None, latent=False, tolerance=1e-5, **more):
        f = lambda *shape: d.floats(*shape).round(1).astype(type)
        tokens = sum(fresh)
        q, k, v = f(tokens, n * h), f(tokens, m * h), None if latent else f(tokens, m * h)
        caches = [d.ints(np.int8, pages, rows, m, h) if codes else f(pages, rows, m, h) for _ in range(2)]
        caches = [caches[0], None] if latent else caches
        scales = [np.array([0.03], f32)] * 2 if codes == "PER_TENSOR" else [d.positive(m, 1, h, low=0.02).round(3) for _ in range(2)] if codes else [None] * 2
        tables = [t.astype(type) for t in angles(16, half)] if rotary else [None] * 2
        rest = [np.array([0, *np.cumsum(fresh)], i32), np.array(past, i32), np.array(table, i32), *tables,
                None if slots is None else np.array(slots, i32), f(n) if sink else None, *([f(h), f(h)] if norms else [None] * 2), *scales]
        attributes = dict(num_heads=n, kv_num_heads=m, do_rotary=int(rotary)) | more
        if codes:
            attributes |= dict(k_quant_type=codes, v_quant_type=codes)
        if latent:
            attributes |= dict(kv_cache_layout="LATENT")
        answers = paged_definition(q, k, v, *caches, *rest, **attributes)
        given = [np.concatenate([q, k, v], -1), None, None] if packed else [q, k, v]
        expected = [answers[0].astype(type)] + [a.astype(c.dtype) for a, c in zip(answers[1:], caches)]
        case("PagedAttention", title, given + caches + rest, outputs=len(expected), expected=expected, tolerance=tolerance, **attributes)

    two = [[2, 0], [3, 1]]
    add("two sequences", [3, 1], [0, 5], two)
    add("packed and turned, a sequence of no tokens", [2, 0, 1], [4, 3, 0], [[1, 3], [0, -1], [2, -1]], packed=True, rotary=True)
    add("a window, softcap and sinks", [2, 1], [4, 6], two, local_window_size=3, softcap=2.0, sink=True)
    add("pages out of the window are gone", [1, 2], [5, 3], [[-1, 0], [3, 1]], local_window_size=2)
    add("slots, of which one is not written", [2, 1], [2, 4], two, slots=[10, -1, 4])
    add("norms, turned in pairs", [2, 1], [1, 2], two, rotary=True, rotary_interleaved=1, norms=True, scale=0.3)
    add("both ways", [3], [2], [[1, 2]], is_causal=0)
    add("half", [2, 1], [3, 0], two, type=f16, rotary=True, tolerance=1e-2)
    add("a cache of codes", [2, 1], [3, 0], two, codes="PER_TENSOR", tolerance=1e-4)
    add("a cache of codes, a scale a channel", [2, 1], [3, 0], two, codes="PER_CHANNEL", rotary=True, tolerance=1e-4)
    add("a latent cache", [2, 1], [3, 0], two, latent=True, v_head_size=4, scale=0.4, rotary=True, half=2, rotary_offset=4)


if __name__ == "__main__":
    sparse(Draw(71))
    paged(Draw(72))
