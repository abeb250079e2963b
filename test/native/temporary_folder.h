#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "base/error.h"

namespace infernode::test {

/// A folder of a test's own, which is deleted with it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / cat("infernode-test-", std::random_device{}())) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }
  /// How many entries it has.
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace infernode::test
