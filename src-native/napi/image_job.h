#pragma once

#include <napi.h>

namespace infernode::napi {

/// prepareImage of src/native.ts.
Napi::Value prepare_image(const Napi::CallbackInfo& info);

}  // namespace infernode::napi
