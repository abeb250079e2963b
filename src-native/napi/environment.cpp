#include "napi/environment.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/os_thread.h"
#include "napi/engine_holder.h"
#include "napi/errors.h"

namespace infernode::napi {

void Job::work() noexcept {
  try {
    execute();
  } catch (...) {
    fault_.note();
  }
}

void Job::over() noexcept {
  const std::shared_ptr<Environment> environment = environment_;  // the job may go as soon as it is handed over
  environment->hand_over(*this);
}

void Job::tell(std::string text) {
  environment_->log().push({-static_cast<double>(number_), LogSeverity::Info, {}, std::move(text)});
}

void Job::end_early() noexcept {
  try {
    fail(ErrorCode::Aborted, ended_);
  } catch (...) {
    fault_.note();
  }
}

bool Job::resume(Napi::Env env) noexcept {
  if (fault_) return false;
  try {
    const Napi::HandleScope scope(env);
    if (!next_stage()) return false;
    if (ended_ == nullptr) return true;
    end_early();
    return false;
  } catch (...) {
    fault_.note();
    return false;
  }
}

void Job::finish(Napi::Env env) noexcept {
  try {
    const Napi::HandleScope scope(env);
    napi_value arguments[2] = {env.Undefined(), env.Undefined()};
    try {
      if (!fault_) arguments[1] = result(env);
    } catch (...) {
      fault_.note();
    }
    if (fault_) arguments[0] = error_object(env, std::move(fault_));
    settled();
    if (arguments[0] != nullptr) napi_call_function(env, env.Undefined(), done_.Value(), 2, arguments, nullptr);
  } catch (...) {
    // Node-API fails only where the environment is being terminated: nobody is left to tell.
  }
}

template <std::size_t kIndex>
napi_threadsafe_function Environment::make_wake(napi_env env, napi_value name, Environment& self) {
  napi_threadsafe_function wake = nullptr;
  check(env, napi_create_threadsafe_function(
                 env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, &self,
                 [](napi_env alive, napi_value, void* context, void*) {
                   if (alive != nullptr) static_cast<Environment*>(context)->drain(kIndex);
                 },
                 &wake));
  check(env, napi_unref_threadsafe_function(env, wake));
  return wake;
}

std::shared_ptr<Environment> Environment::create(Napi::Env env) {
  const std::shared_ptr<Environment> self(new Environment(env));
  auto holder = std::make_unique<std::shared_ptr<Environment>>(self);
  env.SetInstanceData<std::shared_ptr<Environment>>(holder.release());  // deleted with the environment

  napi_value name = nullptr;
  check(env, napi_create_string_utf8(env, "infernode", NAPI_AUTO_LENGTH, &name));
  self->wake_ = {make_wake<0>(env, name, *self), make_wake<1>(env, name, *self)};
  self->log_ = std::make_shared<LogQueue>(self->wake_[0]);
  check(env, napi_add_env_cleanup_hook(
                 env, [](void* environment) { static_cast<Environment*>(environment)->close(); }, self.get()));
  return self;
}

Environment& Environment::of(Napi::Env env) { return **env.GetInstanceData<std::shared_ptr<Environment>>(); }

const std::shared_ptr<session::Engine>& Environment::engine() {
  if (!engine_) engine_ = acquire_engine();
  return engine_;
}

void Environment::prepare_engine() noexcept {
  try {
    engine();
  } catch (...) {  // INFERNODE_CPU asks for too much, or there are no threads: said at the first use
  }
}

std::uint32_t Environment::start(std::shared_ptr<Job> job, TaskLanes::Lane* lane) {
  const std::uint32_t number = ++last_number_;
  job->number_ = number;
  job->lane_ = lane != nullptr ? lane : &lane_;
  job->environment_ = shared_from_this();
  Job& started = *jobs_.emplace(number, std::move(job)).first->second;
  if (jobs_.size() == 1) napi_ref_threadsafe_function(env_, wake_[0]);
  try {
    submit(started, TaskLanes::Place::Last);
  } catch (...) {
    forget(number);
    throw;
  }
  return number;
}

void Environment::forget(std::uint32_t number) {
  jobs_.erase(number);
  if (jobs_.empty()) napi_unref_threadsafe_function(env_, wake_[0]);
}

void Environment::submit(Job& job, TaskLanes::Place place) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) fail(ErrorCode::Aborted, "this environment is shutting down");
    ++working_;
  }
  try {
    engine()->lanes().submit(*job.lane_, job, place);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    --working_;
    throw;
  }
}

void Environment::hand_over(Job& job) noexcept {
  const std::lock_guard lock(mutex_);
  job.next_done_ = nullptr;
  (first_done_ == nullptr ? first_done_ : last_done_->next_done_) = &job;
  last_done_ = &job;
  ++done_count_;
  --working_;
  if (closing_) {
    idle_.notify_all();
  } else {
    wake();
  }
}

void Environment::wake() noexcept {
  if (!std::exchange(woken_, true)) napi_call_threadsafe_function(wake_[next_wake_], nullptr, napi_tsfn_nonblocking);
}

std::shared_ptr<Job> Environment::take_done() {
  const std::lock_guard lock(mutex_);
  if (first_done_ == nullptr) return nullptr;
  --done_count_;
  return jobs_.at(std::exchange(first_done_, first_done_->next_done_)->number_);
}

void Environment::cancel(std::uint32_t number) {
  if (const auto found = jobs_.find(number); found != jobs_.end()) found->second->cancel().cancel();
  end(number, "the run was cancelled");
}

void Environment::expire(std::uint32_t number) { end(number, "the run took longer than its timeout"); }

void Environment::end(std::uint32_t number, const char* why) {
  const auto found = jobs_.find(number);
  if (found == jobs_.end()) return;
  Job& job = *found->second;
  job.ended_ = why;
  if (!engine()->lanes().remove(job)) return;  // it executes, or comes back from a stage
  job.end_early();
  hand_over(job);
}

Napi::Object Environment::construct(const Napi::FunctionReference& of, void* parts) {
  struct Forget {
    void*& constructing;
    ~Forget() { constructing = nullptr; }
  } forget{constructing_};
  constructing_ = parts;
  try {
    return of.New({});
  } catch (const Napi::Error&) {
    if (constructing_ == nullptr || is_terminating()) throw;
    throw std::bad_alloc();  // there was no memory for the object: its constructor has not taken its parts
  }
}

bool Environment::is_terminating() const {
  if (nothing.IsEmpty()) return false;
  const Napi::HandleScope scope(env_);
  return napi_call_function(env_, Napi::Env(env_).Undefined(), nothing.Value(), 0, nullptr, nullptr) != napi_ok;
}

void Environment::run_watched(FunctionRef<void(const kernel::CancelToken*)> work) {
  constexpr std::chrono::milliseconds kLookEvery{5};
  constexpr int kLooksAlone = 4;  // until a thread of its own takes what no thread of the engine has
  struct Watched {
    explicit Watched(FunctionRef<void(const kernel::CancelToken*)> given) : work(given) {}

    FunctionRef<void(const kernel::CancelToken*)> work;  // good until it is done
    kernel::CancelToken cancel{};
    Fault error{};
    std::mutex mutex{};
    std::condition_variable ended{};
    bool begun = false, done = false;

    /// Whether the caller is the first who wants to do the work.
    bool begin() {
      const std::lock_guard lock(mutex);
      return !std::exchange(begun, true);
    }
    void run() {
      try {
        work(&cancel);
      } catch (...) {
        error.note();
      }
      const std::lock_guard lock(mutex);
      done = true;
      ended.notify_one();
    }
  };
  const auto watched = std::make_shared<Watched>(work);
  OsThread own;
  const auto begin_apart = [&] {
    if (!watched->begin()) return;
    const auto entry = [](void* self) { static_cast<Watched*>(self)->run(); };
    if (!own.start(entry, watched.get())) watched->run();  // no thread to be had: on this one, then
  };
  if (engine()->pool().size() <= 1) {
    begin_apart();  // a pool for one processor would keep its first thread; this one goes with the work
  } else {
    try {
      engine()->pool().submit([watched] {
        if (watched->begin()) watched->run();
      });
    } catch (...) {
      begin_apart();
    }
  }
  int looks = 0;
  for (std::unique_lock lock(watched->mutex); !watched->done;) {
    if (watched->ended.wait_for(lock, kLookEvery, [&] { return watched->done; })) break;
    lock.unlock();
    // All threads of the engine may have runs, which may wait for this one's end.
    if (++looks == kLooksAlone) begin_apart();
    if (is_terminating()) watched->cancel.cancel();
    lock.lock();
  }
  if (own.started()) own.join();
  if (watched->error) std::move(watched->error).rethrow();
}

bool Environment::resume(Job& job) noexcept {
  if (!job.resume(env_)) return false;
  try {
    submit(job, TaskLanes::Place::First);  // it has had its turn, and holds memory
  } catch (...) {                          // no thread to be had: on this one, then
    job.work();
    return false;
  }
  return true;
}

void Environment::deliver_log() {
  for (const LogQueue::Message& message : log_->take()) {
    const Napi::HandleScope scope(env_);
    try {
      if (message.key < 0) {
        const auto job = jobs_.find(static_cast<std::uint32_t>(-message.key));
        if (job != jobs_.end()) std::shared_ptr<Job>(job->second)->heard(env_, message.text);
      } else if (!log_function.IsEmpty()) {
        log_function.Call({Napi::Number::New(env_, message.key),
                           Napi::Number::New(env_, static_cast<double>(message.severity)),
                           Napi::String::New(env_, message.category), Napi::String::New(env_, message.text)});
      }
    } catch (const Napi::Error&) {
      return;  // JavaScript is being terminated
    }
  }
}

void Environment::drain(std::size_t woken_by) {
  constexpr std::size_t kMostAtOnce = 16;  // what awaits them runs before the event loop turns
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    next_wake_ = 1 - woken_by;
    count = std::min(done_count_, kMostAtOnce);
    if (done_count_ > count) wake();
  }
  deliver_log();  // after the count: a job that ends meanwhile has said things that this would miss
  for (; count > 0; --count) {
    const std::shared_ptr<Job> job = take_done();
    if (!job) return;  // the environment was closed by what a callback did
    if (resume(*job)) continue;
    forget(job->number_);
    job->finish(env_);
  }
}

void Environment::close() noexcept {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    log_->close();
    for (const auto& [number, job] : jobs_) {
      job->cancel().cancel();
      if (engine_ && engine_->lanes().remove(*job)) --working_;
    }
    // Jobs write into memory that goes with the environment.
    idle_.wait(lock, [this] { return working_ == 0; });
    first_done_ = last_done_ = nullptr;
    done_count_ = 0;
  }
  jobs_.clear();
  session_class.Reset();
  tensor_class.Reset();
  array_buffer_class.Reset();
  unzeroed_array.Reset();
  nothing.Reset();
  for (napi_threadsafe_function wake : wake_) napi_release_threadsafe_function(wake, napi_tsfn_abort);
  engine_.reset();
}

}  // namespace infernode::napi
