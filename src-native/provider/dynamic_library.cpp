#include "provider/dynamic_library.h"

#include "base/error.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace infernode::provider {

std::shared_ptr<DynamicLibrary> DynamicLibrary::open(std::span<const char* const> names, std::string& why) {
  why.clear();
  for (const char* name : names) {
#ifdef _WIN32
    void* handle = LoadLibraryA(name);
    const std::string reason =
        handle != nullptr ? std::string() : cat(name, ": error ", static_cast<unsigned>(GetLastError()));
#else
    void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    const char* text = handle != nullptr ? nullptr : dlerror();
    const std::string reason = text != nullptr ? text : "";
#endif
    if (handle != nullptr) return std::shared_ptr<DynamicLibrary>(new DynamicLibrary(handle));
    why += why.empty() ? reason : "; " + reason;
  }
  return nullptr;
}

DynamicLibrary::~DynamicLibrary() {
#ifdef _WIN32
  FreeLibrary(static_cast<HMODULE>(handle_));
#else
  dlclose(handle_);
#endif
}

void* DynamicLibrary::symbol(const char* name) const {
#ifdef _WIN32
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), name));
#else
  return dlsym(handle_, name);
#endif
}

}  // namespace infernode::provider
