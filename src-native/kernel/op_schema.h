#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/op_traits.h"
#include "tensor/dtype.h"

namespace infernode::kernel {

/// What a parameter of an operator accepts: tensors of a set of element types, and/or sequences, optionals, maps of
/// such tensors.
struct TypeConstraint {
  std::string name;                                  ///< "T", or "" for an anonymous one
  tensor::TypeSet tensor;                            ///< tensor(elem)
  tensor::TypeSet sequence;                          ///< seq(tensor(elem))
  tensor::TypeSet optional_tensor;                   ///< optional(tensor(elem))
  tensor::TypeSet optional_sequence;                 ///< optional(seq(tensor(elem)))
  std::vector<std::string> maps;                     ///< "map(int64, float)", "seq(map(string, float))": spelled out
  bool any = false;                                  ///< subgraph-like "V" parameters: anything
  bool accepts(const graph::ValueType& type) const;  ///< Unknown kinds and element types are accepted
  std::string to_string() const;                     ///< for messages
};

struct Parameter {
  std::string name;
  enum class Arity : std::uint8_t { Single, Optional, Variadic, VariadicHeterogeneous } arity = Arity::Single;
  std::size_t constraint = 0;  ///< index into OpSchema::constraints
};

class InferContext;
using InferFn = void (*)(InferContext&);

/// One version of one operator; immutable once registered.
struct OpSchema {
  std::string domain;  ///< "" is ai.onnx
  std::string name;
  std::int64_t since_version = 1;
  bool deprecated = false;  ///< gone from this version on
  std::vector<Parameter> inputs, outputs;
  std::vector<TypeConstraint> constraints;
  InferFn infer = nullptr;
  bool deterministic = true;  ///< false: never folded or merged (random draws)
  std::string function_body;  ///< definition in ONNX's text form where the operator is a function without a kernel; ""
                              ///< otherwise
  OpTraits traits;

  std::size_t min_inputs() const;
  std::size_t max_inputs() const;  ///< SIZE_MAX where variadic
  std::size_t min_outputs() const;
  std::size_t max_outputs() const;
  const Parameter& input(std::size_t index) const;  ///< the variadic one for every index beyond
  const Parameter& output(std::size_t index) const;
};

/// Reads a signature such as
///   "X:T, shape:int64, zero:T? -> Y:T; T = all_ir4"          one constraint T; `?` optional; `*` variadic; `**`
///   variadic, types may differ "cond:bool -> outputs:V**; V = any" "seq:S, pos:I? -> tensor:T; S = seq(all), T = all,
///   I = int32|int64"
/// Type sets joined by `|`: single types by their ONNX spelling (float, double, float16, bfloat16, int8, ..., string,
/// bool, complex64, float8e4m3fn, uint4, ...), groups: floats (float16|float|double), floats_bf16, sints, uints, ints,
/// numeric (floats|ints), numeric_bf16, float8 (four), fixed by the standard's growth: all (15 original types: numeric,
/// string, bool, complex64, complex128), all_ir4 (+bfloat16), all_ir9 (+float8), all_ir10 (+int4, uint4), all_ir11
/// (+float4e2m1), all_ir12 (+float8e8m0), all_ir13 (+int2, uint2), all_ir14 (+float6e2m3, float6e3m2);
/// complex; `-` takes a set away (`all_ir9-complex`); seq(...), optional(...), optional(seq(...)), map(...), any.
OpSchema parse_signature(std::string_view domain, std::string_view name, std::int64_t since_version,
                         std::string_view signature);

}  // namespace infernode::kernel
