#include "napi/options.h"

#include <cstring>
#include <new>

#include "napi/environment.h"
#include "napi/errors.h"
#include "napi/wire.h"

namespace infernode::napi {

namespace {

using session::Absent;

std::string text(const Napi::Object& object, const char* key) { return object.Get(key).As<Napi::String>(); }

/// Sets members of options from a JavaScript object, for session::each_option. A key that is not there changes nothing.
class OptionReader {
 public:
  explicit OptionReader(Napi::Object object) : object_(object) {}

  void operator()(const char* key, std::string& to) const {
    if (const Napi::Value value = object_.Get(key); !value.IsUndefined()) to = value.As<Napi::String>();
  }

  void operator()(const char* key, bool& to) const {
    if (const Napi::Value value = object_.Get(key); !value.IsUndefined()) to = value.As<Napi::Boolean>();
  }

  /// A number: an integer or an enumeration, which may be optional.
  template <class T>
  void operator()(const char* key, T& to, Absent none = {-1}) const {
    const Napi::Value value = object_.Get(key);
    if (value.IsUndefined()) return;
    const double number = value.As<Napi::Number>().DoubleValue();
    if (number != none.number) to = static_cast<NumberOf<T>>(static_cast<std::int64_t>(number));
  }

  /// An enumeration by the names of its values.
  template <class T, std::size_t n>
  void operator()(const char* key, T& to, const std::pair<std::string_view, T> (&names)[n]) const {
    const Napi::Value value = object_.Get(key);
    if (value.IsUndefined()) return;
    const std::string name = value.As<Napi::String>();
    for (const auto& [known, meaning] : names) {
      if (known == name) to = meaning;
    }
  }

 private:
  template <class T>
  struct Unwrapped {
    using Type = T;
  };
  template <class T>
  struct Unwrapped<std::optional<T>> {
    using Type = T;
  };
  template <class T>
  using NumberOf = typename Unwrapped<T>::Type;

  Napi::Object object_;
};

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

/// The number by which JavaScript knows a function that hears something; 0 where there is none.
double key_of(const Napi::Object& object, const char* name) {
  const Napi::Value key = object.Get(name);
  return key.IsNumber() ? key.As<Napi::Number>().DoubleValue() : 0;
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

}  // namespace

session::ModelSource read_model_source(const Napi::Value& source) {
  session::ModelSource to;
  if (source.IsString()) {
    to.path = source.As<Napi::String>();
    if (to.path.empty()) fail(ErrorCode::Io, "Load model failed: the path is empty. File doesn't exist");
    if (to.path.find('\0') != std::string::npos) {
      fail(ErrorCode::InvalidArgument,
           "Load model failed: the path holds a null character, which no file name can have");
    }
  } else {
    to.bytes = copy_bytes(source);
  }
  return to;
}

LoadRequest read_load_request(const Napi::Value& source, const Napi::Object& options) {
  LoadRequest request;
  request.source = read_model_source(source);
  session::SessionOptions& to = request.options;
  each(options, "providers", [&](const Napi::Object& entry) {
    session::ProviderChoice choice{text(entry, "name"), {}};
    each_pair(entry, "options", [&](std::string key, const Napi::Value& value) {
      choice.options.insert_or_assign(std::move(key), std::string(value.As<Napi::String>()));
    });
    to.providers.push_back(std::move(choice));
  });
  session::each_option(to, OptionReader(options));
  LogQueue& log = Environment::of(options.Env()).log();
  if (const double key = key_of(options, "logKey"); key > 0) to.log_sink = log.sink(key);
  if (const double key = key_of(options, "progressKey"); key > 0) {
    to.progress = [sink = log.sink(key)](std::string_view phase, std::size_t done, std::size_t total) noexcept {
      try {
        sink(LogSeverity::Info, phase, cat(done, " ", total));
      } catch (const std::bad_alloc&) {  // the load goes on without
      }
    };
  }
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
  return request;
}

session::RunOptions read_run_options(const Napi::Value& value) {
  session::RunOptions to;
  if (value.IsUndefined()) return to;
  const Napi::Object options = value.As<Napi::Object>();
  session::each_option(to, OptionReader(options));
  read_config(options, to.config);
  return to;
}

}  // namespace infernode::napi
