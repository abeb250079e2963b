#include "onnx/reader.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/mapped_file.h"
#include "base/path.h"
#include "graph/building.h"
#include "graph/patch.h"
#include "graph/verifier.h"
#include "onnx/diagnose.h"
#include "onnx/external_data.h"
#include "onnx/fields.h"
#include "onnx/graph_reader.h"
#include "onnx/ort_reader.h"
#include "onnx/structure_budget.h"
#include "onnx/tensor_reader.h"

namespace infernode::onnx {
namespace {

/// A ModelProto's fields, graphs and functions not read yet: what they mean depends on fields that may follow.
struct ModelFields {
  graph::ModelInfo info;
  bool has_ir_version = false;
  std::vector<Message> graphs, functions;
  std::unordered_map<std::string, std::size_t> metadata_at;  ///< places of the custom properties
};

/// In a list that grows.
constexpr std::size_t kMessage = 3 * sizeof(Message);

void read_metadata(Message proto, ModelFields& fields, StructureBudget& budget) {
  std::string key, value;
  while (proto.next()) {
    if (proto.field() == entry_field::kKey) key = proto.text();
    if (proto.field() == entry_field::kValue) value = proto.text();
  }
  budget.take(StructureBudget::kEntry, key);
  auto& metadata = fields.info.metadata;
  const auto [at, fresh] = fields.metadata_at.emplace(key, metadata.size());
  if (fresh)
    metadata.emplace_back(std::move(key), std::move(value));
  else
    metadata[at->second].second = std::move(value);
}

/// Fields that were read before an exception stay in `out`.
void read_fields(Message proto, ModelFields& out, StructureBudget& budget) {
  graph::ModelInfo& info = out.info;
  while (proto.next()) {
    switch (proto.field()) {
      case model_field::kIrVersion:
        info.ir_version = proto.integer();
        out.has_ir_version = true;
        break;
      case model_field::kProducerName:
        info.producer_name = proto.text();
        break;
      case model_field::kProducerVersion:
        info.producer_version = proto.text();
        break;
      case model_field::kDomain:
        info.domain = proto.text();
        break;
      case model_field::kModelVersion:
        info.model_version = proto.integer();
        break;
      case model_field::kDoc:
        info.doc = proto.text();
        break;
      case model_field::kGraph:
        budget.take(kMessage);
        out.graphs.push_back(proto.message());
        break;
      case model_field::kOpsetImport:
        budget.take(StructureBudget::kEntry);
        GraphReader::read_opset(proto.message(), info.opsets);
        break;
      case model_field::kMetadata:
        read_metadata(proto.message(), out, budget);
        break;
      case model_field::kFunctions:
        budget.take(kMessage);
        out.functions.push_back(proto.message());
        break;
      default:
        break;
    }
  }
}

[[noreturn]] void fail_parsing(const std::string& path, const std::string& detail) {
  ErrorContext context;
  context.path = path;
  const std::string head = path.empty() ? std::string("Failed to load model because protobuf parsing failed.")
                                        : cat("Load model from ", path, " failed:Protobuf parsing failed.");
  fail(ErrorCode::InvalidModel, cat(head, detail.empty() ? "" : " ", detail), std::move(context));
}

std::string explain(const WireError& e, const ModelFields& fields, std::string_view all, bool at_top) {
  const std::string guess = describe_foreign_bytes(std::as_bytes(std::span(all.data(), all.size())));
  if (!guess.empty() && !(fields.has_ir_version && all[0] == '\x08')) return guess;
  const auto offset = e.at - all.data();
  const bool plausible = fields.has_ir_version && fields.info.ir_version > 0 && fields.info.ir_version < 1000;
  if (at_top && e.truncated && plausible)
    return cat("It is truncated at byte ", all.size(), ": ", e.what, ", from byte ", offset,
               " on. Fetch or export it again.");
  if (plausible) return cat("It is damaged near byte ", offset, ": ", e.what, ". Fetch or export it again.");
  return cat("It is not an ONNX model: at byte ", offset, ", ", e.what, ".");
}

void check_versions(ModelFields& fields) {
  graph::ModelInfo& info = fields.info;
  INFERNODE_CHECK(fields.has_ir_version && info.ir_version != 0, ErrorCode::InvalidModel, "Missing model IR version.");
  INFERNODE_CHECK(info.ir_version > 0 && info.ir_version <= kMaxIrVersion, ErrorCode::InvalidModel,
                  "Unsupported model IR version: ", info.ir_version, ", max supported IR version: ", kMaxIrVersion,
                  ". Export the model with an older version of onnx, or update infernode.");
  if (!info.opsets.empty()) return;
  INFERNODE_CHECK(info.ir_version < 3, ErrorCode::InvalidModel,
                  "Missing opset in the model: it must import at least one operator set and its version.");
  info.opsets[""] = 1;
}

graph::Model build(ModelFields& fields, const SourceBytes& source, ExternalData& external, const ReadOptions& options,
                   StructureBudget& budget) {
  DenseBudget dense(options.max_dense_bytes);
  const TensorReader tensors(source, &external, dense, budget, checkpoint_of(options));
  const GraphReader reader(tensors, budget, options.checkpoint);
  graph::GraphDef def;
  for (const Message& g : fields.graphs) reader.read_graph(g, def);
  std::vector<graph::FunctionDef> functions;
  for (const Message& f : fields.functions) functions.push_back(reader.read_function(f));
  graph::Model model;
  model.info = std::move(fields.info);
  model.info.graph_name = def.name;
  keep_last_initializers(def, options.logger);
  model.graph = graph::build_graph(std::move(def), model.info.opsets, checkpoint_of(options));
  if (!functions.empty()) {
    graph::inline_functions(*model.graph, functions, budget.left(), checkpoint_of(options));
    graph::GraphPatch::compact(*model.graph, checkpoint_of(options));
    graph::verify(*model.graph, checkpoint_of(options));
  }
  return model;
}

/// Puts where the model came from before the message of an error that it has to do with.
void name_source(Error& e, const std::string& path) {
  if (path.empty() || e.code() == ErrorCode::Aborted || e.message().starts_with("Load model from ")) return;
  e.prepend(cat("Load model from ", path, " failed:"));
  if (e.context().path.empty()) e.context().path = path;
}

graph::Model read_ort_format(const SourceBytes& source, const std::string& path, const ReadOptions& options) {
  const std::string_view all(source.data, source.size);
  try {
    if (!is_ort_format(all)) {
      const std::string guess = describe_foreign_bytes(std::as_bytes(std::span(all.data(), all.size())));
      fail(ErrorCode::InvalidModel, cat("The bytes are no model in ORT format. ", guess));
    }
    graph::Model model = read_ort(source, options);
    if (source.file) model.files.push_back(source.file->identity());
    return model;
  } catch (Error& e) {
    if (e.message().starts_with("It ")) e.prepend("ORT model verification failed. ");
    name_source(e, path);
    throw;
  }
}

graph::Model read_bytes(const SourceBytes& source, const std::string& path, const ReadOptions& options) {
  const std::string_view all(source.data, source.size);
  if (options.format == FileFormat::Ort || (options.format == FileFormat::Detect && is_ort_format(all)))
    return read_ort_format(source, path, options);
  ModelFields fields;
  StructureBudget budget(options.max_structure_bytes, source.size);
  bool at_top = true;
  try {
    read_fields(Message(all), fields, budget);
    at_top = false;
    if (fields.graphs.empty()) {
      std::string detail = describe_foreign_bytes(std::as_bytes(std::span(all.data(), all.size())));
      if (fields.has_ir_version || detail.empty()) detail = "It holds no graph.";
      fail_parsing(path, detail);
    }
    check_versions(fields);
    ExternalData external(path, options);
    graph::Model model = build(fields, source, external, options, budget);
    if (source.file) model.files.push_back(source.file->identity());
    for (const FileIdentity& identity : external.identities()) model.files.push_back(identity);
    return model;
  } catch (const WireError& e) {
    fail_parsing(path, explain(e, fields, all, at_top));
  } catch (Error& e) {
    name_source(e, path);
    throw;
  }
}

std::shared_ptr<const MappedFile> map_model(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  const std::filesystem::path p = to_path(path);
  if (!std::filesystem::exists(p, error)) {
    ErrorContext context;
    context.path = path;
    const std::string where = p.is_absolute() ? "" : cat(" (", to_utf8(std::filesystem::absolute(p, error)), ")");
    fail(ErrorCode::Io,
         cat("Load model from ", path, " failed:Load model ", path, " failed. File doesn't exist", where),
         std::move(context));
  }
  if (!std::filesystem::is_regular_file(p, error)) {
    ErrorContext context;
    context.path = path;
    fail(ErrorCode::Io, cat("Load model from ", path, " failed: it is not a regular file"), std::move(context));
  }
  try {
    return options.map ? options.map(path) : std::make_shared<const MappedFile>(path);
  } catch (Error& e) {
    e.prepend(cat("Load model from ", path, " failed:"));
    throw;
  }
}

}  // namespace

void keep_last_initializers(graph::GraphDef& def, const Logger* logger) {
  for (const std::string& name : graph::drop_replaced_initializers(def)) {
    if (logger != nullptr)
      logger->write(LogSeverity::Warning, "load", "initializer '", name, "' is given more than once; the last counts");
  }
}

graph::Model read_model_file(const std::string& path, const ReadOptions& options) {
  const auto file = map_model(path, options);
  const tensor::Buffer holder(const_cast<std::byte*>(file->data()), file->size(), file, {}, false);
  return read_bytes({reinterpret_cast<const char*>(file->data()), file->size(), holder, file.get()}, path, options);
}

graph::Model read_model_bytes(const tensor::Buffer& bytes, const ReadOptions& options) {
  return read_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size(), bytes, nullptr}, "", options);
}

tensor::Tensor read_tensor(std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    DenseBudget none(0);
    StructureBudget any(SIZE_MAX, 0);
    return TensorReader({all.data(), all.size(), {}, nullptr}, nullptr, none, any).read(Message(all)).second;
  } catch (const WireError& e) {
    fail(ErrorCode::InvalidModel,
         cat("a tensor in protobuf form is damaged at byte ", e.at - all.data(), ": ", e.what));
  }
}

}  // namespace infernode::onnx
