#pragma once

#include "base/half.h"
#include "emulation.h"

using __half = infernode::Float16;
inline float __half2float(__half x) { return static_cast<float>(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
