#pragma once
// Loops over numpy-broadcast inputs: shapes collapse to few dims, and each call of a loop gets a run of elements along
// which every input either moves on by one or stands still.

#include <array>
#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "base/inline_vector.h"
#include "kernel/kernel.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// How up to three inputs are read while an output is written from front to back.
class BroadcastPlan {
 public:
  static constexpr std::size_t kMaxInputs = 3;
  /// Every input must broadcast to `out`.
  BroadcastPlan(const tensor::Shape& out, std::initializer_list<const tensor::Shape*> inputs);

  /// Whether input `k` stands still along a run.
  bool still(std::size_t k) const { return inner_still_[k]; }
  std::int64_t run_length() const { return inner_; }
  /// Where runs are short and input `k` starts over with each of them while the others go on: a plan of longer runs, in
  /// each of which input `k` is a row of this plan's run_length() elements over and over.
  std::optional<BroadcastPlan> repeating(std::size_t k) const;

  /// f(out, in, count): elements [out, out + count) of the output from elements in[k] on of each input. In parallel, in
  /// order within a part. `cost_ns`: of one element.
  void for_each_run(const kernel::RunContext& run, double cost_ns,
                    FunctionRef<void(std::size_t out, const std::size_t* in, std::size_t count)> f) const;

 private:
  std::size_t count_;
  std::int64_t total_ = 1, inner_ = 1, rows_ = 1;
  InlineVector<std::int64_t, 6> dims_;  ///< outer dims, outermost first
  std::array<InlineVector<std::int64_t, 6>, kMaxInputs> strides_;
  std::array<bool, kMaxInputs> inner_still_{};
};

/// Shape that b takes for a binary operator of opset 1 to 6 (attributes `axis` and `broadcast`), so that numpy rules
/// then give a's shape. Throws ShapeMismatch where b does not fit into a.
class LegacyBroadcast {
 public:
  explicit LegacyBroadcast(const graph::Attributes& attributes)
      : axis_(attributes.get_int("axis", INT64_MIN)), enabled_(attributes.get_int("broadcast", 0) != 0) {}
  tensor::Shape align(const tensor::Shape& a, const tensor::Shape& b) const;

 private:
  std::int64_t axis_;
  bool enabled_;
};

/// One run of a binary loop; a "still" input is one element.
template <class T, class R, class F>
inline void binary_run(const T* a, const T* b, R* out, std::size_t n, bool a_still, bool b_still, F f) {
  if (a_still && !b_still) {
    const T x = *a;
    for (std::size_t i = 0; i < n; ++i) out[i] = f(x, b[i]);
  } else if (b_still && !a_still) {
    const T y = *b;
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], y);
  } else if (a_still) {
    const R v = f(*a, *b);
    for (std::size_t i = 0; i < n; ++i) out[i] = v;
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  }
}

/// out = f(a, b) over broadcast elements of one C++ type.
template <class T, class R, class F>
void binary_map(const kernel::RunContext& run, const BroadcastPlan& plan, const T* a, const T* b, R* out,
                double cost_ns, F f) {
  plan.for_each_run(run, cost_ns, [&](std::size_t o, const std::size_t* in, std::size_t n) {
    binary_run(a + in[0], b + in[1], out + o, n, plan.still(0), plan.still(1), f);
  });
}

}  // namespace infernode::ops
