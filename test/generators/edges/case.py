"""How a case is written: four lines of the fixture."""

import warnings

import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")

NAMES = {"float32": "float", "float64": "double"}
REFUSED = "refused"
UNSUPPORTED = "unsupported"  # the standard has it, the engine lacks it and says so
RANK8 = (1, 2, 1, 2, 1, 1, 2, 1)
inf, nan = np.inf, np.nan
f32, f64, f16, i64, i32, i8, u8 = (np.float32, np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8)
count = 0


def a(values, dtype=f32):
    return np.array(values, dtype=dtype)


def name_of(array):
    name = array.dtype.name
    return "string" if name.startswith("str") or name == "object" else NAMES.get(name, name)


def spell(value, name):
    if name == "string":
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if name in ("float", "double", "float16"):
        return repr(float(value)) if name != "float" else repr(float(np.float32(value))) if not np.isfinite(value) else str(np.float32(value))
    return str(int(value))


def tensors(values):
    parts = []
    for name, value in values.items():
        value = np.asarray(value)
        kind = name_of(value)
        dims = f"[{','.join(map(str, value.shape))}]" if value.ndim else ""
        parts.append(f"{kind}{dims} {name} = {{{', '.join(spell(v, kind) for v in value.ravel())}}}")
    return ", ".join(parts)


def case(op, what, node, inputs, expected, opset=21, tolerance=1e-5):
    """`node` is text; `expected` an array, a list of arrays for outputs y0, y1, ..., or REFUSED or UNSUPPORTED."""
    global count
    count += 1
    if expected is not REFUSED and expected is not UNSUPPORTED:
        many = expected if isinstance(expected, list) else [expected]
        expected = tensors({f"y{i}": v for i, v in enumerate(many)})
        if any(np.asarray(v).dtype == f16 for v in many):
            tolerance = max(tolerance, 2e-3)
    print(f"{op} | {what} | {opset} | {tolerance:g}\n{node}\n{tensors(inputs)}\n{expected}\n")


def shaped(dtype=f32, low=-3.0):
    """Empty, rank 0 and rank 8, by name."""
    rank8 = (np.arange(8).reshape(RANK8) + low).astype(dtype)
    return {"empty": np.zeros((2, 0, 3), dtype), "rank 0": np.array(2, dtype), "rank 8": rank8}
