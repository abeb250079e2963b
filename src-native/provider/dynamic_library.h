#pragma once

#include <memory>
#include <span>
#include <string>

namespace infernode::provider {

/// A vendor's library, opened at run time and closed with the last holder.
class DynamicLibrary {
 public:
  /// Opens the first of `names` that the system's loader finds; nullptr where none is, `why` then holds the loader's
  /// reasons.
  static std::shared_ptr<DynamicLibrary> open(std::span<const char* const> names, std::string& why);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  /// Address of a symbol, nullptr where the library lacks it.
  void* symbol(const char* name) const;

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

}  // namespace infernode::provider
