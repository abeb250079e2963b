// Products by the matrix unit.
#include "ops/matmul/methods/counts.h"

namespace infernode::ops {

namespace {

using microkernels::GemmTable;
using microkernels::GemmWay;
using microkernels::PackedForm;

constexpr std::size_t kTileRows = 16, kTileDepth = 32;

/// Also where other loops of its table have to read what it packed.
bool can_run(const ProductSite& site, const GemmTable& table) {
  const bool own = site.packed != PackedForm::kNone && !has_packed_floats(site);
  if (own) return site.packed == table.weights.form(site.k);
  constexpr std::size_t kLeastRows = 5;
  return site.m >= kLeastRows && site.k >= kTileDepth && is_plain_a(site) && !site.codes &&
         site.b_type == microkernels::FloatType::kF32;
}

/// Calls, multiply-adds of whole tiles, words of A and of B that are split or rounded (half as much again where it is
/// transposed), words of a B that is packed so already, which few rows multiply without tiles, and floats written, once
/// a block of k.
cost::Terms terms(const ProductSite& s, const GemmTable& table) {
  constexpr std::size_t kBlock = 768, kRowsAtOnce = 256, kFewRows = 8;
  const double depth = product_whole(s.k, kTileDepth), columns = product_whole(s.n, table.nr);
  const double passes = product_whole(s.m, kRowsAtOnce) / kRowsAtOnce;
  const bool ready = s.packed != PackedForm::kNone && !has_packed_floats(s);
  const double split = columns * depth * passes * (s.packed == PackedForm::kNone && s.trans_b ? 1.5 : 1);
  return {1,
          (ready && s.m < kFewRows ? product_number(s.m) : product_whole(s.m, kTileRows)) * columns * depth,
          product_number(s.m) * depth,
          ready ? 0 : split,
          ready ? split : 0,
          product_number(s.m * s.n) * product_whole(s.k, kBlock) / kBlock};
}

}  // namespace

void register_product_unit(ProductMethods& methods) {
  methods.add({"product.unit", "tiles of the matrix unit", 40, GemmWay::kUnit, true, can_run, terms});
}

}  // namespace infernode::ops
