#pragma once
// What an accelerator implements. The CPU is not one of these: it is always there and takes what nobody claimed.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "kernel/kernel.h"
#include "kernel/registry.h"
#include "tensor/buffer.h"

namespace infernode::provider {

/// A device queue: copies and kernels of one run enter it in order.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Waits until everything put into it is done.
  virtual void synchronize() = 0;
};

/// A set of nodes that a provider wants.
struct Claim {
  std::vector<graph::NodeId> nodes;
  bool compile = false;  ///< true: handed to compile() as one subgraph; false: one kernel per node, from the registry under the provider's name
};

/// What a provider sees of a graph while it claims: nodes not yet taken, types inferred.
struct GraphView {
  const graph::Graph& graph;
  const kernel::Registry& registry;
  std::span<const graph::NodeId> nodes;  ///< topological order, unclaimed
};

/// One configured provider of one session. Thread-safe once built.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual std::string_view name() const = 0;  ///< "cuda", "null", ...: the name in executionProviders
  virtual tensor::Device device() const = 0;
  /// Groups of nodes this provider will run, each convex or split by the partitioner into convex parts.
  virtual std::vector<Claim> claim(const GraphView& view) = 0;
  /// Builds one kernel for a claimed subgraph (its inputs and outputs in graph order). Only called for claims with compile = true.
  virtual std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph> subgraph) = 0;
  virtual tensor::Allocator& allocator() = 0;
  virtual std::unique_ptr<Stream> make_stream() = 0;
  /// Copies elements between host and this device, or within it; same dtype and byte count. May return before it is done: the stream orders it.
  virtual void copy(const tensor::Tensor& from, const tensor::Tensor& to, Stream& stream) = 0;
};

/// Options of one entry of executionProviders, as strings; JavaScript numbers and booleans arrive as their text.
using ProviderOptions = std::map<std::string, std::string, std::less<>>;

/// Makes a provider or throws Error(ProviderUnavailable) that says exactly what is missing ("libcuda.so.1 not found: ...").
struct ProviderFactory {
  std::string name;
  bool bundled = false;  ///< compiled into this addon (listSupportedBackends)
  std::shared_ptr<Provider> (*make)(const ProviderOptions& options, const Logger& logger) = nullptr;
};

}  // namespace infernode::provider
