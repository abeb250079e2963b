#pragma once
// Programs over whole models that write another model: what tools do, not what a load does (passes/).

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/registry.h"
#include "kernel/run_context.h"
#include "transform/settings.h"

namespace infernode::transform {

/// What became of a node that a transformation looked at.
struct Outcome {
  std::string node, op_type;
  std::string became;  ///< the operator that does its work now; "" where it was left as it was
  std::string reason;  ///< why it was left
};

struct Report {
  std::vector<Outcome> nodes;
  std::vector<std::string> files;  ///< that were written: the model first
  std::size_t bytes_before = 0;    ///< of the model with its external data
};

/// What a transformation has of who started it.
struct Context {
  const kernel::RunContext& run;  ///< looked at for each node; loops go over its pool
  const kernel::Registry& registry;
  /// How many of how many nodes are done.
  std::function<void(std::size_t done, std::size_t total)> progress{};
  /// The tensor of the file is not read again: its pages may go.
  std::function<void(const tensor::Tensor&)> release{};

  void tell(std::size_t done, std::size_t total) const {
    if (progress) progress(done, total);
  }
  void let_go(const tensor::Tensor& tensor) const {
    if (release) release(tensor);
  }
};

struct Transformation {
  std::string_view name;
  /// Changes the model. Throws InvalidArgument for settings that make no sense, InvalidModel for a model that it cannot
  /// do anything with.
  void (*apply)(graph::Model& model, const Settings& settings, const Context& context, Report& report);
};

/// All there are.
std::span<const Transformation> transformations();
/// Throws InvalidArgument where there is none of the name.
const Transformation& find_transformation(std::string_view name);

// One file each.
void observe_tensors(graph::Model& model, const Settings& settings, const Context& context, Report& report);
void quantize_dynamic(graph::Model& model, const Settings& settings, const Context& context, Report& report);
void quantize_static(graph::Model& model, const Settings& settings, const Context& context, Report& report);
void quantize_weights(graph::Model& model, const Settings& settings, const Context& context, Report& report);

}  // namespace infernode::transform
