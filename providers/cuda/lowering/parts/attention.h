#pragma once

#include "providers/cuda/kernels/attention.h"
#include "providers/cuda/lowering/products.h"

// What lowerings of operators with attention share.
namespace infernode::cuda {

/// An operand as [batch, heads, rows, columns], with strides in elements.
struct Operand4 {
  DevicePtr at = 0;
  tensor::DType dtype{};
  std::int64_t batch = 1, heads = 1, rows = 1, columns = 1;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;
};

/// A tensor of rank 3 (one head) or 4, whose rows come before its heads or behind them.
Operand4 operand_of(const DeviceTensor& t, bool rows_first);
/// Input `i`, as a view where each row is contiguous and begins at a multiple of 16 bytes.
DeviceTensor rows_of(Builder& b, std::size_t i);
/// Throws ShapeMismatch where they do not.
void check_fit(const Operand4& q, const Operand4& k, const Operand4& v);

/// What is added to the scores [batch, heads, queries, keys] of queries of this rank, with strides for those; its last
/// dim is whole. Nothing where the input is absent.
Operand4 mask_of(Builder& b, std::size_t input, std::size_t query_rank, const tensor::Shape& scores);

/// How scores become weights.
struct Attending {
  float scale = 1;
  bool causal = false;  ///< query i sees keys up to i + causal_offset
  std::int64_t causal_offset = 0;
  std::int64_t window = 0;  ///< with causal: keys that a query sees at most; 0: all
  DevicePtr lengths = 0;    ///< int32 [batch]: keys that there are; 0: all
};
AttentionProblem attention_problem(const Operand4& q, const Operand4& k, const Operand4& v, const Operand4& mask,
                                   const Operand4& y, const Attending& how);
/// Plans it with the scratch memory that it needs.
void launch_attention(Builder& b, AttentionProblem problem);
/// y = softmax(scale q k' + mask) v: in one kernel, or in steps where heads are too large for one.
void attend(Builder& b, const Operand4& q, const Operand4& k, const Operand4& v, const Operand4& mask,
            const Operand4& y, const Attending& how);
Heads heads_of(const Operand4& o);

}  // namespace infernode::cuda
