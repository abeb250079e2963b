#pragma once
// Flatbuffers: a checked reader and a builder, by field position; schemas are the callers'. Layout as in the published
// description of FlatBuffers' binary format: little endian, offsets of 32 bits, tables with shared vtables.

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace infernode::onnx::flat {

/// What all readers of one buffer share: its bytes, and how much may still be read. Tables may be reached on several
/// ways, so that a small hostile buffer can describe a tree of any size: the allowance ends that.
class Source {
 public:
  explicit Source(std::string_view bytes)
      : bytes_(bytes), allowance_(bytes.size() * std::uint64_t{64} + (std::uint64_t{1} << 16)) {}
  std::string_view bytes() const { return bytes_; }
  /// Throws InvalidModel naming the position where [at, at + size) is not inside the buffer.
  void check(std::uint64_t at, std::uint64_t size, const char* what) const;
  template <class T>
  T load(std::uint64_t at, const char* what) const {
    check(at, sizeof(T), what);
    T out;
    std::memcpy(&out, bytes_.data() + at, sizeof(T));
    return out;
  }
  /// The target of the offset stored at `at`.
  std::uint64_t follow(std::uint64_t at, const char* what, std::uint64_t cost = 16) const;
  void spend(std::uint64_t amount) const;
  [[noreturn]] static void fail_at(std::uint64_t at, std::string_view what);

 private:
  std::string_view bytes_;
  mutable std::uint64_t allowance_;
};

class Table;

/// A vector of scalars or structs, as bytes: elements need not be aligned.
struct Bytes {
  std::string_view data;
  std::size_t count = 0;
  template <class T>
  T at(std::size_t i) const {
    T out;
    std::memcpy(&out, data.data() + i * sizeof(T), sizeof(T));
    return out;
  }
};

/// A vector of offsets.
class Offsets {
 public:
  Offsets() = default;
  Offsets(const Source& source, std::uint64_t at, std::size_t count) : source_(&source), at_(at), count_(count) {}
  std::size_t size() const { return count_; }
  Table table(std::size_t i) const;
  std::string_view text(std::size_t i) const;

 private:
  const Source* source_ = nullptr;
  std::uint64_t at_ = 0;  // of the first element
  std::size_t count_ = 0;
};

/// One table, its vtable checked; each field is checked when it is read. Fields that are absent give defaults.
class Table {
 public:
  Table(const Source& source, std::uint64_t at);
  static Table root(const Source& source);

  template <class T>
  T scalar(int field, T fallback = {}) const {
    static_assert(std::is_arithmetic_v<T>);
    const std::uint64_t at = find(field, sizeof(T));
    return at == 0 ? fallback : source_->load<T>(at, "a number");
  }
  std::string_view text(int field) const;
  bool has(int field) const { return find(field, 1) != 0; }
  std::optional<Table> table(int field) const;
  Offsets offsets(int field) const;
  /// Elements of `size` bytes.
  Bytes bytes(int field, std::size_t size) const;
  template <class T>
  std::vector<T> scalars(int field) const {
    const Bytes b = bytes(field, sizeof(T));
    source_->spend(b.data.size());
    std::vector<T> out(b.count);
    if (b.count > 0) std::memcpy(out.data(), b.data.data(), b.data.size());
    return out;
  }

 private:
  /// Where the field is; 0 where absent.
  std::uint64_t find(int field, std::uint64_t size) const;
  const Source* source_;
  std::uint64_t at_ = 0, vtable_ = 0;
  std::uint16_t vtable_size_ = 0, size_ = 0;
};

/// Position of something written, counted from the buffer's end: it stays when more is written before it.
using Position = std::uint32_t;

/// Fields of a table to be written. Everything it refers to is written before it.
class TableFields {
 public:
  /// Left out where it is the default, as readers expect.
  template <class T>
  void scalar(int field, T value, T fallback = {}) {
    static_assert(std::is_arithmetic_v<T>);
    if (value == fallback) return;
    Field f{field, sizeof(T), 0, false};
    std::memcpy(&f.bits, &value, sizeof(T));
    fields_.push_back(f);
  }
  /// 0: absent.
  void offset(int field, Position to) {
    if (to != 0) fields_.push_back({field, 4, to, true});
  }

 private:
  friend class Builder;
  struct Field {
    int field;
    std::size_t size;
    std::uint64_t bits;  // a scalar's bytes, or a position
    bool is_offset;
  };
  std::vector<Field> fields_;
};

/// Builds a buffer from its end to its beginning.
class Builder {
 public:
  /// `expected` bytes are set aside at once.
  explicit Builder(std::size_t expected = 1024) : data_(expected) {}

  Position table(TableFields fields);
  /// Equal strings are written once.
  Position text(std::string_view text);
  Position offsets(std::span<const Position> items);
  /// A vector of `count` elements given as bytes; its data begins at a multiple of `alignment`, at most 64.
  Position bytes(std::string_view data, std::size_t count, std::size_t alignment);
  template <class T>
  Position scalars(std::span<const T> items) {
    return bytes({reinterpret_cast<const char*>(items.data()), items.size_bytes()}, items.size(), sizeof(T));
  }
  /// Ends the buffer: its size is a multiple of 64.
  std::vector<std::byte> finish(Position root, std::string_view identifier);

 private:
  void reserve(std::size_t more);
  void push(const void* bytes, std::size_t size);
  /// Zeros such that `size` more bytes will end up at a multiple of `alignment`.
  void align(std::size_t size, std::size_t alignment);
  void push_offset(Position to);
  Position here() const { return static_cast<Position>(size_); }

  std::vector<std::byte> data_;  // the last size_ bytes are in use
  std::size_t size_ = 0;
  std::map<std::string, Position, std::less<>> texts_;
  std::map<std::vector<std::uint16_t>, Position> vtables_;
};

}  // namespace infernode::onnx::flat
