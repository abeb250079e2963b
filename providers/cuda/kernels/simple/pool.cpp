#include "providers/cuda/kernels/simple/pool.h"

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"

namespace infernode::cuda {

namespace {
constexpr std::int64_t kPack = 8;

/// Into how many parts the pixels of an image go, so that many processors read large images.
std::uint32_t parts_of(const Target& target, std::int64_t images_and_packs, std::int64_t pixels) {
  constexpr std::int64_t kFewPixels = 1024;
  std::uint32_t parts = 1;
  while (target.sm >= 90 && parts < 8 && pixels >= kFewPixels * parts &&
         images_and_packs * parts * 2 <= 2 * target.sm_count) {
    parts *= 2;
  }
  return parts;
}
}  // namespace

Launch plan_pool(const Target&, const DeviceTensor& in, const DeviceTensor& out, PoolParams p) {
  const bool planar = in.shape.rank() == 4;
  p.in = in.at;
  p.out = out.at;
  p.in_pitch = in.pitch;
  p.out_pitch = out.pitch;
  p.packs = static_cast<std::int32_t>((in.shape[1] + kPack - 1) / kPack);
  p.in_h = planar ? static_cast<std::int32_t>(in.shape[2]) : 1;
  p.out_h = planar ? static_cast<std::int32_t>(out.shape[2]) : 1;
  p.in_w = static_cast<std::int32_t>(in.shape.back());
  p.out_w = static_cast<std::int32_t>(out.shape.back());
  p.threads = out.pixels() * p.packs;
  return launch_of_threads(cat("pool_", kernel_suffix(in.dtype)), p.threads, param_bytes(p));
}

Launch plan_global_pool(const Target& target, const DeviceTensor& in, const DeviceTensor& out, bool average) {
  const std::int64_t packs = (in.shape[1] + kPack - 1) / kPack, pixels = in.pixels() / in.shape[0];
  const std::uint32_t parts = parts_of(target, packs * in.shape[0], pixels);
  const GlobalPoolParams p{.in = in.at,
                           .out = out.at,
                           .in_pitch = in.pitch,
                           .out_pitch = out.order == Order::ChannelsLast ? out.pitch : in.shape[1],
                           .pixels = static_cast<std::int32_t>(pixels),
                           .channels = static_cast<std::int32_t>(in.shape[1]),
                           .average = average,
                           .parts = static_cast<std::int32_t>(parts)};
  return {.kernel = cat("global_pool_", kernel_suffix(in.dtype)),
          .grid = {static_cast<std::uint32_t>(packs), static_cast<std::uint32_t>(in.shape[0]), parts},
          .block = {256},
          .cluster = {1, 1, parts},
          .programmatic = true,
          .params = param_bytes(p)};
}

}  // namespace infernode::cuda
