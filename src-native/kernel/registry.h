#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/op_registrar.h"

namespace infernode::kernel {

/// All schemas and kernels; filled once when the Engine starts, read-only afterwards.
class Registry {
 public:
  void add(OpSchema schema);
  void add(KernelDef def);

  /// The schema of (domain, op) in force at opset `version`; nullptr where the operator is unknown there (see
  /// `why_missing`).
  const OpSchema* find_schema(std::string_view domain, std::string_view op, std::int64_t version) const;
  /// For a node without a schema: "unknown domain 'x'", "no operator 'Foo' in ai.onnx (did you mean 'Pow'?)", "Foo
  /// exists from opset 19 on, the model imports 17", "deprecated since opset 10".
  std::string why_missing(std::string_view domain, std::string_view op, std::int64_t version) const;
  /// The kernel of `provider` for a node whose inputs have these types; nullptr where there is none.
  const KernelDef* find_kernel(std::string_view provider, const OpSchema& schema,
                               std::span<const graph::ValueType> inputs,
                               std::span<const graph::ValueType> outputs) const;
  bool knows_domain(std::string_view domain) const;
  std::int64_t newest_opset(std::string_view domain) const;  ///< 0 where unknown
  std::vector<const OpSchema*> schemas() const;              ///< by domain, name, version
  std::vector<const KernelDef*> kernels() const;

 private:
  using Name = std::pair<std::string, std::string>;  ///< domain, operator
  /// Takes views, too: looking up allocates nothing.
  struct Less {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const int order = std::string_view(a.first).compare(b.first);
      return order != 0 ? order < 0 : std::string_view(a.second) < std::string_view(b.second);
    }
  };
  std::map<Name, std::vector<OpSchema>, Less> schemas_;  ///< ascending since_version
  std::map<Name, std::vector<KernelDef>, Less> kernels_;
};

/// Newest ai.onnx opset whose operators are known here, and of the other domains.
inline constexpr std::int64_t kNewestOnnxOpset = 28;
inline constexpr std::int64_t kNewestMlOpset = 5;

}  // namespace infernode::kernel
