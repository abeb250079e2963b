#pragma once
// What RNN, GRU and LSTM share: attributes, sizes, packed weights, and the walk over the time steps. The products with
// the input are one GEMM over all steps; those with the state are made step by step, rows of the batch in parallel.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/checked.h"
#include "kernel/infer_context.h"
#include "kernel/kernel.h"
#include "microkernels/gemm/gemm.h"
#include "ops/common/mover.h"
#include "ops/common/packed_weight.h"
#include "ops/common/reals.h"

namespace infernode::ops {

/// An activation named in attribute `activations`, with its alpha and beta.
struct CellFunction {
  enum class Kind : std::uint8_t {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus
  };
  Kind kind;
  float alpha, beta;

  template <class T>
  T operator()(T x) const {
    const auto a = static_cast<T>(alpha), b = static_cast<T>(beta);
    switch (kind) {
      case Kind::Relu:
        return std::max(x, T{0});
      case Kind::Tanh:
        return std::tanh(x);
      case Kind::Sigmoid:
        return 1 / (1 + std::exp(-x));
      case Kind::Affine:
        return a * x + b;
      case Kind::LeakyRelu:
        return x < 0 ? a * x : x;
      case Kind::ThresholdedRelu:
        return x > a ? x : T{0};
      case Kind::ScaledTanh:
        return a * std::tanh(b * x);
      case Kind::HardSigmoid:
        return std::clamp(a * x + b, T{0}, T{1});
      case Kind::Elu:
        return x < 0 ? a * std::expm1(x) : x;
      case Kind::Softsign:
        return x / (1 + std::abs(x));
      case Kind::Softplus:
        return x > 20 ? x : std::log1p(std::exp(x));
    }
    return x;
  }
};

struct RecurrentAttributes {
  /// `standard`: the functions of one direction that apply where the node names none.
  RecurrentAttributes(const graph::Attributes& attributes, std::size_t gates,
                      std::initializer_list<CellFunction::Kind> standard);

  std::size_t gates, directions = 1;
  bool first_reverse = false;           ///< whether direction 0 runs backward; direction 1 always does
  bool batch_first = false;             ///< layout 1
  float clip = 0;                       ///< 0: none
  std::vector<CellFunction> functions;  ///< by direction
  std::size_t functions_per_direction = 1;
  bool standard = true;          ///< all functions are the default ones
  std::int64_t hidden_size = 0;  ///< as stated; 0 where it is not

  bool reverse(std::size_t direction) const { return direction == 1 || first_reverse; }
  const CellFunction* functions_of(std::size_t direction) const {
    return functions.data() + direction * functions_per_direction;
  }
  template <class T>
  T clipped(T x) const {
    return clip > 0 ? std::clamp(x, static_cast<T>(-clip), static_cast<T>(clip)) : x;
  }
};

/// Sizes of one call.
struct RecurrentSizes {
  std::size_t steps, batch, input, hidden, directions;
  bool batch_first;
  std::vector<std::size_t> lengths;  ///< by batch entry

  /// Position of a step's row among the steps * batch rows of X.
  std::size_t row(std::size_t step, std::size_t b) const { return batch_first ? b * steps + step : step * batch + b; }
  /// Offsets of hidden-sized rows in Y, and in states.
  std::size_t y_row(std::size_t step, std::size_t d, std::size_t b) const {
    return (batch_first ? (b * steps + step) * directions + d : (step * directions + d) * batch + b) * hidden;
  }
  std::size_t state_row(std::size_t d, std::size_t b) const {
    return (batch_first ? b * directions + d : d * batch + b) * hidden;
  }
};

/// Checks the shapes of X, W, R, B, sequence_lens and the states (inputs 0 to 4, `states` from 5 on) and the contents
/// of sequence_lens.
RecurrentSizes recurrent_sizes(const kernel::KernelContext& ctx, const RecurrentAttributes& attributes,
                               const tensor::Shape& w, const tensor::Shape& r, std::size_t states);

/// The table that RecurrentWeight packs for, and that its matrices are multiplied with: steps have few rows and weights
/// that lie near, so that pieces of `high`, which are added up first, would cost time.
const microkernels::GemmTable& recurrent_table(const kernel::KernelInfo& info);

/// Rows [first, last) of each direction's matrix in a weight [directions, rows, k], as transposed right-hand sides.
class RecurrentWeight {
 public:
  /// Packs a constant weight of float32, float16 or bfloat16; the rows are counted in blocks of `k` of R (hidden size).
  RecurrentWeight(kernel::KernelInfo& info, std::size_t input, std::size_t first_gate, std::size_t last_gate,
                  std::size_t gates);

  /// One direction's matrix [n, k] for this run.
  template <class T>
  struct Matrix {
    std::size_t n, k;
    microkernels::PackedOperand packed;
    const T* plain = nullptr;
    PackedWeight hold;
  };
  template <class T>
  Matrix<T> matrix(kernel::KernelContext& ctx, std::size_t direction) const;
  bool packed() const { return static_cast<bool>(packed_); }
  const tensor::Shape& shape(const kernel::KernelContext& ctx) const {
    return packed_ ? shape_ : ctx.input(input_).shape();
  }

 private:
  void pack(const tensor::Tensor& weight, std::size_t direction, std::size_t begin, std::size_t end,
            std::byte* to) const;
  std::size_t n(const tensor::Shape& shape) const {
    return static_cast<std::size_t>(shape[1]) / gates_ * (last_ - first_);
  }

  std::size_t input_, first_, last_, gates_;
  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  tensor::Shape shape_;
  PackedWeight packed_;
};

/// What one part of the walk over time steps has to work with: `threads` of its own, each with the table's
/// scratch_floats.
struct StepHands {
  float* scratch;
  std::size_t stride;  ///< floats between the threads' scratch
  std::size_t threads;
};

/// Part of C = A * matrix (+ C where `accumulate`) for rows [begin, end) of `rows`.
void multiply_rows(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t rows, const float* a,
                   const RecurrentWeight::Matrix<float>& matrix, float* c, std::size_t ldc, bool accumulate,
                   std::size_t begin, std::size_t end, const StepHands& hands);
void multiply_rows(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t rows, const double* a,
                   const RecurrentWeight::Matrix<double>& matrix, double* c, std::size_t ldc, bool accumulate,
                   std::size_t begin, std::size_t end, const StepHands& hands);

/// out[rows, n] = x[rows, k] * matrix + bias[n].
void project_rows(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t rows, const float* x,
                  const RecurrentWeight::Matrix<float>& matrix, const float* bias, float* out);
void project_rows(kernel::KernelContext& ctx, const microkernels::GemmTable& table, std::size_t rows, const double* x,
                  const RecurrentWeight::Matrix<double>& matrix, const double* bias, double* out);

/// Scratch of `count` elements of T.
template <class T>
class Scratch {
 public:
  Scratch(kernel::KernelContext& ctx, std::size_t count) : buffer_(ctx.scratch(checked_mul(count, sizeof(T)))) {}
  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
  operator T*() const { return data(); }

 private:
  tensor::Buffer buffer_;
};

/// A state (h or c) of all directions as [direction][batch][hidden], from an optional input and to an optional output.
template <class T>
class RecurrentState {
 public:
  RecurrentState(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const RecurrentSizes& sizes,
                 std::size_t input)
      : sizes_(sizes), memory_(ctx, sizes.directions * sizes.batch * sizes.hidden) {
    const RealInput<T> initial(ctx, kernels, ctx.optional_input(input));
    const auto count = static_cast<std::int64_t>(sizes.hidden);
    Mover mover(ctx.run());
    for (std::size_t d = 0; d < sizes.directions; ++d) {
      for (std::size_t b = 0; b < sizes.batch; ++b) {
        T* to = row(d, b);
        initial ? mover.copy(initial + sizes.state_row(d, b), count, to) : mover.fill(to, count, T{0});
      }
    }
  }
  T* row(std::size_t d, std::size_t b) const { return memory_ + (d * sizes_.batch + b) * sizes_.hidden; }
  void store(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, std::size_t output) const {
    if (!ctx.wants_output(output)) return;
    const auto dim = [](std::size_t v) { return static_cast<std::int64_t>(v); };
    tensor::Shape shape{dim(sizes_.directions), dim(sizes_.batch), dim(sizes_.hidden)};
    if (sizes_.batch_first) std::swap(shape[0], shape[1]);
    const RealOutput<T> out(ctx, kernels, ctx.output(output, shape));
    Mover mover(ctx.run());
    for (std::size_t d = 0; d < sizes_.directions; ++d) {
      for (std::size_t b = 0; b < sizes_.batch; ++b)
        mover.copy(row(d, b), static_cast<std::int64_t>(sizes_.hidden), out + sizes_.state_row(d, b));
    }
    out.store();
  }

 private:
  const RecurrentSizes& sizes_;
  Scratch<T> memory_;
};

/// Output Y, where somebody reads it.
tensor::Tensor recurrent_output(kernel::KernelContext& ctx, const RecurrentSizes& sizes);

/// Runs step(direction, step, first, last, hands) for every direction and time step in order, over rows [first, last)
/// of the batch. Rows are independent of each other: parts of the batch run in parallel, and one after another where
/// there are very many. Threads that are left over share the products of a step.
inline constexpr double kNsPerGate = 3;  ///< of one unit, beside its products
template <class Step>
void walk_steps(kernel::KernelContext& ctx, const microkernels::GemmTable& table, const RecurrentAttributes& attributes,
                const RecurrentSizes& sizes, Step step) {
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const std::size_t parts =
      std::clamp<std::size_t>(threads / sizes.directions, 1, std::max<std::size_t>(1, sizes.batch));
  const std::size_t hands = std::max<std::size_t>(1, threads / (sizes.directions * parts));
  const std::size_t stride = align_up(table.scratch_floats * sizeof(float), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, std::min(threads, sizes.directions * parts) * hands));
  // Numbers that cannot be split decide for a whole tile, whose rows must not depend on the cut.
  const std::size_t tile = table.splits ? table.mr : 1;
  const std::size_t per_part = align_up(ceil_div(sizes.batch, parts), tile);
  constexpr double kNsPerRow = 50;
  const double row_cost = kNsPerRow + static_cast<double>(attributes.gates * sizes.hidden) *
                                          (static_cast<double>(sizes.hidden) / 10 + kNsPerGate);
  const double cost = static_cast<double>(sizes.steps) * static_cast<double>(per_part) * row_cost;
  // Fewer rows would read the weights too often.
  constexpr double kLeastRows = 64;
  const auto most =
      align_up(static_cast<std::size_t>(std::clamp(kernel::kLookEveryNs / row_cost, kLeastRows, 1e9)), tile);
  ctx.parallel_for(sizes.directions * parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    const StepHands own{reinterpret_cast<float*>(scratch.data() + slot * hands * stride), stride / sizeof(float),
                        hands};
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t d = i / parts, first = i % parts * per_part, last = std::min(sizes.batch, first + per_part);
      kernel::Watch watch(ctx.run());
      for (std::size_t k = 0; k < sizes.steps; ++k) {
        for (std::size_t row = first; row < last; row += most) {
          const std::size_t end = std::min(last, row + most);
          step(d, attributes.reverse(d) ? sizes.steps - 1 - k : k, row, end, own);
          watch.did(static_cast<double>(end - row) * row_cost);
        }
      }
    }
  });
}

/// Shapes of Y, Y_h and (LSTM) Y_c.
void infer_recurrent(kernel::InferContext& ctx);

}  // namespace infernode::ops
