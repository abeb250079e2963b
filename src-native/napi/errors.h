#pragma once

#include <napi.h>

#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/thread_pool/fault.h"

namespace infernode::napi {

/// The plain object {code, message, input?, node?, ...} that stands for a C++ exception (NativeError in src/errors.ts),
/// or the JavaScript exception that it is; null where the environment is being terminated.
napi_value error_object(napi_env env, Fault fault) noexcept;

/// Throws Error(Internal) where a Node-API call failed, unless a JavaScript exception is pending, which is then thrown.
void check(napi_env env, napi_status status);

/// Runs `body` and turns what it throws into a pending JavaScript exception: the one place where C++ exceptions end.
template <class F>
Napi::Value guarded(napi_env env, F&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      body();
      return Napi::Env(env).Undefined();
    } else {
      return body();
    }
  } catch (...) {
    Fault fault;
    fault.note();
    // Fails only where the environment is being terminated; nothing can be thrown there.
    napi_throw(env, error_object(env, std::move(fault)));
  }
  return Napi::Value();
}

}  // namespace infernode::napi
