#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernel/kernel.h"
#include "kernel/op_registrar.h"
#include "provider/provider.h"

namespace infernode::runtime {

/// The method that a node's kernel was made with, where it was measured.
struct MethodChoice {
  enum class Source : std::uint8_t { kMeasured, kKept, kExpected };  ///< by this load; by an earlier one; by none
  std::string method;
  Source source = Source::kMeasured;
};

/// One node, ready to run.
struct Step {
  std::unique_ptr<kernel::Kernel> kernel;
  std::optional<MethodChoice> method;  ///< nullopt: the kernel chose, and nobody asked
  graph::NodeId node = graph::kNoNode;
  std::vector<graph::ValueId> inputs, implicit, outputs;
  std::vector<tensor::DType> output_dtypes;  ///< Undefined where unknown or no tensor
  std::unique_ptr<bool[]> wanted;            ///< per output: somebody reads it
  std::vector<kernel::IndexPair> in_place, alias;
  provider::Provider* provider = nullptr;      ///< null: the CPU
  bool output_on_device = false;               ///< outputs lie on the provider's device
  std::vector<provider::Provider*> copied_to;  ///< by output: whose device it is copied to, else null; empty: none is
  bool holds_inputs =
      false;  ///< may keep its inputs in its outputs (control flow, sequences): they cannot lie in the arena
  bool control_flow = false;  ///< runs subgraphs, as often as the data says
  bool is_copy = false;       ///< between the host and `provider`'s device
  /// Of a copy to the host that only makes an output of the graph: its place among those.
  std::optional<std::size_t> only_output;
  bool foldable = false;              ///< no effect but its outputs: skipped where those are known from shapes
  std::vector<graph::ValueId> frees;  ///< values nobody reads after this step
};

}  // namespace infernode::runtime
