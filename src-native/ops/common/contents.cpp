#include "ops/common/contents.h"

namespace infernode::ops {

using graph::Dim;

namespace {

bool all_known(const std::vector<Dim>& dims) {
  for (const Dim& dim : dims) {
    if (!dim.known()) return false;
  }
  return true;
}

/// Lowest of the values with all symbols at 1 and at a larger number; polynomials of sizes grow with them.
std::int64_t lowest(const Dim& dim) {
  if (dim.known()) return dim.value();
  std::int64_t out = INT64_MAX;
  for (const std::int64_t at : {1, 1024}) {
    const auto value = dim.evaluate([at](std::string_view) { return std::optional<std::int64_t>(at); });
    if (!value) return INT64_MIN;
    out = std::min(out, *value);
  }
  return out;
}

}  // namespace

bool is_told(const Dim& dim) {
  return dim.evaluate([](std::string_view) { return std::optional<std::int64_t>(1); }).has_value();
}

bool is_positive(const Dim& dim) { return lowest(dim) > 0; }
bool is_non_negative(const Dim& dim) { return lowest(dim) >= 0; }

std::optional<Dim> divide_dims(const Dim& a, const Dim& b) {
  if (!is_positive(b) || !is_non_negative(a)) return std::nullopt;
  return floor_div(a, b);
}

std::optional<Dim> equal_dims(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if (a.known() && b.known()) return Dim(0);
  const Dim &known = a.known() ? a : b, &other = a.known() ? b : a;
  if (known.known() && known.value() < 0 && is_non_negative(other)) return Dim(0);
  return std::nullopt;
}

void infer_binary_contents(kernel::InferContext& ctx, DimFunction f, std::size_t a, std::size_t b) {
  const auto x = ctx.input_contents(a), y = ctx.input_contents(b);
  if (!x || !y || (all_known(*x) && all_known(*y))) return;
  const std::size_t count = x->size() == 1 ? y->size() : x->size();
  if (y->size() != count && y->size() != 1) return;
  std::vector<Dim> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = f((*x)[x->size() == 1 ? 0 : i], (*y)[y->size() == 1 ? 0 : i]);
    out.push_back(value ? *value : Dim::unknown());
  }
  ctx.set_output_contents(0, std::move(out));
}

}  // namespace infernode::ops
