"""GroupQueryAttention, in the forms that the peer has on the CPU."""
import numpy as np

from case import Draw

F16 = (5e-3, 5e-3)


def write(case):
    plain(case, Draw(31))
    quantized(case, Draw(32))


def caches(rows, half, type=np.float32):
    angles = np.outer(np.arange(rows), 0.4 ** np.arange(half))
    return np.cos(angles).astype(type), np.sin(angles).astype(type)


def plain(case, d):
    n, m, h = 4, 2, 16
    for type, suffix, tolerance in ((np.float32, "", (1e-4, 1e-5)), (np.float16, "_half", F16)):
        floats = lambda *shape: d.floats(*shape, type=type)

        def add(form, *, rows, b=2, past=0, held=None, lengths=None, packed=False, rotary=False, positions=None, added=None,
                sink=None, outputs=3, **attributes):
            """`lengths`: keys of each batch entry, those of this call included; `held`: rows of the cache."""
            total = past + rows
            held = past if held is None else held
            lengths = [total] * b if lengths is None else lengths
            qkv = [floats(b, rows, (n + 2 * m) * h), None, None] if packed else [
                floats(b, rows, n * h), floats(b, rows, m * h), floats(b, rows, m * h)]
            cache = [floats(b, m, held, h), floats(b, m, held, h)] if held else [None, None]
            tables = caches(32, h // 2, type) if rotary else (None, None)
            inputs = qkv + cache + [np.array(lengths, np.int32) - 1, np.array(total, np.int32), *tables, positions,
                                    added, sink]
            while inputs[-1] is None:
                inputs.pop()
            case(f"gqa_{form}{suffix}", "GroupQueryAttention", inputs, outputs=outputs, tolerance=tolerance,
                 num_heads=n, kv_num_heads=m, do_rotary=int(rotary), **attributes)

        add("prompt", rows=5)
        add("prompt_packed", rows=5, packed=True)
        add("prompt_rotary", rows=5, rotary=True)
        add("prompt_rotary_interleaved", rows=5, rotary=True, packed=True, rotary_interleaved=1)
        add("prompt_short", rows=5, lengths=[5, 3])
        add("decode", rows=1, past=6)
        add("decode_ragged", rows=1, past=6, lengths=[7, 4])
        add("decode_rotary", rows=1, past=6, lengths=[7, 4], rotary=True, packed=True)
        add("decode_long_cache", rows=1, past=6, held=12, rotary=True)
        add("chunk", b=1, rows=3, past=4, rotary=True)
        add("window", rows=6, local_window_size=3)
        add("window_decode", rows=1, past=6, local_window_size=3)
        add("softcap", rows=5, softcap=2.0)
        add("scale", rows=5, scale=0.3)
        add("smooth", rows=5, smooth_softmax=1)
        add("smooth_decode", rows=1, past=6, smooth_softmax=1, lengths=[7, 4])
        add("sink", rows=5, sink=floats(n))
        add("sink_window_softcap", rows=5, sink=floats(n), local_window_size=2, softcap=3.0)
        add("positions", b=1, rows=3, past=4, rotary=True, positions=np.array([[4, 5, 6]], np.int64))
        add("prompt_positions", rows=3, rotary=True, positions=np.array([[4, 5, 6], [1, 2, 3]], np.int64))
        add("decode_positions", rows=1, past=4, rotary=True, positions=np.array([[4], [2]], np.int64))
        add("bias", rows=5, added=floats(1, 1, 5, 5))
        add("bias_heads", rows=1, past=6, added=floats(2, n, 1, 7))
        add("qk_before", rows=5, outputs=4, qk_output=1)
        add("qk_after", rows=5, outputs=4, qk_output=2)
        add("qk_after_decode", rows=1, past=6, lengths=[7, 4], outputs=4, qk_output=2, smooth_softmax=1)
        add("qk_before_softcap_bias", rows=5, outputs=4, qk_output=1, softcap=2.0, added=floats(1, 1, 5, 5))
        add("both_ways", rows=5, causal=0)
        add("both_ways_chunk", b=1, rows=3, past=4, causal=0)


def quantized(case, d):
    b, n, m, h = 2, 4, 2, 16
    for kind in ("PER_TENSOR", "PER_CHANNEL"):
        for bits in (8, 4):
            type, width = (np.int8, h) if bits == 8 else (np.uint8, h // 2)
            for form, rows, held, past in (("prompt", 5, 0, 0), ("decode", 1, 6, 6), ("long", 1, 10, 6)):
                scale = lambda: d.positive(1 if kind == "PER_TENSOR" else m * h, low=0.02, high=0.06).reshape(
                    (1,) if kind == "PER_TENSOR" else (1, m, 1, h)) * (1 if bits == 8 else 8)
                cache = [d.ints(type, b, m, held, width) for _ in range(2)]
                case(f"gqa_{kind.lower()}_{bits}_{form}", "GroupQueryAttention",
                     [d.floats(b, rows, n * h), d.floats(b, rows, m * h), d.floats(b, rows, m * h), *cache,
                      np.full(b, past + rows - 1, np.int32), np.array(past + rows, np.int32), None, None, None, None,
                      None, scale().astype(np.float32), scale().astype(np.float32)], outputs=3, num_heads=n,
                     kv_num_heads=m, k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits,
                     tolerance=(1e-3, 1e-3))
