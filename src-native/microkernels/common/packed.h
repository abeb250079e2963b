#pragma once

#include <cstddef>
#include <cstdint>

// Operands that are packed once and read by many calls: weights, and the B that calls of a run share.
namespace infernode::microkernels {

// How the numbers of a packed operand lie. Behind them there may be more, which the packing's own loops know of.
enum class PackedForm : std::uint8_t {
  kNone,
  kFloats,        // float32
  kMarkedFloats,  // the same, with marks behind them: which can be split into pieces
  kBf16Pairs,     // words of two bfloat16 numbers that follow each other in k
  kBf16Pieces,    // tiles of the pieces that the matrix unit multiplies; float32 where numbers cannot be split
  kCodes,         // 8-bit codes, with the sums of columns
};
// For keys of packed weights, and errors.
const char* to_string(PackedForm form) noexcept;

// What a packing made. Loops read what their table's packings make, and some read others of the same form; the caller
// checks the form.
struct PackedOperand {
  PackedForm form = PackedForm::kNone;
  const void* data = nullptr;  // 64-byte aligned; null where nothing is packed
  std::size_t bytes = 0;
  std::size_t n = 0, k = 0;       // columns of B or output channels, and numbers of each
  const char* packing = nullptr;  // the name of what made it

  explicit operator bool() const noexcept { return data != nullptr; }
  // Null where it does not begin with float32 numbers.
  const float* floats() const noexcept {
    return form == PackedForm::kFloats || form == PackedForm::kMarkedFloats ? static_cast<const float*>(data) : nullptr;
  }
  // Null where it does not begin with words of two bfloat16 numbers.
  const std::uint32_t* pairs() const noexcept {
    return form == PackedForm::kBf16Pairs ? static_cast<const std::uint32_t*>(data) : nullptr;
  }
};

}  // namespace infernode::microkernels
