"""Attention, MultiHeadAttention and DecoderMaskedMultiHeadAttention, in the forms that the peer has on the CPU."""
import numpy as np

from case import Draw


def write(case):
    projected(case, Draw(21))
    multi_head(case, Draw(22))
    decoder(case, Draw(23))


def projected(case, d):
    b, s, n, h, p = 2, 4, 3, 8, 5
    x, w, bias = d.floats(b, s, 10), d.floats(10, 3 * n * h, scale=0.5), d.floats(3 * n * h)
    past = d.floats(2, b, n, p, h)
    add = lambda name, mask=None, past=None, added=None, **attributes: case(
        name, "Attention", [x, w, bias, mask, past, added], outputs=2 if past is not None else 1, constants=[1, 2],
        num_heads=n, **attributes)
    lengths = np.array([4, 2], np.int32)
    two = np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32)
    three = d.ints(np.int32, b, s, s, low=0, high=1)
    for causal in (0, 1):
        c = dict(unidirectional=causal)
        name = "causal" if causal else "full"
        add(f"attention_{name}", **c)
        add(f"attention_{name}_lengths", lengths, **c)
        add(f"attention_{name}_starts", np.array([4, 3, 1, 0], np.int32), **c)
        add(f"attention_{name}_2d", two, **c)
        add(f"attention_{name}_3d", three, **c)
        add(f"attention_{name}_past", past=past, **c)
        add(f"attention_{name}_past_2d", d.ints(np.int32, b, p + s, low=0, high=1), past, **c)
        add(f"attention_{name}_past_3d", d.ints(np.int32, b, s, p + s, low=0, high=1), past, **c)
        add(f"attention_{name}_bias", None, None, d.floats(b, n, s, s), **c)
        add(f"attention_{name}_shared_bias_2d", two, None, d.floats(1, 1, s, s), **c)
        add(f"attention_{name}_filter", two, mask_filter_value=-3.0, **c)
    add("attention_nothing_open", np.array([[0, 0, 0, 0], [0, 1, 1, 1]], np.int32))
    add("attention_nothing_open_causal", np.array([[0, 0, 0, 0], [0, 1, 1, 1]], np.int32), unidirectional=1)
    add("attention_scale", scale=0.7)
    case("attention_sizes", "Attention", [x, d.floats(10, 2 * 24 + 12), d.floats(60)], constants=[1], num_heads=n,
         qkv_hidden_sizes=[24, 24, 12])
    case("attention_no_bias", "Attention", [x, w], num_heads=n)
    case("attention_present_without_past", "Attention", [x, w, bias], outputs=2, num_heads=n)


def multi_head(case, d):
    b, s, n, h, k, p = 2, 4, 3, 8, 6, 5
    hidden = n * h
    q, key, value, bias = d.floats(b, s, hidden), d.floats(b, k, hidden), d.floats(b, k, hidden), d.floats(3 * hidden)
    own_key, own_value = d.floats(b, s, hidden), d.floats(b, s, hidden)
    past = [d.floats(b, n, p, h), d.floats(b, n, p, h)]
    add = lambda name, *inputs, outputs=1, **attributes: case(name, "MultiHeadAttention", list(inputs),
                                                              outputs=outputs, num_heads=n, **attributes)
    add("mha_cross", q, key, value)
    add("mha_cross_bias", q, key, value, bias)
    add("mha_causal", q, own_key, own_value, unidirectional=1)
    add("mha_scale", q, key, value, scale=0.3)
    add("mha_wide_values", q, key, d.floats(b, k, 2 * hidden))
    add("mha_heads_apart", q, d.floats(b, n, k, h), d.floats(b, n, k, h))
    add("mha_heads_apart_bias", q, d.floats(b, n, k, h), d.floats(b, n, k, h), bias)
    lengths, spans = np.array([6, 2], np.int32), np.array([6, 2, 0, 4, 8, 0, 6, 12], np.int32)
    two, three = d.ints(np.int32, b, k, low=0, high=1), d.ints(np.int32, b, s, k, low=0, high=1)
    for name, mask in (("lengths", lengths), ("spans", spans), ("2d", two), ("3d", three)):
        add(f"mha_mask_{name}", q, key, value, None, mask)
    for name, mask in (("lengths", np.array([4, 2], np.int32)), ("2d", two[:, :s]), ("3d", three[:, :, :s])):
        add(f"mha_mask_{name}_causal", q, own_key, own_value, bias, np.ascontiguousarray(mask), unidirectional=1)
    add("mha_bias", q, key, value, None, None, d.floats(b, n, s, k))
    add("mha_shared_bias", q, key, value, bias, two, d.floats(1, 1, s, k))
    add("mha_batch_bias", q, key, value, bias, None, d.floats(b, 1, s, k))
    with_past = [q, own_key, own_value, bias, None, None] + past
    add("mha_past", *with_past, outputs=3)
    add("mha_past_causal", *with_past, outputs=3, unidirectional=1)
    add("mha_past_mask", *(with_past[:4] + [d.ints(np.int32, b, p + s, low=0, high=1), d.floats(1, n, s, p + s)] + past),
        outputs=3, unidirectional=1)
    add("mha_past_lengths", *(with_past[:4] + [np.array([9, 6], np.int32), None] + past), outputs=3)
    add("mha_present", q, own_key, own_value, bias, outputs=3)
    add("mha_qk", q, key, value, bias, None, None, outputs=["y", "", "", "qk"])
    add("mha_qk_past", *with_past, outputs=4, unidirectional=1)
    shared = [d.floats(b, n, 12, h), d.floats(b, n, 12, h)]
    length = np.array([5], np.int32)
    add("mha_shared_cache", q[:, :1], own_key[:, :1], own_value[:, :1], bias, None, None, *shared, length, outputs=3)
    add("mha_shared_cache_rows", q, own_key, own_value, None, None, None, *shared, length, outputs=3)
    beams = d.ints(np.int32, 1, b, 12, low=0, high=1)
    add("mha_beams", q[:, :1], own_key[:, :1], own_value[:, :1], bias, None, None, *shared, length, beams, outputs=3)
    add("mha_beams_qk", q[:, :1], own_key[:, :1], own_value[:, :1], None, None, d.floats(1, n, 1, 6), *shared, length,
        beams, outputs=4)


def decoder(case, d):
    b, n, h, k, most = 4, 3, 8, 6, 10
    hidden = n * h
    q, key, value, bias = d.floats(b, 1, hidden), d.floats(b, 1, hidden), d.floats(b, 1, hidden), d.floats(3 * hidden)
    cache = [d.floats(b, n, most, h), d.floats(b, n, most, h)]
    length, width = np.array([5], np.int32), np.array([2], np.int32)
    beams = d.ints(np.int32, 2, 2, most, low=0, high=1)
    add = lambda name, *inputs, outputs=3, **attributes: case(name, "DecoderMaskedMultiHeadAttention", list(inputs),
                                                              outputs=outputs, num_heads=n, **attributes)
    shared = dict(past_present_share_buffer=1)
    add("decoder_self", q, key, value, None, None, *cache, length, **shared)
    add("decoder_self_bias", q, key, value, None, None, *cache, length, None, None, bias, **shared)
    add("decoder_self_mask", q, key, value, d.ints(np.int32, b, 6, low=0, high=1), None, *cache, length, **shared)
    add("decoder_self_added", q, key, value, None, d.floats(1, n, 1, 6), *cache, length, **shared)
    add("decoder_self_beams", q, key, value, None, None, *cache, length, width, beams, bias, **shared)
    add("decoder_self_qk", q, key, value, None, None, *cache, length, width, beams, outputs=4, output_qk=1, **shared)
    add("decoder_cross", q, d.floats(b, n, k, h), d.floats(b, n, k, h), outputs=1)
    add("decoder_cross_mask", q, d.floats(b, n, k, h), d.floats(b, n, k, h), d.ints(np.int32, b, k, low=0, high=1),
        outputs=1)
    add("decoder_cross_bias_qk", q, d.floats(b, n, k, h), d.floats(b, n, k, h), None, None, None, None, None, None,
        None, bias, outputs=["y", "", "", "qk"], output_qk=1)
    add("decoder_scale", q, key, value, None, None, *cache, length, scale=0.2, **shared)
