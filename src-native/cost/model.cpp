#include "cost/model.h"

#include <algorithm>
#include <numeric>

namespace infernode::cost {

namespace {

using microkernels::Float32Precision;

// Each file is a list of rows that bench/calibrate wrote; its first lines say on which CPU and by which command.
constexpr Row kAvx2[] = {
#include "cost/tables/attention-avx2.inc"
#include "cost/tables/avx2.inc"
#include "cost/tables/products-avx2.inc"
};
constexpr Row kAvx512[] = {
#include "cost/tables/attention-avx512.inc"
#include "cost/tables/avx512.inc"
#include "cost/tables/products-avx512.inc"
};
constexpr Row kBf16Medium[] = {
#include "cost/tables/attention-bf16-medium.inc"
#include "cost/tables/bf16-medium.inc"
#include "cost/tables/products-bf16-medium.inc"
};
constexpr Row kAmx[] = {
#include "cost/tables/amx.inc"
#include "cost/tables/attention-amx.inc"
#include "cost/tables/products-amx.inc"
};
constexpr Row kAmxHigh[] = {
#include "cost/tables/amx-high.inc"
#include "cost/tables/attention-amx-high.inc"
#include "cost/tables/products-amx-high.inc"
};
constexpr Row kAmxMedium[] = {
#include "cost/tables/amx-medium.inc"
#include "cost/tables/attention-amx-medium.inc"
#include "cost/tables/products-amx-medium.inc"
};

}  // namespace

std::span<const Row> table(CpuRung rung, Float32Precision precision) noexcept {
  if (rung == CpuRung::Amx) {
    return precision == Float32Precision::kMedium ? std::span<const Row>(kAmxMedium)
           : precision == Float32Precision::kHigh ? std::span<const Row>(kAmxHigh)
                                                  : std::span<const Row>(kAmx);
  }
  if (rung == CpuRung::Bf16 && precision == Float32Precision::kMedium) return kBf16Medium;
  return rung == CpuRung::Avx512 || rung == CpuRung::Vnni || rung == CpuRung::Bf16 ? std::span<const Row>(kAvx512)
                                                                                   : std::span<const Row>(kAvx2);
}

const Row* find(std::span<const Row> table, std::string_view method) noexcept {
  const auto at = std::find_if(table.begin(), table.end(), [&](const Row& row) { return row.method == method; });
  return at == table.end() ? nullptr : &*at;
}

double nanoseconds(const Terms& terms, const Terms& rates) noexcept {
  return std::inner_product(terms.begin(), terms.end(), rates.begin(), 0.0);
}

}  // namespace infernode::cost
