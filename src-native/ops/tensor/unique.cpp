#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/checked.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/mover.h"
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

/// Elements as numbers that order as they do (order_key), two to a complex one: its real part comes first.
std::vector<std::int64_t> order_keys(const Tensor& in) {
  std::vector<std::int64_t> keys;
  const auto add = [&]<class T>(const T* x, std::int64_t count) {
    keys.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) keys.push_back(order_key(x[i]));
  };
  switch (in.dtype()) {
    case DType::Bool:
      add(in.data<bool>(), in.numel());
      break;
    case DType::Complex64:
      add(elements<float>(in), 2 * in.numel());
      break;
    case DType::Complex128:
      add(elements<double>(in), 2 * in.numel());
      break;
    default:
      tensor::dispatch_numeric(in.dtype(), "Unique", [&]<class T>(TypeTag<T>) { add(in.data<T>(), in.numel()); });
  }
  return keys;
}

int compare(std::int64_t a, std::int64_t b, Look) { return static_cast<int>(a > b) - static_cast<int>(a < b); }
int compare(const std::string& a, const std::string& b, Look look) { return compare_texts(a, b, look); }

class Unique : public Kernel {
  static constexpr double kNsPerComparison = 10;

 public:
  explicit Unique(KernelInfo& info)
      : outputs_(info.node()), sorted_(info.attributes().get_int("sorted", info.node().domain.empty() ? 1 : 0) != 0) {
    if (info.attributes().has("axis")) axis_ = info.attributes().get_int("axis");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    if (in.dtype() == DType::String) return find(ctx, in.data<std::string>(), 1);
    const bool complex = in.dtype() == DType::Complex64 || in.dtype() == DType::Complex128;
    const std::size_t count = checked_mul(static_cast<std::size_t>(in.numel()), complex ? 2 : 1);
    const kernel::Charge charge(ctx.run(), checked_mul(count, sizeof(std::int64_t)));
    const std::vector<std::int64_t> keys = order_keys(in);
    find(ctx, keys.data(), complex ? 2 : 1);
  }

 private:
  /// x: the elements, or what they are ordered by, `width` to each.
  template <class T>
  void find(KernelContext& ctx, const T* x, std::int64_t width) const {
    const Tensor& in = ctx.input(0);
    const std::size_t axis = axis_ ? tensor::normalize_axis(*axis_, in.rank()) : 0;
    Shape dims = axis_ ? in.shape() : Shape{in.numel()};
    const std::int64_t outer = dims.numel(0, axis), count = dims[axis], inner = dims.numel(axis + 1, dims.rank());
    const std::int64_t parts = inner * width;
    // Items without elements are all alike, and there may be any number of them.
    const bool alike = outer == 0 || inner == 0;
    // Item i is the slice at i of the axis: outer x inner elements.
    kernel::Watch watch(ctx.run());
    const auto look = [&] { ctx.run().check(); };
    const auto order_of = [&](std::int64_t a, std::int64_t b) {
      for (std::int64_t o = 0; o < outer; ++o) {
        for (std::int64_t k = 0; k < parts; ++k) {
          watch.did(kNsPerComparison);
          const T* at = x + o * count * parts + k;
          if (const int c = compare(at[a * parts], at[b * parts], look); c != 0) return c;
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
    const Tensor y = ctx.output(0, dims);
    dispatch_elements(in.dtype(), "Unique", [&]<class E>(TypeTag<E>) {
      const E* from = elements<E>(in);
      E* to = mutable_elements<E>(y);
      Mover mover(ctx.run());
      for (std::int64_t o = 0; o < outer && in.numel() > 0; ++o) {
        for (const std::int64_t g : listed)
          to = mover.copy(from + (o * count + firsts[static_cast<std::size_t>(g)]) * inner, inner, to);
      }
    });
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
