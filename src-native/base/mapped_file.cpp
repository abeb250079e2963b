#include "base/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/path.h"
#include "base/system.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace infernode {
namespace {

[[noreturn]] void fail_io(const char* action, const std::string& path, std::string_view reason, bool memory = false) {
  fail(memory ? ErrorCode::OutOfMemory : ErrorCode::Io, cat("cannot ", action, " ", path, ": ", reason),
       {.path = path});
}

/// Read: never waits for the other end of a pipe, and `identity` throws for what is not a regular file.
enum class Open { Read, Write };

#if defined(_WIN32)

[[noreturn]] void fail_system(const char* action, const std::string& path) {
  const DWORD reason = GetLastError();
  const bool memory =
      reason == ERROR_NOT_ENOUGH_MEMORY || reason == ERROR_OUTOFMEMORY || reason == ERROR_COMMITMENT_LIMIT;
  fail_io(action, path, std::system_category().message(static_cast<int>(reason)), memory);
}

class File {
 public:
  File(const std::string& path, Open how) : path_(path) {
    check_path(path);
    const bool write = how == Open::Write;
    handle_ = CreateFileW(to_path(path).c_str(), write ? GENERIC_WRITE : GENERIC_READ,
                          FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                          write ? CREATE_ALWAYS : OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle_ == INVALID_HANDLE_VALUE) fail_system(write ? "create" : "open", path);
  }
  ~File() { CloseHandle(handle_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  FileIdentity identity() const {
    BY_HANDLE_FILE_INFORMATION info;
    if (!GetFileInformationByHandle(handle_, &info)) fail_system("examine", path_);
    const auto join = [](DWORD high, DWORD low) { return uint64_t{high} << 32 | low; };
    const uint64_t written = join(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime);
    return {info.dwVolumeSerialNumber, join(info.nFileIndexHigh, info.nFileIndexLow),
            join(info.nFileSizeHigh, info.nFileSizeLow), static_cast<int64_t>(written * 100)};
  }
  size_t write(std::span<const std::byte> bytes) const {
    DWORD put = 0;
    const DWORD wanted = static_cast<DWORD>(std::min<size_t>(bytes.size(), 1u << 30));
    if (!WriteFile(handle_, bytes.data(), wanted, &put, nullptr)) fail_system("write", path_);
    return put;
  }
  const std::byte* map(size_t) const {
    HANDLE mapping = CreateFileMappingW(handle_, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (mapping == nullptr) fail_system("map", path_);
    const void* view = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
    CloseHandle(mapping);
    if (view == nullptr) fail_system("map", path_);
    return static_cast<const std::byte*>(view);
  }

 private:
  static void check_path(const std::string& path) {
    if (path.find('\0') != std::string::npos) fail_io("open", path, "the path contains a null character");
  }
  const std::string& path_;
  HANDLE handle_ = INVALID_HANDLE_VALUE;
};

void unmap(const std::byte* data, size_t) noexcept { UnmapViewOfFile(data); }

void replace_file(const std::string& from, const std::string& to) {
  if (!MoveFileExW(to_path(from).c_str(), to_path(to).c_str(), MOVEFILE_REPLACE_EXISTING)) fail_system("replace", to);
}
void remove_file(const std::string& path) noexcept { DeleteFileW(to_path(path).c_str()); }
uint64_t process_id() noexcept { return GetCurrentProcessId(); }

#else

[[noreturn]] void fail_system(const char* action, const std::string& path) {
  fail_io(action, path, std::generic_category().message(errno), errno == ENOMEM);
}

template <class F>
auto retry_interrupted(F call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

class File {
 public:
  File(const std::string& path, Open how) : path_(path), write_(how == Open::Write) {
    if (path.find('\0') != std::string::npos) fail_io("open", path, "the path contains a null character");
    const int flags = O_CLOEXEC | (write_ ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY | O_NONBLOCK | O_NOCTTY);
    descriptor_ = retry_interrupted([&] { return ::open(path.c_str(), flags, 0666); });
    if (descriptor_ == -1) fail_system(write_ ? "create" : "open", path);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  FileIdentity identity() const {
    struct stat info;
    if (::fstat(descriptor_, &info) != 0) fail_system("examine", path_);
    if (S_ISDIR(info.st_mode)) fail_io("read", path_, "it is a directory");
    if (!write_ && !S_ISREG(info.st_mode)) fail_io("read", path_, "it is not a regular file");
#if defined(__APPLE__)
    const timespec& modified = info.st_ctimespec;
#else
    const timespec& modified = info.st_ctim;
#endif
    return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), static_cast<uint64_t>(info.st_size),
            static_cast<int64_t>(modified.tv_sec) * 1000000000 + modified.tv_nsec};
  }
  size_t write(std::span<const std::byte> bytes) const {
    const size_t wanted = std::min<size_t>(bytes.size(), 1u << 30);
    const ssize_t put = retry_interrupted([&] { return ::write(descriptor_, bytes.data(), wanted); });
    if (put == -1) fail_system("write", path_);
    return static_cast<size_t>(put);
  }
  const std::byte* map(size_t size) const {
    void* const address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (address == MAP_FAILED) fail_system("map", path_);
    return static_cast<const std::byte*>(address);
  }

 private:
  const std::string& path_;
  const bool write_;
  int descriptor_ = -1;
};

void unmap(const std::byte* data, size_t size) noexcept { ::munmap(const_cast<std::byte*>(data), size); }

void replace_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_system("replace", to);
}
void remove_file(const std::string& path) noexcept { ::unlink(path.c_str()); }
uint64_t process_id() noexcept { return static_cast<uint64_t>(::getpid()); }

#endif

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const File file(path, Open::Read);
  identity_ = file.identity();
  size_ = checked_cast<size_t>(identity_.size, ErrorCode::OutOfMemory);
  if (size_ != 0) data_ = file.map(size_);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) unmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)),
      identity_(other.identity_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  MappedFile taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(path_, taken.path_);
  std::swap(identity_, taken.identity_);
  return *this;
}

void MappedFile::drop(size_t offset, size_t length) const noexcept {
  if (offset >= size_) return;
  length = std::min(length, size_ - offset);
#if !defined(_WIN32)
  // The last page of the file counts as whole.
  const size_t page = page_size(), first = align_up(offset, page), end = offset + length;
  const size_t last = end == size_ ? end : end / page * page;
  if (first < last) (void)::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
#endif
}

std::string temporary_beside(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail_io("create", path, "the path contains a null character");
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(to_path(path), ignored);
  if (std::filesystem::is_directory(status)) fail_io("replace", path, "it is a directory");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail_io("replace", path, "it is not a regular file");
  return cat(path, ".", process_id(), ".", std::random_device{}(), ".tmp");
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  const auto write_to = [&](const std::string& name) {
    const File file(name, Open::Write);
    while (!bytes.empty()) bytes = bytes.subspan(file.write(bytes));
  };
  std::error_code ignored;
  if (std::filesystem::is_character_file(to_path(path), ignored)) return write_to(path);
  const std::string beside = temporary_beside(path);
  try {
    write_to(beside);
    replace_file(beside, path);
  } catch (...) {
    remove_file(beside);
    throw;
  }
}

FileIdentity file_identity(const std::string& path) { return File(path, Open::Read).identity(); }

}  // namespace infernode
