#include "fuzz/models.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/seeds.h"
#include "graph/text.h"
#include "onnx/writer.h"

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

}  // namespace infernode::fuzz
