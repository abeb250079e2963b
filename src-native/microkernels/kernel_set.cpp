#include "microkernels/kernel_set.h"

#include <array>
#include <cstddef>
#include <utility>

#include "base/arm_rung.h"
#include "microkernels/tables.h"

namespace infernode::microkernels {
namespace {

constexpr std::size_t kPrecisions = 3;
#if defined(__aarch64__) || defined(_M_ARM64)
constexpr CpuRung kLowest = ArmRung::kNeon, kGreatest = ArmRung::kBf16;
#else
constexpr CpuRung kLowest = CpuRung::Baseline, kGreatest = CpuRung::Amx;
#endif
constexpr std::size_t index_of(CpuRung rung) {
  return static_cast<std::size_t>(rung) - static_cast<std::size_t>(kLowest);
}

constexpr KernelSet make_set(CpuRung rung, Float32Precision precision) {
  const bool own = has_gemm_float32(rung, precision);
  return {.rung = rung,
          .precision = precision,
          .gemm = *choose_gemm(rung, precision),
          .gemm_float32 = own ? *choose_gemm_float32(rung, precision) : *choose_gemm(rung, Float32Precision::kHighest),
          .qgemm = *choose_qgemm(rung, precision),
          .conv = *choose_conv(rung, precision),
          .blocked_conv = *choose_blocked_conv(rung, precision),
          .blocked_winograd = *choose_blocked_winograd(rung, precision),
          .winograd = *choose_winograd(rung, precision),
          .toom = *choose_toom(rung, precision),
          .powers = choose_powers(rung, precision),
          .convert = *choose_convert(rung, precision),
          .elementwise = *choose_elementwise(rung, precision),
          .reduce = *choose_reduce(rung, precision),
          .pool = *choose_pool(rung, precision),
          .rnn = *choose_rnn(rung, precision),
          .dft = *choose_dft(rung, precision),
          .transpose = *choose_transpose(rung, precision),
          .trees = *choose_trees(rung, precision)};
}

template <std::size_t... kIndex>
constexpr std::array<KernelSet, sizeof...(kIndex)> make_sets(std::index_sequence<kIndex...>) {
  constexpr auto kBase = static_cast<std::size_t>(kLowest);
  return {make_set(static_cast<CpuRung>(kBase + kIndex / kPrecisions),
                   static_cast<Float32Precision>(kIndex % kPrecisions))...};
}
constexpr auto kSets = make_sets(std::make_index_sequence<(index_of(kGreatest) + 1) * kPrecisions>());

}  // namespace

const KernelSet& KernelSet::exact() const noexcept { return kernel_set(rung); }

const KernelSet& kernel_set(CpuRung rung, Float32Precision precision) noexcept {
  if (rung < kLowest || rung > kGreatest) rung = kLowest;
  return kSets[index_of(rung) * kPrecisions + static_cast<std::size_t>(precision)];
}

}  // namespace infernode::microkernels
