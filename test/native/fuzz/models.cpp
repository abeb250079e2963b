#include "fuzz/models.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/seeds.h"
#include "graph/text.h"
#include "onnx/writer.h"
#include "session/session.h"

namespace infernode::fuzz {

std::string setting(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value ? value : fallback;
}

std::string from_text(std::string_view text) {
  const auto bytes = onnx::write_model_bytes(graph::parse_model(text, 20));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::vector<std::string> seed_models() {
  std::vector<std::string> out;
  const std::string folder = setting("INFERNODE_FUZZ_MODELS", "");
  if (folder.empty()) {
    for (const std::string_view text : kSeeds) out.push_back(from_text(text));
    return out;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".onnx" && entry.file_size() < 40'000) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return out;
}

namespace {

void load(const std::shared_ptr<session::Engine>& engine, const std::string& model,
          const session::SessionOptions& options) {
  const auto bytes = std::make_shared<std::string>(model);
  session::ModelSource source;
  source.bytes = tensor::Buffer(bytes->data(), bytes->size(), bytes, {}, false);
  (void)session::Session::create(engine, std::move(source), options);
}

}  // namespace

std::vector<std::string> ort_models(const std::shared_ptr<session::Engine>& engine) {
  const auto path = std::filesystem::temp_directory_path() / cat("infernode-fuzz-", std::random_device{}(), ".ort");
  std::vector<std::string> out;
  for (const std::string& model : seed_models()) {
    for (const passes::Level level : {passes::Level::Disabled, passes::Level::Extended}) {
      session::SessionOptions options;
      options.log_severity = LogSeverity::Fatal;
      options.level = level;
      options.optimized_model_path = path.string();
      try {
        load(engine, model, options);
        std::ifstream file(path, std::ios::binary);
        const std::string saved{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        options.optimized_model_path.clear();
        load(engine, saved, options);
        out.push_back(saved);
      } catch (const Error&) {  // it has a type that the format cannot state, or the folder given holds other things
      }
    }
  }
  std::filesystem::remove(path);
  return out;
}

}  // namespace infernode::fuzz
