#pragma once

#include "microkernels/common/simd_file.h"

// How numbers become codes, for all that quantizes.
namespace infernode::microkernels {
namespace {

// Numbers of steps as whole ones from `low` to `high`, halves to even; NaN as 0, for which the zero point stands.
INFERNODE_SIMD VecI to_codes(VecF steps, VecF low, VecF high) {
  const VecF rounded = round_even(steps);
  return to_int(clamp(select(is_nan(rounded), zero(), rounded), low, high));
}

}  // namespace
}  // namespace infernode::microkernels
