#pragma once
// Scaled dot-product attention over strided heads: what ONNX's Attention and onnxruntime's fused forms share. Scores
// are made for a block of query rows at a time and never exist as a whole, unless the caller asks for them.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// A tensor [batch, heads, rows, columns] of any order of the first three; columns lie together. Strides in elements.
template <class T>
struct Heads {
  T* data = nullptr;
  std::size_t batch = 0, head = 0, row = 0;

  T* at(std::size_t b, std::size_t h, std::size_t r = 0) const { return data + b * batch + h * head + r * row; }
  /// [batch, heads, rows, columns] in this order.
  static Heads bnsh(T* data, std::size_t heads, std::size_t rows, std::size_t columns) {
    return {data, heads * rows * columns, rows * columns, columns};
  }
  /// [batch, rows, heads, columns].
  static Heads bsnh(T* data, std::size_t heads, std::size_t rows, std::size_t columns) {
    return {data, heads * rows * columns, columns, heads * columns};
  }
};

/// One call. T is float or double.
template <class T>
struct AttentionCall {
  std::size_t batch = 0, q_heads = 0, kv_heads = 0, q_len = 0, kv_len = 0, head = 0, v_head = 0;
  Heads<const T> q, k, v;
  Heads<T> y;
  double scale = 1, softcap = 0;  ///< softcap 0: none

  /// Added to the scores; strides 0 repeat. Keys from mask_columns on count as -infinity.
  Heads<const T> mask;
  std::size_t mask_columns = 0;

  bool causal = false;
  std::int64_t left_window = -1, right_window = -1;  ///< -1: unbounded
  std::vector<std::int64_t> offsets;                 ///< by batch: position of the first query among the keys
  std::vector<std::int64_t> lengths;                 ///< by batch: keys that count; empty: all

  T shut_row = 0;         ///< probabilities of a row none of whose keys counts
  bool zero_nan = false;  ///< rows whose probabilities are NaN become zeros

  /// By query head: a score that takes part in the softmax but has no value; null: none.
  const T* sinks = nullptr;

  /// What to store of the scores [batch, q_heads, q_len, kv_len], where `scores` is not null.
  enum class Stage : std::uint8_t { Raw, Capped, Biased, Probabilities } stage = Stage::Raw;
  T* scores = nullptr;

  /// 16-bit type to whose precision each step rounds, as the operator's definition does; Undefined: none.
  tensor::DType precision = tensor::DType::Undefined, softmax_precision = tensor::DType::Undefined;
};

/// Rows none of whose keys counts give zeros, or NaN where `shut_row` is.
template <class T>
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<T>& call);

/// By the method of that name where it can run; empty: by the one that is expected to be the quickest.
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<float>& call,
                   std::string_view method);

/// Rows of the past, then new ones, as out [batch, heads, `rows`, head]: per batch entry `past_lengths` rows of `past`
/// and `fresh_rows` of `fresh` behind them. Rows beyond stay as they are. Parts of `past` that lie at their place
/// already are not copied.
void join_rows(kernel::KernelContext& ctx, std::size_t batch, std::size_t heads, std::size_t head,
               const Heads<const float>& past, std::span<const std::size_t> past_lengths,
               const Heads<const float>& fresh, std::size_t fresh_rows, float* out, std::size_t rows);

template <>
void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<float>&);
template <>
void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<double>&);

}  // namespace infernode::ops
