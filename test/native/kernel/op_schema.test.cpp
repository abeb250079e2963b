#include "kernel/op_schema.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace infernode::kernel {
namespace {

using graph::ValueType;
using tensor::DType;
using tensor::TypeSet;

TypeSet types_of(std::string_view text) {
  return parse_signature("", "Op", 1, cat("X:T -> Y:T; T = ", text)).constraints.at(0).tensor;
}

TEST_CASE("A signature names parameters, their arity and their types") {
  const OpSchema schema =
      parse_signature("", "Op", 13, "X:T, shape:int64, zero:T?, rest:T* -> Y:T, mask:bool?; T = float|double");
  CHECK(schema.since_version == 13);
  REQUIRE(schema.inputs.size() == 4);
  CHECK(schema.inputs[1].name == "shape");
  CHECK(schema.constraints[schema.inputs[1].constraint].tensor == TypeSet{DType::Int64});
  CHECK(schema.constraints[schema.inputs[1].constraint].name.empty());
  CHECK(schema.inputs[2].arity == Parameter::Arity::Optional);
  CHECK(schema.inputs[0].constraint == schema.outputs[0].constraint);
  CHECK(schema.min_inputs() == 4);
  CHECK(schema.max_inputs() == SIZE_MAX);
  CHECK(schema.min_outputs() == 1);
  CHECK(schema.max_outputs() == 2);
  CHECK(schema.input(7).name == "rest");
}

TEST_CASE("Arity counts up to the last parameter that must be there") {
  CHECK(parse_signature("", "Op", 1, "X:float, k:int64? -> Y:float").min_inputs() == 1);
  CHECK(parse_signature("", "Op", 1, "M:int64?, cond:bool?, v:V** -> out:V**; V = any").min_inputs() == 0);
  CHECK(parse_signature("", "Op", 1, " -> Y:float").max_inputs() == 0);
}

TEST_CASE("Groups grow with the standard") {
  using enum DType;
  CHECK(types_of("floats") == TypeSet{Float16, Float32, Float64});
  CHECK(types_of("ints") == tensor::types::kInts);
  CHECK(types_of("numeric") == tensor::types::kNumeric);
  CHECK(types_of("numeric_bf16") == (tensor::types::kNumeric | TypeSet{BFloat16}));
  const TypeSet all = tensor::types::kNumeric | TypeSet{String, Bool, Complex64, Complex128};
  CHECK(types_of("all") == all);
  CHECK(types_of("all_ir9") == (all | TypeSet{BFloat16} | tensor::types::kFloat8));
  CHECK(types_of("all_ir13") ==
        (all | TypeSet{BFloat16, Int4, UInt4, Float4E2M1, Float8E8M0, Int2, UInt2} | tensor::types::kFloat8));
  CHECK(types_of("all_ir14") == (types_of("all_ir13") | TypeSet{Float6E2M3, Float6E3M2}));
  CHECK(types_of("all-complex-string") == (tensor::types::kNumeric | TypeSet{Bool}));
  CHECK(types_of("floats | int64") == TypeSet{Float16, Float32, Float64, Int64});
}

TEST_CASE("Constraints speak of sequences, optionals and maps") {
  const OpSchema schema = parse_signature(
      "", "Op", 1, "X:V, M:map(int64, float) -> Y:V; V = float|seq(all)|optional(float)|optional(seq(int64))");
  const TypeConstraint& v = schema.constraints[schema.inputs[0].constraint];
  const ValueType f = ValueType::tensor(DType::Float32), i = ValueType::tensor(DType::Int64);
  CHECK(v.accepts(f));
  CHECK_FALSE(v.accepts(i));
  CHECK(v.accepts(ValueType::sequence(i)));
  CHECK(v.accepts(ValueType::optional(f)));
  CHECK_FALSE(v.accepts(ValueType::optional(i)));
  CHECK(v.accepts(ValueType::optional(ValueType::sequence(i))));
  CHECK_FALSE(v.accepts(ValueType::optional(ValueType::sequence(f))));
  CHECK(v.accepts(ValueType{}));
  const TypeConstraint& m = schema.constraints[schema.inputs[1].constraint];
  CHECK(m.accepts(ValueType::map(DType::Int64, f)));
  CHECK_FALSE(m.accepts(ValueType::map(DType::Int64, i)));
  CHECK_FALSE(m.accepts(f));
}

TEST_CASE("A malformed signature is refused") {
  for (const char* text :
       {"X:T; T = float", "X:Q -> Y:Q", "X -> Y:float", "X:T -> Y:T; T", "X:T -> Y:T; T = float|nonsense"})
    CHECK_THROWS_AS(parse_signature("", "Op", 1, text), Error);
}

}  // namespace
}  // namespace infernode::kernel
