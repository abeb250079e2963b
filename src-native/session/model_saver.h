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
/// Throws Io naming the path, InvalidArgument for options that make no sense, Aborted where the load is to end.
void save_model(graph::Model model, onnx::WriteOptions write, const kernel::Registry& registry,
                const SessionOptions& options, const Logger& logger, const kernel::RunContext& load);

/// The format that session.load_model_format states.
onnx::FileFormat stated_format(const SessionOptions& options);

/// Nodes have the version of the operator set that the model imports wherever that means the same: files in ORT format
/// give each node the version that its operator dates from. Throws Aborted where the load is to end.
void raise_opsets(graph::Model& model, const kernel::Registry& registry, const kernel::RunContext& load);

}  // namespace infernode::session
