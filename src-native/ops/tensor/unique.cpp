#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "base/checked.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// Which output is which. The operator of com.microsoft, for vectors only, lacks the first indices.
struct Outputs {
  std::size_t first = 1, inverse = 2, counts = 3;
  explicit Outputs(const graph::Node& node) {
    if (node.domain == "com.microsoft") *this = {SIZE_MAX, 1, 2};
  }

 private:
  Outputs(std::size_t f, std::size_t i, std::size_t c) : first(f), inverse(i), counts(c) {}
};

void infer_unique(InferContext& ctx) {
  const Outputs outputs(ctx.node());
  const SymShape* in = ctx.input_shape(0);
  const Dim count = Dim::unknown();
  for (std::size_t o = 1; o < 4; ++o) {
    if (!ctx.has_output(o)) continue;
    ctx.set_output_dtype(o, DType::Int64);
    ctx.set_output_shape(o, SymShape{o == outputs.inverse ? Dim::unknown() : count});
  }
  if (!ctx.attributes().has("axis")) return ctx.set_output_shape(0, SymShape{count});
  if (!in) return;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis"), in->size());
  if (ctx.has_output(outputs.inverse)) ctx.set_output_shape(outputs.inverse, SymShape{(*in)[axis]});
  SymShape out = *in;
  out[axis] = count;
  ctx.set_output_shape(0, std::move(out));
}

/// -1, 0 or 1; NaN equals NaN and stands behind every number, complex numbers order by their real part first.
template <class T>
int compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    const int real = compare(a.real(), b.real());
    return real != 0 ? real : compare(a.imag(), b.imag());
  } else if constexpr (std::is_same_v<T, std::string>) {
    return a.compare(b);
  } else {
    const auto x = widen(a), y = widen(b);
    if (is_nan(x) || is_nan(y)) return static_cast<int>(is_nan(x)) - static_cast<int>(is_nan(y));
    return static_cast<int>(x > y) - static_cast<int>(x < y);
  }
}

template <class F>
void dispatch_ordered(DType dtype, F&& f) {
  switch (dtype) {
    case DType::String:
      return f(TypeTag<std::string>{});
    case DType::Bool:
      return f(TypeTag<bool>{});
    case DType::Complex64:
      return f(TypeTag<std::complex<float>>{});
    case DType::Complex128:
      return f(TypeTag<std::complex<double>>{});
    default:
      tensor::dispatch_numeric(dtype, "Unique", static_cast<F&&>(f));
  }
}

class Unique : public Kernel {
  static constexpr double kNsPerComparison = 10;

 public:
  explicit Unique(KernelInfo& info)
      : outputs_(info.node()), sorted_(info.attributes().get_int("sorted", info.node().domain.empty() ? 1 : 0) != 0) {
    if (info.attributes().has("axis")) axis_ = info.attributes().get_int("axis");
  }

  void run(KernelContext& ctx) const override {
    dispatch_ordered(ctx.input(0).dtype(), [&]<class T>(TypeTag<T>) { find<T>(ctx); });
  }

 private:
  template <class T>
  void find(KernelContext& ctx) const {
    const Tensor& in = ctx.input(0);
    const std::size_t axis = axis_ ? tensor::normalize_axis(*axis_, in.rank()) : 0;
    Shape dims = axis_ ? in.shape() : Shape{in.numel()};
    const std::int64_t outer = dims.numel(0, axis), count = dims[axis], inner = dims.numel(axis + 1, dims.rank());
    const T* x = elements<T>(in);
    // Items without elements are all alike, and there may be any number of them.
    const bool alike = outer == 0 || inner == 0;
    // Item i is the slice at i of the axis: outer x inner elements.
    kernel::Watch watch(ctx.run());
    const auto order_of = [&](std::int64_t a, std::int64_t b) {
      for (std::int64_t o = 0; o < outer; ++o) {
        for (std::int64_t k = 0; k < inner; ++k) {
          watch.did(kNsPerComparison);
          const T* at = x + o * count * inner + k;
          if (const int c = compare(at[a * inner], at[b * inner]); c != 0) return c;
        }
      }
      return 0;
    };
    constexpr std::size_t kLists = 7;  // those below, and one that the sort takes
    const kernel::Charge charge(
        ctx.run(), checked_mul(static_cast<std::size_t>(alike ? 1 : count), kLists * sizeof(std::int64_t)));
    std::vector<std::int64_t> order(static_cast<std::size_t>(alike ? std::min<std::int64_t>(count, 1) : count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return order_of(a, b) < 0; });

    std::vector<std::int64_t> firsts, counts, group(order.size());  // by rank of value
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || order_of(order[i - 1], order[i]) != 0) {
        firsts.push_back(order[i]);
        counts.push_back(0);
      }
      counts.back() += alike ? count : 1;
      group[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(firsts.size()) - 1;
    }
    // Where each group stands in the output.
    std::vector<std::int64_t> place(firsts.size()), listed(firsts.size());
    std::iota(listed.begin(), listed.end(), 0);
    if (!sorted_) {
      std::sort(listed.begin(), listed.end(), [&](std::int64_t a, std::int64_t b) {
        return firsts[static_cast<std::size_t>(a)] < firsts[static_cast<std::size_t>(b)];
      });
    }
    for (std::size_t i = 0; i < listed.size(); ++i)
      place[static_cast<std::size_t>(listed[i])] = static_cast<std::int64_t>(i);

    const auto found = static_cast<std::int64_t>(firsts.size());
    dims[axis] = found;
    T* y = mutable_elements<T>(ctx.output(0, dims));
    for (std::int64_t o = 0; o < outer && in.numel() > 0; ++o) {
      for (const std::int64_t g : listed) {
        y = std::copy_n(x + (o * count + firsts[static_cast<std::size_t>(g)]) * inner, inner, y);
      }
    }
    const auto write = [&](std::size_t output, std::int64_t size, auto&& value) {
      if (!ctx.wants_output(output)) return;
      auto* to = ctx.output(output, DType::Int64, Shape{size}).template mutable_data<std::int64_t>();
      for (std::int64_t i = 0; i < size; ++i) to[i] = value(static_cast<std::size_t>(i));
    };
    write(outputs_.first, found, [&](std::size_t i) { return firsts[static_cast<std::size_t>(listed[i])]; });
    write(outputs_.inverse, count,
          [&](std::size_t i) { return place[static_cast<std::size_t>(group[alike ? 0 : i])]; });
    write(outputs_.counts, found, [&](std::size_t i) { return counts[static_cast<std::size_t>(listed[i])]; });
  }

  Outputs outputs_;
  bool sorted_;
  std::optional<std::int64_t> axis_;
};

}  // namespace

void register_unique(kernel::OpRegistrar& r) {
  r.op("Unique")
      .version(11, "X:T -> Y:T, indices:int64?, inverse_indices:int64?, counts:int64?; T = all")
      .version(28, "X:T -> Y:T, indices:int64?, inverse_indices:int64?, counts:int64?; T = all_ir4")
      .infer(infer_unique)
      .kernel<Unique>();
  r.op("Unique", "com.microsoft")
      .version(1, "x:T -> y:T, idx:int64, counts:int64; T = float")
      .infer(infer_unique)
      .kernel<Unique>();
}

}  // namespace infernode::ops
