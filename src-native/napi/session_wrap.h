#pragma once

#include <napi.h>

#include <cstdint>
#include <memory>

#include "napi/environment.h"
#include "napi/run_call.h"
#include "session/session.h"

namespace infernode::napi {

/// NativeSession of src/native.ts.
class SessionWrap : public Napi::ObjectWrap<SessionWrap> {
 public:
  static void define(Napi::Env env);
  static Napi::Object make(Napi::Env env, std::shared_ptr<session::Session> session);
  /// One of a session that others have, too: its memory hangs on theirs.
  static Napi::Object make_shared(Napi::Env env, std::shared_ptr<session::Session> session);

  explicit SessionWrap(const Napi::CallbackInfo& info);
  ~SessionWrap() override;

  const std::shared_ptr<session::Session>& session() const { return session_; }
  /// A run begins or has ended; release waits for those that have begun, and the object stays alive during one.
  void run_begins();
  void run_ended(std::size_t result_bytes);
  /// The memory of the session has been returned.
  void released();

 private:
  Napi::Value inputs(const Napi::CallbackInfo& info);
  Napi::Value outputs(const Napi::CallbackInfo& info);
  Napi::Value metadata(const Napi::CallbackInfo& info);
  Napi::Value placement(const Napi::CallbackInfo& info);
  Napi::Value devices(const Napi::CallbackInfo& info);
  Napi::Value run(const Napi::CallbackInfo& info);
  Napi::Value run_sync(const Napi::CallbackInfo& info);
  Napi::Value allocate(const Napi::CallbackInfo& info);
  Napi::Value check_device(const Napi::CallbackInfo& info);
  Napi::Value start_profiling(const Napi::CallbackInfo& info);
  Napi::Value end_profiling(const Napi::CallbackInfo& info);
  Napi::Value memory_bytes(const Napi::CallbackInfo& info);
  Napi::Value graph(const Napi::CallbackInfo& info);
  Napi::Value joined_rows(const Napi::CallbackInfo& info);
  Napi::Value share(const Napi::CallbackInfo& info);
  Napi::Value release(const Napi::CallbackInfo& info);

  void ensure_open() const;
  void start_release(const std::shared_ptr<Job>& job);
  /// Tells V8 how much memory hangs on this object.
  void report_memory();

  struct Parts {
    std::shared_ptr<session::Session> session;
    bool shared;
  };
  static Napi::Object make(Napi::Env env, Parts parts);

  std::shared_ptr<session::Session> session_;
  bool shared_ = false;
  TaskLanes::Lane lane_;  ///< where its runs take their turns
  StagingMemory staging_;
  std::int64_t reported_bytes_ = 0;
  std::size_t runs_ = 0;
  std::size_t last_result_bytes_ = SIZE_MAX;  ///< of the run before; SIZE_MAX until there was one
  bool releasing_ = false;
  std::shared_ptr<Job> release_job_;  ///< waits for runs to end
};

}  // namespace infernode::napi
