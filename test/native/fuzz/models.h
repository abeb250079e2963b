#pragma once

#include <map>
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
/// "domain.operator", "ai.onnx.Add".
std::string key_of(const std::string& domain, const std::string& op);
/// By key_of each operator that they hold: the written cases of operators (test/fixtures, and the EdgeCases of their
/// tests) that have answers, as models whose inputs have defaults, and as models of constants alone.
std::map<std::string, std::vector<std::string>> written_models();
/// Bytes of a model in text form.
std::string from_text(std::string_view text);

}  // namespace infernode::fuzz
