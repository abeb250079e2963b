#include "base/os_thread.h"

#include <exception>
#include <memory>
#include <utility>

#include "base/thread_data.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <pthread.h>
#include <signal.h>
#endif

namespace infernode {
namespace {

struct Start {
  void (*entry)(void*);
  void* argument;
};

// Read through a descriptor (CMake asks for -mtls-dialect=gnu2 where that is not the default), it has the loader place
// this library's thread-local data, the C++ runtime's with it, among what each thread is born with, where there is
// room. NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): it is the thread's own
thread_local volatile char placed_at_birth = 0;

#if defined(_WIN32)

DWORD WINAPI run(void* raw) {
  const std::unique_ptr<Start> start(static_cast<Start*>(raw));
  touch_thread_data();
  start->entry(start->argument);
  return 0;
}

void* start_native(std::unique_ptr<Start> start) {
  const HANDLE thread =
      CreateThread(nullptr, OsThread::kStackBytes, run, start.get(), STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (thread != nullptr) (void)start.release();
  return thread;
}

void join_native(void* handle) {
  WaitForSingleObject(handle, INFINITE);
  CloseHandle(handle);
}

#else

void* run(void* raw) {
  const std::unique_ptr<Start> start(static_cast<Start*>(raw));
#if defined(__linux__)
  pthread_setname_np(pthread_self(), "infernode");
#elif defined(__APPLE__)
  pthread_setname_np("infernode");
#endif
  touch_thread_data();
  start->entry(start->argument);
  return nullptr;
}

void* start_native(std::unique_ptr<Start> start) {
  auto thread = std::make_unique<pthread_t>();
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return nullptr;
  pthread_attr_setstacksize(&attributes, OsThread::kStackBytes);
  // Asynchronous signals are for the application's threads; those that a fault raises stay deliverable.
  sigset_t blocked, previous;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGPROF})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  const int status = pthread_create(thread.get(), &attributes, run, start.get());
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  pthread_attr_destroy(&attributes);
  if (status != 0) return nullptr;
  (void)start.release();
  return thread.release();
}

void join_native(void* handle) {
  const std::unique_ptr<pthread_t> thread(static_cast<pthread_t*>(handle));
  pthread_join(*thread, nullptr);
}

#endif

}  // namespace

void touch_thread_data() noexcept {
  placed_at_birth = 1;
  (void)std::uncaught_exceptions();
}

OsThread::OsThread(OsThread&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), hooks_(std::exchange(other.hooks_, nullptr)) {}

OsThread& OsThread::operator=(OsThread&& other) noexcept {
  handle_ = std::exchange(other.handle_, nullptr);
  hooks_ = std::exchange(other.hooks_, nullptr);
  return *this;
}

bool OsThread::start(void (*entry)(void*), void* argument, const ThreadHooks* hooks) {
  if (hooks != nullptr && hooks->create) {
    hooks_ = hooks;
    handle_ = hooks->create(entry, argument);
  } else {
    handle_ = start_native(std::make_unique<Start>(Start{entry, argument}));
  }
  return handle_ != nullptr;
}

void OsThread::join() {
  if (handle_ == nullptr) return;
  void* const handle = std::exchange(handle_, nullptr);
  if (hooks_ == nullptr) {
    join_native(handle);
  } else if (hooks_->join) {
    hooks_->join(handle);
  }
}

}  // namespace infernode
