#!/usr/bin/env python3
"""Quantizes a model with onnxruntime's own tool and runs it, another quantized one and the model itself in onnxruntime.

usage: quantizers.py MODE SOURCE OURS THEIRS OPTIONS FEEDS     (needs: pip install onnx onnxruntime)
  MODE     weights, dynamic or static
  OURS     a quantized model, which is run too; THEIRS is written
  OPTIONS  of the tool, as JSON; of static, with the folder `data`: in it a folder for each run, of NAME.npy
  FEEDS    a JSON file: {name: {type, dims, data}}

Prints JSON: `ours` and `theirs` have the SQNR of each output in dB, of static over the data of the calibration,
`answers` what OURS gives for FEEDS, `bytes` the size of THEIRS.
"""
import json
import os
import sys

import numpy as np
import onnx
import onnxruntime


class Reader:
    """The feeds of a folder, run by run."""

    def __init__(self, folder):
        self.runs = [os.path.join(folder, run) for run in sorted(os.listdir(folder), key=int)]
        self.set_range(0, len(self.runs))

    def set_range(self, start_index, end_index):
        self.left = iter(self.runs[start_index:end_index])

    def get_next(self):
        folder = next(self.left, None)
        if folder is None:
            return None
        return {name[:-4]: np.load(os.path.join(folder, name)) for name in os.listdir(folder)}

    def __len__(self):
        return len(self.runs)


def quantize(mode, source, target, options):
    if mode == "static":
        from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

        for name, kind in {
            "activation_type": QuantType,
            "weight_type": QuantType,
            "calibrate_method": CalibrationMethod,
            "quant_format": QuantFormat,
        }.items():
            if name in options:
                options[name] = kind[options[name]]
        quantize_static(source, target, Reader(options.pop("data")), **options)
    elif mode == "dynamic":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        if "weight_type" in options:
            options["weight_type"] = QuantType[options["weight_type"]]
        quantize_dynamic(source, target, **options)
    else:
        from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

        quantizer = MatMulNBitsQuantizer(onnx.load(source), **options)
        quantizer.process()
        quantizer.model.save_model_to_file(target, use_external_data_format=False)


def run(path, runs):
    """Of each output the elements that all runs give, one after another."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    given = [session.run(names, feeds) for feeds in runs]
    return {name: np.concatenate([values[i].ravel() for values in given]) for i, name in enumerate(names)}


def sqnr(actual, expected):
    error = float(np.sum((actual.astype(np.float64) - expected) ** 2))
    return 10 * float(np.log10(float(np.sum(expected.astype(np.float64) ** 2)) / max(error, 1e-300)))


def main():
    mode, source, ours, theirs, options, feeds = sys.argv[1:]
    options = json.loads(options)
    data = options.get("data")
    quantize(mode, source, theirs, options)
    with open(feeds, encoding="utf-8") as file:
        given = {
            name: np.array(value["data"], dtype=value["type"]).reshape(value["dims"])
            for name, value in json.load(file).items()
        }
    measured = [given] if data is None else list(iter(Reader(data).get_next, None))
    expected, own, other = run(source, measured), run(ours, measured), run(theirs, measured)
    print(
        json.dumps(
            {
                "ours": {name: sqnr(own[name], expected[name]) for name in expected},
                "theirs": {name: sqnr(other[name], expected[name]) for name in expected},
                "answers": {name: values.astype(float).tolist() for name, values in run(ours, [given]).items()},
                "bytes": os.path.getsize(theirs),
            }
        )
    )


if __name__ == "__main__":
    main()
