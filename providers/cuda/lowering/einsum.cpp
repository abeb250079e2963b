// Einsum: operands are contracted from left to right, each pair as a batch of matrix products whose strides are the
// operands' own where those allow.

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "ops/matmul/einsum_equation.h"
#include "providers/cuda/kernels/simple/rows.h"
#include "providers/cuda/lowering/parts/elements.h"
#include "providers/cuda/lowering/parts/moves.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using ops::EinsumEquation;
using tensor::Shape;
using Labels = EinsumEquation::Labels;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

Labels joined(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Elements whose dims have names; each label once.
struct Named {
  DevicePtr at = 0;
  Labels labels;
  std::vector<std::int64_t> strides;  ///< by label

  /// 0 for labels that it has not: its elements are the same along those.
  std::int64_t stride(int label) const {
    const auto found = std::find(labels.begin(), labels.end(), label);
    return found == labels.end() ? 0 : strides[static_cast<std::size_t>(found - labels.begin())];
  }
};

/// The labels of a pair of operands by what becomes of them.
struct Roles {
  Labels batch, rows, columns, summed;
};

class Contraction {
 public:
  Contraction(Builder& b, const EinsumEquation& equation) : b_(b), equation_(equation), dtype_(b.input_dtype(0)) {
    for (std::size_t i = 0; i < b.input_count(); ++i) {
      const Shape shape = b.input_shape(i);
      for (std::size_t axis = 0; axis < shape.rank(); ++axis) add_size(equation.inputs[i][axis], shape[axis]);
    }
  }

  void lower() {
    const DeviceTensor out = b_.output(0);
    if (out.numel() == 0) return;
    Named result = input(0);
    for (std::size_t i = 1; i < b_.input_count(); ++i) {
      Labels needed = equation_.output;
      for (std::size_t later = i + 1; later < b_.input_count(); ++later)
        needed.insert(needed.end(), equation_.inputs[later].begin(), equation_.inputs[later].end());
      const bool last = i + 1 == b_.input_count();
      result = contract(result, input(i), needed, last ? std::optional(out.at) : std::nullopt);
    }
    result = sum_out(result, equation_.output);
    if (result.at != out.at) copy(result, equation_.output, out.at);
  }

 private:
  void add_size(int label, std::int64_t dim) {
    std::int64_t& size = sizes_.try_emplace(label, dim).first->second;
    if (size == 1) size = dim;
    if (dim != size && dim != 1) {
      fail(ErrorCode::ShapeMismatch, cat("Einsum: a label stands for dims of ", size, " and of ", dim));
    }
  }
  Shape shape_of(const Labels& labels) const {
    Shape shape;
    for (const int label : labels) shape.push_back(sizes_.at(label));
    return shape;
  }
  Named dense(DevicePtr at, const Labels& labels) const { return {at, labels, vector_of(shape_of(labels).strides())}; }
  DevicePtr memory(const Labels& labels) { return scratch_tensor(b_, dtype_, shape_of(labels)).at; }
  std::size_t element_bytes() const { return tensor::bit_size(dtype_) / 8; }

  /// Repeated labels walk a diagonal: their strides add up. A dim of 1 repeats along a longer label.
  Named input(std::size_t i) {
    const DeviceTensor x = b_.input_strided(i);
    const std::vector<std::int64_t> strides = strides_of(x);
    Named named{.at = x.at, .labels = {}, .strides = {}};
    for (std::size_t axis = 0; axis < x.shape.rank(); ++axis) {
      const int label = equation_.inputs[i][axis];
      const std::int64_t stride = x.shape[axis] == 1 ? 0 : strides[axis];
      const auto found = std::find(named.labels.begin(), named.labels.end(), label);
      if (found != named.labels.end()) {
        named.strides[static_cast<std::size_t>(found - named.labels.begin())] += stride;
      } else {
        named.labels.push_back(label);
        named.strides.push_back(stride);
      }
    }
    return named;
  }

  std::vector<std::int64_t> strides_by(const Named& x, const Labels& order) const {
    std::vector<std::int64_t> strides;
    for (const int label : order) strides.push_back(x.stride(label));
    return strides;
  }
  void copy(const Named& from, const Labels& order, DevicePtr to) {
    copy_dense(b_, from.at, shape_of(order), element_bytes(), to, strides_by(from, order));
  }
  /// The elements in this order, which has all of its labels.
  Named arranged(const Named& x, const Labels& order) {
    const Shape dims = shape_of(order), plain = dims.strides();
    bool lies_so = true;
    for (std::size_t d = 0; d < order.size(); ++d)
      lies_so = lies_so && (dims[d] == 1 || x.stride(order[d]) == plain[d]);
    if (lies_so) return dense(x.at, order);
    const Named to = dense(memory(order), order);
    copy(x, order, to.at);
    return to;
  }

  /// Sums over the labels that nobody needs.
  Named sum_out(const Named& x, const Labels& needed) {
    Labels kept, dropped;
    for (const int label : x.labels) (has(needed, label) ? kept : dropped).push_back(label);
    if (dropped.empty()) return x;
    const Named from = arranged(x, joined({kept, dropped})), to = dense(memory(kept), kept);
    const ReduceParams p{.in = from.at,
                         .out = to.at,
                         .outputs = shape_of(kept).numel(),
                         .columns = shape_of(dropped).numel(),
                         .inner = 1,
                         .op = ReduceOp::sum};
    b_.launch(plan_reduce(b_.target(), dtype_, p));
    return to;
  }

  /// One stride for all of these labels, the last one innermost; nullopt where they need more.
  std::optional<std::int64_t> one_stride(const Named& x, const Labels& group) const {
    std::int64_t size = 1, stride = 0;
    for (auto label = group.rbegin(); label != group.rend(); ++label) {
      const std::int64_t dim = sizes_.at(*label), own = x.stride(*label);
      if (dim == 1) continue;
      if (size > 1 && own != stride * size) return std::nullopt;
      if (size == 1) stride = own;
      size *= dim;
    }
    return stride;
  }

  /// Sets a product's sizes and strides. False where a matrix or the batch needs more of them than a product has.
  bool set_strides(GemmProblem& p, const Roles& r, const Named& x, const Named& y, const Named& out) const {
    const auto x_row = one_stride(x, r.rows), x_k = one_stride(x, r.summed), y_row = one_stride(y, r.columns),
               y_k = one_stride(y, r.summed), out_row = one_stride(out, r.rows),
               out_column = one_stride(out, r.columns);
    const bool one_column = shape_of(r.columns).numel() == 1;
    if (!x_row || !x_k || !y_row || !y_k || !out_row || !out_column || (*out_column != 1 && !one_column)) return false;
    p.m = shape_of(r.rows).numel(), p.n = shape_of(r.columns).numel(), p.k = shape_of(r.summed).numel();
    p.a.row_stride = *x_row, p.a.k_stride = *x_k;
    p.b.row_stride = *y_row, p.b.k_stride = *y_k;
    p.epilogue.out_row = p.m == 1 ? p.n : *out_row;
    std::size_t part = 0;
    for (auto label = r.batch.rbegin(); label != r.batch.rend(); ++label) {
      const std::int64_t dim = sizes_.at(*label);
      if (dim == 1) continue;
      if (part > 0 && x.stride(*label) == p.a.batch_stride[part - 1] * p.batch[part - 1] &&
          y.stride(*label) == p.b.batch_stride[part - 1] * p.batch[part - 1] &&
          out.stride(*label) == p.epilogue.out_batch[part - 1] * p.batch[part - 1]) {
        p.batch[part - 1] *= dim;
        continue;
      }
      if (part == 2) return false;
      p.batch[part] = dim;
      p.a.batch_stride[part] = x.stride(*label);
      p.b.batch_stride[part] = y.stride(*label);
      p.epilogue.out_batch[part] = out.stride(*label);
      ++part;
    }
    return true;
  }

  Named multiply(const Roles& r, Named x, Named y, std::optional<DevicePtr> target) {
    const Labels order = joined({r.batch, r.rows, r.columns});
    GemmProblem p;
    Named out = dense(target ? *target : memory(order), target ? equation_.output : order);
    if (!set_strides(p, r, x, y, out)) {
      p = {};
      x = arranged(x, joined({r.batch, r.rows, r.summed}));
      y = arranged(y, joined({r.batch, r.columns, r.summed}));
      if (!set_strides(p, r, x, y, out)) {
        p = {};
        out = dense(memory(order), order);
        set_strides(p, r, x, y, out);
      }
    }
    p.precision = precision_of(b_);
    p.a.address = x.at, p.b.address = y.at, p.epilogue.out = out.at;
    p.a.type = p.b.type = p.epilogue.out_type = element_of(dtype_);
    p.b_constant = false;
    launch_gemm(b_, p);
    return out;
  }

  /// Products of elements, which are summed up behind that: nothing of them is a matrix.
  Named multiply_elements(const Roles& r, const Named& x, const Named& y) {
    const std::int64_t batch = shape_of(r.batch).numel(), rows = shape_of(r.rows).numel(),
                       columns = shape_of(r.columns).numel(), summed = shape_of(r.summed).numel();
    const auto tensor = [&](const Named& named, Shape shape) {
      return DeviceTensor{.dtype = dtype_, .shape = std::move(shape), .at = named.at, .storage = SIZE_MAX};
    };
    const Labels order = joined({r.batch, r.rows, r.columns, r.summed});
    const Named out = dense(memory(order), order);
    launch_binary(b_, BinaryOp::mul,
                  tensor(arranged(x, joined({r.batch, r.rows, r.summed})), Shape{batch, rows, 1, summed}),
                  tensor(arranged(y, joined({r.batch, r.columns, r.summed})), Shape{batch, 1, columns, summed}),
                  tensor(out, Shape{batch, rows, columns, summed}));
    return sum_out(out, joined({r.batch, r.rows, r.columns}));
  }

  Named contract(const Named& left, const Named& right, const Labels& needed, std::optional<DevicePtr> target) {
    // What only one side has and nobody needs later is summed first.
    const Named x = sum_out(left, joined({needed, right.labels})), y = sum_out(right, joined({needed, left.labels}));
    Roles r;
    for (const int label : x.labels) {
      (!has(y.labels, label) ? r.rows : has(needed, label) ? r.batch : r.summed).push_back(label);
    }
    for (const int label : y.labels) {
      if (!has(x.labels, label)) r.columns.push_back(label);
    }
    const std::int64_t k = shape_of(r.summed).numel(), matrix = shape_of(joined({r.rows, r.columns})).numel();
    constexpr std::int64_t kMostBatches = 4096;
    if (k <= 1 || matrix == 1 || shape_of(r.batch).numel() > kMostBatches * matrix) return multiply_elements(r, x, y);
    return multiply(r, x, y, target);
  }

  Builder& b_;
  const EinsumEquation& equation_;
  tensor::DType dtype_;
  std::map<int, std::int64_t> sizes_;
};

std::vector<std::size_t> ranks_of(const NodeView& node) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < node.node().inputs.size(); ++i) ranks.push_back(node.input_rank(i).value_or(SIZE_MAX));
  return ranks;
}

/// Copies have a most of dims.
bool can_contract(const NodeView& node) {
  const std::vector<std::size_t> ranks = ranks_of(node);
  if (ranks.empty() || !node.all_of({node.input_dtype(0)}) || !kProductTypes.contains(node.input_dtype(0)))
    return false;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] > kCopyRank || node.is_empty(i)) return false;
  }
  const EinsumEquation equation = EinsumEquation::parse(node.attributes().get_string("equation", ""), ranks);
  Labels all;
  for (const Labels& labels : equation.inputs) {
    for (const int label : labels) {
      if (!has(all, label)) all.push_back(label);
    }
  }
  return all.size() <= kCopyRank;
}

void lower_contraction(Builder& b) {
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < b.input_count(); ++i) ranks.push_back(b.input_shape(i).rank());
  const EinsumEquation equation = EinsumEquation::parse(b.attributes().get_string("equation", ""), ranks);
  Contraction(b, equation).lower();
}

}  // namespace

void register_einsum(Lowerings& lowerings) { lowerings.push_back({"", "Einsum", can_contract, lower_contraction}); }

}  // namespace infernode::cuda
