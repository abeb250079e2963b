#pragma once

#include <string_view>

#include "graph/graph.h"
#include "onnx/external_data.h"
#include "onnx/reader.h"

namespace infernode::onnx {

/// Whether bytes are a model in ORT format (ONNX Runtime's flatbuffers), by the identifier they begin with.
bool is_ort_format(std::string_view bytes);

/// Reads it. Nodes have the versions of their operators as the file states them; records of optimizations that a
/// reader may apply are left aside, as is what the file says of kernels. Throws InvalidModel.
graph::Model read_ort(const SourceBytes& source, const ReadOptions& options);

}  // namespace infernode::onnx
