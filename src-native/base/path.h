#pragma once

#include <filesystem>
#include <string>

namespace infernode {

/// Paths are UTF-8 everywhere in this project; the system's own form may differ.
inline std::filesystem::path to_path(const std::string& utf8) {
  return std::filesystem::path(std::u8string(reinterpret_cast<const char8_t*>(utf8.data()), utf8.size()));
}

inline std::string to_utf8(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

}  // namespace infernode
