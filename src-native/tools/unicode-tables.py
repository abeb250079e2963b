"""Writes src-native/ops/text/unicode_tables.cpp: simple case mappings, general categories and scripts.

Run it with a Python that has fontTools (pip install fonttools), whose copy of the Scripts property it reads; the rest comes
from Python's own unicodedata:  python3 src-native/tools/unicode-tables.py
"""

import pathlib
import unicodedata

from fontTools import unicodedata as properties

CODE_POINTS = 0x110000
CATEGORIES = ("Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs").split()


def simple_upper(c):
    # Where the full mapping has several characters, the title case mapping is the simple one if it has one character.
    return next((m for m in (c.upper(), c.title()) if len(m) == 1), c)


def simple_lower(c):
    return "i" if c == "\u0130" else c.lower() if len(c.lower()) == 1 else c


def case_ranges(mapping):
    """(first, last, step, delta): first, first + step, ..., last map to themselves + delta."""
    ranges = []
    for code in range(CODE_POINTS):
        c = chr(code)
        delta = ord(mapping(c)) - code
        if delta == 0:
            continue
        if ranges:
            first, last, step, previous = ranges[-1]
            gap = code - last
            if delta == previous and (gap == step or (first == last and gap == 2)):
                ranges[-1] = (first, code, gap, delta)
                continue
        ranges.append((code, code, 1, delta))
    return ranges


def property_runs(value_of):
    """First code point of each run << 8 | value."""
    runs, previous = [], None
    for code in range(CODE_POINTS):
        value = value_of(code)
        if value != previous:
            runs.append(code << 8 | value)
            previous = value
    return runs


def write_array(out, declaration, items, per_line):
    out.append(f"{declaration} = {{")
    for i in range(0, len(items), per_line):
        out.append("    " + ", ".join(items[i : i + per_line]) + ",")
    out.append("};")
    out.append("")


def main():
    scripts = sorted({properties.script(chr(c)) for c in range(CODE_POINTS)})
    names = [properties.script_name(s).replace(" ", "_") for s in scripts]
    script_index = {s: i for i, s in enumerate(scripts)}
    out = [
        "// Written by src-native/tools/unicode-tables.py from the Unicode character database, version "
        f"{unicodedata.unidata_version}. Do not edit.",
        "// clang-format off",
        '#include "ops/text/unicode.h"',
        "",
        "namespace infernode::ops::text::tables {",
        "namespace {",
        "",
    ]
    for name, mapping in (("kUpperRanges", simple_upper), ("kLowerRanges", simple_lower)):
        items = ["{%#x, %#x, %d, %d}" % r for r in case_ranges(mapping)]
        write_array(out, f"constexpr CaseRange {name}[]", items, 6)
    runs = property_runs(lambda c: CATEGORIES.index(unicodedata.category(chr(c))))
    write_array(out, "constexpr std::uint32_t kCategoryRuns[]", ["%#x" % r for r in runs], 16)
    write_array(out, "constexpr std::string_view kCategoryNames[]", [f'"{c}"' for c in CATEGORIES], 20)
    runs = property_runs(lambda c: script_index[properties.script(chr(c))])
    write_array(out, "constexpr std::uint32_t kScriptRuns[]", ["%#x" % r for r in runs], 16)
    write_array(out, "constexpr std::string_view kScriptNames[]", [f'"{n}"' for n in names], 6)
    out.append("}  // namespace")
    out.append("")
    for function, element, array in (
        ("upper", "CaseRange", "kUpperRanges"),
        ("lower", "CaseRange", "kLowerRanges"),
        ("category_runs", "std::uint32_t", "kCategoryRuns"),
        ("category_names", "std::string_view", "kCategoryNames"),
        ("script_runs", "std::uint32_t", "kScriptRuns"),
        ("script_names", "std::string_view", "kScriptNames"),
    ):
        out.append(f"std::span<const {element}> {function}() {{ return {array}; }}")
    out += ["", "}  // namespace infernode::ops::text::tables", ""]
    root = pathlib.Path(__file__).resolve().parents[2]
    (root / "src-native/ops/text/unicode_tables.cpp").write_text("\n".join(out))


if __name__ == "__main__":
    main()
