#pragma once

#include <napi.h>

#include <vector>

#include "session/session.h"

namespace infernode::napi {

/// NativeValueInfo[] of src/native.ts.
Napi::Value value_infos(Napi::Env env, const std::vector<session::ValueMetadata>& values);
/// NativeMetadata.
Napi::Value model_metadata(Napi::Env env, const graph::ModelInfo& info);
/// NativePlacement[].
Napi::Value placements(Napi::Env env, const std::vector<provider::Placement>& placements);
/// Names of the session's devices, 'cpu' last.
Napi::Value device_names(Napi::Env env, const session::Session& session);

}  // namespace infernode::napi
