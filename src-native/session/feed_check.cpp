#include "session/feed_check.h"

#include <algorithm>

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

constexpr std::size_t kMostDimsShown = 64;
constexpr const char* kFix = "Please fix either the inputs/outputs or the model.";

void check_type(const std::string& name, const char* role, tensor::DType declared, tensor::DType given,
                std::string ErrorContext::*field) {
  if (declared == tensor::DType::Undefined || given == declared) return;
  ErrorContext context{.expected = tensor_type(declared), .actual = tensor_type(given)};
  context.*field = name;
  std::string message = cat(role, " '", name, "': Unexpected ", role, " data type. Actual: (", context.actual,
                            ") , expected: (", context.expected, ")");
  fail(ErrorCode::InvalidArgument, std::move(message), std::move(context));
}

[[noreturn]] void fail_shape(const std::string& name, const graph::SymShape& declared, const tensor::Shape& given) {
  ErrorContext context{.input = name};
  for (const graph::Dim& dim : declared) {
    const std::string symbol = dim.symbol_name();
    context.expected +=
        cat(context.expected.empty() ? "[" : ",", dim.known() || !symbol.empty() ? dim.to_string() : std::string("?"));
  }
  context.expected += declared.empty() ? "[]" : "]";
  context.actual = cat(given.dims().first(std::min(given.rank(), kMostDimsShown)));
  if (given.rank() > kMostDimsShown) context.actual.insert(context.actual.size() - 1, ",...");
  std::string message;
  if (given.rank() != declared.size()) {
    message = cat("Invalid rank for input: ", name, " Got: ", given.rank(), " Expected: ", declared.size(), " (",
                  context.actual, " for ", context.expected, "). ", kFix);
  } else {
    message = cat("Got invalid dimensions for input: ", name, " for the following indices");
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (!declared[i].known() || declared[i].value() == given[i]) continue;
      message += cat("\n index: ", i, " Got: ", given[i], " Expected: ", declared[i].value());
    }
    message += cat("\n ", kFix);
  }
  fail(ErrorCode::ShapeMismatch, std::move(message), std::move(context));
}

void check_tensor(const ValueMetadata& declared, const ValueType& type, const tensor::Tensor& t) {
  check_type(declared.name, "input", type.elem, t.dtype(), &ErrorContext::input);
  if (!type.shape) return;
  const graph::SymShape& shape = *type.shape;
  if (shape.empty() && t.numel() == 1) return;
  bool fits = t.rank() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) fits = !shape[i].known() || shape[i].value() == t.dim(i);
  if (!fits) fail_shape(declared.name, shape, t.shape());
}

/// Whether a map's value is a plain number where the model wants tensors of one element: converters declare the numbers
/// of a dictionary as tensors of length 1.
bool is_number_for(const ValueType& type, const tensor::Value& value) {
  return type.is_tensor() && type.shape && value.is_tensor() && value.tensor().rank() == 0 &&
         std::ranges::all_of(*type.shape, [](const graph::Dim& d) { return !d.known() || d.value() == 1; });
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
        ValueType number = *type.inner;
        number.shape.reset();
        for (const tensor::Value& item : value.map().values)
          check_value(declared, is_number_for(*type.inner, item) ? number : *type.inner, item);
      }
      return;
    case ValueType::Kind::SparseTensor:
      if (!value.is_sparse()) fail_kind(declared, value);
      return;
  }
}

constexpr std::size_t kMostFeedsShown = 8, kMostTextShown = 64;

/// The beginning of a text that is long, without half a character at its end.
std::string shortened(std::string text) {
  if (text.size() <= kMostTextShown) return text;
  std::size_t end = kMostTextShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  text += "...";
  return text;
}

/// "'a' float32[2,3], 'b' int64[1] and 4 more"
std::string list_feeds(std::span<const ValueMetadata> declared, std::span<const tensor::Value> feeds) {
  std::string list;
  std::size_t fed = 0;
  for (std::size_t i = 0; i < std::min(declared.size(), feeds.size()); ++i) {
    if (feeds[i].empty() || ++fed > kMostFeedsShown) continue;
    list += cat(list.empty() ? "" : ", ", "'", shortened(declared[i].name), "' ", shortened(feeds[i].to_string()));
  }
  if (fed > kMostFeedsShown) list += cat(" and ", fed - kMostFeedsShown, " more");
  return fed == 0 ? "nothing" : list;
}

}  // namespace

void check_feed(const ValueMetadata& declared, const tensor::Value& value) {
  check_value(declared, declared.type, value);
}

void check_target(const ValueMetadata& declared, const tensor::Tensor& target) {
  if (declared.type.is_tensor())
    check_type(declared.name, "output", declared.type.elem, target.dtype(), &ErrorContext::output);
}

void name_feeds(Error& error, std::span<const ValueMetadata> declared, std::span<const tensor::Value> feeds) {
  const ErrorCode code = error.code();
  if (code != ErrorCode::ShapeMismatch && code != ErrorCode::InvalidArgument && code != ErrorCode::OutOfMemory) return;
  try {
    std::string message = cat(error.message(), error.message().ends_with('.') ? "" : ".", " The run was fed ",
                              list_feeds(declared, feeds), ".");
    error = Error(code, std::move(message), std::move(error.context()));
  } catch (const std::bad_alloc&) {
    // there is no memory for more words
  }
}

}  // namespace infernode::session
