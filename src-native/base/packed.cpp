#include "base/packed.h"

namespace infernode {
namespace {

template <int Bits>
void unpack(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  constexpr size_t kPerByte = 8 / Bits;
  size_t i = 0;
  for (; i < count && (first + i) % kPerByte != 0; ++i) out[i] = get_packed<Bits>(packed, first + i);
  const uint8_t* bytes = packed + (first + i) / kPerByte;
  for (; i + kPerByte <= count; i += kPerByte) {
    const uint8_t byte = *bytes++;
    for (size_t k = 0; k < kPerByte; ++k) out[i + k] = byte >> (k * Bits) & ((1 << Bits) - 1);
  }
  for (; i < count; ++i) out[i] = get_packed<Bits>(packed, first + i);
}

template <int Bits>
void pack(const uint8_t* values, size_t count, uint8_t* packed, size_t first) noexcept {
  constexpr size_t kPerByte = 8 / Bits;
  size_t i = 0;
  for (; i < count && (first + i) % kPerByte != 0; ++i) set_packed<Bits>(packed, first + i, values[i]);
  uint8_t* bytes = packed + (first + i) / kPerByte;
  for (; i + kPerByte <= count; i += kPerByte) {
    unsigned byte = 0;
    for (size_t k = 0; k < kPerByte; ++k) byte |= (values[i + k] & ((1u << Bits) - 1)) << (k * Bits);
    *bytes++ = static_cast<uint8_t>(byte);
  }
  for (; i < count; ++i) set_packed<Bits>(packed, first + i, values[i]);
}

}  // namespace

void unpack_u4(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  unpack<4>(packed, first, count, out);
}
void unpack_u2(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  unpack<2>(packed, first, count, out);
}
void unpack_u6(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  for (size_t i = 0; i < count; ++i) out[i] = get_packed<6>(packed, first + i);
}

void pack_6(const uint8_t* values, size_t count, uint8_t* packed, size_t first) noexcept {
  for (size_t i = 0; i < count; ++i) set_packed<6>(packed, first + i, values[i]);
}
void pack_4(const uint8_t* values, size_t count, uint8_t* packed, size_t first) noexcept {
  pack<4>(values, count, packed, first);
}
void pack_2(const uint8_t* values, size_t count, uint8_t* packed, size_t first) noexcept {
  pack<2>(values, count, packed, first);
}

}  // namespace infernode
