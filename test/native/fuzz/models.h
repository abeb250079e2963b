#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "session/engine.h"

namespace infernode::fuzz {

/// An environment variable, or `fallback`.
std::string setting(const char* name, const char* fallback);
/// The models of seeds.h, or the .onnx files below 40 kB in the folder that INFERNODE_FUZZ_MODELS names.
std::vector<std::string> seed_models();
/// The same models in ORT format, as a session saves them: those that the format can hold.
std::vector<std::string> ort_models(const std::shared_ptr<session::Engine>& engine);
/// Bytes of a model in text form.
std::string from_text(std::string_view text);

}  // namespace infernode::fuzz
