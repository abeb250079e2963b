#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/run/frame_pool.h"
#include "session/loader.h"
#include "session/session.h"
#include "session/shared_symbols.h"

namespace infernode::session {

/// What a session holds; `model` and `frames` are gone after release.
struct Session::State {
  State(std::shared_ptr<Engine> e, SessionOptions o);

  std::shared_ptr<Engine> engine;
  SessionOptions options;  ///< without what the load alone needs, once it is over
  const Logger logger;
  LoadedModel model;
  SharedSymbols symbols;
  runtime::FramePool frames;
  const std::size_t dynamic_block_base;
  bool may_never_end = false;
  std::atomic<bool> warned_symbols = false;

  std::mutex mutex;  ///< guards what follows
  std::condition_variable idle;
  std::size_t running = 0;
  std::size_t users = 1;
  bool released = false;
  std::shared_ptr<runtime::Profiler> profiler;
  /// Counts a run in and out, so that release() waits for it. Throws Disposed after release.
  class Running {
   public:
    explicit Running(State& state);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    State& state_;
  };
  /// Frees what no run uses any more; with the mutex held.
  void let_go() noexcept;
  std::shared_ptr<runtime::Profiler> current_profiler();
  /// Those there are, which live on while they are used though the session be released meanwhile.
  std::vector<std::shared_ptr<provider::Provider>> providers();
};

}  // namespace infernode::session
