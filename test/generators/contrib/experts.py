#!/usr/bin/env python3
"""Writes small cases of MoE and QMoE, for test/native/ops/moe/moe.test.cpp: onnxruntime's answers, and those of the
definition in numpy for what onnxruntime has on other devices only.

usage: experts.py > test/fixtures/contrib-experts.txt      (needs: pip install onnx onnxruntime==1.32.0)
"""
import numpy as np

from case import Draw
from written import case

f32, f16 = np.float32, np.float16
TOKENS, EXPERTS, WIDTH = 5, 4, 16
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "relu2": lambda x: np.maximum(x, 0)**2, "identity": lambda x: x,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
}


def gate(g, l, kind, alpha, beta, limit, after):
    if kind == "geglu":
        return ACTIVATIONS["gelu"](g) * l
    if kind != "swiglu":
        return ACTIVATIONS[kind](g) * l
    if limit is not None:
        l = np.clip(l, -limit, limit)
        g = g if after else np.minimum(g, limit)
    g = g / (1 + np.exp(-alpha * g))
    return (np.minimum(g, limit) if after else g) * (l + beta)


def sparse_mixer(scores):
    left, chosen, weights = scores.copy(), [], []
    for _ in range(2):
        best = int(np.argmax(left))
        near = (left[best] - scores) / np.maximum(np.abs(scores), left[best]) <= 0.02
        powers = np.where(near & np.isfinite(left), np.exp(left - left[best]), 0)
        chosen.append(best)
        weights.append(powers[best] / powers.sum())
        left[best] = -np.inf
    return chosen, weights


def definition(x, scores, w1, b1, w2, b2, w3=None, b3=None, *, k=1, normalize_routing_weights=0, use_sparse_mixer=0,
               activation_type="relu", swiglu_fusion=0, activation_alpha=1.0, activation_beta=0.0, swiglu_limit=None,
               swiglu_limit_after_activation=0, among_chosen=False):
    gated = lambda g, l: gate(g, l, activation_type, activation_alpha, activation_beta, swiglu_limit,
                              swiglu_limit_after_activation)
    out = np.zeros_like(x.reshape(-1, WIDTH), np.float64)
    for t, row in enumerate(x.reshape(-1, WIDTH).astype(np.float64)):
        s = scores[t].astype(np.float64)
        chosen = np.argsort(-s, kind="stable")[:k]
        base = s[chosen] if among_chosen else s
        powers = np.exp(s - s.max())
        weights = powers[chosen] / np.exp(base - s.max()).sum()
        if normalize_routing_weights:
            weights = weights / weights.sum()
        if use_sparse_mixer:
            chosen, weights = sparse_mixer(s)
        for e, weight in zip(chosen, weights):
            h = w1[e] @ row + b1[e]
            if w3 is not None:
                h = gated(h, w3[e] @ row + b3[e])
            elif swiglu_fusion == 1:
                h = gated(h[0::2], h[1::2])
            elif swiglu_fusion == 2:
                h = gated(*np.split(h, 2))
            else:
                h = ACTIVATIONS[activation_type](h)
            out[t] += weight * (w2[e] @ h + b2[e])
    return [out.reshape(x.shape).astype(x.dtype)]


def plain(d):
    inner = 6
    for type, suffix, tolerance in ((f32, "", 1e-5), (f16, ", half", 1e-2)):
        f = lambda *shape: d.floats(*shape, type=type, scale=0.5).round(2)
        x, scores = f(TOKENS, WIDTH), f(TOKENS, EXPERTS) * 2
        w1, b1, w2, b2 = f(EXPERTS, inner, WIDTH), f(EXPERTS, inner), f(EXPERTS, WIDTH, inner), f(EXPERTS, WIDTH)
        w3, b3 = f(EXPERTS, inner, WIDTH), f(EXPERTS, inner)
        fused, fused_bias = f(EXPERTS, 2 * inner, WIDTH), f(EXPERTS, 2 * inner)

        def add(title, inputs, own=False, **attributes):
            expected = definition(*inputs, **attributes) if own else None
            case("MoE", title + suffix, inputs, expected=expected, tolerance=tolerance, **attributes)

        one = [x, scores, w1, b1, w2, b2]
        add("the best expert", one)
        if type == f32:
            for kind in ("gelu", "silu", "identity"):
                add(f"two experts, {kind}", one, k=2, activation_type=kind)
            add("two experts, squared relu", one, own=True, k=2, activation_type="relu2")
            add("no biases", [x, scores, w1, None, w2], k=3)
            add("the sparse mixer", [x, (scores * 0 + [[1, 0.99, 0.5, 0.985]]).astype(f32), *one[2:]], own=True, k=2,
                use_sparse_mixer=1)
            add("a gate of two products", one + [w3, b3], own=True, k=2, activation_type="silu")
            add("swiglu of two products", one + [w3, b3], own=True, k=2, activation_type="swiglu", activation_alpha=1.7,
                activation_beta=1.0, swiglu_limit=0.5)
            add("swiglu of halves, cut off after the gate", [x, scores, fused, fused_bias, w2, b2], own=True, k=2,
                activation_type="swiglu", swiglu_fusion=2, swiglu_limit=0.5, swiglu_limit_after_activation=1)
            add("geglu", [x, scores, fused, fused_bias, w2, b2], own=True, k=2, activation_type="geglu", swiglu_fusion=1)
        add("all experts, weights of sum one", [x[:4].reshape(2, 2, WIDTH), scores[:4], *one[2:]], k=4,
            normalize_routing_weights=1)
        add("swiglu, cut off", [x, scores, fused, fused_bias, w2, b2], k=2, activation_type="swiglu", swiglu_fusion=1,
            activation_alpha=1.7, activation_beta=1.0, swiglu_limit=0.75, normalize_routing_weights=1)


def packed(codes, bits):
    """The last axis two or four to a byte, the first in the low bits, filled up with zeros."""
    per = 8 // bits
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % per)]).reshape(*codes.shape[:-1], -1, per)
    return sum(codes[..., i] << i * bits for i in range(per)).astype(np.uint8)


class Quantized:
    """Random matrices of experts: codes, scales, zero points, and the numbers that they stand for."""

    def __init__(self, d, n, k, bits, block, zeros):
        blocks = k // block if block else 1
        codes = d.ints(np.uint8, EXPERTS, n, k, low=0, high=2**bits - 1)
        scales = d.positive(EXPERTS, n, blocks, low=0.4 / 2**bits, high=1.6 / 2**bits).round(4)
        points = d.ints(np.uint8, EXPERTS, n, blocks, low=0, high=2**bits - 1)
        middle = points if zeros else np.full_like(points, 2**(bits - 1))
        each = lambda a: np.repeat(a.astype(np.float64), k // blocks, -1)
        self.codes, self.numbers = packed(codes, bits), (codes - each(middle)) * each(scales)
        self.scales = scales if block else scales[..., 0]
        self.zeros = packed(points if block else points[..., 0], bits) if zeros else None


def quantized(d):
    f = lambda *shape: d.floats(*shape, scale=0.5).round(2)

    def add(title, bits=4, block=16, zeros=False, inner=16, fc3=False, own=False, weights=False, type=f32, bits2=None,
            tolerance=1e-5, length=TOKENS, **attributes):
        bits2, rows = bits2 or bits, inner * (2 if attributes.get("swiglu_fusion") else 1)
        q1, q2 = Quantized(d, rows, WIDTH, bits, block, zeros), Quantized(d, WIDTH, inner, bits2, block, zeros)
        q3 = Quantized(d, inner, WIDTH, bits, block, zeros) if fc3 else None
        b1, b2, b3 = f(EXPERTS, rows).astype(type), f(EXPERTS, WIDTH).astype(type), f(EXPERTS, inner).astype(type)
        x, scores = f(length, WIDTH).astype(type), (f(length, EXPERTS) * 2).astype(type)
        inputs = [x, scores, q1.codes, q1.scales.astype(type), b1, q2.codes, q2.scales.astype(type), b2]
        inputs += [q3.codes, q3.scales, b3] if fc3 else [None] * 3
        inputs += [q1.zeros, q2.zeros, q3.zeros if fc3 else None, d.positive(length, EXPERTS, high=1) if weights else None]
        expected = None
        if own:
            expected = definition(x, scores, q1.numbers, b1, q2.numbers, b2, *((q3.numbers, b3) if fc3 else ()),
                                  among_chosen=True, **attributes)
        sizes = dict(expert_weight_bits=bits, block_size=block or None, fc2_expert_weight_bits=bits2 if bits2 != bits else None)
        case("QMoE", title, inputs, expected=expected, tolerance=tolerance,
             **{k: v for k, v in (sizes | attributes).items() if v is not None})

    swiglu = dict(activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.7, activation_beta=1.0, swiglu_limit=1.0)
    add("a scale a row", block=0, k=2)
    add("a scale and zero point a row", block=0, zeros=True, k=2, normalize_routing_weights=1)
    add("a scale a block", k=2, activation_type="silu")
    add("swiglu", k=2, **swiglu)
    add("8 bits, swiglu, zero points of blocks", bits=8, zeros=True, k=2, tolerance=2e-2, **swiglu)
    add("8 bits, a scale a row", bits=8, block=0, k=1, tolerance=2e-2)
    add("2 bits, zero points", bits=2, zeros=True, k=2)
    add("weights given beside the scores", weights=True, k=2, normalize_routing_weights=1)
    add("half", k=2, type=f16, tolerance=2e-2, **swiglu)
    add("a gate of two products, zero points", fc3=True, own=True, zeros=True, k=2, activation_type="silu")
    add("4 and 8 bits", bits2=8, own=True, k=2)


if __name__ == "__main__":
    plain(Draw(51))
    quantized(Draw(52))
