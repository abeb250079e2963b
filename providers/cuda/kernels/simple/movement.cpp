#include "providers/cuda/kernels/simple/movement.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"

namespace infernode::cuda {

namespace {

struct Axis {
  std::int64_t size, from, to;
};

/// Axes outermost first, ones dropped, neighbours that lie behind each other on both sides merged.
std::vector<Axis> merge_axes(const StridedCopy& copy) {
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < copy.dims.rank(); ++d) {
    if (copy.dims[d] != 1) axes.push_back({copy.dims[d], copy.from_stride[d], copy.to_stride[d]});
  }
  // Writes run along memory: the axis with the smallest stride is the innermost.
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.size && merged.back().to == axis.to * axis.size) {
      merged.back() = {merged.back().size * axis.size, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

/// Treats runs of elements as wider ones where all that is read and written allows it.
std::size_t widen(std::vector<Axis>& axes, DevicePtr from, DevicePtr to, std::size_t bytes) {
  Axis& inner = axes.back();
  if (inner.to != 1 || (inner.from != 1 && from != 0)) return bytes;
  std::int64_t factor = static_cast<std::int64_t>(16 / bytes);
  const auto fits = [&](std::int64_t f) {
    const auto alignment = static_cast<DevicePtr>(f) * bytes;
    if (inner.size % f != 0 || from % alignment != 0 || to % alignment != 0) return false;
    return std::all_of(axes.begin(), axes.end() - 1,
                       [f](const Axis& axis) { return axis.from % f == 0 && axis.to % f == 0; });
  };
  while (factor > 1 && !fits(factor)) factor /= 2;
  if (factor == 1) return bytes;
  inner.size /= factor;
  for (std::size_t i = 0; i + 1 < axes.size(); ++i) axes[i].from /= factor, axes[i].to /= factor;
  return bytes * static_cast<std::size_t>(factor);
}

Launch launch_of(std::string kernel, Dim3 grid, Dim3 block, std::vector<std::byte> params) {
  return {.kernel = std::move(kernel),
          .grid = grid,
          .block = block,
          .cluster = {},
          .programmatic = true,
          .params = std::move(params)};
}

CopyPart part_of(const std::vector<Axis>& axes, DevicePtr from, DevicePtr to, std::uint64_t fill) {
  CopyPart p{
      .from = from, .to = to, .count = 1, .rank = 0, .dims = {}, .from_stride = {}, .to_stride = {}, .fill = fill};
  if (axes.size() > kCopyRank) fail(ErrorCode::Internal, cat("cuda: a copy over ", axes.size(), " axes"));
  for (const Axis& axis : axes) {
    if (axis.size > UINT32_MAX) fail(ErrorCode::Internal, "cuda: an axis of more than 2^32 elements");
    p.dims[p.rank] = static_cast<std::uint32_t>(axis.size);
    p.from_stride[p.rank] = axis.from;
    p.to_stride[p.rank] = axis.to;
    p.count *= axis.size;
    ++p.rank;
  }
  return p;
}

Launch copy_launch(std::span<const CopyPart> parts, std::size_t bytes) {
  CopyParams p{};
  std::int64_t most = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    p.part[i] = parts[i];
    most = std::max(most, parts[i].count);
  }
  return launch_of(cat("copy_", bytes), {blocks_of(most, 256), static_cast<std::uint32_t>(parts.size())}, {256},
                   param_bytes(p));
}

/// [batch, columns of from, rows of from]: written along rows, read along columns.
bool is_transpose(const std::vector<Axis>& axes, std::size_t bytes) {
  if (axes.size() < 2 || axes.size() > 3 || bytes > 8) return false;
  const Axis &columns = axes[axes.size() - 2], &rows = axes.back();
  return rows.to == 1 && columns.from == 1 && rows.from > 1 && columns.size >= 8 && rows.size >= 8 &&
         rows.size <= INT32_MAX && columns.size <= INT32_MAX;
}

Launch transpose_launch(const std::vector<Axis>& axes, const StridedCopy& copy) {
  const Axis &columns = axes[axes.size() - 2], &rows = axes.back();
  const Axis batch = axes.size() == 3 ? axes[0] : Axis{1, 0, 0};
  const TransposeParams p{.from = copy.from,
                          .to = copy.to,
                          .rows = static_cast<std::int32_t>(rows.size),
                          .columns = static_cast<std::int32_t>(columns.size),
                          .from_row = rows.from,
                          .to_row = columns.to,
                          .from_batch = batch.from,
                          .to_batch = batch.to};
  const std::int64_t tiles = (rows.size + 31) / 32 * ((columns.size + 31) / 32);
  return launch_of(cat("transpose_", copy.element_bytes),
                   {blocks_of(tiles, 1), 1, static_cast<std::uint32_t>(batch.size)}, {32, 8, 1}, param_bytes(p));
}

}  // namespace

std::vector<Launch> plan_strided_copies(const Target&, const std::vector<StridedCopy>& copies) {
  constexpr std::int64_t kMostBatches = 65535;
  std::vector<Launch> launches;
  std::map<std::size_t, std::vector<CopyPart>> parts;  // by bytes of an element
  for (const StridedCopy& copy : copies) {
    if (copy.dims.numel() == 0) continue;
    std::vector<Axis> axes = merge_axes(copy);
    if (is_transpose(axes, copy.element_bytes) && (axes.size() < 3 || axes[0].size <= kMostBatches)) {
      launches.push_back(transpose_launch(axes, copy));
      continue;
    }
    const std::size_t bytes = widen(axes, copy.from, copy.to, copy.element_bytes);
    parts[bytes].push_back(part_of(axes, copy.from, copy.to, 0));
  }
  for (const auto& [bytes, all] : parts) {
    for (std::size_t i = 0; i < all.size(); i += kCopyParts) {
      const std::size_t count = std::min<std::size_t>(kCopyParts, all.size() - i);
      launches.push_back(copy_launch(std::span(all).subspan(i, count), bytes));
    }
  }
  return launches;
}

std::vector<Launch> plan_strided_copy(const Target& target, const StridedCopy& copy) {
  return plan_strided_copies(target, {copy});
}

std::vector<Launch> plan_fill(const Target&, const StridedFill& fill) {
  if (fill.dims.numel() == 0) return {};
  std::vector<Axis> axes = merge_axes({.from = 0,
                                       .to = fill.to,
                                       .element_bytes = fill.element_bytes,
                                       .dims = fill.dims,
                                       .from_stride = fill.to_stride,
                                       .to_stride = fill.to_stride});
  const CopyPart part = part_of(axes, 0, fill.to, fill.bits);
  return {copy_launch({&part, 1}, fill.element_bytes)};
}

namespace {

/// Whether a thread can write a pixel.
bool are_pixels(const DeviceTensor& from, const DeviceTensor& to) {
  return from.order == Order::Plain && from.strides.empty() && to.order == Order::ChannelsLast &&
         to.pitch == kPixelChannels && (to.element_bytes() == 2 || to.element_bytes() == 4) && to.at % 16 == 0 &&
         to.pixels() > 0 && to.pixels() <= INT32_MAX;
}

Launch pixels_launch(const DeviceTensor& from, const DeviceTensor& to) {
  const PixelsParams p{.from = from.at,
                       .to = to.at,
                       .pixels = static_cast<std::uint32_t>(to.pixels()),
                       .plane = static_cast<std::uint32_t>(to.shape.numel(2, to.shape.rank())),
                       .channels = static_cast<std::int32_t>(to.shape[1])};
  return launch_of(cat("pixels_", to.element_bytes()), {blocks_of(p.pixels, 256)}, {256}, param_bytes(p));
}

}  // namespace

std::vector<Launch> plan_reorder(const Target& target, const DeviceTensor& from, const DeviceTensor& to) {
  if (are_pixels(from, to)) return {pixels_launch(from, to)};
  std::vector<Launch> launches = plan_strided_copy(target, {.from = from.at,
                                                            .to = to.at,
                                                            .element_bytes = from.element_bytes(),
                                                            .dims = from.shape,
                                                            .from_stride = strides_of(from),
                                                            .to_stride = strides_of(to)});
  const std::int64_t channels = to.order == Order::ChannelsLast ? to.shape[1] : to.pitch;
  if (channels < to.pitch) {
    const auto behind = static_cast<DevicePtr>(channels) * to.element_bytes();
    const std::vector<Launch> zeros = plan_fill(target, {.to = to.at + behind,
                                                         .element_bytes = to.element_bytes(),
                                                         .dims = {to.pixels(), to.pitch - channels},
                                                         .to_stride = {to.pitch, 1},
                                                         .bits = 0});
    for (const Launch& zero : zeros) {
      if (launches.size() != 1 || !add_copies(launches.front(), zero)) launches.push_back(zero);
    }
  }
  return launches;
}

std::vector<Launch> plan_gather(const Target&, const GatherProblem& problem) {
  std::size_t bytes = problem.element_bytes;
  std::int64_t inner = problem.inner;
  const auto fits = [&](std::size_t wide) {
    return problem.from % wide == 0 && problem.to % wide == 0 && static_cast<std::size_t>(inner) * bytes % wide == 0;
  };
  for (const std::size_t wide : {std::size_t{16}, std::size_t{8}, std::size_t{4}}) {
    if (wide <= bytes || !fits(wide)) continue;
    inner = inner * static_cast<std::int64_t>(bytes) / static_cast<std::int64_t>(wide);
    bytes = wide;
    break;
  }
  const GatherParams p{.from = problem.from,
                       .index = problem.index,
                       .to = problem.to,
                       .count = problem.outer * problem.indices * inner,
                       .inner = static_cast<std::uint32_t>(inner),
                       .indices = static_cast<std::uint32_t>(problem.indices),
                       .axis = problem.axis,
                       .index_is_64 = problem.index_is_64};
  if (p.count == 0) return {};
  return {launch_of(cat("gather_", bytes), {blocks_of(p.count, 256)}, {256}, param_bytes(p))};
}

}  // namespace infernode::cuda
