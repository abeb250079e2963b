#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace infernode {

/// Paths are UTF-8 everywhere in this project; the system's own form may differ.
inline std::filesystem::path to_path(const std::string& utf8) {
  std::filesystem::path path(std::u8string(reinterpret_cast<const char8_t*>(utf8.data()), utf8.size()));
#if defined(_WIN32)
  // A path that is longer is taken in full and behind this mark alone (MAX_PATH, less a name of a file in a folder).
  constexpr size_t kLongest = 247;
  constexpr std::wstring_view kMark = L"\\\\?\\", kNetwork = L"\\\\";
  if (path.native().size() > kLongest && path.is_absolute()) {
    // Behind the mark already, it is made normal without: the library would take the mark for a server.
    const bool marked = path.native().starts_with(kMark);
    const std::filesystem::path plain = marked ? path.native().substr(kMark.size()) : path.native();
    if (!plain.is_absolute()) return path;
    path = plain.lexically_normal().make_preferred();
    if (!path.native().starts_with(kNetwork)) path = std::wstring(kMark) + path.native();
  }
#endif
  return path;
}

inline std::string to_utf8(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return std::string(reinterpret_cast<const char*>(text.data()), text.size());
}

}  // namespace infernode
