#pragma once

#include <filesystem>
#include <string>

namespace infernode {

/// Paths are UTF-8 everywhere in this project; the system's own form may differ.
inline std::filesystem::path to_path(const std::string& utf8) {
  return std::filesystem::path(std::u8string(reinterpret_cast<const char8_t*>(utf8.data()), utf8.size()));
}

}  // namespace infernode
