#pragma once

#include "providers/cuda/kernels/device/attention_few_keys.cuh"
#include "providers/cuda/kernels/device/pieces.cuh"

namespace infernode::cuda {

/// A warp's products: sixteen queries with sixteen keys of a stage, and their weights with the values.
template <class T, int pieces = T::kPieces>
struct FewProducts {
  std::uint32_t fragment[T::kD / 16][4];

  __device__ __forceinline__ void load_queries(std::uint32_t q, int lane) {
#pragma unroll
    for (int c = 0; c < T::kD / 16; c++) {
      load_matrix4(fragment[c], q + T::place(T::kRows, lane & 15, c * 2 + (lane >> 4)));
    }
  }

  __device__ __forceinline__ void score(float (&s)[2][4], std::uint32_t, std::uint32_t k, int row, int lane) const {
#pragma unroll
    for (int c = 0; c < T::kD / 16; c++) {
      std::uint32_t b[4];
      load_matrix4(b, k + T::place(T::kKeys, row + (lane & 7) + (lane >> 4) * 8, c * 2 + (lane >> 3 & 1)));
      mma<T::kKind>(s[0], fragment[c], b[0], b[1]);
      mma<T::kKind>(s[1], fragment[c], b[2], b[3]);
    }
  }

  __device__ __forceinline__ void add_values(float (&out)[T::kD / 8][4], const float (&s)[2][4], std::uint32_t v,
                                             int row, int lane) const {
    const auto pack = [](float x, float y) { return T::kKind == MmaKind::f16 ? pack_f16(x, y) : pack_bf16(x, y); };
    const std::uint32_t a[4] = {pack(s[0][0], s[0][1]), pack(s[0][2], s[0][3]), pack(s[1][0], s[1][1]),
                                pack(s[1][2], s[1][3])};
#pragma unroll
    for (int j = 0; j < T::kD / 16; j++) {
      std::uint32_t b[4];
      load_matrix4_transposed(b, v + T::place(T::kKeys, row + (lane & 15), j * 2 + (lane >> 4)));
      mma<T::kKind>(out[2 * j], a, b[0], b[1]);
      mma<T::kKind>(out[2 * j + 1], a, b[2], b[3]);
    }
  }
};

/// float32, split: the smallest products first.
template <class T>
struct FewProducts<T, 3> {
  using Pieces = std::uint32_t[3];

  __device__ __forceinline__ void load_queries(std::uint32_t, int) const {}

  static __device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[3][4], const Pieces& b0,
                                                  const Pieces& b1) {
#pragma unroll
    for (int q = 2; q >= 0; q--) {
#pragma unroll
      for (int r = 2 - q; r >= 0; r--) mma<MmaKind::bf16>(c, a[r], b0[q], b1[q]);
    }
  }

  static __device__ __forceinline__ void split(float x, float y, std::uint32_t (&a)[3][4], int i) {
    Pieces piece;
    split_pair<3>(make_float2(x, y), piece);
    a[0][i] = piece[0], a[1][i] = piece[1], a[2][i] = piece[2];
  }

  __device__ __forceinline__ void score(float (&s)[2][4], std::uint32_t q, std::uint32_t k, int row, int lane) const {
    const std::uint32_t own = (lane >> 2) * T::kRowBytes + (lane & 3) * 8;
#pragma unroll 1
    for (int c = 0; c < T::kD / 16; c++) {
      std::uint32_t a[3][4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const float2 x = load_shared2(q + own + c * 64 + (i & 1) * 8 * T::kRowBytes + (i >> 1) * 32, false);
        split(x.x, x.y, a, i);
      }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        const std::uint32_t from = k + own + c * 64 + (row + j * 8) * T::kRowBytes;
        Pieces b0, b1;
        split_pair<3>(load_shared2(from, false), b0);
        split_pair<3>(load_shared2(from + 32, false), b1);
        multiply(s[j], a, b0, b1);
      }
    }
  }

  __device__ __forceinline__ void add_values(float (&out)[T::kD / 8][4], const float (&s)[2][4], std::uint32_t v,
                                             int row, int lane) const {
    std::uint32_t a[3][4];
#pragma unroll
    for (int i = 0; i < 4; i++) split(s[i >> 1][(i & 1) * 2], s[i >> 1][(i & 1) * 2 + 1], a, i);
    const std::uint32_t own = v + (row + (lane & 3) * 2) * T::kRowBytes + (lane >> 2) * 4;
#pragma unroll
    for (int j = 0; j < T::kD / 8; j++) {
      const auto value = [&](int key) { return load_shared(own + key * T::kRowBytes + j * 32); };
      Pieces b0, b1;
      split_pair<3>(make_float2(value(0), value(1)), b0);
      split_pair<3>(make_float2(value(8), value(9)), b1);
      multiply(out[j], a, b0, b1);
    }
  }
};

}  // namespace infernode::cuda
