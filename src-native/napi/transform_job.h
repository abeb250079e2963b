#pragma once

#include <napi.h>

namespace infernode::napi {

/// NativeAddon.transform of src/native.ts.
Napi::Value transform_model(const Napi::CallbackInfo& info);

}  // namespace infernode::napi
