#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace infernode::onnx {

/// What a file in ORT format says of a node's operator.
struct OrtOperator {
  std::int64_t since_version = 1;
  std::size_t input_count = 0;  ///< formal inputs
  bool variadic = false;        ///< the last one takes all that are left
  struct TypeName {
    std::string name;  ///< of the type, as kernels know it: "T", or the parameter's where its type has none
    std::vector<std::size_t> inputs, outputs;  ///< formal parameters of this type
  };
  std::vector<TypeName> types;
};

struct OrtWriteOptions {
  std::function<OrtOperator(const graph::Node& node)> describe;  ///< required
};

/// A model in ORT format, version 6. Operators that only this engine knows must have been replaced, functions inlined
/// and types inferred: readers infer nothing. Throws InvalidModel for what the format cannot hold (sparse or type
/// attributes, more than 2 GB).
std::vector<std::byte> write_ort_bytes(const graph::Model& model, const OrtWriteOptions& options);

}  // namespace infernode::onnx
