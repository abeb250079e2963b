#pragma once

#include <napi.h>

#include <string>
#include <utility>
#include <vector>

#include "session/session.h"

namespace infernode::napi {

/// What a load needs besides the Engine.
struct LoadRequest {
  session::ModelSource source;
  session::SessionOptions options;
  /// externalData given by file path: (path as the model spells it, file).
  std::vector<std::pair<std::string, std::string>> external_files;
};

/// Reads ModelSource of src/native.ts; copies bytes.
session::ModelSource read_model_source(const Napi::Value& source);
/// Reads ModelSource and NativeSessionOptions of src/native.ts; copies all bytes.
LoadRequest read_load_request(const Napi::Value& source, const Napi::Object& options);
/// Reads NativeRunOptions; undefined gives the defaults.
session::RunOptions read_run_options(const Napi::Value& options);

}  // namespace infernode::napi
