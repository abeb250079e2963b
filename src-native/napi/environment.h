#pragma once

#include <napi.h>

#include <array>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/function_ref.h"
#include "base/thread_pool/fault.h"
#include "base/thread_pool/task_lanes.h"
#include "kernel/run_context.h"
#include "napi/log_queue.h"
#include "session/engine.h"

namespace infernode::napi {

class Environment;

/// Work of one asynchronous call: `execute` on an engine thread, then `result` on the JavaScript thread, whose value
/// (or what either threw) goes to the callback. Work may come in stages with a stop on the JavaScript thread between
/// two. Made and destroyed on the JavaScript thread.
class Job : public TaskLanes::Entry {
 public:
  explicit Job(const Napi::Function& done) : done_(Napi::Persistent(done)) {}
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void work() noexcept override;
  /// On the JavaScript thread after work(): true where there is another stage of it.
  bool resume(Napi::Env env) noexcept;
  void finish(Napi::Env env) noexcept;
  kernel::CancelToken& cancel() { return cancel_; }

 protected:
  virtual void execute() = 0;
  /// Prepares the next stage on the JavaScript thread; false where `execute` is done.
  virtual bool next_stage() { return false; }
  virtual Napi::Value result(Napi::Env env) = 0;
  /// On the JavaScript thread, before the callback, whatever came of it.
  virtual void settled() {}
  /// From execute(): has heard() called soon, before the callback.
  void tell(std::string text);
  /// On the JavaScript thread: what execute() told.
  virtual void heard(Napi::Env, const std::string&) {}

 private:
  friend class Environment;
  void over() noexcept override;
  /// Ends a job between two stages, or before the first, as Aborted.
  void end_early() noexcept;

  Napi::FunctionReference done_;
  kernel::CancelToken cancel_;
  Fault fault_;
  const char* ended_ = nullptr;               ///< why it is to have no other stage
  std::shared_ptr<Environment> environment_;  ///< from its start on
  TaskLanes::Lane* lane_ = nullptr;
  std::uint32_t number_ = 0;
  Job* next_done_ = nullptr;  ///< what has been done since; so that handing a job over takes no memory
};

/// What one JavaScript environment (main thread or worker) has of the engine: its jobs and its classes. All members
/// are called on its thread.
class Environment : public std::enable_shared_from_this<Environment> {
  friend class Job;

 public:
  /// Registers the cleanup hook that ends all jobs before the environment goes.
  static std::shared_ptr<Environment> create(Napi::Env env);
  static Environment& of(Napi::Env env);

  /// Made at the first use. Throws Error.
  const std::shared_ptr<session::Engine>& engine();
  /// Makes the engine now, if it can be made; else its first use says why not.
  void prepare_engine() noexcept;

  /// Starts a job when the turn comes of its lane (which outlives it, and is the environment's own where there is
  /// none), after others there; the number is for `cancel`. The process stays alive until it is finished.
  std::uint32_t start(std::shared_ptr<Job> job, TaskLanes::Lane* lane = nullptr);
  /// Ends a job at its next look, or at once where it has not begun.
  void cancel(std::uint32_t number);
  /// Ends a job that has not begun: it is past its timeout. One that has begun looks at the clock itself.
  void expire(std::uint32_t number);

  /// Has `log_function` hear the messages that wait.
  void deliver_log();
  LogQueue& log() { return *log_; }
  /// Hears the messages of sessions: key, severity, category and text. It does not throw.
  Napi::FunctionReference log_function;

  /// Calls `work` on another thread, or here where there is none to be had, and returns when it has ended. For work
  /// that may take long: it is cancelled where JavaScript is being terminated (worker.terminate(), process.exit(), a
  /// timeout of vm), of which this thread learns only by running some.
  void run_watched(FunctionRef<void(const kernel::CancelToken*)> work);

  /// An instance of one of the classes below; its constructor takes `parts` by constructing(). JavaScript cannot make
  /// instances itself, nor can it where this one could not be made.
  Napi::Object construct(const Napi::FunctionReference& of, void* parts);
  void* constructing() { return std::exchange(constructing_, nullptr); }

  Napi::FunctionReference session_class, tensor_class, array_buffer_class;
  /// Node's Buffer.allocUnsafeSlow, empty where the runtime has none: the zeros of an ArrayBuffer of a megabyte cost
  /// the JavaScript thread a quarter of a millisecond, and results overwrite them.
  Napi::FunctionReference unzeroed_array;
  /// A function of JavaScript that does nothing; empty where the runtime gives none.
  Napi::FunctionReference nothing;

 private:
  explicit Environment(Napi::Env env) : env_(env) {}
  template <std::size_t kIndex>
  static napi_threadsafe_function make_wake(napi_env env, napi_value name, Environment& self);
  void submit(Job& job, TaskLanes::Place place);
  void end(std::uint32_t number, const char* why);
  /// On an engine thread: the job is to be finished on the JavaScript thread. Takes no memory of the engine.
  void hand_over(Job& job) noexcept;
  void wake() noexcept;  ///< under the mutex
  std::shared_ptr<Job> take_done();
  void forget(std::uint32_t number);
  bool is_terminating() const;
  bool resume(Job& job) noexcept;
  void drain(std::size_t woken_by);
  void close() noexcept;

  const Napi::Env env_;
  TaskLanes::Lane lane_;  ///< of loads and the like
  void* constructing_ = nullptr;
  std::shared_ptr<session::Engine> engine_;
  std::map<std::uint32_t, std::shared_ptr<Job>> jobs_;
  std::uint32_t last_number_ = 0;
  /// Have the JavaScript thread call drain(), in turn: a thread-safe function that is called while its own call is
  /// under way is called again before the event loop turns, the other one after that.
  std::array<napi_threadsafe_function, 2> wake_{};
  std::shared_ptr<LogQueue> log_;

  std::mutex mutex_;  ///< guards what follows, which engine threads touch
  std::condition_variable idle_;
  Job* first_done_ = nullptr;
  Job* last_done_ = nullptr;
  std::size_t done_count_ = 0;
  std::size_t working_ = 0;
  std::size_t next_wake_ = 0;
  bool woken_ = false;  ///< drain() has been asked for and has not begun
  bool closing_ = false;
};

}  // namespace infernode::napi
