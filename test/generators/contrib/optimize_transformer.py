#!/usr/bin/env python3
"""Fuses a transformer as onnxruntime's offline optimizer does and prints the operators of com.microsoft in the result.

usage: optimize_transformer.py MODEL OUT TYPE HEADS HIDDEN     (needs: pip install onnx onnxruntime)
"""
import sys

from onnxruntime.transformers.optimizer import optimize_model


def main():
    source, target, model_type, heads, hidden = sys.argv[1:]
    model = optimize_model(source, model_type=model_type, num_heads=int(heads), hidden_size=int(hidden), opt_level=0)
    model.save_model_to_file(target)
    nodes = model.model.graph.node
    print(" ".join(sorted({node.op_type for node in nodes if node.domain == "com.microsoft"})))


if __name__ == "__main__":
    main()
