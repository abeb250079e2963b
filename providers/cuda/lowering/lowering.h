#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operator_names.h"
#include "providers/cuda/lowering/node_view.h"
#include "providers/cuda/plan/builder.h"

namespace infernode::cuda {

/// Types that the simple kernels compute in.
inline constexpr tensor::TypeSet kReals{tensor::DType::Float32, tensor::DType::Float16, tensor::DType::BFloat16};
inline constexpr tensor::TypeSet kInts{tensor::DType::Int64, tensor::DType::Int32};

/// How one operator becomes launches. A file of lowering/ registers those of a family.
struct Lowering {
  const char* domain;
  const char* op;
  /// Whether `lower` can do this node, whatever the dims will be. Types are known.
  bool (*can_run)(const NodeView& node);
  /// Appends the node's launches; all dims are known.
  void (*lower)(Builder& builder);
};

using Lowerings = std::vector<Lowering>;

/// Adds those of all files; CMake writes it.
void register_all(Lowerings& lowerings);

/// All of them, by operator. Immutable.
class LoweringTable {
 public:
  LoweringTable();
  LoweringTable(const LoweringTable&) = delete;
  LoweringTable& operator=(const LoweringTable&) = delete;
  /// Null where there is none.
  const Lowering* find(const graph::Node& node) const;
  bool can_run(const NodeView& view) const;

 private:
  Lowerings all_;
  std::map<std::pair<std::string_view, std::string_view>, const Lowering*> by_name_;
};

}  // namespace infernode::cuda
