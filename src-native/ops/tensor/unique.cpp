#include <algorithm>
#include <string>
#include <vector>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"
#include "ops/common/merge_sort.h"
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
kernel::Scratch<std::int64_t> order_keys(const kernel::RunContext& run, const Tensor& in) {
  kernel::Scratch<std::int64_t> keys;
  const auto add = [&]<class T>(const T* x, std::int64_t count) {
    keys = kernel::Scratch<std::int64_t>(run, static_cast<std::size_t>(count));
    run.parallel_for(keys.size(), 1.0, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) keys[i] = order_key(x[i]);
    });
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

using List = kernel::Scratch<std::int64_t>;
constexpr double kNsPerComparison = 10, kNsPerItem = 5;

/// Items that are alike, by rank of their value.
struct Groups {
  List memory[2];                    ///< of the two lists that the sort goes between
  const std::int64_t* of = nullptr;  ///< rank of each item
  List firsts, counts;               ///< of each rank: its first item, how many there are
};

template <class Order>
Groups groups_of(const kernel::RunContext& run, std::size_t items, const Order& order_of) {
  kernel::Watch watch(run);
  Groups out{{List(run, items), List(run, items)}, nullptr, {}, {}};
  for (std::size_t i = 0; i < items; ++i) {
    out.memory[0][i] = static_cast<std::int64_t>(i);
    watch.did(1);
  }
  const std::int64_t* const order = merge_sort(run, out.memory[0].data(), out.memory[1].data(), items,
                                               [&](std::int64_t a, std::int64_t b) { return order_of(a, b) < 0; });
  std::int64_t* const of = out.memory[order == out.memory[0].data() ? 1 : 0].data();
  std::int64_t rank = -1;
  for (std::size_t i = 0; i < items; ++i) {
    rank += i == 0 || order_of(order[i - 1], order[i]) != 0 ? 1 : 0;
    of[order[i]] = rank;
    watch.did(kNsPerItem);
  }
  out.of = of;
  out.firsts = List(run, static_cast<std::size_t>(rank + 1));
  out.counts = List(run, static_cast<std::size_t>(rank + 1));
  for (std::size_t i = 0; i < items; ++i) {
    const auto at = static_cast<std::size_t>(of[order[i]]);
    if (i == 0 || of[order[i - 1]] != of[order[i]]) {
      out.firsts[at] = order[i];
      out.counts[at] = 0;
    }
    ++out.counts[at];
    watch.did(kNsPerItem);
  }
  return out;
}

/// In which order groups stand in the output: that of their values or that of their first items.
struct Listing {
  Listing(const kernel::RunContext& run, const List& firsts, bool sorted)
      : memory{List(run, firsts.size()), List(run, firsts.size())} {
    kernel::Watch watch(run);
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      memory[0][i] = static_cast<std::int64_t>(i);
      watch.did(1);
    }
    std::int64_t* sorted_groups = memory[0].data();
    if (!sorted) {
      sorted_groups =
          merge_sort(run, sorted_groups, memory[1].data(), firsts.size(), [&](std::int64_t a, std::int64_t b) {
            watch.did(kNsPerComparison);
            return firsts[static_cast<std::size_t>(a)] < firsts[static_cast<std::size_t>(b)];
          });
    }
    std::int64_t* const places = memory[sorted_groups == memory[0].data() ? 1 : 0].data();
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      places[sorted_groups[i]] = static_cast<std::int64_t>(i);
      watch.did(kNsPerItem);
    }
    groups = sorted_groups;
    place = places;
  }

  List memory[2];
  const std::int64_t* groups;  ///< the group at each place
  const std::int64_t* place;   ///< of each group
};

class Unique : public Kernel {
 public:
  explicit Unique(KernelInfo& info)
      : outputs_(info.node()), sorted_(info.attributes().get_int("sorted", info.node().domain.empty() ? 1 : 0) != 0) {
    if (info.attributes().has("axis")) axis_ = info.attributes().get_int("axis");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    if (in.dtype() == DType::String) return find(ctx, in.data<std::string>(), 1);
    const bool complex = in.dtype() == DType::Complex64 || in.dtype() == DType::Complex128;
    const kernel::Scratch<std::int64_t> keys = order_keys(ctx.run(), in);
    find(ctx, keys.data(), complex ? 2 : 1);
  }

 private:
  static std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

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
    const std::size_t items = static_cast<std::size_t>(alike ? std::min<std::int64_t>(count, 1) : count);
    const Groups groups = groups_of(ctx.run(), items, order_of);
    const Listing list(ctx.run(), groups.firsts, sorted_);

    const auto found = static_cast<std::int64_t>(groups.firsts.size());
    dims[axis] = found;
    const Tensor y = ctx.output(0, dims);
    dispatch_elements(in.dtype(), "Unique", [&]<class E>(TypeTag<E>) {
      const E* from = elements<E>(in);
      E* to = mutable_elements<E>(y);
      Mover mover(ctx.run());
      for (std::int64_t o = 0; o < outer && in.numel() > 0; ++o) {
        for (std::int64_t i = 0; i < found; ++i)
          to = mover.copy(from + (o * count + groups.firsts[size(list.groups[i])]) * inner, inner, to);
      }
    });
    const auto write = [&](std::size_t output, std::int64_t length, auto&& value) {
      if (!ctx.wants_output(output)) return;
      auto* to = ctx.output(output, DType::Int64, Shape{length}).template mutable_data<std::int64_t>();
      for (std::int64_t i = 0; i < length; ++i) {
        to[i] = value(static_cast<std::size_t>(i));
        watch.did(kNsPerItem);
      }
    };
    write(outputs_.first, found, [&](std::size_t i) { return groups.firsts[size(list.groups[i])]; });
    write(outputs_.inverse, count, [&](std::size_t i) { return list.place[groups.of[alike ? 0 : i]]; });
    write(outputs_.counts, found, [&](std::size_t i) { return alike ? count : groups.counts[size(list.groups[i])]; });
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
