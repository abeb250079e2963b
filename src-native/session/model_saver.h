#pragma once

#include "graph/graph.h"
#include "kernel/registry.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/session_options.h"

namespace infernode::session {

/// Writes a model to options.optimized_model_path: in ORT format where the path ends in ".ort" or
/// session.save_model_format says so, else as ONNX, with large initializers in a file of their own where
/// session.optimized_model_external_initializers_file_name names one. `write` holds the functions that the model calls.
/// Throws Io naming the path, InvalidArgument for options that make no sense.
void save_model(graph::Model model, onnx::WriteOptions write, const kernel::Registry& registry,
                const SessionOptions& options, const Logger& logger);

/// The format that session.load_model_format states.
onnx::FileFormat stated_format(const SessionOptions& options);

/// Nodes have the version of the operator set that the model imports wherever that means the same: files in ORT format
/// give each node the version that its operator dates from.
void raise_opsets(graph::Model& model, const kernel::Registry& registry);

}  // namespace infernode::session
