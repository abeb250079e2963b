#pragma once
// Values in the wire form of src/native.ts: numbers and items.

#include <napi.h>

#include <memory>
#include <span>
#include <vector>

#include "napi/borrowed.h"
#include "tensor/value.h"

namespace infernode::napi {

/// Codes shared with src/native.ts.
enum class Kind { None = 0, Tensor = 1, Sequence = 2, Map = 3, Handle = 4, InPlace = 5 };
enum class Placement { JavaScript = 0, Device = 1, Target = 2 };

/// The largest integer below which JavaScript's numbers hold every other.
inline constexpr std::int64_t kLargestInteger = (std::int64_t{1} << 53) - 1;

/// Reads the arguments of a run. Tensors in JavaScript's memory are borrowed and not writable; strings are copied.
class WireReader {
 public:
  /// Throws Error(InvalidArgument) where the arguments are not a Float64Array and an Array.
  WireReader(napi_env env, napi_value numbers, napi_value items);

  /// The next number, an integer in [low, high]; throws Error(InvalidArgument) for any other.
  std::int64_t integer(std::int64_t low, std::int64_t high);
  napi_value item();
  tensor::Value value();
  /// A tensor that is to be written: the engine's, or one in JavaScript's memory, whose typed array `array` becomes.
  tensor::Tensor target(napi_value& array);

 private:
  double number();
  Kind kind() { return static_cast<Kind>(integer(0, static_cast<int>(Kind::Handle))); }
  tensor::Tensor tensor(napi_value* target_array);
  tensor::Value map();

  napi_env env_;
  napi_value items_;
  std::span<const double> numbers_;
  std::size_t next_number_ = 0;
  std::uint32_t next_item_ = 0;
  int depth_ = 0;
};

/// The bytes of a typed array; throws Error(InvalidArgument) for anything else.
std::span<std::byte> typed_array_bytes(napi_env env, napi_value array);

/// A tensor over a typed array (borrowed) or of an array of strings (copied); booleans other than 0 and 1 are copied
/// too, as 1. Throws Error(InvalidArgument) where the data is of another kind or too short.
tensor::Tensor view_data(napi_env env, tensor::DType dtype, const tensor::Shape& shape, napi_value data, bool writable);

/// Fresh memory of JavaScript, large blocks with whatever stood there before; `data` receives its address.
napi_value make_array_buffer(napi_env env, std::size_t bytes, void*& data);
/// The elements of a host tensor as JavaScript gets them: ArrayBuffer or array of strings.
napi_value copy_out(napi_env env, const tensor::Tensor& tensor);

/// Builds a result.
class WireWriter {
 public:
  explicit WireWriter(napi_env env) : env_(env) {}

  void kind(Kind kind) { numbers_.push_back(static_cast<double>(kind)); }
  void item(napi_value value) { items_.push_back(value); }
  /// Copies a value of host tensors.
  void value(const tensor::Value& value);
  /// A tensor whose elements are in `item`.
  void tensor(tensor::DType dtype, const tensor::Shape& shape, napi_value item);
  /// {numbers, items}; where `place`, a Float64Array, is given and long enough, the items alone, and the numbers there.
  napi_value finish(napi_value place) const;

 private:
  void map(const tensor::Map& map);

  napi_env env_;
  std::vector<double> numbers_;
  std::vector<napi_value> items_;
};

}  // namespace infernode::napi
