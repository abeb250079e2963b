// The addon's entry: NativeAddon of src/native.ts.

#include <napi.h>

#include "base/thread_data.h"
#include "napi/engine_holder.h"
#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/image_job.h"
#include "napi/options.h"
#include "napi/session_wrap.h"
#include "napi/tensor_wrap.h"
#include "napi/transform_job.h"
#include "provider/absent.h"

namespace infernode::napi {

namespace {

std::shared_ptr<session::Session> load(const std::shared_ptr<session::Engine>& engine, LoadRequest request,
                                       const kernel::CancelToken* cancel) {
  for (const auto& [path, file] : request.external_files) {
    const std::shared_ptr<const MappedFile> mapped = engine->weights().map(file);
    request.options.external_data.insert_or_assign(
        path, tensor::Buffer(const_cast<std::byte*>(mapped->data()), mapped->size(), mapped, {}, false));
  }
  return session::Session::create(engine, std::move(request.source), std::move(request.options), cancel);
}

class LoadJob final : public Job {
 public:
  LoadJob(const Napi::Function& done, std::shared_ptr<session::Engine> engine, LoadRequest request)
      : Job(done), engine_(std::move(engine)), request_(std::move(request)) {}

 private:
  void execute() override { session_ = load(engine_, std::move(request_), &cancel()); }
  Napi::Value result(Napi::Env env) override { return SessionWrap::make(env, std::move(session_)); }

  std::shared_ptr<session::Engine> engine_;
  LoadRequest request_;
  std::shared_ptr<session::Session> session_;
};

Napi::Value create_session(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment& environment = Environment::of(info.Env());
    return Napi::Number::New(info.Env(), environment.start(std::make_shared<LoadJob>(
                                             info[2].As<Napi::Function>(), environment.engine(),
                                             read_load_request(info[0], info[1].As<Napi::Object>()))));
  });
}

Napi::Value create_session_sync(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const auto& engine = Environment::of(info.Env()).engine();
    return SessionWrap::make(info.Env(), load(engine, read_load_request(info[0], info[1].As<Napi::Object>()), nullptr));
  });
}

Napi::Value detach(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { info[0].As<Napi::ArrayBuffer>().Detach(); });
}

Napi::Value open_shared_session(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const auto& engine = Environment::of(info.Env()).engine();
    return SessionWrap::make_shared(info.Env(),
                                    engine->shared_sessions().find(std::string(info[0].As<Napi::String>())));
  });
}

Napi::Value cancel(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { Environment::of(info.Env()).cancel(info[0].As<Napi::Number>().Uint32Value()); });
}

Napi::Value expire(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { Environment::of(info.Env()).expire(info[0].As<Napi::Number>().Uint32Value()); });
}

Napi::Value set_concurrent_runs(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    Environment::of(info.Env()).engine()->set_concurrent_runs(info[0].As<Napi::Number>().Uint32Value());
  });
}

Napi::Value set_log(const Napi::CallbackInfo& info) {
  return guarded(info.Env(),
                 [&] { Environment::of(info.Env()).log_function = Napi::Persistent(info[0].As<Napi::Function>()); });
}

Napi::Value flush_log(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] { Environment::of(info.Env()).deliver_log(); });
}

std::vector<provider::ProviderFactory> all_providers() {
  std::vector<provider::ProviderFactory> providers;
  provider::register_all(providers);
  provider::add_absent(providers);
  return providers;
}

/// Starting a driver takes long.
class DevicesJob final : public Job {
 public:
  using Job::Job;

 private:
  void execute() override {
    for (const provider::ProviderFactory& factory : all_providers()) {
      if (!factory.devices) continue;
      for (provider::DeviceDescription& device : factory.devices()) devices_.push_back(std::move(device));
    }
  }
  Napi::Value result(Napi::Env env) override {
    const Napi::Array all = Napi::Array::New(env);
    for (const provider::DeviceDescription& device : devices_) {
      const Napi::Object entry = Napi::Object::New(env);
      entry.Set("device", device.device);
      entry.Set("name", device.name);
      entry.Set("memoryBytes", static_cast<double>(device.memory_bytes));
      entry.Set("computeCapability", device.compute_capability);
      entry.Set("driver", device.driver);
      all.Set(all.Length(), entry);
    }
    return all;
  }

  std::vector<provider::DeviceDescription> devices_;
};

Napi::Value list_devices(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&] {
    return Napi::Number::New(
        info.Env(), Environment::of(info.Env()).start(std::make_shared<DevicesJob>(info[0].As<Napi::Function>())));
  });
}

Napi::Value list_supported_backends(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::vector<provider::ProviderFactory> providers = all_providers();
    const Napi::Array backends = Napi::Array::New(info.Env());
    const auto add = [&](const std::string& name, bool bundled) {
      const Napi::Object entry = Napi::Object::New(info.Env());
      entry.Set("name", name);
      entry.Set("bundled", bundled);
      backends.Set(backends.Length(), entry);
    };
    add("cpu", true);
    for (const provider::ProviderFactory& factory : providers) add(factory.name, factory.bundled);
    return backends;
  });
}

}  // namespace

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  guarded(env, [&] {
    pin_library();
    touch_thread_data();
    Environment::create(env);
    SessionWrap::define(env);
    TensorWrap::define(env);
    Environment& environment = Environment::of(env);
    environment.array_buffer_class = Napi::Persistent(env.Global().Get("ArrayBuffer").As<Napi::Function>());
    if (const Napi::Value buffer = env.Global().Get("Buffer"); buffer.IsFunction()) {
      const Napi::Value allocate = buffer.As<Napi::Object>().Get("allocUnsafeSlow");
      if (allocate.IsFunction()) environment.unzeroed_array = Napi::Persistent(allocate.As<Napi::Function>());
    }
    environment.prepare_engine();  // while the module loads, rather than in the first create()
    try {
      environment.nothing = Napi::Persistent(env.RunScript("() => {}").As<Napi::Function>());
    } catch (const Napi::Error&) {  // a runtime that takes no scripts from addons
    }
    exports.Set("version", INFERNODE_VERSION);
    exports.Set("listSupportedBackends", Napi::Function::New<list_supported_backends>(env, "listSupportedBackends"));
    exports.Set("listDevices", Napi::Function::New<list_devices>(env, "listDevices"));
    exports.Set("createSession", Napi::Function::New<create_session>(env, "createSession"));
    exports.Set("createSessionSync", Napi::Function::New<create_session_sync>(env, "createSessionSync"));
    exports.Set("detach", Napi::Function::New<detach>(env, "detach"));
    exports.Set("openSharedSession", Napi::Function::New<open_shared_session>(env, "openSharedSession"));
    exports.Set("prepareImage", Napi::Function::New<prepare_image>(env, "prepareImage"));
    exports.Set("transform", Napi::Function::New<transform_model>(env, "transform"));
    exports.Set("setLog", Napi::Function::New<set_log>(env, "setLog"));
    exports.Set("flushLog", Napi::Function::New<flush_log>(env, "flushLog"));
    exports.Set("cancel", Napi::Function::New<cancel>(env, "cancel"));
    exports.Set("expire", Napi::Function::New<expire>(env, "expire"));
    exports.Set("setConcurrentRuns", Napi::Function::New<set_concurrent_runs>(env, "setConcurrentRuns"));
  });
  return exports;
}

}  // namespace infernode::napi

static Napi::Object initialize_addon(Napi::Env env, Napi::Object exports) {
  return infernode::napi::initialize(env, exports);
}
NODE_API_MODULE(infernode, initialize_addon)
