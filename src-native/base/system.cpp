#include "base/system.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/immortal.h"
#include "base/limits/memory_watch.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(_WIN32)
#include <windows.h>
#else
#include <unistd.h>
#endif

namespace infernode {
namespace {

#if defined(__linux__)

std::optional<std::string> read_text_file(const std::string& path) {
  constexpr size_t kMost = 1 << 20;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return std::nullopt;
  std::string text;
  char block[4096];
  size_t got;
  while (text.size() < kMost && (got = std::fread(block, 1, sizeof block, file.get())) > 0) text.append(block, got);
  return text;
}

/// CPUs of the calling thread's affinity mask; empty when the system does not tell.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (size_t sets = 1; sets <= 64; sets *= 4) {
    std::vector<cpu_set_t> mask(sets);
    const size_t bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) != 0) continue;
    for (size_t cpu = 0; cpu < bytes * 8; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(static_cast<int>(cpu));
    break;
  }
  return cpus;
}

#endif

#if defined(__APPLE__)
uint64_t sysctl_number(const char* name) {
  uint64_t value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}
#endif

#if defined(_WIN32)

/// What the job allows that this process runs in: how Windows limits containers and services.
uint64_t job_memory() {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION info{};
  if (!QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &info, sizeof info, nullptr))
    return UINT64_MAX;
  const DWORD limits = info.BasicLimitInformation.LimitFlags;
  uint64_t bytes = UINT64_MAX;
  if ((limits & JOB_OBJECT_LIMIT_JOB_MEMORY) != 0) bytes = std::min<uint64_t>(bytes, info.JobMemoryLimit);
  if ((limits & JOB_OBJECT_LIMIT_PROCESS_MEMORY) != 0) bytes = std::min<uint64_t>(bytes, info.ProcessMemoryLimit);
  return bytes;
}

/// The share of all processors' time, 1 where nothing limits it.
double job_processor_share() {
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  if (!QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof rate, nullptr)) return 1;
  constexpr DWORD kCap = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  return (rate.ControlFlags & kCap) == kCap ? std::min(1.0, rate.CpuRate / 10000.0) : 1;
}

#endif

size_t online_cores() { return std::max<size_t>(1, std::thread::hardware_concurrency()); }

uint64_t physical_memory() {
#if defined(_WIN32)
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : UINT64_MAX;
#elif defined(__APPLE__)
  const uint64_t bytes = sysctl_number("hw.memsize");
  return bytes != 0 ? bytes : UINT64_MAX;
#else
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<uint64_t>(pages) * page_size() : UINT64_MAX;
#endif
}

}  // namespace

size_t available_cores() {
  size_t cores = online_cores();
#if defined(__linux__)
  if (const size_t allowed = allowed_cpus().size(); allowed != 0) cores = allowed;
  const CgroupLimits limits = read_cgroup_limits(read_text_file);
  if (limits.cpuset && *limits.cpuset != 0) cores = std::min(cores, *limits.cpuset);
  if (limits.cpu_quota) cores = std::min(cores, static_cast<size_t>(std::ceil(std::min(*limits.cpu_quota, 1e6))));
#elif defined(_WIN32)
  DWORD_PTR process_mask = 0, system_mask = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &process_mask, &system_mask) && process_mask != 0 &&
      process_mask != system_mask) {
    size_t bits = 0;
    for (; process_mask != 0; process_mask &= process_mask - 1) ++bits;
    cores = std::min(cores, bits);
  }
  const double share = job_processor_share() * static_cast<double>(online_cores());
  cores = std::min(cores, static_cast<size_t>(std::ceil(share)));
#elif defined(__APPLE__)
  // Work is split evenly: a share on an efficiency core would make all others wait.
  if (const uint64_t fast = sysctl_number("hw.perflevel0.logicalcpu"); fast != 0)
    cores = std::min(cores, static_cast<size_t>(fast));
#endif
  return std::max<size_t>(1, cores);
}

void prefer_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = align_up(begin, kHugePage), last = (begin + bytes) / page_size() * page_size();
  if (first < last) (void)madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

size_t page_size() noexcept {
#if defined(_WIN32)
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
#else
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 4096;
#endif
}

uint64_t memory_limit() {
  uint64_t bytes = physical_memory();
#if defined(__linux__)
  if (const auto limit = read_cgroup_limits(read_text_file).memory) bytes = std::min(bytes, *limit);
#elif defined(_WIN32)
  bytes = std::min(bytes, job_memory());
#endif
  return bytes;
}

uint64_t available_memory() {
#if defined(__linux__)
  const std::string meminfo = read_text_file("/proc/meminfo").value_or("");
  const auto free = parse_meminfo(meminfo, "MemAvailable");
  uint64_t bytes = free ? *free + parse_meminfo(meminfo, "SwapFree").value_or(0) : UINT64_MAX;
  if (const auto left = read_cgroup_headroom(read_text_file)) bytes = std::min(bytes, *left);
  return bytes;
#elif defined(__APPLE__)
  return physical_memory();
#else
  return UINT64_MAX;  // what is granted is there
#endif
}

namespace {

/// Where the process's address space is limited (ulimit -v): whether this much of it is left, and some for those who
/// end the process when they get none.
bool fits_address_space([[maybe_unused]] uint64_t bytes) {
#if defined(__linux__)
  constexpr uint64_t kOthers = uint64_t{32} << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  if (bytes >= limit.rlim_cur) return false;
  void* const probe = mmap(nullptr, bytes + kOthers, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return false;
  munmap(probe, bytes + kOthers);
#endif
  return true;
}

}  // namespace

std::unique_lock<std::mutex> take_available(uint64_t bytes) {
  constexpr uint64_t kSmall = uint64_t{1} << 20;
  INFERNODE_CHECK(bytes < kSmall || fits_address_space(bytes), ErrorCode::OutOfMemory, bytes,
                  " bytes of memory are needed, and the limit of this process's address space (ulimit -v) leaves less");
  static Immortal<MemoryWatch> watch(available_memory);
  return (*watch).expect(bytes);
}

void expect_available(uint64_t bytes) { (void)take_available(bytes); }

void return_freed_memory() noexcept {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace infernode
