// Gather, GatherElements, GatherND: elements picked by index.

#include <algorithm>

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/tensor/gather_scatter.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

constexpr double kBytesPerNs = 8.0;

// ---- Gather

void infer_gather(InferContext& ctx) {
  const SymShape *data = ctx.input_shape(0), *indices = ctx.input_shape(1);
  if (!data || !indices) return;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", 0), data->size());
  SymShape out(data->begin(), data->begin() + static_cast<std::ptrdiff_t>(axis));
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), data->begin() + static_cast<std::ptrdiff_t>(axis) + 1, data->end());
  const bool small = data->size() == 1 && out.size() <= 1;
  ctx.set_output_shape(0, std::move(out));
  if (!small) return;
  const auto contents = ctx.input_contents(0), picked = ctx.input_contents(1);
  if (!contents || !picked) return;
  std::vector<Dim> values;
  for (const Dim& index : *picked) {
    if (index.known()) {
      const std::int64_t at = checked_index(index.value(), static_cast<std::int64_t>(contents->size()), 0);
      values.push_back((*contents)[static_cast<std::size_t>(at)]);
    } else {
      values.push_back(Dim::unknown());
    }
  }
  ctx.set_output_contents(0, std::move(values));
}

class Gather : public Kernel {
 public:
  explicit Gather(KernelInfo& info) : axis_(info.attributes().get_int("axis", 0)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& data = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, data.rank());
    const Tensor indices = indices_as_int64(ctx.run(), ctx.input(1));
    Shape dims(data.shape().dims().first(axis));
    for (std::int64_t d : indices.shape()) dims.push_back(d);
    for (std::size_t d = axis + 1; d < data.rank(); ++d) dims.push_back(data.dim(d));
    const Tensor out = ctx.output(0, dims);
    dispatch_elements(data.dtype(), "Gather", [&]<class T>(TypeTag<T>) {
      gather<T>(ctx, data, axis, indices.span<std::int64_t>(), mutable_elements<T>(out));
    });
  }

 private:
  template <class T>
  static void gather(KernelContext& ctx, const Tensor& data, std::size_t axis, std::span<const std::int64_t> indices,
                     T* out) {
    const std::int64_t bound = data.dim(axis), inner = data.shape().numel(axis + 1, data.rank());
    const auto outer = static_cast<std::size_t>(data.shape().numel(0, axis));
    const T* from = elements<T>(data);
    if (outer == 0 || inner == 0 || indices.empty()) {
      kernel::Watch watch(ctx.run());
      each_in_pieces(watch, indices.size(), 1.0, [&](std::size_t i) { checked_index(indices[i], bound, axis); });
      return;
    }
    const double cost = 3.0 + static_cast<double>(inner) * sizeof(T) / kBytesPerNs;
    ctx.parallel_for(outer * indices.size(), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      Mover mover(ctx.run());
      std::size_t k = begin % indices.size();
      const T* block = from + static_cast<std::int64_t>(begin / indices.size()) * bound * inner;
      T* to = out + static_cast<std::int64_t>(begin) * inner;
      for (std::size_t i = begin; i < end; ++i, to += inner) {
        const T* source = block + checked_index(indices[k], bound, axis) * inner;
        if (inner == 1) {
          mover.set(*to, *source);
        } else {
          mover.copy(source, inner, to);
        }
        if (++k == indices.size()) {
          k = 0;
          block += bound * inner;
        }
      }
    });
  }

  std::int64_t axis_;
};

// ---- GatherElements

void infer_gather_elements(InferContext& ctx) {
  if (const SymShape* indices = ctx.input_shape(1)) ctx.set_output_shape(0, *indices);
}

class GatherElements : public Kernel {
 public:
  explicit GatherElements(KernelInfo& info) : axis_(info.attributes().get_int("axis", 0)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& data = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, data.rank());
    const Tensor indices = indices_as_int64(ctx.run(), ctx.input(1));
    const ElementRows rows(data.shape(), indices.shape(), axis);
    const Tensor out = ctx.output(0, indices.shape());
    dispatch_elements(data.dtype(), "GatherElements", [&]<class T>(TypeTag<T>) {
      gather(ctx, rows, elements<T>(data), data.dim(axis), axis, indices.data<std::int64_t>(),
             mutable_elements<T>(out));
    });
  }

 private:
  template <class T>
  static void gather(KernelContext& ctx, const ElementRows& rows, const T* data, std::int64_t bound, std::size_t axis,
                     const std::int64_t* indices, T* out) {
    constexpr std::int64_t kPiece = 1 << 16;  // elements of a row between two looks
    if (rows.columns == 0) return;
    const double cost = 5.0 + 1.5 * static_cast<double>(rows.columns);
    ctx.parallel_for(static_cast<std::size_t>(rows.rows), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
      Mover mover(ctx.run());
      Walk walk(rows.axes.data(), rows.axes.size(), static_cast<std::int64_t>(begin));
      for (std::size_t r = begin; r < end; ++r, walk.next()) {
        const T* base = data + walk.from;
        const std::int64_t* index = indices + walk.to;
        T* to = out + walk.to;
        for (std::int64_t first = 0; first < rows.columns; first += kPiece) {
          const std::int64_t last = std::min(first + kPiece, rows.columns);
          if (rows.last_stride == 0) {
            for (std::int64_t j = first; j < last; ++j) mover.set(to[j], base[checked_index(index[j], bound, axis)]);
          } else {
            for (std::int64_t j = first; j < last; ++j)
              mover.set(to[j], base[checked_index(index[j], bound, axis) * rows.axis_stride + j]);
          }
          mover.did(1.5 * static_cast<double>(last - first));
        }
      }
    });
  }

  std::int64_t axis_;
};

// ---- GatherND

void infer_gather_nd(InferContext& ctx) {
  const SymShape *data = ctx.input_shape(0), *indices = ctx.input_shape(1);
  if (!data || !indices || indices->empty() || !indices->back().known()) return;
  const std::int64_t batch = ctx.attributes().get_int("batch_dims", 0), last = indices->back().value();
  const auto rank = static_cast<std::int64_t>(data->size());
  INFERNODE_CHECK(batch >= 0 && batch <= rank && last <= rank - batch, ErrorCode::ShapeMismatch, "indices of shape ",
                  graph::to_string(*indices), " address more axes than data of shape ", graph::to_string(*data),
                  " has");
  SymShape out(indices->begin(), indices->end() - 1);
  out.insert(out.end(), data->begin() + static_cast<std::ptrdiff_t>(batch + last), data->end());
  ctx.set_output_shape(0, std::move(out));
}

class GatherND : public Kernel {
 public:
  explicit GatherND(KernelInfo& info) : batch_dims_(info.attributes().get_int("batch_dims", 0)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& data = ctx.input(0);
    const Tensor indices = indices_as_int64(ctx.run(), ctx.input(1));
    const IndexTuples tuples(data.shape(), indices.shape(), batch_dims_);
    Shape dims(indices.shape().dims().first(indices.rank() - 1));
    for (std::size_t d = tuples.batch_dims + tuples.depth; d < data.rank(); ++d) dims.push_back(data.dim(d));
    const Tensor out = ctx.output(0, dims);
    dispatch_elements(data.dtype(), "GatherND", [&]<class T>(TypeTag<T>) {
      const T* from = elements<T>(data);
      T* to = mutable_elements<T>(out);
      const std::int64_t* index = indices.data<std::int64_t>();
      const double cost =
          5.0 * static_cast<double>(tuples.depth) + static_cast<double>(tuples.slice) * sizeof(T) / kBytesPerNs;
      ctx.parallel_for(static_cast<std::size_t>(tuples.batches * tuples.rows_per_batch), cost,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         Mover mover(ctx.run());
                         for (auto i = static_cast<std::int64_t>(begin); i < static_cast<std::int64_t>(end); ++i) {
                           const T* batch = from + i / tuples.rows_per_batch * tuples.batch_stride;
                           const std::int64_t* tuple = index + i * static_cast<std::int64_t>(tuples.depth);
                           mover.copy(batch + tuples.offset(tuple), tuples.slice, to + i * tuples.slice);
                         }
                       });
    });
  }

 private:
  std::int64_t batch_dims_;
};

}  // namespace

void register_gather(kernel::OpRegistrar& r) {
  r.op("Gather")
      .version(1, "data:T, indices:Tind -> output:T; T = all, Tind = int32|int64")
      .version(11, "data:T, indices:Tind -> output:T; T = all, Tind = int32|int64")
      .version(13, "data:T, indices:Tind -> output:T; T = all_ir4, Tind = int32|int64")
      .infer(infer_gather)
      .kernel<Gather>()
      .axes(kernel::Axes::Gathered)
      .moves(kernel::Moves::Selects);
  r.op("GatherElements")
      .version(11, "data:T, indices:Tind -> output:T; T = all, Tind = int32|int64")
      .version(13, "data:T, indices:Tind -> output:T; T = all_ir4, Tind = int32|int64")
      .infer(infer_gather_elements)
      .kernel<GatherElements>()
      .axes(kernel::Axes::GatheredElements);
  r.op("GatherND")
      .version(11, "data:T, indices:int64 -> output:T; T = all")
      .version(12, "data:T, indices:int64 -> output:T; T = all")
      .version(13, "data:T, indices:int64 -> output:T; T = all_ir4")
      .infer(infer_gather_nd)
      .kernel<GatherND>();
  r.op("GatherND", "com.microsoft")
      .version(1, "data:T, indices:Tind -> output:T; T = all, Tind = int32|int64")
      .infer(infer_gather_nd)
      .kernel<GatherND>();
}

}  // namespace infernode::ops
