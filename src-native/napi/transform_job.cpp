#include "napi/transform_job.h"

#include <chrono>

#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/options.h"
#include "transform/model_file.h"

namespace infernode::napi {

namespace {

using transform::FileRequest;
using transform::Report;
using transform::Settings;

/// Booleans, numbers, texts, lists of texts and arrays of float64.
Settings read_settings(const Napi::Object& object) {
  Settings settings;
  const Napi::Array names = object.GetPropertyNames();
  for (std::uint32_t i = 0; i < names.Length(); ++i) {
    const std::string name = names.Get(i).As<Napi::String>();
    const Napi::Value value = object.Get(name);
    if (value.IsBoolean()) {
      settings.set(name, value.As<Napi::Boolean>().Value());
    } else if (value.IsNumber()) {
      settings.set(name, value.As<Napi::Number>().DoubleValue());
    } else if (value.IsString()) {
      settings.set(name, std::string(value.As<Napi::String>()));
    } else if (value.IsTypedArray() && value.As<Napi::TypedArray>().TypedArrayType() == napi_float64_array) {
      const Napi::Float64Array array = value.As<Napi::Float64Array>();
      settings.set(name, std::vector<double>(array.Data(), array.Data() + array.ElementLength()));
    } else if (value.IsArray()) {
      std::vector<std::string> texts;
      const Napi::Array array = value.As<Napi::Array>();
      for (std::uint32_t item = 0; item < array.Length(); ++item) texts.push_back(array.Get(item).ToString());
      settings.set(name, std::move(texts));
    } else {
      fail(ErrorCode::InvalidArgument, cat("the option '", name, "' is of no type that options have"));
    }
  }
  return settings;
}

FileRequest read_request(const Napi::CallbackInfo& info) {
  FileRequest request;
  session::ModelSource source = read_model_source(info[0]);
  request.path = std::move(source.path);
  request.bytes = std::move(source.bytes);
  request.output = info[1].As<Napi::String>();
  request.transformation = info[2].As<Napi::String>();
  request.settings = read_settings(info[3].As<Napi::Object>());
  return request;
}

class TransformJob final : public Job {
 public:
  explicit TransformJob(const Napi::CallbackInfo& info)
      : Job(info[5].As<Napi::Function>()), request_(read_request(info)), engine_(Environment::of(info.Env()).engine()) {
    if (info[4].IsFunction()) progress_ = Napi::Persistent(info[4].As<Napi::Function>());
  }

 private:
  using Clock = std::chrono::steady_clock;

  void execute() override {
    kernel::RunContext run;
    run.cancel = &cancel();
    run.pool = &engine_->pool();
    run.max_threads = engine_->pool().size();
    run.allocator = &tensor::host_allocator();
    transform::Context context{.run = run, .registry = engine_->registry()};
    if (!progress_.IsEmpty()) {
      context.progress = [this](std::size_t done, std::size_t total) { tell_progress(done, total); };
    }
    report_ = transform::transform_file(request_, context);
    request_.bytes = {};
  }

  /// Often enough for eyes; always of the last.
  void tell_progress(std::size_t done, std::size_t total) {
    constexpr std::chrono::milliseconds kBetween{50};
    const Clock::time_point now = Clock::now();
    if (done < total && now - told_ < kBetween) return;
    told_ = now;
    tell(cat(done, " ", total));
  }

  void heard(Napi::Env env, const std::string& text) override { progress_.Call({Napi::String::New(env, text)}); }

  Napi::Value result(Napi::Env env) override {
    const Napi::Object report = Napi::Object::New(env);
    const Napi::Array nodes = Napi::Array::New(env), files = Napi::Array::New(env);
    for (const transform::Outcome& outcome : report_.nodes) {
      const Napi::Object node = Napi::Object::New(env);
      node.Set("name", outcome.node);
      node.Set("opType", outcome.op_type);
      if (!outcome.became.empty()) node.Set("became", outcome.became);
      if (!outcome.reason.empty()) node.Set("reason", outcome.reason);
      nodes.Set(nodes.Length(), node);
    }
    for (const std::string& file : report_.files) files.Set(files.Length(), file);
    report.Set("nodes", nodes);
    report.Set("files", files);
    report.Set("bytesBefore", static_cast<double>(report_.bytes_before));
    return report;
  }

  FileRequest request_;
  std::shared_ptr<session::Engine> engine_;
  Napi::FunctionReference progress_;
  Clock::time_point told_{};
  Report report_;
};

}  // namespace

Napi::Value transform_model(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return Napi::Number::New(info.Env(), Environment::of(info.Env()).start(std::make_shared<TransformJob>(info)));
  });
}

}  // namespace infernode::napi
