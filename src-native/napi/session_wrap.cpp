#include "napi/session_wrap.h"

#include "napi/errors.h"
#include "napi/metadata.h"
#include "napi/options.h"
#include "napi/plan_description.h"
#include "napi/tensor_wrap.h"
#include "runtime/brief/brief_run.h"
#include "runtime/shapes/joined_rows.h"

namespace infernode::napi {

namespace {

/// Results of this many bytes are worth another way between threads to be written where JavaScript reads them.
constexpr std::size_t kLargeResults = std::size_t{1} << 20;

class RunJob final : public Job {
 public:
  /// Forecast: finds the shapes of outputs, so that memory can be made for them. Move: carries large results that
  /// were not foreseen to memory of JavaScript's.
  enum class Stage { Forecast, Execute, Move };

  RunJob(const Napi::Function& done, SessionWrap& owner, std::unique_ptr<RunCall> call, Stage first)
      : Job(done), owner_(owner), call_(std::move(call)), stage_(first) {}

 private:
  void execute() override {
    switch (stage_) {
      case Stage::Forecast:
        return call_->forecast();
      case Stage::Execute:
        return call_->execute(&cancel());
      case Stage::Move:
        return call_->move_results();
    }
  }
  bool next_stage() override {
    switch (stage_) {
      case Stage::Forecast:
        call_->allocate_outputs();
        stage_ = Stage::Execute;
        return true;
      case Stage::Execute:
        stage_ = Stage::Move;
        return call_->allocate_results();
      case Stage::Move:
        return false;
    }
    return false;
  }
  Napi::Value result(Napi::Env env) override { return {env, call_->result()}; }
  void settled() override {
    const std::size_t bytes = call_->result_bytes();
    call_.reset();
    owner_.run_ended(bytes);
  }

  SessionWrap& owner_;  ///< kept alive by run_begins()
  std::unique_ptr<RunCall> call_;
  Stage stage_;
};

class ReleaseJob final : public Job {
 public:
  ReleaseJob(const Napi::Function& done, SessionWrap& owner) : Job(done), owner_(owner), session_(owner.session()) {}
  /// Its worker may end before its turn comes.
  ~ReleaseJob() override {
    if (!begun_) session_->leave();
  }
  ReleaseJob(const ReleaseJob&) = delete;
  ReleaseJob& operator=(const ReleaseJob&) = delete;

 private:
  void execute() override {
    begun_ = true;
    session_->release();
  }
  Napi::Value result(Napi::Env env) override { return env.Undefined(); }
  void settled() override { owner_.released(); }

  SessionWrap& owner_;  ///< kept alive by release()
  std::shared_ptr<session::Session> session_;
  bool begun_ = false;
};

}  // namespace

void SessionWrap::define(Napi::Env env) {
  const Napi::Function constructor = DefineClass(
      env, "NativeSession",
      {InstanceAccessor<&SessionWrap::inputs>("inputs"), InstanceAccessor<&SessionWrap::outputs>("outputs"),
       InstanceAccessor<&SessionWrap::metadata>("metadata"), InstanceAccessor<&SessionWrap::placement>("placement"),
       InstanceAccessor<&SessionWrap::devices>("devices"), InstanceMethod<&SessionWrap::run>("run"),
       InstanceMethod<&SessionWrap::run_sync>("runSync"), InstanceMethod<&SessionWrap::allocate>("allocate"),
       InstanceMethod<&SessionWrap::check_device>("checkDevice"),
       InstanceMethod<&SessionWrap::start_profiling>("startProfiling"),
       InstanceMethod<&SessionWrap::end_profiling>("endProfiling"),
       InstanceMethod<&SessionWrap::memory_bytes>("memoryBytes"), InstanceMethod<&SessionWrap::graph>("graph"),
       InstanceMethod<&SessionWrap::joined_rows>("joinedRows"), InstanceMethod<&SessionWrap::share>("share"),
       InstanceMethod<&SessionWrap::release>("release")});
  Environment::of(env).session_class = Napi::Persistent(constructor);
}

Napi::Object SessionWrap::make(Napi::Env env, Parts parts) {
  Environment& environment = Environment::of(env);
  try {
    return environment.construct(environment.session_class, &parts);
  } catch (...) {
    if (parts.session) parts.session->leave();  // no object has taken it, which would
    throw;
  }
}

Napi::Object SessionWrap::make(Napi::Env env, std::shared_ptr<session::Session> session) {
  return make(env, Parts{std::move(session), false});
}

Napi::Object SessionWrap::make_shared(Napi::Env env, std::shared_ptr<session::Session> session) {
  return make(env, Parts{std::move(session), true});
}

SessionWrap::SessionWrap(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  void* made = Environment::of(info.Env()).constructing();
  if (made == nullptr) throw Napi::TypeError::New(info.Env(), "Illegal constructor");
  Parts& parts = *static_cast<Parts*>(made);
  session_ = std::move(parts.session);
  shared_ = parts.shared;
  lane_.set_most(session_->options().concurrent_runs);
  report_memory();
}

SessionWrap::~SessionWrap() {
  if (session_ && !releasing_) session_->leave();
  std::int64_t now = 0;
  napi_adjust_external_memory(Env(), -reported_bytes_, &now);
}

void SessionWrap::report_memory() {
  if (shared_) return;
  const auto bytes = static_cast<std::int64_t>(session_->memory_bytes());
  if (bytes == reported_bytes_) return;
  std::int64_t now = 0;
  napi_adjust_external_memory(Env(), bytes - reported_bytes_, &now);
  reported_bytes_ = bytes;
}

void SessionWrap::run_begins() {
  if (runs_++ == 0) Ref();
}

void SessionWrap::run_ended(std::size_t result_bytes) {
  report_memory();
  last_result_bytes_ = result_bytes;
  if (--runs_ > 0) return;
  if (const auto job = std::move(release_job_)) start_release(job);
  Unref();
}

void SessionWrap::start_release(const std::shared_ptr<Job>& job) {
  try {
    Environment::of(Env()).start(job);
  } catch (...) {  // no thread to be had: on this one, then
    job->work();
    job->finish(Env());
  }
}

void SessionWrap::released() {
  staging_.clear();
  report_memory();
  Unref();
}

void SessionWrap::ensure_open() const {
  if (releasing_) fail(ErrorCode::Disposed, "Session already disposed.");
}

Napi::Value SessionWrap::inputs(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return value_infos(info.Env(), session_->feeds()); });
}

Napi::Value SessionWrap::outputs(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return value_infos(info.Env(), session_->outputs()); });
}

Napi::Value SessionWrap::metadata(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return model_metadata(info.Env(), session_->info()); });
}

Napi::Value SessionWrap::placement(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return placements(info.Env(), session_->placements()); });
}

Napi::Value SessionWrap::devices(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { return device_names(info.Env(), *session_); });
}

Napi::Value SessionWrap::run(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    auto call = std::make_unique<RunCall>(info.Env(), session_, WireReader(info.Env(), info[0], info[1]),
                                          read_run_options(info[2]));
    const auto expected_us = call->expected_us();
    const bool may_stay = info[4].As<Napi::Boolean>();
    if (const auto most = runtime::time_on_caller(expected_us, call->copied_bytes()); most && may_stay) {
      call->part_overlaps();
      if (call->execute_briefly(*most)) return {info.Env(), call->result(info[0])};
    }
    // One that waits for its turn holds no memory for its results meanwhile.
    const bool waits = session_->engine().lanes().is_full(lane_);
    if (expected_us && !waits) {
      call->forecast();
      call->allocate_outputs();
    }
    call->detach(staging_);
    if (expected_us && !waits) call->begin();
    run_begins();
    try {
      const bool forecast_first = !expected_us && !waits && last_result_bytes_ >= kLargeResults;
      const auto job = std::make_shared<RunJob>(info[3].As<Napi::Function>(), *this, std::move(call),
                                                forecast_first ? RunJob::Stage::Forecast : RunJob::Stage::Execute);
      return Napi::Number::New(info.Env(), Environment::of(info.Env()).start(job, &lane_));
    } catch (...) {
      run_ended(last_result_bytes_);
      throw;
    }
  });
}

Napi::Value SessionWrap::run_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    RunCall call(info.Env(), session_, WireReader(info.Env(), info[0], info[1]), read_run_options(info[2]));
    call.part_overlaps();
    const auto expected_us = call.expected_us();
    if (!runtime::is_short(expected_us)) {
      call.forecast();
      call.allocate_outputs();
    }
    constexpr double kLong = 20'000;
    if (session_->may_never_end() || !expected_us || *expected_us >= kLong) {  // the first of its shapes may take long
      Environment::of(info.Env()).run_watched([&](const kernel::CancelToken* cancel) { call.execute(cancel); });
    } else {
      call.execute(nullptr);
    }
    return {info.Env(), call.result(info[0])};
  });
}

Napi::Value SessionWrap::allocate(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    const auto dtype = tensor::dtype_from_code(info[0].As<Napi::Number>().Int64Value());
    if (!dtype) fail(ErrorCode::InvalidArgument, "unknown element type");
    tensor::Shape shape;
    const Napi::Array dims = info[1].As<Napi::Array>();
    for (std::uint32_t i = 0; i < dims.Length(); ++i) {
      shape.push_back(dims.Get(i).As<Napi::Number>().Int64Value());
    }
    const std::string device = info[2].As<Napi::String>();
    return TensorWrap::make(info.Env(), session_->allocate(*dtype, shape, session_->device(device)), session_);
  });
}

Napi::Value SessionWrap::check_device(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ensure_open();
    const std::string device = info[0].As<Napi::String>(), output = info[1].As<Napi::String>();
    try {
      session_->device(device);
    } catch (Error& error) {
      error.context().output = output;
      error.prepend(cat("output '", output, "': "));
      throw;
    }
  });
}

Napi::Value SessionWrap::start_profiling(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ensure_open();
    session_->start_profiling();
  });
}

Napi::Value SessionWrap::end_profiling(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    const session::ProfileSummary summary = session_->end_profiling();
    if (summary.json.empty()) return info.Env().Undefined();
    const Napi::Object result = Napi::Object::New(info.Env());
    result.Set("path", summary.path);
    result.Set("trace", summary.json);
    return result;
  });
}

Napi::Value SessionWrap::memory_bytes(const Napi::CallbackInfo& info) {
  return guarded(info.Env(),
                 [&] { return Napi::Number::New(info.Env(), static_cast<double>(session_->memory_bytes())); });
}

Napi::Value SessionWrap::graph(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    Napi::Value description;
    session_->inspect([&](const runtime::ExecutionPlan& plan, const session::Session::Memory& memory) {
      description = describe_plan(info.Env(), plan, memory);
    });
    return description;
  });
}

Napi::Value SessionWrap::joined_rows(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    ensure_open();
    const Napi::Array names = info[0].As<Napi::Array>();
    const auto axis = static_cast<std::size_t>(info[1].As<Napi::Number>().Uint32Value());
    std::vector<std::string> joined;
    for (std::uint32_t i = 0; i < names.Length(); ++i) joined.emplace_back(names.Get(i).As<Napi::String>());
    const Napi::Array result = Napi::Array::New(info.Env());
    session_->inspect([&](const runtime::ExecutionPlan& plan, const session::Session::Memory&) {
      for (const runtime::Extent extent : runtime::extents(plan, joined, axis)) {
        const char* text = extent == runtime::Extent::Rows    ? "rows"
                           : extent == runtime::Extent::Other ? "other"
                                                              : "unknown";
        result.Set(result.Length(), text);
      }
    });
    return result;
  });
}

Napi::Value SessionWrap::share(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ensure_open();
    return Napi::String::New(info.Env(), session_->engine().shared_sessions().add(session_));
  });
}

Napi::Value SessionWrap::release(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    ensure_open();
    const std::shared_ptr<Job> job = std::make_shared<ReleaseJob>(info[0].As<Napi::Function>(), *this);
    releasing_ = true;
    Ref();  // until released()
    if (runs_ > 0) {
      release_job_ = job;
    } else {
      start_release(job);
    }
  });
}

}  // namespace infernode::napi
