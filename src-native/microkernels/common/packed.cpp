#include "microkernels/common/packed.h"

namespace infernode::microkernels {

const char* to_string(PackedForm form) noexcept {
  switch (form) {
    case PackedForm::kNone:
      return "none";
    case PackedForm::kFloats:
      return "floats";
    case PackedForm::kMarkedFloats:
      return "marked-floats";
    case PackedForm::kBf16Pairs:
      return "pairs";
    case PackedForm::kBf16Pieces:
      return "pieces";
    case PackedForm::kCodes:
      return "codes";
  }
  return "none";
}

}  // namespace infernode::microkernels
