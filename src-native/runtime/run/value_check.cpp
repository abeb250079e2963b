#include "runtime/run/value_check.h"

#include "base/error.h"

namespace infernode::runtime {

namespace {

using graph::ValueType;
using tensor::DType;

bool fits(DType expected, DType actual) { return expected == DType::Undefined || expected == actual; }

bool fits(const ValueType& expected, const tensor::Value& value) {
  switch (expected.kind) {
    case ValueType::Kind::Unknown:
      return true;
    case ValueType::Kind::Tensor:
      return value.is_tensor() && fits(expected.elem, value.tensor().dtype());
    case ValueType::Kind::SparseTensor:
      return value.is_sparse() && fits(expected.elem, value.sparse().values.dtype());
    case ValueType::Kind::Sequence:
      // Elements are of one type, and an empty sequence holds nothing to mistake.
      if (!value.is_sequence()) return false;
      return !expected.inner || value.sequence().items.empty() || fits(*expected.inner, value.sequence().items.front());
    case ValueType::Kind::Map:
      return value.is_map() && fits(expected.elem, value.map().keys.dtype());
    case ValueType::Kind::Optional:
      if (!value.is_optional()) return !expected.inner || fits(*expected.inner, value);
      return !expected.inner || !value.optional().item || fits(*expected.inner, *value.optional().item);
  }
  return true;
}

}  // namespace

void expect_type(const graph::ValueInfo& expected, const tensor::Value& value) {
  if (value.empty() || fits(expected.type, value)) return;
  fail(ErrorCode::InvalidModel,
       cat("the model says that '", expected.name, "' is ", expected.type.to_string(), ", but it is ",
           value.to_string()),
       {.expected = expected.type.to_string(), .actual = value.to_string()});
}

}  // namespace infernode::runtime
