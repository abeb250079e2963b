#!/usr/bin/env python3
"""Writes small cases of GroupNorm and SkipGroupNorm with the answers of their definition in numpy, as onnxruntime has
them on other devices only, for test/native/ops/norm/group_norm.test.cpp.

usage: group_norm.py > test/fixtures/contrib-group-norm.txt      (needs: pip install onnx onnxruntime==1.32.0)
"""
import numpy as np

from case import Draw
from written import case

f32, f16 = np.float32, np.float16


def definition(x, gamma, beta, skip=None, bias=None, *, groups, epsilon=1e-5, activation=0, channels_last=1):
    x = x.astype(np.float64)
    first = (lambda a: a if channels_last else np.moveaxis(a, 1, -1))
    x = first(x)
    if skip is not None:
        x = x + (skip[:, None, None, :] if skip.ndim == 2 else first(skip)) + (0 if bias is None else bias)
    n, h, w, c = x.shape
    parts = x.reshape(n, h * w, groups, c // groups)
    y = (parts - parts.mean((1, 3), keepdims=True)) / np.sqrt(parts.var((1, 3), keepdims=True) + epsilon)
    y = y.reshape(x.shape) * gamma + beta
    if activation:
        y = y / (1 + np.exp(-y))
    return [a if channels_last else np.moveaxis(a, -1, 1) for a in (y, x)]


def main():
    d = Draw(61)
    for last in (1, 0):
        shape = (2, 2, 3, 8) if last else (2, 8, 2, 3)
        for type, suffix, tolerance in ((f32, "", 1e-5), (f16, ", half", 1e-2)):
            f = lambda *dims: d.floats(*dims, type=type).round(2)
            order = ", channels last" if last else ", channels first"

            def add(op, title, inputs, outputs=1, **attributes):
                attributes = dict(groups=2, activation=0, channels_last=last) | attributes
                answers = definition(*(i if i is None else i.astype(np.float64) for i in inputs), **attributes)
                case(op, title + order + suffix, inputs, outputs=outputs, tolerance=tolerance,
                     expected=[a.astype(type) for a in answers[:outputs]], **attributes)

            x, gamma, beta, bias = f(*shape), d.floats(8).round(2), d.floats(8).round(2), f(8)
            pixel = f(2, 1, 1, 8) if last else f(2, 8, 1, 1)
            add("GroupNorm", "two groups", [x, gamma, beta])
            add("GroupNorm", "a group a channel, silu", [x, gamma, beta], groups=8, activation=1, epsilon=0.01)
            add("SkipGroupNorm", "an image, a bias and the sum", [x, gamma, beta, f(*shape), bias], outputs=2, activation=1)
            add("SkipGroupNorm", "an image", [x, gamma, beta, f(*shape)], groups=4)
            add("SkipGroupNorm", "a pixel and a bias", [x, gamma, beta, pixel, bias], outputs=2)
            add("SkipGroupNorm", "channels", [x, gamma, beta, f(2, 8)], outputs=2)


if __name__ == "__main__":
    main()
