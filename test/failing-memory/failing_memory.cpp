// Lets requests for memory and threads fail, those of the addon and of its threads and nobody else's: preloaded into a
// process (LD_PRELOAD), it stands before malloc and its kin, operator new, mmap and pthread_create; the same library is
// the addon by which that process's JavaScript says which request fails. FAILING_LIBRARY: how the name of another
// library begins whose requests are meant. For glibc.

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <node_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};
  bool holds(uintptr_t at) const { return at >= begin.load() && at < end.load(); }
};

// All without constructors: requests come before they would run.
Range addon, c_library, loader;
std::atomic<bool> armed{false};
std::atomic<bool> all_fail{false};  ///< from the first on, rather than that one alone
std::atomic<int64_t> first{0}, counted{0}, failed{0};

int note_library(dl_phdr_info* info, size_t, void*) {
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const name = slash != nullptr ? slash + 1 : info->dlpi_name;
  const char* const given = getenv("FAILING_LIBRARY");
  const char* const meant = given != nullptr ? given : "infernode.node";
  Range* const range = strncmp(name, meant, strlen(meant)) == 0 ? &addon
                       : strncmp(name, "libc.so", 7) == 0       ? &c_library
                       : strncmp(name, "ld-linux", 8) == 0      ? &loader
                                                                : nullptr;
  if (range == nullptr) return 0;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t from = info->dlpi_addr + part.p_vaddr;
    begin = from < begin ? from : begin;
    end = from + part.p_memsz > end ? from + part.p_memsz : end;
  }
  range->begin = begin;
  range->end = end;
  return 0;
}

bool on_engine_thread() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  return strcmp(name, "infernode") == 0;
}

/// Whether the request that comes from `caller` is to fail.
bool fails(void* caller) {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  // Thread-local data is the loader's to make, and some of what the C library makes is for its caller.
  if (!addon.holds(at) && !((loader.holds(at) || c_library.holds(at)) && on_engine_thread())) return false;
  const int64_t number = counted.fetch_add(1) + 1;
  if (all_fail ? number < first : number != first) return false;
  failed.fetch_add(1);
  return true;
}

#define FAILS() fails(__builtin_return_address(0))

napi_value number(napi_env env, int64_t value) {
  napi_value made = nullptr;
  napi_create_int64(env, value, &made);
  return made;
}

/// arm(first, all): the first'th request from now on fails, and all after it where `all`.
napi_value arm(napi_env env, napi_callback_info info) {
  std::array<napi_value, 2> arguments{};
  size_t count = arguments.size();
  int64_t which = 0;
  bool all = false;
  napi_get_cb_info(env, info, &count, arguments.data(), nullptr, nullptr);
  napi_get_value_int64(env, arguments[0], &which);
  napi_get_value_bool(env, arguments[1], &all);
  dl_iterate_phdr(note_library, nullptr);
  counted = 0;
  failed = 0;
  first = which;
  all_fail = all;
  armed = true;
  return nullptr;
}

/// disarm(): nothing fails any more; how many requests there were.
napi_value disarm(napi_env env, napi_callback_info) {
  armed = false;
  return number(env, counted);
}

/// failures(): how many have failed since arm().
napi_value failures(napi_env env, napi_callback_info) { return number(env, failed); }

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

namespace {

/// For operator new; null where there is none.
void* take(bool failing, size_t size, size_t alignment) {
  if (failing) return nullptr;
  return alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
}

void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// The addon has its own operator new, which asks malloc.
EXPORTED void* operator new(size_t size) { return or_throw(take(FAILS(), size, 0)); }
EXPORTED void* operator new[](size_t size) { return or_throw(take(FAILS(), size, 0)); }
EXPORTED void* operator new(size_t size, const std::nothrow_t&) noexcept { return take(FAILS(), size, 0); }
EXPORTED void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take(FAILS(), size, 0); }
EXPORTED void* operator new(size_t size, std::align_val_t alignment) {
  return or_throw(take(FAILS(), size, static_cast<size_t>(alignment)));
}
EXPORTED void operator delete(void* block) noexcept { free(block); }
EXPORTED void operator delete[](void* block) noexcept { free(block); }
EXPORTED void operator delete(void* block, size_t) noexcept { free(block); }
EXPORTED void operator delete[](void* block, size_t) noexcept { free(block); }
EXPORTED void operator delete(void* block, std::align_val_t) noexcept { free(block); }
EXPORTED void operator delete(void* block, size_t, std::align_val_t) noexcept { free(block); }

extern "C" {

EXPORTED void* malloc(size_t size) {
  if (!FAILS()) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* calloc(size_t count, size_t size) {
  if (!FAILS()) return __libc_calloc(count, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* realloc(void* block, size_t size) {
  if (!FAILS()) return __libc_realloc(block, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED void* aligned_alloc(size_t alignment, size_t size) {
  if (!FAILS()) return __libc_memalign(alignment, size);
  errno = ENOMEM;
  return nullptr;
}

EXPORTED int posix_memalign(void** block, size_t alignment, size_t size) {
  if (FAILS()) return ENOMEM;
  *block = __libc_memalign(alignment, size);
  return *block != nullptr ? 0 : ENOMEM;
}

EXPORTED void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (FAILS()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                            void* argument) {
  if (FAILS()) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, start, argument);
}

/// A library that is opened while requests fail may be the addon.
EXPORTED void* dlopen(const char* path, int flags) {
  using Open = void* (*)(const char*, int);
  static const auto open = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen"));
  void* const library = open(path, flags);
  if (armed) dl_iterate_phdr(note_library, nullptr);
  return library;
}

EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports) {
  const struct {
    const char* name;
    napi_callback callback;
  } functions[] = {{"arm", arm}, {"disarm", disarm}, {"failures", failures}};
  for (const auto& [name, callback] : functions) {
    napi_value made = nullptr;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &made);
    napi_set_named_property(env, exports, name, made);
  }
  return exports;
}
}
