#include "base/packed.h"

#include "base/half.h"

namespace infernode {
namespace {

template <int Bits, class T, class Decode>
void unpack(const uint8_t* packed, size_t first, size_t count, T* out, Decode decode) noexcept {
  constexpr size_t kPerByte = 8 / Bits;
  size_t i = 0;
  for (; i < count && (first + i) % kPerByte != 0; ++i) out[i] = decode(get_packed<Bits>(packed, first + i));
  const uint8_t* bytes = packed + (first + i) / kPerByte;
  for (; i + kPerByte <= count; i += kPerByte) {
    const uint8_t byte = *bytes++;
    for (size_t k = 0; k < kPerByte; ++k)
      out[i + k] = decode(static_cast<uint8_t>(byte >> (k * Bits) & ((1 << Bits) - 1)));
  }
  for (; i < count; ++i) out[i] = decode(get_packed<Bits>(packed, first + i));
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
  unpack<4>(packed, first, count, out, [](uint8_t code) { return code; });
}
void unpack_i4(const uint8_t* packed, size_t first, size_t count, int8_t* out) noexcept {
  unpack<4>(packed, first, count, out, sign_extend<4>);
}
void unpack_u2(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  unpack<2>(packed, first, count, out, [](uint8_t code) { return code; });
}
void unpack_i2(const uint8_t* packed, size_t first, size_t count, int8_t* out) noexcept {
  unpack<2>(packed, first, count, out, sign_extend<2>);
}
void unpack_u6(const uint8_t* packed, size_t first, size_t count, uint8_t* out) noexcept {
  for (size_t i = 0; i < count; ++i) out[i] = get_packed<6>(packed, first + i);
}
void unpack_float4(const uint8_t* packed, size_t first, size_t count, float* out) noexcept {
  unpack<4>(packed, first, count, out, [](uint8_t code) { return static_cast<float>(Float4E2M1::from_bits(code)); });
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
