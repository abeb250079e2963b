#include "base/error.h"

#include <charconv>

#include "base/checked.h"

namespace infernode {

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::InvalidModel:
      return "INVALID_MODEL";
    case ErrorCode::UnsupportedOperator:
      return "UNSUPPORTED_OPERATOR";
    case ErrorCode::InvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::ShapeMismatch:
      return "SHAPE_MISMATCH";
    case ErrorCode::ProviderUnavailable:
      return "PROVIDER_UNAVAILABLE";
    case ErrorCode::Aborted:
      return "ABORTED";
    case ErrorCode::Disposed:
      return "DISPOSED";
    case ErrorCode::OutOfMemory:
      return "OUT_OF_MEMORY";
    case ErrorCode::Io:
      return "IO";
    case ErrorCode::Internal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

void fail(ErrorCode code, std::string message, ErrorContext context) {
  throw Error(code, std::move(message), std::move(context));
}

void fail_overflow(const char* operation, ErrorCode code) {
  fail(code, cat("integer ", operation, " out of range: a size or index is too large or negative"));
}

namespace {

template <class T>
void append_number(std::string& out, T value) {
  char text[40];
  const auto [end, status] = std::to_chars(text, text + sizeof text, value);
  out.append(text, end);
}

template <class T>
void append_integers(std::string& out, const void* data, size_t size) {
  const T* values = static_cast<const T*>(data);
  out += '[';
  for (size_t i = 0; i < size; ++i) {
    if (i != 0) out += ',';
    append_number(out, values[i]);
  }
  out += ']';
}

}  // namespace

void CatPart::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::Text:
      out.append(static_cast<const char*>(value_.pointer), size_);
      break;
    case Kind::Char:
      out += value_.character;
      break;
    case Kind::Signed:
      append_number(out, value_.integer);
      break;
    case Kind::Unsigned:
      append_number(out, value_.natural);
      break;
    case Kind::Float:
      append_number(out, static_cast<float>(value_.real));
      break;
    case Kind::Double:
      append_number(out, value_.real);
      break;
    case Kind::Integers:
      switch (element_bytes_ * 2 + element_signed_) {
        case 2:
          append_integers<uint8_t>(out, value_.pointer, size_);
          break;
        case 3:
          append_integers<int8_t>(out, value_.pointer, size_);
          break;
        case 4:
          append_integers<uint16_t>(out, value_.pointer, size_);
          break;
        case 5:
          append_integers<int16_t>(out, value_.pointer, size_);
          break;
        case 8:
          append_integers<uint32_t>(out, value_.pointer, size_);
          break;
        case 9:
          append_integers<int32_t>(out, value_.pointer, size_);
          break;
        case 16:
          append_integers<uint64_t>(out, value_.pointer, size_);
          break;
        default:
          append_integers<int64_t>(out, value_.pointer, size_);
          break;
      }
      break;
  }
}

std::string cat_parts(std::initializer_list<CatPart> parts) {
  std::string out;
  for (const CatPart& part : parts) part.append_to(out);
  return out;
}

}  // namespace infernode
