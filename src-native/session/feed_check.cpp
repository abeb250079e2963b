#include "session/feed_check.h"

namespace infernode::session {

namespace {

using graph::ValueType;

[[noreturn]] void fail_kind(const ValueMetadata& declared, const tensor::Value& value) {
  fail(ErrorCode::InvalidArgument,
       cat("input with name: '", declared.name, "' expected to be of type: ", declared.type.to_string(),
           " but received ", value.to_string()),
       {.input = declared.name, .expected = declared.type.to_string(), .actual = value.to_string()});
}

std::string tensor_type(tensor::DType dtype) { return cat("tensor(", tensor::onnx_name(dtype), ")"); }

void check_tensor(const ValueMetadata& declared, const ValueType& type, const tensor::Tensor& t) {
  if (type.elem != tensor::DType::Undefined && t.dtype() != type.elem) {
    fail(ErrorCode::InvalidArgument,
         cat("Unexpected input data type for input '", declared.name, "'. Actual: (", tensor_type(t.dtype()),
             ") , expected: (", tensor_type(type.elem), ")"),
         {.input = declared.name,
          .expected = std::string(tensor::name(type.elem)),
          .actual = std::string(tensor::name(t.dtype()))});
  }
  if (!type.shape) return;
  const graph::SymShape& shape = *type.shape;
  if (shape.empty() && t.numel() == 1) return;
  const ErrorContext context{
      .input = declared.name, .expected = graph::to_string(shape), .actual = t.shape().to_string()};
  if (t.rank() != shape.size()) {
    fail(ErrorCode::ShapeMismatch,
         cat("Invalid rank for input: ", declared.name, " Got: ", t.rank(), " Expected: ", shape.size(),
             " Please fix either the inputs/outputs or the model. Expected dims ", context.expected, ", got ",
             context.actual),
         context);
  }
  std::string wrong;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].known() && shape[i].value() != t.dim(i)) {
      wrong += cat("\n index: ", i, " Got: ", t.dim(i), " Expected: ", shape[i].value());
    }
  }
  if (!wrong.empty()) {
    fail(ErrorCode::ShapeMismatch,
         cat("Got invalid dimensions for input: ", declared.name, " for the following indices", wrong,
             "\n Please fix either the inputs/outputs or the model."),
         context);
  }
}

void check_value(const ValueMetadata& declared, const ValueType& type, const tensor::Value& value) {
  switch (type.kind) {
    case ValueType::Kind::Unknown:
      return;
    case ValueType::Kind::Tensor:
      if (!value.is_tensor()) fail_kind(declared, value);
      return check_tensor(declared, type, value.tensor());
    case ValueType::Kind::Sequence:
      if (!value.is_sequence()) fail_kind(declared, value);
      if (type.inner) {
        for (const tensor::Value& item : value.sequence().items) check_value(declared, *type.inner, item);
      }
      return;
    case ValueType::Kind::Optional:
      if (!value.is_optional()) {
        if (type.inner) check_value(declared, *type.inner, value);
      } else if (value.optional().item && type.inner) {
        check_value(declared, *type.inner, *value.optional().item);
      }
      return;
    case ValueType::Kind::Map:
      if (!value.is_map()) fail_kind(declared, value);
      if (type.elem != tensor::DType::Undefined && value.map().keys.dtype() != type.elem) {
        fail(ErrorCode::InvalidArgument,
             cat("the map fed to '", declared.name, "' has ", tensor::name(value.map().keys.dtype()), " keys where ",
                 tensor::name(type.elem), " keys are expected"),
             {.input = declared.name,
              .expected = std::string(tensor::name(type.elem)),
              .actual = std::string(tensor::name(value.map().keys.dtype()))});
      }
      if (type.inner) {
        for (const tensor::Value& item : value.map().values) check_value(declared, *type.inner, item);
      }
      return;
    case ValueType::Kind::SparseTensor:
      if (!value.is_sparse()) fail_kind(declared, value);
      return;
  }
}

}  // namespace

std::string declared_text(const ValueType& type) {
  if (!type.is_tensor()) return type.to_string();
  return cat(tensor::name(type.elem), type.shape ? graph::to_string(*type.shape) : std::string("[...]"));
}

void check_feed(const ValueMetadata& declared, const tensor::Value& value) {
  check_value(declared, declared.type, value);
}

}  // namespace infernode::session
