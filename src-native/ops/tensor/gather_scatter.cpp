#include <algorithm>
#include <string>

#include "base/error.h"
#include "ops/common/arithmetic.h"
#include "ops/common/strided_copy.h"
#include "ops/tensor/gather_scatter.h"

namespace infernode::ops {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void fail_index(std::int64_t index, std::int64_t bound, std::size_t axis) {
  fail(ErrorCode::InvalidArgument,
       cat("indices element out of data bounds, idx=", index, " must be within the inclusive range [", -bound, ",",
           bound - 1, "] of axis ", axis));
}

Tensor indices_as_int64(const kernel::RunContext& run, const Tensor& indices) {
  if (indices.dtype() == DType::Int64) return indices;
  Tensor out = Tensor::make(DType::Int64, indices.shape(), *run.allocator);
  const auto* narrow = indices.data<std::int32_t>();
  auto* wide = out.mutable_data<std::int64_t>();
  run.parallel_for(
      static_cast<std::size_t>(indices.numel()), 0.5,
      [&](std::size_t begin, std::size_t end, std::size_t) { std::copy(narrow + begin, narrow + end, wide + begin); });
  return out;
}

ElementRows::ElementRows(const Shape& data, const Shape& indices, std::size_t axis) {
  INFERNODE_CHECK(data.rank() == indices.rank(), ErrorCode::ShapeMismatch, "indices of rank ", indices.rank(),
                  " do not fit data of rank ", data.rank());
  const Shape data_strides = data.strides(), index_strides = indices.strides();
  const std::size_t last = data.rank() - 1;
  for (std::size_t d = 0; d < data.rank(); ++d) {
    INFERNODE_CHECK(d == axis || indices[d] <= data[d], ErrorCode::ShapeMismatch, "indices shape ", indices.dims(),
                    " goes beyond the data shape ", data.dims(), " on axis ", d);
    if (d == last) continue;
    axes.push_back({indices[d], d == axis ? 0 : data_strides[d], index_strides[d]});
    rows *= indices[d];
    if (d < axis) outer *= indices[d];
  }
  columns = indices[last];
  axis_stride = data_strides[axis];
  last_stride = axis == last ? 0 : 1;
}

IndexTuples::IndexTuples(const Shape& data, const Shape& indices, std::int64_t batch) {
  INFERNODE_CHECK(indices.rank() >= 1 && data.rank() >= 1, ErrorCode::ShapeMismatch,
                  "data and indices need rank 1 or more");
  INFERNODE_CHECK(batch >= 0 && batch < static_cast<std::int64_t>(std::min(data.rank(), indices.rank())),
                  ErrorCode::InvalidArgument, "batch_dims ", batch, " must be below the ranks of data and indices");
  batch_dims = static_cast<std::size_t>(batch);
  const std::int64_t last = indices.back();
  INFERNODE_CHECK(last >= 0 && last <= static_cast<std::int64_t>(data.rank() - batch_dims), ErrorCode::InvalidArgument,
                  "the last dim of indices, ", last, ", must not exceed the rank of data, ", data.rank() - batch_dims);
  depth = static_cast<std::size_t>(last);
  for (std::size_t d = 0; d < batch_dims; ++d) {
    INFERNODE_CHECK(data[d] == indices[d], ErrorCode::ShapeMismatch, "batch dim ", d, " is ", data[d], " in data and ",
                    indices[d], " in indices");
    batches *= data[d];
  }
  rows_per_batch = indices.numel(batch_dims, indices.rank() - 1);
  batch_stride = data.numel(batch_dims, data.rank());
  slice = data.numel(batch_dims + depth, data.rank());
  const Shape all = data.strides();
  for (std::size_t d = 0; d < depth; ++d) {
    bounds.push_back(data[batch_dims + d]);
    strides.push_back(all[batch_dims + d]);
  }
}

Reduction parse_reduction(std::string_view name) {
  if (name == "none") return Reduction::None;
  if (name == "add") return Reduction::Add;
  if (name == "mul") return Reduction::Mul;
  if (name == "min") return Reduction::Min;
  if (name == "max") return Reduction::Max;
  fail(ErrorCode::InvalidModel, cat("unknown reduction '", name, "'; known are none, add, mul, min, max"));
}

namespace {

struct Replace {
  template <class T>
  static const T& apply(const T&, const T& update) {
    return update;
  }
};
struct Add {
  template <class T>
  static T apply(T a, T b) {
    return convert<T>(wrap_add(widen(a), widen(b)));
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return convert<T>(wrap_multiply(widen(a), widen(b)));
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    return convert<T>(minimum(widen(a), widen(b)));
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    return convert<T>(maximum(widen(a), widen(b)));
  }
};

template <class T, class Op>
ScatterLoops loops() {
  return {[](Mover& mover, void* to, const std::int64_t* offsets, const void* updates, std::size_t n) {
            T* out = static_cast<T*>(to);
            const T* in = static_cast<const T*>(updates);
            for (std::size_t i = 0; i < n; ++i) mover.set<T>(out[offsets[i]], Op::apply(out[offsets[i]], in[i]));
            mover.did(2.0 * static_cast<double>(n));
          },
          [](Mover& mover, void* to, const void* updates, std::size_t n) {
            constexpr std::size_t kPiece = 1 << 16;
            T* out = static_cast<T*>(to);
            const T* in = static_cast<const T*>(updates);
            for (std::size_t first = 0; first < n; first += kPiece) {
              const std::size_t end = std::min(n, first + kPiece);
              for (std::size_t i = first; i < end; ++i) mover.set<T>(out[i], Op::apply(out[i], in[i]));
              mover.did(static_cast<double>(end - first));
            }
          }};
}

}  // namespace

ScatterLoops scatter_loops(DType dtype, Reduction reduction) {
  ScatterLoops out{};
  if (reduction == Reduction::None) {
    dispatch_elements(dtype, "scatter", [&]<class T>(TypeTag<T>) { out = loops<T, Replace>(); });
    return out;
  }
  const auto pick = [&]<class T>(TypeTag<T>) {
    switch (reduction) {
      case Reduction::Add:
        out = loops<T, Add>();
        break;
      case Reduction::Mul:
        out = loops<T, Multiply>();
        break;
      case Reduction::Min:
        out = loops<T, Minimum>();
        break;
      default:
        out = loops<T, Maximum>();
        break;
    }
  };
  if (dtype == DType::Bool) {
    pick(TypeTag<bool>{});
  } else {
    tensor::dispatch_numeric(dtype, "scatter with a reduction", pick);
  }
  return out;
}

}  // namespace infernode::ops
