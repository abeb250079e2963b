#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace infernode::tensor {

/// A kind of memory by the name that its provider gives it: at most eight characters, known when it is compiled.
class DeviceKind {
 public:
  consteval DeviceKind(const char* name) {  // NOLINT(google-explicit-constructor): Device{"cuda", 0}
    for (int shift = 0; *name != '\0'; ++name, shift += 8) {
      if (shift == 64) throw "longer than eight characters";
      letters_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(*name)) << shift;
    }
  }
  bool operator==(const DeviceKind&) const = default;
  std::string to_string() const;

 private:
  std::uint64_t letters_ = 0;
};

/// Where bytes live.
struct Device {
  DeviceKind kind = "cpu";
  std::int16_t id = 0;
  bool operator==(const Device&) const = default;
  bool is_host() const { return kind == DeviceKind("cpu"); }
  std::string to_string() const;  ///< "cpu", "null:0", "cuda:1"
};

/// A reference-counted run of bytes: the only thing that owns memory. What stands behind it (heap block, arena, mapped
/// file, device memory, a JavaScript buffer) is held by an owner whose destruction returns it.
class Buffer {
 public:
  Buffer() = default;
  /// Bytes kept alive by `owner` (may be null for static data).
  Buffer(void* data, std::size_t bytes, std::shared_ptr<const void> owner, Device device = {}, bool writable = true);

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  Device device() const { return device_; }
  bool writable() const { return writable_; }
  explicit operator bool() const { return data_ != nullptr || owner_ != nullptr; }
  /// Sub-range that shares the owner; throws Internal where it does not fit.
  Buffer slice(std::size_t offset, std::size_t bytes) const;
  /// Identity of what owns the bytes, for alias checks.
  const void* owner() const { return owner_.get(); }
  long use_count() const { return owner_.use_count(); }
  /// Whether no other Buffer shares the owner. Where it is so, what former holders did comes before what the caller
  /// does.
  bool held_alone() const;

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
  Device device_;
  bool writable_ = true;
};

/// Gives memory of one device. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `bytes`, aligned to 64 (a zero-byte request gives a valid empty buffer). Throws OutOfMemory with the size
  /// asked for.
  virtual Buffer allocate(std::size_t bytes) = 0;
  virtual Device device() const = 0;
};

/// Host memory straight from the system: aligned blocks, pages for large ones (returned to the system when freed).
Allocator& host_allocator();
/// Host memory of zeros; large blocks take no physical memory until they are written.
Buffer zeroed_host_buffer(std::size_t bytes);
/// Gives `block` at least so many bytes; what was in a smaller one is lost. One that was too small once grows by an
/// eighth more than is needed: shapes that grow from run to run then seldom ask for memory.
void grow_host_buffer(Buffer& block, std::size_t bytes);

}  // namespace infernode::tensor
