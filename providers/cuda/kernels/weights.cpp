#include "providers/cuda/kernels/weights.h"

#include "providers/cuda/kernels/pack.h"

namespace infernode::cuda {

namespace {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

WeightLayout weight_layout(const Target& target, Element type, Precision precision, std::int64_t rows,
                           std::int64_t taps, std::int64_t channels, std::int64_t groups) {
  WeightLayout w;
  w.type = type;
  // Groups whose channels do not begin at multiples of 16 bytes are read element by element, as they are.
  const bool vectors = groups == 1 || channels * element_size(type) % 16 == 0;
  if (type == Element::f32 && precision != Precision::medium && target.sm >= 80 && vectors) {
    w.type = Element::bf16;
    w.pieces = precision == Precision::highest ? 3 : 2;
  }
  w.rows = rows;
  w.taps = taps;
  w.channels = channels;
  // Hopper's copies take 64 elements of one tap at a time (TF32: 32); below half of that, taps lie side by side.
  const std::int64_t step = w.pieces == 1 && type == Element::f32 ? 32 : 64;
  const bool whole_steps = taps > 1 && target.sm == 90 && channels >= step / 2 && (groups == 1 || channels % step == 0);
  w.channels_padded = round_up(channels, whole_steps ? step : 8);
  w.row = round_up(taps * w.channels_padded, 64);
  w.plane = w.pieces > 1 ? rows * w.row : 0;
  w.bytes = static_cast<std::size_t>(rows * w.row * w.pieces) * element_size(w.type);
  return w;
}

std::vector<Launch> plan_pack_weight(const WeightLayout& layout, const WeightSource& source, DevicePtr out) {
  PackParams p{};
  p.in = source.address;
  p.out = out;
  p.in_row = source.row_stride;
  p.in_tap = source.tap_stride;
  p.in_channel = source.channel_stride;
  p.out_row = layout.row;
  p.out_plane = layout.plane;
  p.rows = static_cast<std::int32_t>(layout.rows);
  p.taps = static_cast<std::int32_t>(layout.taps);
  p.channels = static_cast<std::int32_t>(layout.channels);
  p.channels_padded = static_cast<std::int32_t>(layout.channels_padded);
  p.columns = static_cast<std::int32_t>(layout.row);
  p.batch_inner = 1;
  p.pieces = layout.pieces;
  p.in_type = source.type;
  p.out_type = layout.type;
  return {pack_launch(p, 1)};
}

}  // namespace infernode::cuda
