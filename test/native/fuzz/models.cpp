#include "fuzz/models.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <sstream>

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

std::string key_of(const std::string& domain, const std::string& op) {
  return cat(domain.empty() ? "ai.onnx" : domain, ".", op);
}

namespace {

/// Operators that no written case asks for an answer: they take no tensor, or give none.
constexpr std::string_view kUnwritten[] = {
    "g () => (y) { y = Constant<value_floats = [1.0, 2.0]>() }",
    "g () => (y) { y = RandomNormal<shape = [2, 3], mean = 0.5, scale = 2.0, seed = 1.0, dtype = 1>() }",
    "g (map(int64, float) x) => (y) { y = ai.onnx.ml.CastMap<cast_to = \"TO_FLOAT\", map_form = \"SPARSE\", max_map = "
    "9>(x) }",
    "g (map(string, float) x) => (y) { y = ai.onnx.ml.DictVectorizer<string_vocabulary = [\"a\", \"b\"]>(x) }",
    "g (float[2,2] x) => (y) { y = ai.onnx.ml.ZipMap<classlabels_strings = [\"a\", \"b\"]>(x) }",
    "g (map(int64, float) x) => (y) { y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [1, 0]>(x) }",
    "g (float[2,5,3,4] x) => (y) { b = infernode.BlockChannels(x)  y = infernode.UnblockChannels<channels = 5>(b) }",
    "g (float[1,1,3,4,16] x, float[5,16,2,1] w, float[5] b) => (y) { y = infernode.BlockedConv(x, w, b) }",
};

/// Of the text of a case; longer ones would take a round's time.
constexpr std::size_t kLongestInputs = 4000;

void add_written(std::map<std::string, std::vector<std::string>>& out, const std::string& graph, long opset) {
  const graph::Model model = graph::parse_model(
      cat("<ir_version: 14, opset_import: [\"\" : ", opset,
          ", \"com.microsoft\" : 1, \"ai.onnx.ml\" : 5, \"ai.onnx.preview\" : 1, \"ai.onnx.preview.training\" : 1, "
          "\"infernode\" : 1]> ",
          graph));
  const auto bytes = onnx::write_model_bytes(model);
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::set<std::string> keys;
  for (const graph::NodeId id : model.graph->topological_order())
    keys.insert(key_of(model.graph->node(id).domain, model.graph->node(id).op_type));
  for (const std::string& key : keys) out[key].push_back(file);
}

/// Adds the cases of `text`; ops/written_cases.h says what their lines are.
void add_cases(std::map<std::string, std::vector<std::string>>& out, std::istream& text) {
  for (std::string title, nodes, inputs, outputs; std::getline(text, title);) {
    if (title.empty()) continue;
    std::getline(std::getline(std::getline(text, nodes), inputs), outputs);
    if (outputs == "refused" || outputs == "unsupported" || inputs.size() > kLongestInputs) continue;
    const long opset = std::stol(title.substr(title.rfind('|', title.rfind('|') - 1) + 1));
    std::string results;
    const auto answers = graph::parse_model(cat("g (", outputs, ") => () {}")).graph;
    for (const graph::ValueId id : answers->inputs())
      results += cat(results.empty() ? "" : ", ", answers->value(id).name);
    add_written(out, cat("g (", inputs, ") => (", results, ") { ", nodes, " }"), opset);
    add_written(out, cat("g () => (", results, ") <", inputs, "> { ", nodes, " }"), opset);
  }
}

/// The texts of the EdgeCases in a test's source, without their lines' indentation.
std::string edge_cases_of(const std::string& source) {
  std::string out;
  for (std::size_t at = source.find("\nconst EdgeCases "); at != std::string::npos;
       at = source.find("\nconst EdgeCases ", at + 1)) {
    const std::size_t begin = source.find("R\"(", at) + 3;
    REQUIRE_MESSAGE(source.substr(at, begin - at).find('\n', 1) == std::string::npos,
                    "EdgeCases stand in one raw string, from which other tests read them");
    std::istringstream lines(source.substr(begin, source.find(")\"", begin) - begin));
    for (std::string line; std::getline(lines, line); out += "\n")
      out += line.substr(std::min(line.size(), line.find_first_not_of(' ')));
  }
  return out;
}

}  // namespace

std::map<std::string, std::vector<std::string>> written_models() {
  std::map<std::string, std::vector<std::string>> out;
  for (const std::string_view text : kUnwritten) add_written(out, std::string(text), 21);
  for (const char* name : {"operator-edges.txt", "contrib-attention.txt"}) {
    std::ifstream file(cat(INFERNODE_TEST_FIXTURES "/", name));
    add_cases(out, file);
  }
  std::vector<std::filesystem::path> tests;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(INFERNODE_TEST_FIXTURES "/../native/ops"))
    if (entry.path().extension() == ".cpp") tests.push_back(entry.path());
  std::sort(tests.begin(), tests.end());
  for (const auto& path : tests) {
    std::ifstream file(path);
    std::istringstream cases(edge_cases_of({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}));
    add_cases(out, cases);
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
