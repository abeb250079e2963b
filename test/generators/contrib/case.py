"""One case: a model of one node, its inputs, and what onnxruntime answers."""
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"


def tensor_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Writer:
    def __init__(self, folder, only):
        self.folder, self.only = folder, only

    def __call__(self, name, op, inputs, outputs=1, constants=(), tolerance=(1e-4, 1e-5), outputs_as=None,
                 domain=DOMAIN, opset=21, **attributes):
        """Input k is an array, or None where it is absent; those in `constants`, and those of types that numpy lacks,
        become initializers. `outputs`: a count, or a list of names with "" where an output is absent. `outputs_as`: the
        type that a Cast behind the node gives output 0."""
        if self.only and not any(name.startswith(o) for o in self.only):
            return
        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        attributes = {k.rstrip("_"): v for k, v in attributes.items() if v is not None}
        nodes = [helper.make_node(op, names, list(results), domain=domain, **attributes)]
        if outputs_as is not None:
            nodes.append(helper.make_node("Cast", [results[0]], ["cast"], to=outputs_as))
        fixed = [i for i, x in enumerate(inputs) if x is not None and (i in constants or x.dtype.kind == "V")]
        fed = [i for i, x in enumerate(inputs) if x is not None and i not in fixed]
        graph_outputs = [("cast" if outputs_as is not None and k == 0 else r) for k, r in enumerate(results) if r]
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info(names[i], tensor_type(inputs[i]), inputs[i].shape) for i in fed],
            [helper.make_empty_tensor_value_info(r) if r != results[-1] or len(results) < 4 else
             helper.make_tensor_value_info(r, tensor_type(inputs[0]), None) for r in graph_outputs],  # not inferred
            [numpy_helper.from_array(inputs[i], names[i]) for i in fixed])
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        feeds = {names[i]: inputs[i] for i in fed}
        answers = answer(model, feeds, name)
        for info, value in zip(graph.output, answers):  # a saved model says what its outputs are
            info.CopyFrom(helper.make_tensor_value_info(info.name, tensor_type(value), value.shape))
        model.graph.CopyFrom(graph)
        self.save(name, model, list(feeds.values()), answers, tolerance)

    def save(self, name, model, inputs, answers, tolerance):
        folder = os.path.join(self.folder, name)
        data = os.path.join(folder, "test_data_set_0")
        os.makedirs(data)
        onnx.save(model, os.path.join(folder, "model.onnx"))
        with open(os.path.join(folder, "tolerance.json"), "w") as f:
            json.dump({"rtol": tolerance[0], "atol": tolerance[1]}, f)
        for prefix, values in (("input", inputs), ("output", answers)):
            for j, value in enumerate(values):
                with open(os.path.join(data, f"{prefix}_{j}.pb"), "wb") as f:
                    f.write(numpy_helper.from_array(value).SerializeToString())


def answer(model, feeds, name):
    """Outputs of the model on onnxruntime's CPU provider, with the graph left as it is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception as error:
        raise RuntimeError(f"{name}: onnxruntime refuses the case: {error}") from error


class Draw:
    """Random arrays, the same at every run."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def floats(self, *shape, scale=1.0, type=np.float32):
        return (self.rng.standard_normal(shape) * scale).astype(type)

    def positive(self, *shape, low=0.01, high=0.1, type=np.float32):
        return self.rng.uniform(low, high, shape).astype(type)

    def ints(self, type, *shape, low=None, high=None):
        limits = np.iinfo(type)
        low, high = limits.min if low is None else low, limits.max if high is None else high
        return self.rng.integers(low, high + 1, shape, dtype=np.int64).astype(type)


def scalar(value, type=np.float32):
    return np.array(value, dtype=type)
