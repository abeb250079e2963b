#include "base/mapped_file.h"

#include <doctest/doctest.h>
#if !defined(_WIN32)
#include <sys/resource.h>
#include <sys/stat.h>
#endif

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/system.h"
#include "temporary_folder.h"

using namespace infernode;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251);
  return bytes;
}

template <class F>
std::string io_error(const std::string& path, F call) {
  try {
    call();
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::Io);
    CHECK(e.context().path == path);
    CHECK(e.message().find(path) != std::string::npos);
    return e.message();
  }
  return "no error";
}

}  // namespace

TEST_CASE("files map, read and change identity when rewritten") {
  const TemporaryFolder folder;
  const std::string path = folder / "model \xc3\xa9.bin";
  const auto bytes = pattern(3 * page_size() + 17);
  write_file(path, bytes);
  CHECK(folder.entries() == 1);
  const MappedFile mapped(path);
  CHECK(mapped.size() == bytes.size());
  CHECK(std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin()));
  CHECK(mapped.identity() == file_identity(path));

  write_file(path, pattern(10));
  CHECK_FALSE(mapped.identity() == file_identity(path));
  CHECK(std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin()));  // the old file lives on in the mapping
}

TEST_CASE("dropped pages can be read again") {
  const TemporaryFolder folder;
  const auto bytes = pattern(4 * page_size());
  write_file(folder / "f", bytes);
  const MappedFile mapped(folder / "f");
  mapped.drop();
  mapped.drop(100, 200);
  mapped.drop(page_size() + 1, SIZE_MAX);
  mapped.drop(SIZE_MAX, SIZE_MAX);
  CHECK(std::equal(bytes.begin(), bytes.end(), mapped.bytes().begin()));
}

TEST_CASE("an empty file maps to nothing, and moving moves the mapping") {
  const TemporaryFolder folder;
  write_file(folder / "empty", {});
  CHECK(MappedFile(folder / "empty").bytes().empty());
  write_file(folder / "one", pattern(1));
  MappedFile a(folder / "one");
  MappedFile b(std::move(a));
  CHECK(a.size() == 0);  // NOLINT(bugprone-use-after-move): a moved-from file is empty
  a = MappedFile(folder / "empty");
  a = std::move(b);
  CHECK(a.size() == 1);
  CHECK(a.bytes()[0] == std::byte{0});
}

TEST_CASE("what cannot be read gives an IO error with path and reason") {
  const TemporaryFolder folder;
  const std::string missing = folder / "missing.onnx";
  CHECK(io_error(missing, [&] { MappedFile file(missing); }).find("o such file") != std::string::npos);
  CHECK(io_error(missing, [&] { file_identity(missing); }) != "no error");
  const std::string directory = folder / "";
  CHECK(io_error(directory, [&] { MappedFile file(directory); }) != "no error");
  const std::string nowhere = folder / "no/such/place";
  CHECK_THROWS_AS(write_file(nowhere, {}), Error);
  CHECK_THROWS_AS(MappedFile(std::string("a\0b", 3)), Error);
}

#if !defined(_WIN32)
TEST_CASE("a pipe is neither waited for nor replaced") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  constexpr const char* kReason = "it is not a regular file";
  CHECK(io_error(pipe, [&] { MappedFile file(pipe); }).find(kReason) != std::string::npos);
  CHECK(io_error(pipe, [&] { file_identity(pipe); }).find(kReason) != std::string::npos);
  CHECK(io_error(pipe, [&] { write_file(pipe, pattern(3)); }).find(kReason) != std::string::npos);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(io_error(folder / "", [&] { write_file(folder / "", {}); }) != "no error");
}
#endif

TEST_CASE("files that shall replace one file are written under names of their own") {
  const TemporaryFolder folder;
  CHECK(temporary_beside(folder / "a") != temporary_beside(folder / "a"));
}

#if defined(__linux__)
TEST_CASE("a file for which there is no room in memory is no fault of the file") {
  const TemporaryFolder folder;
  const std::string path = folder / "large";
  write_file(path, pattern(16));
  fs::resize_file(path, std::uintmax_t{1} << 32);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit low{.rlim_cur = rlim_t{1} << 20, .rlim_max = before.rlim_max};
  ErrorCode code = ErrorCode::Internal;
  REQUIRE(setrlimit(RLIMIT_AS, &low) == 0);
  try {
    const MappedFile mapped(path);
  } catch (const Error& error) {
    code = error.code();
  }
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(code == ErrorCode::OutOfMemory);
}
#endif
