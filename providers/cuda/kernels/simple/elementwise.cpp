#include "providers/cuda/kernels/simple/elementwise.h"

#include <algorithm>

#include "base/error.h"

namespace infernode::cuda {

namespace {

using tensor::DType;

/// Merged axes of the output with strides of all tensors, the output's last.
struct Axis {
  std::int64_t size;
  std::vector<std::int64_t> strides;
};

/// Strides of `t` read as `shape`, in memory order of the output: plain, or N, spatial, C.
std::vector<std::int64_t> strides_as(const DeviceTensor& t, const tensor::Shape& shape, Order order) {
  const std::vector<std::int64_t> strides = strides_of(t);
  std::vector<std::int64_t> aligned(shape.rank(), 0);
  const std::size_t lead = shape.rank() - t.shape.rank();
  for (std::size_t d = 0; d < t.shape.rank(); ++d) aligned[lead + d] = t.shape[d] == 1 ? 0 : strides[d];
  if (order == Order::ChannelsLast) std::rotate(aligned.begin() + 1, aligned.begin() + 2, aligned.end());
  return aligned;
}

std::vector<Axis> merged_axes(const ElementwiseProblem& problem) {
  std::vector<const DeviceTensor*> all;
  for (const DeviceTensor& input : problem.inputs) all.push_back(&input);
  all.push_back(&problem.out);
  const tensor::Shape& shape = problem.out.shape;
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  if (problem.out.order == Order::ChannelsLast) std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  std::vector<Axis> axes(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) axes[d].size = dims[d];
  for (const DeviceTensor* t : all) {
    const auto strides = strides_as(*t, shape, problem.out.order);
    for (std::size_t d = 0; d < dims.size(); ++d) axes[d].strides.push_back(strides[d]);
  }
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    const auto follows = [&](const Axis& outer) {
      for (std::size_t t = 0; t < axis.strides.size(); ++t) {
        if (outer.strides[t] != axis.strides[t] * axis.size) return false;
      }
      return true;
    };
    if (!merged.empty() && follows(merged.back())) {
      merged.back() = {merged.back().size * axis.size, axis.strides};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, std::vector<std::int64_t>(all.size(), 1)});
  return merged;
}

/// Whether packs of `count` elements can be loaded from and stored to all tensors.
bool packs(const ElementwiseProblem& problem, const std::vector<Axis>& axes, std::int64_t count) {
  const Axis& inner = axes.back();
  if (inner.size % count != 0) return false;
  const auto fits = [&](const DeviceTensor& t, std::size_t index) {
    const std::int64_t stride = inner.strides[index];
    if (stride == 0) return &t != &problem.out;
    if (stride != 1 || t.at % (static_cast<DevicePtr>(count) * t.element_bytes()) != 0) return false;
    return std::all_of(axes.begin(), axes.end() - 1,
                       [&](const Axis& axis) { return axis.strides[index] % count == 0; });
  };
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!fits(problem.inputs[i], i)) return false;
  }
  return fits(problem.out, problem.inputs.size());
}

ElementwiseParams params_of(const ElementwiseProblem& problem, const std::vector<Axis>& axes, std::int64_t pack) {
  if (axes.size() > kElementwiseRank) {
    fail(ErrorCode::Internal, cat("cuda: broadcasting over ", axes.size(), " axes that do not merge"));
  }
  ElementwiseParams p{};
  p.op = problem.op;
  p.a = problem.a;
  p.b = problem.b;
  p.threads = 1;
  const std::size_t inputs = problem.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    p.in[i] = problem.inputs[i].at;
    if (axes.back().strides[i] != 0) p.packed |= 1u << i;
  }
  p.out = problem.out.at;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const bool last = d + 1 == axes.size();
    const std::int64_t size = last ? axes[d].size / pack : axes[d].size;
    if (size > UINT32_MAX) fail(ErrorCode::Internal, "cuda: an axis of more than 2^32 elements");
    p.dims[d] = static_cast<std::uint32_t>(size);
    for (std::size_t i = 0; i < inputs; ++i) p.stride[i][d] = axes[d].strides[i] * (last ? pack : 1);
    p.out_stride[d] = axes[d].strides[inputs] * (last ? pack : 1);
    p.threads *= size;
  }
  p.rank = static_cast<std::int32_t>(axes.size());
  return p;
}

}  // namespace

Launch plan_elementwise(const Target&, const ElementwiseProblem& problem) {
  const std::vector<Axis> axes = merged_axes(problem);
  constexpr std::int64_t kPack = 4;
  const std::int64_t pack = packs(problem, axes, kPack) ? kPack : 1;
  const ElementwiseParams p = params_of(problem, axes, pack);
  return launch_of_threads(cat(problem.kernel, "_", pack), p.threads, param_bytes(p));
}

Launch plan_wide(const Target&, const ElementwiseProblem& problem) {
  const std::size_t inputs = problem.inputs.size();
  const WideParams p{
      .at = params_of(problem, merged_axes(problem), 1),
      .from = {number_of(problem.inputs.front().dtype).value(), number_of(problem.inputs.back().dtype).value()},
      .to = number_of(problem.out.dtype).value()};
  return launch_of_threads(inputs == 1 ? "wide_unary" : "wide_binary", p.at.threads, param_bytes(p));
}

Launch plan_cast(const Target&, const CastProblem& problem) {
  const CastParams p{.in = problem.from,
                     .out = problem.to,
                     .count = problem.count,
                     .from = number_of(problem.from_type).value(),
                     .to = number_of(problem.to_type).value()};
  return launch_of_threads("cast", problem.count, param_bytes(p));
}

std::string_view kernel_suffix(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return "f32";
    case DType::Float16:
      return "f16";
    case DType::BFloat16:
      return "bf16";
    case DType::Int64:
      return "i64";
    case DType::Int32:
      return "i32";
    case DType::Bool:
      return "u8";
    default:
      return "";
  }
}

std::optional<Number> number_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return Number::f32;
    case DType::Float16:
      return Number::f16;
    case DType::BFloat16:
      return Number::bf16;
    case DType::Float64:
      return Number::f64;
    case DType::Int64:
      return Number::i64;
    case DType::Int32:
      return Number::i32;
    case DType::Int16:
      return Number::i16;
    case DType::Int8:
      return Number::i8;
    case DType::UInt64:
      return Number::u64;
    case DType::UInt32:
      return Number::u32;
    case DType::UInt16:
      return Number::u16;
    case DType::UInt8:
      return Number::u8;
    case DType::Bool:
      return Number::boolean;
    default:
      return std::nullopt;
  }
}

}  // namespace infernode::cuda
