#pragma once
// The ways to make attention: methods, of which each says where it can run and what it would do there with blocks of
// so many queries. The quickest is taken, call by call; it does not depend on how many threads there are.

#include <span>
#include <string>
#include <vector>

#include "cost/model.h"
#include "ops/attention/attention_core.h"

namespace infernode::ops {

/// What decides how long a call takes, and which methods can make it.
struct AttentionSite {
  std::size_t heads = 1;   ///< of queries, over the batch
  std::size_t groups = 1;  ///< heads of keys and values, over the batch
  std::size_t q_len = 1, kv_len = 1, head = 1, v_head = 1;
  bool causal = false;
  bool plain = true;       ///< nothing but a positive scale, a mask and the order of keys is asked for
  bool values_lie = true;  ///< the rows of a head's values follow each other
};
AttentionSite attention_site(const AttentionCall<float>& call);

/// Queries of a head that are made together.
struct AttentionPart {
  std::size_t batch, head, first, rows;
};

struct AttentionMethod {
  const char* name;  ///< of its rates in cost/tables
  const char* text;  ///< what it does, for docs/kernels.md
  /// Numbers of queries in a block, in rising order.
  std::span<const std::size_t> (*blocks)(const AttentionSite& site, const microkernels::KernelSet& kernels);
  bool (*can_run)(const AttentionSite& site, const microkernels::KernelSet& kernels);
  /// What it does in blocks of so many queries, counted.
  cost::Terms (*terms)(const AttentionSite& site, std::size_t rows, const microkernels::KernelSet& kernels);
  void (*run)(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<float>& call,
              std::size_t rows);
};

/// Fused loops over strips of queries.
extern const AttentionMethod kAttentionStrips;
/// Products and softmax, one after the other.
extern const AttentionMethod kAttentionProducts;

/// All methods; of two that are expected to take as long the former one is taken.
std::span<const AttentionMethod* const> attention_methods();

/// A method with the loops of a rung.
struct AttentionChoice {
  const AttentionMethod* method;
  const microkernels::KernelSet* kernels;
  std::size_t rows;    ///< of a block
  double nanoseconds;  ///< expected; infinite where the method was not measured

  /// The method's name, and the rung's where that is a lower one than the CPU's.
  std::string name(CpuRung cpu) const;
};
/// The methods that can run with each number of rows, the quickest first. A CPU with a matrix unit also has the loops
/// of AVX-512.
std::vector<AttentionChoice> attention_choices(const AttentionSite& site, const microkernels::KernelSet& kernels);
AttentionChoice quickest_attention(const AttentionSite& site, const microkernels::KernelSet& kernels);

/// Names of the methods that can run, with their rungs, the quickest first.
std::vector<std::string> attention_method_names(const AttentionSite& site, const microkernels::KernelSet& kernels);

/// The method of products, of these parts alone unless there are none.
template <class T>
void run_attention_products(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels,
                            const AttentionCall<T>& call, std::size_t rows, std::span<const AttentionPart> parts = {});

extern template void run_attention_products(kernel::KernelContext&, const microkernels::KernelSet&,
                                            const AttentionCall<float>&, std::size_t, std::span<const AttentionPart>);
extern template void run_attention_products(kernel::KernelContext&, const microkernels::KernelSet&,
                                            const AttentionCall<double>&, std::size_t, std::span<const AttentionPart>);

}  // namespace infernode::ops
