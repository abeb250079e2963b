"""OpenVINO's CPU plugin as a process of the benchmark: openvino.mjs asks, this answers, one request at a time.

A frame, either way, is one line of JSON and then the bytes of its `tensors`, which the line lists as
{name, type, dims, bytes} in the order of their bytes. Requests name an operation; answers hold `value` or `error`.
"""

import json
import os
import sys
import time

sys.modules["openvino_telemetry"] = None  # it cannot be imported: nothing is reported to anybody

import numpy  # noqa: E402
import openvino  # noqa: E402

DTYPES = {
    name: numpy.dtype(name)
    for name in "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()
}


class Sessions:
    """Compiled models by number, each with one request for inference and what it answers with."""

    def __init__(self):
        self.core = openvino.Core()
        self.held = {}
        self.created = 0

    def create(self, model, threads, precision, outputs, tensors):
        """`outputs`: the names wanted, of which nothing else is then computed; null for all of the model's."""
        read = self.core.read_model(model)
        if outputs is not None:
            results = [read.output(name).get_node() for name in outputs]
            read = openvino.Model(results, read.get_parameters())
        compiled = self.core.compile_model(
            read,
            "CPU",
            {
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_NUM_THREADS": threads,
                "INFERENCE_PRECISION_HINT": precision,
            },
        )
        self.created += 1
        self.held[self.created] = compiled.create_infer_request()
        return {"id": self.created}, []

    def feed(self, id, tensors):
        request = self.held[id]
        ranks = {name: port.partial_shape.rank for port in request.model_inputs for name in port.names}
        scalars = {name for name, rank in ranks.items() if rank.is_static and rank.get_length() == 0}
        for name, array in tensors:
            # Models that declare a scalar get one element of one dim from callers, which the other engines take.
            fed = array.reshape(()) if name in scalars and array.size == 1 else array
            request.set_tensor(name, openvino.Tensor(fed))
        return None, []

    def run(self, id, outputs, tensors):
        self.feed(id, tensors)
        self.infer(id)
        return None, [(name, self.held[id].get_tensor(name).data) for name in outputs]

    def time(self, id, count, tensors):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.infer(id)
            times.append(1000 * (time.perf_counter() - start))
        return times, []

    def infer(self, id):
        self.held[id].infer({}, share_inputs=True, share_outputs=True)  # copies neither inputs nor outputs

    def release(self, id, tensors):
        del self.held[id]
        return None, []


def read_frame(stream):
    line = stream.readline()
    if not line:
        return None
    frame = json.loads(line)
    tensors = []
    for tensor in frame.pop("tensors"):
        data = stream.read(tensor["bytes"])
        if tensor["type"] not in DTYPES:
            raise SystemExit(f"the type {tensor['type']} of {tensor['name']} is not one that travels here")
        array = numpy.frombuffer(data, DTYPES[tensor["type"]]).reshape(tensor["dims"])
        tensors.append((tensor["name"], array))
    return {**frame, "tensors": tensors}


def write_frame(stream, frame, tensors=()):
    arrays = [(name, numpy.ascontiguousarray(array).reshape(array.shape)) for name, array in tensors]
    listed = [
        {"name": name, "type": array.dtype.name, "dims": array.shape, "bytes": array.nbytes} for name, array in arrays
    ]
    stream.write(json.dumps({**frame, "tensors": listed}).encode() + b"\n")
    for _, array in arrays:
        stream.write(array.tobytes())
    stream.flush()


def last_line(error):
    """What went wrong in the end: OpenVINO first says in which lines of its source."""
    lines = [line.strip().removeprefix("-- ") for line in str(error).splitlines()]
    return next((line for line in reversed(lines) if line), type(error).__name__)


def main():
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    sessions = Sessions()
    write_frame(answers, {"value": {"version": openvino.get_version()}})
    while (frame := read_frame(sys.stdin.buffer)) is not None:
        try:
            value, tensors = getattr(sessions, frame.pop("operation"))(**frame)
            write_frame(answers, {"value": value}, tensors)
        except Exception as error:
            write_frame(answers, {"error": last_line(error)})


main()
