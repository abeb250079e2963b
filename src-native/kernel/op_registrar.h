#pragma once
// How an operator file says what it is. Example, complete:
//
//   void register_trilu(kernel::OpRegistrar& r) {
//     r.op("Trilu")
//         .version(14, "input:T, k:int64? -> output:T; T = all_ir4")
//         .infer(kernel::infer_same_as_first)
//         .kernel<Trilu>();
//   }
//
// What passes and fusions should know of it (kernel/op_traits.h) stands in the same chain, after the versions:
// `.elementwise().activation(as_relu)`.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/infer_context.h"
#include "kernel/kernel.h"
#include "kernel/op_schema.h"

namespace infernode::kernel {

using KernelFactory = std::unique_ptr<Kernel> (*)(KernelInfo&);
/// Names of the methods that a kernel of this node can be made with, that which it would choose first. No more than one
/// where there is nothing to choose, or where too little is known of the node for a measurement to tell.
using MethodsFn = std::vector<std::string> (*)(const KernelInfo&);

struct IndexPair {
  std::uint8_t input, output;
};

/// One kernel of one provider for a range of an operator's versions.
struct KernelDef {
  std::string provider = "cpu";
  std::string domain, op;
  std::int64_t from_version = 1, to_version = INT64_MAX;
  /// Element types the kernel takes, by the schema's constraint name; a constraint not named here: all that the schema
  /// allows.
  std::vector<std::pair<std::string, tensor::TypeSet>> types;
  KernelFactory make = nullptr;
  MethodsFn methods = nullptr;      ///< null: there is one
  std::vector<IndexPair> in_place;  ///< output may be written over the input, element by element in order
  std::vector<IndexPair> alias;     ///< output shares the input's bytes (the kernel calls forward)
};

class Registry;

/// Collects versions and kernels of one operator; everything applies to the versions named in the same chain.
class OpBuilder {
 public:
  OpBuilder(Registry& registry, std::string domain, std::string name);
  ~OpBuilder() noexcept(false);  ///< registers what was collected; throws Internal on a duplicate
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;

  OpBuilder& version(std::int64_t since, std::string_view signature);
  OpBuilder& deprecated(std::int64_t since);
  OpBuilder& infer(InferFn fn);  ///< of the versions named so far that have none, and of those named later
  OpBuilder& nondeterministic();

  // Traits of the versions named so far, from version `since` on; what is said later goes for the later versions.
  OpBuilder& axes(Axes how, std::int64_t since = 1);
  OpBuilder& along_axis(std::int64_t default_axis, std::int64_t since = 1);  ///< Axes::Along
  OpBuilder& elementwise() { return axes(Axes::Elementwise); }
  OpBuilder& broadcasts(std::int64_t since = 1) { return axes(Axes::Broadcast, since); }
  OpBuilder& moves(Moves how);
  OpBuilder& blocks(Blocks kind, std::int64_t since = 1);
  OpBuilder& product(Product kind = Product::Matrix);
  OpBuilder& commutative();
  OpBuilder& passes_one_on();
  OpBuilder& bounds(BoundsFn fn);
  OpBuilder& neutral(double value, std::int64_t since = 1);
  OpBuilder& activation(ActivationFn fn);
  OpBuilder& definition(DefinitionFn fn);
  OpBuilder& on_codes(const char* op);

  /// Body in ONNX's text form for the versions named so far in the chain, used where no kernel is registered for a
  /// node.
  OpBuilder& function(std::string_view body);
  /// The CPU kernel of all versions in this chain. `types` narrows constraints by name.
  template <class K>
  OpBuilder& kernel(std::vector<std::pair<std::string, tensor::TypeSet>> types = {}) {
    return kernel(
        +[](KernelInfo& info) -> std::unique_ptr<Kernel> { return std::make_unique<K>(info); }, std::move(types));
  }
  OpBuilder& kernel(KernelFactory make, std::vector<std::pair<std::string, tensor::TypeSet>> types = {});
  OpBuilder& methods(MethodsFn fn);  ///< of the kernel named last, as what follows
  OpBuilder& in_place(std::uint8_t input, std::uint8_t output);
  OpBuilder& alias(std::uint8_t input, std::uint8_t output);

 private:
  /// Calls `set` for the traits of the versions from `since` on.
  template <class Set>
  OpBuilder& trait(std::int64_t since, const Set& set);

  Registry& registry_;
  std::string domain_, name_;
  std::vector<OpSchema> schemas_;
  std::vector<KernelDef> kernels_;
  InferFn infer_ = nullptr;
  bool deterministic_ = true;
  bool has_traits_ = false;
  int exceptions_;
};

class OpRegistrar {
 public:
  explicit OpRegistrar(Registry& registry) : registry_(registry) {}
  OpBuilder op(std::string_view name, std::string_view domain = "") {
    return OpBuilder(registry_, std::string(domain), std::string(name));
  }

 private:
  Registry& registry_;
};

}  // namespace infernode::kernel
