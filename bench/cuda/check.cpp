#include "bench/cuda/check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace infernode::cuda::bench {

DevicePtr Arena::take(std::size_t bytes) {
  const DevicePtr p = base_ + used_;
  used_ += (bytes + 511) / 256 * 256;
  if (used_ > size_) {
    std::fprintf(stderr, "arena of %zu bytes is too small\n", size_);
    std::exit(1);
  }
  return p;
}

DevicePtr Arena::random(Random& random, Element type, std::int64_t count, float scale, float shift, int offset) {
  const DevicePtr p = take(static_cast<std::size_t>(count + offset) * element_size(type)) +
                      static_cast<DevicePtr>(offset) * element_size(type);
  device_.launch(elementwise("reference_fill", FillParams{p, count, type, random.seed(), scale, shift}, count));
  return p;
}

Output make_output(Arena& arena, Element type, std::int64_t rows, std::int64_t columns, std::int64_t extra,
                   std::int64_t batch0, std::int64_t batch1, int offset) {
  Output o;
  CompareParams& c = o.compare;
  c.type = type;
  c.rows = rows;
  c.columns = columns;
  c.out_row = columns + extra;
  c.batch[0] = batch0;
  c.batch[1] = batch1;
  c.out_batch[0] = rows * c.out_row;
  c.out_batch[1] = batch0 * c.out_batch[0];
  c.ref_row = columns;
  c.ref_batch[0] = rows * columns;
  c.ref_batch[1] = batch0 * c.ref_batch[0];
  c.gaps = 1;
  const std::int64_t count = batch1 * c.out_batch[1];
  o.bytes = static_cast<std::size_t>(count) * element_size(type);
  c.out = arena.take(o.bytes + 64) + static_cast<DevicePtr>(offset) * element_size(type);
  c.ref = arena.take(static_cast<std::size_t>(batch0 * batch1 * rows * columns) * 8);
  c.sums = arena.take(32);
  return o;
}

void poison(Device& device, const Output& o) { device.fill(o.compare.out, 0xff, o.bytes); }

Difference compare(Device& device, const Output& o) {
  const CompareParams& c = o.compare;
  device.fill(c.sums, 0, 32);
  device.launch(elementwise("reference_compare", c, c.rows * c.out_row * c.batch[0] * c.batch[1]));
  double sums[4];
  device.download(sums, c.sums, sizeof(sums));
  return {std::sqrt(sums[0] / (sums[1] + 1e-30)), sums[2], sums[3]};
}

void random_epilogue(Random& r, Arena& arena, const Output& o, std::int64_t column_batch, Epilogue& e,
                     ReferenceEpilogue& f) {
  const CompareParams& c = o.compare;
  f = {};
  e.out = c.out;
  e.out_type = c.type;
  e.out_row = c.out_row;
  e.out_batch[0] = c.out_batch[0];
  e.out_batch[1] = c.out_batch[1];
  const std::int64_t columns = c.columns + column_batch * c.batch[0];
  if (r.chance(60)) e.bias = f.bias = arena.random(r, Element::f32, columns);
  if (r.chance(20)) e.scale = f.scale = arena.random(r, Element::f32, columns, 0.5f, 1.f);
  e.columns_constant = r.chance(70);
  if (r.chance(40)) {
    const std::int64_t row = r.chance(10) ? 0 : c.columns + r.of<std::int64_t>({0, 0, 8, 3});
    const std::int64_t batch = r.chance(20) ? 0 : c.rows * row;
    e.residual_type = f.residual_type = r.chance(70) ? c.type : r.of({Element::f16, Element::f32, Element::bf16});
    e.residual = f.residual =
        arena.random(r, e.residual_type, c.columns + c.rows * (row + 1) * c.batch[0] * c.batch[1], 1, 0, r.chance(10));
    e.residual_row = f.residual_row = row;
    e.residual_batch[0] = f.residual_batch[0] = batch;
    e.residual_batch[1] = f.residual_batch[1] = batch * c.batch[0];
    e.residual_last = r.chance(40);
    f.residual_last = e.residual_last;
  }
  e.activation = f.activation = r.chance(50) ? Activation::none : static_cast<Activation>(r.in(0, 11));
  if (r.chance(20)) e.alpha = 0.37f;
  f.alpha = e.alpha;
  e.a = f.a = e.activation == Activation::clip ? -0.3f : 0.2f;
  e.b = f.b = 0.5f;
  f.column_batch = static_cast<std::int32_t>(column_batch);
}

double allowed(Element operand, Element output, int precision) {
  const double rounding = output == Element::f16 ? 4e-4 : output == Element::bf16 ? 3e-3 : 0;
  const double products = operand != Element::f32 ? 1e-5 : precision == 0 ? 2e-6 : precision == 1 ? 5e-5 : 3e-3;
  return rounding + products;
}

void Tally::add(const Difference& d, double limit, const std::string& group, const std::string& what) {
  checks_++;
  auto& g = groups_[group];
  g.first++;
  g.second = std::max(g.second, d.error);
  if (d.error < limit && d.missing == 0 && d.trampled == 0) return;
  if (failures_++ < 12) {
    std::printf("  WRONG %s: error %.2e (allowed %.0e), %.0f not finite, %.0f between rows\n", what.c_str(), d.error,
                limit, d.missing, d.trampled);
  }
}

bool Tally::report() const {
  std::printf("%s: %d checks, %d wrong;", family_.c_str(), checks_, failures_);
  for (const auto& [name, g] : groups_) std::printf(" %s %d (%.1e)", name.c_str(), g.first, g.second);
  std::printf("\n");
  std::fflush(stdout);
  return failures_ == 0;
}

}  // namespace infernode::cuda::bench
