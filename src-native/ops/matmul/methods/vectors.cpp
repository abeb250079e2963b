// Products by vectors: register tiles for any shape, loops that read B once for few rows, and A once for few columns.
#include <algorithm>

#include "ops/matmul/methods/counts.h"

namespace infernode::ops {

namespace {

using microkernels::GemmTable;
using microkernels::GemmWay;
using microkernels::PackedForm;

/// Whether vectors read B: not where it was packed for the matrix unit or as bfloat16, unless for this very table.
bool reads_b(const ProductSite& site, const GemmTable& table) {
  return site.packed == PackedForm::kNone || has_packed_floats(site) || site.packed == table.weights.form(site.k);
}

/// Calls, multiply-adds of tiles whose columns are filled up to half a panel and which take as long as some rows at
/// least, floats of A, three times where it is transposed, floats of B, those that are packed as they are read, twice
/// where it is transposed, and floats written, once a block of k.
cost::Terms tiles_terms(const ProductSite& s, const GemmTable& table) {
  constexpr std::size_t kBlock = 768;
  constexpr double kLeastRows = 4;
  const double m = product_number(s.m), k = product_number(s.k), panels = product_whole(s.n, table.nr) * k;
  const double tiles = product_whole(s.m, table.mr) / product_number(table.mr);
  return {1,
          std::max(m, tiles * kLeastRows) * product_whole(s.n, table.nr / 2) * k,
          m * k * (s.trans_a ? 3 : 1),
          panels,
          s.packed == PackedForm::kNone ? panels * (s.trans_b ? 2 : 1) : 0,
          m * product_number(s.n) * product_whole(s.k, kBlock) / kBlock};
}

bool is_few_rows(const ProductSite& site, const GemmTable& table) {
  constexpr std::size_t kMost = 4;
  return site.m <= kMost && site.k > 0 && is_plain_a(site) && reads_b(site, table);
}
/// Calls, multiply-adds, floats of B that is packed, plain and transposed, and written.
cost::Terms few_rows_terms(const ProductSite& s, const GemmTable& table) {
  const double n = product_whole(s.n, s.packed == PackedForm::kNone ? 1 : table.nr), k = product_number(s.k);
  const bool plain = s.packed == PackedForm::kNone && !s.trans_b, turned = s.packed == PackedForm::kNone && s.trans_b;
  return {1,
          product_number(s.m) * n * k,
          plain || turned ? 0 : n * k,
          plain ? n * k : 0,
          turned ? n * k : 0,
          product_number(s.m * s.n)};
}

bool is_few_columns(const ProductSite& site, const GemmTable&) {
  constexpr std::size_t kMost = 4, kLeastDepth = 16, kMostDepth = 32768;
  return site.n <= kMost && site.k >= kLeastDepth && site.k <= kMostDepth && is_plain_a(site) && !site.codes &&
         (site.packed == PackedForm::kNone || has_packed_floats(site));
}
/// Calls, multiply-adds, floats of A, gathered and written.
cost::Terms few_columns_terms(const ProductSite& s, const GemmTable&) {
  const double m = product_number(s.m), n = product_number(s.n), k = product_number(s.k);
  return {1, m * n * k, m * k, n * k, m * n, 0};
}

}  // namespace

void register_product_vectors(ProductMethods& methods) {
  methods.add({"product.few_columns", "up to four columns: A is read once", 10, GemmWay::kFewColumns, false,
               is_few_columns, few_columns_terms});
  methods.add({"product.few_rows", "up to four rows: B is read once", 20, GemmWay::kFewRows, false, is_few_rows,
               few_rows_terms});
  methods.add({"product.tiles",
               "register tiles of vectors, for every shape: rows of A are read where they lie, a B that is not packed "
               "is packed some panels at a time",
               30, GemmWay::kTiles, false, reads_b, tiles_terms});
}

}  // namespace infernode::ops
