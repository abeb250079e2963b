#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "kernel/counted.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/matmul/matmul_shapes.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

constexpr const char* kName = "SparseToDenseMatMul";

/// The places of a matrix that hold something, row by row.
struct Places {
  using List = kernel::CountedVector<std::size_t>;
  explicit Places(const kernel::RunContext& run) : begin(run), column(run), element(run) {}

  std::int64_t rows = 0, columns = 0;
  List begin;    ///< [rows + 1], into the other two
  List column;   ///< of each place
  List element;  ///< of the tensor of values
};

/// com.microsoft's product of a sparse matrix and dense ones. A matrix from a file comes with its zeros written out.
class SparseToDenseMatMul final : public kernel::Kernel {
 public:
  explicit SparseToDenseMatMul(KernelInfo& info)
      : alpha_(info.attributes().get_float("alpha", 1)),
        trans_a_(info.attributes().get_int("transA", 0) != 0),
        trans_b_(info.attributes().get_int("transB", 0) != 0) {
    if (const Tensor* a = info.constant(0)) fixed_ = dense_places({}, *a);
  }

  void run(KernelContext& ctx) const override {
    const Value& a = ctx.input_value(0);
    const Tensor& given = ctx.input(1);
    const Tensor& values = a.is_sparse() ? a.sparse().values : a.tensor();
    const Places found = fixed_          ? Places(ctx.run())
                         : a.is_sparse() ? sparse_places(ctx.run(), a.sparse())
                                         : dense_places(ctx.run(), values);
    const Places& places = fixed_ ? *fixed_ : found;
    const Tensor b = trans_b_ && given.rank() >= 2 ? transposed(ctx, given) : given;
    if (values.dtype() != b.dtype())
      fail(ErrorCode::InvalidArgument, cat(kName, ": A of ", values.to_string(), ", B of ", b.to_string()));
    const MatMulGeometry g = plan_matmul(ctx.run(), Shape{places.rows, places.columns}, b.shape(), kName, false);
    const Tensor y = ctx.output(0, b.dtype(), g.out);
    tensor::dispatch<float, double, std::int64_t, std::int32_t, std::uint64_t, std::uint32_t>(
        b.dtype(), kName, [&]<class T>(tensor::TypeTag<T>) {
          multiply(ctx, places, values.data<T>(), b.data<T>(), y.mutable_data<T>(), static_cast<std::size_t>(y.numel()),
                   g.n);
        });
  }

 private:
  using Cells = kernel::CountedVector<std::pair<std::int64_t, std::int64_t>>;

  /// `n` columns of B; matrices of B and Y follow one another.
  template <class T>
  void multiply(const KernelContext& ctx, const Places& a, const T* values, const T* b, T* y, std::size_t size,
                std::size_t n) const {
    const auto rows = static_cast<std::size_t>(a.rows), columns = static_cast<std::size_t>(a.columns);
    if (size == 0) return;
    const T alpha = static_cast<T>(alpha_);
    const double cost = static_cast<double>((1 + a.column.size() / rows) * n);
    ctx.parallel_for(size / n, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      Mover mover(ctx.run());
      for (std::size_t i = begin; i < end; ++i) {
        T* to = y + i * n;
        mover.fill(to, static_cast<std::int64_t>(n), T{0});
        const std::size_t row = i % rows;
        for (std::size_t p = a.begin[row]; p < a.begin[row + 1]; ++p) {
          const T* from = b + (i / rows * columns + a.column[p]) * n;
          const T factor = static_cast<T>(alpha * values[a.element[p]]);
          for (std::size_t first = 0; first < n; first += kernel::kPiece) {
            const std::size_t last = std::min(n, first + kernel::kPiece);
            for (std::size_t c = first; c < last; ++c) to[c] = static_cast<T>(to[c] + factor * from[c]);
            mover.did(4 + static_cast<double>(last - first));
          }
        }
      }
    });
  }

  Places sparse_places(const kernel::RunContext& run, const tensor::Sparse& sparse) const {
    const Shape& shape = sparse.shape;
    if (shape.rank() != 2) fail(ErrorCode::ShapeMismatch, cat(kName, ": A is ", shape.to_string()));
    const kernel::Numbers<std::int64_t> at(run, sparse.indices);
    const auto count = static_cast<std::size_t>(sparse.values.numel());
    const bool pairs = sparse.indices.rank() == 2;
    if (at.size() != count * (pairs ? 2 : 1))
      fail(ErrorCode::ShapeMismatch, cat(kName, ": ", at.size(), " indices of ", count, " values"));
    Cells cells(run);
    cells.reserve(count);
    kernel::Watch watch(run);
    each_in_pieces(watch, count, kNsPerCell, [&](std::size_t i) {
      const std::int64_t columns = std::max<std::int64_t>(1, shape[1]);
      const std::int64_t row = pairs ? at[2 * i] : at[i] / columns, column = pairs ? at[2 * i + 1] : at[i] % columns;
      if (row < 0 || row >= shape[0] || column < 0 || column >= shape[1])
        fail(ErrorCode::InvalidArgument, cat(kName, ": a value of A lies outside ", shape.to_string()));
      cells.emplace_back(row, column);
    });
    return sorted(run, shape, cells, [](std::size_t i) { return i; });
  }

  Places dense_places(const kernel::RunContext& run, const Tensor& a) const {
    if (a.rank() != 2) fail(ErrorCode::ShapeMismatch, cat(kName, ": A is ", a.to_string()));
    Cells cells(run);
    Places::List elements(run);
    kernel::Watch watch(run);
    tensor::dispatch<float, double, std::int64_t, std::int32_t, std::uint64_t, std::uint32_t>(
        a.dtype(), kName, [&]<class T>(tensor::TypeTag<T>) {
          const T* values = a.data<T>();
          const auto count = static_cast<std::size_t>(a.numel()), columns = static_cast<std::size_t>(a.dim(1));
          std::size_t found = 0;
          each_in_pieces(watch, count, 1.0, [&](std::size_t i) { found += values[i] != T{0} ? 1 : 0; });
          cells.reserve(found);
          elements.reserve(found);
          each_in_pieces(watch, count, kNsPerCell, [&](std::size_t i) {
            if (values[i] == T{0}) return;
            cells.emplace_back(i / columns, i % columns);
            elements.push_back(i);
          });
        });
    return sorted(run, a.shape(), cells, [&](std::size_t i) { return elements[i]; });
  }

  /// Cells of A (row, column) as rows of what A, or A transposed, is.
  template <class Element>
  Places sorted(const kernel::RunContext& run, const Shape& shape, const Cells& cells, const Element& element) const {
    Places out(run);
    out.rows = shape[trans_a_ ? 1 : 0];
    out.columns = shape[trans_a_ ? 0 : 1];
    const auto row = [&](std::size_t i) {
      return static_cast<std::size_t>(trans_a_ ? cells[i].second : cells[i].first);
    };
    kernel::Watch watch(run);
    fill_up(watch, out.begin, static_cast<std::size_t>(out.rows) + 1);
    each_in_pieces(watch, cells.size(), kNsPerCell, [&](std::size_t i) { ++out.begin[row(i) + 1]; });
    each_in_pieces(watch, out.begin.size() - 1, 1.0, [&](std::size_t r) { out.begin[r + 1] += out.begin[r]; });
    Places::List next(run);
    next.reserve(out.begin.size());
    each_in_pieces(watch, out.begin.size(), 1.0, [&](std::size_t r) { next.push_back(out.begin[r]); });
    fill_up(watch, out.column, cells.size());
    fill_up(watch, out.element, cells.size());
    each_in_pieces(watch, cells.size(), 2 * kNsPerCell, [&](std::size_t i) {
      const std::size_t at = next[row(i)]++;
      out.column[at] = static_cast<std::size_t>(trans_a_ ? cells[i].first : cells[i].second);
      out.element[at] = element(i);
    });
    return out;
  }

  /// Zeros, with looks in between.
  static void fill_up(kernel::Watch& watch, Places::List& list, std::size_t count) {
    list.reserve(count);
    in_pieces(watch, count, 2.0, [&](std::size_t, std::size_t end) { list.resize(end); });
  }

  static Tensor transposed(const KernelContext& ctx, const Tensor& b) {
    Shape shape = b.shape(), strides = b.shape().strides();
    const std::size_t last = shape.rank() - 1;
    std::swap(shape[last], shape[last - 1]);
    std::swap(strides[last], strides[last - 1]);
    const Tensor out = Tensor::make(b.dtype(), shape, *ctx.run().allocator);
    strided_copy(ctx.run(), shape, {b, 0, strides}, {out, 0, shape.strides()});
    return out;
  }

  static constexpr double kNsPerCell = 15;

  float alpha_;
  bool trans_a_, trans_b_;
  std::optional<Places> fixed_;
};

void infer_sparse_to_dense(InferContext& ctx) {
  const std::optional<graph::SymShape>& a = ctx.input_type(0).shape;
  const graph::SymShape* b = ctx.input_shape(1);
  if (!a || b == nullptr) return;
  graph::SymShape left = *a, right = *b;
  if (left.size() != 2) fail(ErrorCode::ShapeMismatch, cat(kName, ": A of rank ", left.size()));
  if (ctx.attributes().get_int("transA", 0) != 0) std::swap(left[0], left[1]);
  if (right.size() >= 2 && ctx.attributes().get_int("transB", 0) != 0)
    std::swap(right[right.size() - 1], right[right.size() - 2]);
  ctx.set_output_shape(0, matmul_shape(left, right, kName));
}

}  // namespace

void register_sparse_to_dense_matmul(kernel::OpRegistrar& r) {
  r.op("SparseToDenseMatMul", "com.microsoft")
      .version(
          1,
          "A:T, B:T1 -> Y:T1; T = float|double|int64|int32|uint64|uint32, T1 = float|double|int64|int32|uint64|uint32")
      .infer(infer_sparse_to_dense)
      .kernel<SparseToDenseMatMul>();
}

}  // namespace infernode::ops
