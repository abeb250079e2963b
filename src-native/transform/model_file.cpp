#include "transform/model_file.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/path.h"
#include "graph/captures.h"
#include "graph/patch.h"
#include "graph/verifier.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

namespace infernode::transform {

namespace {

/// Tensors of so many bytes and more go to external data, as in onnx's own tools.
constexpr std::size_t kExternalFrom = 1024;

using Files = std::vector<std::shared_ptr<const MappedFile>>;

graph::Model read(const FileRequest& request, const Context& context, Files& files) {
  onnx::ReadOptions options;
  options.map = [&](const std::string& path) { return files.emplace_back(std::make_shared<const MappedFile>(path)); };
  options.checkpoint = [&] { context.run.check(); };
  return request.path.empty() ? onnx::read_model_bytes(request.bytes, options)
                              : onnx::read_model_file(request.path, options);
}

/// Throws where `output` is one of the model's own files, by whatever name.
void check_apart(const std::string& output, const graph::Model& model) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(to_path(output), error)) return;
  const FileIdentity there = file_identity(output);
  for (const FileIdentity& own : model.files) {
    if (own.device != there.device || own.inode != there.inode) continue;
    fail(ErrorCode::InvalidArgument, cat(output, " is a file of the model that is read: give the result another name"),
         {.path = output});
  }
}

/// Pages of mapped files go when their tensors are done with.
void drop_pages(const Files& files, const tensor::Tensor& tensor) {
  const auto* first = static_cast<const std::byte*>(tensor.raw());
  for (const auto& file : files) {
    if (std::less<>()(first, file->data()) || !std::less<>()(first, file->data() + file->size())) continue;
    file->drop(static_cast<std::size_t>(first - file->data()), tensor.bytes());
  }
}

onnx::WriteOptions write_options(const FileRequest& request, const Context& context) {
  onnx::WriteOptions options;
  if (request.settings.flag("useExternalDataFormat")) options.external_threshold = kExternalFrom;
  options.checkpoint = [&] { context.run.check(); };
  options.means_the_same = [&registry = context.registry](const graph::Node& node, std::int64_t imported) {
    const kernel::OpSchema* schema = registry.find_schema(node.domain, node.op_type, node.opset);
    return schema != nullptr && schema == registry.find_schema(node.domain, node.op_type, imported);
  };
  return options;
}

/// Files from before IR 4 list their weights as inputs, too.
void drop_constant_inputs(graph::Model& model) {
  if (model.info.ir_version >= 4) return;
  std::erase_if(model.graph->mutable_inputs(), [&](graph::ValueId id) {
    if (!model.graph->value(id).has_constant()) return false;
    model.graph->value(id).is_input = false;
    return true;
  });
}

}  // namespace

Report transform_file(const FileRequest& request, const Context& context) {
  const Transformation& transformation = find_transformation(request.transformation);
  if (request.output.empty()) fail(ErrorCode::InvalidArgument, "the output needs the path of a file");
  if (request.output.ends_with(".ort")) {
    fail(ErrorCode::InvalidArgument, cat("the output ", request.output, " would be an ONNX file: let its name say so"),
         {.path = request.output});
  }
  Files files;
  graph::Model model = read(request, context, files);
  const std::string data = request.output + ".data";
  check_apart(request.output, model);
  check_apart(data, model);
  Report report;
  report.bytes_before = request.bytes.size();
  for (const FileIdentity& file : model.files) report.bytes_before = checked_add(report.bytes_before, file.size);

  drop_constant_inputs(model);
  graph::adopt_constants(*model.graph);
  Context own = context;
  own.release = [&](const tensor::Tensor& tensor) { drop_pages(files, tensor); };
  transformation.apply(model, request.settings, own, report);
  graph::GraphPatch::compact(*model.graph, [&] { context.run.check(); });
  graph::capture_constants(*model.graph);
  graph::verify(*model.graph, [&] { context.run.check(); });

  const bool has_data = onnx::write_model_file(model, request.output, write_options(request, context));
  report.files.push_back(request.output);
  if (has_data) report.files.push_back(data);
  return report;
}

}  // namespace infernode::transform
