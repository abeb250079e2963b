#include "base/cpu_features.h"

#include <cstdlib>
#include <cstring>

#include "base/arm_rung.h"
#include "base/error.h"
#include "base/text/edit_distance.h"

#if defined(__x86_64__) || defined(_M_X64)
#define INFERNODE_X86 1
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(_WIN32)
#include <windows.h>
#endif
#elif defined(__aarch64__) || defined(_M_ARM64)
#define INFERNODE_ARM64 1
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#include <windows.h>
#endif
#endif

namespace infernode {
namespace {

constexpr std::string_view kNames[] = {"baseline", "avx2", "avx512",  "vnni", "bf16",
                                       "amx",      "neon", "dotprod", "i8mm", "bf16"};
constexpr CpuRung kRungs[] = {CpuRung::Baseline, CpuRung::Avx2,  CpuRung::Avx512,   CpuRung::Vnni,  CpuRung::Bf16,
                              CpuRung::Amx,      ArmRung::kNeon, ArmRung::kDotprod, ArmRung::kI8mm, ArmRung::kBf16};
static_assert(std::size(kNames) == std::size(kRungs));

bool same_ladder(CpuRung a, CpuRung b) noexcept { return (a >= CpuRung::Neon) == (b >= CpuRung::Neon); }

#if defined(INFERNODE_X86)

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) noexcept {
  Registers r;
#if defined(_MSC_VER) && !defined(__clang__)
  int values[4];
  __cpuidex(values, static_cast<int>(leaf), static_cast<int>(subleaf));
  std::memcpy(&r, values, sizeof r);
#else
  __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
#endif
  return r;
}

/// XCR0: which register files the operating system saves.
uint64_t enabled_state() noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  return _xgetbv(0);
#else
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
#endif
}

/// Systems hand out the state of AMX's tiles on request only.
bool amx_permitted() noexcept {
  [[maybe_unused]] constexpr long kTileData = 18;  // its bit in XCR0
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#elif defined(_WIN32)
  // Windows 11 and Server 2022 have it.
  const FARPROC enable = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "EnableProcessOptionalXStateFeatures");
  return enable != nullptr && reinterpret_cast<BOOL(WINAPI*)(DWORD64)>(enable)(DWORD64{1} << kTileData);
#else
  return false;
#endif
}

#elif defined(INFERNODE_ARM64)

/// The instructions that a system tells of. Older headers lack the numbers.
struct ArmExtensions {
  bool dotprod = false, i8mm = false, bf16 = false;
};

ArmExtensions arm_extensions() noexcept {
#if defined(__linux__)
  const auto bit = [](unsigned long word, int index) { return (word >> index & 1u) != 0; };
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  return {bit(first, 20), bit(second, 13), bit(second, 14)};
#elif defined(_WIN32)
  const auto has = [](DWORD feature) { return IsProcessorFeaturePresent(feature) != 0; };
  return {has(43), has(66), has(68)};  // PF_ARM_V82_DP_, PF_ARM_V82_I8MM_, PF_ARM_V86_BF16_INSTRUCTIONS_AVAILABLE
#elif defined(__APPLE__)
  const auto has = [](const char* name) {
    int value = 0;
    size_t bytes = sizeof value;
    return sysctlbyname(name, &value, &bytes, nullptr, 0) == 0 && value != 0;
  };
  return {has("hw.optional.arm.FEAT_DotProd"), has("hw.optional.arm.FEAT_I8MM"), has("hw.optional.arm.FEAT_BF16")};
#else
  return {};
#endif
}

#endif

}  // namespace

const char* to_string(CpuRung rung) noexcept {
  for (size_t i = 0; i < std::size(kRungs); ++i)
    if (kRungs[i] == rung) return kNames[i].data();
  return "unknown";
}

CpuFeatures detect_cpu_features() noexcept {
  CpuFeatures f;
#if defined(INFERNODE_X86)
  const auto bit = [](uint32_t word, int index) { return (word >> index & 1u) != 0; };
  const uint32_t max_leaf = cpuid(0, 0).eax;
  const Registers one = cpuid(1, 0);
  f.sse42 = bit(one.ecx, 20);
  f.popcnt = bit(one.ecx, 23);
  if (!bit(one.ecx, 27)) return f;
  const uint64_t state = enabled_state();
  const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6, tiles = (state & 0x60000) == 0x60000;
  if (!ymm || max_leaf < 7) return f;
  const Registers seven = cpuid(7, 0);
  const Registers more = seven.eax >= 1 ? cpuid(7, 1) : Registers{};
  const bool lzcnt = cpuid(0x80000000u, 0).eax >= 0x80000001u && bit(cpuid(0x80000001u, 0).ecx, 5);
  f.avx = bit(one.ecx, 28);
  f.fma = bit(one.ecx, 12);
  f.f16c = bit(one.ecx, 29);
  f.avx2 = bit(seven.ebx, 5);
  f.bmi = bit(seven.ebx, 3) && bit(seven.ebx, 8) && lzcnt && bit(one.ecx, 22);
  if (zmm) {
    f.avx512 =
        bit(seven.ebx, 16) && bit(seven.ebx, 17) && bit(seven.ebx, 28) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
    f.avx512_vnni = f.avx512 && bit(seven.ecx, 11);
    f.avx512_bf16 = f.avx512 && bit(more.eax, 5);
  }
  if (tiles && bit(seven.edx, 24) && amx_permitted()) {
    f.amx_tile = true;
    f.amx_bf16 = bit(seven.edx, 22);
    f.amx_int8 = bit(seven.edx, 25);
  }
#if defined(INFERNODE_EMULATE_AMX)
  f.amx_tile = f.amx_bf16 = f.amx_int8 = f.avx512_bf16;
#endif
#elif defined(INFERNODE_ARM64)
  const ArmExtensions more = arm_extensions();
  f.neon = true;
  f.dotprod = more.dotprod;
  f.i8mm = more.i8mm;
  f.neon_bf16 = more.bf16;
#endif
  return f;
}

CpuRung rung_of(const CpuFeatures& f) {
  if (f.neon) {
    if (!f.dotprod) return ArmRung::kNeon;
    if (!f.i8mm) return ArmRung::kDotprod;
    return f.neon_bf16 ? ArmRung::kBf16 : ArmRung::kI8mm;
  }
  INFERNODE_CHECK(f.sse42 && f.popcnt, ErrorCode::ProviderUnavailable,
                  "this processor is too old: infernode needs SSE4.2 and POPCNT on x86-64");
  if (!(f.avx && f.avx2 && f.fma && f.f16c && f.bmi)) return CpuRung::Baseline;
  if (!f.avx512) return CpuRung::Avx2;
  if (!f.avx512_vnni) return CpuRung::Avx512;
  if (!f.avx512_bf16) return CpuRung::Vnni;
  return f.amx_tile && f.amx_int8 && f.amx_bf16 ? CpuRung::Amx : CpuRung::Bf16;
}

CpuRung detect_cpu_rung() {
  // A virtual machine takes tens of microseconds to answer.
  static const CpuRung detected = rung_of(detect_cpu_features());
  return detected;
}

CpuRung cpu_rung_from(const char* env_value, CpuRung detected) {
  if (env_value == nullptr || *env_value == '\0') return detected;
  const std::string_view wanted = env_value;
  std::string names;
  for (size_t i = 0; i < std::size(kRungs); ++i)
    if (kRungs[i] <= detected && same_ladder(kRungs[i], detected)) names += cat(names.empty() ? "" : ", ", kNames[i]);
  std::string message = cat("INFERNODE_CPU=", wanted);
  const CpuRung* known = nullptr;  // both ladders have a bf16: this machine's is meant
  for (size_t i = 0; i < std::size(kRungs); ++i)
    if (kNames[i] == wanted && (known == nullptr || same_ladder(kRungs[i], detected))) known = &kRungs[i];
  if (known == nullptr) {
    message += " is not the name of an instruction set";
  } else {
    const CpuRung rung = *known;
    if (!same_ladder(rung, detected)) {
      message += rung >= CpuRung::Neon ? " is a name for ARM processors" : " is a name for x86 processors";
    } else if (rung <= detected) {
      return rung;
    } else {
      message += " asks for more than this processor has";
    }
  }
  message += cat("; this machine has ", names);
  const std::string_view nearest = nearest_name(wanted, std::span<const std::string_view>(kNames));
  if (known == nullptr && !nearest.empty()) message += cat(". Did you mean ", nearest, "?");
  fail(ErrorCode::InvalidArgument, std::move(message), {.expected = std::move(names), .actual = std::string(wanted)});
}

CpuRung cpu_rung() { return cpu_rung_from(std::getenv("INFERNODE_CPU"), detect_cpu_rung()); }

std::string cpu_name() {
#if defined(INFERNODE_X86)
  if (cpuid(0x80000000u, 0).eax >= 0x80000004u) {
    Registers parts[3];
    for (uint32_t i = 0; i < 3; ++i) parts[i] = cpuid(0x80000002u + i, 0);
    char text[sizeof parts + 1] = {};
    std::memcpy(text, parts, sizeof parts);
    std::string name = text;
    const size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
    if (first != std::string::npos) return name.substr(first, last - first + 1);
  }
  return "x86-64";
#elif defined(INFERNODE_ARM64)
  return "aarch64";
#else
  return "unknown";
#endif
}

}  // namespace infernode
