#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infernode {

/// Tells files apart and notices that one was replaced or rewritten.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// Whole file mapped read-only; unmapped by the destructor. Paths are UTF-8. The file must not be truncated while
/// mapped.
class MappedFile {
 public:
  MappedFile() noexcept = default;
  /// Throws Error(Io) with the path and the system's reason, also for what is not a regular file. An empty file maps to
  /// an empty span.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::string& path() const noexcept { return path_; }
  const FileIdentity& identity() const noexcept { return identity_; }

  /// Drops whole pages inside a part of the file, clipped to it, from this process's resident memory; they are read
  /// again when touched.
  void drop(size_t offset = 0, size_t length = SIZE_MAX) const noexcept;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
  FileIdentity identity_;
};

/// Writes a file beside `path` and renames it over, so that readers see the old or the new one; a device is written
/// into. Throws Error(Io), also where `path` is there and is neither.
void write_file(const std::string& path, std::span<const std::byte> bytes);
/// A name for a file that shall replace `path` when it is written; every call gives another. Throws Error(Io) where
/// `path` is there and is not a regular file.
std::string temporary_beside(const std::string& path);
/// Throws Error(Io) for what is not a regular file.
FileIdentity file_identity(const std::string& path);

}  // namespace infernode
