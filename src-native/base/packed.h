#pragma once

#include <cstddef>
#include <cstdint>

/// 6-bit, 4-bit and 2-bit elements in the order of ONNX's raw data: a stream of bits, the first element in the lowest
/// bits of the first byte. Four 6-bit elements fill three bytes. Indices count elements. Bits = 6, 4 or 2.
namespace infernode {

/// The element's bits, zero-extended.
template <int Bits>
constexpr uint8_t get_packed(const uint8_t* data, size_t index) noexcept {
  if constexpr (Bits == 6) {
    const uint8_t* at = data + index / 4 * 3;
    switch (index % 4) {
      case 0:
        return at[0] & 63;
      case 1:
        return static_cast<uint8_t>(at[0] >> 6 | (at[1] & 15) << 2);
      case 2:
        return static_cast<uint8_t>(at[1] >> 4 | (at[2] & 3) << 4);
      default:
        return at[2] >> 2;
    }
  }
  constexpr size_t kPerByte = 8 / Bits;
  return static_cast<uint8_t>(data[index / kPerByte] >> (index % kPerByte * Bits)) & ((1 << Bits) - 1);
}

/// Two's complement value of the low `Bits` bits.
template <int Bits>
constexpr int8_t sign_extend(uint8_t code) noexcept {
  constexpr int kSign = 1 << (Bits - 1);
  return static_cast<int8_t>(((code & ((1 << Bits) - 1)) ^ kSign) - kSign);
}

template <int Bits>
constexpr int8_t get_packed_signed(const uint8_t* data, size_t index) noexcept {
  return sign_extend<Bits>(get_packed<Bits>(data, index));
}

/// Stores the low bits of `value`; neighbours in the byte keep theirs, so two threads must not share a byte.
template <int Bits>
constexpr void set_packed(uint8_t* data, size_t index, int value) noexcept {
  constexpr unsigned kMask = (1u << Bits) - 1;
  if constexpr (Bits == 6) {
    uint8_t* at = data + index / 4 * 3 + index % 4 * 6 / 8;
    const unsigned first = static_cast<unsigned>(index % 4 * 6 % 8);
    const unsigned mask = kMask << first, bits = (static_cast<unsigned>(value) & kMask) << first;
    at[0] = static_cast<uint8_t>((at[0] & ~mask) | bits);
    if (first > 2) at[1] = static_cast<uint8_t>((at[1] & ~(mask >> 8)) | bits >> 8);
    return;
  }
  constexpr size_t kPerByte = 8 / Bits;
  const unsigned shift = static_cast<unsigned>(index % kPerByte * Bits);
  uint8_t& byte = data[index / kPerByte];
  byte = static_cast<uint8_t>((byte & ~(kMask << shift)) | ((static_cast<unsigned>(value) & kMask) << shift));
}

/// Elements [first, first + count) of a packed row to one byte each.
void unpack_u4(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept;
void unpack_u2(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept;
void unpack_u6(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept;

/// The low bits of each byte (signed or unsigned alike) to elements [first, first + count). Bits outside that range
/// stay.
void pack_6(const uint8_t* values, size_t count, uint8_t* packed, size_t first = 0) noexcept;
void pack_4(const uint8_t* values, size_t count, uint8_t* packed, size_t first = 0) noexcept;
void pack_2(const uint8_t* values, size_t count, uint8_t* packed, size_t first = 0) noexcept;

}  // namespace infernode
