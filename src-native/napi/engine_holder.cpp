#include "napi/engine_holder.h"

#include <mutex>

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace infernode::napi {

namespace {

struct Holder {
  std::mutex mutex;
  std::weak_ptr<session::Engine> engine;
};

/// Never destroyed, so that nothing depends on the order in which statics end.
Holder& holder() {
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the process's one engine
  static Holder* const instance = new Holder;
  return *instance;
}

}  // namespace

std::shared_ptr<session::Engine> acquire_engine() {
  Holder& shared = holder();
  const std::lock_guard lock(shared.mutex);
  auto engine = shared.engine.lock();
  if (!engine) {
    engine = session::Engine::create();
    shared.engine = engine;
    engine->prepare();
  }
  return engine;
}

void pin_library() noexcept {
#ifdef _WIN32
  HMODULE module = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     reinterpret_cast<LPCWSTR>(&pin_library), &module);
#else
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&pin_library), &info) != 0 && info.dli_fname != nullptr) {
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);  // never closed
  }
#endif
}

}  // namespace infernode::napi
