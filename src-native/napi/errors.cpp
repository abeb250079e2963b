#include "napi/errors.h"

#include <new>
#include <string>

namespace infernode::napi {

namespace {

void set_text(napi_env env, napi_value object, const char* name, std::string_view text) {
  if (text.empty()) return;
  napi_value value = nullptr;
  if (napi_create_string_utf8(env, text.data(), text.size(), &value) == napi_ok) {
    napi_set_named_property(env, object, name, value);
  }
}

napi_value make(napi_env env, ErrorCode code, std::string_view message, const ErrorContext& context) {
  napi_value object = nullptr;
  if (napi_create_object(env, &object) != napi_ok) return nullptr;
  set_text(env, object, "code", to_string(code));
  set_text(env, object, "message", message.empty() ? "unknown error" : message);
  set_text(env, object, "input", context.input);
  set_text(env, object, "output", context.output);
  set_text(env, object, "node", context.node);
  set_text(env, object, "opType", context.op_type);
  set_text(env, object, "expected", context.expected);
  set_text(env, object, "actual", context.actual);
  set_text(env, object, "path", context.path);
  if (!context.details.empty()) {
    napi_value details = nullptr;
    napi_create_array_with_length(env, context.details.size(), &details);
    for (std::size_t i = 0; i < context.details.size(); ++i) {
      napi_value text = nullptr;
      napi_create_string_utf8(env, context.details[i].data(), context.details[i].size(), &text);
      napi_set_element(env, details, static_cast<std::uint32_t>(i), text);
    }
    napi_set_named_property(env, object, "details", details);
  }
  return object;
}

/// Value() throws where the environment is being terminated.
napi_value value_of(const Napi::Error& error) noexcept {
  try {
    return error.Value();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

napi_value error_object(napi_env env, Fault fault) noexcept {
  if (const Error* error = fault.error()) return make(env, error->code(), error->message(), error->context());
  if (fault.is_out_of_memory()) return make(env, ErrorCode::OutOfMemory, "the system has no memory left for this", {});
  try {
    std::move(fault).rethrow();
  } catch (const Napi::Error& e) {
    return value_of(e);
  } catch (const std::exception& e) {
    return make(env, ErrorCode::Internal, e.what(), {});
  } catch (...) {
    return make(env, ErrorCode::Internal, "unknown error", {});
  }
}

void check(napi_env env, napi_status status) {
  if (status == napi_ok) return;
  const napi_extended_error_info* info = nullptr;
  napi_get_last_error_info(env, &info);
  const char* reason = info != nullptr && info->error_message != nullptr ? info->error_message : "no reason given";
  bool pending = false;
  napi_is_exception_pending(env, &pending);
  if (pending) throw Napi::Error::New(env);
  fail(ErrorCode::Internal, cat("Node-API: ", reason));
}

}  // namespace infernode::napi
