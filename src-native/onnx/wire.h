#pragma once
// A cursor over a protobuf message that never reads beyond it. Lengths are 64 bits wide.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// Malformed input is an exception here, never an assertion.
#ifndef protozero_assert
#define protozero_assert(x) static_cast<void>(0)
#endif
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

namespace infernode::onnx {

/// Thrown for bytes that are not protobuf; the reader turns it into an Error with the offset of `at`.
struct WireError {
  const char* at;    ///< start of the field in question
  bool truncated;    ///< the field reaches beyond the end of its message
  std::string what;  ///< continues a sentence: "field 7 has ..."
};

class Message {
 public:
  Message() = default;
  explicit Message(std::string_view bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  /// Reads the next field's number and value; false at the end.
  bool next() {
    if (next_ == end_) return false;
    start_ = next_;
    const uint64_t key = varint();
    field_ = static_cast<uint32_t>(key >> 3);
    wire_ = static_cast<Wire>(key & 7);
    if (key > UINT32_MAX || field_ == 0) malformed("an impossible field number");
    switch (wire_) {
      case Wire::Varint:
        scalar_ = varint();
        break;
      case Wire::Fixed64:
        scalar_ = fixed<uint64_t>();
        break;
      case Wire::Fixed32:
        scalar_ = fixed<uint32_t>();
        break;
      case Wire::Bytes:
        bytes_ = run();
        break;
      case Wire::Group:
        skip_group();
        break;
      default:
        malformed("an unknown wire type");
    }
    return true;
  }

  uint32_t field() const { return field_; }
  bool is_bytes() const { return wire_ == Wire::Bytes; }
  int64_t integer() const {
    expect(Wire::Varint);
    return static_cast<int64_t>(scalar_);
  }
  /// int32 and enum fields.
  int32_t integer32() const { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(integer()))); }
  float real() const {
    expect(Wire::Fixed32);
    const auto bits = static_cast<uint32_t>(scalar_);
    float out;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  std::string_view bytes() const {
    expect(Wire::Bytes);
    return bytes_;
  }
  std::string text() const { return std::string(bytes()); }
  Message message() const { return Message(bytes()); }

  /// Calls f(uint64_t) for each element of a repeated varint field, packed or not.
  template <class F>
  void each_varint(F&& f) const {
    if (wire_ != Wire::Bytes) {
      f(static_cast<uint64_t>(integer()));
      return;
    }
    Message packed(bytes_);
    packed.start_ = start_;
    packed.field_ = field_;
    while (packed.next_ != packed.end_) f(packed.varint());
  }
  /// Calls f(T) for each element of a repeated float (T of 4 bytes) or double field, packed or not.
  template <class T, class F>
  void each_fixed(F&& f) const {
    T value;
    if (wire_ != Wire::Bytes) {
      expect(sizeof(T) == 4 ? Wire::Fixed32 : Wire::Fixed64);
      std::memcpy(&value, &scalar_, sizeof value);  // little-endian
      f(value);
      return;
    }
    if (bytes_.size() % sizeof(T) != 0) malformed("a packed length that is no multiple of its elements");
    for (size_t i = 0; i < bytes_.size(); i += sizeof(T)) {
      std::memcpy(&value, bytes_.data() + i, sizeof value);
      f(value);
    }
  }

  [[noreturn]] void malformed(const char* what) const {
    throw WireError{start_, false, "field " + std::to_string(field_) + " has " + what};
  }

 private:
  enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Group = 3, GroupEnd = 4, Fixed32 = 5 };

  void expect(Wire wire) const {
    if (wire_ != wire) malformed("another wire type than its kind of value");
  }
  [[noreturn]] void truncated() const {
    throw WireError{start_, true, "field " + std::to_string(field_) + " reaches beyond the end"};
  }
  uint64_t varint() {
    try {
      return protozero::decode_varint(&next_, end_);
    } catch (const protozero::end_of_buffer_exception&) {
      truncated();
    } catch (const protozero::exception&) {
      malformed("a number of more than 64 bits");
    }
  }
  std::string_view run() {
    const uint64_t size = varint();
    if (size > static_cast<uint64_t>(end_ - next_)) truncated();
    const char* const begin = next_;
    next_ += size;
    return {begin, static_cast<size_t>(size)};
  }
  /// No field of ONNX is a group: one that stands there is unknown, with all that it holds.
  void skip_group() {
    constexpr size_t kDeepest = 100;  // as protobuf has it
    std::vector<uint64_t> open{field_};
    while (!open.empty()) {
      const uint64_t key = varint(), field = key >> 3;
      switch (static_cast<Wire>(key & 7)) {
        case Wire::Varint:
          varint();
          break;
        case Wire::Fixed64:
          fixed<uint64_t>();
          break;
        case Wire::Fixed32:
          fixed<uint32_t>();
          break;
        case Wire::Bytes:
          run();
          break;
        case Wire::Group:
          if (open.size() == kDeepest) malformed("groups within each other beyond 100");
          open.push_back(field);
          break;
        case Wire::GroupEnd:
          if (open.back() != field) malformed("a group that ends as another");
          open.pop_back();
          break;
        default:
          malformed("an unknown wire type");
      }
    }
  }
  template <class T>
  uint64_t fixed() {
    if (static_cast<size_t>(end_ - next_) < sizeof(T)) truncated();
    T value;
    std::memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }

  const char* next_ = nullptr;
  const char* end_ = nullptr;
  const char* start_ = nullptr;
  uint64_t scalar_ = 0;
  std::string_view bytes_;
  uint32_t field_ = 0;
  Wire wire_ = Wire::Varint;
};

}  // namespace infernode::onnx
