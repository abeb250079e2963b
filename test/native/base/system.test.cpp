#include "base/system.h"

#include <doctest/doctest.h>

#include <map>

#include "base/arm_rung.h"
#include "base/cpu_features.h"
#include "base/error.h"
#include "base/float_mode.h"

using namespace infernode;

TEST_CASE("CPU lists") {
  CHECK(parse_cpu_list("0-3,8,10-11\n") == 7);
  CHECK(parse_cpu_list("5") == 1);
  CHECK(parse_cpu_list("0-1023") == 1024);
  for (const char* bad : {"", "\n", "3-1", "a", "1-", "1,,2", "-1", "0-99999999999"}) CHECK_FALSE(parse_cpu_list(bad));
}

TEST_CASE("CPU quotas of both cgroup versions") {
  CHECK(parse_cpu_max("200000 100000\n") == 2.0);
  CHECK(parse_cpu_max("50000 100000") == 0.5);
  CHECK(parse_cpu_max("150000") == 1.5);
  for (const char* none : {"max 100000\n", "", "x y", "100000 0", "-1 100000"}) CHECK_FALSE(parse_cpu_max(none));
  CHECK(parse_cfs_quota("300000\n", "100000\n") == 3.0);
  CHECK_FALSE(parse_cfs_quota("-1\n", "100000\n"));
  CHECK_FALSE(parse_cfs_quota("", ""));
}

TEST_CASE("memory limits") {
  CHECK(parse_memory_limit("536870912\n") == 536870912u);
  for (const char* none : {"max\n", "9223372036854771712\n", "", "-1", "12kB"}) CHECK_FALSE(parse_memory_limit(none));
}

namespace {
CgroupLimits limits_in(const std::map<std::string, std::string>& files) {
  return read_cgroup_limits([&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}
}  // namespace

TEST_CASE("cgroup v2: the tightest limit of a group and its parents counts") {
  const CgroupLimits limits = limits_in({
      {"/proc/self/mountinfo",
       "24 1 8:1 / / rw - ext4 /dev/sda rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup rw\n"},
      {"/proc/self/cgroup", "0::/kube/pod1/app\n"},
      {"/sys/fs/cgroup/kube/pod1/app/cpu.max", "max 100000\n"},
      {"/sys/fs/cgroup/kube/pod1/cpu.max", "350000 100000\n"},
      {"/sys/fs/cgroup/kube/cpu.max", "800000 100000\n"},
      {"/sys/fs/cgroup/kube/pod1/app/cpuset.cpus.effective", "0-5\n"},
      {"/sys/fs/cgroup/cpuset.cpus.effective", "0-15\n"},
      {"/sys/fs/cgroup/kube/pod1/app/memory.max", "2000000000\n"},
      {"/sys/fs/cgroup/kube/memory.max", "1000000000\n"},
  });
  CHECK(limits.cpu_quota == 3.5);
  CHECK(limits.cpuset == 6);
  CHECK(limits.memory == 1000000000u);
}

TEST_CASE("cgroup v2 in a container that sees its own group as root") {
  const CgroupLimits limits = limits_in({
      {"/proc/self/mountinfo", "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
      {"/proc/self/cgroup", "0::/docker/abc\n"},
      {"/sys/fs/cgroup/cpu.max", "150000 100000\n"},
      {"/sys/fs/cgroup/memory.max", "max\n"},
  });
  CHECK(limits.cpu_quota == 1.5);
  CHECK_FALSE(limits.cpuset);
  CHECK_FALSE(limits.memory);
  // A path outside what the mount shows leaves only the mount's root.
  const CgroupLimits outside = limits_in({
      {"/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"},
      {"/proc/self/cgroup", "0::/../other\n"},
      {"/sys/fs/cgroup/cpu.max", "250000 100000\n"},
  });
  CHECK(outside.cpu_quota == 2.5);
}

TEST_CASE("cgroup v1: each controller has its own hierarchy") {
  const CgroupLimits limits = limits_in({
      {"/proc/self/mountinfo",
       "31 25 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
       "32 25 0:28 /docker/abc /sys/fs/cgroup/my\\040cpuset ro - cgroup cgroup rw,cpuset\n"
       "33 25 0:29 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
      {"/proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:cpuset:/docker/abc\n3:memory:/docker/abc\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n"},
      {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"},
      {"/sys/fs/cgroup/my cpuset/cpuset.cpus", "2,4,6\n"},
      {"/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "268435456\n"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
  });
  CHECK(limits.cpu_quota == 4.0);
  CHECK(limits.cpuset == 3);
  CHECK(limits.memory == 268435456u);
}

TEST_CASE("no cgroups, or nonsense in their files, mean no limits") {
  CHECK_FALSE(limits_in({}).cpu_quota);
  const CgroupLimits odd =
      limits_in({{"/proc/self/mountinfo", " - \n- cgroup2\n \\04 - cgroup2"}, {"/proc/self/cgroup", ":::\n0::"}});
  CHECK_FALSE(odd.memory);
}

TEST_CASE("what a group has left of its memory") {
  const std::map<std::string, std::string> v2{
      {"/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n"},
      {"/proc/self/cgroup", "0::/pod/app\n"},
      {"/sys/fs/cgroup/pod/app/memory.max", "max\n"},
      {"/sys/fs/cgroup/pod/app/memory.current", "500\n"},
      {"/sys/fs/cgroup/pod/memory.max", "1000\n"},
      {"/sys/fs/cgroup/pod/memory.current", "900\n"},
      {"/sys/fs/cgroup/pod/memory.stat", "anon 100\ninactive_file 700\nactive_file 5\n"},
  };
  const auto left = [](std::map<std::string, std::string> files) {
    return read_cgroup_headroom([&](const std::string& path) -> std::optional<std::string> {
      const auto found = files.find(path);
      return found == files.end() ? std::nullopt : std::optional(found->second);
    });
  };
  CHECK(left(v2) == 805u);  // the cache of files can be dropped
  auto over = v2;
  over["/sys/fs/cgroup/pod/memory.current"] = "5000";
  CHECK(left(over) == 0u);
  CHECK(left({{"/proc/self/mountinfo", "33 25 0:29 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"},
              {"/proc/self/cgroup", "3:memory:/a\n"},
              {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000\n"},
              {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000\n"},
              {"/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 400\n"}}) == 2400u);
  CHECK_FALSE(left({}));
}

TEST_CASE("what the machine has left of its memory") {
  const char* text = "MemTotal:  100 kB\nMemAvailable:   42 kB\nSwapFree:x kB\n";
  CHECK(parse_meminfo(text, "MemAvailable") == 42u << 10);
  CHECK_FALSE(parse_meminfo(text, "SwapFree"));
  CHECK_FALSE(parse_meminfo(text, "MemFree"));
  CHECK(available_memory() > 0);
  expect_available(1 << 20);
#if defined(__linux__) || defined(__APPLE__)
  try {
    expect_available(uint64_t{1} << 50);
    FAIL("this machine has a petabyte");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::OutOfMemory);
  }
#endif
}

TEST_CASE("this machine's figures are plausible") {
  CHECK(available_cores() >= 1);
  CHECK(page_size() >= 4096);
  CHECK(memory_limit() > (64u << 20));
  CHECK_FALSE(cpu_name().empty());
}

TEST_CASE("INFERNODE_CPU forces a rung that the processor has") {
  CHECK(cpu_rung_from(nullptr, CpuRung::Vnni) == CpuRung::Vnni);
  CHECK(cpu_rung_from("", CpuRung::Vnni) == CpuRung::Vnni);
  CHECK(cpu_rung_from("avx2", CpuRung::Vnni) == CpuRung::Avx2);
  CHECK(cpu_rung_from("vnni", CpuRung::Vnni) == CpuRung::Vnni);
  CHECK(cpu_rung_from("neon", CpuRung::Neon) == CpuRung::Neon);
  CHECK(cpu_rung_from("neon", ArmRung::kBf16) == ArmRung::kNeon);
  CHECK(cpu_rung_from("dotprod", ArmRung::kI8mm) == ArmRung::kDotprod);
  CHECK(cpu_rung_from("bf16", ArmRung::kBf16) == ArmRung::kBf16);
  CHECK(cpu_rung_from("bf16", CpuRung::Amx) == CpuRung::Bf16);
  const auto message = [](const char* value, CpuRung detected) {
    try {
      cpu_rung_from(value, detected);
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::InvalidArgument);
      return e.message();
    }
    return std::string("no error");
  };
  CHECK(message("amx", CpuRung::Avx2) ==
        "INFERNODE_CPU=amx asks for more than this processor has; this machine has baseline, avx2");
  CHECK(message("baseline", CpuRung::Neon) ==
        "INFERNODE_CPU=baseline is a name for x86 processors; this machine has neon");
  CHECK(message("neon", CpuRung::Avx2) ==
        "INFERNODE_CPU=neon is a name for ARM processors; this machine has baseline, avx2");
  CHECK(message("i8mm", ArmRung::kDotprod) ==
        "INFERNODE_CPU=i8mm asks for more than this processor has; this machine has neon, dotprod");
  CHECK(message("bf16", ArmRung::kI8mm) ==
        "INFERNODE_CPU=bf16 asks for more than this processor has; this machine has neon, dotprod, i8mm");
  CHECK(message("dotprod", CpuRung::Avx2) ==
        "INFERNODE_CPU=dotprod is a name for ARM processors; this machine has baseline, avx2");
  CHECK(message("axv2", CpuRung::Avx512) ==
        "INFERNODE_CPU=axv2 is not the name of an instruction set; this machine has baseline, avx2, avx512. "
        "Did you mean avx2?");
  CHECK(message("fast", CpuRung::Neon) ==
        "INFERNODE_CPU=fast is not the name of an instruction set; this machine has neon");
}

TEST_CASE("rungs need all that is below them") {
  CpuFeatures f;
  CHECK_THROWS_AS(rung_of(f), Error);
  f.sse42 = f.popcnt = true;
  CHECK(rung_of(f) == CpuRung::Baseline);
  f.avx = f.avx2 = f.fma = f.f16c = true;
  CHECK(rung_of(f) == CpuRung::Baseline);
  f.bmi = true;
  CHECK(rung_of(f) == CpuRung::Avx2);
  f.avx512_vnni = f.avx512_bf16 = true;
  CHECK(rung_of(f) == CpuRung::Avx2);
  f.avx512 = true;
  CHECK(rung_of(f) == CpuRung::Bf16);
  f.amx_tile = f.amx_int8 = true;
  CHECK(rung_of(f) == CpuRung::Bf16);
  f.amx_bf16 = true;
  CHECK(rung_of(f) == CpuRung::Amx);
  f.avx512_vnni = false;
  CHECK(rung_of(f) == CpuRung::Avx512);
  CHECK(rung_of({.neon = true}) == ArmRung::kNeon);
  CHECK(rung_of({.neon = true, .i8mm = true, .neon_bf16 = true}) == ArmRung::kNeon);
  CHECK(rung_of({.neon = true, .dotprod = true, .neon_bf16 = true}) == ArmRung::kDotprod);
  CHECK(rung_of({.neon = true, .dotprod = true, .i8mm = true}) == ArmRung::kI8mm);
  CHECK(rung_of({.neon = true, .dotprod = true, .i8mm = true, .neon_bf16 = true}) == ArmRung::kBf16);
  CHECK(detect_cpu_rung() == rung_of(detect_cpu_features()));
}

TEST_CASE("a float mode scope flushes denormals and restores the mode") {
  const uint64_t before = float_mode();
  volatile float tiny = 1e-38f;
  const auto halved = [&] { return tiny * 0.25f; };
  CHECK(halved() != 0.0f);
  {
    const FloatModeScope scope(true);
    CHECK(halved() == 0.0f);
    {
      const FloatModeScope inner(false);
      set_float_mode(before);
      CHECK(halved() != 0.0f);
    }
    CHECK(halved() == 0.0f);
  }
  CHECK(halved() != 0.0f);
  CHECK(float_mode() == before);
}
