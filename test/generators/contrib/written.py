"""Cases in the form of test/native/ops/written_cases.h, as onnxruntime answers them: title, nodes, inputs, outputs."""
from onnx import helper

from case import DOMAIN, answer, tensor_type

NAMES = {"float32": "float", "float64": "double"}


def spelt(name, array):
    kind = NAMES.get(array.dtype.name, array.dtype.name)
    dims = f"[{','.join(map(str, array.shape))}]" if array.ndim else ""
    return f"{kind}{dims} {name} = {{{', '.join(str(v) for v in array.ravel())}}}"


def case(op, title, inputs, outputs=1, compared=None, tolerance=1e-5, expected=None, **attributes):
    """`outputs`: a count or names with "" where one is absent; `compared`: name -> function of the answer, for parts
    that are unspecified; `expected`: the answers of a definition in numpy, where onnxruntime's CPU provider has none."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    while inputs[-1] is None:
        inputs, names = inputs[:-1], names[:-1]
    node = helper.make_node(op, names, results, domain=DOMAIN, **attributes)
    wanted = [r for r in results if r]
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, tensor_type(x), x.shape) for n, x in zip(names, inputs) if n],
        [helper.make_tensor_value_info(r, tensor_type(inputs[0]), None) if r == "y3" else
         helper.make_empty_tensor_value_info(r) for r in wanted])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    if expected is None:
        expected = answer(model, {n: x for n, x in zip(names, inputs) if n}, f"{op} {title}")
    answers = dict(zip(wanted, expected))
    for name, part in (compared or {}).items():
        answers[name] = part(answers[name])
    spell = lambda v: f'"{v}"' if isinstance(v, str) else str(v)
    listed = ", ".join(f"{k} = {spell(v)}" for k, v in attributes.items())
    print(f"{op} | {title} | 21 | {tolerance:g}")
    print(f"{', '.join(results)} = {DOMAIN}.{op}<{listed}>({', '.join(names)})")
    print(", ".join(spelt(n, x) for n, x in zip(names, inputs) if n))
    print(", ".join(spelt(n, y) for n, y in answers.items()) + "\n")
