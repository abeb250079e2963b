#pragma once
// What methods of products count alike.

#include "ops/matmul/methods/method.h"

namespace infernode::ops {

inline double product_number(std::size_t v) { return static_cast<double>(v); }
/// v filled up to whole steps.
inline double product_whole(std::size_t v, std::size_t step) { return product_number((v + step - 1) / step * step); }

inline bool is_plain_a(const ProductSite& site) {
  return site.a_type == microkernels::FloatType::kF32 && !site.trans_a;
}
/// Whether B is packed as float32 numbers.
inline bool has_packed_floats(const ProductSite& site) {
  return site.packed == microkernels::PackedForm::kFloats || site.packed == microkernels::PackedForm::kMarkedFloats;
}

}  // namespace infernode::ops
