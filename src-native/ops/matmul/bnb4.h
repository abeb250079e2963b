#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace infernode::ops {

inline constexpr std::array<float, 16> kFp4{
    0.0f, 0.00520833333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    0.0f, -0.00520833333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
inline constexpr std::array<float, 16> kNf4{-1.0f,
                                            -0.6961928009986877f,
                                            -0.5250730514526367f,
                                            -0.39491748809814453f,
                                            -0.28444138169288635f,
                                            -0.18477343022823334f,
                                            -0.09105003625154495f,
                                            0.0f,
                                            0.07958029955625534f,
                                            0.16093020141124725f,
                                            0.24611230194568634f,
                                            0.33791524171829224f,
                                            0.44070982933044434f,
                                            0.5626170039176941f,
                                            0.7229568362236023f,
                                            1.0f};

/// Values of 4-bit codes, as the bitsandbytes project defines its types: 0, sign and a small float; 1, the quantiles of
/// a normal distribution.
inline std::span<const float, 16> bnb4_values(std::int64_t type) { return type == 0 ? kFp4 : kNf4; }

}  // namespace infernode::ops
