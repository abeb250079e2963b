// The sets: one constant for each CPU and precision, whose tables say how they multiply.
#include "microkernels/kernel_set.h"

#include <map>
#include <set>
#include <string>

#include "microkernels/blocked/blocked.h"
#include "microkernels/blocked_winograd/blocked_winograd.h"
#include "microkernels/conv/conv.h"
#include "microkernels/qgemm/qgemm.h"
#include "microkernels/winograd/winograd.h"
#include "support.h"

namespace infernode::microkernels::test {
namespace {

constexpr Float32Precision kPrecisions[] = {Float32Precision::kHighest, Float32Precision::kHigh,
                                            Float32Precision::kMedium};

TEST_CASE("a set is one object for each rung and precision, and names both") {
  for_each_target([](CpuRung rung) {
    for (const Float32Precision precision : kPrecisions) {
      const KernelSet& kernels = kernel_set(rung, precision);
      CHECK(&kernels == &kernel_set(rung, precision));
      CHECK(kernels.rung == rung);
      CHECK(kernels.precision == precision);
      CHECK(&kernels.exact() == &kernel_set(rung));
      CHECK(&kernels.elementwise == &kernels.exact().elementwise);
    }
  });
}

TEST_CASE("a rung of another architecture has the loops of the oldest CPUs") {
  const CpuRung lowest = &kernel_set(CpuRung::Neon) == &kernel_set(CpuRung::Amx) ? CpuRung::Neon : CpuRung::Baseline;
  const CpuRung other = lowest == CpuRung::Neon ? CpuRung::Avx512 : CpuRung::Neon;
  CHECK(&kernel_set(other) == &kernel_set(lowest));
}

TEST_CASE("tables say whether they split, round and are the matrix unit's") {
  for_each_target([](CpuRung rung) {
    for (const Float32Precision precision : kPrecisions) {
      const bool unit = rung == CpuRung::Amx, medium = precision == Float32Precision::kMedium;
      const bool blocks = medium && (rung == CpuRung::Bf16 || unit);
      const KernelSet& kernels = kernel_set(rung, precision);
      CHECK(kernels.gemm.matrix_unit == unit);
      CHECK(kernels.gemm.splits == (unit && !medium));
      CHECK(kernels.gemm.rounds == (blocks || (medium && rung == ArmRung::kBf16)));
      CHECK(kernels.gemm_float32.splits == unit);
      CHECK_FALSE(kernels.gemm_float32.rounds);
      CHECK(kernels.blocked_conv.takes_bf16 == blocks);
      CHECK((kernels.powers != nullptr) == blocks);
    }
  });
}

TEST_CASE("each rung has the integer products that its instructions make") {
  const std::map<CpuRung, std::string> names = {{CpuRung::Baseline, "sse42"}, {CpuRung::Avx2, "avx2"},
                                                {CpuRung::Avx512, "avx512"},  {CpuRung::Vnni, "vnni"},
                                                {CpuRung::Bf16, "vnni"},      {CpuRung::Amx, "amx"},
                                                {ArmRung::kNeon, "neon"},     {ArmRung::kDotprod, "dotprod"},
                                                {ArmRung::kI8mm, "i8mm"},     {ArmRung::kBf16, "i8mm"}};
  for_each_target([&](CpuRung rung) { CHECK(kernel_set(rung).qgemm.name == names.at(rung)); });
}

TEST_CASE("a packed B names its form, size and shape") {
  for_each_target([](CpuRung rung) {
    for (const Float32Precision precision : kPrecisions) {
      const GemmTable& table = kernel_set(rung, precision).gemm;
      const std::uint8_t memory = 0;
      for (const GemmPacking* packing : {&table.weights, &table.operand}) {
        const PackedOperand b = packing->packed(40, 64, &memory);
        CHECK(b);
        CHECK(b.form == packing->form(64));
        CHECK(b.bytes == packing->bytes(40, 64));
        CHECK(b.n == 40);
        CHECK(b.k == 64);
        CHECK(b.packing == packing->name);
        CHECK((b.floats() != nullptr) == (b.form == PackedForm::kFloats || b.form == PackedForm::kMarkedFloats));
      }
      CHECK((table.weights.form(64) == PackedForm::kBf16Pairs) == table.rounds);
    }
  });
  CHECK_FALSE(PackedOperand());
}

TEST_CASE("packings of convolutions look at channels and the window's extent only") {
  for_each_target([](CpuRung rung) {
    for (const Float32Precision precision : kPrecisions) {
      const KernelSet& kernels = kernel_set(rung, precision);
      for (const std::size_t channels : {std::size_t{3}, std::size_t{48}}) {
        ConvShape s, other;
        s.in_channels = channels;
        s.out_channels = 40;
        s.kernel_h = s.kernel_w = 3;
        other = s;
        other.stride_h = other.stride_w = other.dilation_h = other.dilation_w = 2;
        other.in_h = other.in_w = 30;
        other.out_h = other.out_w = 13;
        const std::vector<float> weight(s.out_channels * s.depth(), 0.5f);
        for (const ConvPacking* packing :
             {&kernels.conv.weights, &kernels.winograd.weights, &kernels.blocked_conv.weights,
              &kernels.blocked_conv.plane_weights, kernels.blocked_winograd.weights, &depthwise_packing()}) {
          if (packing == &kernels.blocked_conv.plane_weights && channels > kMostPlanes) continue;
          CAPTURE(std::string(packing->name));
          REQUIRE(packing->bytes(other) == packing->bytes(s));
          CHECK(packing->form(other) == packing->form(s));
          // Whole cache lines, so that they begin at one and end at what may not be read.
          const std::size_t bytes = (packing->bytes(s) + 63) / 64 * 64;
          Guarded<std::uint8_t> made(bytes), like(bytes);
          std::fill(made.begin(), made.end(), std::uint8_t{0});
          std::fill(like.begin(), like.end(), std::uint8_t{0});
          packing->pack(s, weight.data(), made.data());
          packing->pack(other, weight.data(), like.data());
          CHECK(std::equal(made.begin(), made.end(), like.begin()));
        }
      }
    }
  });
}

TEST_CASE("packed weights of convolutions name their form, size, shape and packing") {
  ConvShape s;
  s.in_channels = 48;
  s.out_channels = 40;
  s.kernel_h = s.kernel_w = 3;
  for_each_target([&](CpuRung rung) {
    for (const Float32Precision precision : kPrecisions) {
      const KernelSet& kernels = kernel_set(rung, precision);
      const std::uint8_t memory = 0;
      std::set<std::string> names;
      for (const ConvPacking* packing :
           {&kernels.conv.weights, &kernels.winograd.weights, &kernels.blocked_conv.weights,
            &kernels.blocked_conv.plane_weights, &depthwise_packing()}) {
        const PackedOperand weights = packing->packed(s, &memory);
        CHECK(weights.form == packing->form(s));
        CHECK(weights.bytes == packing->bytes(s));
        CHECK(weights.n == s.out_channels);
        CHECK(weights.k == s.depth());
        CHECK(names.insert(weights.packing).second);
      }
      const BlockedConvTable& blocked = kernels.blocked_conv;
      CHECK((blocked.plane_weights.packed(s, &memory).pairs() != nullptr) == blocked.takes_bf16);
      CHECK((blocked.weights.packed(s, &memory).floats() == nullptr) == blocked.takes_bf16);
      CHECK((kernels.blocked_winograd.weights->packed(s, &memory).pairs() != nullptr) == blocked.takes_bf16);
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
