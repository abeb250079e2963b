#include "napi/options.h"

#include <cstring>

#include "napi/errors.h"
#include "napi/wire.h"

namespace infernode::napi {

namespace {

std::string text(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::String>(); }
bool flag(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::Boolean>(); }
double number(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::Number>().DoubleValue(); }
std::size_t size(const Napi::Object& object, const char* key) { return static_cast<std::size_t>(number(object, key)); }

/// Calls `entry` with the items of the array `key`.
template <class F>
void each(const Napi::Object& object, const char* key, F&& entry) {
  const Napi::Array array = object.Get(key).As<Napi::Array>();
  for (std::uint32_t i = 0; i < array.Length(); ++i) entry(array.Get(i).As<Napi::Object>());
}

/// Calls `entry` with the pairs [text, value] of the array `key`.
template <class F>
void each_pair(const Napi::Object& object, const char* key, F&& entry) {
  each(object, key, [&](const Napi::Object& pair) {
    entry(std::string(pair.Get(0u).As<Napi::String>()), Napi::Value(pair.Get(1u)));
  });
}

void read_config(const Napi::Object& object, session::Config& config) {
  each_pair(object, "config", [&](std::string key, const Napi::Value& value) {
    config.insert_or_assign(std::move(key), std::string(value.As<Napi::String>()));
  });
}

tensor::Buffer copy_bytes(const Napi::Value& array) {
  const std::span<std::byte> bytes = typed_array_bytes(array.Env(), array);
  tensor::Buffer copy = tensor::host_allocator().allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

passes::Level level_of(const std::string& name) {
  if (name == "disabled") return passes::Level::Disabled;
  if (name == "basic") return passes::Level::Basic;
  if (name == "extended") return passes::Level::Extended;
  if (name == "layout") return passes::Level::Layout;
  return passes::Level::All;
}

microkernels::Float32Precision float32_precision(const std::string& name) {
  if (name == "high") return microkernels::Float32Precision::kHigh;
  if (name == "medium") return microkernels::Float32Precision::kMedium;
  return microkernels::Float32Precision::kHighest;
}

}  // namespace

LoadRequest read_load_request(const Napi::Value& source, const Napi::Object& options) {
  LoadRequest request;
  if (source.IsString()) {
    request.source.path = source.As<Napi::String>();
    if (request.source.path.empty()) fail(ErrorCode::Io, "Load model failed: the path is empty. File doesn't exist");
    if (request.source.path.find('\0') != std::string::npos) {
      fail(ErrorCode::InvalidArgument,
           "Load model failed: the path holds a null character, which no file name can have");
    }
  } else {
    request.source.bytes = copy_bytes(source);
  }
  session::SessionOptions& to = request.options;
  each(options, "providers", [&](const Napi::Object& entry) {
    session::ProviderChoice choice{text(entry, "name"), {}};
    each_pair(entry, "options", [&](std::string key, const Napi::Value& value) {
      choice.options.insert_or_assign(std::move(key), std::string(value.As<Napi::String>()));
    });
    to.providers.push_back(std::move(choice));
  });
  to.intra_op_threads = size(options, "intraOpNumThreads");
  to.inter_op_threads = size(options, "interOpNumThreads");
  to.level = level_of(text(options, "graphOptimizationLevel"));
  to.parallel = text(options, "executionMode") == "parallel";
  to.cpu_arena = flag(options, "enableCpuMemArena");
  to.memory_pattern = flag(options, "enableMemPattern");
  to.optimized_model_path = text(options, "optimizedModelFilePath");
  to.model_cache_dir = text(options, "modelCacheDir");
  to.profiling = flag(options, "enableProfiling");
  to.profile_prefix = text(options, "profileFilePrefix");
  to.log_id = text(options, "logId");
  to.log_severity = static_cast<LogSeverity>(size(options, "logSeverityLevel"));
  if (const std::size_t limit = size(options, "memoryLimit"); limit != 0) to.memory_limit = limit;
  each_pair(options, "freeDimensionOverrides", [&](std::string name, const Napi::Value& value) {
    to.free_dimensions.insert_or_assign(std::move(name), value.As<Napi::Number>().Int64Value());
  });
  each(options, "externalData", [&](const Napi::Object& entry) {
    const Napi::Value data = entry.Get("data");
    if (data.IsString()) {
      request.external_files.emplace_back(text(entry, "path"), data.As<Napi::String>());
    } else {
      to.external_data.insert_or_assign(text(entry, "path"), copy_bytes(data));
    }
  });
  read_config(options, to.config);
  to.float32_precision = float32_precision(text(options, "float32MatmulPrecision"));
  if (!flag(options, "providerFallback")) to.config.insert_or_assign("session.disable_provider_fallback", "1");
  return request;
}

session::RunOptions read_run_options(const Napi::Value& value) {
  session::RunOptions to;
  if (value.IsUndefined()) return to;
  const Napi::Object options = value.As<Napi::Object>();
  to.tag = text(options, "tag");
  if (const double level = number(options, "logSeverityLevel"); level >= 0) {
    to.log_severity = static_cast<LogSeverity>(static_cast<int>(level));
  }
  if (const double timeout = number(options, "timeout"); timeout > 0) {
    to.timeout_ms = static_cast<std::int64_t>(timeout);
  }
  read_config(options, to.config);
  return to;
}

}  // namespace infernode::napi
